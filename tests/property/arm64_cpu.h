/* SPDX-License-Identifier: MIT */
/* Runs A64 code and captures registers, flags, memory and stack before and after.  Works under
 * qemu-user. The code ends with a branch to x28, x27 points to its data, and x16 and x17 are not
 * compared. */
#ifndef HFN_TESTS_ARM64_CPU_H
#define HFN_TESTS_ARM64_CPU_H

#include <stdint.h>
#include <string.h>

#define DATA_BYTES 512u
#define STACK_BYTES 1024u

/* The assembly below uses these offsets. */
typedef struct cpu_state {
    uint64_t x[32]; /* [31] is sp */
    uint64_t flags; /* 256 */
    uint64_t code;  /* 264 */
    uint64_t host_sp, unused;
    uint64_t q[8]; /* 288: q0 to q3 */
} cpu_state;

cpu_state current_state;
void cpu_enter(void); /* runs current_state.code until it branches to cpu_leave */
void cpu_leave(void);

#define EACH_PAIR(op)                                                                              \
    op " x0, x1, [x16, #0]\n" op " x2, x3, [x16, #16]\n" op " x4, x5, [x16, #32]\n" op             \
       " x6, x7, [x16, #48]\n" op " x8, x9, [x16, #64]\n" op " x10, x11, [x16, #80]\n" op          \
       " x12, x13, [x16, #96]\n" op " x14, x15, [x16, #112]\n" op " x18, x19, [x16, #144]\n" op    \
       " x20, x21, [x16, #160]\n" op " x22, x23, [x16, #176]\n" op " x24, x25, [x16, #192]\n" op   \
       " x26, x27, [x16, #208]\n" op " x28, x29, [x16, #224]\n"

__asm__(
    ".text\n"
    ".globl cpu_enter, cpu_leave\n"
    "cpu_enter:\n"
    "  stp x19, x20, [sp, #-96]!\n"
    "  stp x21, x22, [sp, #16]\n"
    "  stp x23, x24, [sp, #32]\n"
    "  stp x25, x26, [sp, #48]\n"
    "  stp x27, x28, [sp, #64]\n"
    "  stp x29, x30, [sp, #80]\n"
    "  adrp x16, current_state\n"
    "  add x16, x16, :lo12:current_state\n"
    "  mov x17, sp\n"
    "  str x17, [x16, #272]\n"
    "  ldr x17, [x16, #256]\n"
    "  msr nzcv, x17\n"
    "  ldp q0, q1, [x16, #288]\n"
    "  ldp q2, q3, [x16, #320]\n"
    "  ldr x17, [x16, #248]\n"
    "  mov sp, x17\n"
    "  ldr x30, [x16, #240]\n" EACH_PAIR("ldp") "  ldr x16, [x16, #264]\n"
                                                "  br x16\n"
                                                "cpu_leave:\n"
                                                "  adrp x16, current_state\n"
                                                "  add x16, x16, :lo12:current_state\n" EACH_PAIR(
                                                    "stp") "  str x30, [x16, #240]\n"
                                                           "  mov x17, sp\n"
                                                           "  str x17, [x16, #248]\n"
                                                           "  mrs x17, nzcv\n"
                                                           "  str x17, [x16, #256]\n"
                                                           "  stp q0, q1, [x16, #288]\n"
                                                           "  stp q2, q3, [x16, #320]\n"
                                                           "  ldr x17, [x16, #272]\n"
                                                           "  mov sp, x17\n"
                                                           "  ldp x21, x22, [sp, #16]\n"
                                                           "  ldp x23, x24, [sp, #32]\n"
                                                           "  ldp x25, x26, [sp, #48]\n"
                                                           "  ldp x27, x28, [sp, #64]\n"
                                                           "  ldp x29, x30, [sp, #80]\n"
                                                           "  ldp x19, x20, [sp], #96\n"
                                                           "  ret\n");

typedef struct outcome {
    cpu_state state;
    uint8_t data[DATA_BYTES];
    uint8_t stack[STACK_BYTES];
} outcome;

static uint8_t run_data[DATA_BYTES] __attribute__((aligned(16)));
static uint8_t run_stack[STACK_BYTES] __attribute__((aligned(16)));

/* Run code from the state and memory of start; out receives both afterwards. */
static void run_from(const outcome *start, const void *code, outcome *out)
{
    memcpy(run_data, start->data, sizeof run_data);
    memcpy(run_stack, start->stack, sizeof run_stack);
    current_state = start->state;
    current_state.code = (uint64_t)(uintptr_t)code;
    cpu_enter();
    out->state = current_state;
    out->state.code = out->state.host_sp = 0;
    memcpy(out->data, run_data, sizeof run_data);
    memcpy(out->stack, run_stack, sizeof run_stack);
}

#endif
