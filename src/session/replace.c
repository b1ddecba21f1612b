/* SPDX-License-Identifier: MIT */
/* Replacing and filtering functions by their address: the module is found and scanned, and one hook
 * of its plan is committed. */
#include "base/memory.h"
#include "base/status.h"
#include "hooks/hookset.h"
#include "os/child.h"
#include "os/os.h"
#include "scan/file_stamp.h"
#include "scan/modules.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A module with hooks, kept by their set. */
typedef struct replaced_module {
    hotfn_env env;
    uint64_t base;
    hfn_file_identity file;
    hotfn_scan *scan;
    hotfn_plan *plan;
} replaced_module;

/* ---- Modules. */

typedef struct module_search {
    uint64_t address;
    char path[HFN_OS_PATH_BYTES]; /* "": none found */
    uint64_t base;
} module_search;

static bool visit_module(void *user, const hfn_os_module *m)
{
    module_search *search = user;

    if (search->address < m->base || search->address >= m->end) {
        return true;
    }
    search->base = m->base;
    if (!hfn_os_resolve_path(m->path, search->path, sizeof search->path)) {
        search->path[0] = 0;
    }
    return false;
}

static void release_module(void *object)
{
    replaced_module *m = object;

    hotfn_plan_destroy(m->plan);
    hotfn_scan_close(m->scan);
    hfn_free_memory(&m->env, m, sizeof *m);
}

static bool same_file(const hfn_file_identity *a, const hfn_file_identity *b)
{
    return a->device == b->device && a->inode == b->inode && a->stamp == b->stamp;
}

static replaced_module *find_module(const hotfn_hooks *hooks, uint64_t base,
                                    const hfn_file_identity *file)
{
    for (size_t i = 0; i < hooks->kept_count; i++) {
        replaced_module *m = hooks->kept[i].object;

        if (hooks->kept[i].release == release_module && m->base == base &&
            same_file(&m->file, file)) {
            return m;
        }
    }
    return NULL;
}

static hotfn_status open_plan(replaced_module *m, const char *path, const char *cache_folder,
                              hotfn_error *err)
{
    hotfn_scan_options options = HOTFN_SCAN_OPTIONS_INIT;
    hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;
    hfn_module_facts facts = { .path = path, .file = m->file };
    hotfn_status status;

    options.flags = HOTFN_SCAN_TIMING | HOTFN_SCAN_NO_TAIL_EXIT;
    options.cache_folder = cache_folder;
    status = hotfn_scan_open(&m->scan, path, &options, &m->env, err);
    if (status == HOTFN_OK) {
        hotfn_scan_get_info(m->scan, &info);
        status = hfn_modules_check_scan(&facts, &info, err);
    }
    if (status == HOTFN_OK) {
        status = hotfn_plan_open(&m->plan, info.plan, info.plan_bytes, 0, &m->env, err);
    }
    return status;
}

static hotfn_status scan_module(replaced_module **out, hotfn_hooks *hooks,
                                const module_search *found, const hfn_file_identity *file,
                                const char *cache_folder, hotfn_error *err)
{
    replaced_module *m = hfn_allocate_zeroed(&hooks->env, sizeof *m);
    hotfn_status status;

    if (!m) {
        return hfn_report_no_memory(err, found->path);
    }
    m->env = hooks->env;
    m->base = found->base;
    m->file = *file;
    status = open_plan(m, found->path, cache_folder, err);
    if (status == HOTFN_OK && !hfn_hooks_keep(hooks, m, release_module)) {
        status = hfn_report_no_memory(err, found->path);
    }
    if (status != HOTFN_OK) {
        release_module(m);
        return status;
    }
    *out = m;
    return HOTFN_OK;
}

static hotfn_status get_module(replaced_module **out, hotfn_hooks *hooks, uint64_t address,
                               const char *cache_folder, hotfn_error *err)
{
    module_search search = { .address = address };
    hfn_os_file_info info;
    hfn_file_identity file;

    hfn_os_each_module(visit_module, &search);
    if (search.path[0] == 0 || hfn_os_get_path_info(search.path, &info) != 0) {
        return hfn_report_error(err, HOTFN_E_NOT_FOUND, NULL, HOTFN_NO_OFFSET,
                                "no loaded module with a file has the address 0x%" PRIx64
                                "; give the address of a function of a program or library",
                                address);
    }
    file = (hfn_file_identity){ info.device, info.inode, hfn_file_stamp(&info) };
    *out = find_module(hooks, search.base, &file);
    return *out ? HOTFN_OK : scan_module(out, hooks, &search, &file, cache_folder, err);
}

/* ---- Functions. */

/* UINT32_MAX: no function begins at the RVA. */
static uint32_t find_function(const hotfn_scan *scan, uint64_t rva, hotfn_record_function *out)
{
    hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;

    hotfn_scan_get_info(scan, &info);
    for (uint32_t i = 0; i < info.function_count; i++) {
        *out = (hotfn_record_function)HOTFN_RECORD_FUNCTION_INIT;
        hotfn_scan_get_function(scan, i, out);
        if (out->rva == rva) {
            return i;
        }
    }
    return UINT32_MAX;
}

