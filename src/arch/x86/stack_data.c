/* SPDX-License-Identifier: MIT */
/* The results of instructions that neither call nor move the stack pointer, for stack_use.c: what a
 * general register, a vector register or a word of the frame holds afterwards. */
#include "arch/x86/stack_step.h"

enum { RSP = HFN_X86_RSP, RCX = 1 };

/* The caller's frame pointer is a number like any other, unless it is copied. */
static int32_t get_number(int32_t value)
{
    return value == HFN_STACK_CALLER_FRAME ? HFN_STACK_UNRELATED : value;
}

static int32_t load_operand(const hfn_x86_step *p)
{
    return p->e.data.loads ? hfn_stack_load(p->s, p->place, p->e.memory_bytes, (uint32_t)p->word)
                           : HFN_STACK_UNRELATED;
}

static int32_t read_register(const hfn_x86_step *p, uint32_t reg)
{
    int32_t value = p->s->at[reg];

    return value == HFN_STACK_ANY_ABOVE_BYTE && (p->e.data.low_reads >> reg & 1)
               ? HFN_STACK_UNRELATED
               : value;
}

/* The join of all that the instruction reads. */
int32_t hfn_x86_join_inputs(const hfn_x86_step *p)
{
    int32_t result = load_operand(p);
    bool any = p->e.data.loads;

    for (uint32_t i = 0; i < HFN_X86_REGISTERS; i++) {
        if (p->e.data.reads >> i & 1) {
            int32_t value = read_register(p, i);
            result = any ? hfn_stack_join(result, value) : value;
            any = true;
        }
    }
    for (uint32_t i = 0; i < HFN_X86_VECTORS; i++) {
        if (p->e.data.vector_reads >> i & 1) {
            int32_t value = hfn_stack_weaken(p->s->at[HFN_X86_VECTOR + i]);
            result = any ? hfn_stack_join(result, value) : value;
            any = true;
        }
    }
    return result;
}

static void write_vectors(const hfn_x86_step *p, int32_t value)
{
    for (uint32_t i = 0; i < HFN_X86_VECTORS; i++) {
        int32_t *to = &p->s->at[HFN_X86_VECTOR + i];
        if (p->e.data.vector_kills >> i & 1) {
            *to = hfn_stack_weaken(value);
        } else if (p->e.data.vector_writes >> i & 1) {
            *to = hfn_stack_join(*to, hfn_stack_weaken(value));
        }
    }
}

void hfn_x86_write_register(const hfn_x86_step *p, uint32_t reg, int32_t value)
{
    if ((p->e.data.partial >> reg & 1) && hfn_stack_is_related(p->s->at[reg])) {
        value = hfn_stack_is_related(value) || !(p->e.data.low_writes >> reg & 1)
                    ? hfn_stack_any_of(value, p->s->at[reg])
                    : HFN_STACK_ANY_ABOVE_BYTE;
    }
    p->s->at[reg] = value;
    if (reg == RCX) {
        p->s->at[HFN_X86_COUNT] = HFN_STACK_UNRELATED;
    }
}

static hfn_stack_outcome store_value(const hfn_x86_step *p, int32_t value)
{
    hfn_stack_outcome outcome = hfn_x86_check_stored(p, p->place, value);

    hfn_stack_store(p->s, p->place, p->e.memory_bytes, value, (uint32_t)p->word);
    return outcome;
}

/* Write a result to all that the instruction writes. */
static hfn_stack_outcome write_result(const hfn_x86_step *p, int32_t value)
{
    for (uint32_t i = 0; i < HFN_X86_REGISTERS; i++) {
        if (i != RSP && (p->e.writes >> i & 1)) {
            hfn_x86_write_register(p, i, value);
        }
    }
    write_vectors(p, get_number(value));
    return p->e.data.stores ? store_value(p, value) : HFN_STACK_OK;
}

static hfn_stack_outcome step_exchange(const hfn_x86_step *p)
{
    const hfn_x86_effects *e = &p->e;
    int32_t held = hfn_x86_get_value(p, e->dest), other = hfn_x86_get_value(p, e->src);
    uint8_t reg = e->dest < HFN_X86_REGISTERS ? e->dest : e->src;

    if (!e->has_memory) {
        hfn_x86_write_register(p, e->dest, other);
        hfn_x86_write_register(p, e->src, held);
        return HFN_STACK_OK;
    }
    reg = e->stored < HFN_X86_REGISTERS ? e->stored : reg;
    held = hfn_x86_get_value(p, reg);
    other = load_operand(p);
    hfn_x86_write_register(p, reg, other);
    return store_value(p, held);
}

