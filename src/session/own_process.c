/* SPDX-License-Identifier: MIT */
/* A session that scans its own process.  Counts go to a live record, so that a snapshot is an
 * ordinary record. */
#include "base/status.h"
#include "live/live.h"
#include "scan/choice.h"
#include "scan/file_stamp.h"
#include "scan/scan.h"
#include "session/own_session.h"
#include "session/session.h"

#include <hotfn/lowlevel/timing.h>
#include <string.h>

#define DEFAULT_SLOTS (1u << 20)
/* If calls are timed, a slot takes 84 bytes of address space per thread, or of disk if the record
 * is durable. */
#define TIMED_SLOTS (1u << 17)
#define TIMED_DURABLE_SLOTS (1u << 16)
#define TIMED_NARROW_SLOTS (1u << 15)
#define MAX_LOADER_BYTES (16u << 20) /* of the dynamic loader's image in memory */

/* ---- Plans from scans. */

static hfn_module_rules module_rules(const hotfn_session *s)
{
    return (hfn_module_rules){ .globs = s->modules,
                               .glob_count = s->module_count,
                               .needs_loader = true };
}

static hfn_module_facts describe_module(const hfn_plan_request *request, bool is_main)
{
    uint64_t breakpoint = hfn_os_get_module_list_hook();
    return (hfn_module_facts){
        .path = request->path,
        .file = { request->file_device, request->file_inode, request->file_stamp },
        .is_main = is_main,
        .is_near_breakpoint =
            breakpoint >= request->load_base && breakpoint - request->load_base < MAX_LOADER_BYTES,
    };
}

static hfn_scanned *find_scan(const hotfn_session *s, uint32_t number)
{
    hfn_scanned *scan = s->scans;
    while (scan && scan->number != number) {
        scan = scan->next;
    }
    return scan;
}

/* Append the functions of a scan to the live record. */
static hotfn_status add_to_record(hotfn_session *s, hfn_scanned *scanned, hfn_module_use use,
                                  uint32_t flags, hotfn_error *err)
{
    hfn_function_rules rules = { .selection = &s->selection, .list = s->list };
    hfn_scan_choice choice;
    hotfn_status status = hfn_scan_choose(&choice, scanned->scan, use, flags, &rules, err);
    if (status != HOTFN_OK) {
        return status;
    }
    hfn_function_source source = hfn_scan_choice_source(&choice);
    status = hfn_live_add_module_from(s->live, &choice.module, &source, &scanned->live_module, err);
    hfn_scan_choice_finish(&choice);
    return status == HOTFN_OK ? hfn_session_find_members(s, scanned, err) : status;
}

static bool keep_scan(hotfn_session *s, hfn_scanned *scanned, const hfn_module_facts *facts,
                      const hotfn_scan_info *info)
{
    scanned->number = (uint32_t)s->known.count;
    if (!hfn_known_modules_add(&s->known, facts, info,
                               !scanned->scan || hfn_scan_stamp_is_reliable(scanned->scan),
                               scanned->number)) {
        return false;
    }
    scanned->next = s->scans;
    s->scans = scanned;
    return true;
}

/* Check a scan and keep it, unless it is of a build that was scanned before.  Returns the scan to
 * use, or NULL with err. */
static hfn_scanned *accept_scan(hotfn_session *s, hfn_scanned *scanned,
                                const hfn_module_facts *facts, hfn_module_use use, hotfn_error *err)
{
    hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;
    hotfn_scan_get_info(scanned->scan, &info);
    if (hfn_modules_check_scan(facts, &info, err) != HOTFN_OK) {
        return NULL;
    }
    hfn_scanned *known = find_scan(s, hfn_known_modules_find_build(&s->known, &info));
    if (known) {
        return known;
    }
    if (!keep_scan(s, scanned, facts, &info)) {
        hfn_report_no_memory(err, facts->path);
        return NULL;
    }
    if (add_to_record(s, scanned, use, facts->is_main ? HOTFN_MODULE_MAIN : 0, err) != HOTFN_OK) {
        hfn_log_message(&s->env, HOTFN_LOG_WARNING, "%s", err->text);
        scanned->live_module = UINT32_MAX;
    }
    return scanned;
}

