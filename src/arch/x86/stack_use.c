/* SPDX-License-Identifier: MIT */
/*
 * Follows the stack through an instruction: the values of all registers and of the words of the
 * frame in the domain of arch/stack_value.h, and whether the instruction accesses the return
 * address or the bytes above it.  docs/design/timing-proof.md lists the transfer functions: an
 * instruction that is none of the kinds below makes its results ANY if it reads a related value.
 */
#include "arch/x86/stack_use.h"

#include "arch/x86/relocate.h"
#include "arch/x86/stack_step.h"

#include <string.h>

enum { RSP = HFN_X86_RSP, RBP = HFN_X86_RBP, RCX = 1, PUSHED_WORDS = 4 };

/* Registers that a callee may change: rax, rcx, rdx, rsi, rdi, r8 to r11 (System V x86-64 psABI,
 * 3.2.1); eax, ecx, edx (i386 psABI, table 2.3); and those that hold its result. */
#define CALL_CHANGES_64 0x0FC7u
#define CALL_CHANGES_32 0x0007u
#define RESULTS 0x0005u
/* rcx, rdx, rsi, rdi, r8, r9: only these carry what a caller computes. */
#define ARGUMENTS 0x03C6u

static int32_t get_word_bytes(hfn_x86_mode mode)
{
    return mode == HFN_X86_32 ? 4 : 8;
}

void hfn_x86_begin_stack(hfn_x86_mode mode, hfn_stack_state *state)
{
    *state = (hfn_stack_state){ .elsewhere = HFN_STACK_UNRELATED };
    for (int i = 0; i < HFN_STACK_REGISTERS; i++) {
        state->at[i] = HFN_STACK_UNRELATED;
    }
    state->at[RSP] = -get_word_bytes(mode);
    state->at[RBP] = HFN_STACK_CALLER_FRAME;
}

/* ---- The stack pointer. */

static hfn_stack_outcome move_stack(const hfn_x86_step *p, int32_t to)
{
    int32_t bound = hfn_stack_get_bound(to);

    if (!hfn_stack_is_address(to) || bound == HFN_STACK_UNBOUNDED) {
        return HFN_STACK_LOST;
    }
    if (bound > p->return_at) {
        return HFN_STACK_TOUCHES_RETURN;
    }
    p->s->at[RSP] = to;
    return HFN_STACK_OK;
}

static void find_opcode(hfn_x86_step *p)
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

static bool is_call(const hfn_x86_step *p)
{
    return p->opcode[0] == 0xE8 ||
           (p->opcode[0] == 0xFF && p->e.length > 1 && (p->opcode[1] >> 3 & 7) == 2);
}

/* call +0, with which i386 code obtains its own address */
static bool pushes_own_address(const hfn_x86_step *p)
{
    return p->mode == HFN_X86_32 && p->e.length == 5 && memcmp(p->opcode, "\xE8\0\0\0", 5) == 0;
}

/* i386: ret n pops the arguments of a stdcall function, or the pointer to a returned struct. */
static hfn_stack_outcome step_return(const hfn_x86_step *p)
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

static hfn_stack_outcome step_leave(const hfn_x86_step *p)
{
    int32_t frame = p->s->at[RBP];

    p->s->uncertain_calls = 0;
    if (!hfn_stack_is_exact(frame)) {
        return HFN_STACK_LOST;
    }
    if (frame >= p->return_at) {
        return HFN_STACK_TOUCHES_RETURN;
    }
    p->s->at[RBP] = hfn_stack_load(p->s, frame, (uint32_t)p->word, (uint32_t)p->word);
    return move_stack(p, frame + p->word);
}

/* i386: a function that realigns its stack addresses its arguments through a register from then
 * on: lea ecx, [esp + 4]; and esp, -16; push dword [ecx - 4] (for debuggers); ...; push ecx;
 * ...; pop ecx; lea esp, [ecx - 4]; ret.  The bytes that `and` skips are unknown; they count as
 * 0, so that the whole frame appears closer to the return address than it is. */
static bool points_to_arguments(const hfn_x86_step *p, uint8_t reg)
{
    return hfn_x86_get_value(p, reg) == 0;
}

