/* SPDX-License-Identifier: MIT */
/* Records: what a run leaves behind (.hfr).  A live record is shared memory that a target counts into
 * while a parent looks after it; the finished file has the same format, compacted. */
#ifndef HOTFN_RECORDS_H
#define HOTFN_RECORDS_H

#include <hotfn/counters.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HOTFN_STATE_HOOKED 1   /* counted                                      */
#define HOTFN_STATE_REFUSED 2  /* wanted, not hooked: reason says why          */
#define HOTFN_STATE_FRAGMENT 3 /* part of another function                     */
#define HOTFN_STATE_EXCLUDED 4 /* the user's selection leaves it out           */
#define HOTFN_STATE_WAITING 5  /* live only: its module is not in the process yet */

#define HOTFN_NO_SLOT UINT32_MAX

/* One function of a module, going in or coming out.  Strings are views into the record (out) or
 * borrowed (in).  names are the function's other names, each ended by NUL, the last by a second one. */
typedef struct hotfn_record_function {
    uint32_t size;   /* sizeof(hotfn_record_function) */
    uint32_t module; /* index; set by the record      */
    uint32_t slot;   /* HOTFN_NO_SLOT: not counted    */
    uint32_t state;  /* HOTFN_STATE_*                 */
    uint64_t rva;
    uint64_t byte_count;
    uint64_t calls;  /* out: sum over the chosen processes; 0 if not counted  */
    uint32_t counted; /* out: 1 if calls means something, else null in reports */
    uint32_t flags;  /* HOTFN_VERDICT_*               */
    uint32_t name_count;
    uint32_t reason_offset; /* bytes from the entry; FRAGMENT: its function's index in the module plus 1, 0: not known */
    const char *name;
    const char *names;
    const char *strategy;    /* "jump"; "" if none    */
    const char *reason;      /* "too-short"; "" if none */
    const char *reason_text;
} hotfn_record_function;
#define HOTFN_RECORD_FUNCTION_INIT { (uint32_t)sizeof(hotfn_record_function), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

#define HOTFN_MODULE_MAIN 1u      /* the program itself                   */
#define HOTFN_MODULE_LOADED 2u    /* was seen in the process              */
#define HOTFN_MODULE_UNLOADED 4u  /* and was unloaded again (dlclose)     */
#define HOTFN_MODULE_LEFT_OUT 8u  /* not selected: it has no functions    */
#define HOTFN_MODULE_FAILED 16u   /* selected, but note says why it could not be hooked */

typedef struct hotfn_record_module {
    uint32_t size; /* sizeof(hotfn_record_module) */
    uint32_t flags; /* HOTFN_MODULE_* */
    uint32_t machine;
    uint32_t id_kind;
    uint32_t id_bytes;
    uint32_t function_count;
    uint32_t first_function; /* out: index in the record */
    uint32_t first_slot;     /* out */
    uint8_t id[32];
    uint64_t load_base;      /* address of RVA 0 in the (first) process, 0 unknown */
    uint64_t file_device;    /* st_dev and st_ino of the file at scan time         */
    uint64_t file_inode;
    const char *path;
    const char *file;        /* out: last component of path */
    const char *note;        /* "" or why it failed         */
    uint64_t file_stamp;     /* tells it from others with this inode; 0: cannot   */
} hotfn_record_module;
#define HOTFN_RECORD_MODULE_INIT { (uint32_t)sizeof(hotfn_record_module), 0, 0, 0, 0, 0, 0, 0, {0}, 0, 0, 0, 0, 0, 0, 0 }

#define HOTFN_RECORD_LIVE 1
#define HOTFN_RECORD_FINISHED 2
#define HOTFN_RECORD_KILLED 3   /* the target was killed; its counts are whole                 */
#define HOTFN_RECORD_BROKEN 4   /* the writer died before finishing: hotfn repair              */
#define HOTFN_RECORD_MERGED 5   /* several runs in one: no process, no exit status             */

/* What the run was. */
typedef struct hotfn_record_info {
    uint32_t size; /* sizeof(hotfn_record_info) */
    uint32_t state;         /* HOTFN_RECORD_*                                 */
    uint32_t version_major; /* of the format                                  */
    uint32_t version_minor;
    uint32_t pid;           /* of the target; HOTFN_RECORD_MERGED: 0          */
    int32_t exit_code;      /* 0..255; -signal if killed by one; HOTFN_RECORD_LIVE: 0 */
    uint32_t module_count;
    uint32_t function_count;
    uint32_t thread_count;  /* rows                                           */
    uint32_t threads_lost;
    uint64_t start_ns;      /* CLOCK_REALTIME                                 */
    uint64_t end_ns;        /* 0 while live                                   */
    uint64_t window_start_ns; /* --after/--for: the window, else 0            */
    uint64_t window_end_ns;
    uint8_t uuid[16];
    const char *command;    /* the command line, words quoted for a shell     */
    const char *directory;  /* working folder                                 */
    const char *tool;       /* "hotfn 0.1.0"                                  */
    const char *path;       /* the file that was opened                       */
    const char *repaired;   /* "", or what a repair lost ("nothing")          */
} hotfn_record_info;
#define HOTFN_RECORD_INFO_INIT { (uint32_t)sizeof(hotfn_record_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}, 0, 0, 0, 0, 0 }

