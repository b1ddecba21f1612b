/* SPDX-License-Identifier: MIT */
/* A session that scans its own process.  Counts go to a live record, so that a snapshot is an ordinary record. */
#include "base/status.h"
#include "scan/file_stamp.h"
#include "session/session.h"

#include <hotfn/lowlevel/timing.h>
#include <string.h>

#define DEFAULT_SLOTS (1u << 20)
/* If calls are timed, a slot takes 92 bytes of address space per thread, or of disk if the record is durable. */
#define TIMED_SLOTS (1u << 17)
#define TIMED_DURABLE_SLOTS (1u << 16)
#define TIMED_NARROW_SLOTS (1u << 15)
#define MAX_SAMPLE_MEAN 1000000u

/* ---- Copies of options. */

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

static bool copy_options(hotfn_session *s, const hotfn_session_options *o,
                         const hotfn_selection *pick)
{
    s->flags = o->flags & HFN_SESSION_FLAGS;
    s->is_timed = o->mode == HOTFN_SESSION_TIME;
    s->module_count = o->module_count;
    s->list = o->list;
    s->selection = *pick;
    s->selection.size = sizeof s->selection;
    s->cache_folder = o->cache_folder ? copy_text(s, o->cache_folder) : NULL;
    return (s->cache_folder || !o->cache_folder) &&
           copy_list(s, o->modules, o->module_count, &s->modules) &&
           copy_list(s, pick->include, pick->include_count, &s->selection.include) &&
           copy_list(s, pick->exclude, pick->exclude_count, &s->selection.exclude);
}

/* ---- Plans from scans. */

static bool is_module_selected(const hotfn_session *s, const char *path, bool is_main)
{
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    for (uint32_t i = 0; i < s->module_count; i++) {
        if (hotfn_glob_match(s->modules[i], file) == 1 ||
            hotfn_glob_match(s->modules[i], path) == 1) {
            return true;
        }
    }
    return s->module_count == 0 && is_main;
}

static hfn_scanned *find_scan(hotfn_session *s, const hotfn_request *request)
{
    for (hfn_scanned *scan = s->scans; scan; scan = scan->next) {
        if (scan->device == request->file_device && scan->inode == request->file_inode &&
            scan->file_stamp == request->file_stamp) {
            return scan;
        }
    }
    return NULL;
}

static bool is_loader(const hotfn_request *request)
{
    uint64_t breakpoint = hfn_os_get_module_list_hook();
    return breakpoint >= request->load_base && breakpoint - request->load_base < (16u << 20) &&
           strstr(request->path, "/ld") != NULL;
}

/* Add the functions of a scan to the record.  With a list, only listed functions may be hooked. */
static hotfn_status add_scan(hotfn_session *s, hfn_scanned *scanned, uint32_t flags,
                             hotfn_error *err)
{
    hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;
    hotfn_status status = HOTFN_OK;
    uint64_t *listed = NULL;
    uint32_t count = 0;
    hotfn_scan_get_info(scanned->scan, &info);
    size_t bytes = (size_t)info.function_count * sizeof *listed + 1;
    if (s->list) {
        listed = hfn_alloc(&s->env, bytes);
        status = listed ? hotfn_scan_find_listed(scanned->scan, s->list, listed,
                                                 info.function_count, &count, &s->env, err)
                        : hfn_fail(err, HOTFN_E_NO_MEMORY, info.path, HOTFN_NO_OFFSET, "no memory");
    }
    if (status == HOTFN_OK) {
        status = hotfn_scan_add_to(scanned->scan, s->live, flags, &s->selection, listed, count,
                                   NULL, &scanned->live_module, err);
    }
    hfn_free(&s->env, listed, bytes);
    return status;
}

/* Find an earlier scan of the same build whose file stamp did not identify it; NULL if there is none. */
static hfn_scanned *find_same_build(const hotfn_session *s, const hfn_scanned *scanned,
                                    const hotfn_scan_info *info)
{
    for (hfn_scanned *other = s->scans; other; other = other->next) {
        hotfn_scan_info known = HOTFN_SCAN_INFO_INIT;
        hotfn_scan_get_info(other->scan, &known);
        if (other->device == scanned->device && other->inode == scanned->inode &&
            known.plan_bytes == info->plan_bytes &&
            memcmp(known.plan, info->plan, info->plan_bytes) == 0) {
            return other;
        }
    }
    return NULL;
}

