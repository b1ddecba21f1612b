/* SPDX-License-Identifier: MIT */
/*
 * Finds the targets of an indirect jump by reading the straight-line code before it backwards.
 * These forms of gcc and clang are recognised:
 *     adrp t; add t, t, #; ldrb|ldrh|ldr w, [t, i, ...];
 *                          adr b; add b, b, w, sxtb|sxth|sxtw #2; br b
 *     adrp t; add t, t, #; ldrb|ldrh w, [t, i, ...]; adr b; add b, b, x, lsl #2; br b
 *     adrp t; add t, t, #; ldrsw x, [t, i, lsl #2]; add t, t, x; br t
 * The number of entries comes from an earlier `cmp i, #n` with b.hi or b.hs, or from an `and` that
 * masks the index; it is 0 if there is neither.
 */
#include "arch/arm64/dispatch.h"

#include "arch/arm64/decode.h"

#include <string.h>

#define COND_HS 2u
#define COND_HI 8u
#define CALL_CLOBBERED 0x4007FFFFu /* AAPCS64, 6.1.1: all but x19 to x29 */

static uint32_t get_word(const hfn_straight_line *line, uint32_t index)
{
    return hfn_read_le32(line->bytes + line->starts[index]);
}

static uint64_t get_rva(const hfn_straight_line *line, uint32_t index)
{
    return line->rva + line->starts[index];
}

static uint32_t get_rn(uint32_t word)
{
    return hfn_arm64_get_bits(word, 9, 5);
}

static uint32_t get_rm(uint32_t word)
{
    return hfn_arm64_get_bits(word, 20, 16);
}

static bool is_call(uint32_t word)
{
    return (word & 0xFC000000) == 0x94000000 || (word & 0xFE200000) == 0xD6200000;
}

/* mov xd, xm; mov wd, wm */
static bool is_move(uint32_t word)
{
    return (word & 0x7FE0FFE0) == 0x2A0003E0;
}

static void extend_proof(const hfn_straight_line *line, uint32_t index, hfn_dispatch *out)
{
    if (line->starts[index] < out->proof_from) {
        out->proof_from = line->starts[index];
    }
}

typedef enum find_result { FOUND, FOUND_CALL, NOT_IN_LINE } find_result;

/* Find the last instruction before *at that may write reg, through moves, and set *at to its
 * index. */
static find_result find_write(const hfn_straight_line *line, uint32_t *at, uint32_t reg)
{
    while (*at > 0) {
        uint32_t word = get_word(line, --*at);
        if (is_call(word) && (CALL_CLOBBERED >> reg & 1)) {
            return FOUND_CALL;
        }
        if (!(hfn_arm64_get_written_registers(word) >> reg & 1)) {
            continue;
        }
        if (!is_move(word) || get_rm(word) == 31) {
            return FOUND;
        }
        reg = get_rm(word);
    }
    return NOT_IN_LINE;
}

/* Find the constant in reg before index `at`: from adr, or adrp and add. */
static bool find_address(const hfn_straight_line *line, uint32_t at, uint32_t reg,
                         uint64_t *address, hfn_dispatch *out)
{
    uint64_t added = 0;

    while (find_write(line, &at, reg) == FOUND) {
        uint32_t word = get_word(line, at);
        hfn_arm64_form form = hfn_arm64_get_form(word);
        extend_proof(line, at, out);
        if (form == HFN_ARM64_ADR || form == HFN_ARM64_ADRP) {
            uint64_t pc =
                form == HFN_ARM64_ADR ? get_rva(line, at) : get_rva(line, at) & ~UINT64_C(4095);
            *address = pc + (uint64_t)hfn_arm64_get_distance(word, form) + added;
            return true;
        }
        if ((word & 0xFF800000) != 0x91000000) { /* add xd, xn, #imm */
            return false;
        }
        added += (uint64_t)hfn_arm64_get_bits(word, 21, 10) << (word >> 22 & 1 ? 12 : 0);
        reg = get_rn(word);
    }
    return false;
}

/* The backward search for the bound of an index register. */
typedef struct bound_search {
    uint32_t reg;
    uint32_t condition; /* of a b.cond whose cmp was not found yet; 16: none */
    uint64_t count;     /* the result                                        */
} bound_search;

/* Go back over one instruction; true when the search is finished. */
static bool step_bound_search(uint32_t word, bound_search *b)
{
    if (hfn_arm64_get_form(word) == HFN_ARM64_B_COND) {
        b->condition = word & 15;
        return false;
    }
    if ((word & 0x7F80001F) == 0x7100001F && get_rn(word) == b->reg) { /* cmp rn, #imm */
        uint64_t limit = (uint64_t)hfn_arm64_get_bits(word, 21, 10) << (word >> 22 & 1 ? 12 : 0);
        b->count = b->condition == COND_HI ? limit + 1 : b->condition == COND_HS ? limit : 0;
        return true;
    }
    if ((word & 0x1F000000) == 0x11000000 || is_call(word)) { /* may set the flags */
        b->condition = 16;
    }
    if (is_call(word) && (CALL_CLOBBERED >> b->reg & 1)) {
        return true;
    }
    if (!(hfn_arm64_get_written_registers(word) >> b->reg & 1)) {
        return false;
    }
    /* and wd, wn, #(2^k - 1): one run of k ones from bit 0 */
    if ((word & 0x7FFF0000) == 0x12000000 && hfn_arm64_get_bits(word, 15, 10) < 31) {
        b->count = UINT64_C(2) << hfn_arm64_get_bits(word, 15, 10);
    }
    if (!is_move(word) || get_rm(word) == 31) {
        return true;
    }
    b->reg = get_rm(word);
    return false;
}

