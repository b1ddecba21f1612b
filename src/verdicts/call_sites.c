/* SPDX-License-Identifier: MIT */
/* Reads the call-site tables of C++ and similar languages (LSB core, 'Exception Frames'; the layout
 * of gcc's and LLVM's LSDA). */
#include "verdicts/call_sites.h"

#include "image/pe.h"

bool hfn_call_sites_open(const hfn_analysis *a, const hfn_function *f, hfn_call_sites *out)
{
    uint64_t raw, address, skipped, bytes;
    uint8_t encoding;

    if (f->lsda_rva == UINT64_MAX) {
        return false;
    }
    out->eh = (hfn_eh_bytes){ .bytes = hfn_image_span(a->image, f->lsda_rva),
                              .address = a->info.link_base + f->lsda_rva,
                              .word_bytes = a->info.bits / 8 };
    out->at = 0;
    out->function = out->pads = f->rva;
    if (!hfn_span_u8(out->eh.bytes, out->at++, &encoding)) {
        return false;
    }
    if (encoding != HFN_ENCODING_OMIT &&
        (!hfn_eh_pointer(&out->eh, &out->at, encoding, &raw, &address) ||
         !hfn_image_rva(a->image, address, &out->pads))) {
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

bool hfn_call_sites_next(hfn_call_sites *t, hfn_call_site *out)
{
    uint64_t begin, bytes, pad, raw, action;

    if (!hfn_eh_pointer(&t->eh, &t->at, t->encoding & 0x0f, &begin, &raw) ||
        !hfn_eh_pointer(&t->eh, &t->at, t->encoding & 0x0f, &bytes, &raw) ||
        !hfn_eh_pointer(&t->eh, &t->at, t->encoding & 0x0f, &pad, &raw) ||
        !hfn_span_uleb(t->eh.bytes, &t->at, &action) || t->at > t->end) {
        return false;
    }
    *out = (hfn_call_site){ t->function + begin, t->function + begin + bytes,
                            pad == 0 ? 0 : t->pads + pad };
    return true;
}

bool hfn_call_sites_catch(const hfn_analysis *a, uint32_t index, uint64_t from, uint64_t to,
                          uint64_t *at)
{
    const hfn_function *f = hfn_functions_at(a->functions, index);
    hfn_call_sites table;
    hfn_call_site site;

    *at = from;
    if (!f || !(f->flags & HOTFN_FUNCTION_HAS_LSDA) || hfn_image_is_pe(a->image)) {
        return false;
    }
    if (!hfn_call_sites_open(a, f, &table)) {
        return true;
    }
    while (table.at < table.end) {
        if (!hfn_call_sites_next(&table, &site)) {
            return true;
        }
        if (site.pad != 0 && site.begin < to && site.end > from) {
            *at = site.begin > from ? site.begin : from;
            return true;
        }
    }
    return false;
}