/* Keep a scan and add it to the record.  The file of the running program cannot be overwritten; any other file
 * is recognised later only by its stamp (file_stamp.h). */
static hfn_scanned *keep_scan(hotfn_session *s, hfn_scanned *scanned, uint32_t flags,
                              uint64_t file_stamp, hotfn_error *err)
{
    hotfn_record_module module = HOTFN_RECORD_MODULE_INIT;
    scanned->next = s->scans;
    s->scans = scanned;
    if (add_scan(s, scanned, flags, err) != HOTFN_OK) {
        hfn_log(&s->env, HOTFN_LOG_WARNING, "%s", err->text);
        scanned->live_module = UINT32_MAX;
    }
    hotfn_live_get_module(s->live, scanned->live_module, &module);
    scanned->file_stamp = flags & HOTFN_MODULE_MAIN ? file_stamp : module.file_stamp;
    return scanned;
}

/* NULL with err if the file cannot be scanned. */
static hfn_scanned *scan_file(hotfn_session *s, const hotfn_request *request,
                              const hotfn_scan_options *options, uint32_t flags, hotfn_error *err)
{
    hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;
    hfn_scanned *scanned = hfn_arena_alloc(&s->texts, sizeof *scanned);
    if (!scanned) {
        hfn_fail(err, HOTFN_E_NO_MEMORY, request->path, HOTFN_NO_OFFSET, "no memory");
        return NULL;
    }
    if (hotfn_scan_open(&scanned->scan, request->path, options, &s->env, err) != HOTFN_OK) {
        return NULL;
    }
    hotfn_scan_get_info(scanned->scan, &info);
    scanned->device = info.file_device;
    scanned->inode = info.file_inode;
    bool is_loaded_file = info.file_device == request->file_device &&
                          info.file_inode == request->file_inode &&
                          info.file_stamp == request->file_stamp;
    hfn_scanned *known = is_loaded_file ? find_same_build(s, scanned, &info) : NULL;
    if (is_loaded_file && !known) {
        return keep_scan(s, scanned, flags, request->file_stamp, err);
    }
    hotfn_scan_close(scanned->scan);
    if (!known) {
        hfn_fail(err, HOTFN_E_MISMATCH, request->path, HOTFN_NO_OFFSET,
                 "the file was replaced while the program ran");
    }
    return known;
}

/* No jump may be rewritten for good, because a stop restores every byte. */
static uint32_t get_scan_flags(const hotfn_session *s)
{
    return s->is_timed ? HOTFN_SCAN_TIMING | HOTFN_SCAN_NO_COMEBACK : 0;
}

static hfn_scanned *scan_module(hotfn_session *s, const hotfn_request *request, bool is_main)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_scan_options options = HOTFN_SCAN_OPTIONS_INIT;
    uint32_t flags = is_main ? HOTFN_MODULE_MAIN : 0;
    options.cache_folder = s->cache_folder;
    options.flags = get_scan_flags(s);
    bool selected = is_module_selected(s, request->path, is_main);
    if (!selected && !is_loader(request)) {
        return NULL;
    }
    hfn_scanned *scanned =
        scan_file(s, request, &options, selected ? flags : flags | HOTFN_MODULE_LEFT_OUT, &err);
    if (!scanned) {
        hfn_log(&s->env, HOTFN_LOG_WARNING, "%s: %s", request->path, err.text);
    }
    return scanned;
}

static void find_by_scan(void *user, const hotfn_request *request, bool is_main,
                         uint32_t *live_module, const void **plan, uint64_t *plan_bytes)
{
    hotfn_session *s = user;
    hfn_scanned *scanned = find_scan(s, request);
    if (!scanned) {
        scanned = scan_module(s, request, is_main);
    }
    if (scanned) {
        hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;
        hotfn_scan_get_info(scanned->scan, &info);
        *live_module = scanned->live_module;
        *plan = info.plan;
        *plan_bytes = info.plan_bytes;
    }
}

