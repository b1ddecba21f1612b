/* SPDX-License-Identifier: MIT */
/* A program that counts its own calls: hook, work, read the counts, unhook.
 *
 *     cc -O2 count_self.c $(pkg-config --cflags --libs hotfn) -o count_self && ./count_self
 */
#include <hotfn.h>

#include <stdio.h>
#include <stdlib.h>

#define KEPT __attribute__((noinline))

static volatile uint64_t checksum;

KEPT static void step(uint64_t value)
{
    checksum = checksum * 31 + value;
}

KEPT static void frame(uint64_t number)
{
    for (uint64_t i = 0; i < 16; i++) {
        step(number + i);
    }
}

static void work(void)
{
    for (uint64_t i = 0; i < 1000; i++) {
        frame(i);
    }
}

static void fail(const hotfn_error *err)
{
    fprintf(stderr, "count_self: %s: %s\n", hotfn_status_get_name(err->status), err->text);
    exit(1);
}

/* Prints the two functions with the most calls. */
static void print_hot(const hotfn_record *record)
{
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    hotfn_record_get_info(record, &info);
    uint32_t order[2];
    if (hotfn_record_sort(record, HOTFN_BY_CALLS, order, 2) != HOTFN_OK) {
        exit(1);
    }
    for (uint32_t i = 0; i < info.function_count && i < 2; i++) {
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
        hotfn_record_get_function(record, order[i], &f);
        printf("%8llu  %s\n", (unsigned long long)f.calls, f.name);
    }
}

int main(void)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_session *session;
    hotfn_record *record;

    /* NULL options: every function of the main program. */
    if (hotfn_session_create(&session, NULL, NULL, &err) != HOTFN_OK ||
        hotfn_session_start(session, &err) != HOTFN_OK) {
        fail(&err);
    }
    work();
    if (hotfn_session_snapshot(&record, session, &err) != HOTFN_OK ||
        hotfn_session_stop(session, &err) != HOTFN_OK) {
        fail(&err);
    }
    work(); /* no longer counted */

    print_hot(record);
    hotfn_record_close(record);
    hotfn_session_destroy(session);
    return 0;
}
