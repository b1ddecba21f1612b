// SPDX-License-Identifier: MIT
// The same from C++: a guard that hooks while it lives, functions with mangled names, and an
// exception that passes through hooked functions.
//
//     c++ -O2 count_self.cpp $(pkg-config --cflags --libs hotfn) -o count_self && ./count_self
#include <hotfn.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace game
{

__attribute__((noinline)) void step(int depth)
{
    if (depth == 0) {
        throw std::runtime_error("deep enough");
    }
    step(depth - 1);
    asm volatile(""); // or the call above would be a jump
}

__attribute__((noinline)) int frame(int number)
{
    try {
        step(number % 5);
    } catch (const std::runtime_error &) {
        return 1;
    }
    return 0;
}

} // namespace game

namespace
{

void check(hotfn_status status, const hotfn_error &err)
{
    if (status != HOTFN_OK) {
        throw std::runtime_error(std::string(hotfn_status_get_name(status)) + ": " + err.text);
    }
}

using Record = std::unique_ptr<hotfn_record, decltype(&hotfn_record_close)>;

// Hooks the functions that a glob names, from construction to destruction.
class Counting
{
  public:
    explicit Counting(const char *glob)
    {
        hotfn_selection selection = HOTFN_SELECTION_INIT;
        selection.include = &glob;
        selection.include_count = 1;
        hotfn_session_options options = HOTFN_SESSION_OPTIONS_INIT;
        options.selection = &selection;
        check(hotfn_session_create(&session, &options, nullptr, &err), err);
        check(hotfn_session_start(session, &err), err);
    }
    Counting(const Counting &) = delete;
    Counting &operator=(const Counting &) = delete;
    ~Counting()
    {
        hotfn_session_destroy(session); // unhooks
    }

    Record snapshot()
    {
        hotfn_record *record = nullptr;
        check(hotfn_session_snapshot(&record, session, &err), err);
        return Record(record, &hotfn_record_close);
    }

  private:
    hotfn_session *session = nullptr;
    hotfn_error err = HOTFN_ERROR_INIT;
};

int32_t print(void *, const void *bytes, size_t byte_count)
{
    return std::fwrite(bytes, 1, byte_count, stdout) == byte_count ? 0 : 1;
}

} // namespace

int main()
{
    int caught = 0;
    Record record(nullptr, &hotfn_record_close);
    {
        Counting counting("game::*"); // matches the readable names
        for (int i = 0; i < 1000; i++) {
            caught += game::frame(i);
        }
        record = counting.snapshot();
    }
    std::printf("%d exceptions caught\n", caught);
    hotfn_export_options options = HOTFN_EXPORT_OPTIONS_INIT;
    options.limit = 2;
    hotfn_error err = HOTFN_ERROR_INIT;
    check(hotfn_export(record.get(), "csv", &options, print, nullptr, nullptr, &err), err);
    return 0;
}
