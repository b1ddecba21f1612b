// SPDX-License-Identifier: MIT
// A small game engine that watches its own frames: worker threads take jobs, a plug-in is loaded
// again while the engine runs, and one frame is slow on purpose.  hotfn names the function that
// made it slow, and saves the frame as a record with its call tree.  The rendering functions are a
// group that is switched on for ten frames only; a zone and a message of the engine join the tree.
//
//     c++ -O2 -shared -fPIC engine_weather.cpp -o weather.so
//     c++ -O2 -pthread engine.cpp $(pkg-config --cflags hotfn) -ldl -o engine && ./engine
//     hotfn report spike-90.hfr
//
// The engine is not linked with libhotfn: where that is absent, the same program runs unwatched.
#include <hotfn/optional.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <functional>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <vector>

// ---- The engine.  Nothing in this part knows of hotfn.

namespace engine
{

constexpr int frame_count = 120, slow_frame = 90, reload_frame = 60, worker_count = 2;
constexpr uint64_t first_rendered = 85, last_rendered = 95;

std::atomic<uint64_t> result; // keeps the compiler from dropping the work

/* Work without a system call: n rounds of about 1 ns. */
inline void compute(uint64_t seed, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
    }
    result.fetch_xor(seed, std::memory_order_relaxed);
}

__attribute__((noinline)) void animate(uint64_t object)
{
    compute(object, 2000);
}

__attribute__((noinline)) void collide(uint64_t object)
{
    compute(object, 5000);
}

__attribute__((noinline)) void cull(uint64_t object)
{
    compute(object, 500);
}

__attribute__((noinline)) void draw(uint64_t object)
{
    cull(object);
    compute(object, 1000);
}

__attribute__((noinline)) void rebuild_navigation()
{
    compute(1, 200000000);
}

/* Threads that take jobs from a queue; wait() returns when all of them are done. */
class workers
{
  public:
    workers()
    {
        for (int i = 0; i < worker_count; i++) {
            threads.emplace_back([this] { run(); });
        }
    }

    ~workers()
    {
        {
            std::lock_guard<std::mutex> hold(lock);
            is_stopped = true;
        }
        changed.notify_all();
        for (std::thread &thread : threads) {
            thread.join();
        }
    }

    void add(std::function<void()> job)
    {
        {
            std::lock_guard<std::mutex> hold(lock);
            jobs.push(std::move(job));
            unfinished++;
        }
        changed.notify_one();
    }

    void wait()
    {
        std::unique_lock<std::mutex> hold(lock);
        done.wait(hold, [this] { return unfinished == 0; });
    }

  private:
    void run()
    {
        std::unique_lock<std::mutex> hold(lock);
        for (;;) {
            changed.wait(hold, [this] { return is_stopped || !jobs.empty(); });
            if (jobs.empty()) {
                return;
            }
            std::function<void()> job = std::move(jobs.front());
            jobs.pop();
            hold.unlock();
            job();
            hold.lock();
            if (--unfinished == 0) {
                done.notify_all();
            }
        }
    }

    std::mutex lock;
    std::condition_variable changed, done;
    std::queue<std::function<void()>> jobs;
    int unfinished = 0;
    bool is_stopped = false;
    std::vector<std::thread> threads;
};

/* The weather, in a shared library that may be replaced while the engine runs. */
class plugin
{
  public:
    explicit plugin(std::string file) : path(std::move(file))
    {
        load();
    }

    ~plugin()
    {
        dlclose(handle);
    }

    void reload()
    {
        dlclose(handle);
        load();
    }

    uint64_t update(uint64_t frame) const
    {
        return function(frame);
    }

  private:
    void load()
    {
        handle = dlopen(path.c_str(), RTLD_NOW);
        if (!handle) {
            std::fprintf(stderr, "engine: %s\n", dlerror());
            std::exit(1);
        }
        function = reinterpret_cast<uint64_t (*)(uint64_t)>(dlsym(handle, "weather_update"));
    }

    std::string path;
    void *handle = nullptr;
    uint64_t (*function)(uint64_t) = nullptr;
};

__attribute__((noinline)) void simulate(workers &pool, uint64_t number)
{
    for (uint64_t part = 0; part < 4; part++) {
        pool.add([part] {
            for (uint64_t object = 0; object < 25; object++) {
                animate(25 * part + object);
                collide(25 * part + object);
            }
        });
    }
    if (number == slow_frame) {
        rebuild_navigation();
    }
    pool.wait();
}

__attribute__((noinline)) void render()
{
    for (uint64_t object = 0; object < 100; object++) {
        draw(object);
    }
}

void run_frame(workers &pool, plugin &sky, uint64_t number)
{
    if (number == reload_frame) {
        sky.reload();
    }
    result.fetch_xor(sky.update(number), std::memory_order_relaxed);
    simulate(pool, number);
    render();
}

} // namespace engine

