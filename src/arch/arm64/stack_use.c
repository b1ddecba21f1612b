/* SPDX-License-Identifier: MIT */
/*
 * Following the stack through an instruction: how far below the CFA (which is sp at the entry) each
 * register points, as far as known; where the return address is, which comes in x30; and whether the
 * instruction touches what lies at or above the CFA, which only loads and stores at known places may (they are
 * of arguments, and noted), or looks at the return address.  That may be kept in the own frame, signed,
 * checked, loaded back and returned to, nothing else.
 */
#include "arch/arm64/stack_use.h"

#include "arch/arm64/decode.h"
#include "arch/arm64/relocate.h"

enum { SP = 31, FRAME = 29, LINK = 30, PLACE = HFN_ARM64_RETURN_PLACE, SECOND_PLACE };
/* Values beside numbers and HFN_STACK_*. */
#define RETURN_ADDRESS (INT32_MIN + 2)
#define OF_CALLER (INT32_MIN + 3) /* x29 as it came: into the caller's frame */

#define CALL_CHANGES 0x4007FFFFu /* x0 to x18 and x30: AAPCS64, 6.1.1 */

typedef struct step {
    uint32_t word;
    hfn_stack_state *s;
} step;

static bool is_number(int32_t at)
{
    return at > INT32_MIN / 2;
}

static bool is_ours(int32_t at)
{
    return is_number(at) || at == HFN_STACK_BELOW;
}

void hfn_arm64_stack_begin(hfn_stack_state *state)
{
    *state = (hfn_stack_state){ .called = 0 };
    for (int i = 0; i < HFN_STACK_REGISTERS; i++)
        state->at[i] = HFN_STACK_NOWHERE;
    state->at[SP] = 0;
    state->at[LINK] = RETURN_ADDRESS;
    state->at[FRAME] = OF_CALLER;
}

static uint32_t rd_of(uint32_t word)
{
    return word & 31;
}

static uint32_t rn_of(uint32_t word)
{
    return hfn_arm64_bits(word, 9, 5);
}

static uint32_t rm_of(uint32_t word)
{
    return hfn_arm64_bits(word, 20, 16);
}

/* What a source register holds where 31 is zero. */
static int32_t operand(const step *p, uint32_t reg)
{
    return reg == 31 ? HFN_STACK_NOWHERE : p->s->at[reg];
}

static void set(step *p, uint32_t reg, int32_t value)
{
    if (reg != 31)
        p->s->at[reg] = value;
}

static hfn_stack_answer move_stack(step *p, int64_t to)
{
    if (to > 0 || to < INT32_MIN / 4)
        return HFN_STACK_LOST;
    p->s->at[SP] = (int32_t)to;
    return HFN_STACK_FINE;
}

/* ---- Arithmetic. */

/* The value of a register that is taken for what it is. */
static hfn_stack_answer judge_value(int32_t value)
{
    if (value == RETURN_ADDRESS)
        return HFN_STACK_RETURN;
    return value == OF_CALLER ? HFN_STACK_CALLER : HFN_STACK_FINE;
}

/* An address is made: rd (31 is sp) = value, which is a number, BELOW or NOWHERE. */
static hfn_stack_answer set_address(step *p, uint32_t rd, int32_t value)
{
    if (rd == SP) {
        if (value == HFN_STACK_NOWHERE)
            return HFN_STACK_LOST;
        if (is_number(value))
            return move_stack(p, value);
    } else if (is_number(value) && value >= 0) {
        return HFN_STACK_CALLER;
    }
    p->s->at[rd] = value;
    return HFN_STACK_FINE;
}

static hfn_stack_answer add_immediate(step *p)
{
    uint32_t word = p->word, rn = rn_of(word), rd = rd_of(word);
    int64_t constant = (int64_t)hfn_arm64_bits(word, 21, 10) << (word >> 22 & 1 ? 12 : 0);
    bool sets_flags = word >> 29 & 1, is_64 = word >> 31, subtracts = word >> 30 & 1;
    int32_t value = p->s->at[rn];
    hfn_stack_answer answer = judge_value(value);

    if (answer != HFN_STACK_FINE)
        return answer;
    if (sets_flags || !is_64) {
        if (rd == SP)
            return sets_flags ? HFN_STACK_FINE : HFN_STACK_LOST;
        set(p, rd, HFN_STACK_NOWHERE);
        return HFN_STACK_FINE;
    }
    if (is_number(value)) {
        int64_t sum = subtracts ? value - constant : value + constant;
        if (sum > INT32_MAX || sum < INT32_MIN / 4)
            return HFN_STACK_LOST;
        value = (int32_t)sum;
    }
    return set_address(p, rd, value);
}

