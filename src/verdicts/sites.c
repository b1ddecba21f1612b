/* SPDX-License-Identifier: MIT */
/*
 * Call sites: direct calls and jumps that target exactly the entry of a hookable function.
 * Redirected to its stub, they skip the jump at the entry, which costs more than the count
 * (docs/design/hooks-sites.md).  Only certain sites are kept: their function decodes completely,
 * a jump or the entry leads to them, no jump targets their middle, and no patch or loader changes
 * them.
 */
#include "verdicts/analysis.h"

/* An index of entries by address: for each bucket of 2^BUCKET_BITS bytes the first function at or
 * after it. */
#define BUCKET_BITS 7u

typedef struct entry_index {
    uint32_t *first;
    uint64_t count;
} entry_index;

static bool make_index(hfn_analysis *a, entry_index *index)
{
    uint64_t highest = a->bodies[a->count - 1].rva;
    uint32_t i = 0;

    if (highest > UINT32_MAX) {
        return false;
    }
    index->count = (highest >> BUCKET_BITS) + 1;
    index->first = hfn_allocate_zeroed(&a->env, index->count * sizeof *index->first);
    if (!index->first) {
        a->no_memory = true;
        return false;
    }
    for (uint64_t bucket = 0; bucket < index->count; bucket++) {
        while (a->bodies[i].rva < bucket << BUCKET_BITS) {
            i++;
        }
        index->first[bucket] = i;
    }
    return true;
}

static uint32_t function_at(const hfn_analysis *a, const entry_index *index, uint64_t rva)
{
    uint64_t bucket = rva >> BUCKET_BITS;
    uint32_t i = bucket < index->count ? index->first[bucket] : a->count;

    while (i < a->count && a->bodies[i].rva < rva) {
        i++;
    }
    return i < a->count && a->bodies[i].rva == rva ? i : HFN_NO_FUNCTION;
}

/* Whether the stub can be entered in place of the function.  It cannot if the hook patches a call:
 * that stub needs the return address that the patched call pushes. */
static bool may_enter(const hfn_analysis *a, const hfn_verdict *verdict, const hfn_body *body)
{
    uint32_t pad = verdict->pub.flags & HOTFN_VERDICT_LANDING_PAD ? verdict->pub.patch_offset : 0;
    hfn_instruction in;

    if (verdict->pub.verdict != HOTFN_VERDICT_HOOKABLE || verdict->pub.patch_offset != pad ||
        verdict->pub.strategy == HOTFN_STRATEGY_INT3) {
        return false;
    }
    if (verdict->pub.strategy != HOTFN_STRATEGY_RETARGET) {
        return true;
    }
    return a->arch->decode(body->region->bytes + (verdict->site_rva - body->region->rva),
                           body->region->end - verdict->site_rva, verdict->site_rva, 0, &in) &&
           in.flow == HFN_FLOW_JUMP;
}

/* Whether the sites in a function are patched.  Fragments are omitted, because they are rarely
 * executed and would cost private copies of their pages; so are functions with HFN_TRAITS_FIXED. */
static bool is_caller(const hfn_verdict *verdict, const hfn_body *body)
{
    return verdict->pub.verdict != HOTFN_VERDICT_FRAGMENT && !(body->traits & HFN_TRAITS_FIXED);
}

/* Whether the entry or a jump leads to the branch.  Data behind a jump may look like one. */
static bool is_reached(const hfn_body *body, const hfn_branch *branch)
{
    uint64_t at = branch->path_from;

    while (at != body->rva && at < branch->field &&
           !(hfn_region_marks(body->region, at) & HFN_MARK_JUMPED)) {
        at++;
    }
    return at < branch->field;
}

/* Whether no patch, jump or loader touches the branch [from, field + 4). */
static bool is_untouched(const hfn_analysis *a, const hfn_body *body, const hfn_verdict *verdict,
                         uint64_t field)
{
    const uint8_t *bytes = body->region->bytes + (field - body->region->rva);
    uint64_t from = field - (bytes[-1] >= 0x80 && bytes[-1] < 0x90 ? 2 : 1), unused;
    uint32_t kept = verdict->pub.strategy == HOTFN_STRATEGY_PUN ? 5 : verdict->pub.patch_bytes;

    if (kept < verdict->covered_bytes) {
        kept = verdict->covered_bytes;
    }
    if (verdict->pub.verdict == HOTFN_VERDICT_HOOKABLE && from < verdict->site_rva + kept &&
        field + 4 > verdict->site_rva) {
        return false;
    }
    for (uint64_t at = from + 1; at < field + 4; at++) {
        if (hfn_region_marks(body->region, at)) {
            return false;
        }
    }
    return hfn_fixed_reason(a, from, field + 4, &unused) == HOTFN_REASON_NONE &&
           !hfn_relocated_overlaps(&a->relocated, from, field + 4);
}

void hfn_sites_keep(hfn_analysis *a, const hfn_verdict *verdicts)
{
    entry_index index;
    size_t kept = 0;
    uint32_t own = 0; /* the function that contains the branch */

    if (a->branch_count == 0) {
        return;
    }
    if (!make_index(a, &index)) {
        a->branch_count = 0;
        return;
    }
    for (size_t i = 0; i < a->branch_count; i++) {
        hfn_branch branch = a->branches[i];
        uint32_t target = function_at(a, &index, branch.target);
        while (own + 1 < a->count && a->bodies[own + 1].rva <= branch.field) {
            own++;
        }
        if (target == HFN_NO_FUNCTION || !is_caller(&verdicts[own], &a->bodies[own]) ||
            !may_enter(a, &verdicts[target], &a->bodies[target]) ||
            !is_reached(&a->bodies[own], &branch) ||
            !is_untouched(a, &a->bodies[own], &verdicts[own], branch.field)) {
            continue;
        }
        a->branches[kept++] = (hfn_branch){ .field = branch.field, .target = target };
    }
    a->branch_count = kept;
    hfn_free_memory(&a->env, index.first, index.count * sizeof *index.first);
}
