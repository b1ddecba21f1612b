/* SPDX-License-Identifier: MIT */
/* Which instructions may fault, and how code uses an address, on each CPU. */
#include "arch/arch.h"
#include "check.h"

#include <string.h>

static uint32_t find_fault(const hfn_arch *arch, const char *code, size_t size)
{
    return arch->find_fault((const uint8_t *)code, size, (uint32_t)size);
}
#define FAULTS_64(code) find_fault(&hfn_arch_x86_64, code, sizeof(code) - 1)
#define FAULTS_32(code) find_fault(&hfn_arch_x86, code, sizeof(code) - 1)
#define FAULTS_ARM(code) find_fault(&hfn_arch_arm64, code, sizeof(code) - 1)
#define NEVER UINT32_MAX

static void accesses_by_pointers_may_fault(void)
{
    CHECK_EQ_U64(FAULTS_64("\x48\x8B\x07"), 0);                      /* mov rax, [rdi] */
    CHECK_EQ_U64(FAULTS_64("\x31\xC0\x89\x06"), 2);                  /* xor; mov [rsi], eax */
    CHECK_EQ_U64(FAULTS_64("\x8B\x05\x00\x01\x00\x00"), 0);          /* mov eax, [rip + 256] */
    CHECK_EQ_U64(FAULTS_64("\x0F\xB6\x07"), 0);                      /* movzx eax, [rdi] */
    CHECK_EQ_U64(FAULTS_64("\xF3\x0F\x6F\x07"), 0);                  /* movdqu xmm0, [rdi] */
    CHECK_EQ_U64(FAULTS_64("\xFF\x27"), 0);                          /* jmp [rdi] */
    CHECK_EQ_U64(FAULTS_64("\x48\xF7\xFE"), 0);                      /* idiv rsi */
    CHECK_EQ_U64(FAULTS_64("\x41\x8B\x04\x24"), 0);                  /* mov eax, [r12] */
    CHECK_EQ_U64(FAULTS_64("\x0F\x0B"), 0);                          /* ud2 */
    CHECK_EQ_U64(FAULTS_64("\xC5\xF8\x28\x07"), 0);                  /* vmovaps */
    CHECK_EQ_U64(FAULTS_64("\x8B\x45\xF8"), 0);                      /* [rbp - 8]: any rbp */
    CHECK_EQ_U64(FAULTS_32("\x8B\x00"), 0);                          /* mov eax, [eax] */
    CHECK_EQ_U64(FAULTS_32("\xA1\x00\x00\x00\x00"), 0);              /* mov eax, [0] */
    CHECK_EQ_U64(FAULTS_ARM("\x00\x00\x40\xF9"), 0);                 /* ldr x0, [x0] */
    CHECK_EQ_U64(FAULTS_ARM("\x00\x00\x00\x58"), 0);                 /* ldr x0, literal */
    CHECK_EQ_U64(FAULTS_ARM("\x1F\x20\x03\xD5\x00\x00\x00\xF9"), 4); /* nop; str x0, [x0] */
    CHECK_EQ_U64(FAULTS_ARM("\x00\x00\x20\xD4"), 0);                 /* brk */
}

