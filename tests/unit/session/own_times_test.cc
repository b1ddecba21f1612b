// SPDX-License-Identifier: MIT
// A session that times its own process, through the shared library, as an embedder uses it.  The
// test reads the processor's counter inside the timed function and around its call: the total lies
// between the two, however busy the machine is.
#include <hotfn.h>
#include <hotfn/lowlevel.h>

#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>

#include "check.h"

#if defined(__clang__)
#define KEPT_WHOLE
#else
#define KEPT_WHOLE __attribute__((noclone))
#endif
#define TIMED extern "C" KEPT_WHOLE __attribute__((noinline, visibility("default"), used))

static uint64_t now()
{
    unsigned aux;
    return __rdtscp(&aux);
}

// ---- The timed functions.

static std::atomic<uint64_t> inside; // ticks that timed functions measured in their bodies
static std::atomic<int> sink, may_leave, held;
static constexpr uint64_t SPIN = 200000;

TIMED void t_spin(uint64_t ticks)
{
    uint64_t begin = now();
    while (now() - begin < ticks) {
    }
    inside += now() - begin;
}

TIMED void t_outer(int times)
{
    for (int i = 0; i < times; i++) {
        t_spin(SPIN);
    }
    sink += times;
}

TIMED uint64_t t_nested(uint64_t depth)
{
    uint64_t below = depth > 0 ? t_nested(depth - 1) : 0;
    sink += 1;
    return below + depth;
}

TIMED void t_throw(int depth)
{
    if (depth > 0) {
        t_throw(depth - 1);
    }
    if (depth == 0 && sink >= 0) {
        throw std::runtime_error("out");
    }
    sink += 1;
}

TIMED void t_hold()
{
    uint64_t begin = now();
    held += 1;
    while (!may_leave) {
        sched_yield();
    }
    inside += now() - begin;
}

// Variadic, so count-only: a call of t_tail must end at its jump to this function.
TIMED int t_variable(int count, ...)
{
    va_list list;
    va_start(list, count);
    int sum = 0;
    for (int i = 0; i < count; i++) {
        sum += va_arg(list, int);
    }
    va_end(list);
    return sum;
}

TIMED int t_tail(int a)
{
    sink += a;
    sink += 1;
    return t_variable(2, a, 1);
}

// ---- A session that times these functions.

struct error : hotfn_error {
    error()
    {
        hotfn_error none = HOTFN_ERROR_INIT;
        *static_cast<hotfn_error *>(this) = none;
    }
};

static hotfn_session_options options_for(uint32_t mode, uint32_t sample = 0, uint32_t flags = 0)
{
    static const char *globs[] = { "t_*" };
    static hotfn_selection pick = HOTFN_SELECTION_INIT;
    hotfn_session_options o = HOTFN_SESSION_OPTIONS_INIT;
    pick.include = globs;
    pick.include_count = 1;
    o.selection = &pick;
    o.mode = mode;
    o.sample_mean = sample;
    o.flags = flags;
    return o;
}

static hotfn_session *create(const hotfn_session_options &o)
{
    hotfn_session *session = nullptr;
    error err;
    if (!CHECK(hotfn_session_create(&session, &o, nullptr, &err) == HOTFN_OK)) {
        std::printf("# %s\n", err.text);
    }
    return session;
}

static void start(hotfn_session *session)
{
    error err;
    if (!CHECK(hotfn_session_start(session, &err) == HOTFN_OK)) {
        std::printf("# %s\n", err.text);
    }
}

static void stop(hotfn_session *session)
{
    error err;
    if (!CHECK(hotfn_session_stop(session, &err) == HOTFN_OK)) {
        std::printf("# %s\n", err.text);
    }
}

struct measured {
    uint64_t calls = 0, timed = 0, open = 0;
    double total_ticks = 0, self_ticks = 0; // of the processor's counter
    uint32_t how = 0, index = 0;
};

