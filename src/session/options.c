/* SPDX-License-Identifier: MIT */
/* The options of a session that scans its own process: they are copied, and checked. */
#include "base/status.h"
#include "functions/glob.h"
#include "session/own_session.h"

#include <string.h>

#define MAX_SAMPLE_MEAN 1000000u

static char *copy_text(hotfn_session *s, const char *text)
{
    return hfn_arena_copy(&s->texts, text, strlen(text));
}

static bool copy_list(hotfn_session *s, const char *const *from, uint32_t count,
                      const char *const **to)
{
    const char **list = hfn_arena_alloc(&s->texts, (count + 1u) * sizeof *list);
    for (uint32_t i = 0; list && i < count; i++) {
        list[i] = copy_text(s, from[i]);
        if (!list[i]) {
            return false;
        }
    }
    *to = list;
    return list != NULL;
}

static bool copy_selection(hotfn_session *s, hotfn_selection *out, const hotfn_selection *pick)
{
    *out = *pick;
    out->size = sizeof *out;
    return copy_list(s, pick->include, pick->include_count, &out->include) &&
           copy_list(s, pick->exclude, pick->exclude_count, &out->exclude);
}

bool hfn_session_copy_options(hotfn_session *s, const hotfn_session_options *o,
                              const hotfn_selection *pick)
{
    s->flags = o->flags & HFN_SESSION_FLAGS;
    s->is_timed = o->mode == HOTFN_SESSION_TIME;
    s->module_count = o->module_count;
    s->list = o->list;
    s->cache_folder = o->cache_folder ? copy_text(s, o->cache_folder) : NULL;
    return (s->cache_folder || !o->cache_folder) &&
           copy_list(s, o->modules, o->module_count, &s->modules) &&
           copy_selection(s, &s->selection, pick);
}

static hotfn_status check_globs(const char *const *globs, uint32_t count, hotfn_error *err)
{
    hotfn_status status = HOTFN_OK;
    for (uint32_t i = 0; i < count && status == HOTFN_OK; i++) {
        status = hfn_glob_check(globs[i], err);
    }
    return status;
}

static hotfn_status check_selection(const hotfn_selection *pick, hotfn_error *err)
{
    hotfn_status status = check_globs(pick->include, pick->include_count, err);

    return status == HOTFN_OK ? check_globs(pick->exclude, pick->exclude_count, err) : status;
}

hotfn_status hfn_session_copy_selection(hotfn_session *s, hotfn_selection *out,
                                        const hotfn_selection *selection, hotfn_error *err)
{
    hotfn_selection pick;

    if (!hfn_copy_options(&pick, sizeof pick, selection) || pick.flags) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                "unknown option of a selection");
    }
    return copy_selection(s, out, &pick) ? check_selection(out, err)
                                         : hfn_report_no_memory(err, NULL);
}

static hotfn_status check_mode(const hotfn_session_options *o, hotfn_error *err)
{
    const char *timing_option = o->sample_mean                    ? "a sample"
                                : o->slow_ns                      ? "slow calls"
                                : o->flags & HOTFN_SESSION_FLAT   ? "HOTFN_SESSION_FLAT"
                                : o->flags & HOTFN_SESSION_TICKER ? "HOTFN_SESSION_TICKER"
                                                                  : NULL;
    if (o->mode == HOTFN_SESSION_COUNT && timing_option) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                "%s: only with HOTFN_SESSION_TIME", timing_option);
    }
    return o->sample_mean > MAX_SAMPLE_MEAN
               ? hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                  "sample_mean is at most %u", MAX_SAMPLE_MEAN)
               : HOTFN_OK;
}

hotfn_status hfn_session_check_options(const hotfn_session *s, const hotfn_session_options *o,
                                       hotfn_error *err)
{
    hotfn_status status = check_mode(o, err);

    if (status == HOTFN_OK) {
        status = check_globs(s->modules, s->module_count, err);
    }
    return status == HOTFN_OK ? check_selection(&s->selection, err) : status;
}
