/* SPDX-License-Identifier: MIT */
/* A session reads its modules when it is created, at once or in a thread, and not when it
 * starts. */
#include <hotfn.h>

#include "check.h"

__attribute__((noinline)) int count_me(int x);

int count_me(int x)
{
    static volatile int state;

    state = x;
    return x + state;
}

/* Each file that is read or scanned is reported. */
static uint32_t reported;

static void note_progress(void *user, const hotfn_progress *progress)
{
    (void)user, (void)progress;
    __atomic_fetch_add(&reported, 1, __ATOMIC_RELAXED);
}

static hotfn_session *create_session(uint32_t flags, uint32_t mode)
{
    static const char *const names[] = { "count_me" };
    hotfn_selection selection = HOTFN_SELECTION_INIT;
    hotfn_session_options options = HOTFN_SESSION_OPTIONS_INIT;
    hotfn_env env = HOTFN_ENV_INIT;
    hotfn_session *session = NULL;

    env.progress_fn = note_progress;
    selection.include = names;
    selection.include_count = 1;
    options.selection = &selection;
    options.flags = flags | HOTFN_SESSION_SINGLE_THREADED;
    options.mode = mode;
    if (!CHECK_EQ_I64(hotfn_session_create(&session, &options, &env, NULL), HOTFN_OK)) {
        exit(1);
    }
    return session;
}

static void check_counts(hotfn_session *session, uint64_t calls)
{
    hotfn_session_stats stats = HOTFN_SESSION_STATS_INIT;
    hotfn_record *record = NULL;
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    uint32_t index = 0;

    CHECK_EQ_I64(hotfn_session_get_stats(session, &stats), HOTFN_OK);
    CHECK_EQ_U64(stats.hooked, 1); /* not the dynamic linker's function, which hotfn needs itself */
    CHECK_EQ_U64(stats.refused, 0);
    CHECK_EQ_I64(hotfn_session_snapshot(&record, session, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_record_find_function(record, "count_me", &index, NULL), HOTFN_OK);
    hotfn_record_get_function(record, index, &f);
    CHECK_EQ_U64(f.calls, calls);
    hotfn_record_close(record);
}

static void check_mode(uint32_t flags, uint32_t mode)
{
    hotfn_session *session;

    reported = 0;
    session = create_session(flags, mode);
    CHECK(reported > 0);
    reported = 0;
    CHECK_EQ_I64(hotfn_session_start(session, NULL), HOTFN_OK);
    CHECK_EQ_U64(reported, 0);
    count_me(1);
    count_me(2);
    check_counts(session, 2);
    hotfn_session_destroy(session);
}

static void start_reads_no_file(void)
{
    check_mode(0, HOTFN_SESSION_COUNT);
    check_mode(0, HOTFN_SESSION_TIME);
}

static void start_waits_for_reading_in_the_background(void)
{
    hotfn_session *session;

    for (uint32_t i = 0; i < 5; i++) {
        session = create_session(HOTFN_SESSION_BACKGROUND, HOTFN_SESSION_COUNT);
        CHECK_EQ_I64(hotfn_session_start(session, NULL), HOTFN_OK);
        count_me(1);
        check_counts(session, 1);
        hotfn_session_destroy(session);
    }
}

static void a_session_may_end_while_its_modules_are_read(void)
{
    for (uint32_t i = 0; i < 5; i++) {
        hotfn_session_destroy(create_session(HOTFN_SESSION_BACKGROUND, HOTFN_SESSION_TIME));
    }
}

static const check_test tests[] = {
    CHECK_TEST(start_reads_no_file),
    CHECK_TEST(start_waits_for_reading_in_the_background),
    CHECK_TEST(a_session_may_end_while_its_modules_are_read),
};
CHECK_MAIN(tests)
