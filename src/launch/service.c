/* SPDX-License-Identifier: MIT */
/* The plan service: a thread that answers the target.  For each module that the target loads it
 * decides whether the module is selected, and if so scans it and hands over the plan.  The target
 * waits meanwhile; it never scans by itself. */
#include "base/status.h"
#include "launch/launch.h"

#include <hotfn/lowlevel/functions.h>
#include <hotfn/lowlevel/timing.h>
#include <string.h>

#define WAIT_NS 1000000000u
#define MAX_ALLOCATOR_FUNCTIONS 256u

/* ---- Modules that are in the record already. */

/* The stamp is needed too: builds that replace each other under one path often have one inode. */
static bool is_file(const hotfn_request *request, uint64_t device, uint64_t inode, uint64_t stamp)
{
    return request->file_device == device && request->file_inode == inode &&
           request->file_stamp == stamp;
}

static uint32_t find_module(const hotfn_launch *l, const hotfn_request *request)
{
    for (uint32_t i = 0; i < hotfn_live_module_count(l->live); i++) {
        hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
        hotfn_live_get_module(l->live, i, &m);
        if (is_file(request, m.file_device, m.file_inode, m.file_stamp)) {
            return i;
        }
    }
    return UINT32_MAX;
}

/* A file that was written a moment ago has no stamp yet that would tell the next change: it is
 * scanned each time and recognised by its id. */
static uint32_t find_same_build(const hotfn_launch *l, const hotfn_scan_info *info)
{
    for (uint32_t i = 0; i < hotfn_live_module_count(l->live); i++) {
        hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
        hotfn_live_get_module(l->live, i, &m);
        if (m.file_device == info->file_device && m.file_inode == info->file_inode &&
            m.id_kind == info->id_kind && m.id_bytes == info->id_bytes && m.id_bytes > 0 &&
            memcmp(m.id, info->id, m.id_bytes) == 0) {
            return i;
        }
    }
    return UINT32_MAX;
}

/* ---- Which modules. */

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool is_selected(hotfn_launch *l, const hotfn_request *request)
{
    const hotfn_launch_options *o = &l->options;
    bool matches = o->module_count == 0 && request->kind == HOTFN_REQUEST_MAIN;

    for (uint32_t i = 0; i < o->module_count; i++) {
        if (hotfn_glob_match(o->modules[i], file_name(request->path)) == 1 ||
            hotfn_glob_match(o->modules[i], request->path) == 1) {
            l->matched_module_globs[i] = 1;
            matches = true;
        }
    }
    return matches;
}

/* The loader calls its breakpoint function for each module that is loaded later, so it is hooked in
 * any case. */
static bool is_loader(const hotfn_launch *l, const hotfn_request *request)
{
    return strcmp(request->path, l->target.interpreter) == 0 ||
           strncmp(file_name(request->path), "ld-linux", 8) == 0;
}

/* With HOTFN_LAUNCH_ALLOC the C library, and other allocators by their names, are hooked for their
 * allocators. */
static bool has_allocator(const hotfn_launch *l, const hotfn_request *request)
{
    const char *file = file_name(request->path);

    return l->options.flags & HOTFN_LAUNCH_ALLOC &&
           (strncmp(file, "libc.so", 7) == 0 || strncmp(file, "libc-", 5) == 0 ||
            strstr(file, "malloc"));
}

/* ---- Modules into the record. */

static uint32_t main_flag(const hotfn_request *request)
{
    return request->kind == HOTFN_REQUEST_MAIN ? HOTFN_MODULE_MAIN : 0;
}

static uint32_t add_without_functions(hotfn_launch *l, const hotfn_request *request, uint32_t flags,
                                      const char *note)
{
    uint32_t module = UINT32_MAX;
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;

    m.flags = flags;
    m.path = request->path;
    m.file_device = request->file_device;
    m.file_inode = request->file_inode;
    m.file_stamp = request->file_stamp;
    if (hotfn_live_add_module(l->live, &m, NULL, &module, NULL) == HOTFN_OK && note) {
        hotfn_live_set_module(l->live, module, flags, request->load_base, note);
    }
    return module;
}

static uint32_t refuse_module(hotfn_launch *l, const hotfn_request *request, const hotfn_error *err)
{
    hfn_log_message(&l->env, HOTFN_LOG_WARNING, "%s is not counted: %s", request->path, err->text);
    return add_without_functions(l, request, main_flag(request) | HOTFN_MODULE_FAILED, err->text);
}

static bool is_allocator(const hotfn_record_function *f)
{
    bool is = hotfn_is_allocator(f->name);

    for (const char *name = f->names; name && *name; name += strlen(name) + 1) {
        is = is || hotfn_is_allocator(name);
    }
    return is;
}

static hotfn_status add_allocators(hotfn_launch *l, const hotfn_scan *scan, uint32_t *module,
                                   hotfn_error *err)
{
    hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;
    uint64_t rvas[MAX_ALLOCATOR_FUNCTIONS];
    uint32_t count = 0;

    hotfn_scan_get_info(scan, &info);
    for (uint32_t i = 0; i < info.function_count && count < MAX_ALLOCATOR_FUNCTIONS; i++) {
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
        hotfn_scan_get_function(scan, i, &f);
        if (is_allocator(&f)) {
            rvas[count++] = f.rva;
        }
    }
    return hotfn_scan_add_to(scan, l->live, 0, NULL, rvas, count, NULL, module, err);
}

