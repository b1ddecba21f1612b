/* SPDX-License-Identifier: MIT */
/* glibc on i386 has an unwinder's look-up of its own (_Unwind_Find_FDE, GCC_3.0), which stands before that
 * of a libgcc_s loaded later, and asks nobody outside.  So there we answer for generated code as well. */
#include "agent.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* libgcc, unwind-dw2-fde.h. */
struct dwarf_eh_bases {
    void *tbase, *dbase, *func;
};

/* .eh_frame_hdr as hooks/unwind.c writes it: its rows have both addresses relative to its begin. */
typedef struct table_row {
    int32_t code, fde;
} table_row;

enum { HEADER_BYTES = 12, COUNT_AT = 8, FDE_RANGE_AT = 12 };

typedef const void *(*find_fde_fn)(void *pc, struct dwarf_eh_bases *bases);

EXPORT const void *_Unwind_Find_FDE(void *pc, struct dwarf_eh_bases *bases); /* in no header */

static find_fde_fn next_find_fde;

/* Before the agent's own start: unwinders run in signal handlers, which may look nothing up. */
__attribute__((constructor(101))) static void find_next(void)
{
    void *found = dlsym(RTLD_NEXT, "_Unwind_Find_FDE");
    memcpy(&next_find_fde, &found, sizeof found);
}

static const uint8_t *find_in(const uint8_t *header, const uint8_t *pc,
                              struct dwarf_eh_bases *bases)
{
    uint32_t low = 0, high, range;
    table_row row;
    memcpy(&high, header + COUNT_AT, sizeof high);
    while (low < high) { /* the first row behind pc */
        uint32_t middle = low + (high - low) / 2;
        memcpy(&row, header + HEADER_BYTES + middle * sizeof row, sizeof row);
        if ((uintptr_t)header + (uintptr_t)row.code <= (uintptr_t)pc)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    memcpy(&row, header + HEADER_BYTES + (low - 1) * sizeof row, sizeof row);
    memcpy(&range, header + row.fde + FDE_RANGE_AT, sizeof range);
    if ((uintptr_t)(pc - (header + row.code)) >= range)
        return NULL;
    bases->tbase = NULL;
    bases->dbase = NULL;
    bases->func = (void *)(uintptr_t)(header + row.code);
    return header + row.fde;
}

const void *_Unwind_Find_FDE(void *pc, struct dwarf_eh_bases *bases)
{
    hotfn_stub_region region = HOTFN_STUB_REGION_INIT;
    const hotfn_hooks *hooks = agent_hooks();
    if (hooks && hotfn_hooks_find_region(hooks, (uint64_t)(uintptr_t)pc, &region) &&
        region.eh_frame_hdr)
        return find_in(region.eh_frame_hdr, pc, bases);
    return next_find_fde ? next_find_fde(pc, bases) : NULL;
}