/* "live", "finished", "killed", "broken", "merged": static text.  Since 0.1. */
HOTFN_API const char *hotfn_record_state_name(uint32_t state);

/* One row. */
typedef struct hotfn_record_thread {
    uint32_t size; /* sizeof(hotfn_record_thread) */
    uint32_t tid;
    uint32_t pid;
    uint32_t thread_count; /* threads that shared the row in turn */
    uint64_t start_ns;
    uint64_t calls;        /* sum over all functions              */
    char name[16];
    uint64_t busy_ns;      /* in timed functions; 0: not timed    */
} hotfn_record_thread;
#define HOTFN_RECORD_THREAD_INIT { (uint32_t)sizeof(hotfn_record_thread), 0, 0, 0, 0, 0, "", 0 }

/* ---- Writing: the live record. */

typedef struct hotfn_live hotfn_live;

typedef struct hotfn_live_options {
    uint32_t size; /* sizeof(hotfn_live_options)                                             */
    uint32_t flags; /* 0 */
    const char *durable_path; /* map this .hfr itself [a sealed memfd]                       */
    const char *command;
    const char *directory;
    uint32_t slot_capacity;     /* functions that can ever be counted [65536]                */
    uint32_t thread_capacity;   /* rows [4096 within 16 GiB of addresses; durable: 64 MiB on disk] */
    uint32_t function_capacity; /* functions that can ever be listed [slot_capacity * 2]      */
    uint32_t module_capacity;   /* [1024] */
    uint64_t string_bytes;      /* room for names [256 MiB, sparse]                           */
    uint32_t timing;            /* HOTFN_TIMING_* of hotfn/timing.h [0: the run is not timed]  */
    uint32_t sample_mean;       /* with HOTFN_TIMING_SAMPLED                                   */
    uint64_t slow_ns;           /* with HOTFN_TIMING_SLOW                                      */
    uint32_t node_capacity;     /* places in call trees [2^20, sparse; durable: 2^16]          */
    uint32_t histogram_capacity; /* of a function in a thread [2^14, sparse; durable: 2^11]    */
    uint32_t slow_capacity;     /* slow calls that are kept [4096]                             */
    uint32_t event_capacity;    /* events of each thread that are kept, a power of two [2^16]  */
    uint32_t budget_ppm;        /* what hooks may take of the time, hotfn/budget.h [no budget]  */
    uint32_t reserved;
} hotfn_live_options;
#define HOTFN_LIVE_OPTIONS_INIT { (uint32_t)sizeof(hotfn_live_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Make a live record (the parent's side, or a session's).  HOTFN_OK, HOTFN_E_IO (disk full, folder not
 * writable, another run writes the durable file: err names it), HOTFN_E_NO_MEMORY, HOTFN_E_OPTION,
 * HOTFN_E_LIMIT (a capacity beyond any record's), HOTFN_E_UNSUPPORTED (timing, where this CPU has no
 * stubs for it), HOTFN_E_DENIED (its memory cannot be sealed).  Since 0.1. */
HOTFN_API hotfn_status hotfn_live_create(hotfn_live **out, const hotfn_live_options *options,
                                         const hotfn_env *env, hotfn_error *err);
/* Join a live record of another process (the target's side).  path may be /proc/PID/fd/N; the file is
 * mapped and closed again.  Makes no libc call that allocates.  HOTFN_OK, HOTFN_E_IO, HOTFN_E_FORMAT,
 * HOTFN_E_MISMATCH (another version's, or not live), HOTFN_E_NO_MEMORY.  Since 0.1. */
HOTFN_API hotfn_status hotfn_live_join(hotfn_live **out, const char *path, const hotfn_env *env,
                                       hotfn_error *err);
/* Unmap; a durable file stays as it is (state live).  NULL is fine.  Since 0.1. */
HOTFN_API void hotfn_live_close(hotfn_live *live);
/* The file descriptor of the shared memory or durable file (owned by live); -1 when joined.  Since 0.1. */
HOTFN_API int32_t hotfn_live_fd(const hotfn_live *live);

