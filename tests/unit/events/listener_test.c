/* SPDX-License-Identifier: MIT */
/* A listener pairs entries with exits, counts the datagrams that it did not receive, forgets the
 * calls that were open at such a gap, and writes a record of the rest. */
#include "datagrams.h"

#include <hotfn/lowlevel/timing.h>
#include <hotfn/record.h>
#include <stdlib.h>
#include <unistd.h>

#define ENTRY HOTFN_EVENTS_ENTRY
#define EXIT HOTFN_EVENTS_EXIT

static hfn_events_writer w;
static char story[4096]; /* what was reported, one event a word */

static void append_event(void *user, const hotfn_listener_event *e)
{
    size_t used = strlen(story);
    char *at = story + used;

    (void)user;
    switch (e->kind) {
    case ENTRY: snprintf(at, sizeof story - used, "%u:%s{ ", e->depth, e->name); break;
    case EXIT:
        snprintf(at, sizeof story - used, "%u:%s}%" PRId64 " ", e->depth, e->name,
                 e->duration_ns == HOTFN_NO_DURATION ? -1 : (int64_t)e->duration_ns);
        break;
    case HOTFN_EVENTS_RUN: snprintf(at, sizeof story - used, "run:%u:%s ", e->pid, e->name); break;
    case HOTFN_EVENTS_LOST: snprintf(at, sizeof story - used, "lost:%" PRIu64 " ", e->count); break;
    case HOTFN_EVENTS_SKIPPED:
        snprintf(at, sizeof story - used, "skipped:%" PRIu64 " ", e->count);
        break;
    default: snprintf(at, sizeof story - used, "ended:%u ", e->stream); break;
    }
}

static hotfn_listener *open_listener(uint32_t flags)
{
    hotfn_listener *l = NULL;

    story[0] = 0;
    CHECK_EQ_I64(hotfn_listener_open(&l, NULL, flags, NULL, NULL), HOTFN_OK);
    return l;
}

static void begin(uint32_t depth)
{
    hfn_events_begin(&w, HOTFN_EVENTS_MAX_BYTES);
    put_thread(&w, 100, depth);
}

static void add(hotfn_listener *l, uint64_t sequence, uint64_t skipped, uint32_t flags)
{
    seal(&w, 5, sequence, skipped, flags);
    CHECK_EQ_I64(hotfn_listener_add(l, w.bytes, w.used, append_event, NULL), HOTFN_OK);
}

static void add_names(hotfn_listener *l)
{
    hfn_events_begin(&w, HOTFN_EVENTS_MAX_BYTES);
    put_run(&w, 4711, "./game");
    put_module(&w, 3, "/opt/game");
    put_function(&w, 1, "main");
    put_function(&w, 2, "step");
    add(l, 0, 0, 0);
}

static hotfn_listener_stats get_stats(const hotfn_listener *l)
{
    hotfn_listener_stats s = HOTFN_LISTENER_STATS_INIT;

    CHECK_EQ_I64(hotfn_listener_get_stats(l, &s), HOTFN_OK);
    return s;
}

static void entries_and_exits_are_nested(void)
{
    hotfn_listener *l = open_listener(0);

    add_names(l);
    begin(0);
    put_call(&w, ENTRY, 1, 100);
    put_call(&w, ENTRY, 2, 110);
    put_call(&w, EXIT, 2, 130);
    add(l, 1, 0, 0);
    begin(1);
    put_call(&w, EXIT, 1, 200);
    add(l, 2, 0, HOTFN_EVENTS_END);
    CHECK_STR(story, "run:4711:./game 0:main{ 1:step{ 1:step}20 0:main}100 ended:1 ");
    hotfn_listener_stats s = get_stats(l);
    CHECK(s.event_count == 4 && s.call_count == 2 && s.datagram_count == 3 && s.lost_count == 0);
    CHECK(s.stream_count == 1 && s.running_count == 0);
    hotfn_listener_close(l);
}

