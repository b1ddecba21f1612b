/* SPDX-License-Identifier: MIT */
/* Zones and messages join the call tree of functions. */
#include <hotfn.h>
#include <hotfn/lowlevel/timing.h>

#include "check.h"

#include <pthread.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

/* External, so that the compiler makes no copies of them with other names. */
__attribute__((noinline)) void burn(uint64_t ms);
__attribute__((noinline)) void update(const hotfn_session *session);
__attribute__((noinline)) void leave_open(const hotfn_session *session, hotfn_zone *zone);
__attribute__((noinline)) void call_leaver(const hotfn_session *session);

static volatile int state;

static uint64_t read_clock(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void burn(uint64_t ms)
{
    uint64_t end = read_clock() + ms * 1000000;

    state = 1;
    while (read_clock() < end) {
        __asm__ volatile("");
    }
}

/* Zones nest in one function, whatever the order of their memory. */
void update(const hotfn_session *session)
{
    hotfn_zone zones[2];

    hotfn_zone_begin(&zones[0], session, "physics");
    burn(4);
    hotfn_zone_begin(&zones[1], session, "collision");
    hotfn_zone_add_message(session, "too many contacts", NULL);
    burn(6);
    hotfn_zone_end(&zones[1]);
    hotfn_zone_end(&zones[0]);
    burn(2);
    state = 3;
}

void leave_open(const hotfn_session *session, hotfn_zone *zone)
{
    hotfn_zone_begin(zone, session, "left open");
    burn(1);
}

void call_leaver(const hotfn_session *session)
{
    static hotfn_zone zone; /* lies in none of the stacks */

    leave_open(session, &zone);
    burn(1);
    hotfn_zone_end(&zone); /* leave_open has ended it */
    state = 4;
}

/* On a busy machine, threads of the tick clock may not be stopped in time: nothing is hooked. */
static hotfn_session *try_to_start(uint32_t mode, uint32_t flags)
{
    static const char *const names[] = { "burn", "update", "leave_open", "call_leaver" };
    hotfn_selection selection = HOTFN_SELECTION_INIT;
    hotfn_session_options options = HOTFN_SESSION_OPTIONS_INIT;
    hotfn_session *session = NULL;

    selection.include = names;
    selection.include_count = 4;
    options.selection = &selection;
    options.mode = mode;
    options.flags = flags;
    if (!CHECK_EQ_I64(hotfn_session_create(&session, &options, NULL, NULL), HOTFN_OK) ||
        !CHECK_EQ_I64(hotfn_session_start(session, NULL), HOTFN_OK)) {
        exit(1);
    }
    return session;
}

static hotfn_session *start_session(uint32_t mode, uint32_t flags)
{
    enum { ATTEMPTS = 50 };
    hotfn_session_stats stats = HOTFN_SESSION_STATS_INIT;
    hotfn_session *session = try_to_start(mode, flags);

    for (int i = 0; i < ATTEMPTS; i++) {
        CHECK_EQ_I64(hotfn_session_get_stats(session, &stats), HOTFN_OK);
        if (stats.refused == 0) {
            break;
        }
        hotfn_session_destroy(session);
        session = try_to_start(mode, flags);
    }
    return session;
}

static hotfn_record *take_record(const hotfn_session *session)
{
    hotfn_record *record = NULL;

    if (!CHECK_EQ_I64(hotfn_session_snapshot(&record, session, NULL), HOTFN_OK)) {
        exit(1);
    }
    return record;
}

static uint64_t count_calls(const hotfn_record *record, const char *name)
{
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    uint32_t index = 0;

    if (hotfn_record_find_function(record, name, &index, NULL) != HOTFN_OK) {
        return 0;
    }
    hotfn_record_get_function(record, index, &f);
    return f.calls;
}

/* ---- The call tree. */

static const char *name_of(const hotfn_record *record, uint32_t function)
{
    static hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;

    return hotfn_record_get_function(record, function, &f) == HOTFN_OK ? f.name : "";
}

/* The node with this path below a thread's root, such as "update/physics"; calls 0: none. */
static hotfn_record_node find_node(const hotfn_record *record, const char *path)
{
    hotfn_record_node node = HOTFN_RECORD_NODE_INIT, none = HOTFN_RECORD_NODE_INIT;

    for (uint32_t i = 0; hotfn_record_get_node(record, i, &node) == HOTFN_OK; i++) {
        char found[256] = "";
        hotfn_record_node up = node;

        while (up.function != HOTFN_NO_FUNCTION) {
            char longer[256];

            snprintf(longer, sizeof longer, "%s%s%.120s", name_of(record, up.function),
                     found[0] ? "/" : "", found);
            memcpy(found, longer, sizeof found);
            if (up.parent == HOTFN_NO_NODE ||
                hotfn_record_get_node(record, up.parent, &up) != HOTFN_OK) {
                break;
            }
        }
        if (strcmp(found, path) == 0) {
            return node;
        }
    }
    return none;
}

/* Time passes also while another program has the processor, so only lower bounds are certain.  A
 * tick clock whose ticks are missing on a busy machine has none. */
static bool has_ticks;

static void check_node(const hotfn_record *record, const char *path, uint64_t calls,
                       uint64_t total_ms)
{
    hotfn_record_node node = find_node(record, path);
    bool is_long = has_ticks || node.total_ns + 500000 >= total_ms * 1000000;

    if (!CHECK_EQ_U64(node.calls, calls) || !CHECK(is_long)) {
        printf("# %s: %" PRIu64 " ns\n", path, node.total_ns);
    }
}

static void check_tree(uint32_t flags)
{
    hotfn_session *session = start_session(HOTFN_SESSION_TIME, flags | HOTFN_SESSION_ZONES);
    hotfn_record *record;

    has_ticks = (flags & HOTFN_SESSION_TICKER) != 0;
    for (int i = 0; i < 3; i++) {
        update(session);
    }
    record = take_record(session);
    CHECK_EQ_U64(count_calls(record, "physics"), 3);
    CHECK_EQ_U64(count_calls(record, "message: too many contacts"), 3);
    check_node(record, "update", 3, 36);
    check_node(record, "update/burn", 3, 6);
    check_node(record, "update/physics", 3, 30);
    check_node(record, "update/physics/burn", 3, 12);
    check_node(record, "update/physics/collision", 3, 18);
    check_node(record, "update/physics/collision/burn", 3, 18);
    check_node(record, "update/physics/collision/message: too many contacts", 3, 0);
    has_ticks = false;
    hotfn_record_close(record);
    hotfn_session_destroy(session);
}

static void zones_and_messages_join_the_tree(void)
{
    check_tree(0);
}

static void zones_join_the_tree_of_a_tick_clock(void)
{
    check_tree(HOTFN_SESSION_TICKER);
}

static void a_zone_ends_with_the_function_around_it(void)
{
    hotfn_session *session = start_session(HOTFN_SESSION_TIME, HOTFN_SESSION_ZONES);
    hotfn_record *record;

    call_leaver(session);
    record = take_record(session);
    check_node(record, "call_leaver/leave_open/left open/burn", 1, 1);
    check_node(record, "call_leaver/burn", 1, 1);
    hotfn_record_close(record);
    hotfn_session_destroy(session);
}

/* ---- Other sessions. */

static void zones_are_counted_where_nothing_is_timed(void)
{
    hotfn_session *session = start_session(HOTFN_SESSION_COUNT, HOTFN_SESSION_ZONES);
    hotfn_record *record;

    update(session);
    record = take_record(session);
    CHECK_EQ_U64(count_calls(record, "physics"), 1);
    CHECK_EQ_U64(count_calls(record, "collision"), 1);
    CHECK_EQ_U64(count_calls(record, "burn"), 3);
    hotfn_record_close(record);
    hotfn_session_destroy(session);
}

static void zones_do_nothing_without_a_session_or_room_for_them(void)
{
    hotfn_session *session = start_session(HOTFN_SESSION_TIME, 0);
    hotfn_zone zone;
    hotfn_record *record;
    hotfn_error err = HOTFN_ERROR_INIT;

    update(session);
    CHECK_EQ_I64(hotfn_zone_add_message(session, "x", &err), HOTFN_E_UNSUPPORTED);
    CHECK(strstr(err.text, "HOTFN_SESSION_ZONES") != NULL);
    hotfn_zone_begin(&zone, NULL, "x");
    hotfn_zone_end(&zone);
    hotfn_zone_end(NULL);
    hotfn_zone_begin(NULL, session, "x");
    record = take_record(session);
    check_node(record, "update/burn", 3, 12);
    hotfn_record_close(record);
    CHECK_EQ_I64(hotfn_session_stop(session, NULL), HOTFN_OK);
    hotfn_session_destroy(session);
}

static void a_zone_may_outlive_the_session(void)
{
    hotfn_session *session = start_session(HOTFN_SESSION_TIME, HOTFN_SESSION_ZONES), *next;
    hotfn_zone zone;
    hotfn_record *record;

    hotfn_zone_begin(&zone, session, "first");
    CHECK_EQ_I64(hotfn_session_stop(session, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_zone_add_message(session, "x", NULL), HOTFN_E_STATE);
    hotfn_session_destroy(session);
    next = start_session(HOTFN_SESSION_TIME, HOTFN_SESSION_ZONES);
    hotfn_zone_end(&zone); /* of the session before */
    update(next);
    record = take_record(next);
    check_node(record, "update/physics", 1, 10);
    CHECK_EQ_U64(count_calls(record, "first"), 0);
    hotfn_record_close(record);
    hotfn_session_destroy(next);
}

static void the_room_for_names_is_limited(void)
{
    hotfn_session *session = start_session(HOTFN_SESSION_COUNT, HOTFN_SESSION_ZONES);
    hotfn_status status = HOTFN_OK;
    hotfn_error err = HOTFN_ERROR_INIT;
    uint32_t recorded = 0;

    for (uint32_t i = 0; i < 2000 && status == HOTFN_OK; i++) {
        char text[32];

        snprintf(text, sizeof text, "contact %u", i);
        status = hotfn_zone_add_message(session, text, &err);
        recorded += status == HOTFN_OK;
    }
    CHECK_EQ_U64(recorded, 1024);
    CHECK_EQ_I64(status, HOTFN_E_LIMIT);
    CHECK(strstr(err.text, "1024") != NULL);
    hotfn_session_destroy(session);
}

/* ---- Threads. */

static void *run_thread(void *user)
{
    CHECK_EQ_I64(hotfn_thread_set_name("streaming-1", NULL), HOTFN_OK);
    update(user);
    return NULL;
}

static void threads_are_listed_by_the_name_that_they_gave_themselves(void)
{
    hotfn_session *session = start_session(HOTFN_SESSION_TIME, HOTFN_SESSION_ZONES);
    hotfn_record_thread thread = HOTFN_RECORD_THREAD_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_record *record;
    bool found = false;
    pthread_t id;

    CHECK_EQ_I64(hotfn_thread_set_name("a name that is too long", &err), HOTFN_E_OPTION);
    CHECK(strstr(err.text, "15 bytes") != NULL);
    CHECK_EQ_I64(hotfn_thread_set_name(NULL, NULL), HOTFN_E_OPTION);
    pthread_create(&id, NULL, run_thread, session);
    pthread_join(id, NULL);
    record = take_record(session);
    for (uint32_t i = 0; hotfn_record_get_thread(record, i, &thread) == HOTFN_OK; i++) {
        found |= strcmp(thread.name, "streaming-1") == 0;
    }
    CHECK(found);
    check_node(record, "update/physics", 1, 10);
    hotfn_record_close(record);
    hotfn_session_destroy(session);
}

static const check_test tests[] = {
    CHECK_TEST(zones_and_messages_join_the_tree),
    CHECK_TEST(zones_join_the_tree_of_a_tick_clock),
    CHECK_TEST(a_zone_ends_with_the_function_around_it),
    CHECK_TEST(zones_are_counted_where_nothing_is_timed),
    CHECK_TEST(zones_do_nothing_without_a_session_or_room_for_them),
    CHECK_TEST(a_zone_may_outlive_the_session),
    CHECK_TEST(the_room_for_names_is_limited),
    CHECK_TEST(threads_are_listed_by_the_name_that_they_gave_themselves),
};
CHECK_MAIN(tests)
