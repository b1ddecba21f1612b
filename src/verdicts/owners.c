/* SPDX-License-Identifier: MIT */
/* Which function a fragment belongs to, and which functions are loops to their own entry for that
 * reason.  A fragment has an owner if exactly one function jumps to it; jumps of other fragments
 * are ignored. */
#include "verdicts/analysis.h"

#define SEVERAL UINT32_MAX

/* The fragment to which the branch leads from a function; or HFN_NO_FUNCTION. */
static uint32_t find_entered_fragment(const hfn_analysis *a, const hfn_verdict *items,
                                      const hfn_branch *branch, uint32_t *from)
{
    uint32_t part = hfn_analysis_find_around(a, branch->target);

    if (part == HFN_NO_FUNCTION || items[part].pub.verdict != HOTFN_VERDICT_FRAGMENT) {
        return HFN_NO_FUNCTION;
    }
    *from = hfn_analysis_find_around(a, branch->field);
    return *from != HFN_NO_FUNCTION && items[*from].pub.verdict != HOTFN_VERDICT_FRAGMENT
               ? part
               : HFN_NO_FUNCTION;
}

/* owners: per function, the owner's index plus 1; 0: none, or several. */
static void find_owners(const hfn_analysis *a, const hfn_verdict *items, uint32_t *owners)
{
    for (size_t i = 0; i < a->branch_count; i++) {
        uint32_t from, part = find_entered_fragment(a, items, &a->branches[i], &from);
        if (part != HFN_NO_FUNCTION) {
            owners[part] = owners[part] == 0 || owners[part] == from + 1 ? from + 1 : SEVERAL;
        }
    }
    for (uint32_t i = 0; i < a->count; i++) {
        owners[i] = owners[i] == SEVERAL ? 0 : owners[i];
    }
}

/* The functions to whose entry one of their own fragments jumps. */
static void find_loops(const hfn_analysis *a, const uint32_t *owners, uint8_t *loops)
{
    for (size_t i = 0; i < a->branch_count; i++) {
        uint32_t from = hfn_analysis_find_around(a, a->branches[i].field);
        if (from != HFN_NO_FUNCTION && owners[from] != 0 &&
            a->branches[i].target == a->bodies[owners[from] - 1].rva) {
            loops[owners[from] - 1] = 1;
        }
    }
}

void hfn_owners_find(hfn_analysis *a, hfn_verdict *items, uint8_t *loops)
{
    size_t bytes = (a->count + 1) * sizeof(uint32_t);
    uint32_t *owners = hfn_allocate_zeroed(&a->env, bytes);

    if (!owners) {
        a->no_memory = true;
        return;
    }
    find_owners(a, items, owners);
    find_loops(a, owners, loops);
    for (uint32_t i = 0; i < a->count && (a->flags & HOTFN_VERDICTS_TIMING); i++) {
        items[i].pub.owner = owners[i];
    }
    hfn_free_memory(&a->env, owners, bytes);
}

void hfn_owners_report_loops(const hfn_analysis *a, hfn_verdict *items, const uint8_t *loops)
{
    for (uint32_t i = 0; i < a->count; i++) {
        if (!loops[i] && !(a->bodies[i].traits & HFN_TRAIT_LOOPS)) {
            items[i].pub.flags &= ~HOTFN_VERDICT_ENTRY_LOOP;
        }
    }
}
