/* SPDX-License-Identifier: MIT */
/*
 * Another process of this user, changed from outside while it runs: all of its threads are stopped
 * for a moment, wherever they are, and then continue as if nothing had happened.  One thread of the
 * caller makes all calls for one hfn_remote:
 *
 *   open -> stop -> is_inside, adjust, calls, read, write -> resume -> close      repeated
 *   finish                                                                        once
 *
 *   calls: begin_calls -> map, map_file, protect, unmap -> end_calls
 */
#ifndef HFN_OS_REMOTE_H
#define HFN_OS_REMOTE_H

#include "os/code_memory.h"
#include "os/files.h"
#include "os/threads.h"

#include <hotfn/env.h>

typedef struct hfn_remote_thread {
    uint32_t tid;
    uint32_t state;   /* private to os/<system> */
    int32_t delivery; /* private to os/<system>: the signal to deliver when the thread continues */
} hfn_remote_thread;

/* Initially zero except env (filled by hfn_env_fill), pid, is_child, and memory, which is
 * HFN_OS_NO_FILE. */
typedef struct hfn_remote {
    hotfn_env env;
    uint32_t pid;
    bool is_child;         /* a child of this process, which reaps it itself   */
    bool has_small_stacks; /* threads may run on stacks of 2 KiB (Go)       */
    bool limits_calls;     /* the latest begin_calls found only threads that filter
                            * their system calls, and made none           */
    hfn_os_file memory;    /* its memory, from open to close                   */
    hfn_remote_thread *threads;
    uint32_t thread_count;
    size_t thread_capacity;
    uint64_t stopped_ns;  /* when the first thread was seen stopped; 0: none is   */
    uint64_t waited_ns;   /* at stopped_ns: the total time for which the calling
                           * thread has waited for a processor                     */
    struct {              /* between begin_calls and end_calls; private to os/<system> */
        uint32_t tid;     /* the thread that makes the calls; 0: none */
        bool is_at_call;  /* it has not reached end_calls' stop yet */
        uint64_t code;    /* address of an instruction that calls the system */
        uint64_t stack;   /* its frame restores the thread if this process is killed; 0: none */
        uint64_t signals; /* the thread's signal mask before begin_calls */
        uint64_t registers[32];
    } caller;
    struct { /* from a stop to the next resume; private to os/<system> */
        hfn_os_thread thread;
        hfn_os_mutex lock; /* for the threads above */
        _Atomic uint32_t has_ended;
        bool is_running;
    } reaper;
} hfn_remote;

typedef struct hfn_remote_range {
    uint64_t begin, end;
} hfn_remote_range;

/* True if the functions below are implemented for this CPU. */
bool hfn_os_can_change_others(void);
/* The same for hfn_os_remote_check, hfn_os_remote_adjust and the calls in a stopped thread. */
bool hfn_os_can_enter_others(void);

typedef enum hfn_remote_verdict {
    HFN_REMOTE_READY = 0,
    HFN_REMOTE_NOT_FOUND,
    HFN_REMOTE_ENDED,     /* it has ended and was not reaped */
    HFN_REMOTE_SUSPENDED, /* it is stopped by job control    */
    HFN_REMOTE_TRACED,    /* another process traces it       */
    HFN_REMOTE_DENIED,    /* no permission                   */
    HFN_REMOTE_FILTERED,  /* it filters its system calls     */
    HFN_REMOTE_LOCKED,    /* it locks memory                 */
    HFN_REMOTE_FOREIGN    /* of another machine or word size */
} hfn_remote_verdict;
/* Check whether this process can enter process pid, and report each condition: READY if it holds,
 * otherwise the verdict, with a sentence that has the reason and the remedy.  An attach fails with
 * the first of these.  After DENIED, NOT_FOUND, ENDED and FOREIGN the process's memory cannot be
 * read.  The check changes nothing in the process. */
