/* SPDX-License-Identifier: MIT */
/* Replacing functions of the C library in a process that was attached to: see replaced.h. */
#include "launch/attach/replaced.h"

#include "counters/core/core.h"
#include "counters/core/system_calls.h"
#include "image/unwinders.h"
#include "os/core_unwind.h"

#include <string.h>

enum { JUMP_OPCODE = 0xe9 };

const char *const hfn_replaced_libraries[] = { "libc.so.*", "libc-2.*", NULL };

/* ---- Finding and requesting. */

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
}

/* A program may have two C libraries (dlmopen), but the core has one place for the original. */
static bool is_noted(const hfn_attachment *a, uint32_t kind)
{
    bool is_noted = false;

    for (size_t i = 0; i < a->mirror_count; i++) {
        is_noted |= a->mirrors[i].replaced[kind].address != 0;
    }
    return is_noted;
}

/* If the calls of the function are counted, they go on to be counted. */
static void note_system_call(const hfn_attachment *a, hfn_mirror *m, uint32_t kind, uint64_t rva)
{
    const uint32_t *slots = hfn_live_get_slots(a->launch->live, m->live_module);
    hotfn_record_module known = HOTFN_RECORD_MODULE_INIT;
    uint32_t function = find_function(m->plan, rva);

    hfn_live_get_module(a->launch->live, m->live_module, &known);
    if (!is_noted(a, kind) &&
        (a->is_timed || function >= known.function_count || slots[function] == HOTFN_NO_SLOT)) {
        note_function(m, kind, rva);
    }
}

void hfn_replaced_find(const hfn_attachment *a, hfn_mirror *m, const char *path)
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
        m->is_needed |= m->replaced[HFN_REPLACED_ITERATE_PHDR].address != 0;
    }
    note_system_call(a, m, HFN_REPLACED_PRCTL, hfn_image_find_export(image, HFN_PRCTL_NAME));
    note_system_call(a, m, HFN_REPLACED_SYSCALL, hfn_image_find_export(image, HFN_SYSCALL_NAME));
    hotfn_image_close(image);
}

bool hfn_replaced_request(hfn_attachment *a, hfn_mirror *m)
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

bool hfn_replaced_has(const hfn_mirror *m, uint32_t function)
{
    bool is_replaced = false;

    for (uint32_t i = 0; i < HFN_REPLACED_COUNT; i++) {
        is_replaced |= m->replaced[i].address != 0 && m->replaced[i].function == function;
    }
    return is_replaced;
}

/* The target may have had a jump there before: that of an earlier attach. */
bool hfn_replaced_is_in_place(const hfn_mirror *m, const hfn_replacement *r)
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

bool hfn_replaced_sees_filters(const hfn_attachment *a)
{
    uint32_t count = 0;

    for (size_t i = 0; i < a->mirror_count; i++) {
        for (uint32_t n = HFN_REPLACED_PRCTL; n <= HFN_REPLACED_SYSCALL; n++) {
            const hfn_replacement *r = &a->mirrors[i].replaced[n];
            count += r->address != 0 && hfn_replaced_is_in_place(&a->mirrors[i], r);
        }
    }
    return count == 2;
}

/* ---- The originals. */

uint64_t hfn_replaced_to_target(const hfn_mirror *m, const void *local)
{
    return (uint64_t)(uintptr_t)local - m->distance;
}

bool hfn_replaced_write_originals(const hfn_attachment *a)
{
    const uint32_t places[] = { hfn_core.next_prctl_at, hfn_core.next_syscall_at };
    bool ok = true;

    for (size_t i = 0; i < a->mirror_count; i++) {
        for (uint32_t n = 0; n < 2; n++) {
            const hfn_mirror *m = &a->mirrors[i];
            hotfn_code original = m->replaced[HFN_REPLACED_PRCTL + n].original;
            uint64_t address =
                original ? hfn_replaced_to_target(m, (const void *)(uintptr_t)original) : 0;
            ok = ok && (!original || hfn_os_remote_write(&a->remote, a->pages.core + places[n],
                                                         &address, sizeof address));
        }
    }
    return ok;
}
