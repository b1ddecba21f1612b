/* SPDX-License-Identifier: MIT */
/* The plan service: a thread that answers the target's requests.  For each module that the target
 * loads, the module policy (scan/modules.h) decides how it is used.  If it is hooked, the service
 * scans it and sends the plan; the target waits meanwhile and never scans itself. */
#include "base/status.h"
#include "launch/attach/attached.h"
#include "launch/launch.h"
#include "live/live.h"
#include "os/clock.h"
#include "scan/choice.h"
#include "scan/scan.h"

#include <stdio.h>

/* ---- Modules and their use. */

static hfn_module_rules get_module_rules(const hotfn_launch *l)
{
    const hfn_runtime_kind *runtime = hfn_runtime_find(l->options.runtime);

    return (hfn_module_rules){
        .globs = l->options.modules,
        .glob_count = l->options.module_count,
        .glob_used = l->matched_module_globs,
        .loader_path = l->target.interpreter,
        /* With a kit only the main program is hooked, unless globs choose other modules. */
        .needs_loader = !l->attachment && (!l->kit || l->options.module_count > 0),
        .needs_allocators = (l->options.flags & HOTFN_LAUNCH_ALLOC) != 0,
        .replaced = runtime         ? runtime->libraries
                    : l->attachment ? hfn_attachment_find_libraries()
                                    : NULL,
    };
}

static hfn_module_facts describe_module(const hfn_plan_request *request)
{
    return (hfn_module_facts){
        .path = request->path,
        .file = { request->file_device, request->file_inode, request->file_stamp },
        .is_main = request->kind == HFN_PLAN_REQUEST_MAIN,
    };
}

/* ---- Modules into the record. */

static uint32_t get_main_flag(const hfn_module_facts *facts)
{
    return facts->is_main ? HOTFN_MODULE_MAIN : 0;
}

static void remember_module(hotfn_launch *l, const hfn_module_facts *facts,
                            const hotfn_scan_info *info, bool stamp_is_reliable, uint32_t module)
{
    if (!hfn_known_modules_add(&l->known, facts, info, stamp_is_reliable, module)) {
        hfn_log_message(&l->env, HOTFN_LOG_WARNING,
                        "%s is scanned again when it is loaded again: no memory", facts->path);
    }
}

/* A module without functions has no id that could identify it, so it is remembered by its file even
 * if the file's stamp is not reliable. */
static uint32_t add_without_functions(hotfn_launch *l, const hfn_plan_request *request,
                                      uint32_t flags, const char *note)
{
    uint32_t module = UINT32_MAX;
    hfn_module_facts facts = describe_module(request);
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;

    m.flags = flags;
    m.path = request->path;
    m.file_device = request->file_device;
    m.file_inode = request->file_inode;
    m.file_stamp = request->file_stamp;
    if (hfn_live_add_module(l->live, &m, NULL, &module, NULL) != HOTFN_OK) {
        return UINT32_MAX;
    }
    if (note) {
        hfn_live_set_module(l->live, module, flags, request->load_base, note);
    }
    remember_module(l, &facts, NULL, true, module);
    return module;
}

static uint32_t refuse_module(hotfn_launch *l, const hfn_plan_request *request,
                              const hfn_module_facts *facts, const hotfn_error *err)
{
    hfn_log_message(&l->env, HOTFN_LOG_WARNING, "%s is not counted: %s", request->path, err->text);
    return add_without_functions(l, request, get_main_flag(facts) | HOTFN_MODULE_FAILED, err->text);
}

static hotfn_status add_functions(hotfn_launch *l, const hfn_module_facts *facts,
                                  const hotfn_scan *scan, hfn_module_use use, uint32_t *module,
                                  hotfn_error *err)
{
    hfn_function_rules rules = { .selection = &l->selection,
                                 .include_used = l->matched_includes,
                                 .list = l->list };
    hfn_scan_choice choice;
    hotfn_status status = hfn_scan_choose(&choice, scan, use, get_main_flag(facts), &rules, err);

    if (status == HOTFN_OK) {
        hfn_function_source source = hfn_scan_choice_source(&choice);
        status = hfn_live_add_module_from(l->live, &choice.module, &source, module, err);
        hfn_scan_choice_finish(&choice);
    }
    return status;
}

static hotfn_status add_scan(hotfn_launch *l, const hfn_module_facts *facts, const hotfn_scan *scan,
                             hfn_module_use use, uint32_t *module, hotfn_error *err)
{
    hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;
    hotfn_status status = hfn_runtime_is_pool(l, &facts->file)
                              ? hfn_runtime_add_pool(l, scan, module, err)
                              : add_functions(l, facts, scan, use, module, err);

    if (status != HOTFN_OK) {
        return status;
    }
    hotfn_scan_get_info(scan, &info);
    status = hfn_plan_channel_add(l->channel, *module, info.plan, info.plan_bytes, err);
    if (status == HOTFN_OK) {
        remember_module(l, facts, &info, hfn_scan_stamp_is_reliable(scan), *module);
    }
    return status;
}

/* ---- Scans. */

