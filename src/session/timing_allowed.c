/* SPDX-License-Identifier: MIT */
/* Check that a running process can time its own calls, and prepare it.  `hotfn run` prepares a
 * program before it starts; here the program runs already, so four cases are refused: a second
 * engine, a clock that must not be read, a program that contains libhotfn itself, and exceptions
 * that cannot pass frames of hotfn.  Libraries that timed calls need are pinned. */
#include "base/status.h"
#include "hooks/unwind.h"
#include "image/unwinders.h"
#include "session/session.h"

#include <stdio.h>
#include <string.h>

/* ---- Exceptions.  The frames of hotfn are registered with libgcc_s (hooks/unwind.c).  They cannot
 * be registered with an unwinder that is linked into a module. */

typedef struct search {
    hotfn_session *session;
    char found[1024];
    bool own_is_main;
} search;

static bool check_module(void *user, const hfn_os_module *m)
{
    search *s = user;
    hotfn_image *image;
    uint64_t here = (uint64_t)(uintptr_t)&hfn_session_prepare_timing;
    s->own_is_main |= m->is_main && here >= m->base && here < m->end;
    if (m->path[0] == 0 || hotfn_image_open(&image, m->path, &s->session->env, NULL) != HOTFN_OK) {
        return true; /* the vdso, or a file that is gone */
    }
    if (hfn_image_has_own_unwinder(image)) {
        snprintf(s->found, sizeof s->found, "%s", m->path);
    }
    hotfn_image_close(image);
    return s->found[0] == 0;
}

/* ---- Pinned libraries: open calls return through code of hotfn after the session has ended. */

static void pin_libraries(void)
{
    uint64_t found = hfn_os_find_symbol("libgcc_s.so.1", "__register_frame");

    hfn_unwind_set_register_frame((void (*)(void *))(uintptr_t)found);
    hfn_os_keep_module_loaded((const void *)(uintptr_t)&hfn_session_prepare_timing);
}

hotfn_status hfn_session_prepare_timing(hotfn_session *session, hotfn_error *err)
{
    search s = { .session = session };
    if (hfn_os_maps_shared(HFN_PLAN_MEMORY_NAME)) {
        return hfn_report_error(
            err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
            "`hotfn run` hooks this process already: see the record of that run");
    }
    if (!hfn_os_may_read_ticks()) {
        return hfn_report_error(
            err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
            "this process may not read its clock (prctl PR_SET_TSC): only count its calls");
    }
    hfn_os_each_module(check_module, &s);
    if (s.own_is_main) {
        return hfn_report_error(
            err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
            "libhotfn is linked statically into the program: link the shared library to "
            "time calls");
    }
    if (s.found[0] != 0) {
        return hfn_report_error(
            err, HOTFN_E_UNSUPPORTED, s.found, HOTFN_NO_OFFSET,
            "this module has an unwinder of its own, so its exceptions cannot pass timed "
            "calls: link it without -static-libgcc, or time it with hotfn run");
    }
    pin_libraries();
    return HOTFN_OK;
}
