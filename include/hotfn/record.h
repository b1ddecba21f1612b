/* SPDX-License-Identifier: MIT */
/*
 * Records: the files (.hfr) that runs leave behind.  A record can be opened while its program runs,
 * after the program has ended, and after a crash.
 *
 * Functions, modules and threads have indices, from 0 to the count in hotfn_record_info.  Texts
 * that a call stores in a struct are views: they stay valid until the record is closed.
 *
 * Thread safety: calls that take a const record may run at the same time in several threads.  A
 * call that takes a record that is not const must be the only call on that record.
 */
#ifndef HOTFN_RECORD_H
#define HOTFN_RECORD_H

#include <hotfn/env.h>
#include <hotfn/function.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HOTFN_RECORD_LIVE 1     /* the program still runs                                     */
#define HOTFN_RECORD_FINISHED 2 /* the program ended                                          */
#define HOTFN_RECORD_KILLED 3   /* the program was killed; its counts are complete            */
#define HOTFN_RECORD_BROKEN 4   /* the writer died before it finished the record: hotfn repair */
#define HOTFN_RECORD_MERGED 5   /* made of several records: no process, no exit status        */

#define HOTFN_NO_FUNCTION UINT32_MAX /* no index of a function */

/* The run as a whole.  Times of day are nanoseconds since 1970 (CLOCK_REALTIME). */
typedef struct hotfn_record_info {
    uint32_t size;          /* sizeof(hotfn_record_info)                      */
    uint32_t state;         /* HOTFN_RECORD_*                                 */
    uint32_t version_major; /* of the format; other major versions are refused */
    uint32_t version_minor;
    uint32_t pid;      /* of the program; 0 in a merged record           */
    int32_t exit_code; /* 0 to 255; -N after signal N; 0 while live      */
    uint32_t module_count;
    uint32_t function_count;
    uint32_t thread_count;      /* of the chosen process and thread               */
    uint32_t threads_lost;      /* threads without a row, since all were taken    */
    uint64_t start_ns;          /* when the run began                             */
    uint64_t end_ns;            /* when it ended; 0 while live                    */
    uint64_t window_start_ns;   /* with --after or --for: when counting began, else 0 */
    uint64_t window_end_ns;     /* and when it ended, else 0                      */
    uint8_t uuid[16];           /* of the run                                     */
    const char *command;        /* view; the command line, quoted for a shell     */
    const char *directory;      /* view; the working directory                    */
    const char *tool;           /* view; the writer, "hotfn 0.1.0"                */
    const char *path;           /* view; the file that was opened                 */
    const char *repaired;       /* view; "", or what a repair could not save ("nothing") */
    uint64_t checked_ns;        /* when the hooks were last compared with memory; 0: never   */
    uint32_t unverified_count;  /* processes that run, or ended without that comparison      */
    uint32_t overwritten_count; /* functions whose hooks other code overwrote: not counted   */
    const char *script;         /* view; the file whose #! interpreter was counted, or ""    */
    const char *became;         /* view; what the program became by exec uncounted, or ""    */
    uint64_t cpu_ns;            /* processor time of the program's process; 0: unknown       */
    uint32_t child_count;       /* programs that children ran without being counted          */
    uint32_t reserved;          /* 0 */
    uint64_t preparation_ns;    /* part of the run in which the program waited for its scan and its
                                   hooks; 0: unknown                                     */
} hotfn_record_info;
#define HOTFN_RECORD_INFO_INIT                                                                     \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_record_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 }, 0, 0,   \
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                                     \
    }

/* A program that children of the counted program ran, and whose calls were not counted. */
typedef struct hotfn_record_child {
    uint32_t size;          /* sizeof(hotfn_record_child)                  */
    uint32_t process_count; /* processes that ran it                       */
    uint64_t cpu_ns;        /* their processor time                        */
    const char *path;       /* view; the program's file                    */
    const char *file;       /* view; its name without folder               */
} hotfn_record_child;
#define HOTFN_RECORD_CHILD_INIT                                                                    \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_record_child), 0, 0, 0, 0                                           \
    }

