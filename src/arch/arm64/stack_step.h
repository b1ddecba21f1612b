/* SPDX-License-Identifier: MIT */
/* Shared by the files that follow the stack through an instruction: values of registers, and
 * access to them. */
#ifndef HFN_ARCH_ARM64_STACK_STEP_H
#define HFN_ARCH_ARM64_STACK_STEP_H

#include "arch/arm64/decode.h"
#include "arch/arm64/relocate.h"
#include "arch/arm64/stack_use.h"

/* Indexes in hfn_stack_state.at. */
enum {
    HFN_ARM64_SP = 31,
    HFN_ARM64_FRAME = 29,
    HFN_ARM64_LINK = 30,
    HFN_ARM64_SECOND_PLACE = HFN_ARM64_RETURN_PLACE + 1, /* the return address may be saved twice */
    HFN_ARM64_VECTOR /* v0 to v31, joined over the words of each */
};

/* An instruction, and the state before it, which becomes the state after it. */
typedef struct hfn_arm64_step {
    uint32_t word;
    hfn_stack_state *s;
} hfn_arm64_step;

/* Register fields of an instruction. */
static inline uint32_t hfn_arm64_get_rd(uint32_t word)
{
    return word & 31;
}

static inline uint32_t hfn_arm64_get_rn(uint32_t word)
{
    return hfn_arm64_get_bits(word, 9, 5);
}

static inline uint32_t hfn_arm64_get_rm(uint32_t word)
{
    return hfn_arm64_get_bits(word, 20, 16);
}

/* The value of a source register, for instructions in which 31 means zero. */
static inline int32_t hfn_arm64_get_operand(const hfn_arm64_step *p, uint32_t reg)
{
    return reg == 31 ? HFN_STACK_UNRELATED : p->s->at[reg];
}

static inline void hfn_arm64_set_register(hfn_arm64_step *p, uint32_t reg, int32_t value)
{
    if (reg != 31) {
        p->s->at[reg] = value;
    }
}

/* May an instruction use this value as a number? */
static inline hfn_stack_outcome hfn_arm64_check_value(int32_t value)
{
    if (value == HFN_STACK_RETURN_ADDRESS) {
        return HFN_STACK_TOUCHES_RETURN;
    }
    return value == HFN_STACK_CALLER_FRAME ? HFN_STACK_TOUCHES_CALLER : HFN_STACK_OK;
}

/* The result of a computation that is not followed. */
static inline int32_t hfn_arm64_compute(bool reads_related)
{
    return reads_related ? HFN_STACK_COMPUTED : HFN_STACK_UNRELATED;
}

static inline bool hfn_arm64_is_related(const hfn_arm64_step *p, uint32_t reg)
{
    return hfn_stack_is_related(hfn_arm64_get_operand(p, reg));
}

/* stack_use.c: may the value be stored to memory or passed on? */
hfn_stack_outcome hfn_arm64_check_passed(const hfn_stack_state *state, int32_t value);

/* stack_use.c: set rd, in which 31 means sp, to the value, which is neither the return address nor
 * the caller's frame pointer.  Fails if the value is an address in the caller's frame, or not a
 * possible value of sp. */
hfn_stack_outcome hfn_arm64_set_address(hfn_arm64_step *p, uint32_t rd, int32_t value);

/* stack_access.c: follow a load or a store. */
hfn_stack_outcome hfn_arm64_step_memory(hfn_arm64_step *p);

#endif
