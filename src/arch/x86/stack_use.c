/* SPDX-License-Identifier: MIT */
/*
 * Follows the stack through an instruction: how far below the CFA (DWARF 5, 6.4: the stack pointer
 * before the call of the function) each register points, as far as known, and whether the
 * instruction accesses the return address or the bytes above it.
 */
#include "arch/x86/stack_use.h"

#include "arch/x86/decode.h"
#include "arch/x86/relocate.h"

#include <string.h>

/* NEAR_BYTES: a callee pops at most two words that its caller does not expect. */
enum { REGISTERS = 16, RSP = HFN_X86_RSP, RBP = 5, NEAR_BYTES = 8 };

/* Registers that a callee may change: rax, rcx, rdx, rsi, rdi, r8 to r11 (System V x86-64 psABI,
 * 3.2.1); eax, ecx, edx (i386 psABI, table 2.3). */
#define CALL_CHANGES_64 0x0FC7u
#define CALL_CHANGES_32 0x0007u

static bool is_number(int32_t at)
{
    return at != HFN_STACK_UNKNOWN && at != HFN_STACK_IN_FRAME;
}

static int32_t get_word_bytes(hfn_x86_mode mode)
{
    return mode == HFN_X86_32 ? 4 : 8;
}

void hfn_x86_begin_stack(hfn_x86_mode mode, hfn_stack_state *state)
{
    *state = (hfn_stack_state){ .uncertain_calls = 0 };
    for (int i = 0; i < HFN_STACK_REGISTERS; i++) {
        state->at[i] = HFN_STACK_UNKNOWN;
    }
    state->at[RSP] = -get_word_bytes(mode);
}

/* ---- Kinds of instructions. */

typedef struct step {
    hfn_x86_mode mode;
    int32_t word, return_at;       /* bytes of a word; place of the return address */
    const uint8_t *bytes, *opcode; /* opcode: after the prefixes */
    uint64_t size;
    hfn_x86_effects e;
    hfn_stack_state *s;
} step;

static hfn_stack_outcome check_place(const step *p, int64_t at)
{
    if (at >= 0) {
        return HFN_STACK_TOUCHES_CALLER;
    }
    return at >= p->return_at ? HFN_STACK_TOUCHES_RETURN : HFN_STACK_OK;
}

static hfn_stack_outcome move_stack(const step *p, int64_t to)
{
    if (to > p->return_at) {
        return HFN_STACK_TOUCHES_RETURN;
    }
    if (to < INT32_MIN / 2) {
        return HFN_STACK_LOST;
    }
    p->s->at[RSP] = (int32_t)to;
    return HFN_STACK_OK;
}

static int32_t get_place(const step *p, uint8_t reg)
{
    return reg < REGISTERS ? p->s->at[reg] : HFN_STACK_UNKNOWN;
}

static void find_opcode(step *p)
{
    const uint8_t *at = p->bytes, *end = p->bytes + p->e.length - 1;

    while (at < end && memchr("\x66\xF2\xF3\x2E\x36\x3E\x26\x64\x65\xF0", *at, 10)) {
        at++;
    }
    if (p->mode == HFN_X86_64 && at < end && (*at & 0xF0) == 0x40) {
        at++;
    }
    p->opcode = at;
}

static bool is_call(const step *p)
{
    return p->opcode[0] == 0xE8 ||
           (p->opcode[0] == 0xFF && p->e.length > 1 && (p->opcode[1] >> 3 & 7) == 2);
}

/* call +0, with which i386 code obtains its own address */
static bool pushes_own_address(const step *p)
{
    return p->mode == HFN_X86_32 && p->e.length == 5 && memcmp(p->opcode, "\xE8\0\0\0", 5) == 0;
}

