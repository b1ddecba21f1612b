/* SPDX-License-Identifier: MIT */
/*
 * A launch from start to end.
 *
 *   start     options -> target file -> agent -> inputs -> live record -> child -> threads
 *   RUNNING   the plan service answers the target; the observation frame and the budget work
 *   ENDED     the child has ended: budget and service stopped, child reaped, frame stopped
 *   FINISHED  the record is written to its path, or to a fallback path
 *
 * If the program calls exec, next_image.c gives it a record of its own.  The budget's thread stops
 * the child briefly by ptrace, so it must end before the child is reaped.  The service ends before
 * that too: the processor times of the child's children are complete only when it has ended.  A
 * process that still requests a plan goes on without it.
 */
#include "launch/launch.h"

#include "base/status.h"
#include "launch/attach/attached.h"
#include "live/live.h"
#include "os/descendants.h"
#include "os/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Start. */

void hfn_launch_choose_cache(hotfn_launch *l)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *folder = l->cache_folder;

    if (l->options.flags & HOTFN_LAUNCH_NO_CACHE) {
        return;
    }
    if (l->options.cache_folder) {
        snprintf(folder, sizeof l->cache_folder, "%s", l->options.cache_folder);
    } else if (base && base[0] == '/') {
        snprintf(folder, sizeof l->cache_folder, "%s/hotfn", base);
    } else if (home && home[0] == '/' && hfn_os_is_folder(home)) {
        snprintf(folder, sizeof l->cache_folder, "%s/.cache/hotfn", home);
    }
}

uint32_t hotfn_launch_choose_ticker(void)
{
    return HFN_CAN_TIME ? hfn_ticker_choose() : HOTFN_TICKER_NONE;
}

hotfn_status hfn_launch_start_ticker(hotfn_launch *l, hotfn_error *err)
{
    uint64_t *tick = hfn_live_tick(l->live);

    if (!tick ||
        hfn_ticker_start(&l->ticker, tick, &l->live->clock, hfn_live_time_header(l->live))) {
        return HOTFN_OK;
    }
    if (!l->is_clock_free) {
        return hfn_report_error(err, HOTFN_E_NO_MEMORY, NULL, HOTFN_NO_OFFSET,
                                "no thread can be started for the tick clock");
    }
    hfn_live_use_counter(l->live);
    return HOTFN_OK;
}

static hotfn_status start_program(hotfn_launch *l, const hotfn_launch_options *options,
                                  hotfn_error *err)
{
    hotfn_status status = hfn_launch_set_options(l, options, err);

    if (status == HOTFN_OK && l->options.flags & HOTFN_LAUNCH_BY_HOOK) {
        status = hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                  "a message hook enters only a process that runs already");
    }
    if (status == HOTFN_OK) {
        status = hfn_send_thread_open(l, err);
    }
    if (status == HOTFN_OK) {
        status = hfn_target_find(&l->target, &l->options, &l->env, err);
    }
    if (status == HOTFN_OK) {
        status = l->target.is_outside ? hfn_launch_check_outside(l, err) : hfn_agent_choose(l, err);
    }
    if (status == HOTFN_OK) {
        status = hfn_runtime_find_pool(l, err);
    }
    if (status == HOTFN_OK) {
        status = hfn_launch_open_inputs(l, err);
    }
    if (status == HOTFN_OK) {
        hfn_launch_choose_cache(l);
        status = hfn_launch_check_matches(l, err);
    }
    if (status == HOTFN_OK) {
        status = hfn_launch_create_record(l, err);
    }
    if (status == HOTFN_OK) {
        status = hfn_launch_start_ticker(l, err);
    }
    return status == HOTFN_OK ? hfn_launch_start_child(l, err) : status;
}

void hfn_launch_free(hotfn_launch *l)
{
    hotfn_env env = l->env;

    hfn_switch_stop(l);
    hfn_attachment_free(l->attachment);
    hfn_launch_unlink_record(l);
    hfn_ticker_stop(&l->ticker);
    hfn_event_sender_destroy(l->events.sender);
    hfn_snapshot_destroy(l->observation.from);
    hfn_snapshot_destroy(l->observation.to);
    hfn_children_free(&l->children);
    hfn_os_destroy_mutex(&l->lock);
    hfn_switch_finish(&l->switching);
    hfn_plan_channel_destroy(l->channel);
    hfn_live_close(l->live);
    hotfn_list_destroy(l->list);
    hotfn_scan_close(l->kit);
    hfn_known_modules_finish(&l->known);
    hfn_arena_finish(&l->texts);
    hfn_free_memory(&env, l, sizeof *l);
}

