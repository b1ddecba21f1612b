/* SPDX-License-Identifier: MIT */
/* Finds the functions of a scanned file that are in a function list: by RVA if the entry has one,
 * else by name. */
#include "base/memory.h"
#include "base/names.h"
#include "base/search.h"
#include "base/sort.h"
#include "base/status.h"

#include <hotfn/lowlevel/scan.h>
#include <string.h>

typedef struct listed {
    const hotfn_env *env;
    uint64_t *rvas; /* as in the list; the second half is room for sorting */
    uint64_t *sorted;
    uint32_t count;
    size_t bytes;
    hfn_names *names; /* of the entries without an RVA; NULL: none */
} listed;

static bool is_lower(const void *a, const void *b)
{
    return *(const uint64_t *)a < *(const uint64_t *)b;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Store whether the list may have functions of this file.  HOTFN_E_MISMATCH if it is of another
 * build of the file. */
static hotfn_status check_list_file(const hotfn_scan_info *scan, const hotfn_list_info *list,
                                    bool *applies, hotfn_error *err)
{
    *applies = true;
    if (list->flags & HOTFN_LIST_TEXT) {
        return HOTFN_OK; /* each line names its file */
    }
    *applies = list->id_kind == scan->id_kind && list->id_bytes == scan->id_bytes &&
               memcmp(list->id, scan->id, sizeof list->id) == 0;
    if (!*applies && strcmp(list->module, file_name(scan->path)) == 0) {
        return hfn_report_error(
            err, HOTFN_E_MISMATCH, scan->path, HOTFN_NO_OFFSET,
            "the function list is of another build of %.200s; make a new one with "
            "hotfn list -o",
            list->module);
    }
    return HOTFN_OK;
}

static bool add_entry(listed *l, const hotfn_list_entry *e)
{
    if (e->rva != HOTFN_LIST_NO_RVA) {
        l->rvas[l->count++] = e->rva;
        return true;
    }
    if (!l->names) {
        l->names = hfn_names_create(l->env);
    }
    return l->names && hfn_names_intern(l->names, e->name, strlen(e->name)) != HFN_NAME_NONE;
}

static bool collect_entries(listed *l, const hotfn_list *list, const hotfn_list_info *info,
                            const char *module)
{
    hotfn_list_entry e = HOTFN_LIST_ENTRY_INIT;
    l->bytes = ((size_t)info->entry_count * 2 + 1) * sizeof *l->rvas;
    l->rvas = hfn_allocate_zeroed(l->env, l->bytes);
    if (!l->rvas) {
        return false;
    }
    for (uint32_t i = 0; hotfn_list_get(list, i, &e) == HOTFN_OK; i++) {
        bool is_of_module = !(info->flags & HOTFN_LIST_TEXT) || strcmp(e.module, module) == 0;
        if (is_of_module && !add_entry(l, &e)) {
            return false;
        }
    }
    l->sorted = hfn_sort_items(l->rvas, l->rvas + l->count, l->count, sizeof *l->rvas, is_lower);
    return true;
}

static bool has_rva(const listed *l, uint64_t rva)
{
    size_t low = hfn_count_below(l->sorted, l->count, sizeof *l->sorted, 0, rva);
    return low < l->count && l->sorted[low] == rva;
}

static bool is_listed(const listed *l, const hotfn_record_function *f)
{
    if (has_rva(l, f->rva)) {
        return true;
    }
    for (const char *name = f->name; l->names && name[0]; name += strlen(name) + 1) {
        if (hfn_names_find(l->names, name, strlen(name)) != HFN_NAME_NONE) {
            return true;
        }
    }
    return false;
}

hotfn_status hotfn_scan_find_listed(const hotfn_scan *scan, const hotfn_list *list, uint64_t *rvas,
                                    uint32_t capacity, uint32_t *count, const hotfn_env *env,
                                    hotfn_error *err)
{
    if (!scan || !list || !count || (!rvas && capacity > 0)) {
        return hfn_report_null(err, __func__);
    }

    hotfn_env filled = hfn_env_fill(env);
    hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;
    hotfn_list_info list_info = HOTFN_LIST_INFO_INIT;
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    listed functions = { .env = &filled };
    uint32_t found = 0;
    bool applies;
    hotfn_scan_get_info(scan, &info);
    hotfn_list_get_info(list, &list_info);
    hotfn_status status = check_list_file(&info, &list_info, &applies, err);
    if (status == HOTFN_OK && applies &&
        !collect_entries(&functions, list, &list_info, file_name(info.path))) {
        status = hfn_report_no_memory(err, info.path);
    }
    for (uint32_t i = 0; status == HOTFN_OK && applies; i++) {
        if (hotfn_scan_get_function(scan, i, &f) != HOTFN_OK) {
            break;
        }
        if (is_listed(&functions, &f)) {
            if (found < capacity) {
                rvas[found] = f.rva;
            }
            found++;
        }
    }
    hfn_names_destroy(functions.names);
    hfn_free_memory(&filled, functions.rvas, functions.bytes);
    if (status == HOTFN_OK) {
        *count = found;
    }
    return status;
}
