/* SPDX-License-Identifier: MIT */
/* Lists the threads in /proc/self/task by raw system calls without allocation, since other threads
 * may be stopped meanwhile. */
#ifndef HFN_OS_LINUX_TASKS_H
#define HFN_OS_LINUX_TASKS_H

#include <stdbool.h>
#include <stdint.h>

/* Visit each thread until visit returns false.  Returns false if the folder cannot be read. */
typedef bool (*hfn_task_fn)(void *user, uint32_t tid);
bool hfn_linux_each_task(hfn_task_fn visit, void *user);

/* True if the thread has ended but is still listed (a main thread that called pthread_exit), or if
 * it is a kernel worker. */
bool hfn_linux_task_runs_no_code(uint32_t tid);

#endif