static void close_scans(hotfn_session *s)
{
    for (hfn_scanned *scan = s->scans; scan; scan = scan->next) {
        hotfn_scan_close(scan->scan);
    }
}

/* ---- The session. */

static hotfn_status check_globs(const char *const *globs, uint32_t count, hotfn_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        if (hotfn_glob_match(globs[i], "") < 0) {
            return hfn_fail(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                            "'%s' is not a glob: close its [ or quote it with \\", globs[i]);
        }
    }
    return HOTFN_OK;
}

static hotfn_status check_options(const hotfn_session *s, hotfn_error *err)
{
    hotfn_status status = check_globs(s->modules, s->module_count, err);
    if (status == HOTFN_OK) {
        status = check_globs(s->selection.include, s->selection.include_count, err);
    }
    return status == HOTFN_OK ? check_globs(s->selection.exclude, s->selection.exclude_count, err)
                              : status;
}

static hotfn_status check_mode(const hotfn_session_options *o, hotfn_error *err)
{
    const char *timing_option = o->sample_mean                  ? "a sample"
                                : o->slow_ns                    ? "slow calls"
                                : o->flags & HOTFN_SESSION_FLAT ? "HOTFN_SESSION_FLAT"
                                                                : NULL;
    if (o->mode == HOTFN_SESSION_COUNT && timing_option) {
        return hfn_fail(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                        "%s: only with HOTFN_SESSION_TIME", timing_option);
    }
    return o->sample_mean > MAX_SAMPLE_MEAN ? hfn_fail(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                                       "sample_mean is at most %u", MAX_SAMPLE_MEAN)
                                            : HOTFN_OK;
}

/* The same as `hotfn run --mode time` keeps. */
static uint32_t get_timing_flags(const hotfn_session_options *o)
{
    uint32_t kept = HOTFN_TIMING_TIMES | (o->slow_ns ? HOTFN_TIMING_SLOW : 0);
    if (o->sample_mean) {
        return kept | HOTFN_TIMING_SAMPLED | HOTFN_TIMING_HISTOGRAMS;
    }
    return o->flags & HOTFN_SESSION_FLAT ? kept
                                         : kept | HOTFN_TIMING_TREE | HOTFN_TIMING_HISTOGRAMS;
}

static void set_timing_options(hotfn_live_options *live, const hotfn_session_options *o)
{
    enum { NARROW_THREADS = 64, NARROW_NODES = 1 << 17, NARROW_HISTOGRAMS = 1 << 11 };
    bool narrow = SIZE_MAX <= UINT32_MAX;
    uint32_t slots = o->durable_path ? TIMED_DURABLE_SLOTS : TIMED_SLOTS;

    live->timing = get_timing_flags(o);
    live->sample_mean = o->sample_mean;
    live->slow_ns = o->slow_ns;
    live->slot_capacity = o->slot_capacity ? o->slot_capacity : narrow ? TIMED_NARROW_SLOTS : slots;
    if (narrow) {
        live->thread_capacity = NARROW_THREADS;
        live->node_capacity = NARROW_NODES;
        live->histogram_capacity = NARROW_HISTOGRAMS;
    }
}

static hotfn_status create_record(hotfn_session *s, const hotfn_session_options *o,
                                  hotfn_error *err)
{
    char folder[1024];
    hotfn_live_options live = HOTFN_LIVE_OPTIONS_INIT;
    live.durable_path = o->durable_path;
    live.command = "(own process)";
    hfn_os_get_working_folder(folder, sizeof folder);
    live.directory = folder;
    live.slot_capacity = o->slot_capacity ? o->slot_capacity : DEFAULT_SLOTS;
    if (s->is_timed) {
        set_timing_options(&live, o);
    }
    hotfn_status status = hotfn_live_create(&s->live, &live, &s->env, err);
    if (status == HOTFN_OK) {
        hotfn_live_set_pid(s->live, hfn_os_get_process_id());
        for (uint32_t reason = 1; reason < 128; reason++) {
            hotfn_live_set_reason(s->live, reason, hotfn_reason_get_name(reason),
                                  hotfn_reason_get_text(reason));
        }
    }
    return status;
}

