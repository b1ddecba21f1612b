/* SPDX-License-Identifier: MIT */
/* Find the allocation functions of a module, for a run that records memory (--with alloc): by their
 * names, which the C and C++ standards reserve, in modules that have malloc_usable_size as well. */
#include "functions/allocators.h"
#include "base/status.h"
#include "counters/timing/alloc.h"
#include "live/live.h"
#include "session/process.h"

#include <string.h>

_Static_assert((int)HFN_ALLOCATOR_RETURNS == (int)HFN_ALLOC_RETURNS &&
                   (int)HFN_ALLOCATOR_FREES == (int)HFN_ALLOC_FREES &&
                   (int)HFN_ALLOCATOR_MOVES == (int)HFN_ALLOC_MOVES &&
                   (int)HFN_ALLOCATOR_STORES == (int)HFN_ALLOC_STORES,
               "kinds are passed to the counters without conversion");

/* The name after `name` in a function's list of names; NULL after the last. */
static const char *next_name(const char *name)
{
    name += strlen(name) + 1;
    return *name ? name : NULL;
}

static uint64_t find_usable(const hfn_process *p, const hfn_loaded_module *m, uint32_t first,
                            uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        for (const char *name = hfn_live_get_function_name(p->live, m->live_module, i); name;
             name = next_name(name)) {
            if (strcmp(name, "malloc_usable_size") == 0) {
                return m->base +
                       hfn_read_le64(hfn_live_section(p->live, HFN_SECTION_FUNCTIONS) +
                                     (uint64_t)(first + i) * HFN_FUNCTION_BYTES + HFN_FUNCTION_RVA);
            }
        }
    }
    return 0;
}

static void add_function(const hfn_process *p, const char *name, uint32_t slot, bool is_timed,
                         uint64_t usable)
{
    hfn_allocator allocator = { slot, name ? (uint32_t)hfn_find_allocator_kind(name) : 0,
                                (uintptr_t)usable };

    if (allocator.kind == 0) {
        return;
    }
    if (!is_timed || !hfn_alloc_add(&allocator)) {
        hfn_log_message(&p->env, HOTFN_LOG_WARNING,
                        "%s cannot be followed: its blocks are not recorded", name);
    }
}

void hfn_process_find_allocators(const hfn_process *p, const hfn_loaded_module *m)
{
    const hfn_time_header *h = hfn_live_time_header(p->live);
    const uint32_t *slots = hfn_live_get_slots(p->live, m->live_module);
    uint32_t first, count;
    uint64_t usable;
    uint8_t *entry;

    if (!h || !(h->flags & HOTFN_TIMING_ALLOC) || !slots ||
        !hfn_live_find_module(p->live, m->live_module, &entry, &first, &count)) {
        return;
    }
    usable = find_usable(p, m, first, count);
    for (uint32_t i = 0; usable != 0 && i < count; i++) {
        if (slots[i] != HOTFN_NO_SLOT) {
            add_function(p, hfn_live_get_function_name(p->live, m->live_module, i), slots[i],
                         hfn_live_is_timed(p->live, first + i), usable);
        }
    }
}