typedef void (*hfn_remote_check_fn)(void *user, const char *name, hfn_remote_verdict verdict,
                                    const char *text);
void hfn_os_remote_check(uint32_t pid, hfn_remote_check_fn report, void *user);

/* Open its memory, whether its threads are stopped or not. */
hfn_os_error hfn_os_remote_open(hfn_remote *remote);
void hfn_os_remote_close(hfn_remote *remote);
/* Has the process ended, or replaced its program since its memory was opened? */
bool hfn_os_remote_was_replaced(const hfn_remote *remote);
bool hfn_os_remote_read(const hfn_remote *remote, uint64_t address, void *out, uint32_t byte_count);
bool hfn_os_remote_write(const hfn_remote *remote, uint64_t address, const void *bytes,
                         uint32_t byte_count);

/* Stop all of its threads; hfn_os_is_timeout if one did not stop in time.  hfn_os_remote_resume
 * must follow, also after an error. */
hfn_os_error hfn_os_remote_stop(hfn_remote *remote, uint64_t timeout_ns);
/* True if a stopped thread executes in one of the ranges or will return into one, or if that cannot
 * be excluded. */
bool hfn_os_remote_is_inside(const hfn_remote *remote, const hfn_remote_range *ranges,
                             uint32_t range_count);
/* Let `adjust` replace the addresses at which the stopped threads will continue, also those in the
 * frames of signal handlers on their stacks.  False if one could not be replaced. */
bool hfn_os_remote_adjust(hfn_remote *remote, hfn_adjust_pc_fn adjust, void *user);

/*
 * Calls that a stopped thread makes on behalf of the caller.  hfn_os_remote_end_calls must follow
 * hfn_os_remote_begin_calls, also after an error: it restores the thread's state from before the
 * calls.  No signal is delivered to the thread meanwhile.  If this process is killed between the
 * two, the target may crash; at any other time it may be killed safely.  A thread that filters its
 * system calls is not chosen, because its filter may end the process.
 */
hfn_os_error hfn_os_remote_begin_calls(hfn_remote *remote);
/* Private pages, zeroed and writable, at that address and nowhere else. */
hfn_os_error hfn_os_remote_map(hfn_remote *remote, uint64_t address, uint64_t byte_count);
/* Map the beginning of an open file of this process at that address as shared pages; 256 bytes of
 * the target's memory at `scratch` are overwritten. */
hfn_os_error hfn_os_remote_map_file(hfn_remote *remote, hfn_os_file file, uint64_t scratch,
                                    uint64_t address, uint64_t byte_count);
/* Make pages read-only. */
hfn_os_error hfn_os_remote_make_readonly(hfn_remote *remote, uint64_t address, uint64_t byte_count);
/* Make pages executable and read-only. */
hfn_os_error hfn_os_remote_make_executable(hfn_remote *remote, uint64_t address,
                                           uint64_t byte_count);
hfn_os_error hfn_os_remote_unmap(hfn_remote *remote, uint64_t address, uint64_t byte_count);
hfn_os_error hfn_os_remote_end_calls(hfn_remote *remote);

/* The remaining calls do not need stopped threads. */

/* As hfn_os_find_gaps, in the target. */
uint32_t hfn_os_remote_find_gaps(const hfn_remote *remote, uint64_t begin, uint64_t end,
                                 hfn_os_gap *out, uint32_t capacity);

/* Pages that are private copies of a part of a file. */
typedef struct hfn_remote_code {
    uint64_t begin, end;
    uint64_t device, inode; /* as /proc/PID/maps has them; 0: unknown */
    uint64_t offset;        /* of `begin` in the file */
} hfn_remote_code;
/* Visit all such pages by rising address, executable or not, until visit returns false.  False if
 * they cannot be listed. */
typedef bool (*hfn_remote_code_fn)(void *user, const hfn_remote_code *code);
bool hfn_os_remote_each_file(uint32_t pid, hfn_remote_code_fn visit, void *user);

