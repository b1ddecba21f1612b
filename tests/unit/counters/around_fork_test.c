/* SPDX-License-Identifier: MIT */
/* Counting around fork(): each call is counted once, for the process that made it. */
#include "counters/stub.h"
#include "counters/timed_row.h"
#include "counters/timing/counter_mode.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static hotfn_counters *shared_counters(uint32_t threads)
{
    uint64_t row_bytes = 8192;
    uint8_t *base = mmap(NULL, 65536 + threads * row_bytes + threads * 64, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint64_t cells_bytes = (64 + threads * sizeof(hfn_thread_cell) + 4095) & ~4095ull;
    hfn_row_memory m = { 0 };
    hotfn_row_access access = HOTFN_ROW_ACCESS_INIT;
    hotfn_counters *c = NULL;

    m.thread_capacity = threads;
    m.slot_capacity = STUB_SLOTS;
    m.row_bytes = (uint32_t)row_bytes;
    m.header = (hfn_cell_header *)base;
    m.cells = (hfn_thread_cell *)(base + 64);
    m.rows = base + cells_bytes;
    if (!CHECK_EQ_I64(hfn_counters_create_in(&c, &m, NULL, NULL), HOTFN_OK)) {
        exit(1);
    }
    hotfn_counters_get_access(c, &access);
    stub_slow_path = access.slow_path;
    stub_displacement = access.displacement;
    return c;
}

/* The calls of a slot, summed over the rows of a process. */
static uint64_t sum_rows_of(const hotfn_counters *c, uint32_t pid, uint32_t slot)
{
    hfn_row_memory m = stub_memory(c);
    uint64_t sum = 0;

    for (uint32_t i = 0; i < m.header->cells_used; i++) {
        if (m.cells[i].pid == pid) {
            sum += ((uint64_t *)(m.rows + (uint64_t)i * m.row_bytes))[slot];
        }
    }
    return sum;
}

static void parent_and_child_keep_their_own_calls(void)
{
    hotfn_counters *c = shared_counters(8);
    pid_t child;

    fake_call(1);
    hotfn_counters_fork_prepare(c);
    fake_call(1); /* other prepare handlers run hooked code too */
    child = fork();
    if (child == 0) {
        fake_call(1);
        hotfn_counters_fork_child(c);
        fake_call(1);
        fake_call(2);
        _exit(0);
    }
    fake_call(1);
    fake_call(3);
    hotfn_counters_fork_parent(c);
    fake_call(1);
    waitpid(child, NULL, 0);
    CHECK_EQ_U64(sum_rows_of(c, (uint32_t)getpid(), 1), 4);
    CHECK_EQ_U64(sum_rows_of(c, (uint32_t)getpid(), 2), 0);
    CHECK_EQ_U64(sum_rows_of(c, (uint32_t)getpid(), 3), 1);
    CHECK_EQ_U64(sum_rows_of(c, (uint32_t)child, 1), 2);
    CHECK_EQ_U64(sum_rows_of(c, (uint32_t)child, 2), 1);
    hotfn_counters_destroy(c);
}

static void first_call_between_prepare_and_fork_is_counted(void)
{
    hotfn_counters *c = shared_counters(8);
    pid_t child;

    hotfn_counters_fork_prepare(c);
    fake_call(1);
    child = fork();
    if (child == 0) {
        fake_call(1);
        hotfn_counters_fork_child(c);
        _exit(0);
    }
    fake_call(1);
    hotfn_counters_fork_parent(c);
    waitpid(child, NULL, 0);
    CHECK_EQ_U64(sum_rows_of(c, (uint32_t)getpid(), 1), 2);
    CHECK_EQ_U64(sum_rows_of(c, (uint32_t)child, 1), 1);
    hotfn_counters_destroy(c);
}

static void child_of_a_paused_thread_gets_a_fresh_row(void)
{
    hotfn_counters *c = shared_counters(8);
    void *paused;
    pid_t child;

    fake_call(1);
    paused = hotfn_counters_pause();
    hotfn_counters_fork_prepare(c);
    child = fork();
    if (child == 0) {
        hotfn_counters_fork_child(c);
        hotfn_counters_resume(paused);
        fake_call(1);
        _exit(0);
    }
    hotfn_counters_fork_parent(c);
    hotfn_counters_resume(paused);
    waitpid(child, NULL, 0);
    fake_call(1);
    CHECK_EQ_U64(sum_rows_of(c, (uint32_t)getpid(), 1), 2);
    CHECK_EQ_U64(sum_rows_of(c, (uint32_t)child, 1), 1);
    hotfn_counters_destroy(c);
}

/* ---- As fork handlers of libc, with threads that count and fork concurrently. */

static hotfn_counters *the_counters;

static void prepare(void)
{
    hotfn_counters_fork_prepare(the_counters);
}
static void in_parent(void)
{
    hotfn_counters_fork_parent(the_counters);
}
static void in_child(void)
{
    hotfn_counters_fork_child(the_counters);
}

enum { FORKS = 150, FORKERS = 3 };

static void *fork_and_count(void *argument)
{
    (void)argument;
    for (int i = 0; i < FORKS; i++) {
        pid_t child;

        fake_call(20);
        child = fork();
        fake_call(21); /* in parent and child */
        if (child == 0) {
            fake_call(22);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    return NULL;
}

static void threads_that_fork_lose_no_call(void)
{
    hotfn_counters *c = the_counters = shared_counters(2000);
    pthread_t threads[FORKERS];

    for (int i = 0; i < FORKERS; i++) {
        pthread_create(&threads[i], NULL, fork_and_count, NULL);
    }
    for (int i = 0; i < FORKERS; i++) {
        pthread_join(threads[i], NULL);
    }
    the_counters = NULL;
    CHECK_EQ_U64(stub_sum(c, 20), FORKS * FORKERS);
    CHECK_EQ_U64(stub_sum(c, 21), 2 * FORKS * FORKERS);
    CHECK_EQ_U64(stub_sum(c, 22), FORKS * FORKERS);
    CHECK_EQ_U64(sum_rows_of(c, (uint32_t)getpid(), 21), FORKS * FORKERS);
    CHECK_EQ_U64(sum_rows_of(c, (uint32_t)getpid(), 22), 0);
    hotfn_counters_destroy(c);
}

static void rows_of_ended_processes_are_reused(void)
{
    hotfn_counters *c = the_counters = shared_counters(HFN_ROWS_BEFORE_REUSE + 40);

    for (int i = 0; i < 1000; i++) {
        pid_t child = fork();

        if (child == 0) {
            fake_call(30);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    the_counters = NULL;
    CHECK_EQ_U64(stub_sum(c, 30), 1000);
    CHECK_EQ_U64(stub_memory(c).header->threads_lost, 0);
    hotfn_counters_destroy(c);
}

static void counts_of_a_killed_child_are_kept(void)
{
    hotfn_counters *c = the_counters = shared_counters(8);
    pid_t child = fork();

    if (child == 0) {
        for (int i = 0; i < 100; i++) {
            fake_call(40);
        }
        raise(SIGKILL);
    }
    waitpid(child, NULL, 0);
    the_counters = NULL;
    CHECK_EQ_U64(sum_rows_of(c, (uint32_t)child, 40), 100);
    hotfn_counters_destroy(c);
}

/* A pid of another pid namespace cannot be checked here, so rows of its processes are never taken
 * over. */
static void rows_of_other_pid_namespaces_are_kept(void)
{
    hotfn_counters *c;
    pid_t helper;
    int status = 0;

    the_counters = c = shared_counters(8);
    fake_call(60);
    helper = fork();
    if (helper == 0) {
        pid_t child;

        if (unshare(CLONE_NEWPID) != 0) {
            _exit(77);
        }
        child = fork(); /* process 1 of its namespace */
        if (child == 0) {
            fake_call(60);
            _exit(0);
        }
        waitpid(child, NULL, 0);
        _exit(0);
    }
    waitpid(helper, &status, 0);
    the_counters = NULL;
    if (WEXITSTATUS(status) == 0) {
        hfn_row_memory m = stub_memory(c);

        CHECK_EQ_U64(m.header->cells_used, 3);
        CHECK_EQ_U64(m.cells[0].pid_namespace, m.cells[1].pid_namespace);
        CHECK_EQ_U64(m.cells[2].pid, 1);
        CHECK(m.cells[2].pid_namespace != m.cells[0].pid_namespace);
        CHECK_EQ_U64(stub_sum(c, 60), 2);
    } else {
        printf("# no new pid namespace here\n");
    }
    hotfn_counters_destroy(c);
}

static void *count_once(void *argument)
{
    (void)argument;
    fake_call(50);
    return NULL;
}

/* The child of a raw fork inherits the row pointer of its parent, so its own calls may be lost.
 * Threads that it starts get rows under its pid. */
static void threads_of_a_raw_fork_child_get_rows(void)
{
    hotfn_counters *c = shared_counters(8);
    pid_t child;

    fake_call(50);
    child = (pid_t)syscall(SYS_fork);
    if (child == 0) {
        pthread_t thread;

        pthread_create(&thread, NULL, count_once, NULL);
        pthread_join(thread, NULL);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    CHECK_EQ_U64(sum_rows_of(c, (uint32_t)child, 50), 1);
    hotfn_counters_destroy(c);
}

/* ---- Times. */

static void begin(hfn_time_frame *frame, uint32_t slot)
{
    frame->slot = slot;
    hfn_counter_enter(HFN_PASS(frame));
}

static void end(hfn_time_frame *frame)
{
    hfn_counter_exit(HFN_PASS(frame));
}

/* Calls begin before prepare or before the fork, and end after it. */
static void calls_around_a_fork_are_timed_once(void)
{
    hfn_time_frame frames[8]; /* a stack; the last element is the outermost call */
    timed_start(HOTFN_TIMING_TREE);
    hfn_time_state *t = timed_use(0);
    uint8_t *before = timed.rows[0].counts, *meanwhile = timed.rows[1].counts;

    begin(&frames[7], 1);
    begin(&frames[6], 2);
    begin(&frames[5], 3); /* the call that forks */
    hfn_time_move(meanwhile, before);
    hfn_thread_row = meanwhile;
    end(&frames[5]);
    begin(&frames[5], 4);
    end(&frames[5]);
    begin(&frames[5], 5);
    hfn_thread_row = before;
    hfn_time_add_row(before, meanwhile, TIMED_SLOTS);
    hfn_time_move(before, meanwhile);
    end(&frames[5]);
    end(&frames[6]);
    end(&frames[7]);
    begin(&frames[7], 6);
    end(&frames[7]);
    for (uint32_t slot = 1; slot <= 6; slot++) {
        CHECK_EQ_U64(timed_calls_of(slot), 1);
        CHECK(timed_cell(t, slot)->max_ticks > 0);
    }
    timed_is_complete(t);
    CHECK_EQ_U64(timed.header.abandoned_exits, 0);
    CHECK_EQ_U64(t->depth, 0);
    CHECK_EQ_U64(t->node, t->root);
    timed_forget();
}

static const check_test tests[] = {
    CHECK_TEST(parent_and_child_keep_their_own_calls),
    CHECK_TEST(first_call_between_prepare_and_fork_is_counted),
    CHECK_TEST(child_of_a_paused_thread_gets_a_fresh_row),
    CHECK_TEST(threads_that_fork_lose_no_call),
    CHECK_TEST(rows_of_ended_processes_are_reused),
    CHECK_TEST(counts_of_a_killed_child_are_kept),
    CHECK_TEST(rows_of_other_pid_namespaces_are_kept),
    CHECK_TEST(threads_of_a_raw_fork_child_get_rows),
    CHECK_TEST(calls_around_a_fork_are_timed_once),
};

int main(int argc, char **argv)
{
    pthread_atfork(prepare, in_parent, in_child);
    return check_run(tests, sizeof(tests) / sizeof((tests)[0]), argc > 1 ? argv[1] : NULL);
}
