/* SPDX-License-Identifier: MIT */
/*
 * Addresses of the stack plus an index, for stack_use.c.
 *
 * A number with a known limit (a zero-extended byte, a masked value, a number that a comparison
 * bounds) moves the upper bound of an address by that limit.  Of any other index only this is
 * known: it stays inside the object at whose beginning the pointer points.  verdicts/prove.c
 * requires evidence that an object begins there.  The stack pointer and the frame pointer are bases
 * of the whole frame, so constants may be folded into what they address.
 *
 * The offset of a virtual base is loaded from before the table to which the object's first word
 * points (Itanium C++ ABI, 2.5.2), and added to the object's address.
 */
#include "arch/x86/stack_step.h"

#define ZERO_EXTENDED (UINT64_C(1) << 32)

enum { OPCODE_SHIFT_BY_1 = 0xD1, OPCODE_SHIFT = 0xC1, SHIFT_RIGHT = 5 };

static uint64_t get_limit(const hfn_x86_step *p, uint8_t reg)
{
    return reg < HFN_STACK_NUMBERS ? p->s->below[reg] : 0;
}

/* i386 passes structures on the stack, so there each exact address may be such a base. */
static bool is_frame_base(const hfn_x86_step *p, uint8_t reg)
{
    return (p->mode == HFN_X86_32 || reg == HFN_X86_RSP || reg == HFN_X86_RBP) &&
           hfn_stack_is_exact(hfn_x86_get_value(p, reg));
}

/* ANY if the limit is unknown or the sum is no address of the stack. */
static int32_t add_limited(int32_t pointer, uint64_t below, uint32_t scale)
{
    if (below == 0 || below > HFN_STACK_LIMIT || !hfn_stack_has_bound(pointer) ||
        hfn_stack_is_any(pointer)) {
        return HFN_STACK_ANY;
    }
    return hfn_stack_add(hfn_stack_clear_bits(pointer), (int64_t)(below - 1) * scale);
}

int32_t hfn_x86_add_index(const hfn_x86_step *p, uint8_t pointer, uint8_t index, uint32_t scale)
{
    int32_t a = hfn_x86_get_value(p, pointer), b = hfn_x86_get_value(p, index), sum;
    bool is_swapped = scale == 1 && hfn_stack_is_related(b) && !hfn_stack_is_related(a);

    if (hfn_stack_is_related(b) && !is_swapped) {
        return hfn_stack_any_of(a, b);
    }
    sum = is_swapped ? add_limited(b, get_limit(p, pointer), 1)
                     : add_limited(a, get_limit(p, index), scale);
    if (!hfn_stack_is_any(sum)) {
        return sum;
    }
    return is_frame_base(p, is_swapped ? index : pointer) ? HFN_STACK_ANY
                                                          : hfn_stack_index(p->s, a, b);
}

bool hfn_x86_add_base_offset(hfn_x86_step *p)
{
    const hfn_x86_effects *e = &p->e;
    int32_t base = hfn_x86_get_value(p, e->base);

    if (p->mode != HFN_X86_64 || !hfn_stack_is_exact(base) || e->index >= HFN_X86_REGISTERS ||
        e->scale != 1 || !(p->s->base_offsets >> e->index & 1)) {
        return false;
    }
    hfn_stack_note_object(p->s, base + (int32_t)e->displacement, true);
    p->place = HFN_STACK_MAYBE(HFN_STACK_UNBOUNDED);
    return true;
}

bool hfn_x86_loads_base_offset(const hfn_x86_step *p)
{
    const hfn_x86_effects *e = &p->e;

    return !hfn_stack_is_related(hfn_x86_get_value(p, e->base)) && e->shape == HFN_X86_LOAD &&
           e->width == p->word && e->base < HFN_X86_REGISTERS && e->index == HFN_X86_NO_REGISTER &&
           e->displacement < 0 && e->displacement % p->word == 0;
}

