/* SPDX-License-Identifier: MIT */
/* Shared by the files that follow the stack through an instruction. */
#ifndef HFN_ARCH_X86_STACK_STEP_H
#define HFN_ARCH_X86_STACK_STEP_H

#include "arch/x86/stack_use.h"

/* NEAR_BYTES: a callee pops at most two words that its caller does not expect. */
enum { HFN_X86_REGISTERS = 16, HFN_X86_RBP = 5, HFN_X86_NEAR_BYTES = 8 };

/* An instruction, and the state before it, which becomes the state after it. */
typedef struct hfn_x86_step {
    hfn_x86_mode mode;
    int32_t word, return_at;       /* bytes of a word; place of the return address */
    const uint8_t *bytes, *opcode; /* opcode: after the prefixes */
    uint64_t size;
    hfn_x86_effects e;
    hfn_stack_state *s;
    int32_t place; /* value of the memory operand's address */
    bool loads_base_offset;
} hfn_x86_step;

static inline int32_t hfn_x86_get_value(const hfn_x86_step *p, uint8_t reg)
{
    return reg < HFN_X86_REGISTERS ? p->s->at[reg] : HFN_STACK_UNRELATED;
}

/* stack_access.c: compute p->place and check the access to it. */
hfn_stack_outcome hfn_x86_check_memory(hfn_x86_step *p);
/* Check the address of `bytes` bytes, all of which must be in the function's own frame. */
hfn_stack_outcome hfn_x86_check_object(const hfn_x86_step *p, int64_t at, uint32_t bytes);
/* Note that the function takes an address in its home space; false if the value is not such an
 * address. */
bool hfn_x86_note_home_address(const hfn_x86_step *p, int32_t value);
/* May the value be stored to memory or passed on? */
hfn_stack_outcome hfn_x86_check_passed(const hfn_x86_step *p, int32_t value);
hfn_stack_outcome hfn_x86_check_stored(const hfn_x86_step *p, int32_t place, int32_t value);
/* stack_data.c: the join of all that the instruction reads. */
int32_t hfn_x86_join_inputs(const hfn_x86_step *p);
void hfn_x86_write_register(const hfn_x86_step *p, uint32_t reg, int32_t value);
hfn_stack_outcome hfn_x86_step_data(const hfn_x86_step *p);

/* stack_index.c: the sum of two registers' values, one of which may be an address that the other
 * indexes by elements of `scale` bytes; the second register is the scaled one. */
int32_t hfn_x86_add_index(const hfn_x86_step *p, uint8_t pointer, uint8_t index, uint32_t scale);
/* Does the instruction load what may be the offset of a virtual base?  Is its operand's address the
 * address of an object plus such an offset?  Then that is noted, and p->place set. */
bool hfn_x86_loads_base_offset(const hfn_x86_step *p);
bool hfn_x86_add_base_offset(hfn_x86_step *p);
/* Update the limits of numbers after the instruction. */
void hfn_x86_update_limits(const hfn_x86_step *p, uint32_t changed_by_call);

/* movs, stos, lods, scas, cmps. */
hfn_stack_outcome hfn_x86_step_repeated(hfn_x86_step *p);

#endif
