/* SPDX-License-Identifier: MIT */
/* The change of the stack's depth by single instructions. */
#include "arch/x86/relocate.h"

#include "check.h"

#define UNKNOWN INT32_MAX

static int32_t growth(const char *bytes, size_t size)
{
    int32_t bytes_grown = 0;

    return hfn_x86_get_stack_growth(HFN_X86_64, (const uint8_t *)bytes, size, &bytes_grown)
               ? bytes_grown
               : UNKNOWN;
}
#define GROWTH(text) growth(text, sizeof(text) - 1)

static void pushes_and_pops_are_eight_bytes(void)
{
    CHECK_EQ_I64(GROWTH("\x53"), 8);                     /* push rbx */
    CHECK_EQ_I64(GROWTH("\x41\x54"), 8);                 /* push r12 */
    CHECK_EQ_I64(GROWTH("\x6A\x01"), 8);                 /* push 1 */
    CHECK_EQ_I64(GROWTH("\x68\x01\x00\x00\x00"), 8);     /* push imm32 */
    CHECK_EQ_I64(GROWTH("\xFF\x35\x00\x00\x00\x00"), 8); /* push [rip] */
    CHECK_EQ_I64(GROWTH("\x9C"), 8);                     /* pushfq */
    CHECK_EQ_I64(GROWTH("\x5B"), -8);                    /* pop rbx */
    CHECK_EQ_I64(GROWTH("\x41\x5C"), -8);                /* pop r12 */
    CHECK_EQ_I64(GROWTH("\x9D"), -8);                    /* popfq */
}

static void constant_adjustments_are_known(void)
{
    CHECK_EQ_I64(GROWTH("\x48\x83\xEC\x18"), 24);                   /* sub rsp, 24 */
    CHECK_EQ_I64(GROWTH("\x48\x83\xC4\x80"), 128);                  /* add rsp, -128 */
    CHECK_EQ_I64(GROWTH("\x48\x81\xEC\x00\x10\x00\x00"), 4096);     /* sub rsp, 4096 */
    CHECK_EQ_I64(GROWTH("\x48\x8D\x64\x24\xF8"), 8);                /* lea rsp, [rsp-8] */
    CHECK_EQ_I64(GROWTH("\x48\x8D\xA4\x24\x00\x01\x00\x00"), -256); /* lea rsp, [rsp+256] */
}

static void other_writes_to_rsp_are_unknown(void)
{
    CHECK_EQ_I64(GROWTH("\x5C"), UNKNOWN);                 /* pop rsp */
    CHECK_EQ_I64(GROWTH("\x48\x89\xEC"), UNKNOWN);         /* mov rsp, rbp */
    CHECK_EQ_I64(GROWTH("\x48\x83\xE4\xF0"), UNKNOWN);     /* and rsp, -16 */
    CHECK_EQ_I64(GROWTH("\x83\xEC\x18"), UNKNOWN);         /* sub esp, 24 */
    CHECK_EQ_I64(GROWTH("\xC9"), UNKNOWN);                 /* leave */
    CHECK_EQ_I64(GROWTH("\x48\x94"), UNKNOWN);             /* xchg rsp, rax */
    CHECK_EQ_I64(GROWTH("\x48\x0F\x42\xE0"), UNKNOWN);     /* cmovc rsp, rax */
    CHECK_EQ_I64(GROWTH("\xC8\x10\x00\x00"), UNKNOWN);     /* enter */
    CHECK_EQ_I64(GROWTH("\x66\x50"), UNKNOWN);             /* push ax */
    CHECK_EQ_I64(GROWTH("\x48\x8D\x65\xD8"), UNKNOWN);     /* lea rsp, [rbp-40] */
    CHECK_EQ_I64(GROWTH("\xBC\x00\x00\x00\x00"), UNKNOWN); /* mov esp, 0 */
}

static void reading_rsp_changes_nothing(void)
{
    CHECK_EQ_I64(GROWTH("\x48\x89\xE5"), 0);         /* mov rbp, rsp */
    CHECK_EQ_I64(GROWTH("\x48\x8B\x44\x24\x08"), 0); /* mov rax, [rsp+8] */
    CHECK_EQ_I64(GROWTH("\x4C\x89\xE4"), UNKNOWN);   /* mov rsp, r12 */
    CHECK_EQ_I64(GROWTH("\x49\x89\xE4"), 0);         /* mov r12, rsp */
    CHECK_EQ_I64(GROWTH("\x49\x83\xEC\x18"), 0);     /* sub r12, 24 */
    CHECK_EQ_I64(GROWTH("\x4C\x8D\x64\x24\xF8"), 0); /* lea r12, [rsp-8] */
    CHECK_EQ_I64(GROWTH("\x90"), 0);
    CHECK_EQ_I64(GROWTH("\x0F\x05"), 0); /* syscall */
}

static const check_test tests[] = {
    CHECK_TEST(pushes_and_pops_are_eight_bytes),
    CHECK_TEST(constant_adjustments_are_known),
    CHECK_TEST(other_writes_to_rsp_are_unknown),
    CHECK_TEST(reading_rsp_changes_nothing),
};
CHECK_MAIN(tests)