/* Visit the files of which the process has code mapped, until visit returns false.  False if they
 * cannot be listed. */
enum { HFN_REMOTE_MODULE_CODE = 8 };
typedef struct hfn_remote_module {
    char path[4096];   /* opens the file in this process, if it is available */
    bool is_available; /* false: deleted, or no regular file                 */
    bool is_main;
    uint64_t base, end; /* of its mappings */
    hfn_remote_code code[HFN_REMOTE_MODULE_CODE];
    uint32_t code_count;
} hfn_remote_module;
typedef bool (*hfn_remote_module_fn)(void *user, const hfn_remote_module *module);
bool hfn_os_remote_each_module(uint32_t pid, hfn_remote_module_fn visit, void *user);

/* Find a mapping of the shared memory of that name (hfn_os_create_shared). */
bool hfn_os_remote_find_shared(uint32_t pid, const char *name, hfn_remote_range *out);
/* Store the path of the live record of a process that is counted; false if there is none. */
bool hfn_os_remote_find_record(uint32_t pid, char *path, size_t capacity);
/* True if that is always the record of the process itself, and never that of an ancestor. */
bool hfn_os_remote_names_record(void);
/* Visit the processes that map shared memory of that name, as far as this user may see it. */
typedef void (*hfn_remote_sharer_fn)(void *user, uint32_t pid);
void hfn_os_remote_each_sharer(const char *name, hfn_remote_sharer_fn visit, void *user);
/* The process's id in its own pid namespace, and the id of that namespace (0: unknown). */
bool hfn_os_remote_get_identity(uint32_t pid, uint32_t *own_id, uint32_t *id_namespace);
/* The words of its command, each followed by a NUL; returns the number of bytes. */
size_t hfn_os_remote_read_command(uint32_t pid, char *out, size_t capacity);
/* Wait at most timeout_ns until the process, which need not be a child, has ended; it may return
 * false early. */
bool hfn_os_remote_wait_end(uint32_t pid, uint64_t timeout_ns);
/* The thread pointer of stopped thread number `index`, below thread_count; false if it has
 * ended. */
bool hfn_os_remote_get_thread_pointer(const hfn_remote *remote, uint32_t index, uint64_t *out);

/* The same for its gs base, which a program of 64 bits need not use. */
bool hfn_os_remote_get_gs_base(const hfn_remote *remote, uint32_t index, uint64_t *out);
bool hfn_os_remote_set_gs_base(hfn_remote *remote, uint32_t index, uint64_t base);
bool hfn_os_remote_has_ended(const hfn_remote *remote, uint32_t index);
/* The program counter of a stopped thread whose system call the kernel is about to make again, and
 * the number of the call; false if there is none.  The call is made by the instruction before. */
bool hfn_os_remote_get_restart(const hfn_remote *remote, uint32_t index, uint64_t *pc,
                               uint64_t *number);
bool hfn_os_remote_set_pc(hfn_remote *remote, uint32_t index, uint64_t pc);
/* May programs change the gs base without a system call? */
bool hfn_os_has_wrgsbase(void);
/* Is the process's program linked without a dynamic linker? */
bool hfn_os_remote_is_static(uint32_t pid);

/* How long a thread has been stopped, without the time that the calling thread waited for a
 * processor: that delay belongs to the machine's load.  0: none is stopped. */
uint64_t hfn_os_remote_get_stopped_ns(const hfn_remote *remote);
/* Resume all threads.  False: a thread that did not stop in time is still attached; call again
 * later. */
bool hfn_os_remote_resume(hfn_remote *remote);
/* Free what the calls allocated. */
void hfn_os_remote_finish(hfn_remote *remote);

/* For tests: make the step with this number fail (0: none), and count the steps since that call. */
void hfn_os_remote_fail_at(uint32_t step);
uint32_t hfn_os_remote_get_steps(void);

#endif