/* NULL with err if the file cannot be scanned. */
static hfn_scanned *scan_file(hotfn_session *s, const hfn_module_facts *facts, hfn_module_use use,
                              const hotfn_scan_options *options, hotfn_error *err)
{
    hfn_scanned *scanned = hfn_arena_alloc(&s->texts, sizeof *scanned);
    if (!scanned) {
        hfn_report_no_memory(err, facts->path);
        return NULL;
    }
    if (hotfn_scan_open(&scanned->scan, facts->path, options, &s->env, err) != HOTFN_OK) {
        return NULL;
    }
    hfn_scanned *accepted = accept_scan(s, scanned, facts, use, err);
    if (accepted != scanned) {
        hotfn_scan_close(scanned->scan);
    }
    return accepted;
}

/* No tail exits, because their jumps stay rewritten, and a stop restores every byte. */
static uint32_t get_scan_flags(const hotfn_session *s)
{
    return s->is_timed ? HOTFN_SCAN_TIMING | HOTFN_SCAN_NO_TAIL_EXIT : 0;
}

/* Store that the file cannot be scanned, so that it is not read again. */
static void remember_failure(hotfn_session *s, const hfn_module_facts *facts)
{
    hfn_scanned *scanned = hfn_arena_alloc(&s->texts, sizeof *scanned);

    if (scanned) {
        keep_scan(s, scanned, facts, NULL);
    }
}

static hfn_scanned *scan_module(hotfn_session *s, const hfn_module_facts *facts)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_scan_options options = HOTFN_SCAN_OPTIONS_INIT;
    hfn_module_rules rules = module_rules(s);
    hfn_module_use use = hfn_modules_choose_use(&rules, facts);
    options.cache_folder = s->cache_folder;
    options.flags = get_scan_flags(s);
    if (use == HFN_MODULE_UNUSED) {
        return NULL;
    }
    hfn_scanned *scanned = scan_file(s, facts, use, &options, &err);
    if (!scanned) {
        hfn_log_message(&s->env, HOTFN_LOG_WARNING, "%s: %s", facts->path, err.text);
        remember_failure(s, facts);
    }
    return scanned;
}

static void find_by_scan(void *user, const hfn_plan_request *request, bool is_main,
                         uint32_t *live_module, const void **plan, uint64_t *plan_bytes)
{
    hotfn_session *s = user;
    hfn_module_facts facts = describe_module(request, is_main);
    hfn_scanned *scanned = find_scan(s, hfn_known_modules_find_file(&s->known, &facts.file));
    if (!scanned) {
        scanned = scan_module(s, &facts);
    }
    if (scanned && scanned->scan) {
        hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;
        hotfn_scan_get_info(scanned->scan, &info);
        *live_module = scanned->live_module;
        *plan = info.plan;
        *plan_bytes = info.plan_bytes;
    }
}

static const uint64_t *get_groups(void *user, uint32_t live_module)
{
    const hotfn_session *s = user;
    const hfn_scanned *scan = s->scans;

    while (scan && scan->live_module != live_module) {
        scan = scan->next;
    }
    return scan ? scan->groups : NULL;
}

static void close_scans(hotfn_session *s)
{
    for (hfn_scanned *scan = s->scans; scan; scan = scan->next) {
        hotfn_scan_close(scan->scan);
    }
    hfn_known_modules_finish(&s->known);
}

/* ---- The session. */

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

static void set_timing_options(hfn_live_options *live, const hotfn_session_options *o)
{
    enum { NARROW_THREADS = 64, NARROW_NODES = 1 << 17, NARROW_HISTOGRAMS = 1 << 11 };
    bool narrow = SIZE_MAX <= UINT32_MAX;
    uint32_t slots = o->durable_path ? TIMED_DURABLE_SLOTS : TIMED_SLOTS;

    live->timing = get_timing_flags(o);
    live->sample_mean = o->sample_mean;
    live->slow_ns = o->slow_ns;
    live->with_ticks = o->flags & HOTFN_SESSION_TICKER && hfn_live_can_tick(live->timing);
    live->slot_capacity = o->slot_capacity ? o->slot_capacity : narrow ? TIMED_NARROW_SLOTS : slots;
    if (narrow) {
        live->thread_capacity = NARROW_THREADS;
        live->node_capacity = NARROW_NODES;
        live->histogram_capacity = NARROW_HISTOGRAMS;
    }
}

