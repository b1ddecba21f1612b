/* SPDX-License-Identifier: MIT */
/* Follows exceptions: the call-site tables of C++ and similar languages (LSB core, 'Exception
 * Frames'; the layout of gcc's and LLVM's LSDA).  At a landing pad the stack pointer and the
 * frame pointer have the values that they had at the call; other registers are unknown. */
#include "functions/eh_frame_read.h"
#include "verdicts/prove.h"

typedef struct call_sites {
    hfn_eh_bytes eh;
    uint64_t at, end;
    uint64_t function, pads; /* RVAs that calls and landing pads are relative to */
    uint8_t encoding;
} call_sites;

static bool open_table(const hfn_prover *p, const hfn_function *f, call_sites *out)
{
    uint64_t raw, address, skipped, bytes;
    uint8_t encoding;

    if (f->lsda_rva == UINT64_MAX) {
        return false;
    }
    out->eh = (hfn_eh_bytes){ .bytes = hfn_image_span(p->analysis->image, f->lsda_rva),
                              .address = p->analysis->info.link_base + f->lsda_rva,
                              .word_bytes = p->analysis->info.bits / 8 };
    out->at = 0;
    out->function = out->pads = f->rva;
    if (!hfn_span_u8(out->eh.bytes, out->at++, &encoding)) {
        return false;
    }
    if (encoding != HFN_ENCODING_OMIT &&
        (!hfn_eh_pointer(&out->eh, &out->at, encoding, &raw, &address) ||
         !hfn_image_rva(p->analysis->image, address, &out->pads))) {
        return false;
    }
    if (!hfn_span_u8(out->eh.bytes, out->at++, &encoding) ||
        (encoding != HFN_ENCODING_OMIT && !hfn_span_uleb(out->eh.bytes, &out->at, &skipped))) {
        return false;
    }
    if (!hfn_span_u8(out->eh.bytes, out->at++, &out->encoding) ||
        !hfn_span_uleb(out->eh.bytes, &out->at, &bytes) ||
        !hfn_span_has(out->eh.bytes, out->at, bytes)) {
        return false;
    }
    out->end = out->at + bytes;
    return true;
}

typedef struct call_site {
    uint64_t begin, end, pad; /* RVAs; pad 0: none */
} call_site;

static bool next_site(call_sites *t, call_site *out)
{
    uint64_t begin, bytes, pad, raw, action;

    if (!hfn_eh_pointer(&t->eh, &t->at, t->encoding & 0x0f, &begin, &raw) ||
        !hfn_eh_pointer(&t->eh, &t->at, t->encoding & 0x0f, &bytes, &raw) ||
        !hfn_eh_pointer(&t->eh, &t->at, t->encoding & 0x0f, &pad, &raw) ||
        !hfn_span_uleb(t->eh.bytes, &t->at, &action)) {
        return false;
    }
    *out = (call_site){ t->function + begin, t->function + begin + bytes,
                        pad == 0 ? 0 : t->pads + pad };
    return true;
}

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
    if (*at != HFN_STACK_IN_FRAME) {
        *at += (int32_t)byte_count;
    }
    return true;
}

/* Add edges from the calls of the site to its landing pad. */
static uint32_t follow_site(hfn_prover *p, const hfn_function *f, const call_site *site, bool *any)
{
    const hfn_arch *arch = p->analysis->arch;

    for (size_t i = 0; i < p->call_count; i++) {
        hfn_stack_state state = { .uncertain_calls = p->calls[i].called };
        uint32_t before = p->count;
        if (p->calls[i].rva < site->begin || p->calls[i].rva >= site->end) {
            continue;
        }
        for (uint32_t k = 0; k < HFN_STACK_REGISTERS; k++) {
            state.at[k] = HFN_STACK_UNKNOWN;
        }
        state.at[arch->return_place] = p->calls[i].return_at;
        state.at[arch->stack_register] = p->calls[i].stack_at;
        state.at[arch->frame_register] = p->calls[i].frame_at;
        if (!remove_arguments(p, f, p->calls[i].rva, &state.at[arch->stack_register])) {
            return HOTFN_REASON_STACK_UNKNOWN;
        }
        uint32_t reason = hfn_prove_add_edge(p, site->pad, &state, true);
        *any |= p->count > before;
        if (reason != HOTFN_REASON_NONE) {
            return reason;
        }
    }
    return HOTFN_REASON_NONE;
}

static uint32_t follow_part(hfn_prover *p, const hfn_function *f, bool *any)
{
    uint32_t reason = HOTFN_REASON_NONE;
    call_sites table;
    call_site site;

    if (!open_table(p, f, &table)) {
        return HOTFN_REASON_STACK_UNKNOWN;
    }
    while (table.at < table.end && reason == HOTFN_REASON_NONE) {
        if (!next_site(&table, &site)) {
            return HOTFN_REASON_STACK_UNKNOWN;
        }
        if (site.pad != 0) {
            reason = follow_site(p, f, &site, any);
        }
    }
    return reason;
}

uint32_t hfn_prove_landing_pads(hfn_prover *p, bool *any)
{
    uint32_t reason = HOTFN_REASON_NONE;

    for (size_t i = 0; i < p->part_count && reason == HOTFN_REASON_NONE; i++) {
        const hfn_function *f = hfn_functions_at(p->analysis->functions, p->parts[i]);
        if (f && (f->flags & HOTFN_FUNCTION_HAS_LSDA)) {
            reason = follow_part(p, f, any);
        }
    }
    return reason;
}