static bool begins_realignment(const hfn_x86_step *p)
{
    const uint8_t *next = p->bytes + p->e.length;

    return p->mode == HFN_X86_32 && p->size >= p->e.length + 3u && next[0] == 0x83 &&
           next[1] == 0xE4 && next[2] >= 0x80;
}

static bool is_realignment(const hfn_x86_step *p)
{
    if (p->mode != HFN_X86_32 || p->e.dest != RSP || p->e.shape != HFN_X86_AND) {
        return false;
    }
    for (uint8_t reg = 0; reg < HFN_X86_REGISTERS; reg++) {
        if (points_to_arguments(p, reg)) {
            return true;
        }
    }
    return false;
}

/* Is it a push of the return address's copy, or of the argument pointer? */
static bool saves_argument_pointer(const hfn_x86_step *p)
{
    const hfn_x86_effects *e = &p->e;

    if (p->opcode[0] == 0xFF && (p->opcode[1] >> 3 & 7) == 6) {
        return points_to_arguments(p, e->base) && e->index == HFN_X86_NO_REGISTER &&
               e->displacement == p->return_at;
    }
    return (p->opcode[0] & 0xF8) == 0x50 && points_to_arguments(p, e->stored);
}

/* Is it a load or a pop of the saved argument pointer? */
static bool restores_argument_pointer(const hfn_x86_step *p)
{
    const hfn_x86_effects *e = &p->e;
    int32_t base = hfn_x86_get_value(p, e->base);

    if (!hfn_stack_is_exact(p->s->at[HFN_X86_KEPT]) || e->dest >= HFN_X86_REGISTERS ||
        e->dest == RSP) {
        return false;
    }
    if ((p->opcode[0] & 0xF8) == 0x58) {
        return p->s->at[RSP] == p->s->at[HFN_X86_KEPT];
    }
    return e->shape == HFN_X86_LOAD && e->width == p->word && hfn_stack_is_exact(base) &&
           e->index == HFN_X86_NO_REGISTER && base + e->displacement == p->s->at[HFN_X86_KEPT];
}

/* The result of lea must be below the return address, unless the stack pointer is set to it. */
static hfn_stack_outcome step_lea(hfn_x86_step *p)
{
    const hfn_x86_effects *e = &p->e;
    int32_t base = hfn_x86_get_value(p, e->base), index = hfn_x86_get_value(p, e->index);
    int32_t result = hfn_stack_add(base, e->displacement);
    bool truncates = memchr(p->bytes, 0x67, (size_t)(p->opcode - p->bytes)) != NULL;

    if (e->index != HFN_X86_NO_REGISTER && !truncates) {
        result = hfn_x86_add_index(p, e->base, e->index, e->scale);
        if (hfn_stack_is_any(result) && hfn_x86_add_base_offset(p)) {
            result = p->place;
        } else if (hfn_stack_is_any(result) && (e->base == RSP || e->base == RBP) &&
                   hfn_stack_is_exact(base)) {
            return HFN_STACK_TOUCHES_CALLER; /* as an access with this index */
        }
        result = hfn_stack_add(result, e->displacement);
    } else if (truncates && hfn_stack_is_related(hfn_stack_join(base, index))) {
        result = HFN_STACK_ANY;
    }
    if (e->dest == RSP) {
        p->s->uncertain_calls = e->base != RBP && base != 0 ? p->s->uncertain_calls : 0;
        return move_stack(p, result);
    }
    if (result == 0 && e->base == RSP && e->dest < HFN_X86_REGISTERS && begins_realignment(p)) {
        p->s->at[e->dest] = 0;
        return HFN_STACK_OK;
    }
    if (hfn_stack_is_exact(result) && !hfn_x86_note_home_address(p, result) &&
        hfn_x86_check_object(p, result, 1) != HFN_STACK_OK) {
        return hfn_x86_check_object(p, result, 1);
    }
    if (e->dest < HFN_X86_REGISTERS) {
        p->s->at[e->dest] = result == HFN_STACK_CALLER_FRAME ? HFN_STACK_UNRELATED : result;
    }
    return HFN_STACK_OK;
}