/* A constant is added to a register or to a word of memory. */
static hfn_stack_outcome step_addition(const hfn_x86_step *p)
{
    int32_t value = p->e.data.loads ? load_operand(p) : hfn_x86_get_value(p, p->e.dest);
    int32_t result = hfn_stack_add(get_number(value), p->e.data.addend);

    if (hfn_stack_is_exact(result) && hfn_x86_check_object(p, result, 1) != HFN_STACK_OK) {
        return hfn_x86_check_object(p, result, 1);
    }
    return write_result(p, result);
}

/* The low bits of an address are a number; an address without its low bits is not above it. */
static int32_t mask_value(const hfn_x86_step *p)
{
    int32_t value = get_number(p->s->at[p->e.dest]);
    int64_t mask = (int64_t)p->e.immediate;

    if (mask >= 0 && mask < 4096) {
        return HFN_STACK_UNRELATED;
    }
    return p->e.width == p->word         ? hfn_stack_clear_bits(value)
           : hfn_stack_is_related(value) ? HFN_STACK_COMPUTED
                                         : value;
}

/* A part of an address may be passed if the address may; where the stack is at low addresses, it is
 * the address. */
static int32_t get_part(const hfn_x86_step *p, int32_t value)
{
    if (!hfn_stack_is_related(value)) {
        return HFN_STACK_UNRELATED; /* no longer the caller's frame pointer */
    }
    if (hfn_stack_is_any(value)) {
        return hfn_stack_any_of(value, value);
    }
    return hfn_x86_check_passed(p, value) == HFN_STACK_OK ? HFN_STACK_ANY : HFN_STACK_COMPUTED;
}

static int32_t sum_values(const hfn_x86_step *p, int32_t input)
{
    const hfn_x86_effects *e = &p->e;

    if (e->has_memory && hfn_stack_is_related(input)) {
        return hfn_stack_index(p->s, input, p->s->at[e->dest]);
    }
    return hfn_x86_add_index(p, e->dest, e->has_memory ? HFN_X86_NO_REGISTER : e->src, 1);
}

hfn_stack_outcome hfn_x86_step_data(const hfn_x86_step *p)
{
    const hfn_x86_effects *e = &p->e;
    int32_t input;

    switch (e->data.kind) {
    case HFN_X86_MOVES_NOTHING: return HFN_STACK_OK;
    case HFN_X86_EXCHANGES: return step_exchange(p);
    case HFN_X86_ADDS: return step_addition(p);
    case HFN_X86_COPIES: return write_result(p, hfn_x86_join_inputs(p));
    case HFN_X86_COPIES_PART: return write_result(p, get_part(p, hfn_x86_join_inputs(p)));
    case HFN_X86_SELECTS:
        input = e->has_memory ? load_operand(p) : hfn_x86_get_value(p, e->src);
        return write_result(p, get_number(hfn_stack_join(p->s->at[e->dest], input)));
    case HFN_X86_SUMS:
        if (e->dest < HFN_X86_REGISTERS) {
            input = e->has_memory ? load_operand(p) : hfn_x86_get_value(p, e->src);
            return write_result(p, sum_values(p, input));
        }
        break;
    case HFN_X86_SUBTRACTS:
        if (e->dest < HFN_X86_REGISTERS) {
            input = e->has_memory ? load_operand(p) : hfn_x86_get_value(p, e->src);
            return write_result(
                p, hfn_stack_subtract(get_number(p->s->at[e->dest]), get_number(input)));
        }
        break;
    default: break;
    }
    if (e->shape == HFN_X86_AND && e->dest < HFN_X86_REGISTERS && !e->has_memory) {
        return write_result(p, mask_value(p));
    }
    input = hfn_x86_join_inputs(p);
    return write_result(p, hfn_stack_is_related(input) ? HFN_STACK_COMPUTED : HFN_STACK_UNRELATED);
}
