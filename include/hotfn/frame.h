/* SPDX-License-Identifier: MIT */
/* Frames: the hot functions of each period that a program delimits, for example one drawn picture
 * of a game, and the frames that took too long.  The program measures itself with a session. */
#ifndef HOTFN_FRAME_H
#define HOTFN_FRAME_H

#include <hotfn/session.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hotfn_frame hotfn_frame;

/* Also measure the times of the functions in each frame.  The session must time every call.  With
 * this flag, or with a limit for spikes, each hotfn_frame_next copies the counts and times of the
 * session.  For 10 functions in 4 threads it then takes 0.1 ms instead of 2 us. */
#define HOTFN_FRAME_TIMES 1u

typedef struct hotfn_frame_options {
    uint32_t size;          /* sizeof(hotfn_frame_options)                                     */
    uint32_t flags;         /* HOTFN_FRAME_TIMES [none]                                        */
    uint32_t top_count;     /* how many functions to list [20; UINT32_MAX: all]                */
    uint32_t by;            /* sort key of the list, highest first: HOTFN_BY_CALLS; with
                               HOTFN_FRAME_TIMES also _SELF and _TOTAL [calls]             */
    uint64_t spike_ns;      /* a frame that takes longer is a spike [no limit]                 */
    uint32_t spike_percent; /* a frame that takes longer than this share of the median frame is
                               a spike too: 300 is three times the median.  The median is that
                               of the latest 64 frames; it needs at least 16 [no limit]    */
    uint32_t reserved;      /* 0                                                           */
} hotfn_frame_options;
#define HOTFN_FRAME_OPTIONS_INIT                                                                   \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_frame_options), 0, 0, 0, 0, 0, 0                                    \
    }

/* A frame that has ended. */
typedef struct hotfn_frame_info {
    uint32_t size;         /* sizeof(hotfn_frame_info)                             */
    uint32_t top_count;    /* number of functions that hotfn_frame_get_function lists */
    uint32_t called_count; /* number of functions that were called                 */
    uint32_t is_spike;     /* 1: it took too long; hotfn_frame_save can write it   */
    uint64_t calls;        /* sum over all functions                               */
    uint64_t number;       /* 0 for the first frame                                */
    uint64_t duration_ns;  /* from its beginning to its end                        */
    uint64_t median_ns;    /* median duration of the 64 frames before it, or of as many as there
                              are; 0 for the first frame                           */
    uint64_t cpu_ns;       /* processor time of all threads; 0: unknown            */
} hotfn_frame_info;
#define HOTFN_FRAME_INFO_INIT                                                                      \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_frame_info), 0, 0, 0, 0, 0, 0, 0, 0                                 \
    }

/* The times of a function in a frame, in all threads or in one thread.  A call that runs in several
 * frames has a part of its time in each of them. */
typedef struct hotfn_frame_times {
    uint32_t size;         /* sizeof(hotfn_frame_times)                             */
    uint32_t thread_count; /* number of threads in which it was timed               */
    uint64_t timed_calls;  /* timed calls that began in the frame                   */
    uint64_t total_ns;     /* including the functions that it called                */
    uint64_t self_ns;      /* without the timed functions that it called            */
    uint32_t tid;          /* id of the thread; 0 for all threads                   */
    char name[16];         /* name of the thread; "" for all, or if it has none     */
    uint32_t reserved;     /* 0                                                     */
} hotfn_frame_times;
#define HOTFN_FRAME_TIMES_INIT                                                                     \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_frame_times), 0, 0, 0, 0, 0, "", 0                                  \
    }

/*
 * Begin a frame.  Several frames of different lengths may exist at the same time.
 *
 * out      receives a frame that the caller owns; untouched on failure.
 * session  kept; once it is destroyed, the frame may only be destroyed.
 * options  borrowed; NULL means all defaults.
 * env      copied; NULL means all defaults.
 *
 * HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_OPTION, HOTFN_E_UNSUPPORTED (HOTFN_FRAME_TIMES, but the
 * session only counts calls, or times only a sample of them), HOTFN_E_IO, HOTFN_E_FORMAT (the
 * record's memory was overwritten).  Any thread; each frame is used by one thread at a time.  Since
 * 0.1.
 */
HOTFN_API hotfn_status hotfn_frame_create(hotfn_frame **out, const hotfn_session *session,
                                          const hotfn_frame_options *options, const hotfn_env *env,
                                          hotfn_error *err);
/*
 * End the frame and begin the next one, while the session runs or after it was stopped.  A call
 * that another thread makes meanwhile is counted in one of the two frames.  Without times and
 * spikes, this reads 8 bytes per function and thread, and allocates memory only if modules were
 * added since the last frame.
 *
 * out  receives the totals of the frame that ended; may be NULL.
 *
 * HOTFN_OK; HOTFN_E_NO_MEMORY, HOTFN_E_IO, HOTFN_E_FORMAT (the record's memory was overwritten):
 * the frame has not ended; HOTFN_E_OPTION.  One thread at a time.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_frame_next(hotfn_frame *frame, hotfn_frame_info *out,
                                        hotfn_error *err);
/*
 * Get a function of the frame that ended last.  Index 0 is the function with the most calls or time
 * (see `by` in the options).  function->calls is the number of calls in this frame.  function and
 * module may be NULL; their strings are views into the session.  hotfn_demangle makes names
 * readable.
 *
 * HOTFN_OK, HOTFN_E_NOT_FOUND (index is not below top_count), HOTFN_E_OPTION.  One thread at a
 * time.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_frame_get_function(const hotfn_frame *frame, uint32_t index,
                                                hotfn_record_function *function,
                                                hotfn_record_module *module);
/*
 * Get the times of the function at index (as for hotfn_frame_get_function): in all threads, or in
 * one of the threads in which it was timed, which `position` selects (0 ... thread_count - 1).
 *
 * HOTFN_OK, HOTFN_E_NOT_FOUND (index or position is too large), HOTFN_E_UNSUPPORTED (the frame was
 * created without HOTFN_FRAME_TIMES), HOTFN_E_OPTION.  One thread at a time.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_frame_get_times(const hotfn_frame *frame, uint32_t index,
                                             hotfn_frame_times *out);
HOTFN_API hotfn_status hotfn_frame_get_thread_times(const hotfn_frame *frame, uint32_t index,
                                                    uint32_t position, hotfn_frame_times *out);
/*
 * Write the frame that ended last to path as a record of its own.  It has counts and threads, and,
 * if the session times calls, also times, call tree and slow calls.
 * The time of writing, often some milliseconds, belongs to the frame that has begun.  If a program
 * has short frames and saves each spike, that frame is then a spike too; the program should end it
 * with hotfn_frame_next, and ignore it, before it goes on.
 *
 * HOTFN_OK, HOTFN_E_STATE (no frame has ended, or the options set none of HOTFN_FRAME_TIMES,
 * spike_ns and spike_percent, without which the counts at the beginning are not kept), HOTFN_E_IO,
 * HOTFN_E_NO_MEMORY, HOTFN_E_FORMAT.  One thread at a time.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_frame_save(const hotfn_frame *frame, const char *path,
                                        hotfn_error *err);
/* Destroy the frame.  NULL is fine.  One thread at a time.  Since 0.1. */
HOTFN_API void hotfn_frame_destroy(hotfn_frame *frame);

#ifdef __cplusplus
}
#endif

#endif
