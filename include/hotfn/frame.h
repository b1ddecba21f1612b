/* SPDX-License-Identifier: MIT */
/* Frames: the functions called most in a stretch of time, for example between two frames of a game.
 * A program measures itself while its session runs; no record is made and no memory is allocated
 * per frame. */
#ifndef HOTFN_FRAME_H
#define HOTFN_FRAME_H

#include <hotfn/session.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hotfn_frame hotfn_frame;

/* The calls of one frame. */
typedef struct hotfn_frame_info {
    uint32_t size;         /* sizeof(hotfn_frame_info)                      */
    uint32_t top_count;    /* functions that hotfn_frame_get_function lists */
    uint32_t called_count; /* functions called at least once                */
    uint32_t reserved;
    uint64_t calls; /* of all functions */
} hotfn_frame_info;
#define HOTFN_FRAME_INFO_INIT                                                                      \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_frame_info), 0, 0, 0, 0                                             \
    }

/*
 * Begin a frame.  Several frames of different lengths may exist at the same time.
 *
 * out        receives a frame that the caller owns; untouched on failure.
 * session    kept; once it is destroyed, the frame may only be destroyed.
 * top_count  functions to list, the most called ones [20; UINT32_MAX: all].
 *
 * HOTFN_OK, HOTFN_E_NO_MEMORY.  Any thread; each frame is used by one thread at a time.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_frame_create(hotfn_frame **out, const hotfn_session *session,
                                          uint32_t top_count, const hotfn_env *env,
                                          hotfn_error *err);
/*
 * End the frame and begin the next one, while the session runs or after it was stopped.  A call in
 * progress belongs to one of the two frames.  Reads 8 bytes per function and thread; allocates only
 * if modules were added since the last frame.
 *
 * out  receives the totals of the frame that ended; may be NULL.
 *
 * HOTFN_OK, HOTFN_E_NO_MEMORY (the frame continues), HOTFN_E_OPTION.  One thread at a time.  Since
 * 0.1.
 */
HOTFN_API hotfn_status hotfn_frame_next(hotfn_frame *frame, hotfn_frame_info *out,
                                        hotfn_error *err);
/*
 * Get a function of the frame that ended last; index 0 is the one called most.  `calls` is that of
 * the frame alone.  function or module may be NULL; their texts are views into the session.
 *
 * HOTFN_OK, HOTFN_E_NOT_FOUND (index is not below top_count), HOTFN_E_OPTION.  One thread at a
 * time.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_frame_get_function(const hotfn_frame *frame, uint32_t index,
                                                hotfn_record_function *function,
                                                hotfn_record_module *module);
/* Destroy the frame.  NULL is fine.  One thread at a time.  Since 0.1. */
HOTFN_API void hotfn_frame_destroy(hotfn_frame *frame);

#ifdef __cplusplus
}
#endif

#endif
