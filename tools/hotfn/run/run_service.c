/* SPDX-License-Identifier: MIT */
/* A thread of `hotfn run` that answers the target: which module it has just loaded, whether it is
 * wanted, and if so its scan and plan.  The target waits meanwhile; it never scans by itself. */
#include "cli/commands.h"
#include "run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Builds that follow each other under one path often have one inode. */
static bool is_file(const hotfn_request *request, uint64_t device, uint64_t inode, uint64_t stamp)
{
    return request->file_device == device && request->file_inode == inode &&
           request->file_stamp == stamp;
}

static uint32_t known_module(const run_service *s, const hotfn_request *request)
{
    for (uint32_t i = 0; i < hotfn_live_module_count(s->live); i++) {
        hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
        hotfn_live_get_module(s->live, i, &m);
        if (is_file(request, m.file_device, m.file_inode, m.file_stamp)) {
            return i;
        }
    }
    return UINT32_MAX;
}

/* A file that was made a moment ago is scanned whenever it comes: its stamp could not tell a change yet. */
static uint32_t same_build(const run_service *s, const hotfn_scan_info *info)
{
    for (uint32_t i = 0; i < hotfn_live_module_count(s->live); i++) {
        hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
        hotfn_live_get_module(s->live, i, &m);
        if (m.file_device == info->file_device && m.file_inode == info->file_inode &&
            m.id_kind == info->id_kind && m.id_bytes == info->id_bytes && m.id_bytes > 0 &&
            memcmp(m.id, info->id, m.id_bytes) == 0) {
            return i;
        }
    }
    return UINT32_MAX;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool wanted(const run_service *s, const hotfn_request *request)
{
    const run_list *globs = &s->options->modules;
    bool matches = globs->count == 0 && request->kind == HOTFN_REQUEST_MAIN;
    for (uint32_t i = 0; i < globs->count; i++) {
        if (hotfn_glob_match(globs->items[i], file_name(request->path)) == 1 ||
            hotfn_glob_match(globs->items[i], request->path) == 1) {
            s->modules_used[i] = 1;
            matches = true;
        }
    }
    return matches;
}

/* Its breakpoint function tells the target of later modules, so it is planned in any case. */
static bool is_loader(const run_service *s, const hotfn_request *request)
{
    return strcmp(request->path, s->target->interpreter) == 0 ||
           strncmp(file_name(request->path), "ld-linux", 8) == 0;
}

static uint32_t add_without_functions(run_service *s, const hotfn_request *request, uint32_t flags,
                                      const char *note)
{
    uint32_t module = UINT32_MAX;
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    m.flags = flags;
    m.path = request->path;
    m.file_device = request->file_device;
    m.file_inode = request->file_inode;
    m.file_stamp = request->file_stamp;
    if (hotfn_live_add_module(s->live, &m, NULL, &module, NULL) == HOTFN_OK && note) {
        hotfn_live_set_module(s->live, module, flags, request->load_base, note);
    }
    return module;
}

static uint32_t refuse_module(run_service *s, const hotfn_request *request, const hotfn_error *err)
{
    if (!s->options->quiet) {
        fprintf(stderr, "hotfn run: %s is not counted: %s\n", request->path, err->text);
    }
    uint32_t flags = request->kind == HOTFN_REQUEST_MAIN ? HOTFN_MODULE_MAIN : 0;
    return add_without_functions(s, request, flags | HOTFN_MODULE_FAILED, err->text);
}

/* --with alloc: the C library, and other allocators by their names, are hooked for these alone. */
static bool has_allocator(const run_service *s, const hotfn_request *request)
{
    const char *file = file_name(request->path);
    return s->options->with_alloc && (strncmp(file, "libc.so", 7) == 0 ||
                                      strncmp(file, "libc-", 5) == 0 || strstr(file, "malloc"));
}

static bool is_allocator(const hotfn_record_function *f)
{
    bool is = hotfn_is_allocator(f->name);
    for (const char *name = f->names; name && *name; name += strlen(name) + 1) {
        is = is || hotfn_is_allocator(name);
    }
    return is;
}

static hotfn_status add_allocator(run_service *s, const hotfn_scan *scan, uint32_t *module,
                                  hotfn_error *err)
{
    enum { MOST = 256 };
    hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;
    uint64_t rvas[MOST];
    uint32_t count = 0;
    hotfn_scan_get_info(scan, &info);
    for (uint32_t i = 0; i < info.function_count && count < MOST; i++) {
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
        hotfn_scan_get_function(scan, i, &f);
        if (is_allocator(&f)) {
            rvas[count++] = f.rva;
        }
    }
    return hotfn_scan_add_to(scan, s->live, 0, NULL, rvas, count, NULL, module, err);
}

static hotfn_status add_scan(run_service *s, const hotfn_request *request, const hotfn_scan *scan,
                             bool want, uint32_t *module, hotfn_error *err)
{
    const run_options *o = s->options;
    hotfn_selection pick = HOTFN_SELECTION_INIT;
    hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;
    const uint64_t *only = NULL;
    uint32_t only_count = 0;
    uint32_t flags = request->kind == HOTFN_REQUEST_MAIN ? HOTFN_MODULE_MAIN : 0;
    pick.include = o->include.items;
    pick.include_count = o->include.count;
    pick.exclude = o->exclude.items;
    pick.exclude_count = o->exclude.count;
    pick.min_bytes = o->min_bytes;
    pick.max_bytes = o->max_bytes;
    hotfn_status status = HOTFN_OK;
    if (s->only && (want || !has_allocator(s, request))) {
        status = run_only_find(s->only, scan, &s->env, &only, &only_count, err);
    }
    if (!want && has_allocator(s, request)) {
        status = add_allocator(s, scan, module, err);
    } else if (status == HOTFN_OK) {
        status = hotfn_scan_add_to(scan, s->live, want ? flags : flags | HOTFN_MODULE_LEFT_OUT,
                                   &pick, only, only_count, s->include_used, module, err);
    }
    hotfn_scan_get_info(scan, &info);
    if (status == HOTFN_OK) {
        status = hotfn_handover_add_plan(s->handover, *module, info.plan, info.plan_bytes, err);
    }
    return status;
}

static uint32_t scan_module(run_service *s, const hotfn_request *request, bool want)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_scan_options options = HOTFN_SCAN_OPTIONS_INIT;
    hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;
    hotfn_scan *scan;
    uint32_t module = UINT32_MAX;
    options.cache_folder = s->cache_folder[0] ? s->cache_folder : NULL;
    options.map_path = request->kind == HOTFN_REQUEST_MAIN ? s->options->map_path : NULL;
    options.symbol_dirs = s->options->symbol_dirs.items;
    options.symbol_dir_count = s->options->symbol_dirs.count;
    options.flags = s->options->force ? HOTFN_SYMBOLS_FORCE : 0;
    options.flags |= s->options->timing ? HOTFN_SCAN_TIMING : 0;
    bool from_kit = s->kit && request->kind == HOTFN_REQUEST_MAIN;
    if (from_kit) {
        scan = s->kit;
    } else if (hotfn_scan_open(&scan, request->path, &options, &s->env, &err) != HOTFN_OK) {
        return refuse_module(s, request, &err);
    }
    hotfn_scan_get_info(scan, &info);
    hotfn_status status = HOTFN_OK;
    if (!is_file(request, info.file_device, info.file_inode, info.file_stamp)) {
        status = HOTFN_E_MISMATCH;
        snprintf(err.text, sizeof err.text, "the file was replaced while the program ran");
    } else if (info.image_flags & HOTFN_IMAGE_TEXTREL) {
        status = HOTFN_E_UNSUPPORTED;
        snprintf(err.text, sizeof err.text, "the loader rewrites its code (text relocations)");
    }
    module = same_build(s, &info);
    if (status == HOTFN_OK && module == UINT32_MAX) {
        status = add_scan(s, request, scan, want, &module, &err);
    }
    if (!from_kit) {
        hotfn_scan_close(scan);
    }
    return status == HOTFN_OK ? module : refuse_module(s, request, &err);
}

