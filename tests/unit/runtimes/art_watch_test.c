/* SPDX-License-Identifier: MIT */
#include "runtimes/art_watch.h"

#include "check.h"

enum { FRAME = 1, OTHER = 2, LIMIT_NS = 100 };

static uint64_t now_ns, dropped_count;
static uint32_t stored[40000], stored_count; /* method << 1 | is_enter */

static void store(const hfn_art_event *event)
{
    stored[stored_count++] = (uint32_t)event->arguments[2] << 1 | event->is_enter;
}

static void drop(uint64_t count)
{
    dropped_count += count;
}

static uint64_t get_ns(void)
{
    return now_ns;
}

static void pass(uint64_t trace, uint64_t thread, uint32_t method, bool is_enter)
{
    static const hfn_art_sink sink = { store, drop, get_ns, LIMIT_NS };
    hfn_art_event event = {
        { 0, 0, method, 0, 0, 0 }, trace, thread, NULL, is_enter, method == FRAME
    };

    hfn_art_watch_pass(&sink, &event);
}

static void begin(void)
{
    CHECK(hfn_art_watch_open());
    now_ns = 1000;
    dropped_count = stored_count = 0;
}

/* A frame of the thread in which another method is called; it takes so long in that method. */
static void run_frame(uint64_t thread, uint64_t ns)
{
    pass(1, thread, FRAME, true);
    pass(1, thread, OTHER, true);
    now_ns += ns;
    pass(1, thread, OTHER, false);
    pass(1, thread, FRAME, false);
}

static void a_fast_call_is_dropped_and_a_slow_one_stored_as_a_whole(void)
{
    begin();
    pass(1, 7, OTHER, true);
    pass(1, 7, OTHER, false);
    run_frame(7, LIMIT_NS);
    CHECK_EQ_U64(stored_count, 0);
    CHECK_EQ_U64(dropped_count, 6);
    run_frame(7, LIMIT_NS + 1);
    CHECK_EQ_U64(stored_count, 4);
    CHECK_EQ_U64(stored[0], FRAME << 1 | 1);
    CHECK_EQ_U64(stored[3], FRAME << 1);
    run_frame(7, 0);
    CHECK_EQ_U64(stored_count, 4);
    CHECK_EQ_U64(dropped_count, 10);
}

static void threads_do_not_share_a_frame(void)
{
    begin();
    pass(1, 8, FRAME, true);
    now_ns += LIMIT_NS + 1;
    pass(1, 9, FRAME, true);
    pass(1, 9, FRAME, false);
    CHECK_EQ_U64(stored_count, 0);
    pass(1, 8, FRAME, false);
    CHECK_EQ_U64(stored_count, 2);
}

static void nested_frames_end_with_the_outermost(void)
{
    begin();
    pass(1, 10, FRAME, true);
    run_frame(10, LIMIT_NS + 1);
    pass(1, 10, OTHER, true);
    pass(1, 10, OTHER, false);
    pass(1, 10, FRAME, false);
    CHECK_EQ_U64(stored_count, 8);
    pass(1, 10, OTHER, true);
    CHECK_EQ_U64(stored_count, 8);
}

static void a_frame_without_room_is_stored_with_an_exit_for_each_entry(void)
{
    int64_t open = 0;

    begin();
    pass(1, 11, FRAME, true);
    for (uint32_t i = 0; i < 30000; i++) {
        pass(1, 11, OTHER, true);
        if (i % 3 != 0) {
            pass(1, 11, OTHER, false);
        }
    }
    now_ns += LIMIT_NS + 1;
    for (uint32_t i = 0; i < 10000; i++) {
        pass(1, 11, OTHER, false);
    }
    pass(1, 11, FRAME, false);
    for (uint32_t i = 0; i < stored_count; i++) {
        open += stored[i] & 1 ? 1 : -1;
        CHECK(open >= 0);
    }
    CHECK_EQ_I64(open, 0);
    CHECK(stored_count > 10000);
    CHECK_EQ_U64(stored_count + dropped_count, 60002);
}

static void a_new_trace_forgets_what_was_held_for_the_one_before(void)
{
    begin();
    pass(1, 12, FRAME, true);
    pass(1, 12, OTHER, true);
    now_ns += LIMIT_NS + 1;
    pass(2, 12, OTHER, false);
    pass(2, 12, FRAME, false);
    CHECK_EQ_U64(stored_count, 0);
    CHECK_EQ_U64(dropped_count, 4);
}

static void more_threads_than_there_is_room_for_are_dropped(void)
{
    begin();
    for (uint64_t thread = 100; thread < 3000; thread++) {
        run_frame(thread, LIMIT_NS + 1);
    }
    CHECK_EQ_U64(stored_count + dropped_count, 4 * 2900);
    CHECK(stored_count > 4 * 500);
}

static const check_test tests[] = {
    CHECK_TEST(a_fast_call_is_dropped_and_a_slow_one_stored_as_a_whole),
    CHECK_TEST(threads_do_not_share_a_frame),
    CHECK_TEST(nested_frames_end_with_the_outermost),
    CHECK_TEST(a_frame_without_room_is_stored_with_an_exit_for_each_entry),
    CHECK_TEST(a_new_trace_forgets_what_was_held_for_the_one_before),
    CHECK_TEST(more_threads_than_there_is_room_for_are_dropped),
};

CHECK_MAIN(tests)
