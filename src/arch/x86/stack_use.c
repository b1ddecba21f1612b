/* SPDX-License-Identifier: MIT */
/*
 * Following the stack through an instruction: how far below the CFA (DWARF 5, 6.4: the stack pointer
 * before the call that led here) each register points, as far as known, and whether the instruction
 * touches the return address or what lies above it.
 */
#include "arch/x86/stack_use.h"

#include "arch/x86/decode.h"
#include "arch/x86/relocate.h"

#include <string.h>

enum { REGISTERS = 16, RSP = HFN_X86_RSP, RBP = 5, RETURN_ADDRESS_AT = -8, WORD = 8 };

/* rax, rcx, rdx, rsi, rdi, r8 to r11: what a called function may change (System V x86-64 psABI). */
#define CALL_CHANGES 0x0FC7u

static bool is_number(int32_t at)
{
    return at != HFN_STACK_NOWHERE && at != HFN_STACK_BELOW;
}

void hfn_x86_stack_begin(hfn_stack_state *state)
{
    for (int i = 0; i < HFN_STACK_REGISTERS; i++)
        state->at[i] = HFN_STACK_NOWHERE;
    state->at[RSP] = RETURN_ADDRESS_AT;
}

static hfn_stack_answer judge_place(int64_t at)
{
    if (at >= 0)
        return HFN_STACK_CALLER;
    return at >= RETURN_ADDRESS_AT ? HFN_STACK_RETURN : HFN_STACK_FINE;
}

static hfn_stack_answer move_stack(hfn_stack_state *s, int64_t to)
{
    if (to > RETURN_ADDRESS_AT)
        return HFN_STACK_RETURN;
    if (to < INT32_MIN / 2)
        return HFN_STACK_LOST;
    s->at[RSP] = (int32_t)to;
    return HFN_STACK_FINE;
}

/* ---- Kinds of instructions. */

typedef struct step {
    const uint8_t *bytes, *opcode; /* behind prefixes */
    uint64_t size;
    hfn_x86_effects e;
    hfn_stack_state *s;
} step;

static int32_t place_in(const step *p, uint8_t reg)
{
    return reg < REGISTERS ? p->s->at[reg] : HFN_STACK_NOWHERE;
}

static void find_opcode(step *p)
{
    const uint8_t *at = p->bytes, *end = p->bytes + p->e.length - 1;

    while (at < end && memchr("\x66\xF2\xF3\x2E\x36\x3E\x26\x64\x65\xF0", *at, 10))
        at++;
    if (at < end && (*at & 0xF0) == 0x40)
        at++;
    p->opcode = at;
}

static bool is_call(const step *p)
{
    return p->opcode[0] == 0xE8 ||
           (p->opcode[0] == 0xFF && p->e.length > 1 && (p->opcode[1] >> 3 & 7) == 2);
}

static hfn_stack_answer step_return(const step *p)
{
    if (p->opcode[0] != 0xC3)
        return HFN_STACK_POPS;
    return p->s->at[RSP] == RETURN_ADDRESS_AT ? HFN_STACK_FINE : HFN_STACK_LOST;
}

static hfn_stack_answer step_leave(const step *p)
{
    int32_t frame = p->s->at[RBP];

    p->s->at[RBP] = HFN_STACK_NOWHERE;
    if (!is_number(frame))
        return HFN_STACK_LOST;
    return judge_place(frame) != HFN_STACK_FINE ? HFN_STACK_RETURN
                                                : move_stack(p->s, (int64_t)frame + WORD);
}

/* An object of some bytes.  With an index it may be anywhere: compilers fold constants into the
 * displacement, and clang reads argument `a[i - 3]` at [rsp + 8*i - 16], far below the argument. */
static hfn_stack_answer judge_object(const hfn_x86_effects *e, int64_t at)
{
    if (e->index != HFN_X86_NO_REGISTER)
        return HFN_STACK_CALLER;
    return judge_place(at < RETURN_ADDRESS_AT && at + e->memory_bytes > RETURN_ADDRESS_AT
                           ? RETURN_ADDRESS_AT
                           : at);
}

static hfn_stack_answer check_memory(const step *p)
{
    const hfn_x86_effects *e = &p->e;
    int32_t base = place_in(p, e->base), index = place_in(p, e->index);

    if (!e->has_memory)
        return HFN_STACK_FINE;
    if (index != HFN_STACK_NOWHERE)
        return HFN_STACK_LOST;
    return is_number(base) ? judge_object(e, (int64_t)base + e->displacement) : HFN_STACK_FINE;
}

/* Its place is known to be below the return address, unless the stack pointer itself goes there. */
static hfn_stack_answer step_lea(const step *p)
{
    const hfn_x86_effects *e = &p->e;
    int32_t base = place_in(p, e->base), index = place_in(p, e->index), result = base;

    if (is_number(base)) {
        int64_t at = (int64_t)base + e->displacement;
        if (e->dest == RSP && e->index == HFN_X86_NO_REGISTER)
            return move_stack(p->s, at);
        if (judge_object(e, at) != HFN_STACK_FINE)
            return judge_object(e, at);
        result = at < INT32_MIN / 2 ? HFN_STACK_BELOW : (int32_t)at;
    }
    if (index != HFN_STACK_NOWHERE)
        return HFN_STACK_LOST;
    if (e->dest == RSP && result == HFN_STACK_NOWHERE)
        return HFN_STACK_LOST;
    if (e->dest < REGISTERS)
        p->s->at[e->dest] = result;
    return HFN_STACK_FINE;
}

