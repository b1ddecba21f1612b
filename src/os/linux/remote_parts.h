/* SPDX-License-Identifier: MIT */
/* What the files of remote.h share: the states of threads, their registers, and the steps that a
 * test lets fail. */
#ifndef HFN_OS_LINUX_REMOTE_PARTS_H
#define HFN_OS_LINUX_REMOTE_PARTS_H

#include "os/remote.h"

/* hfn_remote_thread.state */
enum { HFN_THREAD_HELD = 1, HFN_THREAD_STOPPED = 2, HFN_THREAD_GONE = 3 };

enum { HFN_PROC_PATH_BYTES = 64, HFN_EVENT_STOP = 128 /* PTRACE_EVENT_STOP */ };

typedef struct hfn_remote_registers {
    uint64_t pc, sp;
} hfn_remote_registers;

/* Of a stopped thread; those that it will have when it continues, if it makes calls for the caller
 * now.  False also if it is a thread of another word size. */
bool hfn_linux_read_registers(const hfn_remote *remote, uint32_t tid, hfn_remote_registers *out);
bool hfn_linux_set_pc(hfn_remote *remote, uint32_t tid, uint64_t pc);

/* Let the stopped thread repeat its system call, if the kernel does not restart it after the
 * stop. */
void hfn_linux_repeat_call(hfn_remote *remote, uint32_t tid);

/* Let the thread that makes calls (hfn_os_remote_begin_calls) make this one; *out, if not NULL,
 * receives its result.  Also: mmap of writable pages at that address and nowhere else. */
hfn_os_error hfn_linux_make_call(hfn_remote *remote, uint64_t *out, uint64_t number, uint64_t a,
                                 uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f);
hfn_os_error hfn_linux_map_at(hfn_remote *remote, uint64_t address, uint64_t byte_count,
                              uint64_t flags, uint64_t fd);

/* True in the step that hfn_os_remote_fail_at names.  Each step of the files calls it once. */
bool hfn_linux_step_fails(void);

#endif