/* Follow a write to rsp.  A subtraction of an unknown number allocates that many bytes. */
static hfn_stack_outcome step_stack_pointer(const hfn_x86_step *p)
{
    const hfn_x86_effects *e = &p->e;
    int32_t source = hfn_x86_get_value(p, e->src), rsp = p->s->at[RSP], growth;
    bool subtracts = p->opcode[0] == 0x29 || p->opcode[0] == 0x2B;

    if (is_realignment(p)) {
        return HFN_STACK_OK;
    }
    if (hfn_x86_get_stack_growth(p->mode, p->bytes, p->size, &growth)) {
        return move_stack(p, hfn_stack_add(rsp, -(int64_t)growth));
    }
    if (e->dest == RSP && e->shape == HFN_X86_MOVE && e->width == p->word) {
        p->s->uncertain_calls =
            e->src != RBP || !hfn_stack_is_exact(source) ? p->s->uncertain_calls : 0;
        return move_stack(p, source);
    }
    if (e->dest == RSP && ((e->shape == HFN_X86_AND && (int64_t)e->immediate < 0) ||
                           (subtracts && !hfn_stack_is_related(source)))) {
        p->s->at[RSP] = hfn_stack_clear_bits(rsp);
        return HFN_STACK_OK;
    }
    return HFN_STACK_LOST;
}

/* ---- Notes. */

/* Note a comparison (Intel SDM vol. 2, CMP: 39 and 3B) of an address of the frame with another
 * value. */
static void note_comparison(const hfn_x86_step *p)
{
    const hfn_x86_effects *e = &p->e;
    uint32_t own = 0;

    if ((p->opcode[0] | 2) != 0x3B ||
        (e->has_memory && hfn_stack_is_related(hfn_x86_get_value(p, e->base)))) {
        return;
    }
    for (uint8_t reg = 0; reg < HFN_X86_REGISTERS; reg++) {
        own += (e->reads >> reg & 1) && hfn_stack_is_address(p->s->at[reg]);
    }
    if (own == 1) {
        p->s->frame_address |= HFN_FRAME_ADDRESS_COMPARED;
    }
}

/* mov ecx, n */
static void note_count(const hfn_x86_step *p)
{
    if (p->e.shape == HFN_X86_CONSTANT && p->e.dest == RCX && p->e.width >= 4 &&
        (int64_t)p->e.immediate >= 0 && (int64_t)p->e.immediate < 4096) {
        p->s->at[HFN_X86_COUNT] = (int32_t)p->e.immediate;
    }
}

/* ---- Calls. */

static uint32_t get_changed_registers(hfn_x86_mode mode)
{
    return mode == HFN_X86_32 ? CALL_CHANGES_32 : CALL_CHANGES_64;
}

/* A register that the callee preserves does not carry an argument in compiled code, but may in code
 * written by hand; the caller's own arguments must not be reached through it. */
static hfn_stack_outcome check_kept(const hfn_x86_step *p, int32_t value)
{
    bool saves_arguments = value == 0 && hfn_stack_is_exact(p->s->at[HFN_X86_KEPT]);

    return hfn_stack_has_bound(value) && hfn_stack_get_bound(value) >= 0 && !saves_arguments
               ? hfn_x86_check_passed(p, value)
               : HFN_STACK_OK;
}

hfn_stack_outcome hfn_x86_leave_stack(hfn_x86_mode mode, const hfn_stack_state *state)
{
    hfn_stack_state copy = *state;
    const hfn_x86_step p = { .mode = mode, .return_at = -get_word_bytes(mode), .s = &copy };
    hfn_stack_outcome outcome = HFN_STACK_OK;

    for (uint32_t i = 0; i < HFN_X86_REGISTERS && outcome == HFN_STACK_OK; i++) {
        int32_t value = state->at[i];
        if (value == HFN_STACK_COMPUTED) { /* forbidden in each register */
            outcome = HFN_STACK_LOST;
        } else if (!(get_changed_registers(mode) >> i & 1)) {
            outcome = check_kept(&p, value);
        } else if (!hfn_stack_is_any(value)) {
            outcome = hfn_x86_check_passed(&p, value);
        }
    }
    return outcome;
}

