/* SPDX-License-Identifier: MIT */
/*
 * Loads and stores, for stack_use.c: which bytes of the stack one touches is read from the instruction (an access),
 * judged, and then each of its registers is stored or loaded: the return address may be kept at two places of the own
 * frame and loaded back from there; of anything else that is loaded nothing is known.  Last, the base may move.
 */
#include "arch/arm64/stack_step.h"

/* ---- What an instruction accesses (Arm ARM, C4.1.94). */

typedef struct access {
    uint32_t base, bytes; /* of one register */
    uint32_t registers[2], count;
    int64_t offset;     /* of the access from the base            */
    int64_t write_back; /* what the base grows by                 */
    bool loads, stores, vector;
    bool plain;       /* of one or two registers                */
    bool by_register; /* an index that nobody knows is added    */
    bool writes_base_by_register;
} access;

static void add_target(access *a, uint32_t reg)
{
    a->registers[a->count++] = reg;
}

static access pair_of(uint32_t word)
{
    uint32_t opc = word >> 30, mode = hfn_arm64_get_bits(word, 24, 23);
    bool vector = word >> 26 & 1, loads = word >> 22 & 1;
    access a = { .base = hfn_arm64_get_rn(word),
                 .loads = loads,
                 .stores = !loads,
                 .vector = vector,
                 .plain = true };
    int64_t offset;

    a.bytes = vector ? 4u << opc : opc == 2 ? 8 : 4;
    offset = hfn_arm64_get_signed_bits(word, 21, 15) * (int64_t)a.bytes;
    if (!vector && opc == 1 && !loads) { /* stgp */
        a.bytes = 8;
        offset = hfn_arm64_get_signed_bits(word, 21, 15) * 16;
    }
    a.offset = mode == 1 ? 0 : offset;
    a.write_back = mode & 1 ? offset : 0;
    add_target(&a, word & 31);
    add_target(&a, hfn_arm64_get_bits(word, 14, 10));
    return a;
}

/* One register: an unsigned offset, imm9, or a register. */
static access single_of(uint32_t word)
{
    uint32_t size = word >> 30, opc = hfn_arm64_get_bits(word, 23, 22), mode;
    bool vector = word >> 26 & 1;
    bool prefetches = !vector && size == 3 && opc == 2;
    bool loads = vector ? opc & 1 : opc != 0;
    access a = { .base = hfn_arm64_get_rn(word),
                 .loads = loads,
                 .stores = !loads,
                 .vector = vector,
                 .plain = true };

    a.bytes = vector && (opc & 2) ? 16 : 1u << size;
    if (!prefetches) {
        add_target(&a, word & 31);
    } else {
        a.bytes = 0;
    }
    if (word >> 24 & 1) {
        a.offset = (int64_t)hfn_arm64_get_bits(word, 21, 10) * (prefetches ? 8 : a.bytes);
        return a;
    }
    mode = hfn_arm64_get_bits(word, 11, 10);
    if (word >> 21 & 1) {
        a.by_register = true;
        return a;
    }
    a.offset = mode == 1 ? 0 : hfn_arm64_get_signed_bits(word, 20, 12);
    a.write_back = mode & 1 ? hfn_arm64_get_signed_bits(word, 20, 12) : 0;
    return a;
}

static bool is_tags(uint32_t word)
{
    return (word & 0xFF200000) == 0xD9200000;
}

/* stg and its like: one granule of 16 bytes or two, whose tags are loaded (ldg), or stored and maybe zeros with
 * them.  The register has the tag only. */
static access tags_of(uint32_t word)
{
    uint32_t mode = hfn_arm64_get_bits(word, 11, 10), opc = hfn_arm64_get_bits(word, 23, 22);
    int64_t offset = hfn_arm64_get_signed_bits(word, 20, 12) * 16;
    access a = { .base = hfn_arm64_get_rn(word), .loads = mode == 0, .stores = mode != 0 };

    a.bytes = opc < 2 ? 16 : 32;
    a.offset = mode == 1 ? 0 : offset;
    a.write_back = mode & 1 ? offset : 0;
    add_target(&a, a.loads ? word & 31 : 31);
    return a;
}

static bool is_literal(uint32_t word)
{
    return (word & 0x3B000000) == 0x18000000;
}

