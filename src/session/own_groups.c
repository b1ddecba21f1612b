/* SPDX-License-Identifier: MIT */
/* The named groups of a session: their options, their members, and the call that switches them. */
#include "base/status.h"
#include "scan/choice.h"
#include "session/own_session.h"

#include <string.h>

static uint32_t find_group(const hotfn_session *s, const char *name)
{
    for (uint32_t i = 0; i < s->group_count; i++) {
        if (strcmp(s->groups[i].name, name) == 0) {
            return i;
        }
    }
    return UINT32_MAX;
}

static hotfn_status add_group(hotfn_session *s, const hotfn_group *g, hotfn_error *err)
{
    hfn_group *added = &s->groups[s->group_count];

    if (!g->name || !g->name[0] || find_group(s, g->name) != UINT32_MAX) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                "group %u has no name, or that of another group", s->group_count);
    }
    added->name = hfn_arena_copy(&s->texts, g->name, strlen(g->name));
    if (!added->name) {
        return hfn_report_no_memory(err, NULL);
    }
    if (g->flags & HOTFN_GROUP_OFF) {
        s->off_groups |= UINT64_C(1) << s->group_count;
    }
    s->group_count++;
    return hfn_session_copy_selection(s, &added->selection, g->selection, err);
}

hotfn_status hfn_session_copy_groups(hotfn_session *s, const hotfn_session_options *o,
                                     hotfn_error *err)
{
    hotfn_status status = HOTFN_OK;

    if (o->group_count > HOTFN_MAX_GROUPS || (o->group_count > 0 && !o->groups)) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                "group_count is at most %u, and needs groups", HOTFN_MAX_GROUPS);
    }
    s->groups = hfn_arena_alloc(&s->texts, (o->group_count + 1u) * sizeof *s->groups);
    if (!s->groups) {
        return hfn_report_no_memory(err, NULL);
    }
    /* The structs of a program that was compiled with another version may be longer. */
    for (uint32_t i = 0; i < o->group_count && status == HOTFN_OK; i++) {
        hotfn_group group;

        if (!hfn_copy_options(&group, sizeof group,
                              (const uint8_t *)o->groups + (uint64_t)i * o->groups->size) ||
            group.flags & ~HOTFN_GROUP_OFF) {
            return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                    "unknown option of group %u", i);
        }
        status = add_group(s, &group, err);
    }
    return status;
}

hotfn_status hfn_session_find_members(hotfn_session *s, hfn_scanned *scanned, hotfn_error *err)
{
    hotfn_status status = HOTFN_OK;
    uint64_t *groups = NULL;
    hfn_scan_choice choice;

    for (uint32_t i = 0; i < s->group_count && status == HOTFN_OK; i++) {
        hfn_function_rules rules = { .selection = &s->groups[i].selection };

        status = hfn_scan_choose(&choice, scanned->scan, HFN_MODULE_SELECTED, 0, &rules, err);
        if (status != HOTFN_OK) {
            break;
        }
        if (!groups) {
            groups = hfn_arena_alloc(&s->texts, choice.module.function_count * sizeof *groups + 1);
            status = groups ? HOTFN_OK : hfn_report_no_memory(err, NULL);
        }
        for (uint32_t f = 0; groups && f < choice.module.function_count; f++) {
            groups[f] = (i == 0 ? 0 : groups[f]) | (uint64_t)choice.selected[f] << i;
        }
        hfn_scan_choice_finish(&choice);
    }
    scanned->groups = groups;
    return status;
}

hotfn_status hotfn_session_switch_group(hotfn_session *s, const char *name, uint32_t is_on,
                                        hotfn_error *err)
{
    hotfn_status status = HOTFN_OK;
    uint64_t off_groups;
    uint32_t index;
    void *paused;

    if (!s || !name) {
        return hfn_report_null(err, __func__);
    }
    index = find_group(s, name);
    if (index == UINT32_MAX) {
        return hfn_report_error(err, HOTFN_E_NOT_FOUND, NULL, HOTFN_NO_OFFSET,
                                "the session has no group '%s'", name);
    }
    off_groups = s->off_groups & ~(UINT64_C(1) << index);
    off_groups |= is_on ? 0 : UINT64_C(1) << index;
    if (s->running) {
        paused = hotfn_counters_pause();
        status = hfn_process_switch(&s->process, off_groups, err);
        hotfn_counters_resume(paused);
    }
    if (status != HOTFN_E_STATE && status != HOTFN_E_NO_MEMORY) {
        s->off_groups = off_groups;
    }
    return status;
}
