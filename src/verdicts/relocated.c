/* SPDX-License-Identifier: MIT */
/*
 * Addresses in instructions that the loader relocates (PE Format, 'The .reloc Section').  A moved
 * copy of such an instruction gets a fixup, because no loader relocates the copy.  Only fields of
 * four bytes of x86 images are rewritten; others are fixed bytes (fixed_bytes.c).
 */
#include "verdicts/relocated.h"

#include "base/byte_order.h"
#include "base/search.h"

#include <stdlib.h>
#include <string.h>

enum { FIELD_BYTES = 4 };

/* The first field that begins at or after from. */
static size_t find_first(const hfn_relocated *r, uint64_t from)
{
    return r->count > 0 ? hfn_count_below(r->fields, r->count, sizeof *r->fields, 0, from) : 0;
}

/* The first field that ends behind from. */
static size_t find_ending(const hfn_relocated *r, uint64_t from)
{
    return find_first(r, from >= FIELD_BYTES ? from - FIELD_BYTES + 1 : 0);
}

bool hfn_relocated_begins(const hfn_relocated *r, uint64_t from, uint64_t to)
{
    size_t i = find_first(r, from);

    return i < r->count && r->fields[i] < to;
}

bool hfn_relocated_overlaps(const hfn_relocated *r, uint64_t from, uint64_t to)
{
    size_t i = find_ending(r, from);

    return i < r->count && r->fields[i] < to;
}

static int compare_fields(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

void hfn_relocated_sort(hfn_relocated *r)
{
    if (r->count > 0) {
        qsort(r->fields, r->count, sizeof *r->fields, compare_fields);
    }
}

/* The moved instruction that contains all bytes of the field at this offset of the original;
 * instruction_count: none does. */
static uint32_t find_instruction(const hfn_moved *moved, uint64_t offset)
{
    for (uint32_t i = 0; i < moved->instruction_count; i++) {
        uint32_t end =
            i + 1 < moved->instruction_count ? moved->original_at[i + 1] : moved->original_bytes;
        if (moved->original_at[i] <= offset && offset + FIELD_BYTES <= end) {
            return i;
        }
    }
    return moved->instruction_count;
}

static bool add_fixup(const hfn_relocated *r, hfn_moved *moved, const uint8_t *bytes,
                      uint64_t offset)
{
    uint32_t i = find_instruction(moved, offset), at;

    if (i == moved->instruction_count || moved->fixup_count == HFN_FIXUP_MAX) {
        return false;
    }
    at = moved->moved_at[i] + (uint32_t)(offset - moved->original_at[i]);
    if (at + FIELD_BYTES > moved->length ||
        memcmp(moved->bytes + at, bytes + offset, FIELD_BYTES) != 0) {
        return false; /* the copy has another form */
    }
    moved->fixups[moved->fixup_count++] =
        (hfn_fixup){ .at = (uint8_t)at,
                     .end = HFN_FIXUP_NO_END,
                     .target_rva = hfn_read_le32(bytes + offset) - r->link_base };
    return true;
}

bool hfn_relocated_add_fixups(const hfn_relocated *r, const uint8_t *bytes, uint64_t rva,
                              hfn_moved *moved)
{
    for (size_t i = find_ending(r, rva); i < r->count && r->fields[i] < rva + moved->original_bytes;
         i++) {
        if (r->fields[i] < rva || !add_fixup(r, moved, bytes, r->fields[i] - rva)) {
            return false;
        }
    }
    return true;
}
