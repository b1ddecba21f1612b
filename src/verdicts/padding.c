/* SPDX-License-Identifier: MIT */
/*
 * Allocates the padding between functions for patches.  It is used only if it is proven dead: the
 * function before it does not fall through into it, nothing refers to it, and all bytes are nops or
 * int3, or belong to the rest of the last page of code.  The padding after a function is used from
 * its start, each byte once.
 */
#include "verdicts/analysis.h"

#define PAD_MAX 255u /* usable bytes after a function: padding_used is a byte */

/* End of the padding after a function. */
static uint64_t get_padding_end(const hfn_analysis *a, uint32_t index)
{
    const hfn_body *body = &a->bodies[index];

    if (index + 1 < a->count && a->bodies[index + 1].region == body->region) {
        return a->bodies[index + 1].rva;
    }
    return body->region->tail_end;
}

bool hfn_body_is_closed(const hfn_analysis *a, const hfn_body *body)
{
    hfn_instruction in = { .flow = HFN_FLOW_NEXT };
    uint64_t at = body->rva;

    while (at < body->end) {
        if (!a->arch->decode(body->region->bytes + (at - body->region->rva), body->region->end - at,
                             at, 0, &in)) {
            return false;
        }
        at += in.length;
    }
    return at == body->end && hfn_ends_path(&in);
}

static bool is_dead_padding(const hfn_analysis *a, const hfn_body *body, uint64_t to)
{
    uint64_t code_end =
        to < body->region->end ? to : body->region->end; /* the tail is not decoded */
    uint64_t unused;
    hfn_instruction in;

    if (hfn_fixed_reason(a, body->end, code_end, &unused) != HOTFN_REASON_NONE ||
        hfn_relocated_overlaps(&a->relocated, body->end, code_end)) {
        return false;
    }
    for (uint64_t at = body->end; at < code_end; at++) {
        if (hfn_region_marks(body->region, at)) {
            return false;
        }
    }
    for (uint64_t at = body->end; at < code_end; at += in.length) {
        if (!a->arch->decode(body->region->bytes + (at - body->region->rva), body->region->end - at,
                             at, 0, &in) ||
            !in.is_padding) {
            return false;
        }
    }
    return true;
}

bool hfn_padding_reserve(const hfn_analysis *a, uint32_t index, uint64_t from, uint64_t to)
{
    hfn_body *body = &a->bodies[index];

    if (!body->region || body->max_end != body->end || from < body->end + body->padding_used ||
        to - body->end > PAD_MAX || to > get_padding_end(a, index) ||
        !is_dead_padding(a, body, to) || !hfn_body_is_closed(a, body)) {
        return false;
    }
    body->padding_used = (uint8_t)(to - body->end);
    return true;
}

uint64_t hfn_padding_find(const hfn_analysis *a, uint64_t low, uint64_t high, uint32_t byte_count)
{
    uint32_t i = hfn_analysis_find_body(a, low);

    for (i = i > 0 ? i - 1 : 0; i < a->count && a->bodies[i].rva <= high; i++) {
        const hfn_body *body = &a->bodies[i];
        uint64_t from = body->end + body->padding_used;
        if (from < low) {
            from = low;
        }
        if (from <= high && hfn_padding_reserve(a, i, from, from + byte_count)) {
            return from;
        }
    }
    return UINT64_MAX;
}
