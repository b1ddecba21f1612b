/* SPDX-License-Identifier: MIT */
/* What timed calls need in a process, and counted ones do not: see timing.h. */
#include "launch/attach/timing.h"

#include "base/status.h"
#include "counters/core/core.h"
#include "counters/core/system_calls.h"
#include "image/unwinders.h"
#include "os/core_unwind.h"

#include <string.h>

enum { JUMP_OPCODE = 0xe9, MAX_REGIONS = HFN_TIMED_TABLE_BYTES / sizeof(hfn_core_region) };

const char *const hfn_replaced_libraries[] = { "libc.so.*", "libc-2.*", NULL };

/* ---- Exceptions. */

typedef struct module_search {
    const hfn_attachment *attachment;
    bool has_functions;
    hotfn_status status;
    hotfn_error *err;
} module_search;

static bool refuse_module(module_search *s, const char *path, const char *why)
{
    s->status = hfn_report_error(s->err, HOTFN_E_UNSUPPORTED, path, HOTFN_NO_OFFSET, "%s", why);
    return false;
}

static bool check_module(void *user, const hfn_remote_module *module)
{
    module_search *s = user;
    hotfn_image *image;
    bool has_own;

    if (!module->is_available ||
        hotfn_image_open(&image, module->path, &s->attachment->env, NULL) != HOTFN_OK) {
        return refuse_module(s, module->path,
                             "the file of this module cannot be read, so it is unknown how its "
                             "exceptions pass timed calls: count its calls");
    }
    has_own = hfn_image_has_own_unwinder(image) || hfn_image_remembers_tables(image);
    s->has_functions |= hfn_image_find_export(image, HFN_ITERATE_PHDR_NAME) != 0;
    hotfn_image_close(image);
    return !has_own || refuse_module(s, module->path,
                                     "this module has an unwinder of its own, so its exceptions "
                                     "cannot pass timed calls: count its calls, or time it with "
                                     "hotfn run");
}

hotfn_status hfn_timed_check_modules(hfn_attachment *a, hotfn_error *err)
{
    module_search s = { a, false, HOTFN_OK, err };

    if (a->uses_gs) {
        return hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                                "process %u is linked statically, or uses musl, or is written in "
                                "Go, so what unwinds its stack does not know timed calls: count "
                                "its calls",
                                a->remote.pid);
    }
    hfn_os_remote_each_module(a->remote.pid, check_module, &s);
    if (s.status == HOTFN_OK && !s.has_functions) {
        return hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                                "process %u is linked statically, so exceptions cannot pass timed "
                                "calls: count its calls",
                                a->remote.pid);
    }
    return s.status;
}

/* ---- The functions that are replaced. */

static uint32_t find_function(const hotfn_plan *plan, uint64_t rva)
{
    hotfn_plan_info info = HOTFN_PLAN_INFO_INIT;
    hotfn_plan_entry entry = HOTFN_PLAN_ENTRY_INIT;

    hotfn_plan_get_info(plan, &info);
    for (uint32_t i = 0; rva != 0 && i < info.entry_count; i++) {
        if (hotfn_plan_get(plan, i, &entry) == HOTFN_OK && entry.rva == rva) {
            return entry.function_index;
        }
    }
    return UINT32_MAX;
}

static void note_function(hfn_mirror *m, uint32_t kind, uint64_t rva)
{
    m->replaced[kind] = (hfn_replacement){ .address = rva ? m->base + rva : 0,
                                           .function = find_function(m->plan, rva) };
    m->is_needed |= rva != 0;
}

/* If the calls of the function are counted, they go on to be counted. */
static void note_system_call(const hfn_attachment *a, hfn_mirror *m, uint32_t kind, uint64_t rva)
{
    const uint32_t *slots = hfn_live_get_slots(a->launch->live, m->live_module);
    hotfn_record_module known = HOTFN_RECORD_MODULE_INIT;
    uint32_t function = find_function(m->plan, rva);

    hfn_live_get_module(a->launch->live, m->live_module, &known);
    if (a->is_timed || function >= known.function_count || slots[function] == HOTFN_NO_SLOT) {
        note_function(m, kind, rva);
    }
}

