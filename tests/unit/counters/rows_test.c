/* SPDX-License-Identifier: MIT */
/* The process's set of rows: one exists at a time; sums, pauses, and sets that end before their
 * threads. */
#include "counters/stub.h"

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static void second_set_is_refused_until_the_first_is_destroyed(void)
{
    hotfn_counters *c = stub_counters(4), *second = NULL;
    hotfn_error err = HOTFN_ERROR_INIT;

    CHECK_EQ_I64(hotfn_counters_create(&second, 10, 4, NULL, &err), HOTFN_E_STATE);
    CHECK(second == NULL && err.text[0]);
    hotfn_counters_destroy(c);
    CHECK_EQ_I64(hotfn_counters_create(&second, 10, 4, NULL, &err), HOTFN_OK);
    hotfn_counters_destroy(second);
    hotfn_counters_destroy(NULL);
}

static void memory_that_cannot_hold_rows_is_refused(void)
{
    hotfn_counters *c = stub_counters(4), *second = NULL;
    hfn_row_memory m = stub_memory(c), bad[9];

    hotfn_counters_destroy(c);
    CHECK_EQ_I64(hotfn_counters_create(&second, 0, 0, NULL, NULL), HOTFN_E_OPTION);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bad[i] = m;
    }
    bad[0].rows += 8;
    bad[1].slot_capacity = m.row_bytes / 8 + 1;
    bad[2].row_bytes = m.row_bytes + 8; /* not a multiple of the page size */
    bad[3].cells = NULL;
    bad[4].header = NULL;
    bad[5].rows = NULL;
    bad[6].thread_capacity = 0;
    bad[7].slot_capacity = 0;
    bad[8].row_bytes = 0;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (!CHECK_EQ_I64(hfn_counters_create_in(&second, &bad[i], NULL, NULL), HOTFN_E_OPTION)) {
            printf("# memory %zu\n", i);
        }
    }
    CHECK_EQ_I64(hotfn_counters_create(&second, UINT32_MAX, 4, NULL, NULL), HOTFN_E_NO_MEMORY);
}

static void sum_stays_inside_the_slots(void)
{
    hotfn_counters *c = stub_counters(4);
    uint64_t totals[4] = { 9, 9, 9, 9 };

    fake_call(STUB_SLOTS - 1);
    CHECK_EQ_I64(hotfn_counters_sum(c, STUB_SLOTS - 2, 2, totals), HOTFN_OK);
    CHECK_EQ_U64(totals[0], 0);
    CHECK_EQ_U64(totals[1], 1);
    CHECK_EQ_U64(totals[2], 9);
    CHECK_EQ_I64(hotfn_counters_sum(c, STUB_SLOTS - 2, 3, totals), HOTFN_E_OPTION);
    CHECK_EQ_I64(hotfn_counters_sum(c, UINT32_MAX, 2, totals), HOTFN_E_OPTION);
    hotfn_counters_destroy(c);
}

static void paused_calls_are_not_counted_and_pauses_nest(void)
{
    hotfn_counters *c = stub_counters(4);
    void *first = hotfn_counters_pause(); /* before the thread has a row */
    void *second;

    fake_call(1);
    second = hotfn_counters_pause();
    fake_call(1);
    hotfn_counters_resume(second);
    fake_call(1);
    hotfn_counters_resume(first);
    CHECK_EQ_U64(stub_memory(c).header->cells_used, 0);
    fake_call(1);
    CHECK_EQ_U64(stub_sum(c, 1), 1);
    first = hotfn_counters_pause();
    fake_call(1);
    hotfn_counters_resume(first);
    fake_call(1);
    CHECK_EQ_U64(stub_sum(c, 1), 2);
    CHECK_EQ_U64(stub_memory(c).header->cells_used, 1);
    hotfn_counters_destroy(c);
}

static void resume_under_another_set_starts_with_a_fresh_row(void)
{
    hotfn_counters *c = stub_counters(4);
    void *paused;

    fake_call(1);
    paused = hotfn_counters_pause();
    hotfn_counters_destroy(c);
    c = stub_counters(4);
    hotfn_counters_resume(paused);
    fake_call(1);
    CHECK_EQ_U64(stub_sum(c, 1), 1);
    hotfn_counters_destroy(c);
}

/* ---- A thread that outlives the set that it counted in. */

typedef struct survivor {
    sem_t go, done;
    int quit;
} survivor;

static void *count_on_request(void *argument)
{
    survivor *s = argument;

    for (;;) {
        sem_wait(&s->go);
        if (s->quit) {
            return NULL;
        }
        fake_call(7);
        sem_post(&s->done);
    }
}

static void request_count(survivor *s)
{
    sem_post(&s->go);
    sem_wait(&s->done);
}

static void threads_count_in_the_next_set(void)
{
    survivor s = { .quit = 0 };
    pthread_t thread;

    sem_init(&s.go, 0, 0);
    sem_init(&s.done, 0, 0);
    pthread_create(&thread, NULL, count_on_request, &s);
    for (int round = 0; round < 20; round++) {
        hotfn_counters *c = stub_counters(4);

        request_count(&s);
        request_count(&s);
        fake_call(7);
        CHECK_EQ_U64(stub_sum(c, 7), 3);
        CHECK_EQ_U64(stub_memory(c).header->cells_used, 2);
        hotfn_counters_destroy(c);
    }
    s.quit = 1;
    sem_post(&s.go);
    pthread_join(thread, NULL);
}

/* A session that is stopped and started again uses the same memory. */
static void set_over_the_same_memory_adds_to_the_same_rows(void)
{
    hotfn_counters *owner = stub_counters(4);
    hfn_row_memory m = stub_memory(owner);
    static uint8_t rows[2 * 8192] __attribute__((aligned(4096)));
    static hfn_cell_header header;
    static hfn_thread_cell cells[2];

    hotfn_counters_destroy(owner);
    m.header = &header;
    m.cells = cells;
    m.rows = rows;
    m.thread_capacity = 2;
    for (int round = 1; round <= 50; round++) {
        hotfn_counters *c = NULL;

        CHECK_EQ_I64(hfn_counters_create_in(&c, &m, NULL, NULL), HOTFN_OK);
        fake_call(3);
        CHECK_EQ_U64(stub_sum(c, 3), (uint64_t)round);
        hotfn_counters_destroy(c);
    }
    CHECK_EQ_U64(header.cells_used, 1);
    CHECK_EQ_U64(header.threads_lost, 0);
}

static const check_test tests[] = {
    CHECK_TEST(second_set_is_refused_until_the_first_is_destroyed),
    CHECK_TEST(memory_that_cannot_hold_rows_is_refused),
    CHECK_TEST(sum_stays_inside_the_slots),
    CHECK_TEST(paused_calls_are_not_counted_and_pauses_nest),
    CHECK_TEST(resume_under_another_set_starts_with_a_fresh_row),
    CHECK_TEST(threads_count_in_the_next_set),
    CHECK_TEST(set_over_the_same_memory_adds_to_the_same_rows),
};
CHECK_MAIN(tests)
