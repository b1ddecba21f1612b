/* SPDX-License-Identifier: MIT */
/* All threads are stopped wherever they are, and continue with their state unchanged. */
#include "os/os.h"

#include "check.h"
#include "os/hot_path.h"

#include <linux/io_uring.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TIMEOUT_NS UINT64_C(10000000000)

static _Atomic bool stopping;
static _Atomic uint64_t beats;

static void *beat(void *block_signals)
{
    sigset_t all;

    sigfillset(&all);
    if (block_signals) {
        pthread_sigmask(SIG_SETMASK, &all, NULL);
    }
    while (!atomic_load(&stopping)) {
        atomic_fetch_add(&beats, 1);
    }
    return NULL;
}

typedef struct observed {
    uint32_t threads;
    uint64_t first, last; /* beats while stopped */
} observed;

static uint64_t count_thread(void *user, uint64_t pc)
{
    ((observed *)user)->threads++;
    return pc;
}

static void watch_beats(void *user)
{
    observed *o = user;
    uint64_t until = hfn_os_monotonic_ns() + 20000000;

    o->first = atomic_load(&beats);
    while (hfn_os_monotonic_ns() < until) {
    }
    o->last = atomic_load(&beats);
}

static void stopped_threads_make_no_progress_and_continue(void)
{
    pthread_t threads[3];

    atomic_store(&stopping, false);
    /* the kernel may still list a thread that was joined already */
    while (!hfn_os_is_single_threaded()) {
        sched_yield();
    }
    for (int i = 0; i < 3; i++) {
        pthread_create(&threads[i], NULL, beat, i == 0 ? threads : NULL);
    }
    CHECK(!hfn_os_is_single_threaded());
    for (int i = 0; i < 20; i++) {
        observed o = { 0, 0, 1 };
        uint64_t before;
        CHECK(hfn_os_with_threads_stopped(TIMEOUT_NS, count_thread, watch_beats, &o));
        /* a thread that is still in the handler of the previous stop is counted twice */
        CHECK(o.threads >= 3);
        CHECK_EQ_U64(o.first, o.last);
        before = atomic_load(&beats);
        while (atomic_load(&beats) == before) {
        }
    }
    atomic_store(&stopping, true);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void do_nothing(void *user)
{
    (void)user;
}

static void *empty(void *user)
{
    return user;
}

static void *start_and_end_threads(void *user)
{
    (void)user;
    while (!atomic_load(&stopping)) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, empty, NULL) == 0) {
            pthread_join(thread, NULL);
        }
    }
    return NULL;
}

static void threads_that_start_and_end_are_stopped(void)
{
    pthread_t threads[2];

    atomic_store(&stopping, false);
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, start_and_end_threads, NULL);
    }
    for (int i = 0; i < 200; i++) {
        observed o = { 0, 0, 0 };
        CHECK(hfn_os_with_threads_stopped(TIMEOUT_NS, count_thread, do_nothing, &o));
        CHECK(o.threads >= 2);
    }
    atomic_store(&stopping, true);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* read() is restarted, because the handler is installed with SA_RESTART. */
static void *read_a_byte(void *end)
{
    char byte = 0;
    ssize_t got = read(*(int *)end, &byte, 1);

    CHECK_EQ_I64(got, 1);
    return NULL;
}

static void a_thread_in_a_system_call_is_stopped_and_continues(void)
{
    observed o = { 0, 0, 0 };
    pthread_t thread;
    int ends[2];

    CHECK(pipe(ends) == 0);
    pthread_create(&thread, NULL, read_a_byte, &ends[0]);
    usleep(10000);
    CHECK(hfn_os_with_threads_stopped(TIMEOUT_NS, count_thread, do_nothing, &o));
    CHECK_EQ_U64(o.threads, 1);
    CHECK(write(ends[1], "x", 1) == 1);
    pthread_join(thread, NULL);
}

static void must_not_run(void *user)
{
    *(bool *)user = true;
}

static uint64_t leave_pc(void *user, uint64_t pc)
{
    (void)user;
    return pc;
}

typedef struct held_child {
    int ends[2];             /* a pipe; the child ends when it reads a byte */
    _Atomic bool is_running; /* written by the vfork child */
} held_child;

