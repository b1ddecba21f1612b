/* SPDX-License-Identifier: MIT */
/* The parts of a session. */
#ifndef HOTFN_LOWLEVEL_SESSION_H
#define HOTFN_LOWLEVEL_SESSION_H

#include <hotfn/lowlevel/hooks.h>
#include <hotfn/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Get the hook set of a running session, a view that ends with the next stop; NULL if the session
 * does not run.  For unwinders and the names of stubs.  One thread at a time.  Since 0.1. */
HOTFN_API const hotfn_hooks *hotfn_session_get_hooks(const hotfn_session *session);

#ifdef __cplusplus
}
#endif

#endif
