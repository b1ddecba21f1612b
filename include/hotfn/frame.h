/* SPDX-License-Identifier: MIT */
/* Windows: which functions were called most since the last look.  For a program that looks at itself
 * while it runs, once a frame for instance: no record is made of it, nothing is allocated per look. */
#ifndef HOTFN_FRAME_H
#define HOTFN_FRAME_H

#include <hotfn/session.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hotfn_frame hotfn_frame;

/* What was called in one window. */
typedef struct hotfn_frame_info {
    uint32_t size;         /* sizeof(hotfn_frame_info)                     */
    uint32_t top_count;    /* ranks that hotfn_frame_get_function answers           */
    uint32_t called_count; /* functions that were called at all             */
    uint32_t reserved;
    uint64_t calls; /* of all functions                              */
} hotfn_frame_info;
#define HOTFN_FRAME_INFO_INIT                                                                      \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_frame_info), 0, 0, 0, 0                                             \
    }

/*
 * Begin a window now; it keeps the top_count functions that were called most [20; UINT32_MAX: all].  The
 * session is kept: once it is destroyed, a window may only be destroyed too.  There may be several, of
 * different lengths; each is used by one thread at a time.  HOTFN_OK, HOTFN_E_NO_MEMORY.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_frame_create(hotfn_frame **out, const hotfn_session *session,
                                          uint32_t top_count, const hotfn_env *env,
                                          hotfn_error *err);
/*
 * End the window, and begin the next one.  Calls in flight are in this one or the next, none in both.  Any
 * thread, while the session runs or after it was stopped.  Reads 8 bytes a function and thread; allocates
 * only if modules came since the last look.  out may be NULL.
 * HOTFN_OK, HOTFN_E_NO_MEMORY (the window goes on), HOTFN_E_OPTION.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_frame_next(hotfn_frame *window, hotfn_frame_info *out,
                                        hotfn_error *err);
/*
 * The function called most (rank 0), second most ... in the window that ended last: calls is of that window
 * alone.  Texts are views, good while the session is.  function or module may be NULL.
 * HOTFN_OK, HOTFN_E_NOT_FOUND past top_count, HOTFN_E_OPTION.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_frame_get_function(const hotfn_frame *window, uint32_t rank,
                                                hotfn_record_function *function,
                                                hotfn_record_module *module);
/* NULL is fine.  Since 0.1. */
HOTFN_API void hotfn_frame_destroy(hotfn_frame *window);

#ifdef __cplusplus
}
#endif

#endif
