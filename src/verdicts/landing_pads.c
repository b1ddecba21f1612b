/* SPDX-License-Identifier: MIT */
/* Follows exceptions to their landing pads.  There the stack pointer and the frame pointer have the
 * values that they had at the call; other registers are unknown.  On Windows a fault continues in
 * the same way, so the states at instructions where one may be caught are recorded like calls. */
#include "functions/eh_frame_read.h"
#include "functions/handlers.h"
#include "image/pe.h"
#include "verdicts/call_sites.h"
#include "verdicts/prove.h"

/* i386: unwinding removes the arguments of the call that the exception left. */
static bool remove_arguments(const hfn_prover *p, const hfn_function *f, uint64_t call, int32_t *at)
{
    uint64_t byte_count;

    if (!f->sizes_arguments) {
        return true;
    }
    if (f->cfi_bytes == 0 ||
        !hfn_eh_frame_arguments_at(
            hfn_span_sub(hfn_image_span(p->analysis->image, f->cfi_rva), 0, f->cfi_bytes),
            call - f->rva, &byte_count) ||
        byte_count > INT16_MAX) {
        return false;
    }
    *at = hfn_stack_add(*at, (int64_t)byte_count);
    return true;
}

/* Add edges from the calls of the site to its landing pad. */
static uint32_t follow_site(hfn_prover *p, const hfn_function *f, const hfn_call_site *site,
                            bool weak, bool *any)
{
    const hfn_arch *arch = p->analysis->arch;

    for (size_t i = 0; i < p->call_count; i++) {
        hfn_stack_state state = p->calls[i].state;
        uint32_t before = p->count;
        if (p->calls[i].rva < site->begin || p->calls[i].rva >= site->end) {
            continue;
        }
        if (!remove_arguments(p, f, p->calls[i].rva, &state.at[arch->stack_register])) {
            return HOTFN_REASON_STACK_UNKNOWN;
        }
        uint32_t reason = hfn_prove_add_edge(p, site->pad, &state, weak);
        *any |= p->count > before || p->queue_count > 0;
        if (reason != HOTFN_REASON_NONE) {
            return reason;
        }
    }
    return HOTFN_REASON_NONE;
}

static uint32_t follow_part(hfn_prover *p, const hfn_function *f, bool *any)
{
    uint32_t reason = HOTFN_REASON_NONE;
    hfn_call_sites table;
    hfn_call_site site;

    if (!hfn_call_sites_open(p->analysis, f, &table)) {
        return HOTFN_REASON_STACK_UNKNOWN;
    }
    while (table.at < table.end && reason == HOTFN_REASON_NONE) {
        if (!hfn_call_sites_next(&table, &site)) {
            return HOTFN_REASON_STACK_UNKNOWN;
        }
        if (site.pad != 0) {
            reason = follow_site(p, f, &site, true, any);
        }
    }
    return reason;
}

/* ---- Windows x64. */

typedef struct continuations {
    hfn_prover *prover;
    const hfn_function *function;
    bool *any;
    uint32_t reason;
} continuations;

/* The stack pointer is the same in the whole body, so no path may disagree. */
static void follow_continuation(void *user, uint64_t begin, uint64_t end, uint64_t target)
{
    const hfn_call_site site = { begin, end, target };
    continuations *c = user;

    if (c->reason == HOTFN_REASON_NONE) {
        c->reason = follow_site(c->prover, c->function, &site, false, c->any);
    }
}

static uint32_t follow_continuations(hfn_prover *p, const hfn_function *f, bool *any)
{
    continuations c = { p, f, any, HOTFN_REASON_NONE };

    return p->analysis->home_bytes > 0 &&
                   hfn_each_continuation(p->analysis->image, f->rva, follow_continuation, &c)
               ? c.reason
               : HOTFN_REASON_STACK_UNKNOWN;
}

uint32_t hfn_prove_landing_pads(hfn_prover *p, bool *any)
{
    uint32_t reason = HOTFN_REASON_NONE;

    for (size_t i = 0; i < p->part_count && reason == HOTFN_REASON_NONE; i++) {
        const hfn_function *f = hfn_functions_at(p->analysis->functions, p->parts[i]);
        if (f && (f->flags & HOTFN_FUNCTION_HAS_LSDA)) {
            reason = hfn_image_is_pe(p->analysis->image) ? follow_continuations(p, f, any)
                                                         : follow_part(p, f, any);
        }
    }
    return reason;
}
