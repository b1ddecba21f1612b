/* SPDX-License-Identifier: MIT */
/* Frames with times and spikes, in a program that hooks itself. */
#include <hotfn.h>
#include <hotfn/lowlevel/timing.h>

#include "check.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

/* External, so that the compiler makes no copies of them with other names. */
__attribute__((noinline)) void burn(uint64_t ms);
__attribute__((noinline)) void work_hard(uint64_t ms);
__attribute__((noinline)) void rest(void);

static const char *spike_path(void)
{
    static char path[64];

    snprintf(path, sizeof path, "/tmp/hotfn_frame_times.%d.hfr", (int)getpid());
    return path;
}

static uint64_t read_clock(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static volatile int state;

void burn(uint64_t ms)
{
    uint64_t end = read_clock(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000;

    while (read_clock(CLOCK_THREAD_CPUTIME_ID) < end) {
        __asm__ volatile("");
    }
}

/* Its first instruction is long enough for a patch at its entry. */
void work_hard(uint64_t ms)
{
    state = 1;
    burn(ms);
    state = 2;
}

void rest(void)
{
    usleep(2000);
    __asm__ volatile("");
}

static void *run_thread(void *user)
{
    pthread_setname_np(pthread_self(), "helper");
    work_hard(*(uint64_t *)user);
    return NULL;
}

static hotfn_session *start_session(uint32_t mode)
{
    static const char *const names[] = { "burn", "work_hard", "rest" };
    hotfn_selection selection = HOTFN_SELECTION_INIT;
    hotfn_session_options options = HOTFN_SESSION_OPTIONS_INIT;
    hotfn_session *session = NULL;

    selection.include = names;
    selection.include_count = 3;
    options.selection = &selection;
    options.mode = mode;
    if (!CHECK_EQ_I64(hotfn_session_create(&session, &options, NULL, NULL), HOTFN_OK) ||
        !CHECK_EQ_I64(hotfn_session_start(session, NULL), HOTFN_OK)) {
        exit(1);
    }
    return session;
}

static hotfn_frame *make_frame(const hotfn_session *session, const hotfn_frame_options *options)
{
    hotfn_frame *frame = NULL;

    CHECK_EQ_I64(hotfn_frame_create(&frame, session, options, NULL, NULL), HOTFN_OK);
    return frame;
}

static hotfn_frame_info next_frame(hotfn_frame *frame)
{
    hotfn_frame_info info = HOTFN_FRAME_INFO_INIT;

    CHECK_EQ_I64(hotfn_frame_next(frame, &info, NULL), HOTFN_OK);
    return info;
}

/* The place of a function in the frame; UINT32_MAX: it was not called. */
static uint32_t find_function(const hotfn_frame *frame, const char *name)
{
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;

    for (uint32_t i = 0; hotfn_frame_get_function(frame, i, &f, NULL) == HOTFN_OK; i++) {
        if (strcmp(f.name, name) == 0) {
            return i;
        }
    }
    return UINT32_MAX;
}

static hotfn_frame_times get_times(const hotfn_frame *frame, const char *name)
{
    hotfn_frame_times times = HOTFN_FRAME_TIMES_INIT;

    CHECK_EQ_I64(hotfn_frame_get_times(frame, find_function(frame, name), &times), HOTFN_OK);
    return times;
}

/* Time passes also while another program has the processor, so only lower bounds are certain. */
static void check_thread_times(const hotfn_frame *frame, uint32_t index)
{
    hotfn_frame_times whole = HOTFN_FRAME_TIMES_INIT, one;
    uint64_t sum = 0;
    uint32_t helpers = 0;

    CHECK_EQ_I64(hotfn_frame_get_times(frame, index, &whole), HOTFN_OK);
    CHECK_EQ_U64(whole.thread_count, 2);
    for (uint32_t i = 0; i < whole.thread_count; i++) {
        one = (hotfn_frame_times)HOTFN_FRAME_TIMES_INIT;
        CHECK_EQ_I64(hotfn_frame_get_thread_times(frame, index, i, &one), HOTFN_OK);
        CHECK(one.tid != 0 && one.thread_count == 1 && one.timed_calls == 1);
        CHECK(one.total_ns >= (strcmp(one.name, "helper") == 0 ? 30000000 : 10000000));
        helpers += strcmp(one.name, "helper") == 0;
        sum += one.total_ns;
    }
    CHECK_EQ_U64(helpers, 1);
    CHECK(sum <= whole.total_ns + 1 && whole.total_ns <= sum + 1);
    CHECK_EQ_I64(hotfn_frame_get_thread_times(frame, index, 2, &one), HOTFN_E_NOT_FOUND);
}

static void a_frame_has_the_times_of_each_thread(void)
{
    hotfn_session *session = start_session(HOTFN_SESSION_TIME);
    hotfn_frame_options options = HOTFN_FRAME_OPTIONS_INIT;
    uint64_t thread_ms = 30;
    pthread_t thread;

    options.flags = HOTFN_FRAME_TIMES;
    options.by = HOTFN_BY_TOTAL;
    hotfn_frame *frame = make_frame(session, &options);
    work_hard(20);
    next_frame(frame);
    pthread_create(&thread, NULL, run_thread, &thread_ms);
    work_hard(10);
    pthread_join(thread, NULL);
    hotfn_frame_info info = next_frame(frame);
    CHECK_EQ_U64(info.number, 1);
    CHECK_EQ_U64(info.calls, 4);
    CHECK(info.duration_ns >= 30000000 && info.cpu_ns >= 40000000);
    CHECK_EQ_U64(find_function(frame, "work_hard"), 0);
    check_thread_times(frame, find_function(frame, "work_hard"));
    CHECK(get_times(frame, "burn").self_ns >= 39000000);
    CHECK(get_times(frame, "work_hard").self_ns < get_times(frame, "burn").self_ns);
    rest(); /* hardly any time of its own is certain: it is listed all the same */
    info = next_frame(frame);
    CHECK(info.calls == 1 && info.top_count == 1 && find_function(frame, "rest") == 0);
    info = next_frame(frame);
    CHECK(info.calls == 0 && info.top_count == 0 && info.cpu_ns < 40000000);
    hotfn_frame_destroy(frame);
    hotfn_session_destroy(session);
}

static uint64_t read_calls(const char *path, const char *name, uint64_t *total_ns)
{
    hotfn_record *record = NULL;
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    hotfn_record_timing timing = HOTFN_RECORD_TIMING_INIT;
    uint32_t index = 0;

    CHECK_EQ_I64(hotfn_record_open(&record, path, NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_record_find_function(record, name, &index, NULL), HOTFN_OK);
    hotfn_record_get_function(record, index, &f);
    hotfn_record_get_timing(record, index, &timing);
    *total_ns = timing.total_ns;
    hotfn_record_close(record);
    return f.calls;
}

static void a_spike_is_found_and_saved_alone(void)
{
    hotfn_session *session = start_session(HOTFN_SESSION_TIME);
    hotfn_frame_options options = HOTFN_FRAME_OPTIONS_INIT;
    const char *path = spike_path();
    uint64_t total_ns;

    options.spike_percent = 1000;
    hotfn_frame *frame = make_frame(session, &options);
    CHECK_EQ_I64(hotfn_frame_save(frame, path, NULL), HOTFN_E_STATE); /* none has ended */
    for (uint32_t i = 0; i < 20; i++) {
        rest();
        hotfn_frame_info info = next_frame(frame);
        CHECK_EQ_U64(info.number, i);
        CHECK((info.median_ns >= 2000000) == (i > 0));
    }
    work_hard(400);
    CHECK_EQ_U64(next_frame(frame).is_spike, 1);
    CHECK_EQ_I64(hotfn_frame_save(frame, path, NULL), HOTFN_OK);
    CHECK_EQ_U64(read_calls(path, "work_hard", &total_ns), 1);
    CHECK(total_ns >= 400000000);
    CHECK_EQ_U64(read_calls(path, "rest", &total_ns), 0);
    CHECK_EQ_U64(total_ns, 0);
    CHECK_EQ_I64(hotfn_frame_save(frame, "/nonexistent/folder/spike.hfr", NULL), HOTFN_E_IO);
    unlink(path);
    hotfn_frame_destroy(frame);
    hotfn_session_destroy(session);
}

static void a_fixed_limit_needs_no_median(void)
{
    hotfn_session *session = start_session(HOTFN_SESSION_COUNT);
    hotfn_frame_options options = HOTFN_FRAME_OPTIONS_INIT;
    const char *path = spike_path();
    uint64_t total_ns;

    options.spike_ns = 5000000;
    hotfn_frame *frame = make_frame(session, &options);
    burn(6);
    CHECK_EQ_U64(next_frame(frame).is_spike, 1);
    CHECK_EQ_I64(hotfn_frame_save(frame, path, NULL), HOTFN_OK);
    CHECK_EQ_U64(read_calls(path, "burn", &total_ns), 1);
    CHECK_EQ_U64(total_ns, 0);
    unlink(path);
    hotfn_frame_destroy(frame);
    hotfn_session_destroy(session);
}

static void expect_refusal(const hotfn_session *session, uint32_t flags, uint32_t by,
                           hotfn_status status)
{
    hotfn_frame_options options = HOTFN_FRAME_OPTIONS_INIT;
    hotfn_frame *frame = NULL;
    hotfn_error err = HOTFN_ERROR_INIT;

    options.flags = flags;
    options.by = by;
    CHECK_EQ_I64(hotfn_frame_create(&frame, session, &options, NULL, &err), status);
    CHECK(!frame && err.text[0]);
}

static void what_a_session_cannot_give_is_refused(void)
{
    hotfn_session *session = start_session(HOTFN_SESSION_COUNT);
    hotfn_frame_times times = HOTFN_FRAME_TIMES_INIT;

    expect_refusal(session, HOTFN_FRAME_TIMES, HOTFN_BY_CALLS, HOTFN_E_UNSUPPORTED);
    expect_refusal(session, 0, HOTFN_BY_SELF, HOTFN_E_OPTION);
    expect_refusal(session, 0, HOTFN_BY_NAME, HOTFN_E_OPTION);
    expect_refusal(session, 2, HOTFN_BY_CALLS, HOTFN_E_OPTION);
    hotfn_frame *frame = make_frame(session, NULL);
    burn(1);
    next_frame(frame);
    CHECK_EQ_I64(hotfn_frame_get_times(frame, 0, &times), HOTFN_E_UNSUPPORTED);
    CHECK_EQ_I64(hotfn_frame_save(frame, spike_path(), NULL), HOTFN_E_STATE);
    hotfn_frame_destroy(frame);
    hotfn_session_destroy(session);
}

static const check_test tests[] = {
    CHECK_TEST(a_frame_has_the_times_of_each_thread),
    CHECK_TEST(a_spike_is_found_and_saved_alone),
    CHECK_TEST(a_fixed_limit_needs_no_median),
    CHECK_TEST(what_a_session_cannot_give_is_refused),
};
CHECK_MAIN(tests)
