/* SPDX-License-Identifier: MIT */
/* Worker threads and mutexes (POSIX threads), and waiting on a word (futex). */
#include "os/threads.h"

#include "os/linux/raw.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

/* ---- Waiting. */

void hfn_os_wait_word(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
    struct timespec t = { (time_t)(timeout_ns / 1000000000u), (long)(timeout_ns % 1000000000u) };

    hfn_raw_syscall6(SYS_futex, hfn_raw_pointer(word), FUTEX_WAIT, value, hfn_raw_pointer(&t), 0,
                     0);
}

void hfn_os_wake_waiters(_Atomic uint32_t *word)
{
    hfn_raw_syscall6(SYS_futex, hfn_raw_pointer(word), FUTEX_WAKE, INT_MAX, 0, 0, 0);
}

/* ---- Workers. */

/* This and hfn_os_wake_on_time are hints: without the permission they have no effect. */
void hfn_os_run_when_idle(void)
{
    struct sched_param none = { 0 };

    pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
}

void hfn_os_wake_on_time(void)
{
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
}

uint64_t hfn_os_own_cpu_ns(void)
{
    uint64_t now[2] = { 0, 0 };

    hfn_raw_clock(CLOCK_THREAD_CPUTIME_ID, now); /* not by the C library: the caller is unstopped */
    return now[0] * 1000000000u + now[1];
}

static void *run_thread(void *argument)
{
    const hfn_os_thread *own = argument;

    own->run(own->user);
    return NULL;
}

/* The new thread inherits a mask that blocks every signal. */
bool hfn_os_start_thread(hfn_os_thread *thread, hfn_os_thread_fn run, void *user)
{
    sigset_t all, before;
    pthread_t handle;
    bool started;

    thread->run = run;
    thread->user = user;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    started = pthread_create(&handle, NULL, run_thread, thread) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    thread->handle = started ? (uint64_t)handle : 0;
    return started;
}

void hfn_os_join_thread(hfn_os_thread *thread)
{
    pthread_join((pthread_t)thread->handle, NULL);
}

_Static_assert(sizeof(pthread_mutex_t) <= sizeof(hfn_os_mutex), "room for a mutex");

static pthread_mutex_t *get_mutex(hfn_os_mutex *mutex)
{
    return (pthread_mutex_t *)(void *)mutex;
}

void hfn_os_init_mutex(hfn_os_mutex *mutex)
{
    pthread_mutex_init(get_mutex(mutex), NULL);
}

void hfn_os_destroy_mutex(hfn_os_mutex *mutex)
{
    pthread_mutex_destroy(get_mutex(mutex));
}

void hfn_os_lock_mutex(hfn_os_mutex *mutex)
{
    pthread_mutex_lock(get_mutex(mutex));
}

void hfn_os_unlock_mutex(hfn_os_mutex *mutex)
{
    pthread_mutex_unlock(get_mutex(mutex));
}