/* One row of counts: a thread, or several that used the row one after the other. */
typedef struct hotfn_record_thread {
    uint32_t size;         /* sizeof(hotfn_record_thread)                            */
    uint32_t tid;          /* of the latest thread; 0: its process filtered its system
                            * calls, so it is unknown                                 */
    uint32_t pid;          /* of its process                                         */
    uint32_t thread_count; /* threads that used the row                              */
    uint64_t start_ns;     /* when the latest thread made its first call             */
    uint64_t calls;        /* of all functions                                       */
    char name[16];         /* of the latest thread; ends with NUL                    */
    uint64_t busy_ns;      /* unstable; spent in timed functions, 0 in an untimed run */
    uint64_t cpu_ns;       /* processor time of all threads of the row; 0: unknown   */
    uint64_t waited_ns;    /* unstable; waited in timed functions, not part of busy_ns  */
} hotfn_record_thread;
#define HOTFN_RECORD_THREAD_INIT                                                                   \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_record_thread), 0, 0, 0, 0, 0, "", 0, 0, 0                          \
    }

/* A function that calls another one. */
typedef struct hotfn_record_caller {
    uint32_t size;     /* sizeof(hotfn_record_caller)                                   */
    uint32_t function; /* index; HOTFN_NO_FUNCTION: code that is not timed               */
    uint64_t calls;    /* from it to the other one; an estimate where calls are sampled */
} hotfn_record_caller;
#define HOTFN_RECORD_CALLER_INIT                                                                   \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_record_caller), 0, 0                                                \
    }

/* Static text: "live", "finished", "killed", "merged"; "broken" for any other state.  Any thread.
 * Since 0.1. */
HOTFN_API const char *hotfn_record_get_state_name(uint32_t state);

typedef struct hotfn_record hotfn_record;

/*
 * Open the record at path: a live, finished, killed or broken one, or a symbolic link to it.  The
 * file is copied into memory, so that later changes to it do no harm; a live record is opened again
 * to see newer counts.
 *
 * out   receives a record that the caller owns; untouched on failure.
 * path  borrowed.
 * env   copied, NULL means all defaults; its callbacks are kept.
 * err   borrowed; NULL if only the status matters.
 *
 * HOTFN_OK, HOTFN_E_OPTION, HOTFN_E_IO, HOTFN_E_FORMAT (not a record, or damaged; err has the
 * offset), HOTFN_E_MISMATCH (another version of the format), HOTFN_E_NO_MEMORY.  Any thread.
 * Since 0.1.
 */
HOTFN_API hotfn_status hotfn_record_open(hotfn_record **out, const char *path, const hotfn_env *env,
                                         hotfn_error *err);

/* Free the record and all views into it; NULL does nothing.  No other call on the record at the
 * same time.  Since 0.1. */
HOTFN_API void hotfn_record_close(hotfn_record *record);

/* ---- Reading. */

/* Fill out (borrowed) with the run as a whole.  HOTFN_OK, HOTFN_E_OPTION.  Together with other
 * readers.  Since 0.1. */
HOTFN_API hotfn_status hotfn_record_get_info(const hotfn_record *record, hotfn_record_info *out);

/* Fill out (borrowed) with the module, the function or the thread at index.  The functions of a
 * module follow each other; threads are those of the chosen process and thread.
 * HOTFN_OK, HOTFN_E_NOT_FOUND past the end, HOTFN_E_OPTION.  Together with other readers.  Since
 * 0.1. */
HOTFN_API hotfn_status hotfn_record_get_module(const hotfn_record *record, uint32_t index,
                                               hotfn_record_module *out);
HOTFN_API hotfn_status hotfn_record_get_function(const hotfn_record *record, uint32_t index,
                                                 hotfn_record_function *out);
HOTFN_API hotfn_status hotfn_record_get_thread(const hotfn_record *record, uint32_t index,
                                               hotfn_record_thread *out);

/* The program at position index of those that uncounted children ran, most processor time first;
 * it is known once the run has ended.  HOTFN_OK, HOTFN_E_NOT_FOUND past the end, HOTFN_E_OPTION.
 * Together with other readers.  Since 0.1. */
HOTFN_API hotfn_status hotfn_record_get_child(const hotfn_record *record, uint32_t index,
                                              hotfn_record_child *out);

