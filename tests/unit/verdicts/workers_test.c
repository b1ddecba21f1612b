/* SPDX-License-Identifier: MIT */
/* The parallel loop. */
#include "verdicts/workers.h"

#include "check.h"

#include <pthread.h>

#define ITEMS 10000u

static uint32_t done[ITEMS];
static pthread_t seen[ITEMS];

static void note_item(void *user, uint32_t item)
{
    __atomic_fetch_add(&((uint32_t *)user)[item], 1, __ATOMIC_RELAXED);
    seen[item] = pthread_self();
}

static const hfn_progress no_progress = { 0 };

static uint64_t last_done, reports;

static void note_progress(void *user, const hotfn_progress *p)
{
    CHECK(p->done >= last_done && p->done <= p->total);
    CHECK_EQ_U64(p->total, *(uint64_t *)user);
    CHECK_STR(p->action, "testing");
    CHECK_STR(p->file, "a.so");
    last_done = p->done;
    reports++;
}

static void progress_is_reported_up_to_the_end(void)
{
    uint64_t total = 5 * (uint64_t)ITEMS;
    hotfn_env env = HOTFN_ENV_INIT;

    env.progress_fn = note_progress;
    env.progress_user = &total;
    for (uint32_t threads = 1; threads < 4; threads++) {
        last_done = reports = 0;
        hfn_workers_run(threads, ITEMS, note_item, done,
                        hfn_progress_begin(&env, "testing", "a.so", total));
        CHECK_EQ_U64(last_done, total);
        CHECK(reports >= 1 && reports <= 102);
        CHECK(threads > 1 || reports >= 99);
    }
    reports = 0;
    hfn_workers_run(1, 0, note_item, done, hfn_progress_begin(&env, "testing", "a.so", 0));
    CHECK_EQ_U64(reports, 0);
}

static void each_item_is_done_once(void)
{
    for (uint32_t threads = 1; threads < 9; threads++) {
        memset(done, 0, sizeof done);
        hfn_workers_run(threads, ITEMS, note_item, done, no_progress);
        for (uint32_t i = 0; i < ITEMS; i++) {
            if (!CHECK_EQ_U64(done[i], 1)) {
                return;
            }
        }
    }
}

static void a_single_thread_is_the_callers(void)
{
    hfn_workers_run(1, ITEMS, note_item, done, no_progress);
    for (uint32_t i = 0; i < ITEMS; i++) {
        CHECK(pthread_equal(seen[i], pthread_self()));
    }
}

static void without_items_work_is_not_called(void)
{
    hfn_workers_run(4, 0, note_item, NULL, no_progress);
    hfn_workers_run(0, 0, note_item, NULL, no_progress);
    hfn_workers_run(1000, 3, note_item, done, no_progress);
    CHECK(hfn_workers_default() >= 1);
}

static const check_test tests[] = {
    CHECK_TEST(progress_is_reported_up_to_the_end),
    CHECK_TEST(each_item_is_done_once),
    CHECK_TEST(a_single_thread_is_the_callers),
    CHECK_TEST(without_items_work_is_not_called),
};
CHECK_MAIN(tests)
