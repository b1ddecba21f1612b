/* SPDX-License-Identifier: MIT */
/* Frames: the hot functions of a stretch of time, for example between two frames of a game, and
 * the frames that took too long.  A program measures itself while its session runs. */
#ifndef HOTFN_FRAME_H
#define HOTFN_FRAME_H

#include <hotfn/session.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hotfn_frame hotfn_frame;

/* Also measure the times of the functions in each frame, which the session must time.  Each frame
 * then copies the counts and times of the session, as frames with spikes do: 0.1 ms for 10
 * functions in 4 threads, where a frame without them takes 2 us; more with more functions and
 * threads. */
#define HOTFN_FRAME_TIMES 1u

typedef struct hotfn_frame_options {
    uint32_t size;      /* sizeof(hotfn_frame_options)                                     */
    uint32_t flags;     /* HOTFN_FRAME_TIMES [none]                                        */
    uint32_t top_count; /* functions to list, the first ones by `by` [20; UINT32_MAX: all] */
    uint32_t by;        /* HOTFN_BY_CALLS; with HOTFN_FRAME_TIMES also _SELF and _TOTAL [calls] */
    uint64_t spike_ns;  /* a frame that takes longer is a spike [none]                     */
    uint32_t spike_percent; /* so is a frame that takes more than this share of the median of
                               the up to 64 frames before it, once there are 16; 300 is three
                               times the median [none]                                     */
    uint32_t reserved;      /* 0                                                           */
} hotfn_frame_options;
#define HOTFN_FRAME_OPTIONS_INIT                                                                   \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_frame_options), 0, 0, 0, 0, 0, 0                                    \
    }

/* One frame. */
typedef struct hotfn_frame_info {
    uint32_t size;         /* sizeof(hotfn_frame_info)                             */
    uint32_t top_count;    /* functions that hotfn_frame_get_function lists        */
    uint32_t called_count; /* functions called at least once                       */
    uint32_t is_spike;     /* 1: it took too long; hotfn_frame_save writes it      */
    uint64_t calls;        /* of all functions                                     */
    uint64_t number;       /* of the frame, from 0                                 */
    uint64_t duration_ns;  /* from its begin to its end                            */
    uint64_t median_ns;    /* of the up to 64 frames before it; 0: none            */
    uint64_t cpu_ns;       /* processor time of all threads; 0: unknown            */
} hotfn_frame_info;
#define HOTFN_FRAME_INFO_INIT                                                                      \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_frame_info), 0, 0, 0, 0, 0, 0, 0, 0                                 \
    }

/* The times of a function in a frame, of all threads or of one. */
typedef struct hotfn_frame_times {
    uint32_t size;         /* sizeof(hotfn_frame_times)                             */
    uint32_t thread_count; /* threads in which it was timed; of one: 1              */
    uint64_t timed_calls;  /* that ended in the frame, or are open at its end       */
    uint64_t total_ns;     /* with the functions that it called                     */
    uint64_t self_ns;      /* without those that are timed                          */
    uint32_t tid;          /* of the thread; of all threads: 0                      */
    char name[16];         /* of the thread, with a NUL; "" if it has none          */
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
 *
 * HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_OPTION, HOTFN_E_UNSUPPORTED (HOTFN_FRAME_TIMES, but the
 * session counts only, or times a sample), HOTFN_E_IO.  Any thread; each frame is used by one
 * thread at a time.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_frame_create(hotfn_frame **out, const hotfn_session *session,
                                          const hotfn_frame_options *options, const hotfn_env *env,
                                          hotfn_error *err);
/*
 * End the frame and begin the next one, while the session runs or after it was stopped.  A call in
 * progress belongs to one of the two frames.  Without times and spikes this reads 8 bytes per
 * function and thread, and allocates only if modules were added since the last frame.
 *
 * out  receives the totals of the frame that ended; may be NULL.
 *
 * HOTFN_OK, HOTFN_E_NO_MEMORY or HOTFN_E_IO (the frame continues), HOTFN_E_OPTION.  One thread at a
 * time.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_frame_next(hotfn_frame *frame, hotfn_frame_info *out,
                                        hotfn_error *err);
/*
 * Get a function of the frame that ended last; index 0 is the first one by the options' key.
 * `calls` is that of the frame alone.  function or module may be NULL; their texts are views into
 * the session; hotfn_demangle makes a readable name.
 *
 * HOTFN_OK, HOTFN_E_NOT_FOUND (index is not below top_count), HOTFN_E_OPTION.  One thread at a
 * time.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_frame_get_function(const hotfn_frame *frame, uint32_t index,
                                                hotfn_record_function *function,
                                                hotfn_record_module *module);
/*
 * Get the times of that function in the frame that ended last (HOTFN_FRAME_TIMES): of all threads,
 * or of the thread at `position` of those in which it was timed.
 *
 * HOTFN_OK, HOTFN_E_NOT_FOUND (index or position is too large), HOTFN_E_UNSUPPORTED (without
 * HOTFN_FRAME_TIMES), HOTFN_E_OPTION.  One thread at a time.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_frame_get_times(const hotfn_frame *frame, uint32_t index,
                                             hotfn_frame_times *out);
HOTFN_API hotfn_status hotfn_frame_get_thread_times(const hotfn_frame *frame, uint32_t index,
                                                    uint32_t position, hotfn_frame_times *out);
/*
 * Write the frame that ended last to path as a record of its own, with counts, threads, and, if the
 * session times calls, times, call tree and slow calls.
 *
 * HOTFN_OK, HOTFN_E_STATE (no frame has ended, or neither HOTFN_FRAME_TIMES nor a spike is set in
 * the options, so that the begin of the frame was not kept), HOTFN_E_IO, HOTFN_E_NO_MEMORY,
 * HOTFN_E_FORMAT.  One thread at a time.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_frame_save(const hotfn_frame *frame, const char *path,
                                        hotfn_error *err);
/* Destroy the frame.  NULL is fine.  One thread at a time.  Since 0.1. */
HOTFN_API void hotfn_frame_destroy(hotfn_frame *frame);

#ifdef __cplusplus
}
#endif

#endif