hotfn_launch *hfn_launch_new(const hotfn_env *env)
{
    hotfn_env filled = hfn_env_fill(env);
    hotfn_launch *l = hfn_allocate_zeroed(&filled, sizeof *l);

    if (l) {
        l->env = filled;
        hfn_arena_init(&l->texts, &l->env);
        hfn_known_modules_init(&l->known, &l->env);
        hfn_os_init_mutex(&l->lock);
        hfn_switch_init(&l->switching);
    }
    return l;
}

void hfn_launch_begin(hotfn_launch *l)
{
    l->options.command = NULL; /* borrowed until here */
    l->options.selection = NULL;
    l->begin_ns = hfn_os_monotonic_ns();
    l->state = HOTFN_LAUNCH_RUNNING;
}

hotfn_status hotfn_launch_start(hotfn_launch **out, const hotfn_launch_options *options,
                                const hotfn_env *env, hotfn_error *err)
{
    if (!out) {
        return hfn_report_null(err, __func__);
    }

    hotfn_launch *l = hfn_launch_new(env);
    if (!l) {
        return hfn_report_no_memory(err, NULL);
    }
    hotfn_status status = start_program(l, options, err);
    if (status != HOTFN_OK) {
        hfn_launch_free(l);
        return status;
    }
    hfn_launch_begin(l);
    if (l->attachment) {
        hfn_observation_start(l);
        hfn_patch_watch_start(l);
        *out = l;
        return HOTFN_OK;
    }
    if (!l->options.target_glob) {
        hfn_children_begin(&l->children, l->child.pid,
                           (l->options.flags & HOTFN_LAUNCH_FOLLOW) != 0, &l->env);
    }
    hfn_switch_start(l); /* the program waits for its plan until then */
    if (!hfn_plan_service_start(l)) {
        hfn_log_message(&l->env, HOTFN_LOG_ERROR, "no thread can be started: nothing is counted");
    }
    hfn_observation_start(l);
    hfn_send_thread_start(l);
    hfn_budget_thread_start(l);
    hfn_thread_watch_start(l);
    hfn_patch_watch_start(l);
    *out = l;
    return HOTFN_OK;
}

/* ---- While it runs, and its end. */

/* Queries take a const launch; the lock is not part of its state. */
static void lock_record(const hotfn_launch *l)
{
    hfn_os_lock_mutex((hfn_os_mutex *)(uintptr_t)&l->lock);
}

static void unlock_record(const hotfn_launch *l)
{
    hfn_os_unlock_mutex((hfn_os_mutex *)(uintptr_t)&l->lock);
}

/* From now on no program that replaces this one by exec gets a record (next_image.c). */
static void end_replacements(hotfn_launch *l)
{
    hfn_os_lock_mutex(&l->lock);
    l->has_ended = true;
    hfn_os_unlock_mutex(&l->lock);
}

/* The program waits for its plans, and installs its hooks, before it runs. */
static uint64_t get_preparation_ns(const hotfn_launch *l)
{
    hfn_start_stats stats;
    bool has_stats = !l->attachment && hfn_plan_channel_get_stats(l->channel, &stats) == HOTFN_OK;

    return atomic_load(&l->waited_ns) + (has_stats ? stats.total_ns : 0);
}

/* Facts of the run that are not counts, as texts of the record. */
static void store_run_facts(hotfn_launch *l)
{
    char number[24];

    hfn_plan_service_stop(l);
    if (!l->attachment) {
        hfn_children_finish(&l->children, l->live, l->channel);
    }
    char became[HFN_PLAN_PATH_BYTES];
    if (!l->attachment && hfn_plan_channel_get_own_exec(l->channel, became)) {
        hfn_log_message(
            &l->env, HOTFN_LOG_WARNING,
            "the program became %s by exec, which the agent could not enter: only calls "
            "before that were counted",
            became);
        hfn_live_add_run_text(l->live, HFN_META_BECAME, became);
    }
    if (l->script[0]) {
        hfn_live_add_run_text(l->live, HFN_META_SCRIPT, l->script);
    }
    snprintf(number, sizeof number, "%" PRIu64, get_preparation_ns(l));
    hfn_live_add_run_text(l->live, HFN_META_PREPARATION, number);
}

