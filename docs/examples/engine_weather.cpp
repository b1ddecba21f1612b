// SPDX-License-Identifier: MIT
// The plug-in of engine.cpp: a shared library that the engine loads, and loads again while it runs.
#include <cstdint>

namespace weather
{

__attribute__((noinline)) uint64_t move_clouds(uint64_t seed, int clouds)
{
    for (int i = 0; i < clouds; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
    }
    return seed;
}

} // namespace weather

extern "C" uint64_t weather_update(uint64_t frame)
{
    return weather::move_clouds(frame, 20000);
}
