/* SPDX-License-Identifier: MIT */
/* The module policy.  If any evidence suggests that a module is needed, it is scanned: a scan
 * that is not needed costs time, but a module that is missed loses its counts. */
#include "scan/modules.h"

#include "base/crc32c.h"
#include "base/status.h"

#include <string.h>

static const char *find_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* ---- Use. */

static bool is_selected(const hfn_module_rules *rules, const hfn_module_facts *facts)
{
    const char *file = find_file_name(facts->path);
    bool selected = rules->glob_count == 0 && facts->is_main;

    for (uint32_t i = 0; i < rules->glob_count; i++) {
        if (hotfn_glob_match(rules->globs[i], file) != 1 &&
            hotfn_glob_match(rules->globs[i], facts->path) != 1) {
            continue;
        }
        selected = true;
        if (rules->glob_used) {
            rules->glob_used[i] = 1;
        }
    }
    return selected;
}

/* The C library has the default allocator; the file names of other allocators contain "malloc". */
static bool may_hold_allocator(const char *path)
{
    const char *file = find_file_name(path);

    return begins_with(file, "libc.so") || begins_with(file, "libc-") || strstr(file, "malloc");
}

/* The loader has a breakpoint function, which it calls after it has loaded or unloaded a module. */
static bool is_loader(const hfn_module_rules *rules, const hfn_module_facts *facts)
{
    const char *file = find_file_name(facts->path);

    return (rules->loader_path && strcmp(facts->path, rules->loader_path) == 0) ||
           begins_with(file, "ld-linux") || (facts->is_near_breakpoint && begins_with(file, "ld"));
}

static bool is_replaced(const hfn_module_rules *rules, const char *path)
{
    const char *const *glob = rules->replaced;

    while (glob && *glob && hotfn_glob_match(*glob, find_file_name(path)) != 1) {
        glob++;
    }
    return glob && *glob;
}

hfn_module_use hfn_modules_choose_use(const hfn_module_rules *rules, const hfn_module_facts *facts)
{
    if (is_selected(rules, facts)) {
        return HFN_MODULE_SELECTED;
    }
    if (rules->needs_allocators && may_hold_allocator(facts->path)) {
        return HFN_MODULE_ALLOCATORS;
    }
    if (is_replaced(rules, facts->path)) {
        return HFN_MODULE_REPLACED;
    }
    return rules->needs_loader && is_loader(rules, facts) ? HFN_MODULE_LOADER : HFN_MODULE_UNUSED;
}

/* ---- Refusal. */

hotfn_status hfn_modules_check_scan(const hfn_module_facts *facts, const hotfn_scan_info *scan,
                                    hotfn_error *err)
{
    const hfn_file_identity *file = &facts->file;

    if (file->device != scan->file_device || file->inode != scan->file_inode ||
        file->stamp != scan->file_stamp) {
        return hfn_report_error(err, HOTFN_E_MISMATCH, facts->path, HOTFN_NO_OFFSET,
                                "the file was replaced while the program ran");
    }
    if (scan->image_flags & HOTFN_IMAGE_TEXTREL) {
        return hfn_report_error(err, HOTFN_E_UNSUPPORTED, facts->path, HOTFN_NO_OFFSET,
                                "the loader rewrites its code (text relocations)");
    }
    return HOTFN_OK;
}

/* ---- Modules that were loaded before. */

void hfn_known_modules_init(hfn_known_modules *known, const hotfn_env *env)
{
    *known = (hfn_known_modules){ .env = env };
}

void hfn_known_modules_finish(hfn_known_modules *known)
{
    if (known->env) {
        hfn_free_memory(known->env, known->items, known->capacity * sizeof *known->items);
    }
    *known = (hfn_known_modules){ .env = known->env };
}

bool hfn_known_modules_add(hfn_known_modules *known, const hfn_module_facts *facts,
                           const hotfn_scan_info *scan, bool stamp_is_reliable, uint32_t number)
{
    hfn_known_module module = { .file = facts->file, .number = number };

    /* The file of a running program cannot be written to, so its stamp holds in any case. */
    if (!facts->is_main && !stamp_is_reliable) {
        module.file.stamp = 0;
    }
    if (scan) {
        module.is_scanned = true;
        module.id_kind = scan->id_kind;
        module.id_bytes = scan->id_bytes;
        memcpy(module.id, scan->id, sizeof module.id);
        module.plan_bytes = scan->plan_bytes;
        module.plan_crc = hfn_compute_crc32c(0, scan->plan, scan->plan_bytes);
    }
    if (!hfn_grow_array(known->env, (void **)&known->items, &known->capacity, known->count + 1,
                        sizeof *known->items)) {
        return false;
    }
    known->items[known->count++] = module;
    return true;
}

uint32_t hfn_known_modules_find_file(const hfn_known_modules *known, const hfn_file_identity *file)
{
    for (size_t i = 0; i < known->count && file->stamp != 0; i++) {
        const hfn_file_identity *other = &known->items[i].file;

        if (other->device == file->device && other->inode == file->inode &&
            other->stamp == file->stamp) {
            return known->items[i].number;
        }
    }
    return UINT32_MAX;
}

uint32_t hfn_known_modules_find_build(const hfn_known_modules *known, const hotfn_scan_info *scan)
{
    for (size_t i = 0; i < known->count; i++) {
        const hfn_known_module *m = &known->items[i];

        if (m->is_scanned && m->file.device == scan->file_device &&
            m->file.inode == scan->file_inode && m->id_kind == scan->id_kind &&
            m->id_bytes == scan->id_bytes && memcmp(m->id, scan->id, sizeof m->id) == 0 &&
            m->plan_bytes == scan->plan_bytes &&
            m->plan_crc == hfn_compute_crc32c(0, scan->plan, scan->plan_bytes)) {
            return m->number;
        }
    }
    return UINT32_MAX;
}
