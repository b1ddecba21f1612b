/* SPDX-License-Identifier: MIT */
/* The options of a launch: they are checked, and those used after the start are copied. */
#include "base/status.h"
#include "launch/launch.h"

#include <hotfn/lowlevel/functions.h>
#include <hotfn/lowlevel/timing.h>
#include <string.h>

#define ALL_FLAGS 0xfffu
#define MAX_SAMPLE_INTERVAL 1000000u
#define MAX_THREADS 1000000u
#define MAX_PLACES 60000000u
#define MAX_BUDGET_PPM 1000000u

/* ---- Checks. */

static hotfn_status refuse_option(hotfn_error *err, const char *text)
{
    return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET, "%s", text);
}

static hotfn_status check_globs(const char *const *globs, uint32_t count, hotfn_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!globs || !globs[i] || hotfn_glob_match(globs[i], "") < 0) {
            return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                    "'%s' is not a glob: close its [ or quote it with \\",
                                    globs && globs[i] ? globs[i] : "(NULL)");
        }
    }
    return HOTFN_OK;
}

static hotfn_status check_all_globs(const hotfn_launch_options *o, const hotfn_selection *selection,
                                    hotfn_error *err)
{
    hotfn_status status = check_globs(o->modules, o->module_count, err);

    if (status == HOTFN_OK) {
        status = check_globs(selection->include, selection->include_count, err);
    }
    if (status == HOTFN_OK) {
        status = check_globs(selection->exclude, selection->exclude_count, err);
    }
    if (status == HOTFN_OK && o->watch) {
        status = check_globs(&o->watch, 1, err);
    }
    return status == HOTFN_OK && o->target_glob ? check_globs(&o->target_glob, 1, err) : status;
}

static hotfn_status check_combinations(const hotfn_launch_options *o,
                                       const hotfn_selection *selection, hotfn_error *err)
{
    if (o->kit_path && (o->map_path || o->target_glob)) {
        return refuse_option(err, "a kit already has the names of its one program: use it without "
                                  "a map and without a target glob");
    }
    if (selection->max_bytes && selection->max_bytes < selection->min_bytes) {
        return refuse_option(err,
                             "the smallest size is above the largest: no function has such a size");
    }
    if (o->runtime && !hfn_runtime_find(o->runtime)) {
        return hfn_report_error(
            err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
            "'%s' is not a runtime whose methods can be counted: art, com, objc, python",
            o->runtime);
    }
    if (o->watch && (!o->slow_ns || !o->runtime || strcmp(o->runtime, "art") != 0)) {
        return refuse_option(err, "watched methods need the runtime 'art' and the time above which "
                                  "a call is slow");
    }
    if (o->flags & HOTFN_LAUNCH_DURABLE && !o->record_path) {
        return refuse_option(err, "a durable record needs a path");
    }
    return HOTFN_OK;
}

static hotfn_status check_times(const hotfn_launch_options *o, hotfn_error *err)
{
    const char *needs_times = o->flags & HOTFN_LAUNCH_ALLOC    ? "allocated memory"
                              : o->flags & HOTFN_LAUNCH_FLAT   ? "a flat record"
                              : o->flags & HOTFN_LAUNCH_EVENTS ? "events"
                              : o->sample_interval             ? "a sample"
                              : o->slow_ns && !o->watch        ? "slow calls"
                              : o->max_places                  ? "places of a call tree"
                              : o->clock                       ? "a clock"
                                                               : NULL;

    if (o->mode == HOTFN_LAUNCH_COUNT && needs_times) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                "mode time is required for %s", needs_times);
    }
    if (o->flags & HOTFN_LAUNCH_ALLOC && (o->sample_interval || o->budget_ppm)) {
        return refuse_option(err, "allocated memory is assigned to functions only if every call is "
                                  "timed: record it without a sample and without a budget");
    }
    if (o->clock == HOTFN_LAUNCH_CLOCK_TICK &&
        o->flags & (HOTFN_LAUNCH_ALLOC | HOTFN_LAUNCH_EVENTS)) {
        return refuse_option(err, "a tick clock serves neither events nor allocated memory: use "
                                  "the clock cpu for them");
    }
    if (o->max_threads > MAX_THREADS || o->max_places > MAX_PLACES) {
        return refuse_option(err, "a record has room for at most 1000000 threads and 60000000 "
                                  "places in call trees");
    }
    if (o->sample_interval > MAX_SAMPLE_INTERVAL) {
        return refuse_option(err, "a sampling interval is at most 1000000");
    }
    return o->budget_ppm > MAX_BUDGET_PPM
               ? refuse_option(err, "a budget is at most 100% of the time")
               : HOTFN_OK;
}

