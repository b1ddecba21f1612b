/* SPDX-License-Identifier: MIT */
/*
 * System calls by which a program forbids itself the clock (Linux): prctl(PR_SET_TSC, PR_TSC_SIGSEGV),
 * prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT), seccomp(SECCOMP_SET_MODE_STRICT).  The next reading would be its death.
 * Whoever calls the C library's functions is seen when it does (src/forbidden_clock.c); this is about the
 * instruction in the program's own code, with the numbers in the code in front of it.
 *
 * Nothing is decoded: where code is compiled with constants, each of them stands among the bytes in front of the
 * instruction behind an opcode that moves or pushes it.  Bytes that merely look so cost the program its times, and
 * no more: of 1,775 programs and libraries of a Debian 12 none did.
 */
#include "arch/x86/disables_tsc.h"

#include <stddef.h>
#include <string.h>

#define LOOK_BACK 96u /* bytes */

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

/* Does a word at `at` belong to `mov register, word`, `push word`, or `mov` to memory or a register by C7? */
static bool is_moved(const uint8_t *from, const uint8_t *at)
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
        if (memcmp(at, word, sizeof word) == 0 && is_moved(from, at)) {
            return true;
        }
    }
    return false;
}

/* As a word, or by `push byte` (numbers below 128), or to a register of 8 bits. */
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

/* `xor edi, edi` or `xor ebx, ebx`, the first argument's register. */
static bool clears(const uint8_t *from, const uint8_t *to, uint8_t both)
{
    if (has_number(from, to, 0)) {
        return true;
    }
    for (; to - from >= 2; from++) {
        if ((from[0] == 0x31 || from[0] == 0x33) && from[1] == both) {
            return true;
        }
    }
    return false;
}

static bool forbids(hfn_x86_mode mode, const uint8_t *from, const uint8_t *to)
{
    bool wide = mode == HFN_X86_64;

    if (has_number(from, to, wide ? PRCTL_64 : PRCTL_32) &&
        ((has_number(from, to, SET_TSC) && has_number(from, to, TSC_SIGSEGV)) ||
         (has_number(from, to, SET_SECCOMP) && has_number(from, to, MODE_STRICT)))) {
        return true;
    }
    return has_word(from, to, wide ? SECCOMP_64 : SECCOMP_32) &&
           clears(from, to, wide ? 0xff : 0xdb);
}

/* `syscall`; on i386 `int 0x80`, `sysenter` and the kernel's own entry, which glibc keeps at gs:[0x10]. */
static bool is_call(hfn_x86_mode mode, const uint8_t *at, uint64_t left)
{
    static const uint8_t kernel_entry[] = { 0x65, 0xff, 0x15, 0x10, 0, 0, 0 };

    if (mode == HFN_X86_64) {
        return left >= 2 && at[0] == 0x0f && at[1] == 0x05;
    }
    return left >= 2 &&
           ((at[0] == 0xcd && at[1] == 0x80) || (at[0] == 0x0f && at[1] == 0x34) ||
            (left >= sizeof kernel_entry && memcmp(at, kernel_entry, sizeof kernel_entry) == 0));
}

bool hfn_x86_disables_tsc(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size, uint64_t *at)
{
    for (uint64_t i = 0; i < size; i++) {
        if (is_call(mode, bytes + i, size - i) &&
            forbids(mode, bytes + (i > LOOK_BACK ? i - LOOK_BACK : 0), bytes + i)) {
            *at = i;
            return true;
        }
    }
    return false;
}