static hfn_stack_answer logical_immediate(step *p)
{
    uint32_t rd = rd_of(p->word);
    int32_t value = operand(p, rn_of(p->word));
    bool sets_flags = (p->word >> 29 & 3) == 3, is_64 = p->word >> 31;
    hfn_stack_answer answer = judge_value(value);

    if (answer != HFN_STACK_FINE || (sets_flags && rd == 31))
        return answer;
    return set_address(p, rd, is_64 && is_ours(value) ? HFN_STACK_BELOW : HFN_STACK_NOWHERE);
}

/* mov x8, #220 and #435: clone and clone3 (Linux, asm-generic/unistd.h).  What vfork's child does to the
 * stack, its parent finds. */
static bool begins_task(uint32_t word)
{
    uint32_t number = hfn_arm64_bits(word, 20, 5);

    return (word & 0x7FE0001F) == 0x52800008 && (number == 220 || number == 435);
}

static hfn_stack_answer step_immediate(step *p)
{
    uint32_t kind = hfn_arm64_bits(p->word, 28, 23);
    hfn_stack_answer answer = HFN_STACK_FINE;

    if ((p->word & 0x1F000000) == 0x10000000) { /* adr, adrp */
        set(p, rd_of(p->word), HFN_STACK_NOWHERE);
        return HFN_STACK_FINE;
    }
    if (kind == 0x22) /* add, sub */
        return add_immediate(p);
    if (kind == 0x24)
        return logical_immediate(p);
    if (kind == 0x23) { /* with tags */
        if (rd_of(p->word) == SP)
            return HFN_STACK_LOST;
        answer = judge_value(p->s->at[rn_of(p->word)]);
    } else if (kind == 0x25) { /* movn, movz, movk */
        if (begins_task(p->word))
            return HFN_STACK_LOST;
    } else { /* bit fields, extract */
        answer = judge_value(operand(p, rn_of(p->word)));
        if (answer == HFN_STACK_FINE && kind == 0x27)
            answer = judge_value(operand(p, rm_of(p->word)));
    }
    set(p, rd_of(p->word), HFN_STACK_NOWHERE);
    return answer;
}

/* add, sub of registers: extended ones know sp, shifted ones zero.  What is added to a place in the frame
 * may lead anywhere: compilers fold constants, so that an array of the caller's can begin below it. */
static hfn_stack_answer add_register(step *p)
{
    uint32_t word = p->word, rd = rd_of(word);
    bool is_extended = word >> 21 & 1, sets_flags = word >> 29 & 1, subtracts = word >> 30 & 1;
    int32_t n = is_extended ? p->s->at[rn_of(word)] : operand(p, rn_of(word));
    int32_t m = operand(p, rm_of(word));
    bool points = word >> 31 && (is_ours(n) || (is_ours(m) && !subtracts));
    hfn_stack_answer answer = judge_value(n);

    if (answer == HFN_STACK_FINE)
        answer = judge_value(m);
    if (answer != HFN_STACK_FINE)
        return answer;
    if (rd == 31 && (sets_flags || !is_extended))
        return HFN_STACK_FINE;
    if (points && rd != SP)
        return HFN_STACK_CALLER;
    return set_address(p, rd, points ? HFN_STACK_BELOW : HFN_STACK_NOWHERE);
}

static hfn_stack_answer move_register(step *p)
{
    int32_t value = operand(p, rm_of(p->word));
    hfn_stack_answer answer = judge_value(value);

    if (answer == HFN_STACK_FINE)
        set(p, rd_of(p->word), value);
    return answer;
}