hotfn_status hotfn_launch_wait(hotfn_launch *l, uint64_t timeout_ns, hotfn_error *err)
{
    if (!l) {
        return hfn_report_null(err, __func__);
    }
    if (l->attachment && !l->target.is_outside) {
        return hfn_attachment_wait(l, timeout_ns, err);
    }
    if (l->state != HOTFN_LAUNCH_RUNNING || !hfn_os_child_wait(&l->child, timeout_ns)) {
        return HOTFN_OK;
    }
    l->end_ns = hfn_os_monotonic_ns();
    end_replacements(l);
    hfn_send_thread_stop(l, false);
    hfn_switch_stop(l);
    hfn_budget_thread_stop(l);
    store_run_facts(l);
    hfn_thread_watch_stop(l);
    hfn_patch_watch_stop(l, false);
    if (l->attachment) {
        hfn_attachment_release_forked(l->attachment);
    }
    hfn_os_child_reap(&l->child);
    hfn_observation_stop(l);
    hfn_ticker_stop(&l->ticker);
    l->state = HOTFN_LAUNCH_ENDED;
    return HOTFN_OK;
}

static const char *record_file(const hotfn_launch *l)
{
    if (l->fallback_path[0]) {
        return l->fallback_path;
    }
    return l->state == HOTFN_LAUNCH_FINISHED && !l->is_kept ? NULL : l->options.record_path;
}

hotfn_status hotfn_launch_get_info(const hotfn_launch *l, hotfn_launch_info *out)
{
    if (!l) {
        return HOTFN_E_OPTION;
    }

    hfn_start_stats stats;
    lock_record(l);
    hotfn_launch_info info = {
        .size = sizeof info,
        .state = l->state,
        .pid = l->child.pid,
        .exit_code = l->child.exit_code,
        .run_ns = (l->end_ns ? l->end_ns : hfn_os_monotonic_ns()) - l->begin_ns,
        .record_path = record_file(l),
        .preparation_ns = get_preparation_ns(l),
    };
    if (l->attachment) {
        hfn_attachment_describe(l->attachment, &info);
    } else if (hfn_plan_channel_get_stats(l->channel, &stats) == HOTFN_OK) {
        info.is_joined = 1;
        info.hooked_count = stats.hooked;
        info.refused_count = stats.refused;
        info.hook_ns = stats.total_ns;
    }
    unlock_record(l);
    return hfn_copy_result(out, &info, sizeof info);
}

hotfn_status hotfn_launch_open_record(hotfn_record **out, const hotfn_launch *l, hotfn_error *err)
{
    char live[64];

    if (!out || !l) {
        return hfn_report_null(err, __func__);
    }
    lock_record(l);
    const char *path = l->is_kept ? record_file(l) : NULL;
    if (!path) {
        hfn_launch_live_path(l, live, sizeof live);
        path = live;
    }
    hotfn_status status = hotfn_record_open(out, path, &l->env, err);
    unlock_record(l);
    return status;
}

/* The rows of the record contain the ids of the target's processes.  By now an id may belong to
 * another process, because it was reused or is of another namespace, so the process must also map
 * the live record. */
uint32_t hotfn_launch_find_remaining(uint32_t *pids, const hotfn_launch *l, uint32_t capacity)
{
    uint32_t count = 0;

    if (!pids || !l || l->state == HOTFN_LAUNCH_RUNNING) {
        return 0;
    }
    const hfn_thread_cell *cells = hfn_live_cells(l->live);
    for (uint32_t row = 0; row < hfn_live_rows_used(l->live) && count < capacity; row++) {
        uint32_t pid = cells[row].pid;
        bool is_known = pid == 0 || pid == l->child.pid;
        for (uint32_t i = 0; i < count; i++) {
            is_known |= pids[i] == pid;
        }
        if (!is_known && hfn_os_process_maps_file(pid, hfn_live_get_fd(l->live))) {
            pids[count++] = pid;
        }
    }
    return count;
}

int32_t hotfn_launch_counts_process(const hotfn_launch *l, uint32_t pid)
{
    return l && l->live && hfn_os_process_maps_file(pid, hfn_live_get_fd(l->live));
}

typedef struct family {
    uint32_t *pids;
    uint64_t *programs;
    uint32_t count, capacity;
} family;

static void add_to_family(void *user, uint32_t pid)
{
    family *f = user;
    hfn_os_process_facts facts;

    if (f->count < f->capacity && hfn_os_get_process_facts(pid, &facts)) {
        f->pids[f->count] = pid;
        f->programs[f->count++] = facts.program;
    }
}

uint32_t hotfn_launch_find_family(uint32_t *pids, uint64_t *programs, uint32_t capacity,
                                  uint32_t pid)
{
    family f = { pids, programs, 0, capacity };

    if (!pids || !programs) {
        return 0;
    }
    add_to_family(&f, pid);
    hfn_os_each_descendant(pid, add_to_family, &f);
    return f.count;
}

