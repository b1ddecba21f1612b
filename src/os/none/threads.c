/* SPDX-License-Identifier: MIT */
/* Threads are unknown and workers cannot be started; a mutex of one thread needs no action. */
#include "os/threads.h"

#include "os/row_word.h"

uint32_t hfn_os_thread_id(void)
{
    return 0;
}

bool hfn_os_set_thread_name(const char *name)
{
    (void)name;
    return false;
}

bool hfn_os_is_single_threaded(void)
{
    return false;
}

void hfn_os_block_interruptions(hfn_os_interruptions *before)
{
    before->state = 0;
}

void hfn_os_restore_interruptions(const hfn_os_interruptions *before)
{
    (void)before;
}

bool hfn_os_sync_core(void)
{
    return false;
}

bool hfn_os_with_threads_stopped(uint64_t timeout_ns, hfn_adjust_pc_fn adjust, hfn_quiesced_fn work,
                                 void *user)
{
    (void)timeout_ns;
    (void)adjust;
    (void)work;
    (void)user;
    return false;
}

void hfn_os_wait_word(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
    (void)word;
    (void)value;
    (void)timeout_ns;
}

void hfn_os_wake_waiters(_Atomic uint32_t *word)
{
    (void)word;
}

void hfn_os_run_when_idle(void)
{
}

/* Here such workers are stopped like others. */
void hfn_os_begin_unstopped(void)
{
}

void hfn_os_end_unstopped(void)
{
}

void hfn_os_wake_on_time(void)
{
}

uint64_t hfn_os_own_cpu_ns(void)
{
    return 0;
}

bool hfn_os_start_thread(hfn_os_thread *thread, hfn_os_thread_fn run, void *user)
{
    (void)thread;
    (void)run;
    (void)user;
    return false;
}

void hfn_os_join_thread(hfn_os_thread *thread)
{
    (void)thread;
}

void hfn_os_init_mutex(hfn_os_mutex *mutex)
{
    (void)mutex;
}

void hfn_os_destroy_mutex(hfn_os_mutex *mutex)
{
    (void)mutex;
}

void hfn_os_lock_mutex(hfn_os_mutex *mutex)
{
    (void)mutex;
}

void hfn_os_unlock_mutex(hfn_os_mutex *mutex)
{
    (void)mutex;
}

bool hfn_os_reserve_row_word(void)
{
    return false;
}
