/* SPDX-License-Identifier: MIT */
/* A program that times its own calls: how long each function took, and which functions called it.
 *
 *     cc -O2 time_self.c $(pkg-config --cflags --libs hotfn) -o time_self && ./time_self
 */
#include <hotfn.h>
#include <hotfn/lowlevel.h>

#include <stdio.h>
#include <stdlib.h>

#define KEPT __attribute__((noinline))

static volatile uint64_t checksum;

KEPT static void sort_things(uint64_t count)
{
    checksum += count;
    for (uint64_t i = 0; i < count * 100; i++) {
        checksum = checksum * 31 + i;
    }
}

KEPT static void frame(uint64_t number)
{
    for (uint64_t i = 0; i < number % 4; i++) {
        sort_things(i);
    }
    for (uint64_t i = 0; i < 500; i++) { /* its own time */
        checksum = checksum * 31 + i;
    }
}

static void fail(const hotfn_error *err)
{
    fprintf(stderr, "time_self: %s: %s\n", hotfn_status_get_name(err->status), err->text);
    exit(1);
}

static void print_function(const hotfn_record *record, uint32_t function)
{
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;

    hotfn_record_get_function(record, function, &f);
    hotfn_record_get_timing(record, function, &t);
    if (f.calls == 0 || f.state != HOTFN_STATE_HOOKED) {
        return;
    }
    if (t.timing == HOTFN_TIMING_COUNT_ONLY) { /* its time is included in its callers' */
        printf("%s: %llu calls (%s)\n", f.name, (unsigned long long)f.calls, t.reason);
    } else {
        printf("%s: %llu calls, %llu ns, %llu of them its own, the longest %llu\n", f.name,
               (unsigned long long)f.calls, (unsigned long long)t.total_ns,
               (unsigned long long)t.self_ns, (unsigned long long)t.max_ns);
    }
}

static void print_edges(const hotfn_record *record)
{
    hotfn_record_edge e = HOTFN_RECORD_EDGE_INIT;

    for (uint32_t i = 0; hotfn_record_get_edge(record, i, &e) == HOTFN_OK; i++) {
        hotfn_record_function caller = HOTFN_RECORD_FUNCTION_INIT, callee = caller;
        if (e.caller == HOTFN_NO_FUNCTION) {
            continue;
        }
        hotfn_record_get_function(record, e.caller, &caller);
        hotfn_record_get_function(record, e.callee, &callee);
        printf("%s -> %s: %llu calls\n", caller.name, callee.name, (unsigned long long)e.calls);
    }
}

int main(void)
{
    hotfn_session_options options = HOTFN_SESSION_OPTIONS_INIT;
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_session *session;
    hotfn_record *record;

    options.mode = HOTFN_SESSION_TIME; /* or with sample_mean, which costs far less */
    if (hotfn_session_create(&session, &options, NULL, &err) != HOTFN_OK ||
        hotfn_session_start(session, &err) != HOTFN_OK) {
        fail(&err);
    }
    for (uint64_t i = 0; i < 1000; i++) {
        frame(i);
    }
    if (hotfn_session_stop(session, &err) != HOTFN_OK ||
        hotfn_session_snapshot(&record, session, &err) != HOTFN_OK) {
        fail(&err);
    }
    hotfn_record_get_info(record, &info);
    for (uint32_t i = 0; i < info.function_count; i++) {
        print_function(record, i);
    }
    print_edges(record);
    hotfn_record_close(record);
    hotfn_session_destroy(session);
    return 0;
}
