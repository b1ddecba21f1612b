/* SPDX-License-Identifier: MIT */
/* Zones and messages: parts of a program that it names itself.  They are counted and timed like
 * functions, and appear in the same call tree, in a module that is called "zones".  They belong to
 * a session of the program itself: records of `hotfn run` and `hotfn attach` have no zones. */
#ifndef HOTFN_ZONE_H
#define HOTFN_ZONE_H

#include <hotfn/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An open zone.  The program provides its memory, and does not read it. */
typedef struct hotfn_zone {
    uint64_t words[6];
} hotfn_zone;

/*
 * Begin a zone in the calling thread, as if a function with this name were called.  Functions that
 * are called until its end are below it in the call tree.  If the session does not run, has no room
 * for zones (HOTFN_SESSION_ZONES), or no room for this name, the zone is not recorded.  In a
 * session that times a sample of the calls, zones are only counted.
 *
 * zone     receives the open zone; hotfn_zone_end needs it.
 * session  NULL: the zone is not recorded.
 * name     borrowed; a zone is identified by its name.
 *
 * Any thread, also in a signal handler.  Since 0.1.
 */
HOTFN_API void hotfn_zone_begin(hotfn_zone *zone, const hotfn_session *session, const char *name);
/* End a zone, in the thread that began it and before the function returns that began it.  Zones end
 * in the opposite order of their beginnings; if an outer zone or function ends first, the inner
 * zones end with it.  NULL is fine.  Any thread, also in a signal handler.  Since 0.1. */
HOTFN_API void hotfn_zone_end(hotfn_zone *zone);

/*
 * Record a message, as if a function that is called "message: TEXT" were called and returned at
 * once.  Its calls count how often it was recorded at this place of the call tree.
 *
 * session  NULL: nothing is recorded.
 * text     borrowed; the room for names is limited, so a text should not contain numbers that
 *          change.
 *
 * HOTFN_OK; HOTFN_E_STATE (the session does not run); HOTFN_E_UNSUPPORTED (it was created without
 * HOTFN_SESSION_ZONES); HOTFN_E_LIMIT (no room for this text).  Any thread.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_zone_add_message(const hotfn_session *session, const char *text,
                                              hotfn_error *err);

/*
 * Name the calling thread.  Records list it by this name, and so do debuggers and the system's
 * other tools; the main thread's name is also that of the process.  A session need not run.
 *
 * name  borrowed; at most 15 bytes.
 *
 * HOTFN_OK, HOTFN_E_OPTION (the name is too long), HOTFN_E_UNSUPPORTED (the system refused).  Any
 * thread.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_thread_set_name(const char *name, hotfn_error *err);

#ifdef __cplusplus
}
#endif

#ifdef __cplusplus
/* hotfn::zone, a zone that ends with the block in which it is declared.  A macro, because
 * <hotfn/optional.h> defines it for its own calls. */
#define HOTFN_DEFINE_ZONE_CLASS                                                                    \
    namespace hotfn                                                                                \
    {                                                                                              \
    class zone                                                                                     \
    {                                                                                              \
      public:                                                                                      \
        zone(const hotfn_session *session, const char *name)                                       \
        {                                                                                          \
            hotfn_zone_begin(&open, session, name);                                                \
        }                                                                                          \
        ~zone()                                                                                    \
        {                                                                                          \
            hotfn_zone_end(&open);                                                                 \
        }                                                                                          \
        zone(const zone &) = delete;                                                               \
        zone &operator=(const zone &) = delete;                                                    \
                                                                                                   \
      private:                                                                                     \
        hotfn_zone open;                                                                           \
    };                                                                                             \
    }
#ifndef HOTFN_OPTIONAL_H
HOTFN_DEFINE_ZONE_CLASS
#endif
#endif

#endif