/* ---- Limits of numbers. */

static uint64_t get_smaller(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* 0 unless the sum is far from the sign bit of 32-bit numbers. */
static uint64_t add_to_limit(uint64_t below, int64_t addend)
{
    return below != 0 && addend >= 0 && addend < HFN_STACK_LIMIT && below < HFN_STACK_LIMIT
               ? below + (uint64_t)addend
               : 0;
}

/* movzx, or a move that clears the upper half. */
static uint64_t limit_moved(const hfn_x86_step *p, uint64_t source)
{
    switch (p->e.width) {
    case 1: return 256;
    case 2: return 65536;
    case 4: return get_smaller(source, ZERO_EXTENDED);
    default: return source;
    }
}

static uint64_t limit_lea(const hfn_x86_step *p)
{
    const hfn_x86_effects *e = &p->e;
    uint64_t base = e->base == HFN_X86_NO_REGISTER ? 1 : get_limit(p, e->base), index = 1;

    if (e->index != HFN_X86_NO_REGISTER) {
        index = get_limit(p, e->index);
        index = index == 0 || index > HFN_STACK_LIMIT ? 0 : (index - 1) * e->scale + 1;
    }
    return index == 0 ? 0 : add_to_limit(add_to_limit(base, (int64_t)index - 1), e->displacement);
}

static bool has_rex_w(const hfn_x86_step *p)
{
    return p->mode == HFN_X86_64 && p->opcode > p->bytes && (p->opcode[-1] & 0xF8) == 0x48;
}

/* shr reg, n (Intel SDM vol. 2, SAL/SAR/SHL/SHR); 0 for other instructions. */
static uint64_t limit_shift(const hfn_x86_step *p, uint64_t below)
{
    bool is_shift = p->opcode[0] == OPCODE_SHIFT || p->opcode[0] == OPCODE_SHIFT_BY_1;
    uint32_t bits;

    if (!is_shift || (p->opcode[1] >> 3 & 7) != SHIFT_RIGHT || p->opcode[1] < 0xC0) {
        return 0;
    }
    bits = p->opcode[0] == OPCODE_SHIFT_BY_1 ? 1 : p->bytes[p->e.length - 1];
    bits &= has_rex_w(p) ? 63 : 31;
    below = has_rex_w(p) ? below : get_smaller(below, ZERO_EXTENDED);
    if (below == 0) {
        return bits > 32 ? UINT64_C(1) << (64 - bits) : 0;
    }
    return ((below - 1) >> bits) + 1;
}

static bool clears_register(const hfn_x86_step *p)
{
    return (p->opcode[0] == 0x31 || p->opcode[0] == 0x33) && p->e.data.reads == 0 &&
           !p->e.has_memory;
}

/* The limit of the register that the instruction writes; 0: unknown. */
static uint64_t find_limit(const hfn_x86_step *p, uint8_t reg)
{
    const hfn_x86_effects *e = &p->e;
    uint64_t own = get_limit(p, reg), source = get_limit(p, e->src);

    if (e->data.partial >> reg & 1) {
        return 0;
    }
    if (clears_register(p)) {
        return 1;
    }
    switch (e->shape) {
    case HFN_X86_CONSTANT:
        return (int64_t)e->immediate >= 0 && e->width >= 4 ? add_to_limit(1, (int64_t)e->immediate)
                                                           : 0;
    case HFN_X86_MOVE: return limit_moved(p, source);
    case HFN_X86_LOAD: return limit_moved(p, 0);
    case HFN_X86_EXTEND: return source < ZERO_EXTENDED / 2 ? source : 0;
    case HFN_X86_AND: return (int64_t)e->immediate >= 0 ? get_smaller(own, e->immediate + 1) : own;
    case HFN_X86_LEA: return limit_lea(p);
    default: break;
    }
    if (e->data.kind == HFN_X86_ADDS) {
        return add_to_limit(own, e->data.addend);
    }
    return limit_shift(p, own);
}

static uint8_t get_written_register(const hfn_x86_step *p)
{
    for (uint8_t reg = 0; reg < HFN_X86_REGISTERS; reg++) {
        if (p->e.writes == 1u << reg) {
            return reg;
        }
    }
    return HFN_X86_NO_REGISTER;
}

/* The low nibble of the opcode (Intel SDM vol. 2, Jcc), or -1 for loop and jrcxz. */
static int get_condition(const uint8_t *bytes, uint64_t size)
{
    while (size > 2 && (*bytes == 0x3E || *bytes == 0x2E || *bytes == 0xF2)) { /* hints, bnd */
        bytes++;
        size--;
    }
    if (size >= 2 && (bytes[0] & 0xF0) == 0x70) {
        return bytes[0] & 0xF;
    }
    return size >= 6 && bytes[0] == 0x0F && (bytes[1] & 0xF0) == 0x80 ? bytes[1] & 0xF : -1;
}

static void update_comparison(const hfn_x86_step *p)
{
    hfn_stack_comparison *compared = &p->s->compared;

    if (get_condition(p->bytes, p->e.length) >= 0) {
        return;
    }
    if (p->e.shape == HFN_X86_COMPARE && p->e.dest < HFN_STACK_NUMBERS && !p->e.has_memory) {
        *compared = (hfn_stack_comparison){ true, p->e.dest, p->e.width, p->e.immediate };
    } else if (p->e.flags_written != 0 || p->e.data.kind != HFN_X86_COPIES ||
               (compared->is_known && p->e.writes >> compared->reg & 1)) {
        compared->is_known = false;
    }
}

void hfn_x86_update_limits(const hfn_x86_step *p, uint32_t changed_by_call)
{
    uint8_t reg = get_written_register(p);
    uint64_t limit = reg != HFN_X86_NO_REGISTER && changed_by_call == 0 ? find_limit(p, reg) : 0;
    uint32_t writes = p->e.opaque ? UINT32_MAX : p->e.writes | changed_by_call;

    for (uint32_t i = 0; i < HFN_STACK_NUMBERS; i++) {
        p->s->below[i] = writes >> i & 1 ? 0 : p->s->below[i];
    }
    p->s->base_offsets &= ~writes;
    if (reg != HFN_X86_NO_REGISTER && !p->e.opaque) {
        p->s->below[reg] = limit;
        p->s->base_offsets |= p->loads_base_offset ? 1u << reg : 0;
    }
    update_comparison(p);
    if (changed_by_call != 0) {
        p->s->compared.is_known = false;
    }
}

/* ---- Conditional jumps. */

/* A comparison of 4 bytes shows nothing about the upper half, which must be known to be 0. */
void hfn_x86_apply_condition(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size, bool is_taken,
                             hfn_stack_state *s)
{
    enum { BELOW = 2, EQUAL = 4, NOT_ABOVE = 6 };
    const hfn_stack_comparison *c = &s->compared;
    int condition = get_condition(bytes, size);
    uint64_t below = 0;

    if (condition < 0 || !c->is_known || (int64_t)c->constant < 0 ||
        c->constant >= HFN_STACK_LIMIT) {
        return;
    }
    if (!(c->width == 8 || (c->width == 4 && mode == HFN_X86_32) ||
          (c->width == 4 && s->below[c->reg] != 0 && s->below[c->reg] <= ZERO_EXTENDED))) {
        return;
    }
    switch ((condition & 0xE)) {
    case BELOW: below = c->constant; break;
    case EQUAL:
    case NOT_ABOVE: below = c->constant + 1; break;
    default: return;
    }
    /* An odd number is the opposite condition. */
    if ((condition & 1) != is_taken && below != 0) {
        s->below[c->reg] = get_smaller(s->below[c->reg], below);
    }
}
