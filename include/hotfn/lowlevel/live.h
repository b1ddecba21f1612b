/* SPDX-License-Identifier: MIT */
/* The live record: shared memory that a target counts into while a launcher watches it. */
#ifndef HOTFN_LOWLEVEL_LIVE_H
#define HOTFN_LOWLEVEL_LIVE_H

#include <hotfn/lowlevel/counters.h>
#include <hotfn/record.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Writing: the live record. */

typedef struct hotfn_live hotfn_live;

typedef struct hotfn_live_options {
    uint32_t size;  /* sizeof(hotfn_live_options)                                             */
    uint32_t flags; /* 0 */
    const char *durable_path; /* map this .hfr itself [a sealed memfd]                       */
    const char *command;
    const char *directory;
    uint32_t slot_capacity;   /* functions that can ever be counted [65536]                */
    uint32_t thread_capacity; /* rows [4096 within 16 GiB of addresses; durable: 64 MiB on disk] */
    uint32_t function_capacity;  /* functions that can ever be listed [slot_capacity * 2]      */
    uint32_t module_capacity;    /* [1024] */
    uint64_t string_bytes;       /* room for names [256 MiB, sparse]                           */
    uint32_t timing;             /* HOTFN_TIMING_* of hotfn/timing.h [0: the run is not timed]  */
    uint32_t sample_mean;        /* with HOTFN_TIMING_SAMPLED                                   */
    uint64_t slow_ns;            /* with HOTFN_TIMING_SLOW                                      */
    uint32_t node_capacity;      /* places in call trees [2^20, sparse; durable: 2^16]          */
    uint32_t histogram_capacity; /* of a function in a thread [2^14, sparse; durable: 2^11]    */
    uint32_t slow_capacity;      /* slow calls that are kept [4096]                             */
    uint32_t event_capacity;     /* events of each thread that are kept, a power of two [2^16]  */
    uint32_t budget_ppm;         /* what hooks may take of the time, hotfn/budget.h [no budget]  */
    uint32_t reserved;
} hotfn_live_options;
#define HOTFN_LIVE_OPTIONS_INIT                                                                    \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_live_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

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
                                             const hotfn_record_function *functions,
                                             uint32_t *index, hotfn_error *err);
/* Written by whichever side knows: flags replace the module's, load_base if not 0, note if not NULL
 * (at most 255 bytes are kept).  HOTFN_OK, HOTFN_E_NOT_FOUND (no such module).  Since 0.1. */
HOTFN_API hotfn_status hotfn_live_set_module(hotfn_live *live, uint32_t module, uint32_t flags,
                                             uint64_t load_base, const char *note);
/* Set a function's state and reason (a HOTFN_REASON_* number, whose words hotfn_live_set_reason stored), and where
 * it stands, bytes from the entry.  Any process that joined.  HOTFN_OK, HOTFN_E_NOT_FOUND (no such module or
 * function), HOTFN_E_LIMIT (reason above 255).  Since 0.1. */
HOTFN_API hotfn_status hotfn_live_set_function(hotfn_live *live, uint32_t module,
                                               uint32_t function_index, uint32_t state,
                                               uint32_t reason, uint32_t reason_offset);
/* Store the words (copied) for a numbered reason, so that a record explains itself.  HOTFN_OK, HOTFN_E_STATE (not by
 * who made the record), HOTFN_E_LIMIT (reason 0 or above 255, no room for names), HOTFN_E_IO (durable: the disk is
 * full).  Since 0.1. */
HOTFN_API hotfn_status hotfn_live_set_reason(hotfn_live *live, uint32_t reason, const char *name,
                                             const char *text);
/* slots[i] of the module's function i (a view of module.function_count words).  Since 0.1. */
HOTFN_API const uint32_t *hotfn_live_slots(const hotfn_live *live, uint32_t module);
/* The name of the module's function i (a view), NULL past the end.  Since 0.1. */
HOTFN_API const char *hotfn_live_function_name(const hotfn_live *live, uint32_t module,
                                               uint32_t function_index);
/* How many modules were added so far, and one of them, for any process that joined; the texts are views.  HOTFN_OK,
 * HOTFN_E_NOT_FOUND past the end, HOTFN_E_OPTION.  Since 0.1. */
HOTFN_API uint32_t hotfn_live_module_count(const hotfn_live *live);
HOTFN_API hotfn_status hotfn_live_get_module(const hotfn_live *live, uint32_t module,
                                             hotfn_record_module *out);
/* The process that the record is of, for hotfn_record_info.  Since 0.1. */
HOTFN_API void hotfn_live_set_pid(hotfn_live *live, uint32_t pid);

/* A copy of all counters and times at one moment, for windows.  Owned by the caller: hotfn_snapshot_destroy.
 * HOTFN_OK, HOTFN_E_STATE (not by who made the record), HOTFN_E_NO_MEMORY, HOTFN_E_IO, HOTFN_E_FORMAT (the times'
 * header was overwritten).  Since 0.1. */
typedef struct hotfn_snapshot hotfn_snapshot;
HOTFN_API hotfn_status hotfn_live_snapshot(hotfn_snapshot **out, const hotfn_live *live,
                                           hotfn_error *err);
/* NULL is fine.  Since 0.1. */
HOTFN_API void hotfn_snapshot_destroy(hotfn_snapshot *snapshot);
/* When it was taken: nanoseconds since 1970 (CLOCK_REALTIME).  Since 0.1. */
HOTFN_API uint64_t hotfn_snapshot_get_time_ns(const hotfn_snapshot *snapshot);

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

#ifdef __cplusplus
}
#endif

#endif
