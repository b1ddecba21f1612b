/* SPDX-License-Identifier: MIT */
/*
 * Follows loads and stores for stack_use.c in three steps: decode which bytes the instruction
 * accesses; check these bytes; store or load each register and apply the write-back.  The return
 * address may be saved at two places of the function's frame and loaded from there; any other
 * loaded value is unknown.
 */
#include "arch/arm64/stack_step.h"

/* ---- The bytes that an instruction accesses (Arm ARM, C4.1.94). */

typedef struct memory_access {
    uint32_t base, bytes; /* bytes of one register */
    uint32_t registers[2], count;
    int64_t offset;     /* of the access from the base            */
    int64_t write_back; /* added to the base                      */
    bool loads, stores, vector;
    bool plain;       /* loads or stores one or two registers     */
    bool by_register; /* with an index register                   */
    bool writes_base_by_register;
} memory_access;

static void add_register(memory_access *a, uint32_t reg)
{
    a->registers[a->count++] = reg;
}

static memory_access decode_pair(uint32_t word)
{
    uint32_t opc = word >> 30, mode = hfn_arm64_get_bits(word, 24, 23);
    bool vector = word >> 26 & 1, loads = word >> 22 & 1;
    memory_access a = { .base = hfn_arm64_get_rn(word),
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
    add_register(&a, word & 31);
    add_register(&a, hfn_arm64_get_bits(word, 14, 10));
    return a;
}

/* One register: an unsigned offset, imm9, or a register. */
static memory_access decode_single(uint32_t word)
{
    uint32_t size = word >> 30, opc = hfn_arm64_get_bits(word, 23, 22), mode;
    bool vector = word >> 26 & 1;
    bool prefetches = !vector && size == 3 && opc == 2;
    bool loads = vector ? opc & 1 : opc != 0;
    memory_access a = { .base = hfn_arm64_get_rn(word),
                        .loads = loads,
                        .stores = !loads,
                        .vector = vector,
                        .plain = true };

    a.bytes = vector && (opc & 2) ? 16 : 1u << size;
    if (!prefetches) {
        add_register(&a, word & 31);
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

static bool is_tag_access(uint32_t word)
{
    return (word & 0xFF200000) == 0xD9200000;
}

/* stg and similar access the tags of one or two granules of 16 bytes, and may store zeros to the
 * granules. The register holds the tag only. */
static memory_access decode_tags(uint32_t word)
{
    uint32_t mode = hfn_arm64_get_bits(word, 11, 10), opc = hfn_arm64_get_bits(word, 23, 22);
    int64_t offset = hfn_arm64_get_signed_bits(word, 20, 12) * 16;
    memory_access a = { .base = hfn_arm64_get_rn(word), .loads = mode == 0, .stores = mode != 0 };

    a.bytes = opc < 2 ? 16 : 32;
    a.offset = mode == 1 ? 0 : offset;
    a.write_back = mode & 1 ? offset : 0;
    add_register(&a, a.loads ? word & 31 : 31);
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

/* True if [at, at + bytes) overlaps the saved return address. */
static bool overlaps_saved_return(const hfn_arm64_step *p, uint32_t place, int64_t at,
                                  uint32_t bytes)
{
    int32_t kept = p->s->at[place];

    return hfn_stack_is_exact(kept) && at < kept + 8 && kept < at + bytes;
}

static hfn_stack_outcome store_return(hfn_arm64_step *p, int64_t at)
{
    int32_t *places = p->s->at;

    if (places[HFN_ARM64_RETURN_PLACE] == HFN_STACK_UNRELATED ||
        places[HFN_ARM64_RETURN_PLACE] == at) {
        places[HFN_ARM64_RETURN_PLACE] = (int32_t)at;
    } else if (places[HFN_ARM64_SECOND_PLACE] == HFN_STACK_UNRELATED ||
               places[HFN_ARM64_SECOND_PLACE] == at) {
        places[HFN_ARM64_SECOND_PLACE] = (int32_t)at;
    } else {
        return HFN_STACK_LOST;
    }
    return HFN_STACK_OK;
}

static int32_t get_stored_value(const hfn_arm64_step *p, const memory_access *a, uint32_t reg)
{
    return a->vector ? p->s->at[HFN_ARM64_VECTOR + reg] : hfn_arm64_get_operand(p, reg);
}

/* Any value may be stored to a word of the frame; elsewhere, only values that may be passed to
 * other code. */
static hfn_stack_outcome store_value(hfn_arm64_step *p, const memory_access *a, uint32_t reg,
                                     int32_t place)
{
    int32_t value = get_stored_value(p, a, reg);

    if (value == HFN_STACK_RETURN_ADDRESS) {
        return HFN_STACK_TOUCHES_RETURN;
    }
    if (!hfn_stack_is_related(place) && hfn_stack_is_address(value)) {
        p->s->frame_address |= HFN_FRAME_ADDRESS_STORED;
    }
    hfn_stack_store(p->s, place, a->bytes, value, 8);
    return hfn_stack_is_any(value) && hfn_stack_is_related(place)
               ? HFN_STACK_OK
               : hfn_arm64_check_passed(p->s, value);
}

static void load_value(hfn_arm64_step *p, const memory_access *a, uint32_t reg, int32_t place)
{
    int32_t value = hfn_stack_load(p->s, place, a->bytes, 8);

    if (a->vector) {
        p->s->at[HFN_ARM64_VECTOR + reg] = hfn_stack_weaken(value);
    } else {
        hfn_arm64_set_register(p, reg, value);
    }
}

/* Store a register at a known place. */
static hfn_stack_outcome store_register(hfn_arm64_step *p, const memory_access *a, uint32_t reg,
                                        int64_t at)
{
    for (uint32_t place = HFN_ARM64_RETURN_PLACE; place <= HFN_ARM64_SECOND_PLACE; place++) {
        if (overlaps_saved_return(p, place, at, a->bytes)) {
            p->s->at[place] = HFN_STACK_UNRELATED;
        }
    }
    if (!a->vector && hfn_arm64_get_operand(p, reg) == HFN_STACK_RETURN_ADDRESS) {
        hfn_stack_store(p->s, (int32_t)at, a->bytes, HFN_STACK_UNRELATED, 8);
        return a->bytes == 8 && at < 0 ? store_return(p, at) : HFN_STACK_TOUCHES_RETURN;
    }
    return store_value(p, a, reg, hfn_stack_add(p->s->at[a->base], at - p->s->at[a->base]));
}

static hfn_stack_outcome load_register(hfn_arm64_step *p, const memory_access *a, uint32_t reg,
                                       int64_t at)
{
    bool returns = false;

    for (uint32_t place = HFN_ARM64_RETURN_PLACE; place <= HFN_ARM64_SECOND_PLACE; place++) {
        if (!overlaps_saved_return(p, place, at, a->bytes)) {
            continue;
        }
        if (a->vector || reg != HFN_ARM64_LINK || a->bytes != 8 || p->s->at[place] != at) {
            return HFN_STACK_TOUCHES_RETURN;
        }
        returns = true;
    }
    load_value(p, a, reg, (int32_t)at);
    if (returns) {
        hfn_arm64_set_register(p, reg, HFN_STACK_RETURN_ADDRESS);
    }
    return HFN_STACK_OK;
}

static hfn_stack_outcome transfer_registers(hfn_arm64_step *p, const memory_access *a, int32_t base)
{
    hfn_stack_outcome outcome = HFN_STACK_OK;
    bool is_known = hfn_stack_is_exact(base) && !a->by_register;

    for (uint32_t i = 0; i < a->count && outcome == HFN_STACK_OK; i++) {
        uint32_t reg = a->registers[i];
        int64_t at = is_known ? base + a->offset + (int64_t)i * a->bytes : 0;

        if (is_known && a->stores) {
            outcome = store_register(p, a, reg, at);
        } else if (is_known) {
            outcome = load_register(p, a, reg, at);
        } else if (a->stores) {
            outcome = store_value(p, a, reg, base);
        } else if (a->loads) {
            load_value(p, a, reg, base);
        }
    }
    return outcome;
}

/* ---- An access. */

/* Check an access to bytes [low, end) of the stack.  Arguments at known places can be copied
 * below a timing stub's frame. */
static hfn_stack_outcome check_bytes(const hfn_arm64_step *p, const memory_access *a, int64_t low,
                                     int64_t end)
{
    if (low == end || (end <= 0 && !a->by_register)) {
        return HFN_STACK_OK;
    }
    if (low < 0 || end > HFN_ARGUMENTS_MAX_64 || a->by_register || !a->plain || a->stores) {
        return HFN_STACK_TOUCHES_CALLER; /* the caller may read what the function stores there */
    }
    if (p->s->argument_bytes < end) {
        p->s->argument_bytes = (uint16_t)end;
    }
    return HFN_STACK_OK;
}

/* Check an access relative to an address of the stack. */
static hfn_stack_outcome check_place(const hfn_arm64_step *p, const memory_access *a, int32_t base,
                                     uint32_t bytes)
{
    int64_t bound = (int64_t)hfn_stack_get_bound(base) + a->offset;

    if (hfn_stack_is_any(base)) {
        return HFN_STACK_LOST;
    }
    if (hfn_stack_is_exact(base)) {
        return check_bytes(p, a, bound, bound + bytes);
    }
    if (a->by_register) {
        return hfn_stack_is_any(hfn_stack_index(p->s, base, HFN_STACK_UNRELATED))
                   ? HFN_STACK_TOUCHES_CALLER
                   : HFN_STACK_OK;
    }
    return hfn_stack_get_bound(base) == HFN_STACK_UNBOUNDED || bound + bytes <= 0
               ? HFN_STACK_OK
               : HFN_STACK_TOUCHES_CALLER;
}

static hfn_stack_outcome step_access(hfn_arm64_step *p, const memory_access *a)
{
    int32_t base = p->s->at[a->base];
    uint32_t bytes = a->bytes * (a->count > 0 ? a->count : 1);
    hfn_stack_outcome outcome = hfn_arm64_check_value(base);

    if (outcome == HFN_STACK_OK && hfn_stack_is_related(base)) {
        outcome = check_place(p, a, base, bytes);
    }
    if (outcome != HFN_STACK_OK) {
        return outcome;
    }
    if (a->by_register && hfn_arm64_is_related(p, hfn_arm64_get_rm(p->word))) {
        return HFN_STACK_LOST;
    }
    outcome = transfer_registers(p, a, base);
    if (outcome != HFN_STACK_OK || (a->write_back == 0 && !a->writes_base_by_register)) {
        return outcome;
    }
    if (!hfn_stack_is_related(base)) {
        return outcome;
    }
    return hfn_arm64_set_address(p, a->base,
                                 a->writes_base_by_register ? HFN_STACK_ANY
                                                            : hfn_stack_add(base, a->write_back));
}

/* True if a register of an exclusive, ordered, atomic or structure access holds a related value. */
static bool holds_related(const hfn_arm64_step *p, bool structure)
{
    uint32_t rd = hfn_arm64_get_rd(p->word);

    for (uint32_t i = 0; structure && i < 4; i++) {
        if (hfn_stack_is_related(p->s->at[HFN_ARM64_VECTOR + (rd + i) % 32])) {
            return true;
        }
    }
    return !structure &&
           (hfn_arm64_is_related(p, rd) || hfn_arm64_is_related(p, hfn_arm64_get_rm(p->word)) ||
            hfn_arm64_is_related(p, hfn_arm64_get_bits(p->word, 14, 10)));
}

/* Exclusive, ordered, atomic and structure accesses, of at most 64 bytes at the base.  Every value
 * that they write, to registers or memory, is treated as computed. */
static hfn_stack_outcome step_other_access(hfn_arm64_step *p)
{
    uint32_t word = p->word, written = hfn_arm64_get_written_registers(word);
    bool structure = (word & 0xBE000000) == 0x0C000000;
    memory_access a = { .base = hfn_arm64_get_rn(word),
                        .bytes = structure ? 64 : 16,
                        .vector = structure };
    int32_t base = p->s->at[a.base];
    bool related = holds_related(p, structure);
    hfn_stack_outcome outcome;

    a.writes_base_by_register = structure && (word >> 23 & 1);
    if (!structure &&
        (hfn_arm64_get_operand(p, hfn_arm64_get_rd(word)) == HFN_STACK_RETURN_ADDRESS ||
         hfn_arm64_get_operand(p, hfn_arm64_get_rm(word)) == HFN_STACK_RETURN_ADDRESS ||
         hfn_arm64_get_operand(p, hfn_arm64_get_bits(word, 14, 10)) == HFN_STACK_RETURN_ADDRESS)) {
        return HFN_STACK_TOUCHES_RETURN;
    }
    if (related && !hfn_stack_is_related(base)) {
        p->s->frame_address |= HFN_FRAME_ADDRESS_STORED;
    }
    if (related) {
        hfn_stack_store(p->s, hfn_stack_is_related(base) ? hfn_stack_clear_bits(base) : base,
                        a.bytes, HFN_STACK_COMPUTED, 8);
    }
    related = related || hfn_stack_is_related(hfn_stack_load(p->s, base, a.bytes, 8));
    outcome = step_access(p, &a);
    for (uint32_t reg = 0; reg < 31 && !structure; reg++) {
        if ((written >> reg & 1) && reg != a.base) {
            hfn_arm64_set_register(p, reg, hfn_arm64_compute(related));
        }
    }
    for (uint32_t i = 0; structure && i < 4; i++) {
        int32_t *vector = &p->s->at[HFN_ARM64_VECTOR + (hfn_arm64_get_rd(word) + i) % 32];
        *vector = related ? HFN_STACK_COMPUTED : *vector;
    }
    return outcome;
}

hfn_stack_outcome hfn_arm64_step_memory(hfn_arm64_step *p)
{
    uint32_t word = p->word;
    memory_access a;

    if (is_literal(word)) {
        if (!(word >> 26 & 1) && word >> 30 != 3) {
            hfn_arm64_set_register(p, word & 31, HFN_STACK_UNRELATED);
        }
        return HFN_STACK_OK;
    }
    if (is_pair(word)) {
        a = decode_pair(word);
    } else if (is_tag_access(word)) {
        a = decode_tags(word);
    } else if (is_single(word)) {
        a = decode_single(word);
    } else {
        return step_other_access(p);
    }
    return step_access(p, &a);
}