static void *wait_for_child(void *user)
{
    held_child *held = user;
    pid_t child = vfork(); /* this thread cannot be stopped until the child execs or ends */

    if (child == 0) {
        char byte;
        atomic_store(&held->is_running, true);
        _exit(read(held->ends[0], &byte, 1) != 1);
    }
    waitpid(child, NULL, 0);
    return NULL;
}

static void a_thread_that_cannot_be_stopped_is_reported(void)
{
    pthread_t thread;
    held_child held = { .is_running = false };
    bool ran = false;

    CHECK(pipe(held.ends) == 0);
    pthread_create(&thread, NULL, wait_for_child, &held);
    while (!atomic_load(&held.is_running)) {
        sched_yield();
    }
    CHECK(!hfn_os_with_threads_stopped(20000000, leave_pc, must_not_run, &ran));
    CHECK(!ran);
    CHECK(write(held.ends[1], "x", 1) == 1);
    pthread_join(thread, NULL); /* its late signal has no effect */
    stopped_threads_make_no_progress_and_continue();
}

/* A worker of io_uring is listed as a thread and receives no signal, but runs no code of the
 * program. */
static void kernel_workers_are_not_waited_for(void)
{
    struct io_uring_params params = { .flags = IORING_SETUP_SQPOLL, .sq_thread_idle = 10000 };
    observed o = { 0, 0, 0 };
    pthread_t thread;
    int ring = (int)syscall(SYS_io_uring_setup, 4, &params);

    if (ring < 0) {
        printf("# this system has no io_uring: not run\n");
        return;
    }
    atomic_store(&stopping, false);
    pthread_create(&thread, NULL, beat, NULL);
    CHECK(hfn_os_with_threads_stopped(TIMEOUT_NS, count_thread, do_nothing, &o));
    CHECK(o.threads >= 1);
    atomic_store(&stopping, true);
    pthread_join(thread, NULL);
    close(ring);
}

/* The name alone does not identify a kernel worker. */
static void a_thread_named_like_a_worker_is_stopped(void)
{
    observed o = { 0, 0, 0 };
    pthread_t thread;

    atomic_store(&stopping, false);
    pthread_create(&thread, NULL, beat, NULL);
    CHECK_EQ_I64(pthread_setname_np(thread, "iou-wrk-1) R 1"), 0);
    CHECK(hfn_os_with_threads_stopped(TIMEOUT_NS, count_thread, do_nothing, &o));
    CHECK(o.threads >= 1);
    atomic_store(&stopping, true);
    pthread_join(thread, NULL);
}

/* If no file descriptor is free, a running thread must not be mistaken for an ended thread. */
static void a_thread_is_stopped_with_one_free_file_descriptor(void)
{
    observed o = { 0, 0, 0 };
    struct rlimit before, one_left;
    pthread_t thread;
    int free_file = dup(STDOUT_FILENO);

    /* the state of a listed thread cannot be read with one file descriptor */
    while (!hfn_os_is_single_threaded()) {
        sched_yield();
    }
    CHECK(free_file > 0 && close(free_file) == 0);
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    one_left = (struct rlimit){ (rlim_t)free_file + 1, before.rlim_max };
    atomic_store(&stopping, false);
    pthread_create(&thread, NULL, beat, NULL);
    CHECK(setrlimit(RLIMIT_NOFILE, &one_left) == 0);
    CHECK(hfn_os_with_threads_stopped(TIMEOUT_NS, count_thread, watch_beats, &o));
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK(o.threads >= 1);
    CHECK_EQ_U64(o.last, o.first);
    atomic_store(&stopping, true);
    pthread_join(thread, NULL);
}

static _Atomic bool is_leaving, has_left;

static void beat_unstopped(void *user)
{
    (void)user;
    hfn_os_begin_unstopped();
    while (!atomic_load(&stopping)) {
        atomic_fetch_add(&beats, 1);
    }
    atomic_store(&is_leaving, true);
    hfn_os_end_unstopped();
    atomic_store(&has_left, true);
}