struct times {
    hotfn_record *record = nullptr;
    hotfn_record_time_info info = HOTFN_RECORD_TIME_INFO_INIT;
    std::map<std::string, measured> of;

    explicit times(hotfn_session *session)
    {
        error err;
        if (!CHECK(hotfn_session_snapshot(&record, session, &err) == HOTFN_OK)) {
            return;
        }
        hotfn_record_get_time_info(record, &info);
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
        hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;
        double per_ns = static_cast<double>(info.ticks_per_second) / 1e9;
        for (uint32_t i = 0; hotfn_record_get_function(record, i, &f) == HOTFN_OK; i++) {
            hotfn_record_get_timing(record, i, &t);
            if (f.state == HOTFN_STATE_HOOKED) {
                of[f.name] = { f.calls,
                               t.timed_calls,
                               t.open_calls,
                               static_cast<double>(t.total_ns) * per_ns,
                               static_cast<double>(t.self_ns) * per_ns,
                               t.timing,
                               i };
            }
        }
    }
    ~times()
    {
        hotfn_record_close(record);
    }
    times(const times &) = delete;
    times &operator=(const times &) = delete;
};

// Whether ticks lies between the ticks inside and around the calls.  The slack is for rounding to
// ns and for the cost of hooks, of which only the mean is subtracted.
static bool lies_between(double ticks, uint64_t inside, uint64_t around, uint64_t calls)
{
    double slack = 20000 + 4000 * static_cast<double>(calls);
    bool holds =
        ticks > static_cast<double>(inside) - slack && ticks < static_cast<double>(around) + slack;
    if (!holds) {
        std::printf("# %.0f ticks, of %llu to %llu\n", ticks,
                    static_cast<unsigned long long>(inside),
                    static_cast<unsigned long long>(around));
    }
    return holds;
}

static bool counter_is_the_clock(hotfn_session *session)
{
    times t(session);
    return t.info.clock == HOTFN_CLOCK_TSC; // without a TSC, totals are in nanoseconds
}

// ---- Claims.

static void totals_lie_between_the_ticks_inside_and_around_calls(void)
{
    for (uint32_t sample : { 0u, 1u }) {
        for (uint32_t flags : { 0u, HOTFN_SESSION_FLAT }) {
            hotfn_session *session = create(options_for(HOTFN_SESSION_TIME, sample, flags));
            inside = 0;
            start(session);
            uint64_t begin = now();
            t_outer(20);
            uint64_t around = now() - begin, within = inside;
            stop(session);
            t_outer(20); // not timed: the session is stopped
            times t(session);
            CHECK_EQ_U64(t.of["t_spin"].calls, 20);
            CHECK_EQ_U64(t.of["t_spin"].timed, 20);
            CHECK_EQ_U64(t.of["t_outer"].timed, 1);
            CHECK_EQ_U64(t.of["t_outer"].open, 0);
            CHECK_EQ_U64(t.info.edge_count > 0, !sample && !flags);
            if (t.info.clock == HOTFN_CLOCK_TSC) {
                CHECK(lies_between(t.of["t_spin"].total_ticks, within, around, 20));
                CHECK(lies_between(t.of["t_outer"].total_ticks, within, around, 20));
                CHECK(t.of["t_outer"].self_ticks < t.of["t_outer"].total_ticks / 2);
            }
            hotfn_session_destroy(session);
        }
    }
}

