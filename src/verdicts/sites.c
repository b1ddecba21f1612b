/* SPDX-License-Identifier: MIT */
/*
 * Call sites: direct calls and jumps that lead exactly to the entry of a hookable function.  Sent straight
 * to its stub they save the jump at the entry, which costs more than the count (hooks-sites.md).  Kept are
 * those that are surely what they look like: code that was read from its entry to its end without a
 * doubt, nothing jumps into their middle, and no patch or loader writes there.
 */
#include "verdicts/judging.h"

/* Which function begins at an address: for each stretch of 2^BUCKET_BITS bytes the first at or behind it. */
#define BUCKET_BITS 7u

typedef struct entry_index {
    uint32_t *first;
    uint64_t count;
} entry_index;

static bool make_index(hfn_judging *j, entry_index *index)
{
    uint64_t highest = j->subjects[j->count - 1].rva;
    uint32_t i = 0;

    if (highest > UINT32_MAX) {
        return false;
    }
    index->count = (highest >> BUCKET_BITS) + 1;
    index->first = hfn_alloc(&j->env, index->count * sizeof *index->first);
    if (!index->first) {
        j->no_memory = true;
        return false;
    }
    for (uint64_t bucket = 0; bucket < index->count; bucket++) {
        while (j->subjects[i].rva < bucket << BUCKET_BITS) {
            i++;
        }
        index->first[bucket] = i;
    }
    return true;
}

static uint32_t function_at(const hfn_judging *j, const entry_index *index, uint64_t rva)
{
    uint64_t bucket = rva >> BUCKET_BITS;
    uint32_t i = bucket < index->count ? index->first[bucket] : j->count;

    while (i < j->count && j->subjects[i].rva < rva) {
        i++;
    }
    return i < j->count && j->subjects[i].rva == rva ? i : HFN_NO_SUBJECT;
}

/* Does a stub do all that the function does, when entered in its place?  Not one that stands in place of
 * a call within. */
static bool may_enter(const hfn_judging *j, const hfn_verdict *verdict, const hfn_subject *s)
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
    return j->arch->decode(s->region->bytes + (verdict->site_rva - s->region->rva),
                           s->region->end - verdict->site_rva, verdict->site_rva, 0, &in) &&
           in.flow == HFN_FLOW_JUMP;
}

/* Whose calls are worth a private copy of their page: not a fragment's, which is what compilers put aside
 * as seldom used.  And nobody may know the bytes. */
static bool is_caller(const hfn_verdict *verdict, const hfn_subject *s)
{
    return verdict->pub.verdict != HOTFN_VERDICT_FRAGMENT && !(s->notes & HFN_NOTES_STAY);
}

/* [from, field + 4) is the instruction. */
static bool is_untouched(const hfn_judging *j, const hfn_subject *s, const hfn_verdict *verdict,
                         uint64_t field)
{
    const uint8_t *bytes = s->region->bytes + (field - s->region->rva);
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
        if (hfn_region_marks(s->region, at)) {
            return false;
        }
    }
    return hfn_fixed_reason(j, from, field + 4, &unused) == HOTFN_REASON_NONE;
}

void hfn_sites_keep(hfn_judging *j, const hfn_verdict *verdicts)
{
    entry_index index;
    size_t kept = 0;
    uint32_t own = 0; /* whose code the branch is */

    if (j->branch_count == 0) {
        return;
    }
    if (!make_index(j, &index)) {
        j->branch_count = 0;
        return;
    }
    for (size_t i = 0; i < j->branch_count; i++) {
        hfn_branch branch = j->branches[i];
        uint32_t target = function_at(j, &index, branch.target);
        while (own + 1 < j->count && j->subjects[own + 1].rva <= branch.field) {
            own++;
        }
        if (target == HFN_NO_SUBJECT || !is_caller(&verdicts[own], &j->subjects[own]) ||
            !may_enter(j, &verdicts[target], &j->subjects[target]) ||
            !is_untouched(j, &j->subjects[own], &verdicts[own], branch.field)) {
            continue;
        }
        j->branches[kept++] = (hfn_branch){ branch.field, target };
    }
    j->branch_count = kept;
    hfn_free(&j->env, index.first, index.count * sizeof *index.first);
}
