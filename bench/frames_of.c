/* SPDX-License-Identifier: MIT */
/* Preloaded into a game server whose script ends each frame by a call that arrives here: a sleep of
 * 7 us (Godot) or os.clock (Lua).  Measures the processor time of the frames after the first ones.
 *
 *     FRAMES_MODE   bare, counted, frames (each frame is ended), spikes (slow ones are searched)
 *     FRAMES_COUNT  frames to measure
 *     FRAMES_OUT    receives a line for each slow frame that called FRAMES_PLANTED, and
 *                   "measured CPU_NS WALL_NS HOOKED START_NS" */
#define _GNU_SOURCE
#include <hotfn/optional.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MARK_NS = 7000, WARM_UP = 40, SPIKE_PERCENT = 300 };

int nanosleep(const struct timespec *wanted, struct timespec *left);
clock_t clock(void);

static hotfn_session *session;
static hotfn_frame *frame;
static FILE *out;
static uint64_t marks, start_ns, begin_cpu_ns, begin_wall_ns;

static uint64_t read_ns(clockid_t which)
{
    struct timespec t;

    clock_gettime(which, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int is_mode(const char *mode)
{
    return strcmp(getenv("FRAMES_MODE"), mode) == 0;
}

static void check(hotfn_status status, const hotfn_error *err)
{
    if (status != HOTFN_OK) {
        fprintf(stderr, "frames_of: %s\n", err->text);
        _exit(1);
    }
}

static void begin_session(void)
{
    static const char *const modules[] = { "godot3-server", "minetestserver", "libz.so*" };
    hotfn_session_options options = HOTFN_SESSION_OPTIONS_INIT;
    hotfn_frame_options wanted = HOTFN_FRAME_OPTIONS_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    uint64_t begin = read_ns(CLOCK_MONOTONIC);

    options.modules = modules;
    options.module_count = sizeof modules / sizeof *modules;
    options.cache_folder = getenv("FRAMES_CACHE");
    check(hotfn_session_create(&session, &options, NULL, &err), &err);
    check(hotfn_session_start(session, &err), &err);
    start_ns = read_ns(CLOCK_MONOTONIC) - begin;
    if (is_mode("spikes")) {
        wanted.spike_percent = SPIKE_PERCENT;
        wanted.top_count = UINT32_MAX;
    }
    if (!is_mode("counted")) {
        check(hotfn_frame_create(&frame, session, &wanted, NULL, &err), &err);
    }
}

/* The number of a frame is that of the mark that ends it. */
static void report_spike(const hotfn_frame_info *info)
{
    const char *planted = getenv("FRAMES_PLANTED");
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;

    for (uint32_t i = 0; i < info->top_count; i++) {
        if (hotfn_frame_get_function(frame, i, &f, NULL) == HOTFN_OK && f.calls > 0 &&
            strcmp(f.name, planted) == 0) {
            fprintf(out, "spike %llu %llu %llu %llu\n", (unsigned long long)marks,
                    (unsigned long long)info->duration_ns, (unsigned long long)info->median_ns,
                    (unsigned long long)f.calls);
        }
    }
}

static void end_frame(void)
{
    hotfn_frame_info info = HOTFN_FRAME_INFO_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;

    check(hotfn_frame_next(frame, &info, &err), &err);
    if (is_mode("spikes") && info.is_spike) {
        report_spike(&info);
    }
}

static void write_result(void)
{
    uint64_t cpu = read_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu_ns;
    uint64_t wall = read_ns(CLOCK_MONOTONIC) - begin_wall_ns;
    hotfn_session_stats stats = HOTFN_SESSION_STATS_INIT;

    if (session) {
        hotfn_session_get_stats(session, &stats);
    }
    fprintf(out, "measured %llu %llu %u %llu\n", (unsigned long long)cpu, (unsigned long long)wall,
            stats.hooked, (unsigned long long)start_ns);
    fclose(out);
    out = NULL;
}

static void mark_frame(void)
{
    marks++;
    if (marks == 1) {
        out = fopen(getenv("FRAMES_OUT"), "w");
        if (!is_mode("bare")) {
            begin_session();
        }
        return;
    }
    if (frame) {
        end_frame();
    }
    if (marks == WARM_UP) {
        begin_cpu_ns = read_ns(CLOCK_PROCESS_CPUTIME_ID);
        begin_wall_ns = read_ns(CLOCK_MONOTONIC);
    }
    if (out && marks == WARM_UP + strtoull(getenv("FRAMES_COUNT"), NULL, 10)) {
        write_result();
    }
}

int nanosleep(const struct timespec *wanted, struct timespec *left)
{
    if (wanted->tv_sec == 0 && wanted->tv_nsec == MARK_NS) {
        mark_frame();
    }
    return (int)syscall(SYS_nanosleep, wanted, left);
}

clock_t clock(void)
{
    mark_frame();
    return (clock_t)(read_ns(CLOCK_PROCESS_CPUTIME_ID) / 1000u);
}
