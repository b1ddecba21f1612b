/* SPDX-License-Identifier: MIT */
/*
 * Finds system calls by which a Linux program disables the time stamp counter for itself:
 * prctl(PR_SET_TSC, PR_TSC_SIGSEGV), prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) and
 * seccomp(SECCOMP_SET_MODE_STRICT).  After these, reading the counter kills the program.  Calls of
 * the C library's functions are intercepted by the agent (src/agent/tsc_disabled.c); this file
 * finds the instruction in the program's own code.
 *
 * Instructions are not decoded.  In compiled code each constant is among the bytes before the
 * system call, after an opcode that moves or pushes it.  A false match only means that the program
 * is not timed.
 */
#include "arch/x86/disables_tsc.h"

#include <stddef.h>
#include <string.h>

#define MAX_DISTANCE 96u /* bytes between a constant and the system call */

/* Linux, include/uapi/linux/prctl.h and seccomp.h; asm/unistd_64.h and _32.h. */
enum {
    SET_SECCOMP = 22,
    MODE_STRICT = 1,
    SET_TSC = 26,
    TSC_SIGSEGV = 2,
    PRCTL_64 = 157,
    PRCTL_32 = 172,
    SECCOMP_64 = 317,
    SECCOMP_32 = 354,
};

/* True if the word at `at` is the immediate of `mov register, word`, `push word`, or `mov` with
 * opcode C7. */
static bool is_immediate(const uint8_t *from, const uint8_t *at)
{
    enum { MOV_LONGEST = 7 }; /* C7, ModRM, SIB, displacement */

    if (at == from) {
        return false;
    }
    if ((at[-1] & 0xf8) == 0xb8 || at[-1] == 0x68) {
        return true;
    }
    for (int back = 2; back <= MOV_LONGEST && at - from >= back; back++) {
        if (at[-back] == 0xc7) {
            return true;
        }
    }
    return false;
}

static bool has_word(const uint8_t *from, const uint8_t *to, uint32_t value)
{
    const uint8_t word[4] = { (uint8_t)value, (uint8_t)(value >> 8) };

    for (const uint8_t *at = from; to - at >= 4; at++) {
        if (memcmp(at, word, sizeof word) == 0 && is_immediate(from, at)) {
            return true;
        }
    }
    return false;
}

/* True if value occurs as an immediate word, or as the byte of `push byte` (below 128) or of `mov`
 * to an 8-bit register. */
static bool has_number(const uint8_t *from, const uint8_t *to, uint32_t value)
{
    if (has_word(from, to, value)) {
        return true;
    }
    for (; to - from >= 2; from++) {
        if ((from[0] == 0x6a || (from[0] & 0xf8) == 0xb0) && from[1] == value) {
            return true;
        }
    }
    return false;
}

/* True if the first argument's register is set to 0, by a constant or by `xor reg, reg`, whose
 * second byte is modrm. */
static bool passes_zero(const uint8_t *from, const uint8_t *to, uint8_t modrm)
{
    if (has_number(from, to, 0)) {
        return true;
    }
    for (; to - from >= 2; from++) {
        if ((from[0] == 0x31 || from[0] == 0x33) && from[1] == modrm) {
            return true;
        }
    }
    return false;
}

static bool is_disabling_call(hfn_x86_mode mode, const uint8_t *from, const uint8_t *to)
{
    enum { XOR_EDI = 0xff, XOR_EBX = 0xdb };
    bool wide = mode == HFN_X86_64;

    if (has_number(from, to, wide ? PRCTL_64 : PRCTL_32) &&
        ((has_number(from, to, SET_TSC) && has_number(from, to, TSC_SIGSEGV)) ||
         (has_number(from, to, SET_SECCOMP) && has_number(from, to, MODE_STRICT)))) {
        return true;
    }
    return has_word(from, to, wide ? SECCOMP_64 : SECCOMP_32) &&
           passes_zero(from, to, wide ? XOR_EDI : XOR_EBX);
}

/* `syscall`; on i386 `int 0x80`, `sysenter`, or a call of the kernel's entry, which glibc stores at
 * gs:[0x10]. */
static bool is_system_call(hfn_x86_mode mode, const uint8_t *at, uint64_t size)
{
    static const uint8_t kernel_entry[] = { 0x65, 0xff, 0x15, 0x10, 0, 0, 0 };

    if (mode == HFN_X86_64) {
        return size >= 2 && at[0] == 0x0f && at[1] == 0x05;
    }
    return size >= 2 &&
           ((at[0] == 0xcd && at[1] == 0x80) || (at[0] == 0x0f && at[1] == 0x34) ||
            (size >= sizeof kernel_entry && memcmp(at, kernel_entry, sizeof kernel_entry) == 0));
}

bool hfn_x86_disables_tsc(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size, uint64_t *at)
{
    for (uint64_t i = 0; i < size; i++) {
        if (is_system_call(mode, bytes + i, size - i) &&
            is_disabling_call(mode, bytes + (i > MAX_DISTANCE ? i - MAX_DISTANCE : 0), bytes + i)) {
            *at = i;
            return true;
        }
    }
    return false;
}