static bool is_pair(uint32_t word)
{
    return (word & 0x3A000000) == 0x28000000;
}

static bool is_single(uint32_t word)
{
    bool reads_register = (word & 0x3B200C00) == 0x38200800;

    return (word & 0x3B000000) == 0x39000000 || (word & 0x3B200000) == 0x38000000 || reads_register;
}

/* ---- The return address. */

/* Does [at, at + bytes) touch what holds the return address? */
static bool touches(const hfn_arm64_step *p, uint32_t place, int64_t at, uint32_t bytes)
{
    int32_t kept = p->s->at[place];

    return hfn_arm64_is_number(kept) && at < kept + 8 && kept < at + bytes;
}

static hfn_stack_outcome store_return(hfn_arm64_step *p, int64_t at)
{
    int32_t *places = p->s->at;

    if (places[HFN_ARM64_RETURN_PLACE] == HFN_STACK_UNKNOWN ||
        places[HFN_ARM64_RETURN_PLACE] == at) {
        places[HFN_ARM64_RETURN_PLACE] = (int32_t)at;
    } else if (places[HFN_ARM64_SECOND_PLACE] == HFN_STACK_UNKNOWN ||
               places[HFN_ARM64_SECOND_PLACE] == at) {
        places[HFN_ARM64_SECOND_PLACE] = (int32_t)at;
    } else {
        return HFN_STACK_LOST;
    }
    return HFN_STACK_OK;
}

/* One register and its place, from a base whose place is a number. */
static hfn_stack_outcome store_one(hfn_arm64_step *p, const access *a, uint32_t reg, int64_t at)
{
    for (uint32_t place = HFN_ARM64_RETURN_PLACE; place <= HFN_ARM64_SECOND_PLACE; place++) {
        if (touches(p, place, at, a->bytes)) {
            p->s->at[place] = HFN_STACK_UNKNOWN;
        }
    }
    if (!a->vector && hfn_arm64_get_operand(p, reg) == HFN_ARM64_RETURN_ADDRESS) {
        return a->bytes == 8 && at < 0 ? store_return(p, at) : HFN_STACK_TOUCHES_RETURN;
    }
    return HFN_STACK_OK;
}

static hfn_stack_outcome load_one(hfn_arm64_step *p, const access *a, uint32_t reg, int64_t at)
{
    bool returns = false;

    for (uint32_t place = HFN_ARM64_RETURN_PLACE; place <= HFN_ARM64_SECOND_PLACE; place++) {
        if (!touches(p, place, at, a->bytes)) {
            continue;
        }
        if (a->vector || reg != HFN_ARM64_LINK || a->bytes != 8 || p->s->at[place] != at) {
            return HFN_STACK_TOUCHES_RETURN;
        }
        returns = true;
    }
    if (!a->vector) {
        hfn_arm64_set_register(p, reg, returns ? HFN_ARM64_RETURN_ADDRESS : HFN_STACK_UNKNOWN);
    }
    return HFN_STACK_OK;
}

static hfn_stack_outcome transfer(hfn_arm64_step *p, const access *a, int32_t base)
{
    hfn_stack_outcome answer = HFN_STACK_OK;
    bool knows = hfn_arm64_is_number(base) && !a->by_register;

    for (uint32_t i = 0; i < a->count && answer == HFN_STACK_OK; i++) {
        uint32_t reg = a->registers[i];
        int64_t at = knows ? base + a->offset + (int64_t)i * a->bytes : 0;

        if (knows && a->stores) {
            answer = store_one(p, a, reg, at);
        } else if (knows) {
            answer = load_one(p, a, reg, at);
        } else if (a->stores && !a->vector &&
                   hfn_arm64_get_operand(p, reg) == HFN_ARM64_RETURN_ADDRESS) {
            answer = HFN_STACK_TOUCHES_RETURN;
        } else if (a->stores && !a->vector && base == HFN_STACK_UNKNOWN &&
                   hfn_arm64_is_in_frame(hfn_arm64_get_operand(p, reg))) {
            p->s->frame_address |= HFN_FRAME_ADDRESS_STORED;
        } else if (a->loads && !a->vector) {
            hfn_arm64_set_register(p, reg, HFN_STACK_UNKNOWN);
        }
    }
    return answer;
}