/* With a list, only the functions that it names may be hooked. */
static hotfn_status add_functions(hotfn_launch *l, const hotfn_scan *scan, uint32_t flags,
                                  uint32_t *module, hotfn_error *err)
{
    hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;
    hotfn_status status = HOTFN_OK;
    uint64_t *listed = NULL;
    uint32_t count = 0;

    hotfn_scan_get_info(scan, &info);
    size_t bytes = (info.function_count + 1u) * sizeof *listed;
    if (l->list) {
        listed = hfn_allocate_zeroed(&l->env, bytes);
        status = listed
                     ? hotfn_scan_find_listed(scan, l->list, listed, info.function_count, &count,
                                              &l->env, err)
                     : hfn_report_error(err, HOTFN_E_NO_MEMORY, NULL, HOTFN_NO_OFFSET, "no memory");
    }
    if (status == HOTFN_OK) {
        status = hotfn_scan_add_to(scan, l->live, flags, &l->selection, listed, count,
                                   l->matched_includes, module, err);
    }
    hfn_free_memory(&l->env, listed, bytes);
    return status;
}

static hotfn_status add_scan(hotfn_launch *l, const hotfn_request *request, const hotfn_scan *scan,
                             bool selected, uint32_t *module, hotfn_error *err)
{
    hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;
    uint32_t flags = main_flag(request) | (selected ? 0 : HOTFN_MODULE_LEFT_OUT);
    hotfn_status status = !selected && has_allocator(l, request)
                              ? add_allocators(l, scan, module, err)
                              : add_functions(l, scan, flags, module, err);

    hotfn_scan_get_info(scan, &info);
    return status == HOTFN_OK
               ? hotfn_handover_add_plan(l->handover, *module, info.plan, info.plan_bytes, err)
               : status;
}

/* ---- Scans. */

static hotfn_status open_scan(hotfn_launch *l, const hotfn_request *request, hotfn_scan **scan,
                              hotfn_error *err)
{
    const hotfn_launch_options *o = &l->options;
    hotfn_scan_options options = HOTFN_SCAN_OPTIONS_INIT;
    bool is_main = request->kind == HOTFN_REQUEST_MAIN;

    if (l->kit && is_main) {
        *scan = l->kit;
        return HOTFN_OK;
    }
    options.cache_folder = l->cache_folder[0] ? l->cache_folder : NULL;
    options.map_path = is_main ? o->map_path : NULL;
    options.symbol_dirs = o->symbol_dirs;
    options.symbol_dir_count = o->symbol_dir_count;
    options.flags = (o->flags & HOTFN_LAUNCH_FORCE_MAP ? HOTFN_SYMBOLS_FORCE : 0) |
                    (l->timing ? HOTFN_SCAN_TIMING : 0);
    return hotfn_scan_open(scan, request->path, &options, &l->env, err);
}

static hotfn_status check_scan(const hotfn_request *request, const hotfn_scan_info *info,
                               hotfn_error *err)
{
    if (!is_file(request, info->file_device, info->file_inode, info->file_stamp)) {
        return hfn_report_error(err, HOTFN_E_MISMATCH, NULL, HOTFN_NO_OFFSET,
                                "the file was replaced while the program ran");
    }
    return info->image_flags & HOTFN_IMAGE_TEXTREL
               ? hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                                  "the loader rewrites its code (text relocations)")
               : HOTFN_OK;
}

static uint32_t scan_module(hotfn_launch *l, const hotfn_request *request, bool selected)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;
    hotfn_scan *scan;
    uint32_t module = UINT32_MAX;

    if (open_scan(l, request, &scan, &err) != HOTFN_OK) {
        return refuse_module(l, request, &err);
    }
    hotfn_scan_get_info(scan, &info);
    hotfn_status status = check_scan(request, &info, &err);
    if (status == HOTFN_OK) {
        module = find_same_build(l, &info);
    }
    if (status == HOTFN_OK && module == UINT32_MAX) {
        status = add_scan(l, request, scan, selected, &module, &err);
    }
    if (scan != l->kit) {
        hotfn_scan_close(scan);
    }
    return status == HOTFN_OK ? module : refuse_module(l, request, &err);
}

/* ---- The thread. */

/* Returns the number of the module in the record. */
static uint32_t resolve_request(hotfn_launch *l, const hotfn_request *request)
{
    uint32_t module = find_module(l, request);
    bool selected = is_selected(l, request);

    if (module != UINT32_MAX) {
        return module;
    }
    /* With a kit nothing is scanned here, so the loader is needed only for modules that are loaded
     * later. */
    bool needs_loader = !l->kit || l->options.module_count > 0;
    if (selected || has_allocator(l, request) || (needs_loader && is_loader(l, request))) {
        return scan_module(l, request, selected);
    }
    return add_without_functions(l, request, HOTFN_MODULE_LEFT_OUT, NULL);
}

static void serve_requests(void *user)
{
    hotfn_launch *l = user;

    while (!atomic_load(&l->service.stop)) {
        hotfn_request request = HOTFN_REQUEST_INIT;
        if (hotfn_handover_wait(l->handover, WAIT_NS, &request) == HOTFN_OK &&
            request.kind != HOTFN_REQUEST_NONE) {
            hotfn_handover_answer(l->handover, resolve_request(l, &request));
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
        hotfn_handover_ring(l->handover);
        hfn_os_join_thread(&s->thread);
        s->is_started = false;
    }
}