static void calls_that_a_jump_has_left_end_with_the_outer_one(void)
{
    hotfn_listener *l = open_listener(0);

    add_names(l);
    story[0] = 0;
    begin(0);
    put_call(&w, ENTRY, 1, 100);
    put_call(&w, ENTRY, 2, 110);
    put_call(&w, ENTRY, 2, 120);
    put_call(&w, EXIT, 1, 200);
    add(l, 1, 0, 0);
    CHECK_STR(story, "0:main{ 1:step{ 2:step{ 2:step}80 1:step}90 0:main}100 ");
    hotfn_listener_close(l);
}

static void a_late_listener_begins_at_the_sender_s_depth(void)
{
    hotfn_listener *l = open_listener(0);

    begin(3);
    put_call(&w, ENTRY, 2, 110);
    put_call(&w, EXIT, 2, 120);
    put_call(&w, EXIT, 1, 130);
    add(l, 1000, 50, 0);
    CHECK_STR(story, "3:function 2{ 3:function 2}10 2:function 1}-1 ");
    CHECK_EQ_U64(get_stats(l).lost_count, 0); /* they were sent before it listened */
    CHECK_EQ_U64(get_stats(l).skipped_count, 0);
    hotfn_listener_close(l);
}

static void after_a_gap_open_calls_are_not_known(void)
{
    hotfn_listener *l = open_listener(0);

    add_names(l);
    story[0] = 0;
    begin(0);
    put_call(&w, ENTRY, 1, 100);
    put_call(&w, ENTRY, 2, 110);
    add(l, 1, 0, 0);
    begin(2); /* datagrams 2 and 3: step returned, and was called again */
    put_call(&w, EXIT, 2, 150);
    add(l, 4, 0, 0);
    begin(1);
    put_call(&w, ENTRY, 2, 160);
    add(l, 5, 7, 0); /* and 7 events were skipped */
    CHECK_STR(story, "0:main{ 1:step{ lost:2 1:step}-1 skipped:7 1:step{ ");
    CHECK_EQ_U64(get_stats(l).lost_count, 2);
    CHECK_EQ_U64(get_stats(l).skipped_count, 7);
    hotfn_listener_close(l);
}

static void a_datagram_that_is_late_or_a_copy_is_dropped(void)
{
    hotfn_listener *l = open_listener(0);

    add_names(l);
    story[0] = 0;
    begin(0);
    put_call(&w, ENTRY, 2, 110);
    add(l, 2, 0, 0);
    add(l, 2, 0, 0);
    add(l, 1, 0, 0);
    CHECK_STR(story, "lost:1 0:step{ ");
    CHECK_EQ_U64(get_stats(l).call_count, 1);
    hotfn_listener_close(l);
}