/* Returns which times of calls are recorded: HOTFN_TIMING_*. */
static uint32_t choose_timing(const hotfn_launch_options *o)
{
    uint32_t timing = HOTFN_TIMING_TIMES;

    if (o->mode == HOTFN_LAUNCH_COUNT) {
        return 0;
    }
    if (o->sample_interval) {
        timing |= HOTFN_TIMING_SAMPLED | HOTFN_TIMING_HISTOGRAMS;
    } else if (!(o->flags & HOTFN_LAUNCH_FLAT)) {
        timing |= HOTFN_TIMING_TREE | HOTFN_TIMING_HISTOGRAMS;
    }
    timing |= o->flags & HOTFN_LAUNCH_ALLOC ? HOTFN_TIMING_ALLOC : 0;
    timing |= o->slow_ns ? HOTFN_TIMING_SLOW : 0;
    return timing | (o->flags & HOTFN_LAUNCH_EVENTS ? HOTFN_TIMING_EVENTS : 0);
}

/* ---- Copies. */

/* Replace *text by a copy, unless it is NULL.  False if there is no memory. */
static bool copy_text(hfn_arena *arena, const char **text)
{
    if (*text) {
        *text = hfn_arena_copy(arena, *text, strlen(*text));
        return *text != NULL;
    }
    return true;
}

static bool copy_list(hfn_arena *arena, const char *const **list, uint32_t count)
{
    const char **copy = hfn_arena_alloc(arena, (count + 1u) * sizeof *copy);

    for (uint32_t i = 0; copy && i < count; i++) {
        copy[i] = hfn_arena_copy(arena, (*list)[i], strlen((*list)[i]));
        if (!copy[i]) {
            return false;
        }
    }
    *list = copy;
    return copy != NULL;
}

static bool copy_options(hotfn_launch *l)
{
    hotfn_launch_options *o = &l->options;

    l->matched_includes = hfn_arena_alloc(&l->texts, l->selection.include_count + 1u);
    l->matched_module_globs = hfn_arena_alloc(&l->texts, o->module_count + 1u);
    return l->matched_includes && l->matched_module_globs &&
           copy_text(&l->texts, &o->record_path) && copy_text(&l->texts, &o->target_glob) &&
           copy_text(&l->texts, &o->list_path) && copy_text(&l->texts, &o->map_path) &&
           copy_text(&l->texts, &o->kit_path) && copy_text(&l->texts, &o->cache_folder) &&
           copy_text(&l->texts, &o->agent_path) && copy_text(&l->texts, &o->runtime) &&
           copy_text(&l->texts, &o->send_to) && copy_text(&l->texts, &o->watch) &&
           copy_list(&l->texts, &o->modules, o->module_count) &&
           copy_list(&l->texts, &o->symbol_dirs, o->symbol_dir_count) &&
           copy_list(&l->texts, &l->selection.include, l->selection.include_count) &&
           copy_list(&l->texts, &l->selection.exclude, l->selection.exclude_count);
}

hotfn_status hfn_launch_set_options(hotfn_launch *l, const hotfn_launch_options *options,
                                    hotfn_error *err)
{
    hotfn_launch_options *o = &l->options;
    hotfn_status status;

    if (!hfn_copy_options(o, sizeof *o, options) || o->flags & ~ALL_FLAGS ||
        o->mode > HOTFN_LAUNCH_TIME || o->clock > HOTFN_LAUNCH_CLOCK_CPU ||
        !hfn_copy_options(&l->selection, sizeof l->selection, o->selection) || l->selection.flags) {
        return refuse_option(err, "unknown launch option");
    }
    l->selection.size = sizeof l->selection;
    if (!o->command || !o->command[0]) {
        return refuse_option(err, "a launch needs a program: options->command is missing");
    }
    if (o->send_to) { /* calls that are only counted have no events */
        o->mode = HOTFN_LAUNCH_TIME;
        o->flags |= HOTFN_LAUNCH_EVENTS;
    }
    status = check_all_globs(o, &l->selection, err);
    if (status == HOTFN_OK) {
        status = check_combinations(o, &l->selection, err);
    }
    if (status == HOTFN_OK) {
        status = check_times(o, err);
    }
    if (status == HOTFN_OK && hfn_target_find_option_refusal(o)) {
        status = hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET, "%s",
                                  hfn_target_find_option_refusal(o));
    }
    if (status != HOTFN_OK) {
        return status;
    }
    if (o->mode == HOTFN_LAUNCH_TIME && o->budget_ppm && !o->sample_interval) {
        o->sample_interval = 1; /* only a sampling interval can be changed while the program runs */
    }
    l->timing = choose_timing(o);
    l->is_clock_free = o->clock == HOTFN_LAUNCH_CLOCK_AUTO;
    if (l->is_clock_free) {
        o->clock = hfn_live_can_tick(l->timing) ? HOTFN_LAUNCH_CLOCK_TICK : HOTFN_LAUNCH_CLOCK_CPU;
    }
    return copy_options(l) ? HOTFN_OK : hfn_report_no_memory(err, NULL);
}
