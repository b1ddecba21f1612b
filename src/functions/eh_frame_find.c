/* SPDX-License-Identifier: MIT */
/* .eh_frame_hdr: version 1, three encodings, the address of .eh_frame, the count of entries, then
 * the entries: the address of a function and that of its FDE, sorted by the former (LSB core, 'The
 * .eh_frame_hdr section'). */
#include "functions/eh_frame_find.h"

enum { TABLE_AT = 12, ENTRY_BYTES = 8, VERSION = 1 };
enum { PCREL_SDATA4 = 0x1b, UDATA4 = 0x03, DATAREL_SDATA4 = 0x3b };

bool hfn_eh_table_open(hfn_eh_table *out, hfn_eh_bytes bytes, uint64_t header)
{
    uint64_t at = header - bytes.address;
    uint8_t kind[4] = { 0 };

    *out = (hfn_eh_table){ .eh = bytes, .at = at + TABLE_AT, .header = header };
    for (uint32_t i = 0; i < sizeof kind; i++) {
        hfn_span_u8(bytes.bytes, at + i, &kind[i]);
    }
    return kind[0] == VERSION && kind[1] == PCREL_SDATA4 && kind[2] == UDATA4 &&
           kind[3] == DATAREL_SDATA4 && hfn_span_u32(bytes.bytes, at + 8, &out->count) &&
           hfn_span_has(bytes.bytes, out->at, (uint64_t)out->count * ENTRY_BYTES);
}

/* The address in a word of an entry. */
static uint64_t word_at(const hfn_eh_table *t, uint64_t at)
{
    uint32_t word = 0;

    hfn_span_u32(t->eh.bytes, at, &word);
    return t->header + (uint64_t)(int64_t)(int32_t)word;
}

/* The address of the FDE of the function at address; 0 if it has none. */
static uint64_t find_fde(const hfn_eh_table *t, uint64_t address)
{
    uint32_t low = 0, high = t->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (word_at(t, t->at + (uint64_t)middle * ENTRY_BYTES) < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < t->count && word_at(t, t->at + (uint64_t)low * ENTRY_BYTES) == address
               ? word_at(t, t->at + (uint64_t)low * ENTRY_BYTES + 4)
               : 0;
}

/* Reads the length and the id of the entry at `at`; *end is the end of the entry.  Entries with a
 * 64-bit length are not supported. */
static bool open_entry(const hfn_eh_bytes *eh, uint64_t at, uint32_t *id, uint64_t *end)
{
    uint32_t bytes;

    if (!hfn_span_u32(eh->bytes, at, &bytes) || bytes < 4 || bytes == UINT32_MAX ||
        !hfn_span_has(eh->bytes, at + 4, bytes)) {
        return false;
    }
    *end = at + 4 + bytes;
    return hfn_span_u32(eh->bytes, at + 4, id);
}

bool hfn_eh_table_find(const hfn_eh_table *t, uint64_t address, hfn_eh_function *out)
{
    uint64_t fde = find_fde(t, address), at = fde - t->eh.address, end, cie_end, data = 0, begin,
             raw;
    hfn_eh_bytes own = t->eh;
    uint32_t distance, id;

    if (fde == 0 || !open_entry(&t->eh, at, &distance, &end) || distance == 0 ||
        distance > at + 4 || !open_entry(&t->eh, at + 4 - distance, &id, &cie_end) || id != 0 ||
        !hfn_eh_read_cie(&t->eh, at + 4 - distance + 8, cie_end, &out->cie)) {
        return false;
    }
    own.bytes = hfn_span_sub(t->eh.bytes, 0, end);
    at += 8;
    if (!hfn_eh_pointer(&own, &at, out->cie.pointer_encoding, &raw, &begin) || begin != address ||
        !hfn_eh_pointer(&own, &at, out->cie.pointer_encoding & 0x0f, &out->byte_count, &raw)) {
        return false;
    }
    if (out->cie.has_sizes &&
        (!hfn_span_uleb(own.bytes, &at, &data) || !hfn_span_has(own.bytes, at, data))) {
        return false;
    }
    out->instructions = hfn_span_from(own.bytes, at + data);
    return true;
}