/* The number of entries of the table indexed by reg, 0 if unknown. */
static uint32_t count_entries(const hfn_straight_line *line, uint32_t at, uint32_t reg,
                              hfn_dispatch *out)
{
    bound_search b = { .reg = reg, .condition = 16 };

    while (at > 0 && !step_bound_search(get_word(line, --at), &b)) {
        ;
    }
    if (b.count == 0 || b.count > UINT32_MAX) {
        return 0;
    }
    extend_proof(line, at, out);
    return (uint32_t)b.count;
}

/* ldrb, ldrh, ldr w, ldrsb ... ldrsw with a register offset. */
static bool is_table_load(uint32_t word)
{
    return (word & 0x3F200C00) == 0x38200800 && hfn_arm64_get_bits(word, 23, 22) != 0 &&
           word >> 30 < 3;
}

/* Describe a table whose entry is the extended or shifted summand of `add`; base_reg is the
 * base. */
static bool describe_table(const hfn_straight_line *line, uint32_t at, uint32_t add,
                           uint32_t base_reg, hfn_dispatch *out)
{
    bool extends = (add & 0x00200000) != 0;
    uint32_t option = hfn_arm64_get_bits(add, 15, 13), load_at = at;

    if (find_write(line, &load_at, get_rm(add)) != FOUND ||
        !is_table_load(get_word(line, load_at))) {
        return false;
    }
    uint32_t load = get_word(line, load_at);
    out->entry_bytes = (uint8_t)(1u << (load >> 30));
    out->entry_shift =
        (uint8_t)(extends ? hfn_arm64_get_bits(add, 12, 10) : hfn_arm64_get_bits(add, 15, 10));
    out->entry_is_signed = hfn_arm64_get_bits(load, 23, 22) >= 2 ||
                           (extends && option >= 4 && 1u << (option & 3) == out->entry_bytes);
    if (!find_address(line, at, base_reg, &out->base_rva, out) ||
        !find_address(line, load_at, get_rn(load), &out->table_rva, out)) {
        return false;
    }
    extend_proof(line, load_at, out);
    out->entry_count = count_entries(line, load_at, get_rm(load), out);
    return true;
}

/* add xd, xn, xm: extended, or shifted left */
static bool is_sum(uint32_t word)
{
    return (word & 0xFFE00000) == 0x8B200000 || (word & 0xFFE00000) == 0x8B000000;
}

/* ldr xt, [xn, #imm] loads a word of the GOT. */
static void describe_pointer(const hfn_straight_line *line, uint32_t at, hfn_dispatch *out)
{
    uint32_t word = get_word(line, at), proof_from = out->proof_from;
    uint64_t base;

    out->kind = HFN_DISPATCH_POINTER;
    if ((word & 0xFFC00000) == 0xF9400000 && find_address(line, at, get_rn(word), &base, out)) {
        out->table_rva = base + 8 * (uint64_t)hfn_arm64_get_bits(word, 21, 10);
    }
    out->proof_from = proof_from; /* the result does not depend on these instructions */
}

static void describe_write(const hfn_straight_line *line, uint32_t at, hfn_dispatch *out)
{
    uint32_t word = get_word(line, at);
    hfn_arm64_form form = hfn_arm64_get_form(word);

    out->kind = HFN_DISPATCH_COMPUTED;
    if (is_sum(word)) {
        out->kind = describe_table(line, at, word, get_rn(word), out) ? HFN_DISPATCH_TABLE
                                                                      : HFN_DISPATCH_OFFSET;
        return;
    }
    if (form == HFN_ARM64_ADR || form == HFN_ARM64_ADRP || form == HFN_ARM64_LOAD_LITERAL ||
        (word & 0xFF800000) == 0x91000000 ||           /* add xd, xn, #imm */
        (hfn_arm64_get_bits(word, 28, 25) & 5) == 4) { /* a load */
        describe_pointer(line, at, out);
    } else if ((word & 0xFFE00C00) == 0x9A800000 || /* csel */
               (word & 0xFFFF0000) == 0xDAC10000) { /* authentication of a pointer */
        out->kind = HFN_DISPATCH_VALUE;
    }
}

void hfn_arm64_describe_dispatch(const hfn_straight_line *line, hfn_dispatch *out)
{
    uint32_t at = line->count - 1;

    memset(out, 0, sizeof *out);
    out->proof_from = line->starts[at];
    switch (find_write(line, &at, get_rn(get_word(line, at)))) {
    case FOUND:
        extend_proof(line, at, out);
        describe_write(line, at, out);
        break;
    case FOUND_CALL: out->kind = HFN_DISPATCH_POINTER; break;
    default: out->kind = HFN_DISPATCH_VALUE; break;
    }
}
