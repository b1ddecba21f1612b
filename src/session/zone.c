/* SPDX-License-Identifier: MIT */
/* Zones and messages: functions of a module without code.  A name gets a function of the module
 * when it is first used, as the methods of a runtime do (live/methods.c). */
#include "counters/timing/zone.h"
#include "base/status.h"
#include "live/live.h"
#include "os/threads.h"
#include "session/own_session.h"

#include <hotfn/zone.h>
#include <stdio.h>
#include <string.h>

enum { ZONES = 1024, NAME_BYTES = 64 /* on average */, MAX_MESSAGE_BYTES = 512 };
_Static_assert(sizeof(hfn_time_frame) <= sizeof(hotfn_zone), "a zone has room for its frame");

static void get_row(void *user, uint32_t index, hotfn_record_function *out)
{
    (void)user;
    *out = (hotfn_record_function)HOTFN_RECORD_FUNCTION_INIT;
    out->rva = index;
    out->state = HOTFN_STATE_HOOKED;
    out->flags = HOTFN_VERDICT_TIMED;
    out->name = out->names = out->strategy = out->reason = out->reason_text = "";
    out->name_count = 1;
}

hotfn_status hfn_session_add_zones(hotfn_session *s, hotfn_error *err)
{
    hotfn_record_module module = HOTFN_RECORD_MODULE_INIT;
    hfn_function_source source = { get_row, NULL };
    hfn_method_rules rules = { 0 };
    hotfn_status status;

    module.path = "zones";
    module.flags = HOTFN_MODULE_METHODS | HOTFN_MODULE_LOADED;
    module.function_count = ZONES;
    status = hfn_live_add_module_from(s->live, &module, &source, &s->zones, err);
    if (status == HOTFN_OK) {
        status =
            hfn_live_reserve_names(s->live, s->zones, (uint64_t)ZONES * NAME_BYTES, &rules, err);
    }
    s->zone_slots = hfn_live_get_slots(s->live, s->zones);
    s->has_zones = status == HOTFN_OK;
    return status;
}

/* The slot of a name; HOTFN_NO_SLOT if there is no room. */
static uint32_t find_slot(const hotfn_session *s, const char *name)
{
    void *paused = hotfn_counters_pause(); /* the C library may be hooked */
    uint32_t function = hfn_live_get_method(s->live, s->zones, name, HFN_METHODS_ALL);

    hotfn_counters_resume(paused);
    return function == UINT32_MAX ? HOTFN_NO_SLOT : s->zone_slots[function];
}

void hotfn_zone_begin(hotfn_zone *zone, const hotfn_session *session, const char *name)
{
    uint32_t slot = HOTFN_NO_SLOT;

    if (!zone) {
        return;
    }
    if (session && session->running && session->has_zones && name && name[0]) {
        slot = find_slot(session, name);
    }
    if (slot == HOTFN_NO_SLOT) {
        hfn_zone_skip((void *)zone);
    } else {
        hfn_zone_enter((void *)zone, slot);
    }
}

void hotfn_zone_end(hotfn_zone *zone)
{
    if (zone) {
        hfn_zone_leave((void *)zone);
    }
}

static hotfn_status record_message(const hotfn_session *s, const char *text, hotfn_error *err)
{
    hfn_time_frame frame;
    char name[MAX_MESSAGE_BYTES];
    void *paused = hotfn_counters_pause();
    int length = snprintf(name, sizeof name, "message: %s", text);
    uint32_t slot = length < (int)sizeof name ? find_slot(s, name) : HOTFN_NO_SLOT;

    hotfn_counters_resume(paused);
    if (slot == HOTFN_NO_SLOT) {
        return hfn_report_error(err, HOTFN_E_LIMIT, NULL, HOTFN_NO_OFFSET,
                                "there is no room for this message: a session keeps %d different "
                                "names of zones and messages",
                                ZONES);
    }
    hfn_zone_enter(&frame, slot);
    hfn_zone_leave(&frame);
    return HOTFN_OK;
}

hotfn_status hotfn_zone_add_message(const hotfn_session *s, const char *text, hotfn_error *err)
{
    if (!text) {
        return hfn_report_null(err, __func__);
    }
    if (!s || !s->running) {
        return s ? hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                    "the session does not run")
                 : HOTFN_OK;
    }
    if (!s->has_zones) {
        return hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                                "the session was created without HOTFN_SESSION_ZONES");
    }
    return record_message(s, text, err);
}

hotfn_status hotfn_thread_set_name(const char *name, hotfn_error *err)
{
    if (!name) {
        return hfn_report_null(err, __func__);
    }
    if (strlen(name) > HFN_OS_MAX_THREAD_NAME) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                "'%s': the name of a thread has at most %d bytes", name,
                                HFN_OS_MAX_THREAD_NAME);
    }
    return hfn_os_set_thread_name(name)
               ? HOTFN_OK
               : hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                                  "the system does not name threads");
}