/* Write the readable name of the function at index into out (borrowed, out_bytes with the NUL): its
 * name by the record's demangler, else the linker's name; "module+0x1234" if it has no name.
 * HOTFN_OK, HOTFN_E_NOT_FOUND past the end, HOTFN_E_LIMIT (out is too small and has the first bytes
 * of the name), HOTFN_E_OPTION.  Together with other readers, if the demangler allows it.
 * Since 0.1. */
HOTFN_API hotfn_status hotfn_record_get_display_name(const hotfn_record *record, uint32_t index,
                                                     char *out, size_t out_bytes);

#define HOTFN_NAMES_LINKER 0u   /* the linker's; "" for a function without a name        */
#define HOTFN_NAMES_READABLE 1u /* those that hotfn_record_get_display_name writes        */

/* Write the names (HOTFN_NAMES_*) of *count functions from index first on into text (borrowed), one
 * directly after the other, each with its NUL; stop before a name that does not fit.  count and
 * text_bytes receive the numbers of names and bytes that were written.  Readable names need 65536
 * bytes of room; a longer one is replaced by the linker's.  HOTFN_OK, HOTFN_E_NOT_FOUND (fewer
 * functions), HOTFN_E_LIMIT (the first name does not fit), HOTFN_E_OPTION.  Together with other
 * readers, if the demangler allows it.  Since 0.1. */
HOTFN_API hotfn_status hotfn_record_get_names(const hotfn_record *record, uint32_t kind,
                                              uint32_t first, uint32_t *count, char *text,
                                              uint64_t *text_bytes);

#define HOTFN_ARRAY_FUNCTIONS 0u /* hotfn_record_function; hotfn/lowlevel/timing.h has the others */

/* Fill an array with the elements first to first + count - 1 of a kind (HOTFN_ARRAY_*), as the call
 * for a single element does: for bindings, where a call costs more than what it looks up.  out
 * (borrowed) has count structs of struct_bytes bytes; their size fields need not be set.  HOTFN_OK,
 * HOTFN_E_NOT_FOUND (fewer elements), HOTFN_E_OPTION (also: no such kind, or struct_bytes is above
 * the size that the library knows).  Together with other readers.  Since 0.1. */
HOTFN_API hotfn_status hotfn_record_get_array(const hotfn_record *record, uint32_t kind,
                                              uint32_t first, uint32_t count, void *out,
                                              uint32_t struct_bytes);

/*
 * Find a function by one of its names: the linker's, with or without its version, or the readable
 * one, with or without its parameters.  A function with exactly the linker's name is preferred.
 *
 * name  borrowed.
 * out   receives the index of the function; untouched on failure.
 * err   borrowed; NULL if only the status matters.
 *
 * HOTFN_OK, HOTFN_E_NOT_FOUND (no function has the name), HOTFN_E_OPTION (the name is ambiguous:
 * err names the modules of two such functions), HOTFN_E_NO_MEMORY.  Together with other readers, if
 * the demangler allows it.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_record_find_function(const hotfn_record *record, const char *name,
                                                  uint32_t *out, hotfn_error *err);

/* Find the function whose code contains rva (an offset from the load address) of the module at
 * index module; a function of unknown size contains its first byte.  out (borrowed) receives its
 * index. HOTFN_OK, HOTFN_E_NOT_FOUND (no such function or module), HOTFN_E_OPTION.  Together with
 * other readers.  Since 0.1. */
HOTFN_API hotfn_status hotfn_record_find_function_at(const hotfn_record *record, uint32_t module,
                                                     uint64_t rva, uint32_t *out);

/* How many functions call the function at index, and the caller at position `position` of them,
 * most calls first.  Only a run with --mode time and without --flat records callers: the count is 0
 * for other runs, and past the end.  HOTFN_OK, HOTFN_E_NOT_FOUND past the end, HOTFN_E_OPTION.
 * Together with other readers.  Since 0.1. */
HOTFN_API uint32_t hotfn_record_get_caller_count(const hotfn_record *record, uint32_t index);
HOTFN_API hotfn_status hotfn_record_get_caller(const hotfn_record *record, uint32_t index,
                                               uint32_t position, hotfn_record_caller *out);

/* ---- Choosing and sorting. */