void hfn_timed_find_functions(const hfn_attachment *a, hfn_mirror *m, const char *path)
{
    hotfn_image *image;

    if (hotfn_image_open(&image, path, &a->env, NULL) != HOTFN_OK) {
        return;
    }
    if (a->is_timed) {
        note_function(m, HFN_REPLACED_FIND_OBJECT,
                      hfn_image_find_export(image, HFN_FIND_OBJECT_NAME));
        note_function(m, HFN_REPLACED_ITERATE_PHDR,
                      hfn_image_find_export(image, HFN_ITERATE_PHDR_NAME));
    }
    note_system_call(a, m, HFN_REPLACED_PRCTL, hfn_image_find_export(image, HFN_PRCTL_NAME));
    note_system_call(a, m, HFN_REPLACED_SYSCALL, hfn_image_find_export(image, HFN_SYSCALL_NAME));
    hotfn_image_close(image);
}

bool hfn_timed_request_hooks(hfn_attachment *a, hfn_mirror *m)
{
    const uint32_t targets[HFN_REPLACED_COUNT] = { hfn_core.find_object_at,
                                                   hfn_core.iterate_phdr_at, hfn_core.prctl_at,
                                                   hfn_core.syscall_at };

    for (uint32_t i = 0; i < HFN_REPLACED_COUNT; i++) {
        hotfn_hook_action action = HOTFN_HOOK_ACTION_INIT;
        uint32_t module;

        m->replaced[i].original = NULL;
        if (m->replaced[i].address == 0) {
            continue;
        }
        action.kind = HOTFN_ACTION_REPLACE;
        action.replacement = (hotfn_code)(uintptr_t)(a->pages.core + targets[i]);
        action.original = &m->replaced[i].original;
        if (hotfn_hooks_add(a->hooks, m->plan, m->base + m->distance, m->replaced[i].function,
                            &action, &module, NULL) != HOTFN_OK &&
            i <= HFN_REPLACED_ITERATE_PHDR) {
            return false;
        }
    }
    return true;
}

bool hfn_timed_is_replaced(const hfn_mirror *m, uint32_t function)
{
    bool is_replaced = false;

    for (uint32_t i = 0; i < HFN_REPLACED_COUNT; i++) {
        is_replaced |= m->replaced[i].address != 0 && m->replaced[i].function == function;
    }
    return is_replaced;
}

/* The target may have had a jump there before: that of an earlier attach. */
static bool is_in_place(const hfn_mirror *m, const hfn_replacement *r)
{
    const uint8_t *entry = (const uint8_t *)(uintptr_t)(r->address + m->distance);

    for (uint32_t c = 0; c < m->code_count; c++) {
        if (r->address >= m->code[c].begin && r->address < m->code[c].end) {
            return r->original && *entry == JUMP_OPCODE &&
                   memcmp(entry, m->shown[c] + (r->address - m->code[c].begin),
                          HFN_REPLACED_BYTES) != 0;
        }
    }
    return false;
}

bool hfn_timed_sees_filters(const hfn_attachment *a)
{
    uint32_t count = 0;

    for (size_t i = 0; i < a->mirror_count; i++) {
        for (uint32_t n = HFN_REPLACED_PRCTL; n <= HFN_REPLACED_SYSCALL; n++) {
            const hfn_replacement *r = &a->mirrors[i].replaced[n];
            count += r->address != 0 && is_in_place(&a->mirrors[i], r);
        }
    }
    return count == 2;
}

