/* SPDX-License-Identifier: MIT */
/* Counters: each thread owns a row of 64-bit slots and is its only writer; no lock, no lost call. */
#ifndef HOTFN_COUNTERS_H
#define HOTFN_COUNTERS_H

#include <hotfn/lowlevel/hooks.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hotfn_counters hotfn_counters;

/* Who owns a row; 64 bytes, in memory that may be shared with other processes.  A row whose thread is
 * gone is taken over by a later thread: it goes on counting in it. */
typedef struct hotfn_thread_cell {
    uint32_t tid;          /* 0: never used; UINT32_MAX: changing hands                  */
    uint32_t thread_count; /* how many threads have counted in this row, in turn         */
    uint32_t pid;
    uint32_t process;       /* tells processes of one pid apart; random                   */
    uint32_t pid_namespace; /* inode number, 0 unknown: pids of another one mean nothing */
    uint32_t process_count; /* how many processes have counted in this row, in turn      */
    uint64_t start_ns;      /* CLOCK_REALTIME of the first one's first hooked call        */
    char name[16];          /* of the latest one, at its first hooked call                */
    uint64_t row_variable;  /* address of its row pointer in its process                  */
    uint64_t spare;
} hotfn_thread_cell;

/* The words before the cells; 64 bytes. */
typedef struct hotfn_cell_header {
    uint32_t cells_used;   /* cells [0, cells_used) may be in use                        */
    uint32_t threads_lost; /* threads that found no row: their calls are lost            */
    uint32_t slots_used;   /* slots that hooks may count in; 0: any of them              */
    uint32_t reserved;
    uint64_t spare[6];
} hotfn_cell_header;

/* Memory for rows, from a record or anywhere; all zero at first, kept until the counters go. */
typedef struct hotfn_counter_memory {
    uint32_t size; /* sizeof(hotfn_counter_memory) */
    uint32_t thread_capacity;
    uint32_t slot_capacity;
    uint32_t row_bytes; /* from one row to the next; a multiple of the page size  */
    hotfn_cell_header *header;
    hotfn_thread_cell *cells; /* [thread_capacity]                                      */
    uint8_t *rows;            /* [thread_capacity * row_bytes]; slot n at + 8 * n       */
} hotfn_counter_memory;
#define HOTFN_COUNTER_MEMORY_INIT                                                                  \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_counter_memory), 0, 0, 0, 0, 0, 0                                   \
    }

/*
 * Make the process's counters (there is one set at a time: the row pointer is one thread-local
 * variable).  memory NULL: anonymous memory for slot_capacity slots and thread_capacity threads [4096].
 * HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_STATE (another set is active), HOTFN_E_OPTION (no slots; memory whose
 * rows are no whole pages, or too short), HOTFN_E_UNSUPPORTED (the variable is out of stubs' reach).  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_counters_create(hotfn_counters **out,
                                             const hotfn_counter_memory *memory,
                                             uint32_t slot_capacity, uint32_t thread_capacity,
                                             const hotfn_env *env, hotfn_error *err);
/* No hook may count any more.  Threads' pointers are sent to the discard row.  NULL is fine.  Since 0.1. */
HOTFN_API void hotfn_counters_destroy(hotfn_counters *counters);

/*
 * How stubs reach a row, for hotfn_hooks_create; addresses of code that stays.  HOTFN_OK, HOTFN_E_OPTION.
 * Since 0.1.
 *
 * slow_path's contract: sets the thread's row pointer to something that is not 0 and goes back to the
 * stub; runs on the thread's stack, makes raw system calls only, takes no lock, is safe in a signal
 * handler.  x86-64: reached by `call` from a stub whose saved rcx lies at [rsp - 8] as seen behind the
 * call; keeps every register (rcx: the saved one), the flags and the vector state.  ARM64: reached by
 * `br` with x17 saying where to go on; keeps all but x16 and x17.
 */
HOTFN_API hotfn_status hotfn_counters_get_access(const hotfn_counters *counters,
                                                 hotfn_row_access *out);

/* What was given to hotfn_counters_create, or what it mapped itself: bytes, rows, where they lie (views).
 * HOTFN_OK, HOTFN_E_OPTION.  Since 0.1. */
HOTFN_API hotfn_status hotfn_counters_get_memory(const hotfn_counters *counters,
                                                 hotfn_counter_memory *out);

/* totals[n] = sum of slot first_slot + n over all rows, in calls; totals has slot_count words.  Lock-free; calls
 * in flight may or may not be in it.  HOTFN_OK, HOTFN_E_OPTION (slots beyond slot_capacity).  Since 0.1. */
HOTFN_API hotfn_status hotfn_counters_sum(const hotfn_counters *counters, uint32_t first_slot,
                                          uint32_t slot_count, uint64_t *totals);

/* Send this thread's counts to a row that nobody reads, while own code runs; give the answer, in the same
 * thread, to resume, which goes on in the row from before (in another set, or a fork's child: in a fresh one).
 * The answer may be NULL and owns nothing.  Nests; neither fails.  Since 0.1. */
HOTFN_API void *hotfn_counters_pause(void);
HOTFN_API void hotfn_counters_resume(void *paused);

/* Around fork(), in the forking thread: prepare before, then parent or child behind it.  Between them
 * the thread counts into a private row; parent adds it back, child adds what the child counted in it to a fresh
 * row under its own process id.  None fails: without memory for the private row, or on a kernel that does not
 * wipe it in the child, calls made between them may be lost.  NULL is fine.  Since 0.1. */
HOTFN_API void hotfn_counters_fork_prepare(hotfn_counters *counters);
HOTFN_API void hotfn_counters_fork_parent(hotfn_counters *counters);
HOTFN_API void hotfn_counters_fork_child(hotfn_counters *counters);

#ifdef __cplusplus
}
#endif

#endif
