/* SPDX-License-Identifier: MIT */
/* Dead registers at an entry.  tests/property/scratch_test.c checks them by running code. */
#include "arch/x86/scratch.h"

#include "arch/arch.h"
#include "check.h"

enum { RVA = 0x1000, RAX = 1 << 0, RCX = 1 << 1, RDX = 1 << 2, RDI = 1 << 7, R11 = 1 << 11 };

static uint32_t find_dead(const char *bytes, size_t size)
{
    return hfn_x86_find_dead_registers((const uint8_t *)bytes, size, RVA, RVA);
}
#define DEAD(text) find_dead(text, sizeof(text) - 1)

static void registers_overwritten_first_are_dead(void)
{
    CHECK_EQ_U64(DEAD("\xB8\x01\x00\x00\x00\xC3"), RAX);         /* mov eax, 1; ret */
    CHECK_EQ_U64(DEAD("\x31\xC0\x29\xC9\xC3"), RAX | RCX);       /* xor eax, eax; sub ecx, ecx */
    CHECK_EQ_U64(DEAD("\x48\x8D\x0F\xC3"), RCX);                 /* lea rcx, [rdi] */
    CHECK_EQ_U64(DEAD("\x0F\xB6\x07\xC3"), RAX);                 /* movzx eax, byte [rdi] */
    CHECK_EQ_U64(DEAD("\x55\x50\x41\x5B\xC3"), R11);             /* push rbp; push rax; pop r11 */
    CHECK_EQ_U64(DEAD("\x69\xC7\x00\x01\x00\x00\xC3"), RAX);     /* imul eax, edi, 256 */
    CHECK_EQ_U64(DEAD("\xF3\x0F\x1E\xFA\x90\x89\xF8\xC3"), RAX); /* endbr64; nop; mov eax, edi */
    CHECK_EQ_U64(DEAD("\x0F\x1F\x00\x31\xC0\xC3"), RAX);         /* nop [rax] reads nothing */
    CHECK_EQ_U64(DEAD("\x31\xC0\x89\xC1\xC3"), RAX | RCX);       /* xor eax, eax; mov ecx, eax */
}

static void registers_read_or_partly_written_are_live(void)
{
    CHECK_EQ_U64(DEAD("\x89\xC1\x31\xC0\xC3"), RCX);       /* mov ecx, eax; xor eax, eax */
    CHECK_EQ_U64(DEAD("\xB0\x01\xC3"), 0);                 /* mov al, 1 */
    CHECK_EQ_U64(DEAD("\xB4\x01\xC3"), 0);                 /* mov ah, 1 */
    CHECK_EQ_U64(DEAD("\x66\xB8\x01\x00\xC3"), 0);         /* mov ax, 1 */
    CHECK_EQ_U64(DEAD("\x0F\x44\xC1\xC3"), 0);             /* cmove eax, ecx */
    CHECK_EQ_U64(DEAD("\x0F\xBC\xC1\xC3"), 0);             /* bsf eax, ecx: ecx may be 0 */
    CHECK_EQ_U64(DEAD("\x0F\x94\xC0\x0F\xB6\xC0\xC3"), 0); /* sete al; movzx eax, al */
    CHECK_EQ_U64(DEAD("\x19\xC0\xC3"), 0);                 /* sbb eax, eax */
    CHECK_EQ_U64(DEAD("\x48\x8B\x00\xC3"), 0);             /* mov rax, [rax] */
    CHECK_EQ_U64(DEAD("\x87\xC8\xC3"), 0);                 /* xchg eax, ecx */
    CHECK_EQ_U64(DEAD("\x99\x31\xC0\xC3"), 0);             /* cdq reads eax */
    CHECK_EQ_U64(DEAD("\xF3\xAA\x31\xC9\xC3"), 0);         /* rep stosb counts in rcx */
}

static void both_sides_of_a_branch_count(void)
{
    /* test edi, edi; je 1f; xor eax, eax; ret; 1: mov eax, 1; ret */
    CHECK_EQ_U64(DEAD("\x85\xFF\x74\x03\x31\xC0\xC3\xB8\x01\x00\x00\x00\xC3"), RAX);
    /* the same, but 1: mov ecx, 1 */
    CHECK_EQ_U64(DEAD("\x85\xFF\x74\x03\x31\xC0\xC3\xB9\x01\x00\x00\x00\xC3"), 0);
    /* 1: loop 1b; ret: reads rcx; xor eax in between */
    CHECK_EQ_U64(DEAD("\x31\xC0\xE2\xFC\xC3"), RAX);
    /* 1: test edi, edi; je 1b; xor eax, eax; ret */
    CHECK_EQ_U64(DEAD("\x85\xFF\x74\xFC\x31\xC0\xC3"), RAX);
}

/* test edi, edi; je 1f; xor eax, eax; jmp 2f; 1: jmp 2f; 2: mov ecx, eax; ret */
static void join_is_followed_again_with_more_unwritten_registers(void)
{
    CHECK_EQ_U64(DEAD("\x85\xFF\x74\x04\x31\xC0\xEB\x02\xEB\x00\x89\xC1\xC3"), RCX);
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
    CHECK_EQ_U64(find_dead_after_branches(23), RAX); /* 24 places with the entry */
    CHECK_EQ_U64(find_dead_after_branches(24), 0);
}

static void direct_jumps_and_calls_are_followed(void)
{
    CHECK_EQ_U64(DEAD("\xEB\x01\xC3\x31\xC0\xC3"), RAX);             /* jmp +1; ret; xor */
    CHECK_EQ_U64(DEAD("\xE8\x01\x00\x00\x00\xC3\x31\xC0\xC3"), RAX); /* call +1; ret; 1: xor */
    CHECK_EQ_U64(DEAD("\xE8\x02\x00\x00\x00\x31\xC0\xC3"), 0);       /* a call that returns */
    CHECK_EQ_U64(DEAD("\xE9\x00\x01\x00\x00"), 0);                   /* outside */
    CHECK_EQ_U64(DEAD("\xEB\xFE") & RAX, RAX);                       /* never read */
}

static void undecodable_code_reads_all(void)
{
    CHECK_EQ_U64(DEAD("\xFF\xD0\x31\xC9\xC3"), 0); /* call rax */
    CHECK_EQ_U64(DEAD("\x0F\x05\x31\xC0\xC3"), 0); /* syscall */
    CHECK_EQ_U64(DEAD("\xCD\x80\x31\xC0\xC3"), 0); /* int 0x80 */
    CHECK_EQ_U64(DEAD("\x0F\x0B"), 0);             /* ud2 */
    CHECK_EQ_U64(DEAD("\x06\x31\xC0\xC3"), 0);     /* no instruction */
    CHECK_EQ_U64(DEAD("\x31\xFF"), RDI);           /* xor edi, edi and no further bytes */
    CHECK_EQ_U64(DEAD("\xC7\xF8\x02\x00\x00\x00\x31\xC9\xC3\xC3"), 0); /* xbegin */
    CHECK_EQ_U64(DEAD(""), 0);
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