/* Only the analysis for timed calls shows whether a function can be replaced. */
static hotfn_status open_scan(hotfn_launch *l, const hfn_plan_request *request, hfn_module_use use,
                              hotfn_scan **scan, hotfn_error *err)
{
    const hotfn_launch_options *o = &l->options;
    hotfn_scan_options options = HOTFN_SCAN_OPTIONS_INIT;
    bool is_main = request->kind == HFN_PLAN_REQUEST_MAIN;

    if (l->kit && is_main) {
        *scan = l->kit;
        return HOTFN_OK;
    }
    options.cache_folder = l->cache_folder[0] ? l->cache_folder : NULL;
    options.map_path = is_main ? o->map_path : NULL;
    options.symbol_dirs = o->symbol_dirs;
    options.symbol_dir_count = o->symbol_dir_count;
    options.flags = (o->flags & HOTFN_LAUNCH_FORCE_MAP ? HOTFN_SYMBOLS_FORCE : 0) |
                    (o->flags & HOTFN_LAUNCH_FOUND ? HOTFN_SCAN_FOUND : 0) |
                    (l->timing || use == HFN_MODULE_REPLACED ? HOTFN_SCAN_TIMING : 0) |
                    (l->timing && l->attachment ? hfn_attachment_get_scan_flags() : 0);
    return hotfn_scan_open(scan, request->path, &options, &l->env, err);
}

static uint32_t scan_module(hotfn_launch *l, const hfn_plan_request *request,
                            const hfn_module_facts *facts, hfn_module_use use)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;
    hotfn_scan *scan;
    uint32_t module = UINT32_MAX;

    if (open_scan(l, request, use, &scan, &err) != HOTFN_OK) {
        return refuse_module(l, request, facts, &err);
    }
    hotfn_scan_get_info(scan, &info);
    hotfn_status status = hfn_modules_check_scan(facts, &info, &err);
    if (status == HOTFN_OK) {
        module = hfn_known_modules_find_build(&l->known, &info);
    }
    if (status == HOTFN_OK && module == UINT32_MAX) {
        status = add_scan(l, facts, scan, use, &module, &err);
    }
    if (scan != l->kit) {
        hotfn_scan_close(scan);
    }
    return status == HOTFN_OK ? module : refuse_module(l, request, facts, &err);
}

/* ---- The thread. */

/* Stop the tick clock during a scan, which needs the processors, if the program has no hooks yet
 * and thus no thread reads the clock.  Returns whether it was stopped. */
static bool stop_ticker(hotfn_launch *l)
{
    hfn_start_stats stats;
    bool is_unread = !l->attachment && hfn_live_tick(l->live) &&
                     hfn_plan_channel_get_stats(l->channel, &stats) != HOTFN_OK;

    if (is_unread) {
        hfn_ticker_stop(&l->ticker);
    }
    return is_unread;
}

static uint32_t scan_in_quiet(hotfn_launch *l, const hfn_plan_request *request,
                              const hfn_module_facts *facts, hfn_module_use use)
{
    bool is_stopped = stop_ticker(l);
    uint32_t module = scan_module(l, request, facts, use);

    if (is_stopped && hfn_launch_start_ticker(l, NULL) != HOTFN_OK) {
        hfn_log_message(&l->env, HOTFN_LOG_ERROR,
                        "no thread can be started for the tick clock: times are 0");
    }
    return module;
}

uint32_t hfn_plan_service_resolve(hotfn_launch *l, const hfn_plan_request *request)
{
    hfn_module_rules rules = get_module_rules(l);
    hfn_module_facts facts = describe_module(request);
    uint32_t module = hfn_known_modules_find_file(&l->known, &facts.file);

    if (module != UINT32_MAX) {
        return module;
    }
    hfn_module_use use = hfn_runtime_is_pool(l, &facts.file)
                             ? HFN_MODULE_SELECTED
                             : hfn_modules_choose_use(&rules, &facts);
    return use != HFN_MODULE_UNUSED
               ? scan_in_quiet(l, request, &facts, use)
               : add_without_functions(l, request, HOTFN_MODULE_LEFT_OUT, NULL);
}

/* The program's own request names the script that started it. */
static void note_start(hotfn_launch *l, const hfn_plan_request *request)
{
    if (request->kind == HFN_PLAN_REQUEST_MAIN &&
        hfn_plan_channel_get_requester(l->channel) == l->child.pid) {
        snprintf(l->script, sizeof l->script, "%.*s", (int)sizeof l->script - 1,
                 request->is_script ? request->started_as : "");
    }
}

static void answer_request(hotfn_launch *l, const hfn_plan_request *request)
{
    bool is_programs = hfn_plan_channel_get_requester(l->channel) == l->child.pid;
    uint64_t begin_ns = hfn_os_monotonic_ns();

    note_start(l, request);
    hfn_plan_channel_answer(l->channel, hfn_plan_service_resolve(l, request));
    if (is_programs) {
        atomic_fetch_add(&l->waited_ns, hfn_os_monotonic_ns() - begin_ns);
    }
}

static void serve_requests(void *user)
{
    hotfn_launch *l = user;

    while (!atomic_load(&l->service.stop)) {
        hfn_plan_request request = { 0 };
        hfn_plan_channel_wait(l->channel, HFN_CHILDREN_PAUSE_NS, &request);
        if (request.kind == HFN_PLAN_REQUEST_IMAGE) {
            hfn_launch_follow_exec(l, &request);
        } else if (request.kind != HFN_PLAN_REQUEST_NONE) {
            answer_request(l, &request);
        }
        if (l->children.pid) {
            hfn_children_sample(&l->children, l->live, l->channel);
        }
    }
}

bool hfn_plan_service_start(hotfn_launch *l)
{
    hfn_plan_service *s = &l->service;

    atomic_store(&s->stop, false);
    s->is_started = hfn_os_start_thread(&s->thread, serve_requests, l);
    return s->is_started;
}

void hfn_plan_service_stop(hotfn_launch *l)
{
    hfn_plan_service *s = &l->service;

    if (s->is_started) {
        atomic_store(&s->stop, true);
        hfn_plan_channel_wake(l->channel);
        hfn_os_join_thread(&s->thread);
        hfn_plan_channel_close(l->channel);
        s->is_started = false;
    }
}
