/* SPDX-License-Identifier: MIT */
/* What the files share that follow the stack through an instruction: what a register may hold, and how one gets
 * another value. */
#ifndef HFN_ARCH_ARM64_STACK_STEP_H
#define HFN_ARCH_ARM64_STACK_STEP_H

#include "arch/arm64/decode.h"
#include "arch/arm64/relocate.h"
#include "arch/arm64/stack_use.h"

/* Places in hfn_stack_state. */
enum {
    HFN_ARM64_SP = 31,
    HFN_ARM64_FRAME = 29,
    HFN_ARM64_LINK = 30,
    HFN_ARM64_SECOND_PLACE = HFN_ARM64_RETURN_PLACE + 1 /* it may lie in the frame twice */
};

/* What may stand there: a number of bytes from the CFA on, HFN_STACK_*, and: */
#define HFN_ARM64_RETURN_ADDRESS (INT32_MIN + 2)
#define HFN_ARM64_CALLER_FRAME (INT32_MIN + 3) /* x29 as it came: into the caller's frame */

/* An instruction, and the stack in front of it that becomes the one behind it. */
typedef struct hfn_arm64_step {
    uint32_t word;
    hfn_stack_state *s;
} hfn_arm64_step;

static inline bool hfn_arm64_is_number(int32_t at)
{
    return at > INT32_MIN / 2;
}

/* Surely into the own frame. */
static inline bool hfn_arm64_is_in_frame(int32_t at)
{
    return hfn_arm64_is_number(at) || at == HFN_STACK_IN_FRAME;
}

/* Where an instruction has its registers. */
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

/* What a source register holds where 31 is zero. */
static inline int32_t hfn_arm64_get_operand(const hfn_arm64_step *p, uint32_t reg)
{
    return reg == 31 ? HFN_STACK_UNKNOWN : p->s->at[reg];
}

static inline void hfn_arm64_set_register(hfn_arm64_step *p, uint32_t reg, int32_t value)
{
    if (reg != 31) {
        p->s->at[reg] = value;
    }
}

/* The value of a register that is taken for what it is. */
static inline hfn_stack_outcome hfn_arm64_judge_value(int32_t value)
{
    if (value == HFN_ARM64_RETURN_ADDRESS) {
        return HFN_STACK_TOUCHES_RETURN;
    }
    return value == HFN_ARM64_CALLER_FRAME ? HFN_STACK_TOUCHES_CALLER : HFN_STACK_OK;
}

/* stack_use.c: an address is made: rd (31 is sp) = value, which is a number, BELOW or NOWHERE. */
hfn_stack_outcome hfn_arm64_set_address(hfn_arm64_step *p, uint32_t rd, int32_t value);

/* stack_access.c: a load or a store. */
hfn_stack_outcome hfn_arm64_step_memory(hfn_arm64_step *p);

#endif