/*
 * Append a module with its functions; slots are handed out to the functions whose state is HOOKED or
 * WAITING, in order, from first_slot on.  Only one process appends.  When slots or room run out, the
 * functions that found none are refused (reason "no-slots"); a module whose functions or names find
 * no room is listed without them, as FAILED with a note.
 * module and functions are borrowed; functions[i] belongs to function_index i of the image.
 * HOTFN_OK, HOTFN_E_LIMIT (no module fits any more), HOTFN_E_STATE (not by who made the record, or module->size is
 * unknown), HOTFN_E_IO (durable: the disk is full).  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_live_add_module(hotfn_live *live, const hotfn_record_module *module,
                                             const hotfn_record_function *functions, uint32_t *index,
                                             hotfn_error *err);
/* Written by whichever side knows: flags replace the module's, load_base if not 0, note if not NULL
 * (at most 255 bytes are kept).  HOTFN_OK, HOTFN_E_NOT_FOUND (no such module).  Since 0.1. */
HOTFN_API hotfn_status hotfn_live_set_module(hotfn_live *live, uint32_t module, uint32_t flags,
                                             uint64_t load_base, const char *note);
/* Set a function's state and reason (a HOTFN_REASON_* number, whose words hotfn_live_set_reason stored), and where
 * it stands, bytes from the entry.  Any process that joined.  HOTFN_OK, HOTFN_E_NOT_FOUND (no such module or
 * function), HOTFN_E_LIMIT (reason above 255).  Since 0.1. */
HOTFN_API hotfn_status hotfn_live_set_function(hotfn_live *live, uint32_t module, uint32_t function_index,
                                               uint32_t state, uint32_t reason, uint32_t reason_offset);
/* Store the words (copied) for a numbered reason, so that a record explains itself.  HOTFN_OK, HOTFN_E_STATE (not by
 * who made the record), HOTFN_E_LIMIT (reason 0 or above 255, no room for names), HOTFN_E_IO (durable: the disk is
 * full).  Since 0.1. */
HOTFN_API hotfn_status hotfn_live_set_reason(hotfn_live *live, uint32_t reason, const char *name,
                                             const char *text);
/* slots[i] of the module's function i (a view of module.function_count words).  Since 0.1. */
HOTFN_API const uint32_t *hotfn_live_slots(const hotfn_live *live, uint32_t module);
/*
 * Deal the module's slots anew: the functions of the list (indices in the module) get the first ones, in
 * its order, the others follow in theirs.  The counts of functions that are called often then share cache
 * lines.  Only before the module is hooked.  What is not in the module, or comes twice, is passed over.
 * HOTFN_OK, HOTFN_E_NOT_FOUND, HOTFN_E_STATE (not by who made the record), HOTFN_E_NO_MEMORY.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_live_order_slots(hotfn_live *live, uint32_t module, const uint32_t *functions,
                                              uint32_t count);
/* The name of the module's function i (a view), NULL past the end.  Since 0.1. */
HOTFN_API const char *hotfn_live_function_name(const hotfn_live *live, uint32_t module,
                                               uint32_t function_index);
/* How many modules were added so far, and one of them, for any process that joined; the texts are views.  HOTFN_OK,
 * HOTFN_E_NOT_FOUND past the end, HOTFN_E_OPTION.  Since 0.1. */
HOTFN_API uint32_t hotfn_live_module_count(const hotfn_live *live);
HOTFN_API hotfn_status hotfn_live_get_module(const hotfn_live *live, uint32_t module,
                                             hotfn_record_module *out);
/* Memory for hotfn_counters_create (views); it stays mapped until the live record is closed, rows that were used
 * even longer, emptied: a thread may still stand in a stub.  HOTFN_OK, HOTFN_E_OPTION.  Since 0.1. */
HOTFN_API hotfn_status hotfn_live_get_memory(hotfn_live *live, hotfn_counter_memory *out);
/* The process that the record is of, for hotfn_record_info.  Since 0.1. */
HOTFN_API void hotfn_live_set_pid(hotfn_live *live, uint32_t pid);

/* A copy of all counters and times at one moment, for windows.  Owned by the caller: hotfn_snapshot_destroy.
 * HOTFN_OK, HOTFN_E_STATE (not by who made the record), HOTFN_E_NO_MEMORY, HOTFN_E_IO, HOTFN_E_FORMAT (the times'
 * header was overwritten).  Since 0.1. */
typedef struct hotfn_snapshot hotfn_snapshot;
HOTFN_API hotfn_status hotfn_live_snapshot(hotfn_snapshot **out, const hotfn_live *live, hotfn_error *err);
/* NULL is fine.  Since 0.1. */
HOTFN_API void hotfn_snapshot_destroy(hotfn_snapshot *snapshot);
/* When it was taken: nanoseconds since 1970 (CLOCK_REALTIME).  Since 0.1. */
HOTFN_API uint64_t hotfn_snapshot_time_ns(const hotfn_snapshot *snapshot);