/* i386: addresses of objects among the first words that the callee may take as arguments. */
static void note_pushed_objects(const hfn_x86_step *p)
{
    int32_t low = p->s->at[RSP], high = low + PUSHED_WORDS * p->word;

    for (uint32_t i = 0; p->mode == HFN_X86_32 && i < p->s->cell_count; i++) {
        const hfn_stack_cell *cell = &p->s->cells[i];
        if (hfn_stack_is_exact(low) && cell->at >= low && cell->at < high &&
            hfn_stack_has_bound(cell->value)) {
            hfn_stack_note_object(p->s, hfn_stack_get_bound(cell->value), false);
        }
    }
}

/* How many bytes the callee pops is unknown and assumed to be 0; a wrong assumption shows where
 * the function returns (verdicts/prove.c).  A register that the callee may change can also keep its
 * value: gcc's -fipa-ra relies on that for callees that it knows. */
static hfn_stack_outcome step_call(const hfn_x86_step *p)
{
    hfn_stack_outcome outcome;

    if (pushes_own_address(p)) {
        outcome = move_stack(p, hfn_stack_add(p->s->at[RSP], -p->word));
        hfn_stack_store(p->s, p->s->at[RSP], (uint32_t)p->word, HFN_STACK_UNRELATED,
                        (uint32_t)p->word);
        return outcome;
    }
    for (uint8_t i = 0; i < HFN_X86_REGISTERS; i++) {
        if (!(get_changed_registers(p->mode) >> i & 1)) {
            continue;
        }
        if (points_to_arguments(p, i) && hfn_stack_is_exact(p->s->at[HFN_X86_KEPT])) {
            p->s->at[i] = HFN_STACK_UNRELATED; /* the argument pointer, not an argument */
        } else if (points_to_arguments(p, i) && p->s->home_bytes == 0) {
            return HFN_STACK_TOUCHES_CALLER; /* not saved, so it is an argument */
        }
    }
    outcome = hfn_x86_leave_stack(p->mode, p->s);
    if (outcome != HFN_STACK_OK) {
        return outcome;
    }
    note_pushed_objects(p);
    for (uint32_t i = 0; i < HFN_X86_REGISTERS; i++) {
        if ((ARGUMENTS >> i & 1) && hfn_stack_has_bound(p->s->at[i])) {
            hfn_stack_note_object(p->s, hfn_stack_get_bound(p->s->at[i]), false);
        }
    }
    for (uint32_t i = 0; i < HFN_X86_REGISTERS; i++) {
        if (get_changed_registers(p->mode) >> i & 1) {
            hfn_x86_write_register(
                p, i, RESULTS >> i & 1 ? HFN_STACK_UNRELATED : hfn_stack_weaken(p->s->at[i]));
        }
    }
    if (p->mode == HFN_X86_32 && p->s->uncertain_calls < HFN_MAX_UNCERTAIN_CALLS) {
        p->s->uncertain_calls++;
    }
    return HFN_STACK_OK;
}

/* ---- push and pop. */

static bool is_push(const hfn_x86_step *p)
{
    uint8_t opcode = p->opcode[0];

    return (opcode & 0xF8) == 0x50 || opcode == 0x68 || opcode == 0x6A ||
           (opcode == 0xFF && (p->opcode[1] >> 3 & 7) == 6);
}

static hfn_stack_outcome step_push(hfn_x86_step *p, bool saves)
{
    int32_t value = hfn_x86_join_inputs(p);
    hfn_stack_outcome outcome;

    value = p->opcode[0] == 0x68 || p->opcode[0] == 0x6A || saves ? HFN_STACK_UNRELATED : value;
    if ((p->opcode[0] & 0xF8) == 0x50) {
        value = saves ? HFN_STACK_UNRELATED : p->s->at[p->e.stored];
    }
    outcome = hfn_x86_check_stored(p, hfn_stack_add(p->s->at[RSP], -p->word), value);
    if (outcome == HFN_STACK_OK) {
        outcome = step_stack_pointer(p);
    }
    hfn_stack_store(p->s, p->s->at[RSP], (uint32_t)p->word, value, (uint32_t)p->word);
    return outcome;
}

