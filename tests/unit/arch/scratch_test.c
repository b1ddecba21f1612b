/* SPDX-License-Identifier: MIT */
/* Dead registers at an entry.  tests/property/scratch_test.c checks them by running code. */
#include "arch/x86/scratch.h"

#include "arch/arch.h"
#include "arch_scratch_code.h"
#include "check.h"

enum { RVA = 0x1000, RAX = 1 << 0, RCX = 1 << 1, RDX = 1 << 2, RDI = 1 << 7, R11 = 1 << 11 };

static uint32_t find_dead(const char *bytes, size_t size)
{
    return hfn_x86_find_dead_registers((const uint8_t *)bytes, size, RVA, RVA);
}
#define DEAD(text) find_dead(CODE_64(text))

static void registers_overwritten_first_are_dead(void)
{
    CHECK_EQ_U64(DEAD("mov eax, 1; ret"), RAX);
    CHECK_EQ_U64(DEAD("xor eax, eax; sub ecx, ecx; ret"), RAX | RCX);
    CHECK_EQ_U64(DEAD("lea rcx, [rdi]; ret"), RCX);
    CHECK_EQ_U64(DEAD("movzx eax, byte ptr [rdi]; ret"), RAX);
    CHECK_EQ_U64(DEAD("push rbp; push rax; pop r11; ret"), R11);
    CHECK_EQ_U64(DEAD("imul eax, edi, 0x100; ret"), RAX);
    CHECK_EQ_U64(DEAD("endbr64; nop; mov eax, edi; ret"), RAX);
    CHECK_EQ_U64(DEAD("nop dword ptr [rax]; xor eax, eax; ret"), RAX); /* nop [rax] reads nothing */
    CHECK_EQ_U64(DEAD("xor eax, eax; mov ecx, eax; ret"), RAX | RCX);
}

static void registers_read_or_partly_written_are_live(void)
{
    CHECK_EQ_U64(DEAD("mov ecx, eax; xor eax, eax; ret"), RCX);
    CHECK_EQ_U64(DEAD("mov al, 1; ret"), 0);
    CHECK_EQ_U64(DEAD("mov ah, 1; ret"), 0);
    CHECK_EQ_U64(DEAD("mov ax, 1; ret"), 0);
    CHECK_EQ_U64(DEAD("cmove eax, ecx; ret"), 0);
    CHECK_EQ_U64(DEAD("bsf eax, ecx; ret"), 0); /* bsf eax, ecx: ecx may be 0 */
    CHECK_EQ_U64(DEAD("sete al; movzx eax, al; ret"), 0);
    CHECK_EQ_U64(DEAD("sbb eax, eax; ret"), 0);
    CHECK_EQ_U64(DEAD("mov rax, [rax]; ret"), 0);
    CHECK_EQ_U64(DEAD(".byte 0x87, 0xc8; ret"), 0);                    /* xchg eax, ecx */
    CHECK_EQ_U64(DEAD("cdq; xor eax, eax; ret"), 0);                   /* cdq reads eax */
    CHECK_EQ_U64(DEAD("rep stos es:[rdi], al; xor ecx, ecx; ret"), 0); /* rep stosb counts in rcx */
}

static void both_sides_of_a_branch_count(void)
{
    CHECK_EQ_U64(DEAD("test edi, edi; je .+5; xor eax, eax; ret; mov eax, 1; ret"), RAX);
    /* the same, but 1: mov ecx, 1 */
    CHECK_EQ_U64(DEAD("test edi, edi; je .+5; xor eax, eax; ret; mov ecx, 1; ret"), 0);
    /* 1: loop 1b; ret: reads rcx; xor eax in between */
    CHECK_EQ_U64(DEAD("xor eax, eax; loop .-2; ret"), RAX);
    CHECK_EQ_U64(DEAD("test edi, edi; je .-2; xor eax, eax; ret"), RAX);
}

static void join_is_followed_again_with_more_unwritten_registers(void)
{
    CHECK_EQ_U64(DEAD("test edi, edi; je .+6; xor eax, eax; jmp .+4; jmp .+2; mov ecx, eax; ret"),
                 RCX);
}

/* `count` times je, each to its own `xor eax, eax; ret`, and one more after them. */
static uint32_t find_dead_after_branches(uint32_t count)
{
    uint8_t bytes[256];
    uint32_t beyond = 2 * count, size = beyond;

    for (uint32_t i = 0; i <= count; i++, size += 3) {
        memcpy(bytes + size, "\x31\xC0\xC3", 3);
    }
    for (uint32_t i = 0; i < count; i++) {
        bytes[2 * i] = 0x74;
        bytes[2 * i + 1] = (uint8_t)(beyond + 3 * (i + 1) - (2 * i + 2));
    }
    return hfn_x86_find_dead_registers(bytes, size, RVA, RVA);
}

