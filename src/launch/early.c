/* SPDX-License-Identifier: MIT */
/* Refuses a run that would count nothing before the program starts: no function or no module
 * matches.  A module that the program loads later, or a program that it starts by exec, may match,
 * so the run is refused only if no file of the program contains the name of dlopen or exec. */
#include "base/status.h"
#include "launch/launch.h"
#include "os/child.h"
#include "os/os.h"
#include "scan/choice.h"

#include <hotfn/lowlevel/functions.h>
#include <stdio.h>
#include <string.h>

typedef struct evidence {
    const hotfn_launch *l;
    bool has_match;
    bool may_match_later;
} evidence;

static bool matches_path(const char *glob, const char *path)
{
    const char *slash = strrchr(path, '/');

    return hotfn_glob_match(glob, path) == 1 ||
           hotfn_glob_match(glob, slash ? slash + 1 : path) == 1;
}

static bool matches_any_glob(const hotfn_launch *l, const char *path)
{
    char real[HFN_OS_PATH_BYTES];
    bool is_resolved = hfn_os_resolve_path(path, real, sizeof real);

    for (uint32_t i = 0; i < l->options.module_count; i++) {
        if (matches_path(l->options.modules[i], path) ||
            (is_resolved && matches_path(l->options.modules[i], real))) {
            return true;
        }
    }
    return false;
}

/* A file that calls one of these functions contains its name. */
static bool names_function(const char *path, const char *const *names)
{
    uint8_t *bytes = NULL;
    uint64_t byte_count = 0;
    bool found = false;
    hfn_os_file file;
    hfn_os_file_info info;
    void *at = NULL;

    if (hfn_os_open_file(&file, path, HFN_OS_READ) != 0) {
        return true;
    }
    if (hfn_os_get_path_info(path, &info) == 0 &&
        hfn_os_map_file(&at, file, 0, info.byte_count, HFN_OS_MAP_LATEST, 0) == 0) {
        bytes = at;
        byte_count = info.byte_count;
    }
    hfn_os_close_file(file);
    for (; bytes && *names && !found; names++) {
        found = hfn_find_bytes(bytes, byte_count, *names, strlen(*names)) != NULL;
    }
    if (bytes) {
        hfn_os_unmap((uint64_t)(uintptr_t)bytes, byte_count);
    }
    return found || !bytes;
}

static const char *const exec_names[] = { "execv", "execl", "fexecve", NULL };
static const char *const load_names[] = { "dlopen", "dlmopen", "execv", "execl", "fexecve", NULL };

/* The C library contains the names because it defines these functions; its own calls load only
 * modules of the C library. */
static bool is_libc(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    return strncmp(name, "libc.so", 7) == 0 || strncmp(name, "ld-linux", 8) == 0;
}

static void check_module(void *user, const char *path)
{
    evidence *e = user;

    e->has_match |= matches_any_glob(e->l, path);
    e->may_match_later |= !is_libc(path) && names_function(path, load_names);
}

static hotfn_status check_modules(const hotfn_launch *l, hotfn_error *err)
{
    evidence e = { .l = l };

    check_module(&e, l->target.file);
    check_module(&e, l->target.image);
    check_module(&e, l->target.interpreter);
    if (e.has_match || e.may_match_later ||
        !hfn_os_each_library(l->target.interpreter, l->target.image, check_module, &e) ||
        e.has_match || e.may_match_later) {
        return HOTFN_OK;
    }
    return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                            "'%s' matches no module of %s, which loads no others later; "
                            "`hotfn run --module '*'` counts all",
                            l->options.modules[0], l->target.file);
}

/* The scan stays in the cache, so the run does not repeat it. */
static hotfn_status check_functions(hotfn_launch *l, hotfn_error *err)
{
    hotfn_scan_options options = HOTFN_SCAN_OPTIONS_INIT;
    hfn_function_rules rules = { .selection = &l->selection, .include_used = l->matched_includes };
    hotfn_scan *scan;
    hfn_scan_choice choice;

    options.cache_folder = l->cache_folder[0] ? l->cache_folder : NULL;
    options.map_path = l->options.map_path;
    options.symbol_dirs = l->options.symbol_dirs;
    options.symbol_dir_count = l->options.symbol_dir_count;
    options.flags = (l->options.flags & HOTFN_LAUNCH_FORCE_MAP ? HOTFN_SYMBOLS_FORCE : 0) |
                    (l->options.flags & HOTFN_LAUNCH_FOUND ? HOTFN_SCAN_FOUND : 0) |
                    (l->timing ? HOTFN_SCAN_TIMING : 0);
    if (hotfn_scan_open(&scan, l->target.image, &options, &l->env, NULL) != HOTFN_OK) {
        return HOTFN_OK; /* reported when the program is scanned */
    }
    hotfn_status status =
        hfn_scan_choose(&choice, scan, HFN_MODULE_SELECTED, HOTFN_MODULE_MAIN, &rules, err);
    if (status == HOTFN_OK) {
        hfn_scan_choice_finish(&choice);
    }
    hotfn_scan_close(scan);
    for (uint32_t i = 0; i < l->selection.include_count; i++) {
        if (l->matched_includes[i]) {
            return status;
        }
    }
    if (status != HOTFN_OK || names_function(l->target.image, exec_names)) {
        return status;
    }
    return hfn_report_error(
        err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
        "'%s' matches no function of %s; `hotfn list %s` lists them, and --module "
        "chooses libraries",
        l->selection.include[0], l->target.image, l->target.image);
}

hotfn_status hfn_launch_check_matches(hotfn_launch *l, hotfn_error *err)
{
    if (l->options.target_glob || l->options.flags & HOTFN_LAUNCH_FOLLOW || l->kit) {
        return HOTFN_OK;
    }
    if (l->options.module_count > 0) {
        return check_modules(l, err);
    }
    return l->selection.include_count > 0 && !l->options.runtime ? check_functions(l, err)
                                                                 : HOTFN_OK;
}
