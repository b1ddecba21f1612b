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

/* Nobody takes more than two words unasked: no C or C++ function of System V does. */
enum { REGISTERS = 16, RSP = HFN_X86_RSP, RBP = 5, NEAR_BYTES = 8 };

/* What a called function may change: rax, rcx, rdx, rsi, rdi, r8 to r11 (System V x86-64 psABI); eax, ecx,
 * edx (i386 psABI). */
#define CALL_CHANGES_64 0x0FC7u
#define CALL_CHANGES_32 0x0007u

static bool is_number(int32_t at)
{
    return at != HFN_STACK_UNKNOWN && at != HFN_STACK_IN_FRAME;
}

static int32_t word_bytes(hfn_x86_mode mode)
{
    return mode == HFN_X86_32 ? 4 : 8;
}

void hfn_x86_begin_stack(hfn_x86_mode mode, hfn_stack_state *state)
{
    *state = (hfn_stack_state){ .uncertain_calls = 0 };
    for (int i = 0; i < HFN_STACK_REGISTERS; i++) {
        state->at[i] = HFN_STACK_UNKNOWN;
    }
    state->at[RSP] = -word_bytes(mode);
}

/* ---- Kinds of instructions. */

typedef struct step {
    hfn_x86_mode mode;
    int32_t word, return_at;       /* bytes of a word; where the return address lies */
    const uint8_t *bytes, *opcode; /* behind prefixes */
    uint64_t size;
    hfn_x86_effects e;
    hfn_stack_state *s;
} step;

static hfn_stack_outcome judge_place(const step *p, int64_t at)
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

static int32_t place_in(const step *p, uint8_t reg)
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

/* call +0, which pushes where it is; i386 code pops that to find its data */
static bool is_push_of_place(const step *p)
{
    return p->mode == HFN_X86_32 && p->e.length == 5 && memcmp(p->opcode, "\xE8\0\0\0", 5) == 0;
}

/* i386: ret n takes arguments along, those of a stdcall or the place for a returned struct. */
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
    return judge_place(p, frame) != HFN_STACK_OK ? HFN_STACK_TOUCHES_RETURN
                                                 : move_stack(p, (int64_t)frame + p->word);
}

/* An object of some bytes.  With an index it may be anywhere: compilers fold constants into the
 * displacement, and clang reads argument `a[i - 3]` at [rsp + 8*i - 16], far below the argument. */
static hfn_stack_outcome judge_object(const step *p, int64_t at)
{
    const hfn_x86_effects *e = &p->e;

    if (e->index != HFN_X86_NO_REGISTER) {
        return HFN_STACK_TOUCHES_CALLER;
    }
    if (p->s->uncertain_calls && e->base != RBP &&
        at + e->memory_bytes > p->return_at - NEAR_BYTES * p->s->uncertain_calls) {
        p->s->depends_on_calls = true;
    }
    return judge_place(p, at < p->return_at && at + e->memory_bytes > p->return_at ? p->return_at
                                                                                   : at);
}

/* i386: a function that needs more alignment than it finds reaches its arguments by a register from there on:
 * lea ecx, [esp + 4]; and esp, -16; push dword [ecx - 4] (for debuggers alone); ...; push ecx; ...; pop ecx;
 * lea esp, [ecx - 4]; ret.  What `and` takes is not known: its frame is followed as if that were nothing, so
 * that all of it is believed closer to the return address than it is. */
