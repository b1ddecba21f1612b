/* SPDX-License-Identifier: MIT */
/*
 * Sessions and frames for a program that is not linked with libhotfn, for example a game that only
 * some testers run with libhotfn.  Include this header instead of <hotfn.h>, and link with -ldl if
 * the C library needs that for dlopen.  Only the calls that are redefined below are available.
 *
 * The first call loads $HOTFN_LIBRARY if that is set, otherwise libhotfn.so.0 (Windows: hotfn.dll)
 * by the system's search for libraries.  If the library is not found, no call has an effect: calls
 * with a status return HOTFN_E_NOT_FOUND and write a text to err, and others return 0 or "".
 *
 * Thread safety is that of the calls themselves, except that no other thread may make a call before
 * the first one has returned.
 */
#ifndef HOTFN_OPTIONAL_H
#define HOTFN_OPTIONAL_H

#include <hotfn/frame.h>
#include <hotfn/session.h>
#include <hotfn/zone.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

static inline void *hotfn_optional_load(void)
{
    static void *library;
    static int was_tried;

    if (!was_tried) {
        const char *path = getenv("HOTFN_LIBRARY");

        was_tried = 1;
#if defined(_WIN32)
        library = (void *)LoadLibraryA(path && path[0] ? path : "hotfn.dll");
#else
        library = dlopen(path && path[0] ? path : "libhotfn.so.0", RTLD_NOW | RTLD_LOCAL);
#endif
    }
    return library;
}

/* Store the address of the library's function `name` in *call, which is a pointer to a function.
 * Returns 0 if there is no library, or if it is too old to have the function. */
static inline int hotfn_optional_find(const char *name, void *call)
{
    void *library = hotfn_optional_load();
#if defined(_WIN32)
    FARPROC found = library ? GetProcAddress((HMODULE)library, name) : NULL;
#else
    void *found = library ? dlsym(library, name) : NULL;
#endif

    memcpy(call, &found, sizeof found); /* ISO C forbids a cast */
    return found != NULL;
}

/* Whether the library is loaded; the first call tries to load it. */
static inline int hotfn_optional_is_present(void)
{
    return hotfn_optional_load() != NULL;
}

static inline hotfn_status hotfn_optional_refuse(hotfn_error *err)
{
    const char *text = "libhotfn is not installed, or is older than this program: install it, or "
                       "set HOTFN_LIBRARY to its path";

    if (err) {
        err->status = HOTFN_E_NOT_FOUND;
        err->offset = HOTFN_NO_OFFSET;
        err->file[0] = 0;
        memcpy(err->text, text, strlen(text) + 1);
    }
    return HOTFN_E_NOT_FOUND;
}