/* One C library: the core has one place for each original. */
hotfn_status hfn_timed_check_hooks(const hfn_attachment *a, hotfn_error *err)
{
    uint32_t counts[HFN_REPLACED_COUNT] = { 0 };
    bool ok = true;

    for (size_t i = 0; i < a->mirror_count; i++) {
        for (uint32_t n = 0; n <= HFN_REPLACED_ITERATE_PHDR; n++) {
            const hfn_replacement *r = &a->mirrors[i].replaced[n];
            counts[n] += r->address != 0;
            ok = ok && (r->address == 0 || is_in_place(&a->mirrors[i], r));
        }
    }
    if (ok && counts[HFN_REPLACED_FIND_OBJECT] <= 1 && counts[HFN_REPLACED_ITERATE_PHDR] == 1 &&
        hotfn_hooks_get_region_count(a->hooks) < MAX_REGIONS) {
        return HOTFN_OK;
    }
    return hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                            "calls of process %u cannot be timed, since the functions by which "
                            "exceptions find their way cannot be replaced (calls that an earlier "
                            "attach timed have not returned, or another tool changed them): count "
                            "its calls",
                            a->remote.pid);
}

/* ---- The tables. */

static uint64_t to_target(const hfn_mirror *m, const void *local)
{
    return (uint64_t)(uintptr_t)local - m->distance;
}

bool hfn_timed_write_originals(const hfn_attachment *a)
{
    const uint32_t places[] = { hfn_core.next_prctl_at, hfn_core.next_syscall_at };
    bool ok = true;

    for (size_t i = 0; i < a->mirror_count; i++) {
        for (uint32_t n = 0; n < 2; n++) {
            const hfn_mirror *m = &a->mirrors[i];
            hotfn_code original = m->replaced[HFN_REPLACED_PRCTL + n].original;
            uint64_t address = original ? to_target(m, (const void *)(uintptr_t)original) : 0;
            ok = ok && (!original || hfn_os_remote_write(&a->remote, a->pages.core + places[n],
                                                         &address, sizeof address));
        }
    }
    return ok;
}

static void sort_regions(hfn_core_region *regions, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        hfn_core_region moved = regions[i];
        uint32_t at = i;
        for (; at > 0 && regions[at - 1].begin > moved.begin; at--) {
            regions[at] = regions[at - 1];
        }
        regions[at] = moved;
    }
}

/* Into a->buffer. */
static uint32_t list_regions(const hfn_attachment *a, hfn_core_region *out)
{
    uint32_t count = 0;

    out[count++] = (hfn_core_region){ a->pages.core, a->pages.core + hfn_core.data_at,
                                      a->pages.core + hfn_core.unwind_at };
    for (uint32_t i = 0; i < hotfn_hooks_get_region_count(a->hooks); i++) {
        hotfn_stub_region region = HOTFN_STUB_REGION_INIT;
        const hfn_mirror *m;

        hotfn_hooks_get_region(a->hooks, i, &region);
        m = hfn_mirror_of_local(a, region.begin);
        if (m && region.eh_frame_hdr) {
            out[count++] = (hfn_core_region){ region.begin - m->distance, region.end - m->distance,
                                              to_target(m, region.eh_frame_hdr) };
        }
    }
    sort_regions(out, count);
    return count;
}

bool hfn_timed_write_tables(const hfn_attachment *a)
{
    hfn_core_region *regions = (hfn_core_region *)(void *)a->buffer;
    hfn_core_unwind tables = { .regions = a->pages.regions };

    tables.region_count = list_regions(a, regions);
    for (size_t i = 0; i < a->mirror_count; i++) {
        const hfn_mirror *m = &a->mirrors[i];
        const hfn_replacement *find = &m->replaced[HFN_REPLACED_FIND_OBJECT];
        const hfn_replacement *iterate = &m->replaced[HFN_REPLACED_ITERATE_PHDR];

        if (find->address) {
            tables.find_object = to_target(m, (const void *)(uintptr_t)find->original);
        }
        if (iterate->address) {
            tables.iterate_phdr = to_target(m, (const void *)(uintptr_t)iterate->original);
        }
    }
    return hfn_os_remote_write(&a->remote, a->pages.regions, regions,
                               (uint32_t)(tables.region_count * sizeof *regions)) &&
           hfn_os_remote_write(&a->remote, a->pages.core + hfn_core.tables_at, &tables,
                               sizeof tables);
}