/* ---- An access. */

/* Bytes [low, end) of the stack.  Arguments whose place is known can be copied below a frame of ours. */
static hfn_stack_outcome judge_object(const hfn_arm64_step *p, const access *a, int64_t low,
                                      int64_t end)
{
    if (low == end || (end <= 0 && !a->by_register)) {
        return HFN_STACK_OK;
    }
    if (low < 0 || end > HFN_ARGUMENTS_MAX_64 || a->by_register || !a->plain) {
        return HFN_STACK_TOUCHES_CALLER;
    }
    if (p->s->argument_bytes < end) {
        p->s->argument_bytes = (uint16_t)end;
    }
    return HFN_STACK_OK;
}

static hfn_stack_outcome step_access(hfn_arm64_step *p, const access *a)
{
    int32_t base = p->s->at[a->base];
    uint32_t bytes = a->bytes * (a->count > 0 ? a->count : 1);
    hfn_stack_outcome answer = hfn_arm64_judge_value(base);

    if (answer == HFN_STACK_OK && hfn_arm64_is_number(base)) {
        answer = judge_object(p, a, base + a->offset, base + a->offset + bytes);
    }
    if (answer != HFN_STACK_OK) {
        return answer;
    }
    if (a->by_register &&
        hfn_arm64_is_in_frame(hfn_arm64_get_operand(p, hfn_arm64_get_rm(p->word)))) {
        return HFN_STACK_LOST;
    }
    answer = transfer(p, a, base);
    if (answer != HFN_STACK_OK || (a->write_back == 0 && !a->writes_base_by_register)) {
        return answer;
    }
    if (!hfn_arm64_is_number(base) || a->writes_base_by_register) {
        return hfn_arm64_is_in_frame(base) ? hfn_arm64_set_address(p, a->base, HFN_STACK_IN_FRAME)
                                           : answer;
    }
    if (base + a->write_back >= 0 && a->base != HFN_ARM64_SP) {
        return HFN_STACK_TOUCHES_CALLER;
    }
    return hfn_arm64_set_address(p, a->base, (int32_t)(base + a->write_back));
}

/* Exclusive, ordered, atomic, structures: at the base, by at most 64 bytes. */
static hfn_stack_outcome step_other_access(hfn_arm64_step *p)
{
    uint32_t word = p->word, written = hfn_arm64_get_written_registers(word);
    bool structure = (word & 0xBE000000) == 0x0C000000;
    access a = { .base = hfn_arm64_get_rn(word), .bytes = structure ? 1 : 8, .vector = structure };
    hfn_stack_outcome answer;

    a.writes_base_by_register = structure && (word >> 23 & 1);
    if (!structure &&
        (hfn_arm64_get_operand(p, hfn_arm64_get_rd(word)) == HFN_ARM64_RETURN_ADDRESS ||
         hfn_arm64_get_operand(p, hfn_arm64_get_rm(word)) == HFN_ARM64_RETURN_ADDRESS ||
         hfn_arm64_get_operand(p, hfn_arm64_get_bits(word, 14, 10)) == HFN_ARM64_RETURN_ADDRESS)) {
        return HFN_STACK_TOUCHES_RETURN;
    }
    answer = step_access(p, &a);
    for (uint32_t reg = 0; reg < 31 && !structure; reg++) {
        if ((written >> reg & 1) && reg != a.base) {
            hfn_arm64_set_register(p, reg, HFN_STACK_UNKNOWN);
        }
    }
    return answer;
}

hfn_stack_outcome hfn_arm64_step_memory(hfn_arm64_step *p)
{
    uint32_t word = p->word;
    access a;

    if (is_literal(word)) {
        if (!(word >> 26 & 1) && word >> 30 != 3) {
            hfn_arm64_set_register(p, word & 31, HFN_STACK_UNKNOWN);
        }
        return HFN_STACK_OK;
    }
    if (is_pair(word)) {
        a = pair_of(word);
    } else if (is_tags(word)) {
        a = tags_of(word);
    } else if (is_single(word)) {
        a = single_of(word);
    } else {
        return step_other_access(p);
    }
    return step_access(p, &a);
}