/* Scan the program when the session is created, so that a map of another program is reported at once. */
static hotfn_status scan_main_program(hotfn_session *s, const char *map_path, hotfn_error *err)
{
    const char *own = hfn_os_get_program_path();
    hotfn_scan_options options = HOTFN_SCAN_OPTIONS_INIT;
    hotfn_request request = HOTFN_REQUEST_INIT;
    hfn_os_file_info file;
    if (!hfn_os_get_program_name(request.path, sizeof request.path) ||
        hfn_os_get_path_info(own, &file) != 0) {
        return hfn_fail(err, HOTFN_E_IO, own, HOTFN_NO_OFFSET,
                        "the program's file cannot be found");
    }
    request.file_device = file.device;
    request.file_inode = file.inode;
    request.file_stamp = hfn_file_stamp(&file);
    options.map_path = map_path;
    options.cache_folder = s->cache_folder;
    options.flags = get_scan_flags(s);
    hotfn_error why = HOTFN_ERROR_INIT;
    if (!scan_file(s, &request, &options, HOTFN_MODULE_MAIN, &why)) {
        return hfn_fail(err, why.status, why.file, why.offset, "%s", why.text);
    }
    return HOTFN_OK;
}

/* Check whether a selected module contains hotfn, which cannot hook itself. */
static bool find_own_code(void *user, const hfn_os_module *m)
{
    hotfn_session *s = user;
    uint64_t here = (uint64_t)(uintptr_t)&hotfn_session_create;
    if (here >= m->base && here < m->end && is_module_selected(s, m->path, m->is_main)) {
        s->holds_own_code = true;
    }
    return true;
}

static hotfn_status refuse_own_code(hotfn_session *s, hotfn_error *err)
{
    hfn_os_each_module(find_own_code, s);
    return s->holds_own_code
               ? hfn_fail(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                          "libhotfn is linked statically into a selected module: link the "
                          "shared library, or select other modules")
               : HOTFN_OK;
}

hotfn_status hotfn_session_create(hotfn_session **out, const hotfn_session_options *options,
                                  const hotfn_env *env, hotfn_error *err)
{
    if (!out) {
        return hfn_fail_null(err, __func__);
    }

    hotfn_session_options o;
    hotfn_selection pick;
    if (!hfn_take_options(&o, sizeof o, options) ||
        o.flags & ~(HFN_SESSION_FLAGS | HOTFN_SESSION_FLAT) || o.mode > HOTFN_SESSION_TIME ||
        !hfn_take_options(&pick, sizeof pick, o.selection) || pick.flags) {
        return hfn_fail(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET, "unknown session option");
    }
    hotfn_session *s = hfn_session_new(env);
    if (!s || !copy_options(s, &o, &pick)) {
        hotfn_session_destroy(s);
        return hfn_fail(err, HOTFN_E_NO_MEMORY, NULL, HOTFN_NO_OFFSET, "no memory");
    }
    s->source = (hfn_plan_source){ find_by_scan, s };
    s->hook_flags = HOTFN_HOOKS_REGISTER_UNWIND;
    s->release = close_scans;
    hotfn_status status = check_mode(&o, err);
    if (status == HOTFN_OK) {
        status = check_options(s, err);
    }
    if (status == HOTFN_OK && s->module_count == 0) {
        status = refuse_own_code(s, err);
    }
    if (status == HOTFN_OK) {
        status = hfn_session_claim(s, err);
    }
    if (status == HOTFN_OK && s->is_timed) {
        status = hfn_session_may_time(s, err);
    }
    if (status == HOTFN_OK) {
        status = create_record(s, &o, err);
    }
    if (status == HOTFN_OK && o.map_path) {
        status = scan_main_program(s, o.map_path, err);
    }
    if (status != HOTFN_OK) {
        hotfn_session_destroy(s);
        return status;
    }
    *out = s;
    return HOTFN_OK;
}
