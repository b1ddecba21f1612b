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

static void each_item_is_done_once(void)
{
    for (uint32_t threads = 1; threads < 9; threads++) {
        memset(done, 0, sizeof done);
        hfn_workers_run(threads, ITEMS, note_item, done);
        for (uint32_t i = 0; i < ITEMS; i++) {
            if (!CHECK_EQ_U64(done[i], 1)) {
                return;
            }
        }
    }
}

static void a_single_thread_is_the_callers(void)
{
    hfn_workers_run(1, ITEMS, note_item, done);
    for (uint32_t i = 0; i < ITEMS; i++) {
        CHECK(pthread_equal(seen[i], pthread_self()));
    }
}

static void without_items_work_is_not_called(void)
{
    hfn_workers_run(4, 0, note_item, NULL);
    hfn_workers_run(0, 0, note_item, NULL);
    hfn_workers_run(1000, 3, note_item, done);
    CHECK(hfn_workers_default() >= 1);
}

static const check_test tests[] = {
    CHECK_TEST(each_item_is_done_once),
    CHECK_TEST(a_single_thread_is_the_callers),
    CHECK_TEST(without_items_work_is_not_called),
};
CHECK_MAIN(tests)
