/* SPDX-License-Identifier: MIT */
/*
 * Finds code that sets thread pointers, or starts threads with one: arch_prctl(ARCH_SET_FS), clone
 * and clone3 with CLONE_SETTLS, set_thread_area, wrfsbase.  In compiled code the numbers are
 * immediates near the system call, or near the call of the C library's syscall().
 */
#include "arch/x86/thread_pointer.h"

#include "base/byte_order.h"

#include <string.h>

#define NEAR_BYTES 64u /* between the instructions that load the numbers of one call */

/* Linux, include/uapi/linux/sched.h, asm/prctl.h; asm/unistd_64.h and _32.h. */
enum {
    CLONE_SETTLS_VM = 0x80100, /* CLONE_SETTLS | CLONE_VM */
    CLONE_ALL = 0x7FFFFFF,
    CLONE_SIGNAL = 0xFF, /* sent at the thread's end: none, or SIGCHLD */
    CHILD_SIGNAL = 17,
    SET_FS = 0x1002,
    ARCH_PRCTL_64 = 158,
    CLONE_64 = 56,
    CLONE_32 = 120,
    CLONE3 = 435,
    SET_THREAD_AREA_32 = 243,
};

enum { MOV_EAX = 0xB8, MOV_EDI = 0xBF, MOV_ESI = 0xBE }; /* opcodes */

/* Whether code in [from, to) loads the number into the register of the opcode (mov register,
 * number): by that opcode, by C7, or by push and pop.  from[-1] must be readable. */
static bool sets_register(const uint8_t *from, const uint8_t *to, uint8_t opcode, uint32_t number)
{
    for (; to - from >= 3; from++) {
        if (*from == 0x6A && from[1] == number && from[2] == (0x58 | (opcode & 7))) {
            return true;
        }
        if (to - from >= 5 && hfn_read_le32(from + 1) == number &&
            (*from == opcode || (*from == (0xC0 | (opcode & 7)) && from[-1] == 0xC7))) {
            return true;
        }
    }
    return false;
}

/* `mov esi, value` is the second argument of the C library's syscall(). */
static uint32_t get_number_evidence(hfn_x86_mode mode, const uint8_t *from, const uint8_t *to,
                                    uint8_t opcode, uint32_t value)
{
    bool is_flags = (value & CLONE_SETTLS_VM) == CLONE_SETTLS_VM && value <= CLONE_ALL &&
                    ((value & CLONE_SIGNAL) == 0 || (value & CLONE_SIGNAL) == CHILD_SIGNAL);
    bool is_call = mode == HFN_X86_64 && opcode == MOV_ESI && value == SET_FS &&
                   sets_register(from, to, MOV_EDI, ARCH_PRCTL_64);

    return (is_flags ? HFN_THREAD_FLAGS : 0) | (is_call ? HFN_THREAD_BY_NUMBER : 0);
}

/* The instruction enters the kernel, or is wrfsbase. */
static uint32_t get_system_evidence(hfn_x86_mode mode, const uint8_t *from, const uint8_t *at)
{
    bool wide = mode == HFN_X86_64;

    if (at[0] == 0xF3) {
        return HFN_THREAD_POINTER_SET;
    }
    if (!wide && sets_register(from, at, MOV_EAX, SET_THREAD_AREA_32)) {
        return HFN_THREAD_POINTER_SET;
    }
    if (wide && sets_register(from, at, MOV_EAX, ARCH_PRCTL_64) &&
        sets_register(from, at, MOV_EDI, SET_FS)) {
        return HFN_THREAD_POINTER_SET;
    }
    return sets_register(from, at, MOV_EAX, wide ? CLONE_64 : CLONE_32) ||
                   sets_register(from, at, MOV_EAX, CLONE3)
               ? HFN_THREAD_MADE
               : 0;
}

uint32_t hfn_x86_find_thread_evidence(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size,
                                      uint64_t at, const hfn_instruction *in)
{
    uint64_t from = at > NEAR_BYTES ? at - NEAR_BYTES : 1, end = at + in->length;
    uint64_t to = size - end > NEAR_BYTES ? end + NEAR_BYTES : size;

    if (size == 0 || from > at) {
        return 0;
    }
    if (in->is_system) {
        return get_system_evidence(mode, bytes + from, bytes + at);
    }
    return in->length < 5 ? 0
                          : get_number_evidence(mode, bytes + from, bytes + to, bytes[end - 5],
                                                hfn_read_le32(bytes + end - 4));
}
