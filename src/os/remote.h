/* SPDX-License-Identifier: MIT */
/* Another process of this user, changed from outside while it runs: all of its threads are stopped
 * for a moment, wherever they are, and go on as if nothing had been.  All calls of one hfn_remote come
 * from one thread of the caller. */
#ifndef HFN_OS_REMOTE_H
#define HFN_OS_REMOTE_H

#include <hotfn/env.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hfn_remote_thread {
    uint32_t tid;
    uint32_t state;
    int signal; /* that it was about to get */
} hfn_remote_thread;

/* Zeroed but for env and pid by who owns it; a copy filled by hfn_env_fill. */
typedef struct hfn_remote {
    hotfn_env env;
    uint32_t pid;
    bool is_child; /* of this process, which reaps it by itself */
    int memory;    /* its memory, while it is stopped or open */
    hfn_remote_thread *threads;
    uint32_t thread_count, thread_capacity;
    uint64_t stopped_ns; /* since when the first thread was seen to stand; 0: none does */
    uint64_t waited_ns;  /* what the caller's thread had waited for a processor by then */
} hfn_remote;

typedef struct hfn_remote_range {
    uint64_t begin, end;
} hfn_remote_range;

/* Can this build do it on this CPU? */
bool hfn_os_can_change_others(void);

/* Its memory, to read and write, running or not; 0 or an errno. */
int hfn_os_remote_open(hfn_remote *remote);
void hfn_os_remote_close(hfn_remote *remote);
bool hfn_os_remote_read(const hfn_remote *remote, uint64_t address, void *out, uint32_t byte_count);
bool hfn_os_remote_write(const hfn_remote *remote, uint64_t address, const void *bytes,
                         uint32_t byte_count);

/* Stop all of its threads; 0 or an errno (ETIMEDOUT: one did not stop in time).  In any case
 * hfn_os_remote_go_on comes next. */
int hfn_os_remote_stop(hfn_remote *remote, uint64_t timeout_ns);
/* Does a stopped thread stand in one of the ranges, or will it when its signal handlers return?  In
 * doubt: yes. */
bool hfn_os_remote_stands_in(const hfn_remote *remote, const hfn_remote_range *ranges,
                             uint32_t range_count);
/* How long a thread has stood by now, without what the caller waited for a processor meanwhile: that is the
 * machine's, not ours.  0: none stands. */
uint64_t hfn_os_remote_stood_ns(const hfn_remote *remote);
/* Let all go on.  False: one that did not stop is still held, call again (it stops some time). */
bool hfn_os_remote_go_on(hfn_remote *remote);
/* Free what it holds. */
void hfn_os_remote_finish(hfn_remote *remote);

/* The processor time of all threads that the process ever had; 0 if it is gone. */
uint64_t hfn_os_process_cpu_ns(uint32_t pid);

#endif