static void times_of_threads_are_summed(void)
{
    enum { THREADS = 4, CALLS = 25 };
    hotfn_session *session = create(options_for(HOTFN_SESSION_TIME));
    std::vector<std::thread> threads;
    std::atomic<uint64_t> around{ 0 };
    inside = 0;
    start(session);
    for (int i = 0; i < THREADS; i++) {
        threads.emplace_back([&around] {
            uint64_t begin = now();
            for (int k = 0; k < CALLS; k++) {
                t_spin(SPIN / 4);
            }
            around += now() - begin;
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    bool by_counter = counter_is_the_clock(session);
    times t(session);
    CHECK_EQ_U64(t.of["t_spin"].timed, THREADS * CALLS);
    if (by_counter) {
        CHECK(lies_between(t.of["t_spin"].total_ticks, inside, around, THREADS * CALLS));
    }
    hotfn_session_destroy(session);
}

// Calls that are open when a session stops end at the stop, once; their stubs still exist when they
// return.
static void open_calls_end_when_the_session_stops(void)
{
    // The calls return while (0) no session runs, (1) the same session runs again, (2) a session
    // counts, (3) a flat session times.
    for (int then = 0; then < 4; then++) {
        hotfn_session *session = create(options_for(HOTFN_SESSION_TIME, then == 2 ? 1 : 0));
        held = may_leave = 0;
        start(session);
        std::atomic<uint64_t> began{ 0 };
        std::thread thread([&began] {
            began = now();
            t_hold();
            t_nested(3);
        });
        while (held < 1) {
            sched_yield();
        }
        uint64_t inside_at = now();
        t_spin(SPIN);
        uint64_t before = now();
        stop(session);
        uint64_t after = now();
        measured hold;
        {
            times t(session);
            hold = t.of["t_hold"];
            CHECK_EQ_U64(hold.timed, 1);
            CHECK_EQ_U64(hold.open, 0);
            if (t.info.clock == HOTFN_CLOCK_TSC) {
                CHECK(lies_between(hold.total_ticks, before - inside_at, after - began, 1));
            }
        }
        if (then == 1) {
            start(session);
        }
        if (then >= 2) {
            hotfn_session_destroy(session);
            session = create(then == 2 ? options_for(HOTFN_SESSION_COUNT)
                                       : options_for(HOTFN_SESSION_TIME, 0, HOTFN_SESSION_FLAT));
            start(session);
        }
        may_leave = 1;
        thread.join();
        CHECK_EQ_U64(t_nested(3), 6);
        times t(session);
        if (then <= 1) {
            CHECK_EQ_U64(t.of["t_hold"].timed, 1);
            CHECK(t.of["t_hold"].total_ticks == hold.total_ticks);
        } else {
            CHECK_EQ_U64(t.of["t_hold"].timed, 0);
            CHECK(t.of["t_hold"].self_ticks == 0);
        }
        CHECK_EQ_U64(t.of["t_nested"].calls, then == 0 ? 0 : 8);
        CHECK_EQ_U64(t.of["t_nested"].timed, then == 0 || then == 2 ? 0 : 8);
        hotfn_session_destroy(session);
    }
}

extern "C" const unsigned char __executable_start, etext;

static uint64_t hash_of_code()
{
    uint64_t hash = 14695981039346656037u;
    for (const unsigned char *at = &__executable_start; at < &etext; at++) {
        hash = (hash ^ *at) * 1099511628211u;
    }
    return hash;
}

static void stop_restores_every_byte_of_code(void)
{
    uint64_t bare = hash_of_code();
    for (uint32_t sample : { 0u, 1u, 0u }) {
        hotfn_session *session = create(options_for(HOTFN_SESSION_TIME, sample));
        for (int i = 0; i < 2; i++) {
            start(session);
            CHECK(hash_of_code() != bare);
            CHECK_EQ_I64(t_tail(4), 5);
            t_outer(1);
            stop(session);
            CHECK_EQ_U64(hash_of_code(), bare);
            CHECK_EQ_I64(t_tail(4), 5);
        }
        times t(session);
        CHECK_EQ_U64(t.of["t_tail"].calls, 2);
        CHECK_EQ_U64(t.of["t_outer"].timed, 2);
        hotfn_session_destroy(session);
    }
}

static void exceptions_end_calls(void)
{
    hotfn_session *session = create(options_for(HOTFN_SESSION_TIME));
    int caught = 0;
    start(session);
    for (int i = 0; i < 50; i++) {
        try {
            t_throw(9);
        } catch (const std::runtime_error &) {
            caught++;
        }
    }
    t_nested(4);
    times t(session);
    CHECK_EQ_U64(static_cast<uint64_t>(caught), 50);
    uint64_t seen = t.of.count("t_throw") ? 500 : 0; // t_throw cannot be hooked with every compiler
    CHECK_EQ_U64(t.of["t_throw"].calls, seen);
    CHECK_EQ_U64(t.of["t_throw"].timed, t.of["t_throw"].how == HOTFN_TIMING_FULL ? seen : 0);
    CHECK_EQ_U64(t.of["t_throw"].open, 0);
    CHECK_EQ_U64(t.of["t_nested"].timed, 5);
    hotfn_session_destroy(session);
}

static void exception_passes_a_call_that_was_open_at_a_stop(void)
{
    hotfn_session *session = create(options_for(HOTFN_SESSION_TIME));
    std::atomic<int> caught{ 0 };
    held = may_leave = 0;
    start(session);
    std::thread thread([&caught] {
        try {
            t_hold();
            t_throw(5);
        } catch (const std::runtime_error &) {
            caught++;
        }
    });
    while (held < 1) {
        sched_yield();
    }
    stop(session);
    may_leave = 1;
    thread.join();
    CHECK_EQ_U64(static_cast<uint64_t>(caught), 1);
    hotfn_session_destroy(session);
}

// Threads call a recursive function all the time while sessions start and stop.
static void calls_return_correct_results_across_starts_and_stops(void)
{
    enum { THREADS = 3, SESSIONS = 6, STARTS = 5 };
    std::atomic<bool> done{ false };
    std::atomic<int> wrong{ 0 };
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < THREADS; i++) {
        threads.emplace_back([&done, &wrong, i] {
            for (uint64_t depth = i; !done; depth = (depth + 1) % 40) {
                if (t_nested(depth) != depth * (depth + 1) / 2) {
                    wrong++;
                }
            }
        });
    }
    for (int i = 0; i < SESSIONS; i++) {
        hotfn_session *session = create(options_for(HOTFN_SESSION_TIME, i % 3 == 2 ? 4 : 0,
                                                    i % 3 == 1 ? HOTFN_SESSION_FLAT : 0));
        for (int k = 0; k < STARTS; k++) {
            start(session);
            for (int n = sink; sink - n < 1000;) {
                sched_yield();
            }
            stop(session);
        }
        times t(session);
        CHECK(t.of["t_nested"].calls >= 1000 && t.of["t_nested"].timed <= t.of["t_nested"].calls);
        CHECK_EQ_U64(t.of["t_nested"].open, 0);
        hotfn_session_destroy(session);
    }
    done = true;
    for (std::thread &thread : threads) {
        thread.join();
    }
    CHECK_EQ_U64(static_cast<uint64_t>(wrong), 0);
}

static void a_forked_child_is_timed_too(void)
{
    hotfn_session *session = create(options_for(HOTFN_SESSION_TIME));
    int status = -1;
    start(session);
    t_outer(2);
    pid_t child = fork();
    if (child == 0) {
        t_outer(3);
        _exit(7);
    }
    t_outer(2);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    stop(session);
    times t(session);
    CHECK_EQ_U64(t.of["t_spin"].calls, 7);
    CHECK_EQ_U64(t.of["t_spin"].timed, 7);
    CHECK_EQ_U64(t.of["t_outer"].timed, 3);
    hotfn_session_destroy(session);
}

static void sampling_counts_all_calls_and_times_some(void)
{
    hotfn_session *session = create(options_for(HOTFN_SESSION_TIME, 50));
    start(session);
    for (int i = 0; i < 20000; i++) {
        t_nested(0);
    }
    stop(session);
    times t(session);
    CHECK_EQ_U64(t.of["t_nested"].calls, 20000);
    CHECK_EQ_U64(t.of["t_nested"].timed, 20000 / 50);
    CHECK(t.of["t_nested"].how == HOTFN_TIMING_SAMPLE);
    hotfn_session_destroy(session);
}

static void invalid_options_and_second_sessions_are_refused(void)
{
    hotfn_session *first, *second = nullptr;
    hotfn_session_options o = options_for(HOTFN_SESSION_COUNT, 8);
    error err;
    CHECK_EQ_I64(hotfn_session_create(&second, &o, nullptr, &err), HOTFN_E_OPTION);
    CHECK(std::strstr(err.text, "sample"));
    o = options_for(HOTFN_SESSION_COUNT, 0, HOTFN_SESSION_FLAT);
    CHECK_EQ_I64(hotfn_session_create(&second, &o, nullptr, &err), HOTFN_E_OPTION);
    o = options_for(HOTFN_SESSION_COUNT);
    o.slow_ns = 1;
    CHECK_EQ_I64(hotfn_session_create(&second, &o, nullptr, &err), HOTFN_E_OPTION);
    o = options_for(HOTFN_SESSION_TIME, 1000001);
    CHECK_EQ_I64(hotfn_session_create(&second, &o, nullptr, &err), HOTFN_E_OPTION);
    o = options_for(HOTFN_SESSION_TIME + 1);
    CHECK_EQ_I64(hotfn_session_create(&second, &o, nullptr, &err), HOTFN_E_OPTION);
    first = create(options_for(HOTFN_SESSION_TIME));
    o = options_for(HOTFN_SESSION_TIME);
    CHECK_EQ_I64(hotfn_session_create(&second, &o, nullptr, &err), HOTFN_E_STATE);
    hotfn_session_destroy(first);
    CHECK(second == nullptr);
}

static void a_session_may_keep_a_tick_clock(void)
{
    constexpr int CALLS = 200; // 16 ms
    hotfn_session *session = create(options_for(HOTFN_SESSION_TIME, 0, HOTFN_SESSION_TICKER));
    if (!session) {
        return;
    }
    for (uint64_t run = 1; run <= 2; run++) {
        start(session);
        t_outer(CALLS);
        pid_t child = fork();
        if (child == 0) {
            t_outer(1);
            _exit(0);
        }
        CHECK(child > 0 && waitpid(child, nullptr, 0) == child);
        stop(session);
        times t(session);
        CHECK_EQ_U64(t.info.clock, HOTFN_CLOCK_TICK);
        CHECK(t.info.ticker != HOTFN_TICKER_NONE && t.info.ticker_cpu_ns > 0);
        CHECK_EQ_U64(t.of["t_spin"].timed, run * (CALLS + 1));
        CHECK(t.of["t_outer"].total_ticks >= t.of["t_spin"].total_ticks);
        // Ticks may be far apart while all processors are busy, but not 16 ms.
        CHECK(t.of["t_spin"].total_ticks > 0);
    }
    hotfn_session_destroy(session);
}

static const check_test tests[] = {
    CHECK_TEST(totals_lie_between_the_ticks_inside_and_around_calls),
    CHECK_TEST(times_of_threads_are_summed),
    CHECK_TEST(open_calls_end_when_the_session_stops),
    CHECK_TEST(stop_restores_every_byte_of_code),
    CHECK_TEST(exceptions_end_calls),
    CHECK_TEST(exception_passes_a_call_that_was_open_at_a_stop),
    CHECK_TEST(calls_return_correct_results_across_starts_and_stops),
    CHECK_TEST(a_forked_child_is_timed_too),
    CHECK_TEST(a_session_may_keep_a_tick_clock),
    CHECK_TEST(sampling_counts_all_calls_and_times_some),
    CHECK_TEST(invalid_options_and_second_sessions_are_refused),
};
CHECK_MAIN(tests)

#else
int main()
{
    std::puts("1..0 # SKIP this test reads the time-stamp counter of x86");
    return 0;
}
#endif