#define HOTFN_OPTIONAL(name, parameters, arguments, err)                                           \
    static inline hotfn_status name##_optional parameters                                          \
    {                                                                                              \
        static hotfn_status(*call) parameters;                                                     \
        return call || hotfn_optional_find(#name, (void *)&call) ? call arguments                  \
                                                                 : hotfn_optional_refuse(err);     \
    }
#define HOTFN_OPTIONAL_VOID(name, parameters, arguments)                                           \
    static inline void name##_optional parameters                                                  \
    {                                                                                              \
        static void(*call) parameters;                                                             \
        if (call || hotfn_optional_find(#name, (void *)&call)) {                                   \
            call arguments;                                                                        \
        }                                                                                          \
    }

HOTFN_OPTIONAL(hotfn_session_create,
               (hotfn_session * *out, const hotfn_session_options *options, const hotfn_env *env,
                hotfn_error *err),
               (out, options, env, err), err)
HOTFN_OPTIONAL(hotfn_session_start, (hotfn_session * session, hotfn_error *err), (session, err),
               err)
HOTFN_OPTIONAL(hotfn_session_stop, (hotfn_session * session, hotfn_error *err), (session, err), err)
HOTFN_OPTIONAL(hotfn_session_switch_group,
               (hotfn_session * session, const char *name, uint32_t is_on, hotfn_error *err),
               (session, name, is_on, err), err)
HOTFN_OPTIONAL(hotfn_session_get_stats, (const hotfn_session *session, hotfn_session_stats *out),
               (session, out), NULL)
HOTFN_OPTIONAL(hotfn_session_save, (hotfn_session * session, const char *path, hotfn_error *err),
               (session, path, err), err)
HOTFN_OPTIONAL_VOID(hotfn_session_destroy, (hotfn_session * session), (session))
HOTFN_OPTIONAL_VOID(hotfn_zone_begin,
                    (hotfn_zone * zone, const hotfn_session *session, const char *name),
                    (zone, session, name))
HOTFN_OPTIONAL_VOID(hotfn_zone_end, (hotfn_zone * zone), (zone))
HOTFN_OPTIONAL(hotfn_zone_add_message,
               (const hotfn_session *session, const char *text, hotfn_error *err),
               (session, text, err), err)
HOTFN_OPTIONAL(hotfn_thread_set_name, (const char *name, hotfn_error *err), (name, err), err)
HOTFN_OPTIONAL(hotfn_frame_create,
               (hotfn_frame * *out, const hotfn_session *session,
                const hotfn_frame_options *options, const hotfn_env *env, hotfn_error *err),
               (out, session, options, env, err), err)
HOTFN_OPTIONAL(hotfn_frame_next, (hotfn_frame * frame, hotfn_frame_info *out, hotfn_error *err),
               (frame, out, err), err)
HOTFN_OPTIONAL(hotfn_frame_get_function,
               (const hotfn_frame *frame, uint32_t index, hotfn_record_function *function,
                hotfn_record_module *module),
               (frame, index, function, module), NULL)
HOTFN_OPTIONAL(hotfn_frame_get_times,
               (const hotfn_frame *frame, uint32_t index, hotfn_frame_times *out),
               (frame, index, out), NULL)
HOTFN_OPTIONAL(hotfn_frame_get_thread_times,
               (const hotfn_frame *frame, uint32_t index, uint32_t position,
                hotfn_frame_times *out),
               (frame, index, position, out), NULL)
HOTFN_OPTIONAL(hotfn_frame_save, (const hotfn_frame *frame, const char *path, hotfn_error *err),
               (frame, path, err), err)
HOTFN_OPTIONAL_VOID(hotfn_frame_destroy, (hotfn_frame * frame), (frame))

static inline size_t hotfn_demangle_optional(const char *mangled, char *out, size_t out_bytes)
{
    size_t (*call)(const char *, char *, size_t);

    return hotfn_optional_find("hotfn_demangle", (void *)&call) ? call(mangled, out, out_bytes) : 0;
}

static inline const char *hotfn_status_get_name_optional(hotfn_status status)
{
    const char *(*call)(hotfn_status);

    return hotfn_optional_find("hotfn_status_get_name", (void *)&call) ? call(status) : "";
}

#undef HOTFN_OPTIONAL
#undef HOTFN_OPTIONAL_VOID

/* The program makes these calls by their usual names. */
#define hotfn_session_create hotfn_session_create_optional
#define hotfn_session_start hotfn_session_start_optional
#define hotfn_session_stop hotfn_session_stop_optional
#define hotfn_session_switch_group hotfn_session_switch_group_optional
#define hotfn_session_get_stats hotfn_session_get_stats_optional
#define hotfn_session_save hotfn_session_save_optional
#define hotfn_session_destroy hotfn_session_destroy_optional
#define hotfn_zone_begin hotfn_zone_begin_optional
#define hotfn_zone_end hotfn_zone_end_optional
#define hotfn_zone_add_message hotfn_zone_add_message_optional
#define hotfn_thread_set_name hotfn_thread_set_name_optional
#define hotfn_frame_create hotfn_frame_create_optional
#define hotfn_frame_next hotfn_frame_next_optional
#define hotfn_frame_get_function hotfn_frame_get_function_optional
#define hotfn_frame_get_times hotfn_frame_get_times_optional
#define hotfn_frame_get_thread_times hotfn_frame_get_thread_times_optional
#define hotfn_frame_save hotfn_frame_save_optional
#define hotfn_frame_destroy hotfn_frame_destroy_optional
#define hotfn_demangle hotfn_demangle_optional
#define hotfn_status_get_name hotfn_status_get_name_optional

#ifdef __cplusplus
}
HOTFN_DEFINE_ZONE_CLASS
#endif

#endif