static uint32_t answer(run_service *s, const hotfn_request *request)
{
    uint32_t module = known_module(s, request);
    bool want = wanted(s, request);
    s->main_seen |= request->kind == HOTFN_REQUEST_MAIN;
    if (module != UINT32_MAX) {
        return module;
    }
    /* With a kit nothing is scanned here: the loader is needed only for modules that come later. */
    bool later = !s->kit || s->options->modules.count > 0;
    if (want || has_allocator(s, request) || (later && is_loader(s, request))) {
        return scan_module(s, request, want);
    }
    return add_without_functions(s, request, HOTFN_MODULE_LEFT_OUT, NULL);
}

static void *serve(void *user)
{
    run_service *s = user;
    while (!atomic_load(&s->stop)) {
        hotfn_request request = HOTFN_REQUEST_INIT;
        if (hotfn_handover_wait(s->handover, 1000000000u, &request) == HOTFN_OK &&
            request.kind != HOTFN_REQUEST_NONE) {
            hotfn_handover_answer(s->handover, answer(s, &request));
        }
    }
    return NULL;
}

static void choose_cache(run_service *s)
{
    const char *base = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (s->options->no_cache) {
        return;
    }
    if (base && base[0] == '/') {
        snprintf(s->cache_folder, sizeof s->cache_folder, "%s/hotfn", base);
    } else if (home && home[0] == '/' && access(home, F_OK) == 0) { /* nobody's home is not made */
        snprintf(s->cache_folder, sizeof s->cache_folder, "%s/.cache/hotfn", home);
    }
}

bool run_service_start(run_service *s)
{
    choose_cache(s);
    atomic_store(&s->stop, false);
    s->include_used = calloc(s->options->include.count + 1u, 1);
    s->modules_used = calloc(s->options->modules.count + 1u, 1);
    return s->include_used && s->modules_used && pthread_create(&s->thread, NULL, serve, s) == 0;
}

void run_service_stop(run_service *s)
{
    atomic_store(&s->stop, true);
    hotfn_handover_ring(s->handover);
    pthread_join(s->thread, NULL);
}