static hfn_stack_answer step_register(step *p)
{
    uint32_t word = p->word;
    int32_t n = operand(p, rn_of(word)), m = operand(p, rm_of(word)), result = HFN_STACK_NOWHERE;
    hfn_stack_answer answer;

    if ((word & 0xFFFF0000) == 0xDAC10000) { /* signatures: x30 stays what it is */
        if (rd_of(word) != LINK)
            set(p, rd_of(word), HFN_STACK_NOWHERE);
        return HFN_STACK_FINE;
    }
    if ((word & 0xFFE0FFE0) == 0xAA0003E0)
        return move_register(p);
    if ((word & 0x1F000000) == 0x0B000000)
        return add_register(p);
    answer = judge_value(n);
    if (answer == HFN_STACK_FINE)
        answer = judge_value(m);
    if (answer == HFN_STACK_FINE && (word & 0x1F000000) == 0x1B000000)
        answer = judge_value(operand(p, hfn_arm64_bits(word, 14, 10)));
    if ((word & 0xFFE0FC00) == 0x9AC01000 && rd_of(word) == SP) /* irg */
        return HFN_STACK_LOST;
    if ((word & 0x1FE00000) == 0x1A800000 && (is_ours(n) || is_ours(m))) /* csel: the higher one */
        result = n > m ? n : m;
    if (answer == HFN_STACK_FINE && (hfn_arm64_may_write(word) >> rd_of(word) & 1))
        set(p, rd_of(word), result);
    return answer;
}

/* Of floating point and SIMD only what moves or converts from and to general registers matters. */
static hfn_stack_answer step_vector(step *p)
{
    hfn_stack_answer answer;

    if (!hfn_arm64_from_general(p->word))
        return HFN_STACK_FINE;
    answer = judge_value(operand(p, rn_of(p->word)));
    if (answer == HFN_STACK_FINE)
        set(p, rd_of(p->word), HFN_STACK_NOWHERE); /* or a vector of that number: harmless */
    return answer;
}

/* ---- Memory: C4.1.94. */

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
    uint32_t opc = word >> 30, mode = hfn_arm64_bits(word, 24, 23);
    bool vector = word >> 26 & 1, loads = word >> 22 & 1;
    access a = {
        .base = rn_of(word), .loads = loads, .stores = !loads, .vector = vector, .plain = true
    };
    int64_t offset;

    a.bytes = vector ? 4u << opc : opc == 2 ? 8 : 4;
    offset = hfn_arm64_signed(word, 21, 15) * (int64_t)a.bytes;
    if (!vector && opc == 1 && !loads) { /* stgp */
        a.bytes = 8;
        offset = hfn_arm64_signed(word, 21, 15) * 16;
    }
    a.offset = mode == 1 ? 0 : offset;
    a.write_back = mode & 1 ? offset : 0;
    add_target(&a, word & 31);
    add_target(&a, hfn_arm64_bits(word, 14, 10));
    return a;
}

/* One register: an unsigned offset, imm9, or a register. */
static access single_of(uint32_t word)
{
    uint32_t size = word >> 30, opc = hfn_arm64_bits(word, 23, 22), mode;
    bool vector = word >> 26 & 1;
    bool prefetches = !vector && size == 3 && opc == 2;
    bool loads = vector ? opc & 1 : opc != 0;
    access a = {
        .base = rn_of(word), .loads = loads, .stores = !loads, .vector = vector, .plain = true
    };

    a.bytes = vector && (opc & 2) ? 16 : 1u << size;
    if (!prefetches)
        add_target(&a, word & 31);
    else
        a.bytes = 0;
    if (word >> 24 & 1) {
        a.offset = (int64_t)hfn_arm64_bits(word, 21, 10) * (prefetches ? 8 : a.bytes);
        return a;
    }
    mode = hfn_arm64_bits(word, 11, 10);
    if (word >> 21 & 1) {
        a.by_register = true;
        return a;
    }
    a.offset = mode == 1 ? 0 : hfn_arm64_signed(word, 20, 12);
    a.write_back = mode & 1 ? hfn_arm64_signed(word, 20, 12) : 0;
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
    uint32_t mode = hfn_arm64_bits(word, 11, 10), opc = hfn_arm64_bits(word, 23, 22);
    int64_t offset = hfn_arm64_signed(word, 20, 12) * 16;
    access a = { .base = rn_of(word), .loads = mode == 0, .stores = mode != 0 };

    a.bytes = opc < 2 ? 16 : 32;
    a.offset = mode == 1 ? 0 : offset;
    a.write_back = mode & 1 ? offset : 0;
    add_target(&a, a.loads ? word & 31 : 31);
    return a;
}

static bool is_single(uint32_t word)
{
    bool reads_register = (word & 0x3B200C00) == 0x38200800;

    return (word & 0x3B000000) == 0x39000000 || (word & 0x3B200000) == 0x38000000 || reads_register;
}

/* Does [at, at + bytes) touch what holds the return address? */
static bool touches(const step *p, uint32_t place, int64_t at, uint32_t bytes)
{
    int32_t kept = p->s->at[place];

    return is_number(kept) && at < kept + 8 && kept < at + bytes;
}

