/* SPDX-License-Identifier: MIT */
/* Reading a scan block: every offset is checked once, when the block is opened. */
#include "scan/block.h"

#include <string.h>

#define NAME_OFFSET_AT 16u /* in a function's entry */

static bool read_header(hfn_span block, hfn_scan_header *h)
{
    if (!hfn_span_has(block, 0, HFN_SCAN_HEADER_BYTES)) {
        return false;
    }
    hfn_span_u64(block, 0, &h->magic);
    hfn_span_u32(block, 8, &h->version);
    hfn_span_u32(block, 12, &h->machine);
    hfn_span_u32(block, 16, &h->image_flags);
    hfn_span_u32(block, 20, &h->function_count);
    hfn_span_u32(block, 24, &h->id_kind);
    hfn_span_u32(block, 28, &h->id_bytes);
    memcpy(h->id, block.data + 32, sizeof h->id);
    hfn_span_u64(block, 64, &h->plan_offset);
    hfn_span_u64(block, 72, &h->plan_bytes);
    hfn_span_u64(block, 80, &h->functions_offset);
    hfn_span_u64(block, 88, &h->names_offset);
    hfn_span_u64(block, 96, &h->names_bytes);
    hfn_span_u64(block, 104, &h->total_bytes);
    hfn_span_u64(block, 112, &h->stamp);
    hfn_span_u32(block, 120, &h->hookable_count);
    hfn_span_u32(block, 124, &h->refused_count);
    hfn_span_u32(block, 128, &h->fragment_count);
    hfn_span_u32(block, 132, &h->missing);
    hfn_span_u64(block, 136, &h->code_bytes);
    hfn_span_u64(block, 144, &h->known_bytes);
    return h->magic == HFN_SCAN_MAGIC && h->version == HFN_SCAN_VERSION && h->id_bytes <= 32;
}

bool hfn_scan_function_at(hfn_span block, const hfn_scan_header *header, uint32_t index,
                          hfn_scan_function *out)
{
    if (index >= header->function_count) {
        return false;
    }
    uint64_t at = header->functions_offset + (uint64_t)index * HFN_SCAN_FUNCTION_BYTES;
    hfn_span entry = hfn_span_sub(block, at, HFN_SCAN_FUNCTION_BYTES);
    return hfn_span_u64(entry, 0, &out->rva) && hfn_span_u64(entry, 8, &out->byte_count) &&
           hfn_span_u32(entry, NAME_OFFSET_AT, &out->name_offset) &&
           hfn_span_u32(entry, 20, &out->name_count) && hfn_span_u8(entry, 24, &out->state) &&
           hfn_span_u8(entry, 25, &out->strategy) && hfn_span_u16(entry, 26, &out->reason) &&
           hfn_span_u32(entry, 28, &out->reason_offset) && hfn_span_u32(entry, 32, &out->flags);
}

bool hfn_scan_check(hfn_span block, hfn_scan_header *h)
{
    if (!read_header(block, h) || h->total_bytes != block.size ||
        !hfn_span_has(block, h->plan_offset, h->plan_bytes) ||
        !hfn_span_has(block, h->names_offset, h->names_bytes) ||
        !hfn_span_has(block, h->functions_offset,
                      (uint64_t)h->function_count * HFN_SCAN_FUNCTION_BYTES)) {
        return false;
    }
    /* The names end with two NULs, so every list of names that begins inside also ends inside. */
    const uint8_t *names = block.data + h->names_offset;
    if (h->names_bytes < 2 || names[h->names_bytes - 1] != 0 || names[h->names_bytes - 2] != 0) {
        return false;
    }
    hfn_span functions = hfn_span_sub(block, h->functions_offset,
                                      (uint64_t)h->function_count * HFN_SCAN_FUNCTION_BYTES);
    uint32_t name_offset = 0;
    for (uint64_t at = NAME_OFFSET_AT; hfn_span_u32(functions, at, &name_offset);
         at += HFN_SCAN_FUNCTION_BYTES) {
        if (name_offset >= h->names_bytes) {
            return false;
        }
    }
    return true;
}
