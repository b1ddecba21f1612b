/* SPDX-License-Identifier: MIT */
/*
 * Another process of this user, changed from outside while it runs: all of its threads are stopped
 * for a moment, wherever they are, and then continue as if nothing had happened.  One thread of the
 * caller makes all calls for one hfn_remote:
 *
 *   open -> stop -> is_inside, read, write -> resume -> close      repeated
 *   finish                                                         once
 */
#ifndef HFN_OS_REMOTE_H
#define HFN_OS_REMOTE_H

#include "os/files.h"

#include <hotfn/env.h>

typedef struct hfn_remote_thread {
    uint32_t tid;
    uint32_t state;   /* the system's */
    int32_t delivery; /* the system's: what the thread receives when it continues */
} hfn_remote_thread;

/* Zero but for env (filled by hfn_env_fill), pid and is_child; memory is HFN_OS_NO_FILE. */
typedef struct hfn_remote {
    hotfn_env env;
    uint32_t pid;
    bool is_child;      /* of this process, which itself waits for its end  */
    hfn_os_file memory; /* its memory, from open to close                   */
    hfn_remote_thread *threads;
    uint32_t thread_count, thread_capacity;
    uint64_t stopped_ns; /* when the first thread was seen stopped; 0: none is   */
    uint64_t waited_ns;  /* how long the calling thread had by then waited for a
                          * processor in its life                                 */
} hfn_remote;

typedef struct hfn_remote_range {
    uint64_t begin, end;
} hfn_remote_range;

/* Is this implemented for this CPU? */
bool hfn_os_can_change_others(void);

/* Open its memory, whether it runs or not. */
hfn_os_error hfn_os_remote_open(hfn_remote *remote);
void hfn_os_remote_close(hfn_remote *remote);
bool hfn_os_remote_read(const hfn_remote *remote, uint64_t address, void *out, uint32_t byte_count);
bool hfn_os_remote_write(const hfn_remote *remote, uint64_t address, const void *bytes,
                         uint32_t byte_count);

/* Stop all of its threads; hfn_os_is_timeout if one did not stop in time.  hfn_os_remote_resume
 * must follow, also after an error. */
hfn_os_error hfn_os_remote_stop(hfn_remote *remote, uint64_t timeout_ns);
/* Is a stopped thread inside one of the ranges, or will it return into one?  True in doubt. */
bool hfn_os_remote_is_inside(const hfn_remote *remote, const hfn_remote_range *ranges,
                             uint32_t range_count);
/* How long a thread has been stopped, without the time that the calling thread waited for a
 * processor: that delay belongs to the machine's load.  0: none is stopped. */
uint64_t hfn_os_remote_get_stopped_ns(const hfn_remote *remote);
/* Let all continue.  False: a thread that did not stop in time is still attached; call again
 * later. */
bool hfn_os_remote_resume(hfn_remote *remote);
/* Free what the calls allocated. */
void hfn_os_remote_finish(hfn_remote *remote);

#endif
