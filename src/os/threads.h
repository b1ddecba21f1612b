/* SPDX-License-Identifier: MIT */
/* Threads: those of the program, which are identified, interrupted and stopped, and workers of the
 * engine's own. */
#ifndef HFN_OS_THREADS_H
#define HFN_OS_THREADS_H

#include <stdbool.h>
#include <stdint.h>

uint32_t hfn_os_thread_id(void);
/* Name the calling thread; false if the system does not name threads. */
#define HFN_OS_MAX_THREAD_NAME 15
bool hfn_os_set_thread_name(const char *name);
/* Is the calling thread the only one?  False also if this cannot be determined. */
bool hfn_os_is_single_threaded(void);

/* Between these two calls no signal handler of the program runs in this thread, so that none
 * executes code that is half written. */
typedef struct hfn_os_interruptions {
    uint64_t state;
} hfn_os_interruptions;
void hfn_os_block_interruptions(hfn_os_interruptions *before);
void hfn_os_restore_interruptions(const hfn_os_interruptions *before);

/* Make the processors that run threads of this process fetch instructions anew.  False if the
 * system does not support it. */
bool hfn_os_sync_core(void);

/*
 * Stop all other threads of the process, wherever they are.  `adjust` receives the address at which
 * each will continue, also those inside handlers that interrupted it, and returns a new one or the
 * same; then `work` runs and all threads continue.  Both run while other threads may hold any lock,
 * so neither may allocate.  False if a thread did not stop within timeout_ns: then `work` did not
 * run.
 */
typedef uint64_t (*hfn_adjust_pc_fn)(void *user, uint64_t pc);
typedef void (*hfn_quiesced_fn)(void *user);
bool hfn_os_with_threads_stopped(uint64_t timeout_ns, hfn_adjust_pc_fn adjust, hfn_quiesced_fn work,
                                 void *user);

/* ---- Waiting for another thread or process. */

/* Sleeps until hfn_os_wake_waiters(word), if *word equals value; at most timeout_ns.  It may return
 * early.  The word may lie in shared memory. */
void hfn_os_wait_word(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns);
void hfn_os_wake_waiters(_Atomic uint32_t *word);

/* ---- Workers. */

typedef void (*hfn_os_thread_fn)(void *user);
/* A worker.  The struct stays at its address from start to join. */
typedef struct hfn_os_thread {
    uint64_t handle;
    hfn_os_thread_fn run;
    void *user;
} hfn_os_thread;

/* A thread that no handler of the program interrupts; false if it cannot be started. */
bool hfn_os_start_thread(hfn_os_thread *thread, hfn_os_thread_fn run, void *user);
/* The calling worker runs only while a processor would otherwise be idle. */
void hfn_os_run_when_idle(void);
/* The calling worker wakes from hfn_os_wait_word within microseconds of its time. */
void hfn_os_wake_on_time(void);
/*
 * Between these two calls hfn_os_with_threads_stopped does not stop the calling worker: a worker
 * that seldom gets a processor would not stop in time.  Meanwhile it executes only code of this
 * library and system calls, no code of the C library or another module: those may be hooked.  The
 * second call returns when no stop is in progress, so the bytes that the worker executes afterwards
 * are complete.
 */
void hfn_os_begin_unstopped(void);
void hfn_os_end_unstopped(void);
/* Processor time of the calling worker. */
uint64_t hfn_os_own_cpu_ns(void);
/* Wait for the end of the worker; what it wrote is then visible. */
void hfn_os_join_thread(hfn_os_thread *thread);

typedef struct hfn_os_mutex {
    uint64_t state[8];
} hfn_os_mutex;
void hfn_os_init_mutex(hfn_os_mutex *mutex);
void hfn_os_destroy_mutex(hfn_os_mutex *mutex);
void hfn_os_lock_mutex(hfn_os_mutex *mutex);
void hfn_os_unlock_mutex(hfn_os_mutex *mutex);

#endif
