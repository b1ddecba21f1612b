/* SPDX-License-Identifier: MIT */
/* A bounded writer of A64 code (encodings: Arm ARM, C6.2). */
#include "arch/arm64/emit.h"

#include "arch/arm64/decode.h"
#include "base/byte_order.h"

hfn_arm64_writer hfn_arm64_begin_writer(uint8_t *bytes, uint32_t capacity)
{
    return (hfn_arm64_writer){ .bytes = bytes, .capacity = capacity };
}

uint32_t hfn_arm64_put_word(hfn_arm64_writer *w, uint32_t word)
{
    uint32_t at = w->length;

    if (w->full || w->capacity - w->length < HFN_ARM64_BYTES) {
        w->full = true;
        return at;
    }
    hfn_write_le32(w->bytes + at, word);
    w->length += HFN_ARM64_BYTES;
    return at;
}

void hfn_arm64_replace_word(hfn_arm64_writer *w, uint32_t at, uint32_t word)
{
    if (!w->full) {
        hfn_write_le32(w->bytes + at, word);
    }
}

/* Store distance, in words, as a field of `bits` bits at bit `at`. */
static bool set_field(uint32_t *word, int64_t distance, uint32_t bits, uint32_t at)
{
    int64_t limit = INT64_C(1) << (bits + 1);
    uint32_t mask = ((1u << bits) - 1) << at;

    if ((distance & 3) != 0 || distance < -limit || distance >= limit) {
        return false;
    }
    *word = (*word & ~mask) | ((uint32_t)(distance / 4) << at & mask);
    return true;
}

bool hfn_arm64_set_branch_distance(uint32_t *word, int64_t distance)
{
    switch (hfn_arm64_get_form(*word)) {
    case HFN_ARM64_B:
    case HFN_ARM64_BL: return set_field(word, distance, 26, 0);
    case HFN_ARM64_B_COND:
    case HFN_ARM64_CBZ: return set_field(word, distance, 19, 5);
    case HFN_ARM64_TBZ: return set_field(word, distance, 14, 5);
    default: return false;
    }
}

bool hfn_arm64_make_branch(uint32_t *word, int64_t distance)
{
    *word = 0x14000000;
    return hfn_arm64_set_branch_distance(word, distance);
}

uint32_t hfn_arm64_make_load_literal(uint32_t reg, uint32_t distance)
{
    return 0x58000000 | distance / 4 << 5 | reg;
}

uint32_t hfn_arm64_make_load(uint32_t reg, uint32_t base, uint32_t offset)
{
    return 0xF9400000 | offset / 8 << 10 | base << 5 | reg;
}

uint32_t hfn_arm64_make_store(uint32_t reg, uint32_t base, uint32_t offset)
{
    return 0xF9000000 | offset / 8 << 10 | base << 5 | reg;
}
