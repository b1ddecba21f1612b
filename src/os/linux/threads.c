/* SPDX-License-Identifier: MIT */
/* The identity of threads, and the barrier after which their processors fetch patched code anew.
 * Threads are stopped in stop.c. */
#include "os/os.h"
#include "os/row_word.h"

#include "os/linux/raw.h"
#include "os/linux/tasks.h"

#include <fcntl.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <sys/prctl.h>

uint32_t hfn_os_thread_id(void)
{
    return (uint32_t)hfn_raw_syscall3(SYS_gettid, 0, 0, 0);
}

bool hfn_os_set_thread_name(const char *name)
{
    return hfn_raw_syscall3(SYS_prctl, PR_SET_NAME, hfn_raw_pointer(name), 0) == 0;
}

static bool count_task(void *user, uint32_t tid)
{
    uint32_t *count = user;

    (void)tid;
    return ++*count < 2;
}

bool hfn_os_is_single_threaded(void)
{
    uint32_t count = 0;

    return hfn_linux_each_task(count_task, &count) && count == 1;
}

bool hfn_os_sync_core(void)
{
    if (hfn_raw_syscall3(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) == 0) {
        return true;
    }
    hfn_raw_syscall3(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
    return hfn_raw_syscall3(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) == 0;
}

void hfn_os_block_interruptions(hfn_os_interruptions *before)
{
    uint64_t all = UINT64_MAX;

    hfn_raw_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, hfn_raw_pointer(&all),
                     hfn_raw_pointer(&before->state), sizeof all);
}

void hfn_os_restore_interruptions(const hfn_os_interruptions *before)
{
    hfn_raw_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, hfn_raw_pointer(&before->state), 0,
                     sizeof before->state);
}

/* The word is a thread-local variable. */
bool hfn_os_reserve_row_word(void)
{
    return true;
}