static void malformed_datagrams_are_counted(void)
{
    hotfn_listener *l = open_listener(0);

    CHECK_EQ_I64(hotfn_listener_add(l, "HFNE", 4, append_event, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_listener_add(l, "", 0, append_event, NULL), HOTFN_OK);
    add_names(l);
    CHECK_EQ_U64(get_stats(l).malformed_count, 2);
    CHECK_EQ_U64(get_stats(l).datagram_count, 1);
    hotfn_listener_close(l);
}

static void names_cannot_change_a_terminal(void)
{
    hotfn_listener *l = open_listener(0);

    hfn_events_begin(&w, HOTFN_EVENTS_MAX_BYTES);
    put_run(&w, 1, "a\nb");
    put_function(&w, 1, "\x1b[2Jx\xff\xc2\x9b\xc3\xa4");
    put_thread(&w, 1, 0);
    put_call(&w, ENTRY, 1, 1);
    add(l, 0, 0, 0);
    CHECK_STR(story, "run:1:a?b 0:?[2Jx???\xc3\xa4{ ");
    hotfn_listener_close(l);
}

static void recursion_without_end_is_limited(void)
{
    hotfn_listener *l = open_listener(HOTFN_LISTENER_KEEP);

    for (uint32_t i = 0; i < 6; i++) {
        begin(i * 1000);
        for (uint32_t k = 0; k < 1000; k++) {
            put_call(&w, ENTRY, 2, i * 1000 + k + 1);
        }
        seal(&w, 5, i, 0, 0);
        CHECK_EQ_I64(hotfn_listener_add(l, w.bytes, w.used, NULL, NULL), HOTFN_OK);
    }
    begin(6000);
    put_call(&w, EXIT, 2, 7000);
    add(l, 6, 0, 0);
    CHECK_STR(story, "5999:function 2}2904 ");
    CHECK_EQ_U64(get_stats(l).call_count, 6000);
    hotfn_listener_close(l);
}

static void streams_beyond_the_limit_are_dropped_while_all_run(void)
{
    hotfn_listener *l = open_listener(0);

    for (uint64_t stream = 1; stream <= 70; stream++) {
        begin(0);
        seal(&w, stream, 0, 0, stream == 3 ? HOTFN_EVENTS_END : 0);
        CHECK_EQ_I64(hotfn_listener_add(l, w.bytes, w.used, append_event, NULL), HOTFN_OK);
    }
    CHECK_EQ_U64(get_stats(l).stream_count, 65); /* the ended one was replaced */
    CHECK_EQ_U64(get_stats(l).malformed_count, 5);
    hotfn_listener_close(l);
}

/* ---- The record. */

static void add_two_threads(hotfn_listener *l)
{
    add_names(l);
    begin(0);
    put_call(&w, ENTRY, 1, 1000);
    for (uint32_t i = 0; i < 10; i++) {
        put_call(&w, ENTRY, 2, 2000 + i * 100);
        put_call(&w, EXIT, 2, 2000 + i * 100 + 10 + i);
    }
    put_call(&w, EXIT, 1, 5000);
    put_thread(&w, 101, 4);
    put_call(&w, ENTRY, 2, 3000);
    put_call(&w, EXIT, 2, 3500);
    put_call(&w, ENTRY, 9, 4000); /* its name is never sent; it does not return */
    add(l, 1, 0, HOTFN_EVENTS_END);
}

static void check_functions(const hotfn_record *record)
{
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;

    CHECK_EQ_I64(hotfn_record_get_function(record, 0, &f), HOTFN_OK);
    CHECK_STR(f.name, "main");
    CHECK_EQ_U64(f.calls, 1);
    CHECK_EQ_U64(f.rva, 0x1010);
    CHECK_EQ_I64(hotfn_record_get_timing(record, 0, &t), HOTFN_OK);
    CHECK_EQ_U64(t.total_ns, 4000);
    CHECK_EQ_U64(t.self_ns, 4000 - 145);
    CHECK_EQ_I64(hotfn_record_get_function(record, 1, &f), HOTFN_OK);
    CHECK_STR(f.name, "step");
    CHECK_EQ_U64(f.calls, 11);
    CHECK_EQ_I64(hotfn_record_get_timing(record, 1, &t), HOTFN_OK);
    CHECK_EQ_U64(t.total_ns, 145 + 500);
    CHECK_EQ_U64(t.max_ns, 500);
    CHECK_EQ_I64(hotfn_record_get_function(record, 2, &f), HOTFN_OK);
    CHECK_STR(f.name, "function 9");
    CHECK_EQ_U64(f.calls, 1);
}

static void a_record_has_calls_times_and_events(void)
{
    char path[] = "/tmp/hotfn-listener-XXXXXX";
    hotfn_listener *l = open_listener(HOTFN_LISTENER_KEEP);
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    hotfn_record_time_info time = HOTFN_RECORD_TIME_INFO_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_record *record = NULL;

    close(mkstemp(path));
    add_two_threads(l);
    CHECK_EQ_I64(hotfn_listener_save(l, 1, path, &err), HOTFN_OK);
    if (!CHECK_EQ_I64(hotfn_record_open(&record, path, NULL, &err), HOTFN_OK)) {
        printf("# %s\n", err.text);
        return;
    }
    CHECK_EQ_I64(hotfn_record_get_info(record, &info), HOTFN_OK);
    CHECK_STR(info.command, "./game");
    CHECK_EQ_U64(info.pid, 4711);
    CHECK_EQ_U64(info.thread_count, 2);
    CHECK_EQ_U64(info.function_count, 3);
    CHECK_EQ_U64(info.start_ns, UINT64_C(1700000000000000000));
    CHECK_EQ_I64(hotfn_record_get_time_info(record, &time), HOTFN_OK);
    CHECK_EQ_U64(time.event_count, 22 + 4);
    CHECK_EQ_U64(time.edge_count, 4); /* from outside to all three, from main to step */
    check_functions(record);
    hotfn_record_close(record);
    unlink(path);
    hotfn_listener_close(l);
}

static void note_log(void *user, int32_t level, const char *text)
{
    CHECK_EQ_I64(level, HOTFN_LOG_WARNING);
    snprintf(user, 200, "%s", text);
}

/* 300 paths of 4,000 calls each are more than 2^20 places. */
static void calls_beyond_the_largest_tree_are_reported(void)
{
    enum { PATHS = 300, DEPTH = 4000, CALLS_AT_ONCE = 1000 };
    char path[] = "/tmp/hotfn-listener-XXXXXX", log[200] = "";
    hotfn_env env = HOTFN_ENV_INIT;
    hotfn_listener *l = NULL;
    uint64_t sequence = 0;

    close(mkstemp(path));
    env.log_fn = note_log;
    env.log_user = log;
    CHECK_EQ_I64(hotfn_listener_open(&l, NULL, HOTFN_LISTENER_KEEP, &env, NULL), HOTFN_OK);
    for (uint32_t i = 0; i < 2 * PATHS * DEPTH / CALLS_AT_ONCE; i++) {
        uint32_t at = i * CALLS_AT_ONCE % (2 * DEPTH); /* entries, then exits */

        begin(at < DEPTH ? at : 2 * DEPTH - at);
        for (uint32_t k = 0; k < CALLS_AT_ONCE; k++) {
            bool is_first = at + k == 0 || at + k == 2 * DEPTH - 1;
            uint32_t function = is_first ? 10 + i * CALLS_AT_ONCE / (2 * DEPTH) : 2;
            put_call(&w, at < DEPTH ? ENTRY : EXIT, function, i * CALLS_AT_ONCE + k + 1);
        }
        seal(&w, 5, sequence++, 0, 0);
        CHECK_EQ_I64(hotfn_listener_add(l, w.bytes, w.used, NULL, NULL), HOTFN_OK);
    }
    CHECK_EQ_U64(get_stats(l).call_count, PATHS * DEPTH);
    CHECK_EQ_I64(hotfn_listener_save(l, 1, path, NULL), HOTFN_OK);
    CHECK(strstr(log, "calls are missing: their call trees have more than 1048576 places"));
    unlink(path);
    hotfn_listener_close(l);
}

static void nothing_is_saved_that_was_not_kept(void)
{
    hotfn_listener *l = open_listener(0);
    hotfn_error err = HOTFN_ERROR_INIT;

    add_names(l);
    CHECK_EQ_I64(hotfn_listener_save(l, 1, "/dev/null", &err), HOTFN_E_STATE);
    hotfn_listener_close(l);
    l = open_listener(HOTFN_LISTENER_KEEP);
    CHECK_EQ_I64(hotfn_listener_save(l, 1, "/dev/null", &err), HOTFN_E_NOT_FOUND);
    add_names(l);
    CHECK_EQ_I64(hotfn_listener_save(l, 1, "/no/such/folder/x.hfr", &err), HOTFN_E_IO);
    CHECK_STR(err.file, "/no/such/folder/x.hfr");
    hotfn_listener_close(l);
}

static const check_test tests[] = {
    CHECK_TEST(entries_and_exits_are_nested),
    CHECK_TEST(calls_that_a_jump_has_left_end_with_the_outer_one),
    CHECK_TEST(a_late_listener_begins_at_the_sender_s_depth),
    CHECK_TEST(after_a_gap_open_calls_are_not_known),
    CHECK_TEST(a_datagram_that_is_late_or_a_copy_is_dropped),
    CHECK_TEST(malformed_datagrams_are_counted),
    CHECK_TEST(names_cannot_change_a_terminal),
    CHECK_TEST(recursion_without_end_is_limited),
    CHECK_TEST(streams_beyond_the_limit_are_dropped_while_all_run),
    CHECK_TEST(a_record_has_calls_times_and_events),
    CHECK_TEST(calls_beyond_the_largest_tree_are_reported),
    CHECK_TEST(nothing_is_saved_that_was_not_kept),
};
CHECK_MAIN(tests)