/* What changes rsp by something else than a constant. */
static hfn_stack_answer move_by_register(const step *p)
{
    const hfn_x86_effects *e = &p->e;
    int32_t source = place_in(p, e->src);
    bool subtracts = p->opcode[0] == 0x29 || p->opcode[0] == 0x2B;

    if (e->dest == RSP && e->shape == HFN_X86_MOVE && e->width == WORD && is_number(source))
        return move_stack(p->s, source);
    if (e->dest == RSP && ((e->shape == HFN_X86_MOVE && source == HFN_STACK_BELOW) ||
                           e->shape == HFN_X86_AND || subtracts)) {
        p->s->at[RSP] = HFN_STACK_BELOW;
        return HFN_STACK_FINE;
    }
    return HFN_STACK_LOST;
}

static hfn_stack_answer step_stack_pointer(const step *p)
{
    int32_t growth;

    if (!hfn_x86_stack_growth(HFN_X86_64, p->bytes, p->size, &growth))
        return move_by_register(p);
    if (p->s->at[RSP] == HFN_STACK_BELOW)
        return HFN_STACK_FINE;
    return growth == 0 ? HFN_STACK_FINE : move_stack(p->s, (int64_t)p->s->at[RSP] - growth);
}

/* add or sub reg, constant (Intel SDM vol. 2, opcodes 81 and 83, /0 and /5). */
static bool adds_constant(const step *p, int64_t *constant)
{
    uint8_t modrm = p->e.length > 2 ? p->opcode[1] : 0, which = modrm >> 3 & 7;

    *constant = (int64_t)p->e.immediate * (which == 5 ? -1 : 1);
    return (p->opcode[0] == 0x81 || p->opcode[0] == 0x83) && p->e.width == WORD &&
           modrm >> 6 == 3 && (which == 0 || which == 5);
}

/* With an address in the frame.  What is added to it may lead anywhere, like an index; as a number it
 * would be lost. */
static hfn_stack_answer step_arithmetic(const step *p)
{
    const hfn_x86_effects *e = &p->e;
    bool adds = p->opcode[0] < 0x04, subtracts = (p->opcode[0] & ~3) == 0x28;
    int32_t at = place_in(p, e->dest);
    int64_t constant, result;

    if (e->shape == HFN_X86_ADD && place_in(p, e->src) != HFN_STACK_NOWHERE)
        return HFN_STACK_LOST;
    if (e->dest == RSP || at == HFN_STACK_NOWHERE || e->kills != 0)
        return HFN_STACK_FINE;
    if (adds_constant(p, &constant) && is_number(at)) {
        result = at + constant;
        p->s->at[e->dest] = result < INT32_MIN / 2 ? HFN_STACK_BELOW : (int32_t)result;
        return judge_place(result);
    }
    return (adds || subtracts) && (e->writes >> e->dest & 1) ? HFN_STACK_CALLER : HFN_STACK_FINE;
}

static void step_registers(const step *p)
{
    const hfn_x86_effects *e = &p->e;
    int32_t result = HFN_STACK_NOWHERE;
    int64_t constant;

    if (adds_constant(p, &constant))
        return; /* step_arithmetic has done it */
    if (e->shape == HFN_X86_MOVE && e->width == WORD)
        result = place_in(p, e->src);
    if (e->shape == HFN_X86_AND && place_in(p, e->dest) != HFN_STACK_NOWHERE)
        result = HFN_STACK_BELOW;
    for (uint32_t i = 0; i < REGISTERS; i++)
        if (i != RSP && (e->writes >> i & 1))
            p->s->at[i] = HFN_STACK_NOWHERE;
    if (e->dest < REGISTERS && e->dest != RSP && (e->writes >> e->dest & 1))
        p->s->at[e->dest] = result;
}

/* The address of the return address, kept where it cannot be followed. */
static hfn_stack_answer check_stored(const step *p)
{
    int32_t at = place_in(p, p->e.stored);

    return is_number(at) && at >= RETURN_ADDRESS_AT ? HFN_STACK_RETURN : HFN_STACK_FINE;
}

hfn_stack_answer hfn_x86_stack_step(const uint8_t *bytes, uint64_t size, uint64_t rva,
                                    hfn_stack_state *state)
{
    step p = { .bytes = bytes, .size = size, .s = state };
    hfn_stack_answer answer;

    if (!hfn_x86_effects_of(HFN_X86_64, bytes, size, rva, &p.e) ||
        state->at[RSP] == HFN_STACK_NOWHERE)
        return HFN_STACK_LOST;
    find_opcode(&p);
    if (memchr("\xC2\xC3\xCA\xCB\xCF", p.opcode[0], 5))
        return step_return(&p);
    if (p.opcode[0] == 0xC9)
        return step_leave(&p);
    if (p.opcode[0] == 0xC8)
        return HFN_STACK_LOST; /* enter: no compiler writes it */
    if (p.e.shape == HFN_X86_LEA)
        return step_lea(&p);
    answer = check_memory(&p);
    if (answer == HFN_STACK_FINE)
        answer = step_arithmetic(&p);
    if (answer == HFN_STACK_FINE)
        answer = check_stored(&p);
    if (answer != HFN_STACK_FINE)
        return answer;
    if (is_call(&p)) {
        for (uint32_t i = 0; i < REGISTERS; i++)
            if (CALL_CHANGES >> i & 1)
                state->at[i] = HFN_STACK_NOWHERE;
        return HFN_STACK_FINE;
    }
    answer = step_stack_pointer(&p);
    step_registers(&p);
    return answer;
}