static hfn_stack_answer store_return(step *p, int64_t at)
{
    int32_t *places = p->s->at;

    if (places[PLACE] == HFN_STACK_NOWHERE || places[PLACE] == at)
        places[PLACE] = (int32_t)at;
    else if (places[SECOND_PLACE] == HFN_STACK_NOWHERE || places[SECOND_PLACE] == at)
        places[SECOND_PLACE] = (int32_t)at;
    else
        return HFN_STACK_LOST;
    return HFN_STACK_FINE;
}

/* One register and its place, from a base whose place is a number. */
static hfn_stack_answer store_one(step *p, const access *a, uint32_t reg, int64_t at)
{
    for (uint32_t place = PLACE; place <= SECOND_PLACE; place++)
        if (touches(p, place, at, a->bytes))
            p->s->at[place] = HFN_STACK_NOWHERE;
    if (!a->vector && operand(p, reg) == RETURN_ADDRESS)
        return a->bytes == 8 && at < 0 ? store_return(p, at) : HFN_STACK_RETURN;
    return HFN_STACK_FINE;
}

static hfn_stack_answer load_one(step *p, const access *a, uint32_t reg, int64_t at)
{
    bool returns = false;

    for (uint32_t place = PLACE; place <= SECOND_PLACE; place++) {
        if (!touches(p, place, at, a->bytes))
            continue;
        if (a->vector || reg != LINK || a->bytes != 8 || p->s->at[place] != at)
            return HFN_STACK_RETURN;
        returns = true;
    }
    if (!a->vector)
        set(p, reg, returns ? RETURN_ADDRESS : HFN_STACK_NOWHERE);
    return HFN_STACK_FINE;
}

static hfn_stack_answer transfer(step *p, const access *a, int32_t base)
{
    hfn_stack_answer answer = HFN_STACK_FINE;
    bool knows = is_number(base) && !a->by_register;

    for (uint32_t i = 0; i < a->count && answer == HFN_STACK_FINE; i++) {
        uint32_t reg = a->registers[i];
        int64_t at = knows ? base + a->offset + (int64_t)i * a->bytes : 0;

        if (knows && a->stores)
            answer = store_one(p, a, reg, at);
        else if (knows)
            answer = load_one(p, a, reg, at);
        else if (a->stores && !a->vector && operand(p, reg) == RETURN_ADDRESS)
            answer = HFN_STACK_RETURN;
        else if (a->loads && !a->vector)
            set(p, reg, HFN_STACK_NOWHERE);
    }
    return answer;
}

/* Bytes [low, end) of the stack.  Arguments whose place is known can be copied below a frame of ours. */
static hfn_stack_answer judge_object(const step *p, const access *a, int64_t low, int64_t end)
{
    if (low == end || (end <= 0 && !a->by_register))
        return HFN_STACK_FINE;
    if (low < 0 || end > HFN_ARGUMENTS_MAX_64 || a->by_register || !a->plain)
        return HFN_STACK_CALLER;
    if (p->s->reach < end)
        p->s->reach = (uint16_t)end;
    return HFN_STACK_FINE;
}

static hfn_stack_answer step_access(step *p, const access *a)
{
    int32_t base = p->s->at[a->base];
    uint32_t bytes = a->bytes * (a->count > 0 ? a->count : 1);
    hfn_stack_answer answer = judge_value(base);

    if (answer == HFN_STACK_FINE && is_number(base))
        answer = judge_object(p, a, base + a->offset, base + a->offset + bytes);
    if (answer != HFN_STACK_FINE)
        return answer;
    if (a->by_register && is_ours(operand(p, rm_of(p->word))))
        return HFN_STACK_LOST;
    answer = transfer(p, a, base);
    if (answer != HFN_STACK_FINE || (a->write_back == 0 && !a->writes_base_by_register))
        return answer;
    if (!is_number(base) || a->writes_base_by_register)
        return is_ours(base) ? set_address(p, a->base, HFN_STACK_BELOW) : answer;
    if (base + a->write_back >= 0 && a->base != SP)
        return HFN_STACK_CALLER;
    return set_address(p, a->base, (int32_t)(base + a->write_back));
}