/* i386: ret n pops the arguments of a stdcall function, or the pointer to a returned struct. */
static hfn_stack_outcome step_return(const step *p)
{
    bool pops = p->opcode[0] == 0xC2 && p->mode == HFN_X86_32;

    if (p->opcode[0] != 0xC3 && !pops) {
        return HFN_STACK_POPS_UNKNOWN;
    }
    if (p->s->at[RSP] != p->return_at) {
        return HFN_STACK_LOST;
    }
    p->s->popped_bytes = pops ? (uint16_t)(p->opcode[1] | p->opcode[2] << 8) : 0;
    if (p->s->popped_bytes % 4 != 0 || p->s->popped_bytes > HFN_ARGUMENTS_MAX) {
        return HFN_STACK_POPS_UNKNOWN;
    }
    if (p->s->argument_bytes < p->s->popped_bytes) {
        p->s->argument_bytes = p->s->popped_bytes;
    }
    return HFN_STACK_OK;
}

static hfn_stack_outcome step_leave(const step *p)
{
    int32_t frame = p->s->at[RBP];

    p->s->at[RBP] = HFN_STACK_UNKNOWN;
    p->s->uncertain_calls = 0;
    if (!is_number(frame)) {
        return HFN_STACK_LOST;
    }
    return check_place(p, frame) != HFN_STACK_OK ? HFN_STACK_TOUCHES_RETURN
                                                 : move_stack(p, (int64_t)frame + p->word);
}

/* Check a memory operand.  With an index it may be anywhere: compilers fold constants into the
 * displacement, and clang reads argument `a[i - 3]` at [rsp + 8*i - 16], far below the argument. */
static hfn_stack_outcome check_object(const step *p, int64_t at)
{
    const hfn_x86_effects *e = &p->e;

    if (e->index != HFN_X86_NO_REGISTER) {
        return HFN_STACK_TOUCHES_CALLER;
    }
    if (p->s->uncertain_calls && e->base != RBP &&
        at + e->memory_bytes > p->return_at - NEAR_BYTES * p->s->uncertain_calls) {
        p->s->depends_on_calls = true;
    }
    return check_place(p, at < p->return_at && at + e->memory_bytes > p->return_at ? p->return_at
                                                                                   : at);
}

/* i386: a function that realigns its stack addresses its arguments through a register from then
 * on: lea ecx, [esp + 4]; and esp, -16; push dword [ecx - 4] (for debuggers); ...; push ecx;
 * ...; pop ecx; lea esp, [ecx - 4]; ret.  The bytes that `and` skips are unknown; they count as
 * 0, so that the whole frame appears closer to the return address than it is. */
static bool points_to_arguments(const step *p, uint8_t reg)
{
    return get_place(p, reg) == 0;
}

static bool begins_realignment(const step *p)
{
    const uint8_t *next = p->bytes + p->e.length;

    return p->mode == HFN_X86_32 && p->size >= p->e.length + 3u && next[0] == 0x83 &&
           next[1] == 0xE4 && next[2] >= 0x80;
}

static bool is_realignment(const step *p)
{
    if (p->mode != HFN_X86_32 || p->e.dest != RSP || p->e.shape != HFN_X86_AND) {
        return false;
    }
    for (uint8_t reg = 0; reg < REGISTERS; reg++) {
        if (points_to_arguments(p, reg)) {
            return true;
        }
    }
    return false;
}

/* Is it a push of the return address's copy, or of the argument pointer? */
static bool saves_argument_pointer(const step *p)
{
    const hfn_x86_effects *e = &p->e;

    if (p->opcode[0] == 0xFF && (p->opcode[1] >> 3 & 7) == 6) {
        return points_to_arguments(p, e->base) && e->index == HFN_X86_NO_REGISTER &&
               e->displacement == p->return_at;
    }
    return (p->opcode[0] & 0xF8) == 0x50 && points_to_arguments(p, e->stored);
}

/* Is it a load or a pop of the saved argument pointer? */
static bool restores_argument_pointer(const step *p)
{
    const hfn_x86_effects *e = &p->e;
    int32_t base = get_place(p, e->base);

    if (!is_number(p->s->at[HFN_X86_KEPT]) || e->dest >= REGISTERS || e->dest == RSP) {
        return false;
    }
    if ((p->opcode[0] & 0xF8) == 0x58) {
        return p->s->at[RSP] == p->s->at[HFN_X86_KEPT];
    }
    return e->shape == HFN_X86_LOAD && e->width == p->word && is_number(base) &&
           e->index == HFN_X86_NO_REGISTER && base + e->displacement == p->s->at[HFN_X86_KEPT];
}

