/* SPDX-License-Identifier: MIT */
/* Checked reads of untrusted bytes: a read that is not completely inside the span fails.  Bounds
 * are checked as `size <= s.size - offset`, which cannot overflow. */
#include "base/span.h"

#include "base/compiler.h"

#include <string.h>

bool hfn_span_has(hfn_span s, uint64_t offset, uint64_t size)
{
    return offset <= s.size && size <= s.size - offset;
}

hfn_span hfn_span_sub(hfn_span whole, uint64_t offset, uint64_t size)
{
    hfn_span part = { NULL, 0, whole.big_endian };

    if (whole.data && hfn_span_has(whole, offset, size)) {
        part.data = whole.data + offset;
        part.size = size;
    }
    return part;
}

hfn_span hfn_span_from(hfn_span whole, uint64_t offset)
{
    return hfn_span_sub(whole, offset, offset <= whole.size ? whole.size - offset : 0);
}

bool hfn_span_u8(hfn_span s, uint64_t offset, uint8_t *out)
{
    if (!hfn_span_has(s, offset, 1)) {
        return false;
    }
    *out = s.data[offset];
    return true;
}

bool hfn_span_u16(hfn_span s, uint64_t offset, uint16_t *out)
{
    if (!hfn_span_has(s, offset, 2)) {
        return false;
    }
    memcpy(out, s.data + offset, sizeof *out);
    if (s.big_endian != HFN_HOST_BIG_ENDIAN) {
        *out = HFN_SWAP16(*out);
    }
    return true;
}

bool hfn_span_u32(hfn_span s, uint64_t offset, uint32_t *out)
{
    if (!hfn_span_has(s, offset, 4)) {
        return false;
    }
    memcpy(out, s.data + offset, sizeof *out);
    if (s.big_endian != HFN_HOST_BIG_ENDIAN) {
        *out = HFN_SWAP32(*out);
    }
    return true;
}

bool hfn_span_u64(hfn_span s, uint64_t offset, uint64_t *out)
{
    if (!hfn_span_has(s, offset, 8)) {
        return false;
    }
    memcpy(out, s.data + offset, sizeof *out);
    if (s.big_endian != HFN_HOST_BIG_ENDIAN) {
        *out = HFN_SWAP64(*out);
    }
    return true;
}

bool hfn_span_word(hfn_span s, uint64_t offset, uint32_t word_bytes, uint64_t *out)
{
    uint8_t byte = 0;
    uint16_t half = 0;
    uint32_t narrow = 0;
    bool fits = false;

    switch (word_bytes) {
    case 1: fits = hfn_span_u8(s, offset, &byte); break;
    case 2: fits = hfn_span_u16(s, offset, &half); break;
    case 4: fits = hfn_span_u32(s, offset, &narrow); break;
    case 8: return hfn_span_u64(s, offset, out);
    default: break;
    }
    if (fits) {
        *out = (uint64_t)byte + half + narrow;
    }
    return fits;
}

const char *hfn_span_string(hfn_span s, uint64_t offset)
{
    if (!s.data || offset >= s.size || !memchr(s.data + offset, 0, (size_t)(s.size - offset))) {
        return NULL;
    }
    return (const char *)s.data + offset;
}

hfn_span hfn_span_string_table(hfn_span table)
{
    while (table.size > 0 && table.data[table.size - 1] != 0) {
        table.size--;
    }
    return table;
}

const char *hfn_span_name(hfn_span string_table, uint64_t offset)
{
    return offset < string_table.size ? (const char *)string_table.data + offset : NULL;
}

/* Combine the 7-bit groups; *bits receives the number of bits read.  DWARF 5, 7.6. */
static bool read_leb(hfn_span s, uint64_t *offset, uint64_t *value, uint32_t *bits, uint8_t *last)
{
    uint64_t at = *offset;

    *value = 0;
    *bits = 0;
    do {
        if (*bits > 63 || !hfn_span_u8(s, at, last)) {
            return false;
        }
        uint64_t group = *last & 0x7f;
        if (*bits == 63 && group > 1 && group != 0x7f) { /* 0x7f: the sign of a 64-bit sleb */
            return false;
        }
        *value |= group << *bits;
        *bits += 7;
        at++;
    } while (*last & 0x80);
    *offset = at;
    return true;
}

bool hfn_span_uleb(hfn_span s, uint64_t *offset, uint64_t *out)
{
    uint64_t at = *offset, value;
    uint32_t bits;
    uint8_t last;

    if (!read_leb(s, &at, &value, &bits, &last) || (bits > 63 && last > 1)) {
        return false;
    }
    *offset = at;
    *out = value;
    return true;
}

bool hfn_span_sleb(hfn_span s, uint64_t *offset, int64_t *out)
{
    uint64_t at = *offset, value;
    uint32_t bits;
    uint8_t last;

    if (!read_leb(s, &at, &value, &bits, &last) || (bits > 63 && last == 1)) {
        return false;
    }
    if (bits < 64 && (last & 0x40)) {
        value |= UINT64_MAX << bits;
    }
    *offset = at;
    *out = (int64_t)value;
    return true;
}