/* From now on show only rows of this process, or of this thread: calls, times, callers, threads.  0
 * shows all again.  A row that several threads used belongs to the latest one.
 * HOTFN_OK, HOTFN_E_NOT_FOUND (no row has both numbers; the former choice stays), HOTFN_E_NO_MEMORY
 * (choose again, or close the record), HOTFN_E_OPTION.  No other call on the record at the same
 * time.  Since 0.1. */
HOTFN_API hotfn_status hotfn_record_choose_process(hotfn_record *record, uint32_t pid);
HOTFN_API hotfn_status hotfn_record_choose_thread(hotfn_record *record, uint32_t tid);

#define HOTFN_BY_DEFAULT 0u /* self time in a timed run, else calls               */
#define HOTFN_BY_CALLS 1u
#define HOTFN_BY_SELF 2u  /* time without the time of timed callees             */
#define HOTFN_BY_TOTAL 3u /* time with callees                                  */
#define HOTFN_BY_MAX 4u   /* the longest call                                   */
#define HOTFN_BY_ALLOC 5u /* bytes that the function itself allocated           */
#define HOTFN_BY_NAME 6u  /* by the linker's name, ascending; all others descend */

/* Sort the functions by a key, HOTFN_BY_*; functions with equal keys are sorted by calls and then
 * by name.  Functions that were not called come last, and of these the ones that were not counted.
 * order (borrowed) receives the first `capacity` indices; if the record has fewer functions, the
 * other elements become HOTFN_NO_FUNCTION.
 * HOTFN_OK, HOTFN_E_UNSUPPORTED (the run did not record this key), HOTFN_E_OPTION (no such key),
 * HOTFN_E_NO_MEMORY.  Together with other readers.  Since 0.1. */
HOTFN_API hotfn_status hotfn_record_sort(const hotfn_record *record, uint32_t by, uint32_t *order,
                                         uint32_t capacity);

/* ---- Writing new records.  These calls do not need an open record and may run in any thread. */

/*
 * Write what can be read of a damaged or unfinished record as a new, finished record.
 *
 * from, to    borrowed; the same path may be both.
 * lost        borrowed, or NULL; receives what could not be saved, "" if nothing was lost.
 * lost_bytes  size of lost with the NUL; a longer text is cut.  The new record keeps the whole
 *             text (hotfn_record_info.repaired).
 *
 * HOTFN_OK, HOTFN_E_OPTION, HOTFN_E_IO, HOTFN_E_FORMAT (nothing can be saved), HOTFN_E_MISMATCH
 * (another version of the format), HOTFN_E_NO_MEMORY.  Any thread.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_record_repair(const char *from, const char *to, char *lost,
                                           size_t lost_bytes, const hotfn_env *env,
                                           hotfn_error *err);

#define HOTFN_MERGE_SUM 0u  /* a row for each run; call trees, histograms and slow calls too */
#define HOTFN_MERGE_MEAN 1u /* one row; a function that a run lacks has 0 calls in it        */
#define HOTFN_MERGE_MIN 2u  /* one row; over the runs that have the function                 */
#define HOTFN_MERGE_MAX 3u
#define HOTFN_MERGE_MEDIAN                                                                         \
    4u /* one row; a function that a run lacks has 0 calls in it; of an
                               * even number of runs, the mean of the two middle values         */
#define HOTFN_MERGE_P95                                                                            \
    5u /* the same, but the smallest value that at least 95 of 100 runs do
                               * not exceed                                                     */
#define HOTFN_MERGE_MEAN_CALLED 6u /* one row; the mean over the runs that called the function  */

/*
 * Write several records as one.  Functions with the same image id and RVA are one function; where
 * an image has no id, the path of the module identifies it.  Times are merged if all runs were
 * timed, as nanoseconds without the cost of the hooks.
 *
 * paths  borrowed; count records, 1 to 4096.  to may be one of them.
 * mode   HOTFN_MERGE_*.
 *
 * HOTFN_OK, HOTFN_E_OPTION (no record or no such mode), the statuses of hotfn_record_open,
 * HOTFN_E_LIMIT (more functions than a record holds).  Any thread.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_record_merge(const char *const *paths, uint32_t count, const char *to,
                                          uint32_t mode, const hotfn_env *env, hotfn_error *err);

#ifdef __cplusplus
}
#endif

#endif