/* Exclusive, ordered, atomic, structures: at the base, by at most 64 bytes. */
static hfn_stack_answer step_other_access(step *p)
{
    uint32_t word = p->word, written = hfn_arm64_may_write(word);
    bool structure = (word & 0xBE000000) == 0x0C000000;
    access a = { .base = rn_of(word), .bytes = structure ? 1 : 8, .vector = structure };
    hfn_stack_answer answer;

    a.writes_base_by_register = structure && (word >> 23 & 1);
    if (!structure &&
        (operand(p, rd_of(word)) == RETURN_ADDRESS || operand(p, rm_of(word)) == RETURN_ADDRESS ||
         operand(p, hfn_arm64_bits(word, 14, 10)) == RETURN_ADDRESS))
        return HFN_STACK_RETURN;
    answer = step_access(p, &a);
    for (uint32_t reg = 0; reg < 31 && !structure; reg++)
        if ((written >> reg & 1) && reg != a.base)
            set(p, reg, HFN_STACK_NOWHERE);
    return answer;
}

static hfn_stack_answer step_memory(step *p)
{
    uint32_t word = p->word;
    access a;

    if ((word & 0x3B000000) == 0x18000000) { /* literal */
        if (!(word >> 26 & 1) && word >> 30 != 3)
            set(p, word & 31, HFN_STACK_NOWHERE);
        return HFN_STACK_FINE;
    }
    if ((word & 0x3A000000) == 0x28000000)
        a = pair_of(word);
    else if (is_tags(word))
        a = tags_of(word);
    else if (is_single(word))
        a = single_of(word);
    else
        return step_other_access(p);
    return step_access(p, &a);
}

/* ---- Control. */

static hfn_stack_answer step_call(step *p)
{
    for (uint32_t i = 0; i < 31; i++)
        if (CALL_CHANGES >> i & 1)
            p->s->at[i] = HFN_STACK_NOWHERE;
    return HFN_STACK_FINE;
}

static hfn_stack_answer step_branch(step *p)
{
    uint32_t opc = hfn_arm64_bits(p->word, 24, 21) & 7, rn = rn_of(p->word);
    bool checks = hfn_arm64_bits(p->word, 15, 10) != 0; /* retaa: x30 */

    if (opc == 0)
        return rn == LINK ? HFN_STACK_LOST : HFN_STACK_FINE;
    if (opc == 1)
        return step_call(p);
    if (opc != 2 || (!checks && rn != LINK) || p->s->at[LINK] != RETURN_ADDRESS ||
        p->s->at[SP] != 0)
        return HFN_STACK_LOST;
    return HFN_STACK_FINE;
}

static hfn_stack_answer step_system(step *p)
{
    uint32_t rt = p->word & 31;

    if (p->word >> 24 != 0xD5)
        return HFN_STACK_FINE; /* svc, brk */
    if (p->word >> 21 & 1) {
        set(p, rt, HFN_STACK_NOWHERE); /* mrs */
        return HFN_STACK_FINE;
    }
    return judge_value(operand(p, rt));
}

hfn_stack_answer hfn_arm64_stack_step(const uint8_t *bytes, uint64_t size, uint64_t rva,
                                      hfn_stack_state *state)
{
    step p = { .s = state };

    (void)rva;
    if (size < HFN_ARM64_BYTES || state->at[SP] == HFN_STACK_NOWHERE)
        return HFN_STACK_LOST;
    p.word = hfn_arm64_word(bytes);
    switch (hfn_arm64_form_of(p.word)) {
    case HFN_ARM64_B:
    case HFN_ARM64_B_COND: return HFN_STACK_FINE;
    case HFN_ARM64_BL: return step_call(&p);
    case HFN_ARM64_CBZ:
    case HFN_ARM64_TBZ: return judge_value(operand(&p, p.word & 31));
    case HFN_ARM64_BRANCH: return step_branch(&p);
    case HFN_ARM64_BOUND:
    case HFN_ARM64_NONE: return HFN_STACK_LOST;
    default: break;
    }
    switch (hfn_arm64_bits(p.word, 28, 25)) {
    case 0x8:
    case 0x9: return step_immediate(&p);
    case 0x5:
    case 0xD: return step_register(&p);
    case 0x4:
    case 0x6:
    case 0xC:
    case 0xE: return step_memory(&p);
    case 0x7:
    case 0xF: return step_vector(&p);
    case 0xA:
    case 0xB: return step_system(&p);
    default: return HFN_STACK_FINE; /* udf */
    }
}

bool hfn_arm64_keeps_frame(const uint8_t *bytes, uint64_t size)
{
    (void)size;
    uint32_t word = hfn_arm64_word(bytes);

    return (word & 0xFE000000) == 0xA8000000 &&
           (rd_of(word) == LINK || hfn_arm64_bits(word, 14, 10) == LINK);
}