// ---- What watches it.

namespace
{

void check(hotfn_status status, const hotfn_error &err)
{
    if (status != HOTFN_OK) {
        std::fprintf(stderr, "engine: %s: %s\n", hotfn_status_get_name(status), err.text);
        std::exit(1);
    }
}

/* Times the functions of the engine and of its plug-in, and watches for frames that take more than
 * three times the median. */
class frame_watch
{
  public:
    frame_watch()
    {
        if (!hotfn_optional_is_present()) {
            std::fprintf(stderr, "engine: frames are not watched: libhotfn is not installed\n");
            return;
        }
        static const char *const functions[] = { "engine::*", "weather*" };
        static const char *const modules[] = { "engine*", "weather.so" };
        hotfn_selection selection = HOTFN_SELECTION_INIT;
        hotfn_session_options options = HOTFN_SESSION_OPTIONS_INIT;
        hotfn_frame_options wanted = HOTFN_FRAME_OPTIONS_INIT;

        selection.include = functions;
        selection.include_count = 2;
        options.selection = &selection;
        options.modules = modules;
        options.module_count = 2;
        options.mode = HOTFN_SESSION_TIME;
        options.flags = HOTFN_SESSION_TICKER | HOTFN_SESSION_ZONES;
        static const char *const rendering[] = { "engine::render*", "engine::draw*",
                                                 "engine::cull*" };
        hotfn_selection rendered = HOTFN_SELECTION_INIT;
        hotfn_group group = HOTFN_GROUP_INIT;

        rendered.include = rendering;
        rendered.include_count = 3;
        group.name = "rendering";
        group.flags = HOTFN_GROUP_OFF;
        group.selection = &rendered;
        options.groups = &group;
        options.group_count = 1;
        check(hotfn_session_create(&session, &options, nullptr, &err), err);
        check(hotfn_session_start(session, &err), err);
        wanted.flags = HOTFN_FRAME_TIMES;
        wanted.by = HOTFN_BY_SELF;
        wanted.top_count = 3;
        wanted.spike_percent = 300;
        check(hotfn_frame_create(&frame, session, &wanted, nullptr, &err), err);
    }

    ~frame_watch()
    {
        hotfn_frame_destroy(frame);
        hotfn_session_destroy(session);
    }

    /* The parts of the engine that are of interest change while it runs.  If a thread could not be
     * stopped (HOTFN_E_STATE), nothing has changed, and the next frame tries again. */
    void begin_frame(uint64_t number)
    {
        bool is_wanted = number >= engine::first_rendered && number < engine::last_rendered;

        if (!frame || is_wanted == sees_rendering) {
            return;
        }
        hotfn_status status = hotfn_session_switch_group(session, "rendering", is_wanted, &err);
        if (status != HOTFN_E_STATE) {
            check(status, err);
            sees_rendering = is_wanted;
            hotfn_zone_add_message(session, "rendering is switched", nullptr);
        }
    }

    const hotfn_session *get_session() const
    {
        return session;
    }

    void end_frame()
    {
        hotfn_frame_info info = HOTFN_FRAME_INFO_INIT;
        if (!frame) {
            return;
        }
        check(hotfn_frame_next(frame, &info, &err), err);
        if (info.is_spike) {
            report(info);
        }
    }

  private:
    void report(const hotfn_frame_info &info)
    {
        std::string path = "spike-" + std::to_string(info.number) + ".hfr";

        std::printf("frame %llu took %.1f ms, the median is %.1f ms:\n",
                    static_cast<unsigned long long>(info.number), double(info.duration_ns) / 1e6,
                    double(info.median_ns) / 1e6);
        for (uint32_t rank = 0; rank < info.top_count; rank++) {
            hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
            hotfn_frame_times times = HOTFN_FRAME_TIMES_INIT;
            char name[256];

            hotfn_frame_get_function(frame, rank, &f, nullptr);
            hotfn_frame_get_times(frame, rank, &times);
            hotfn_demangle(f.name, name, sizeof name);
            std::printf("  %6.1f ms in %llu calls of %s\n", double(times.self_ns) / 1e6,
                        static_cast<unsigned long long>(f.calls), name);
        }
        check(hotfn_frame_save(frame, path.c_str(), &err), err);
    }

    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_session *session = nullptr;
    hotfn_frame *frame = nullptr;
    bool sees_rendering = false;
};

} // namespace

int main(int argc, char **argv)
{
    engine::plugin sky(argc > 1 ? argv[1] : "./weather.so");
    engine::workers pool;
    frame_watch watch;

    hotfn_thread_set_name("engine main", nullptr);
    for (uint64_t number = 0; number < engine::frame_count; number++) {
        watch.begin_frame(number);
        {
            hotfn::zone whole(watch.get_session(), "frame");
            engine::run_frame(pool, sky, number);
        }
        watch.end_frame();
    }
    return 0;
}