/* Check an access.  Arguments that are accessed at known places can be copied below a timing
 * stub's frame; not those by `pop [mem]`, whose operand is relative to the changed stack
 * pointer. */
static hfn_stack_outcome check_access(const step *p, int64_t at)
{
    hfn_stack_outcome outcome = check_object(p, at);
    int64_t end = at + p->e.memory_bytes;
    int64_t max_end = p->mode == HFN_X86_32 ? HFN_ARGUMENTS_MAX : HFN_ARGUMENTS_MAX_64;

    if (outcome != HFN_STACK_TOUCHES_CALLER || p->e.index != HFN_X86_NO_REGISTER ||
        p->e.memory_bytes == 0 || end > max_end || p->opcode[0] == 0x8F) {
        return outcome;
    }
    if (p->s->argument_bytes < end) {
        p->s->argument_bytes = (uint16_t)end;
    }
    return HFN_STACK_OK;
}

static hfn_stack_outcome check_memory(const step *p)
{
    const hfn_x86_effects *e = &p->e;
    int32_t base = get_place(p, e->base), index = get_place(p, e->index);

    if (!e->has_memory) {
        return HFN_STACK_OK;
    }
    if (index != HFN_STACK_UNKNOWN) {
        return HFN_STACK_LOST;
    }
    return is_number(base) ? check_access(p, (int64_t)base + e->displacement) : HFN_STACK_OK;
}

/* The result of lea must be below the return address, unless the stack pointer is set to it. */
static hfn_stack_outcome step_lea(const step *p)
{
    const hfn_x86_effects *e = &p->e;
    int32_t base = get_place(p, e->base), index = get_place(p, e->index), result = base;

    if (is_number(base)) {
        int64_t at = (int64_t)base + e->displacement;
        if (e->dest == RSP && e->index == HFN_X86_NO_REGISTER) {
            p->s->uncertain_calls = e->base != RBP && base != 0 ? p->s->uncertain_calls : 0;
            return move_stack(p, at);
        }
        if (at == 0 && e->base == RSP && e->index == HFN_X86_NO_REGISTER && e->dest < REGISTERS &&
            begins_realignment(p)) {
            p->s->at[e->dest] = 0;
            return HFN_STACK_OK;
        }
        if (check_object(p, at) != HFN_STACK_OK) {
            return check_object(p, at);
        }
        result = at < INT32_MIN / 2 ? HFN_STACK_IN_FRAME : (int32_t)at;
    }
    if (index != HFN_STACK_UNKNOWN) {
        return HFN_STACK_LOST;
    }
    if (e->dest == RSP && result == HFN_STACK_UNKNOWN) {
        return HFN_STACK_LOST;
    }
    if (e->dest < REGISTERS) {
        p->s->at[e->dest] = result;
    }
    return HFN_STACK_OK;
}

/* Follow a change of rsp by anything but a constant. */
static hfn_stack_outcome move_by_register(const step *p)
{
    const hfn_x86_effects *e = &p->e;
    int32_t source = get_place(p, e->src);
    bool subtracts = p->opcode[0] == 0x29 || p->opcode[0] == 0x2B;

    if (e->dest == RSP && e->shape == HFN_X86_MOVE && e->width == p->word && is_number(source)) {
        p->s->uncertain_calls = e->src != RBP ? p->s->uncertain_calls : 0;
        return move_stack(p, source);
    }
    if (e->dest == RSP && ((e->shape == HFN_X86_MOVE && source == HFN_STACK_IN_FRAME) ||
                           e->shape == HFN_X86_AND || subtracts)) {
        p->s->at[RSP] = HFN_STACK_IN_FRAME;
        return HFN_STACK_OK;
    }
    return HFN_STACK_LOST;
}

