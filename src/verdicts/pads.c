/* SPDX-License-Identifier: MIT */
/*
 * Padding between functions as a place for jumps.  It counts only if it is proven dead: the function
 * before it does not run on into it, nothing jumps, calls or points there, and every byte from the
 * function's end on belongs to a nop or an int3, or to the tail of the segment: the rest of the page behind all
 * code (mostly i386's get-pc thunks, which linkers put last, need it).  Taken from the front of each gap, each
 * byte once.
 */
#include "verdicts/judging.h"

#define PAD_MAX 255u /* bytes of a gap that are ever used: pad_used is a byte */

/* The first byte behind the gap that begins at the subject's end. */
static uint64_t gap_end(const hfn_judging *j, uint32_t index)
{
    const hfn_subject *s = &j->subjects[index];

    if (index + 1 < j->count && j->subjects[index + 1].region == s->region) {
        return j->subjects[index + 1].rva;
    }
    return s->region->tail_end;
}

bool hfn_subject_ends(const hfn_judging *j, const hfn_subject *s)
{
    hfn_instruction in = { .flow = HFN_FLOW_NEXT };
    uint64_t at = s->rva;

    while (at < s->end) {
        if (!j->arch->decode(s->region->bytes + (at - s->region->rva), s->region->end - at, at, 0,
                             &in)) {
            return false;
        }
        at += in.length;
    }
    return at == s->end &&
           (in.flow == HFN_FLOW_JUMP || in.flow == HFN_FLOW_JUMP_INDIRECT ||
            in.flow == HFN_FLOW_RETURN || (in.flow == HFN_FLOW_STOP && !in.is_padding));
}

static bool is_dead_padding(const hfn_judging *j, const hfn_subject *s, uint64_t to)
{
    uint64_t code_end =
        to < s->region->end ? to : s->region->end; /* behind it nobody has anything */
    uint64_t unused;
    hfn_instruction in;

    if (hfn_fixed_reason(j, s->end, code_end, &unused) != HOTFN_REASON_NONE) {
        return false;
    }
    for (uint64_t at = s->end; at < code_end; at++) {
        if (hfn_region_marks(s->region, at)) {
            return false;
        }
    }
    for (uint64_t at = s->end; at < code_end; at += in.length) {
        if (!j->arch->decode(s->region->bytes + (at - s->region->rva), s->region->end - at, at, 0,
                             &in) ||
            !in.is_padding) {
            return false;
        }
    }
    return true;
}

bool hfn_pad_take(const hfn_judging *j, uint32_t index, uint64_t from, uint64_t to)
{
    hfn_subject *s = &j->subjects[index];

    if (!s->region || s->reach != s->end || from < s->end + s->pad_used || to - s->end > PAD_MAX ||
        to > gap_end(j, index) || !is_dead_padding(j, s, to) || !hfn_subject_ends(j, s)) {
        return false;
    }
    s->pad_used = (uint8_t)(to - s->end);
    return true;
}

uint64_t hfn_pad_find(const hfn_judging *j, uint64_t low, uint64_t high, uint32_t byte_count)
{
    uint32_t i = hfn_judging_lower(j, low);

    for (i = i > 0 ? i - 1 : 0; i < j->count && j->subjects[i].rva <= high; i++) {
        const hfn_subject *s = &j->subjects[i];
        uint64_t from = s->end + s->pad_used;
        if (from < low) {
            from = low;
        }
        if (from <= high && hfn_pad_take(j, i, from, from + byte_count)) {
            return from;
        }
    }
    return UINT64_MAX;
}
