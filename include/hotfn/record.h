/* SPDX-License-Identifier: MIT */
/* Records: what a run leaves behind (.hfr), read while it is written, afterwards, or after a crash. */
#ifndef HOTFN_RECORD_H
#define HOTFN_RECORD_H

#include <hotfn/env.h>
#include <hotfn/function.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HOTFN_RECORD_LIVE 1
#define HOTFN_RECORD_FINISHED 2
#define HOTFN_RECORD_KILLED 3 /* the target was killed; its counts are whole                 */
#define HOTFN_RECORD_BROKEN 4 /* the writer died before finishing: hotfn repair              */
#define HOTFN_RECORD_MERGED 5 /* several runs in one: no process, no exit status             */

/* What the run was. */
typedef struct hotfn_record_info {
    uint32_t size;          /* sizeof(hotfn_record_info) */
    uint32_t state;         /* HOTFN_RECORD_*                                 */
    uint32_t version_major; /* of the format                                  */
    uint32_t version_minor;
    uint32_t pid;      /* of the target; HOTFN_RECORD_MERGED: 0          */
    int32_t exit_code; /* 0..255; -signal if killed by one; HOTFN_RECORD_LIVE: 0 */
    uint32_t module_count;
    uint32_t function_count;
    uint32_t thread_count; /* rows                                           */
    uint32_t threads_lost;
    uint64_t start_ns;        /* CLOCK_REALTIME                                 */
    uint64_t end_ns;          /* 0 while live                                   */
    uint64_t window_start_ns; /* --after/--for: the window, else 0            */
    uint64_t window_end_ns;
    uint8_t uuid[16];
    const char *command;   /* the command line, words quoted for a shell     */
    const char *directory; /* working folder                                 */
    const char *tool;      /* "hotfn 0.1.0"                                  */
    const char *path;      /* the file that was opened                       */
    const char *repaired;  /* "", or what a repair lost ("nothing")          */
} hotfn_record_info;
#define HOTFN_RECORD_INFO_INIT                                                                     \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_record_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 }, 0, 0,   \
            0, 0, 0                                                                                \
    }

/* "live", "finished", "killed", "broken", "merged": static text.  Since 0.1. */
HOTFN_API const char *hotfn_record_get_state_name(uint32_t state);

/* One row. */
typedef struct hotfn_record_thread {
    uint32_t size; /* sizeof(hotfn_record_thread) */
    uint32_t tid;
    uint32_t pid;
    uint32_t thread_count; /* threads that shared the row in turn */
    uint64_t start_ns;
    uint64_t calls; /* sum over all functions              */
    char name[16];
    uint64_t busy_ns; /* in timed functions; 0: not timed    */
} hotfn_record_thread;
#define HOTFN_RECORD_THREAD_INIT                                                                   \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_record_thread), 0, 0, 0, 0, 0, "", 0                                \
    }

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
                                           uint64_t lost_bytes, const hotfn_env *env,
                                           hotfn_error *err);

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