/* pop of a whole general register, not of rsp. */
static bool is_pop(const hfn_x86_step *p)
{
    return (p->opcode[0] & 0xF8) == 0x58 && p->e.dest < HFN_X86_REGISTERS && p->e.dest != RSP;
}

static hfn_stack_outcome step_pop(const hfn_x86_step *p)
{
    int32_t value = hfn_stack_load(p->s, p->s->at[RSP], (uint32_t)p->word, (uint32_t)p->word);

    hfn_x86_write_register(p, p->e.dest, value);
    return step_stack_pointer(p);
}

/* ---- One instruction. */

/* Instructions that are followed as a whole; others go on to step_other. */
static hfn_stack_outcome step_other(hfn_x86_step *p, bool saves)
{
    hfn_stack_outcome outcome;

    note_comparison(p);
    if (is_call(p)) {
        return step_call(p);
    }
    if (is_push(p)) {
        return step_push(p, saves);
    }
    if (is_pop(p)) {
        return step_pop(p);
    }
    if (p->e.data.kind == HFN_X86_REPEATS) {
        return hfn_x86_step_repeated(p);
    }
    if (p->e.writes >> RSP & 1) {
        outcome = step_stack_pointer(p);
        if (outcome != HFN_STACK_OK || p->e.dest == RSP) {
            return outcome;
        }
    }
    outcome = hfn_x86_step_data(p);
    note_count(p);
    if (p->e.opaque) { /* the kernel returns a result */
        p->s->at[0] = HFN_STACK_UNRELATED;
    }
    return outcome;
}

static hfn_stack_outcome step_values(hfn_x86_step *p)
{
    hfn_stack_state *state = p->s;
    hfn_stack_outcome outcome;
    bool saves, restores; /* the pointer to the arguments */

    if (memchr("\xC2\xC3\xCA\xCB\xCF", p->opcode[0], 5)) {
        return step_return(p);
    }
    if (p->opcode[0] == 0xC9) {
        return step_leave(p);
    }
    if (p->opcode[0] == 0xC8) {
        return HFN_STACK_LOST; /* enter: compilers do not emit it */
    }
    if (p->e.shape == HFN_X86_LEA) {
        return step_lea(p);
    }
    saves = p->mode == HFN_X86_32 && saves_argument_pointer(p);
    restores = p->mode == HFN_X86_32 && restores_argument_pointer(p);
    outcome = saves ? HFN_STACK_OK : hfn_x86_check_memory(p);
    if (outcome == HFN_STACK_OK) {
        outcome = step_other(p, saves);
    }
    if (saves && p->opcode[0] != 0xFF) {
        state->at[HFN_X86_KEPT] = state->at[RSP];
    }
    if (restores) {
        state->at[p->e.dest] = 0;
    }
    return outcome;
}

hfn_stack_outcome hfn_x86_step_stack(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size,
                                     uint64_t rva, hfn_stack_state *state)
{
    int32_t word = get_word_bytes(mode);
    hfn_x86_step p = { .mode = mode,
                       .word = word,
                       .return_at = -word,
                       .bytes = bytes,
                       .opcode = bytes,
                       .size = size,
                       .s = state };
    hfn_stack_outcome outcome;

    if (!hfn_x86_decode_effects(mode, bytes, size, rva, &p.e) ||
        !hfn_stack_is_address(state->at[RSP]) || p.e.data.backwards) {
        return HFN_STACK_LOST;
    }
    find_opcode(&p);
    p.loads_base_offset = hfn_x86_loads_base_offset(&p);
    outcome = step_values(&p);
    hfn_x86_update_limits(&p, is_call(&p) ? get_changed_registers(mode) | RESULTS : 0);
    return outcome;
}

bool hfn_x86_uses_stack(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size)
{
    hfn_x86_effects e;

    return !hfn_x86_decode_effects(mode, bytes, size, 0, &e) ||
           ((e.reads | e.writes) >> HFN_X86_RSP & 1);
}