/* Fill err with why the function was refused, in the scan or by a commit. */
static hotfn_status report_refused(const hotfn_scan *scan, const hotfn_record_function *function,
                                   uint32_t reason, uint32_t offset, hotfn_error *err)
{
    hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;
    hotfn_status status = HOTFN_E_UNSUPPORTED;

    hotfn_scan_get_info(scan, &info);
    if (reason == HOTFN_REASON_BYTES_DIFFER) {
        status = HOTFN_E_MISMATCH;
    } else if (reason == HOTFN_REASON_BUSY) {
        status = HOTFN_E_STATE;
    } else if (reason == HOTFN_REASON_NO_NEAR_MEMORY) {
        status = HOTFN_E_NO_MEMORY;
    } else if (reason == HOTFN_REASON_NOT_WRITABLE) {
        status = HOTFN_E_DENIED;
    }
    return hfn_report_error(err, status, info.path, function->rva + offset,
                            "%s cannot be hooked: %s (%s)", function->name,
                            hotfn_reason_get_text(reason), hotfn_reason_get_name(reason));
}

static uint32_t find_reason(const char *name)
{
    for (uint32_t reason = 1; reason <= UINT8_MAX; reason++) {
        if (strcmp(hotfn_reason_get_name(reason), name) == 0) {
            return reason;
        }
    }
    return HOTFN_REASON_NONE;
}

/* The reason that the last commit has for refusing the function; 0: none. */
typedef struct refusal_search {
    uint32_t module, function;
    uint32_t reason, offset;
} refusal_search;

static void visit_refused(void *user, uint32_t module, uint32_t function, uint32_t reason,
                          uint32_t offset)
{
    refusal_search *search = user;

    if (search->module == module && search->function == function) {
        search->reason = reason;
        search->offset = offset;
    }
}

static hotfn_status hook_function(hotfn_hooks *hooks, const replaced_module *m, uint32_t index,
                                  const hotfn_record_function *function,
                                  const hotfn_hook_action *action, hotfn_error *err)
{
    refusal_search search = { .function = index };
    hotfn_status status =
        hotfn_hooks_add(hooks, m->plan, m->base, index, action, &search.module, err);

    if (status == HOTFN_OK) {
        status = hotfn_hooks_commit(hooks, NULL, err);
    }
    if (status == HOTFN_OK) {
        hotfn_hooks_each_refused(hooks, visit_refused, &search);
    }
    return search.reason ? report_refused(m->scan, function, search.reason, search.offset, err)
                         : status;
}

static hotfn_status hook_address(hotfn_hooks *hooks, hotfn_code entry,
                                 const hotfn_hook_action *action,
                                 const hotfn_replace_options *options, hotfn_error *err)
{
    uint64_t address = (uint64_t)(uintptr_t)entry;
    hotfn_replace_options taken;
    hotfn_record_function function;
    replaced_module *m = NULL;
    hotfn_status status;
    uint32_t index;

    if (!hfn_copy_options(&taken, sizeof taken, options)) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                "unknown option of a replacement");
    }
    status = get_module(&m, hooks, address, taken.cache_folder, err);
    if (status != HOTFN_OK) {
        return status;
    }
    index = find_function(m->scan, address - m->base, &function);
    if (index == UINT32_MAX) {
        return hfn_report_error(err, HOTFN_E_NOT_FOUND, NULL, HOTFN_NO_OFFSET,
                                "no function begins at 0x%" PRIx64 " (RVA 0x%" PRIx64
                                "): give the first instruction of one",
                                address, address - m->base);
    }
    if (function.reason[0] != 0) {
        return report_refused(m->scan, &function, find_reason(function.reason),
                              function.reason_offset, err);
    }
    hfn_os_keep_module_loaded((const void *)(uintptr_t)address);
    return hook_function(hooks, m, index, &function, action, err);
}

/* ---- Calls. */

hotfn_status hotfn_hooks_replace(hotfn_code *original, hotfn_hooks *hooks, hotfn_code entry,
                                 hotfn_code replacement, const hotfn_replace_options *options,
                                 hotfn_error *err)
{
    hotfn_hook_action action = HOTFN_HOOK_ACTION_INIT;
    hotfn_code before = original ? *original : NULL;
    hotfn_status status;

    if (!hooks || !entry || !replacement) {
        return hfn_report_null(err, __func__);
    }
    action.kind = HOTFN_ACTION_REPLACE;
    action.replacement = replacement;
    action.original = original;
    status = hook_address(hooks, entry, &action, options, err);
    if (status != HOTFN_OK && original) {
        *original = before;
    }
    return status;
}

hotfn_status hotfn_hooks_filter(hotfn_hooks *hooks, hotfn_code entry, hotfn_hook_filter_fn filter,
                                void *user, const hotfn_replace_options *options, hotfn_error *err)
{
    hotfn_hook_action action = HOTFN_HOOK_ACTION_INIT;

    if (!hooks || !entry || !filter) {
        return hfn_report_null(err, __func__);
    }
    action.kind = HOTFN_ACTION_FILTER;
    action.filter = filter;
    action.user = user;
    return hook_address(hooks, entry, &action, options, err);
}