/* ---- The finished record. */

static hotfn_status write_record(hotfn_launch *l, const char *path, hotfn_error *err)
{
    uint32_t state = l->child.exit_code < 0 ? HOTFN_RECORD_KILLED : HOTFN_RECORD_FINISHED;

    return hfn_live_finish(l->live, path, state, l->child.exit_code, l->observation.from,
                           l->observation.to, err);
}

/* Create a new, empty file for the record, so that no link made by another user is followed. */
static bool create_fallback(hotfn_launch *l)
{
    enum { MAX_TRIES = 16 };
    char folder[HFN_OS_PATH_BYTES];
    hfn_os_file file;
    uint64_t number;

    hfn_os_get_temporary_folder(folder);
    for (uint32_t i = 0; i < MAX_TRIES && hfn_os_get_random(&number, sizeof number); i++) {
        int length = snprintf(l->fallback_path, sizeof l->fallback_path,
                              "%s/hotfn-%016" PRIx64 ".hfr", folder, number);
        if (length >= (int)sizeof l->fallback_path) {
            return false;
        }
        if (hfn_os_open_file(&file, l->fallback_path,
                             HFN_OS_WRITE | HFN_OS_CREATE_NEW | HFN_OS_PRIVATE) == 0) {
            hfn_os_close_file(file);
            return true;
        }
    }
    return false;
}

static void write_fallback(hotfn_launch *l)
{
    if (!create_fallback(l)) {
        l->fallback_path[0] = 0;
    } else if (write_record(l, l->fallback_path, NULL) == HOTFN_OK) {
        l->is_kept = true;
    } else {
        hfn_os_remove_file(l->fallback_path);
        l->fallback_path[0] = 0;
    }
}

/* Warn only if the target started: otherwise no module was loaded, so no glob can have matched. */
static void warn_of_unmatched_globs(const hotfn_launch *l)
{
    const hotfn_selection *selection = &l->selection;

    for (uint32_t i = 0; i < selection->include_count; i++) {
        if (!l->matched_includes[i]) {
            hfn_log_message(&l->env, HOTFN_LOG_WARNING, "'%s' matches no function",
                            selection->include[i]);
        }
    }
    for (uint32_t i = 0; i < l->options.module_count; i++) {
        if (!l->matched_module_globs[i]) {
            hfn_log_message(&l->env, HOTFN_LOG_WARNING, "'%s' matches no module that was loaded",
                            l->options.modules[i]);
        }
    }
}

hotfn_status hotfn_launch_finish(hotfn_launch *l, hotfn_error *err)
{
    hfn_start_stats stats;

    if (!l) {
        return hfn_report_null(err, __func__);
    }
    if (l->state != HOTFN_LAUNCH_ENDED || !l->options.record_path) {
        return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET, "%s",
                                l->state == HOTFN_LAUNCH_RUNNING ? "the program still runs"
                                : l->options.record_path         ? "the launch is finished already"
                                                         : "the launch has no path for a record");
    }
    l->state = HOTFN_LAUNCH_FINISHED;
    hotfn_status status = write_record(l, l->options.record_path, err);
    if (status != HOTFN_OK) {
        hfn_launch_unlink_record(l);
        write_fallback(l);
        return status;
    }
    l->is_linked = false; /* the record replaced the link */
    l->is_kept = true;
    if (l->attachment || hfn_plan_channel_get_stats(l->channel, &stats) == HOTFN_OK) {
        hfn_runtime_check(l);
        hfn_objects_check(l);
        warn_of_unmatched_globs(l);
    }
    return HOTFN_OK;
}

void hotfn_launch_destroy(hotfn_launch *l)
{
    if (!l) {
        return;
    }
    hfn_switch_stop(l);
    if (l->state == HOTFN_LAUNCH_RUNNING && l->attachment) {
        hfn_patch_watch_stop(l, true);
        hfn_watcher_stop(&l->observation.watcher);
        hfn_plan_service_stop(l);
        hfn_attachment_leave(l->attachment, NULL);
    } else if (l->state == HOTFN_LAUNCH_RUNNING) {
        end_replacements(l);
        hfn_send_thread_stop(l, false);
        hfn_budget_thread_stop(l);
        hfn_patch_watch_stop(l, false);
        hfn_watcher_stop(&l->observation.watcher);
        hfn_plan_service_stop(l);
    }
    hfn_os_child_release_signals(&l->child);
    hfn_launch_free(l);
}