/* ---- Reading in advance. */

/* The scan is kept for the start, which asks for the same modules. */
static bool read_module(void *user, const hfn_os_module *m)
{
    hfn_plan_request request;
    uint32_t live_module;
    const void *plan;
    uint64_t plan_bytes;

    if (!hfn_process_is_own_module(m) && hfn_session_describe(user, m, &request)) {
        find_by_scan(user, &request, m->is_main, &live_module, &plan, &plan_bytes);
    }
    return true;
}

static void read_modules(void *user)
{
    hotfn_session *s = user;
    void *paused = hotfn_counters_pause();

    hfn_os_each_module(read_module, s);
    if (s->is_timed) {
        hfn_process_measure_hooks(s->live);
        hfn_live_map_first_histograms(s->live);
    }
    hotfn_counters_resume(paused);
}

static void finish_reading(hotfn_session *s)
{
    if (s->is_reading) {
        hfn_os_join_thread(&s->reader);
        s->is_reading = false;
    }
}

static void begin_reading(hotfn_session *s, bool in_background)
{
    s->finish_reading = finish_reading;
    s->is_reading = in_background && hfn_os_start_thread(&s->reader, read_modules, s);
    if (!s->is_reading) {
        read_modules(s);
    }
}

/* ---- The tick clock, if the options allow its threads. */

static void start_clock(hotfn_session *s)
{
    if (!hfn_ticker_start(&s->ticker, hfn_live_tick(s->live), &s->live->clock,
                          hfn_live_time_header(s->live))) {
        hfn_live_use_counter(s->live);
        hfn_live_time_header(s->live)->count_cost_ticks = 0; /* hooks of the counter cost more */
    }
}

static void stop_clock(hotfn_session *s)
{
    hfn_ticker_stop(&s->ticker);
}

static hotfn_status create_record(hotfn_session *s, const hotfn_session_options *o,
                                  hotfn_error *err)
{
    char folder[1024];
    hfn_live_options live = { 0 };
    live.durable_path = o->durable_path;
    live.command = "(own process)";
    hfn_os_get_working_folder(folder, sizeof folder);
    live.directory = folder;
    live.slot_capacity = o->slot_capacity ? o->slot_capacity : DEFAULT_SLOTS;
    if (s->is_timed) {
        set_timing_options(&live, o);
    }
    hotfn_status status = hfn_live_create(&s->live, &live, &s->env, err);
    if (status == HOTFN_OK && live.with_ticks) {
        s->start_clock = start_clock;
        s->stop_clock = stop_clock;
    }
    if (status == HOTFN_OK) {
        hfn_live_set_pid(s->live, hfn_os_get_process_id());
        for (uint32_t reason = 1; reason < 128; reason++) {
            hfn_live_set_reason(s->live, reason, hotfn_reason_get_name(reason),
                                hotfn_reason_get_text(reason));
        }
    }
    return status;
}

/* Scan the program when the session is created, so that a map of another program is reported at
 * once. */
static hotfn_status scan_main_program(hotfn_session *s, const char *map_path, hotfn_error *err)
{
    const char *own = hfn_os_get_program_path();
    hotfn_scan_options options = HOTFN_SCAN_OPTIONS_INIT;
    char path[4096];
    hfn_module_facts facts = { .path = path, .is_main = true };
    hfn_os_file_info file;
    if (!hfn_os_get_program_name(path, sizeof path) || hfn_os_get_path_info(own, &file) != 0) {
        return hfn_report_error(err, HOTFN_E_IO, own, HOTFN_NO_OFFSET,
                                "the program's file cannot be found");
    }
    facts.file = (hfn_file_identity){ file.device, file.inode, hfn_file_stamp(&file) };
    options.map_path = map_path;
    options.cache_folder = s->cache_folder;
    options.flags = get_scan_flags(s);
    hotfn_error why = HOTFN_ERROR_INIT;
    if (!scan_file(s, &facts, HFN_MODULE_SELECTED, &options, &why)) {
        return hfn_report_error(err, why.status, why.file, why.offset, "%s", why.text);
    }
    return HOTFN_OK;
}