static void registers_and_the_stack_do_not_fault(void)
{
    CHECK_EQ_U64(FAULTS_64("\x55\x48\x89\xE5\x89\x7D\xFC"), NEVER);         /* a frame; [rbp - 4] */
    CHECK_EQ_U64(FAULTS_64("\x48\x83\xEC\x18\x89\x7C\x24\x08"), NEVER);     /* sub; [rsp + 8] */
    CHECK_EQ_U64(FAULTS_64("\xF3\x0F\x1E\xFA\x66\x0F\x1F\x44\0\0"), NEVER); /* endbr64; nop */
    CHECK_EQ_U64(FAULTS_64("\x48\x8D\x07\x0F\xAF\xC7\x85\xFF\x74\x00"), NEVER);
    CHECK_EQ_U64(FAULTS_64("\x66\x0F\xEF\xC0\xF7\xD8\x0F\x44\xC7"), NEVER); /* pxor; neg; cmov */
    CHECK_EQ_U64(FAULTS_32("\x40\x55\x89\xE5\x8B\x45\x08"), NEVER);         /* inc; a frame */
    CHECK_EQ_U64(FAULTS_ARM("\xFD\x7B\xBF\xA9"), NEVER);                 /* stp x29, x30, [sp]! */
    CHECK_EQ_U64(FAULTS_ARM("\x5F\x24\x03\xD5\x00\x0C\x01\x8B"), NEVER); /* bti c; add */
    CHECK_EQ_U64(FAULTS_ARM("\x00\x08\x21\x1E"), NEVER);                 /* fmul s0, s0, s1 */
}

static hfn_address_use get_use(const hfn_arch *arch, const char *code, size_t size)
{
    return arch->get_address_use((const uint8_t *)code, size, 0);
}
#define USE_64(code) get_use(&hfn_arch_x86_64, code, sizeof(code) - 1)
#define USE_32(code) get_use(&hfn_arch_x86, code, sizeof(code) - 1)
#define USE_ARM(code) get_use(&hfn_arch_arm64, code, sizeof(code) - 1)

#define LEA "\x48\x8D\x05\x00\x00\x00\x00" /* lea rax, [rip] */
#define RET "\xC3"

static void comparisons_are_known_by_their_condition(void)
{
    CHECK_EQ_I64(USE_64(LEA "\x48\x39\xC7\x72\x00" RET), HFN_ADDRESS_ORDERED); /* cmp; jb */
    CHECK_EQ_I64(USE_64(LEA "\x48\x39\xC7\x74\x00" RET), HFN_ADDRESS_EQUATED); /* cmp; je */
    CHECK_EQ_I64(USE_64(LEA "\x48\x29\xC7" RET), HFN_ADDRESS_ORDERED);         /* sub rdi, rax */
    CHECK_EQ_I64(USE_64(LEA "\x48\x89\xC1\x48\x39\xCF\x77\x00" RET), HFN_ADDRESS_ORDERED);
    /* kept in [rbp - 8] across a call */
    CHECK_EQ_I64(USE_64(LEA "\x48\x89\x45\xF8\xE8\0\0\0\0\x48\x39\x7D\xF8\x73\x00" RET),
                 HFN_ADDRESS_ORDERED);
    CHECK_EQ_I64(USE_64(LEA "\x48\x89\xC7\xE8\0\0\0\0\x48\x39\xC7\x72\x00" RET),
                 HFN_ADDRESS_PASSED); /* the call changes rdi and rax */
    CHECK_EQ_I64(USE_64("\x48\x81\xEF\x00\x10\x40\x00" RET),
                 HFN_ADDRESS_ORDERED); /* sub rdi, imm */
    CHECK_EQ_I64(USE_32("\xB8\x00\x10\x40\x00\x39\xC1\x72\x00" RET), HFN_ADDRESS_ORDERED);
    CHECK_EQ_I64(USE_ARM("\x00\x00\x00\x10\x3F\x00\x00\xEB\x02\x00\x00\x54"),
                 HFN_ADDRESS_ORDERED); /* adr x0; cmp x1, x0; b.hs */
    CHECK_EQ_I64(USE_ARM("\x00\x00\x00\x10\x3F\x00\x00\xEB\x00\x00\x00\x54"),
                 HFN_ADDRESS_EQUATED); /* b.eq */
    CHECK_EQ_I64(USE_ARM("\x00\x00\x00\x10\x20\x00\x00\xCB\xC0\x03\x5F\xD6"),
                 HFN_ADDRESS_ORDERED); /* sub x0, x1, x0 */
}