static hfn_stack_outcome step_stack_pointer(const step *p)
{
    int32_t growth;

    if (is_realignment(p)) {
        return HFN_STACK_OK;
    }
    if (!hfn_x86_get_stack_growth(p->mode, p->bytes, p->size, &growth)) {
        return move_by_register(p);
    }
    if (p->s->at[RSP] == HFN_STACK_IN_FRAME) {
        return HFN_STACK_OK;
    }
    return growth == 0 ? HFN_STACK_OK : move_stack(p, (int64_t)p->s->at[RSP] - growth);
}

/* add or sub reg, constant (Intel SDM vol. 2, opcodes 81 and 83, /0 and /5; 05 and 2D of eax). */
static bool adds_constant(const step *p, int64_t *constant)
{
    bool of_eax = p->opcode[0] == 0x05 || p->opcode[0] == 0x2D;
    uint8_t modrm = p->e.length > 2 ? p->opcode[1] : 0, which = modrm >> 3 & 7;

    *constant = (int64_t)p->e.immediate * ((of_eax ? p->opcode[0] == 0x2D : which == 5) ? -1 : 1);
    if (of_eax) {
        return p->e.width == p->word;
    }
    return (p->opcode[0] == 0x81 || p->opcode[0] == 0x83) && p->e.width == p->word &&
           modrm >> 6 == 3 && (which == 0 || which == 5);
}

/* Follow arithmetic on an address in the frame.  A sum with an unknown number may point
 * anywhere, like an index, and an address used as a number cannot be followed. */
static hfn_stack_outcome step_arithmetic(const step *p)
{
    const hfn_x86_effects *e = &p->e;
    bool adds = p->opcode[0] < 0x04, subtracts = (p->opcode[0] & ~3) == 0x28;
    int32_t at = get_place(p, e->dest);
    int64_t constant, result;

    if (e->shape == HFN_X86_ADD && get_place(p, e->src) != HFN_STACK_UNKNOWN) {
        return HFN_STACK_LOST;
    }
    if (e->dest == RSP || at == HFN_STACK_UNKNOWN || e->kills != 0) {
        return HFN_STACK_OK;
    }
    if (adds_constant(p, &constant) && is_number(at)) {
        result = at + constant;
        p->s->at[e->dest] = result < INT32_MIN / 2 ? HFN_STACK_IN_FRAME : (int32_t)result;
        return check_place(p, result);
    }
    return (adds || subtracts) && (e->writes >> e->dest & 1) ? HFN_STACK_TOUCHES_CALLER
                                                             : HFN_STACK_OK;
}

static void step_registers(const step *p)
{
    const hfn_x86_effects *e = &p->e;
    int32_t result = HFN_STACK_UNKNOWN;
    int64_t constant;

    if (adds_constant(p, &constant)) {
        return; /* step_arithmetic has done it */
    }
    if (e->shape == HFN_X86_MOVE && e->width == p->word) {
        result = get_place(p, e->src);
    }
    if (e->shape == HFN_X86_AND && get_place(p, e->dest) != HFN_STACK_UNKNOWN) {
        result = HFN_STACK_IN_FRAME;
    }
    for (uint32_t i = 0; i < REGISTERS; i++) {
        if (i != RSP && (e->writes >> i & 1)) {
            p->s->at[i] = HFN_STACK_UNKNOWN;
        }
    }
    if (e->dest < REGISTERS && e->dest != RSP && (e->writes >> e->dest & 1)) {
        p->s->at[e->dest] = result;
    }
}

/* The address of the return address must not be stored, as it could not be followed. */
static hfn_stack_outcome check_stored(const step *p)
{
    int32_t at = get_place(p, p->e.stored);

    return is_number(at) && at >= p->return_at ? HFN_STACK_TOUCHES_RETURN : HFN_STACK_OK;
}

/* Note whether an address of the frame is stored outside of it, or compared (Intel SDM vol. 2,
 * CMP: 39 and 3B) with another value. */
