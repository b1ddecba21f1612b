/* SPDX-License-Identifier: MIT */
/* A span is a view of untrusted bytes with checked reads.  Every loader reads file bytes only
 * through spans; no struct is cast over file bytes. */
#ifndef HFN_BASE_SPAN_H
#define HFN_BASE_SPAN_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hfn_span {
    const uint8_t *data;
    uint64_t size;
    bool big_endian;
} hfn_span;

/* [offset, offset+size) of whole; an empty span (data NULL) if it does not lie inside. */
hfn_span hfn_span_sub(hfn_span whole, uint64_t offset, uint64_t size);
/* From offset to the end. */
hfn_span hfn_span_from(hfn_span whole, uint64_t offset);
bool hfn_span_has(hfn_span s, uint64_t offset, uint64_t size);

/* Read a number at offset; false beyond the end, with *out unchanged. */
bool hfn_span_u8(hfn_span s, uint64_t offset, uint8_t *out);
bool hfn_span_u16(hfn_span s, uint64_t offset, uint16_t *out);
bool hfn_span_u32(hfn_span s, uint64_t offset, uint32_t *out);
bool hfn_span_u64(hfn_span s, uint64_t offset, uint64_t *out);
/* 1, 2, 4 or 8 bytes, widened. */
bool hfn_span_word(hfn_span s, uint64_t offset, uint32_t word_bytes, uint64_t *out);
/* A view of the NUL-terminated string at offset; NULL if it does not end inside the span. */
const char *hfn_span_string(hfn_span s, uint64_t offset);
/* The string table, truncated after its last NUL.  hfn_span_name then needs no search for the NUL,
 * so that reading a million names of a malformed table stays linear. */
hfn_span hfn_span_string_table(hfn_span table);
const char *hfn_span_name(hfn_span string_table, uint64_t offset); /* a view; NULL outside */
/* Read a LEB128 number and advance *offset; false on overrun or more than 64 bits. */
bool hfn_span_uleb(hfn_span s, uint64_t *offset, uint64_t *out);
bool hfn_span_sleb(hfn_span s, uint64_t *offset, int64_t *out);

#endif