static void too_many_branches_read_all(void)
{
    CHECK_EQ_U64(find_dead_after_branches(23), RAX); /* 24 paths with that of the entry */
    CHECK_EQ_U64(find_dead_after_branches(24), 0);
}

static void direct_jumps_and_calls_are_followed(void)
{
    CHECK_EQ_U64(DEAD("jmp .+3; ret; xor eax, eax; ret"), RAX);
    CHECK_EQ_U64(DEAD("call .+6; ret; xor eax, eax; ret"), RAX);
    CHECK_EQ_U64(DEAD("call .+7; xor eax, eax; ret"), 0); /* a call that returns */
    CHECK_EQ_U64(DEAD("jmp .+0x105"), 0);                 /* outside */
    CHECK_EQ_U64(DEAD("jmp .+0") & RAX, RAX);             /* never read */
}

static void undecodable_code_reads_all(void)
{
    CHECK_EQ_U64(DEAD("call rax; xor ecx, ecx; ret"), 0);
    CHECK_EQ_U64(DEAD("syscall; xor eax, eax; ret"), 0);
    CHECK_EQ_U64(DEAD("int 0x80; xor eax, eax; ret"), 0);
    CHECK_EQ_U64(DEAD("ud2"), 0);
    CHECK_EQ_U64(DEAD(".byte 0x06; xor eax, eax; ret"), 0); /* no instruction */
    CHECK_EQ_U64(DEAD("xor edi, edi"), RDI);                /* xor edi, edi and no further bytes */
    CHECK_EQ_U64(DEAD("xbegin .+8; xor ecx, ecx; ret; ret"), 0);
    CHECK_EQ_U64(find_dead("", 0), 0);
}

static void nothing_is_read_beyond_the_code(void)
{
    static const uint8_t cut[] = { 0x31, 0xC0 };                /* xor eax, eax */
    static const uint8_t beyond[] = { 0xEB, 0x00, 0x31, 0xC0 }; /* jmp +0 */

    CHECK_EQ_U64(hfn_x86_find_dead_registers(cut, 2, RVA, RVA), RAX);
    CHECK_EQ_U64(hfn_x86_find_dead_registers(cut, 1, RVA, RVA), 0);
    CHECK_EQ_U64(hfn_x86_find_dead_registers(beyond, 4, RVA, RVA), RAX);
    CHECK_EQ_U64(hfn_x86_find_dead_registers(beyond, 2, RVA, RVA), 0);
}

static void too_long_path_reads_all_unwritten(void)
{
    uint8_t bytes[4096];

    memset(bytes, 0x90, sizeof bytes);
    bytes[0] = 0x31, bytes[1] = 0xD2;       /* xor edx, edx */
    bytes[4000] = 0x31, bytes[4001] = 0xC0; /* xor eax, eax, after thousands of nops */
    CHECK_EQ_U64(hfn_x86_find_dead_registers(bytes, sizeof bytes, RVA, RVA), RDX);
    CHECK_EQ_U64(hfn_x86_find_scratch_register(bytes, sizeof bytes, RVA, RVA), 2);
    CHECK_EQ_U64(hfn_x86_find_scratch_register(bytes, sizeof bytes, RVA, RVA + 2), HFN_NO_REGISTER);
    bytes[4000] = bytes[4001] = 0x90;
    bytes[2 + 94] = 0x31, bytes[2 + 95] = 0xC0; /* the 96th instruction is the last one followed */
    CHECK_EQ_U64(hfn_x86_find_dead_registers(bytes, sizeof bytes, RVA, RVA), RAX | RDX);
    memmove(bytes + 3, bytes + 2, 100);
    bytes[2] = 0x90;
    CHECK_EQ_U64(hfn_x86_find_dead_registers(bytes, sizeof bytes, RVA, RVA), RDX);
}

static const check_test tests[] = {
    CHECK_TEST(registers_overwritten_first_are_dead),
    CHECK_TEST(registers_read_or_partly_written_are_live),
    CHECK_TEST(both_sides_of_a_branch_count),
    CHECK_TEST(join_is_followed_again_with_more_unwritten_registers),
    CHECK_TEST(too_many_branches_read_all),
    CHECK_TEST(direct_jumps_and_calls_are_followed),
    CHECK_TEST(undecodable_code_reads_all),
    CHECK_TEST(nothing_is_read_beyond_the_code),
    CHECK_TEST(too_long_path_reads_all_unwritten),
};
CHECK_MAIN(tests)