static void note_frame_address(const step *p)
{
    const hfn_x86_effects *e = &p->e;
    uint32_t own = 0;

    if (e->has_memory && get_place(p, e->base) != HFN_STACK_UNKNOWN) {
        return;
    }
    if (e->has_memory && get_place(p, e->stored) != HFN_STACK_UNKNOWN) {
        p->s->frame_address |= HFN_FRAME_ADDRESS_STORED;
    }
    if ((p->opcode[0] | 2) != 0x3B) {
        return;
    }
    for (uint8_t reg = 0; reg < REGISTERS; reg++) {
        own += (e->reads >> reg & 1) && get_place(p, reg) != HFN_STACK_UNKNOWN;
    }
    if (own == 1) {
        p->s->frame_address |= HFN_FRAME_ADDRESS_COMPARED;
    }
}

/* How many bytes the callee pops is unknown and assumed to be 0; a wrong assumption shows where
 * the function returns (verdicts/prove.c). */
static hfn_stack_outcome step_call(const step *p)
{
    uint32_t changes = p->mode == HFN_X86_32 ? CALL_CHANGES_32 : CALL_CHANGES_64;

    if (pushes_own_address(p)) {
        return move_stack(p, (int64_t)p->s->at[RSP] - p->word);
    }
    for (uint32_t i = 0; i < REGISTERS; i++) {
        if (!(changes >> i & 1)) {
            continue;
        }
        if (points_to_arguments(p, (uint8_t)i) && !is_number(p->s->at[HFN_X86_KEPT])) {
            return HFN_STACK_TOUCHES_CALLER; /* not saved, so it is an argument */
        }
        p->s->at[i] = HFN_STACK_UNKNOWN;
    }
    if (p->mode == HFN_X86_32 && p->s->uncertain_calls < HFN_MAX_UNCERTAIN_CALLS) {
        p->s->uncertain_calls++;
    }
    return HFN_STACK_OK;
}

hfn_stack_outcome hfn_x86_step_stack(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size,
                                     uint64_t rva, hfn_stack_state *state)
{
    int32_t word = get_word_bytes(mode);
    step p = { mode, word, -word, bytes, bytes, size, { .length = 0 }, state };
    hfn_stack_outcome outcome;
    bool saves, restores; /* the pointer to the arguments */

    if (!hfn_x86_decode_effects(mode, bytes, size, rva, &p.e) ||
        state->at[RSP] == HFN_STACK_UNKNOWN) {
        return HFN_STACK_LOST;
    }
    find_opcode(&p);
    if (memchr("\xC2\xC3\xCA\xCB\xCF", p.opcode[0], 5)) {
        return step_return(&p);
    }
    if (p.opcode[0] == 0xC9) {
        return step_leave(&p);
    }
    if (p.opcode[0] == 0xC8) {
        return HFN_STACK_LOST; /* enter: compilers do not emit it */
    }
    if (p.e.shape == HFN_X86_LEA) {
        return step_lea(&p);
    }
    saves = mode == HFN_X86_32 && saves_argument_pointer(&p);
    restores = mode == HFN_X86_32 && restores_argument_pointer(&p);
    outcome = saves ? HFN_STACK_OK : check_memory(&p);
    if (outcome == HFN_STACK_OK) {
        outcome = step_arithmetic(&p);
    }
    if (outcome == HFN_STACK_OK && !saves) {
        outcome = check_stored(&p);
    }
    if (outcome != HFN_STACK_OK) {
        return outcome;
    }
    note_frame_address(&p);
    if (is_call(&p)) {
        return step_call(&p);
    }
    outcome = step_stack_pointer(&p);
    step_registers(&p);
    if (saves && p.opcode[0] != 0xFF) {
        state->at[HFN_X86_KEPT] = state->at[RSP];
    }
    if (restores) {
        state->at[p.e.dest] = 0;
    }
    return outcome;
}

bool hfn_x86_uses_stack(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size)
{
    hfn_x86_effects e;

    return !hfn_x86_decode_effects(mode, bytes, size, 0, &e) ||
           ((e.reads | e.writes) >> HFN_X86_RSP & 1);
}
