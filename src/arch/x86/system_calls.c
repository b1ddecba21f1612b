/* SPDX-License-Identifier: MIT */
/*
 * Finds system calls behind which the code may run with another stack, or twice on the same one:
 * sigreturn, clone and vfork.  The number of a call is the constant that the last write of eax in
 * the line stores; a call without such a constant counts as one of these.
 */
#include "arch/x86/system_calls.h"

#include <string.h>

enum { RAX = 0, INT_80 = 0, SYSCALL, SYSENTER, NO_CALL, X32_BIT = 1 << 30 };

/* Linux, arch/x86/entry/syscalls/syscall_32.tbl and _64.tbl: sigreturn, clone, rt_sigreturn, vfork,
 * clone3; rt_sigreturn, clone, vfork, clone3 and rt_sigreturn of x32. */
static const uint32_t numbers_32[] = { 119, 120, 173, 190, 435 };
static const uint32_t numbers_64[] = { 15, 56, 58, 435, 513 };

/* The instruction by its opcode behind prefixes (Intel SDM vol. 2: INT n, SYSCALL, SYSENTER).
 * i386: `call gs:[0x10]` calls the kernel's entry, whose address libc stores there; it takes the
 * same registers as `int 0x80`. */
static int get_entry_kind(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size)
{
    static const char opcodes[][3] = { "\xCD\x80", "\x0F\x05", "\x0F\x34" };
    int kind = INT_80;

    if (mode == HFN_X86_32 && size >= 7 && memcmp(bytes, "\x65\xFF\x15\x10\0\0\0", 7) == 0) {
        return INT_80;
    }
    while (size > 2 && (memchr("\x66\xF2\xF3\x2E\x36\x3E\x26\x64\x65", *bytes, 9) ||
                        (mode == HFN_X86_64 && (*bytes & 0xF0) == 0x40))) {
        bytes++, size--;
    }
    while (kind < NO_CALL && (size < 2 || memcmp(bytes, opcodes[kind], 2) != 0)) {
        kind++;
    }
    return kind;
}

/* Is the instruction `xor eax, eax` (31 and 33 with ModRM C0)? */
static bool clears_eax(const uint8_t *bytes, const hfn_x86_effects *e)
{
    return e->length == 2 && (bytes[0] | 2) == 0x33 && bytes[1] == 0xC0;
}

/* The constant in eax before the last instruction of the line; false if the line does not show
 * one. */
static bool find_number(hfn_x86_mode mode, const hfn_straight_line *line, uint32_t *number)
{
    for (uint32_t i = line->count - 1; i-- > 0;) {
        const uint8_t *bytes = line->bytes + line->starts[i];
        uint64_t size = line->starts[i + 1] - line->starts[i];
        hfn_instruction in;
        hfn_x86_effects e;
        if (!hfn_x86_decode_effects(mode, bytes, size, 0, &e) ||
            !hfn_x86_decode(mode, bytes, size, 0, 0, &in) || e.opaque || in.flow == HFN_FLOW_CALL ||
            in.flow == HFN_FLOW_CALL_INDIRECT) {
            return false;
        }
        if (!(e.writes >> RAX & 1)) {
            continue;
        }
        *number = clears_eax(bytes, &e) ? 0 : (uint32_t)e.immediate;
        return clears_eax(bytes, &e) ||
               (e.shape == HFN_X86_CONSTANT && e.dest == RAX && (e.kills >> RAX & 1));
    }
    return false;
}

static bool has_number(const uint32_t *numbers, size_t count, uint32_t number)
{
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] == number) {
            return true;
        }
    }
    return false;
}

bool hfn_x86_may_switch_stack(hfn_x86_mode mode, const hfn_straight_line *line)
{
    uint32_t last = line->starts[line->count - 1], number;
    int kind = get_entry_kind(mode, line->bytes + last, line->size - last);

    if (kind == NO_CALL) {
        return false;
    }
    if (kind == SYSENTER || !find_number(mode, line, &number)) {
        return true;
    }
    return kind == INT_80 ? has_number(numbers_32, sizeof numbers_32 / sizeof *numbers_32, number)
                          : has_number(numbers_64, sizeof numbers_64 / sizeof *numbers_64,
                                       number & ~(uint32_t)X32_BIT);
}

/* mov rax, 15; syscall */
bool hfn_x86_64_is_signal_restorer(const uint8_t *bytes, uint64_t size)
{
    return size >= 9 && memcmp(bytes, "\x48\xC7\xC0\x0F\x00\x00\x00\x0F\x05", 9) == 0;
}

/* pop eax; mov eax, 119; int 0x80, or mov eax, 173; int 0x80 */
bool hfn_x86_32_is_signal_restorer(const uint8_t *bytes, uint64_t size)
{
    return (size >= 8 && memcmp(bytes, "\x58\xB8\x77\x00\x00\x00\xCD\x80", 8) == 0) ||
           (size >= 7 && memcmp(bytes, "\xB8\xAD\x00\x00\x00\xCD\x80", 7) == 0);
}