/* In a stop: wait until the worker has made progress, and then until it wants to end. */
static void watch_worker(void *user)
{
    observed *o = user;
    uint64_t until = hfn_os_monotonic_ns() + TIMEOUT_NS;

    o->last = o->first = atomic_load(&beats);
    while (o->last == o->first && hfn_os_monotonic_ns() < until) {
        o->last = atomic_load(&beats);
    }
    atomic_store(&stopping, true);
    while (!atomic_load(&is_leaving) && hfn_os_monotonic_ns() < until) {
    }
    hfn_os_sleep(20000000);
    CHECK(atomic_load(&is_leaving) && !atomic_load(&has_left));
}

static void an_unstopped_worker_runs_on_and_ends_after_the_stop(void)
{
    observed o = { 0, 0, 0 };
    hfn_os_thread worker;
    uint64_t before = atomic_load(&beats);

    atomic_store(&stopping, false);
    CHECK(hfn_os_start_thread(&worker, beat_unstopped, NULL));
    while (atomic_load(&beats) == before) {
    }
    CHECK(hfn_os_with_threads_stopped(TIMEOUT_NS, count_thread, watch_worker, &o));
    CHECK_EQ_U64(o.threads, 0);
    CHECK(o.last > o.first);
    hfn_os_join_thread(&worker);
    CHECK(atomic_load(&has_left));
}

static void setuid_works_after_a_stop(void)
{
    pthread_t thread;

    atomic_store(&stopping, false);
    pthread_create(&thread, NULL, beat, NULL);
    CHECK(hfn_os_with_threads_stopped(TIMEOUT_NS, leave_pc, do_nothing, NULL));
    CHECK_EQ_I64(setuid(getuid()), 0); /* sends signal 33 to every thread and waits for all */
    atomic_store(&stopping, true);
    pthread_join(thread, NULL);
}

static void signals_are_blocked_and_restored(void)
{
    hfn_os_interruptions before, after;
    sigset_t now;

    hfn_os_block_interruptions(&before);
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    CHECK(sigismember(&now, SIGTERM) == 1);
    hfn_os_restore_interruptions(&before);
    hfn_os_block_interruptions(&after);
    hfn_os_restore_interruptions(&after);
    CHECK_EQ_U64(after.state, before.state);
}

static void threads_are_identified_by_their_ids(void)
{
    CHECK_EQ_U64(hfn_os_thread_id(), (uint64_t)getpid());
    printf("# membarrier SYNC_CORE: %s\n", hfn_os_sync_core() ? "yes" : "no");
}

static void facts_of_a_thread_are_read(void)
{
    hfn_thread_facts facts;
    struct timespec used = { 0, 0 };
    char name[16];

    hfn_os_hot_thread_name(name);
    while (used.tv_nsec < 50000000) { /* the system updates the time at intervals */
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    }
    CHECK(hfn_os_hot_read_thread(hfn_os_hot_process_id(), hfn_os_hot_thread_id(), &facts));
    CHECK(memcmp(facts.name, name, sizeof name) == 0);
    CHECK(facts.cpu_ns > 0);
    CHECK(!hfn_os_hot_read_thread(hfn_os_hot_process_id(), UINT32_MAX - 1, &facts));
}

static const check_test tests[] = {
    CHECK_TEST(facts_of_a_thread_are_read),
    CHECK_TEST(threads_are_identified_by_their_ids),
    CHECK_TEST(signals_are_blocked_and_restored),
    CHECK_TEST(stopped_threads_make_no_progress_and_continue),
    CHECK_TEST(threads_that_start_and_end_are_stopped),
    CHECK_TEST(a_thread_in_a_system_call_is_stopped_and_continues),
    CHECK_TEST(kernel_workers_are_not_waited_for),
    CHECK_TEST(a_thread_named_like_a_worker_is_stopped),
    CHECK_TEST(a_thread_is_stopped_with_one_free_file_descriptor),
    CHECK_TEST(an_unstopped_worker_runs_on_and_ends_after_the_stop),
    CHECK_TEST(setuid_works_after_a_stop),
    CHECK_TEST(a_thread_that_cannot_be_stopped_is_reported),
};
CHECK_MAIN(tests)