static bool points_to_arguments(const step *p, uint8_t reg)
{
    return place_in(p, reg) == 0;
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

/* The copy of the return address, or the register itself. */
static bool is_kept_by_push(const step *p)
{
    const hfn_x86_effects *e = &p->e;

    if (p->opcode[0] == 0xFF && (p->opcode[1] >> 3 & 7) == 6) {
        return points_to_arguments(p, e->base) && e->index == HFN_X86_NO_REGISTER &&
               e->displacement == p->return_at;
    }
    return (p->opcode[0] & 0xF8) == 0x50 && points_to_arguments(p, e->stored);
}

/* mov reg, [where it was put]; pop reg there */
static bool brings_back(const step *p)
{
    const hfn_x86_effects *e = &p->e;
    int32_t base = place_in(p, e->base);

    if (!is_number(p->s->at[HFN_X86_KEPT]) || e->dest >= REGISTERS || e->dest == RSP) {
        return false;
    }
    if ((p->opcode[0] & 0xF8) == 0x58) {
        return p->s->at[RSP] == p->s->at[HFN_X86_KEPT];
    }
    return e->shape == HFN_X86_LOAD && e->width == p->word && is_number(base) &&
           e->index == HFN_X86_NO_REGISTER && base + e->displacement == p->s->at[HFN_X86_KEPT];
}

/* Arguments on the stack that are read or written at a place that is known can be copied below a frame of
 * ours.  pop moves the register that its operand's place counts from. */
static hfn_stack_outcome judge_access(const step *p, int64_t at)
{
    hfn_stack_outcome answer = judge_object(p, at);
    int64_t end = at + p->e.memory_bytes;
    int64_t most = p->mode == HFN_X86_32 ? HFN_ARGUMENTS_MAX : HFN_ARGUMENTS_MAX_64;

    if (answer != HFN_STACK_TOUCHES_CALLER || p->e.index != HFN_X86_NO_REGISTER ||
        p->e.memory_bytes == 0 || end > most || p->opcode[0] == 0x8F) {
        return answer;
    }
    if (p->s->argument_bytes < end) {
        p->s->argument_bytes = (uint16_t)end;
    }
    return HFN_STACK_OK;
}

static hfn_stack_outcome check_memory(const step *p)
{
    const hfn_x86_effects *e = &p->e;
    int32_t base = place_in(p, e->base), index = place_in(p, e->index);

    if (!e->has_memory) {
        return HFN_STACK_OK;
    }
    if (index != HFN_STACK_UNKNOWN) {
        return HFN_STACK_LOST;
    }
    return is_number(base) ? judge_access(p, (int64_t)base + e->displacement) : HFN_STACK_OK;
}

/* Its place is known to be below the return address, unless the stack pointer itself goes there. */
static hfn_stack_outcome step_lea(const step *p)
{
    const hfn_x86_effects *e = &p->e;
    int32_t base = place_in(p, e->base), index = place_in(p, e->index), result = base;

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
        if (judge_object(p, at) != HFN_STACK_OK) {
            return judge_object(p, at);
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

/* What changes rsp by something else than a constant. */
static hfn_stack_outcome move_by_register(const step *p)
{
    const hfn_x86_effects *e = &p->e;
    int32_t source = place_in(p, e->src);
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

/* With an address in the frame.  What is added to it may lead anywhere, like an index; as a number it
 * would be lost. */
static hfn_stack_outcome step_arithmetic(const step *p)
{
    const hfn_x86_effects *e = &p->e;
    bool adds = p->opcode[0] < 0x04, subtracts = (p->opcode[0] & ~3) == 0x28;
    int32_t at = place_in(p, e->dest);
    int64_t constant, result;

    if (e->shape == HFN_X86_ADD && place_in(p, e->src) != HFN_STACK_UNKNOWN) {
        return HFN_STACK_LOST;
    }
    if (e->dest == RSP || at == HFN_STACK_UNKNOWN || e->kills != 0) {
        return HFN_STACK_OK;
    }
    if (adds_constant(p, &constant) && is_number(at)) {
        result = at + constant;
        p->s->at[e->dest] = result < INT32_MIN / 2 ? HFN_STACK_IN_FRAME : (int32_t)result;
        return judge_place(p, result);
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
        result = place_in(p, e->src);
    }
    if (e->shape == HFN_X86_AND && place_in(p, e->dest) != HFN_STACK_UNKNOWN) {
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

/* The address of the return address, kept where it cannot be followed. */
static hfn_stack_outcome check_stored(const step *p)
{
    int32_t at = place_in(p, p->e.stored);

    return is_number(at) && at >= p->return_at ? HFN_STACK_TOUCHES_RETURN : HFN_STACK_OK;
}

/* What of the stack a later call may find: cmp is 39 and 3B of registers or memory (Intel SDM vol. 2). */
static void note_own_address(const step *p)
{
    const hfn_x86_effects *e = &p->e;
    uint32_t own = 0;

    if (e->has_memory && place_in(p, e->base) != HFN_STACK_UNKNOWN) {
        return;
    }
    if (e->has_memory && place_in(p, e->stored) != HFN_STACK_UNKNOWN) {
        p->s->frame_address |= HFN_FRAME_ADDRESS_STORED;
    }
    if ((p->opcode[0] | 2) != 0x3B) {
        return;
    }
    for (uint8_t reg = 0; reg < REGISTERS; reg++) {
        own += (e->reads >> reg & 1) && place_in(p, reg) != HFN_STACK_UNKNOWN;
    }
    if (own == 1) {
        p->s->frame_address |= HFN_FRAME_ADDRESS_COMPARED;
    }
}

/* How much the callee takes from the stack is not known: nothing, is believed; what gives that the lie is
 * seen where the function returns (prove.c). */
static hfn_stack_outcome step_call(const step *p)
{
    uint32_t changes = p->mode == HFN_X86_32 ? CALL_CHANGES_32 : CALL_CHANGES_64;

    if (is_push_of_place(p)) {
        return move_stack(p, (int64_t)p->s->at[RSP] - p->word);
    }
    for (uint32_t i = 0; i < REGISTERS; i++) {
        if (!(changes >> i & 1)) {
            continue;
        }
        if (points_to_arguments(p, (uint8_t)i) && !is_number(p->s->at[HFN_X86_KEPT])) {
            return HFN_STACK_TOUCHES_CALLER; /* it may be passed on: nobody kept it */
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
    int32_t word = word_bytes(mode);
    step p = { mode, word, -word, bytes, bytes, size, { .length = 0 }, state };
    hfn_stack_outcome answer;
    bool keeps, back; /* the address of the arguments */

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
        return HFN_STACK_LOST; /* enter: no compiler writes it */
    }
    if (p.e.shape == HFN_X86_LEA) {
        return step_lea(&p);
    }
    keeps = mode == HFN_X86_32 && is_kept_by_push(&p);
    back = mode == HFN_X86_32 && brings_back(&p);
    answer = keeps ? HFN_STACK_OK : check_memory(&p);
    if (answer == HFN_STACK_OK) {
        answer = step_arithmetic(&p);
    }
    if (answer == HFN_STACK_OK && !keeps) {
        answer = check_stored(&p);
    }
    if (answer != HFN_STACK_OK) {
        return answer;
    }
    note_own_address(&p);
    if (is_call(&p)) {
        return step_call(&p);
    }
    answer = step_stack_pointer(&p);
    step_registers(&p);
    if (keeps && p.opcode[0] != 0xFF) {
        state->at[HFN_X86_KEPT] = state->at[RSP];
    }
    if (back) {
        state->at[p.e.dest] = 0;
    }
    return answer;
}

bool hfn_x86_uses_stack(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size)
{
    hfn_x86_effects e;

    return !hfn_x86_decode_effects(mode, bytes, size, 0, &e) ||
           ((e.reads | e.writes) >> HFN_X86_RSP & 1);
}