/*
 * Write the finished record to path (a new file beside it, renamed over it at the end).
 * state, exit_code  as in hotfn_record_info: finished, killed or merged.
 * from, to          NULL, or the window: counts are to - from (to NULL: now).
 * A durable record may be finished over its own path.  What still waits for its module becomes
 * refused ("not-loaded").  HOTFN_E_IO names the file; HOTFN_E_STATE (not by who made the record), HOTFN_E_OPTION
 * (another state), HOTFN_E_NO_MEMORY, HOTFN_E_FORMAT (as hotfn_live_snapshot).  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_live_finish(hotfn_live *live, const char *path, uint32_t state,
                                         int32_t exit_code, const hotfn_snapshot *from,
                                         const hotfn_snapshot *to, hotfn_error *err);

/* ---- Reading: a live, a finished, a killed or a broken record alike. */

typedef struct hotfn_record hotfn_record;

/* Open the record at path (a copy is read: nobody can cut it under us).  A symbolic link to a live
 * record works.  HOTFN_OK, HOTFN_E_IO, HOTFN_E_FORMAT (cut, overwritten: offset is set),
 * HOTFN_E_MISMATCH (another version), HOTFN_E_NO_MEMORY.  Since 0.1. */
HOTFN_API hotfn_status hotfn_record_open(hotfn_record **out, const char *path, const hotfn_env *env,
                                         hotfn_error *err);
/* Release the record and every view into it.  NULL is fine.  Since 0.1. */
HOTFN_API void hotfn_record_close(hotfn_record *record);
/* The run; its index-th module, function (all modules', in their order) and row (of the chosen ones), as many as
 * info counts.  Texts are views.  HOTFN_OK, HOTFN_E_NOT_FOUND past the end, HOTFN_E_OPTION.  Since 0.1. */
HOTFN_API hotfn_status hotfn_record_get_info(const hotfn_record *record, hotfn_record_info *out);
HOTFN_API hotfn_status hotfn_record_get_module(const hotfn_record *record, uint32_t index,
                                               hotfn_record_module *out);
HOTFN_API hotfn_status hotfn_record_get_function(const hotfn_record *record, uint32_t index,
                                                 hotfn_record_function *out);
HOTFN_API hotfn_status hotfn_record_get_thread(const hotfn_record *record, uint32_t index,
                                               hotfn_record_thread *out);
/* Only rows of this process count from now on, or of this thread: calls, times, histograms, trees, events; 0: all.  Threads
 * that ended may share a row, by the latest one's number.  HOTFN_OK, HOTFN_E_NOT_FOUND (no row is of both; nothing
 * changed), HOTFN_E_NO_MEMORY (choose again, or close it).  Since 0.1. */
HOTFN_API hotfn_status hotfn_record_choose_process(hotfn_record *record, uint32_t pid);
HOTFN_API hotfn_status hotfn_record_choose_thread(hotfn_record *record, uint32_t tid);
/* Function indices by falling calls, ties by name, uncounted ones last: order has info.function_count words.
 * HOTFN_OK, HOTFN_E_NO_MEMORY.  Since 0.1. */
HOTFN_API hotfn_status hotfn_record_sort(const hotfn_record *record, uint32_t *order);

/* Make a clean record at to out of whatever can be read at from; *lost says in words what could not be
 * (at most lost_bytes, NUL included), and so does the new record (hotfn_record_info.repaired).  HOTFN_E_FORMAT if nothing can.  Since 0.1. */
HOTFN_API hotfn_status hotfn_record_repair(const char *from, const char *to, char *lost,
                                           uint64_t lost_bytes, const hotfn_env *env, hotfn_error *err);

#define HOTFN_MERGE_SUM 0u  /* a row a run; trees, histograms and slow calls too    */
#define HOTFN_MERGE_MEAN 1u /* one row; a function that a run lacks counts as 0      */
#define HOTFN_MERGE_MIN 2u  /* of the runs that have the function                    */
#define HOTFN_MERGE_MAX 3u

/* Write several runs as one record.  Functions are the same by image id and RVA (by path where an image
 * has no id).  Times, if all of them were timed, are nanoseconds with the hooks' cost taken out.
 * HOTFN_E_OPTION (no record, no such mode), what hotfn_record_open gives, HOTFN_E_IO.  Since 0.1. */
HOTFN_API hotfn_status hotfn_record_merge(const char *const *paths, uint32_t count, const char *to,
                                          uint32_t mode, const hotfn_env *env, hotfn_error *err);

#ifdef __cplusplus
}
#endif

#endif