static void other_uses_are_of_pointers(void)
{
    CHECK_EQ_I64(USE_64(LEA "\x48\x29\xF8" RET), HFN_ADDRESS_PASSED); /* sub rax, rdi */
    CHECK_EQ_I64(USE_ARM("\x00\x00\x00\x10\x00\x00\x01\xCB\xC0\x03\x5F\xD6"),
                 HFN_ADDRESS_PASSED);                                     /* sub x0, x0, x1 */
    CHECK_EQ_I64(USE_64(LEA "\xFF\xD0" RET), HFN_ADDRESS_PASSED);         /* call rax */
    CHECK_EQ_I64(USE_64(LEA "\x48\x89\x07" RET), HFN_ADDRESS_PASSED);     /* mov [rdi], rax */
    CHECK_EQ_I64(USE_64(LEA "\x48\x83\xC4\x08" RET), HFN_ADDRESS_PASSED); /* add rsp, 8 */
    CHECK_EQ_I64(USE_64(LEA "\x48\x89\x05\0\0\0\0" RET), HFN_ADDRESS_STORED);
    CHECK_EQ_I64(USE_64("\xFF\x15\x00\x00\x00\x00\x48\x83\xC4\x08" RET), HFN_ADDRESS_PASSED);
    /* movq xmm0, rax; movhlps; movaps [rip], xmm0 */
    CHECK_EQ_I64(USE_64(LEA "\x66\x48\x0F\x6E\xC0\x66\x0F\x6C\xC1\x0F\x29\x05\0\0\0\0" RET),
                 HFN_ADDRESS_STORED);
    CHECK_EQ_I64(USE_ARM("\x00\x00\x00\x10\x20\x00\x00\xF9\xC0\x03\x5F\xD6"),
                 HFN_ADDRESS_STORED); /* str x0, [x1] */
    CHECK_EQ_I64(USE_ARM("\x00\x00\x00\x10\xE0\x07\x00\xF9\xC0\x03\x5F\xD6"),
                 HFN_ADDRESS_PASSED); /* str x0, [sp, 8] */
}

static bool reads_context(const hfn_arch *arch, const char *code, size_t size)
{
    return arch->reads_context((const uint8_t *)code, size);
}

static void handlers_are_known_by_the_third_argument(void)
{
    static const char reads[] = "\x48\x8B\x82\xA8\0\0\0"; /* mov rax, [rdx + 168] */
    static const char other[] = "\x48\x8B\x87\xA8\0\0\0"; /* mov rax, [rdi + 168] */
    static const char copied[] = "\x48\x89\x55\xE8\x48\x8B\x45\xE8\x48\x8B\x80\xA8\0\0\0";
    static const char i386[] = "\x8B\x44\x24\x0C\x8B\x40\x4C"; /* [esp + 12], + 76 */
    static const char arm64[] = "\x41\xDC\x40\xF9", arm64_other[] = "\x01\xDC\x40\xF9";

    CHECK(reads_context(&hfn_arch_x86_64, reads, sizeof reads - 1));
    CHECK(!reads_context(&hfn_arch_x86_64, other, sizeof other - 1));
    CHECK(reads_context(&hfn_arch_x86_64, copied, sizeof copied - 1));
    CHECK(reads_context(&hfn_arch_x86, i386, sizeof i386 - 1));
    CHECK(reads_context(&hfn_arch_arm64, arm64, sizeof arm64 - 1));
    CHECK(!reads_context(&hfn_arch_arm64, arm64_other, sizeof arm64_other - 1));
}

static const check_test tests[] = {
    CHECK_TEST(accesses_by_pointers_may_fault),
    CHECK_TEST(registers_and_the_stack_do_not_fault),
    CHECK_TEST(comparisons_are_known_by_their_condition),
    CHECK_TEST(other_uses_are_of_pointers),
    CHECK_TEST(handlers_are_known_by_the_third_argument),
};
CHECK_MAIN(tests)