/* Is the module the shared library itself?  A glob such as "*" is meant for the other modules. */
static bool is_shared_library(const hfn_os_module *m)
{
    const char *slash = strrchr(m->path, '/'), *file = slash ? slash + 1 : m->path;

    return !m->is_main && (strncmp(file, "libhotfn.so", strlen("libhotfn.so")) == 0 ||
                           strcmp(file, "hotfn.dll") == 0);
}

/* Check whether a selected module contains hotfn, which cannot hook itself. */
static bool find_own_code(void *user, const hfn_os_module *m)
{
    hotfn_session *s = user;
    uint64_t here = (uint64_t)(uintptr_t)&hotfn_session_create;
    hfn_module_rules rules = module_rules(s);
    hfn_module_facts facts = { .path = m->path, .is_main = m->is_main };
    if (here >= m->base && here < m->end && !is_shared_library(m) &&
        hfn_modules_choose_use(&rules, &facts) == HFN_MODULE_SELECTED) {
        s->holds_own_code = true;
    }
    return true;
}

static hotfn_status refuse_own_code(hotfn_session *s, hotfn_error *err)
{
    hfn_os_each_module(find_own_code, s);
    return s->holds_own_code
               ? hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                                  "libhotfn is linked statically into a selected module: link the "
                                  "shared library, or select other modules")
               : HOTFN_OK;
}

hotfn_status hotfn_session_create(hotfn_session **out, const hotfn_session_options *options,
                                  const hotfn_env *env, hotfn_error *err)
{
    if (!out) {
        return hfn_report_null(err, __func__);
    }

    hotfn_session_options o;
    hotfn_selection pick;
    if (!hfn_copy_options(&o, sizeof o, options) ||
        o.flags & ~(HFN_SESSION_FLAGS | HOTFN_SESSION_FLAT | HOTFN_SESSION_TICKER |
                    HOTFN_SESSION_BACKGROUND | HOTFN_SESSION_ZONES) ||
        o.mode > HOTFN_SESSION_TIME || o.reserved ||
        !hfn_copy_options(&pick, sizeof pick, o.selection) || pick.flags) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                "unknown session option");
    }
    hotfn_session *s = hfn_session_new(env);
    if (!s || !hfn_session_copy_options(s, &o, &pick)) {
        hotfn_session_destroy(s);
        return hfn_report_no_memory(err, NULL);
    }
    s->source = (hfn_plan_source){
        .find = find_by_scan, .describe = hfn_session_describe, .get_groups = get_groups, .user = s
    };
    s->hook_flags = HOTFN_HOOKS_REGISTER_UNWIND;
    s->release = close_scans;
    hfn_known_modules_init(&s->known, &s->env);
    hotfn_status status = hfn_session_check_options(s, &o, err);
    if (status == HOTFN_OK) {
        status = hfn_session_copy_groups(s, &o, err);
    }
    if (status == HOTFN_OK) {
        status = refuse_own_code(s, err);
    }
    if (status == HOTFN_OK) {
        status = hfn_session_claim(s, err);
    }
    if (status == HOTFN_OK && s->is_timed) {
        status = hfn_session_prepare_timing(s, err);
    }
    if (status == HOTFN_OK) {
        status = create_record(s, &o, err);
    }
    if (status == HOTFN_OK && o.flags & HOTFN_SESSION_ZONES) {
        status = hfn_session_add_zones(s, err);
    }
    if (status == HOTFN_OK && o.map_path) {
        status = scan_main_program(s, o.map_path, err);
    }
    if (status != HOTFN_OK) {
        hotfn_session_destroy(s);
        return status;
    }
    begin_reading(s, (o.flags & HOTFN_SESSION_BACKGROUND) != 0);
    *out = s;
    return HOTFN_OK;
}
