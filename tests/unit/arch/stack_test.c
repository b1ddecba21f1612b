/* SPDX-License-Identifier: MIT */
/* The change of the stack's depth by single instructions. */
#include "arch/x86/relocate.h"

#include "arch_stack_code.h"
#include "check.h"

#define UNKNOWN INT32_MAX

static int32_t growth(const char *bytes, size_t size)
{
    int32_t bytes_grown = 0;

    return hfn_x86_get_stack_growth(HFN_X86_64, (const uint8_t *)bytes, size, &bytes_grown)
               ? bytes_grown
               : UNKNOWN;
}
#define GROWTH(text) growth(CODE_64(text))

static void pushes_and_pops_are_eight_bytes(void)
{
    CHECK_EQ_I64(GROWTH("push rbx"), 8);
    CHECK_EQ_I64(GROWTH("push r12"), 8);
    CHECK_EQ_I64(GROWTH("push 1"), 8);
    CHECK_EQ_I64(GROWTH(".byte 0x68, 0x01, 0x00, 0x00, 0x00"), 8); /* push imm32 */
    CHECK_EQ_I64(GROWTH("push [rip]"), 8);
    CHECK_EQ_I64(GROWTH("pushf"), 8);
    CHECK_EQ_I64(GROWTH("pop rbx"), -8);
    CHECK_EQ_I64(GROWTH("pop r12"), -8);
    CHECK_EQ_I64(GROWTH("popf"), -8);
}

static void constant_adjustments_are_known(void)
{
    CHECK_EQ_I64(GROWTH("sub rsp, 0x18"), 24);
    CHECK_EQ_I64(GROWTH("add rsp, 0xffffffffffffff80"), 128);
    CHECK_EQ_I64(GROWTH("sub rsp, 0x1000"), 4096);
    CHECK_EQ_I64(GROWTH("lea rsp, [rsp-8]"), 8);
    CHECK_EQ_I64(GROWTH("lea rsp, [rsp+0x100]"), -256);
}

static void other_writes_to_rsp_are_unknown(void)
{
    CHECK_EQ_I64(GROWTH("pop rsp"), UNKNOWN);
    CHECK_EQ_I64(GROWTH("mov rsp, rbp"), UNKNOWN);
    CHECK_EQ_I64(GROWTH("and rsp, -16"), UNKNOWN);
    CHECK_EQ_I64(GROWTH("sub esp, 0x18"), UNKNOWN);
    CHECK_EQ_I64(GROWTH("leave"), UNKNOWN);
    CHECK_EQ_I64(GROWTH("xchg rsp, rax"), UNKNOWN);
    CHECK_EQ_I64(GROWTH("cmovb rsp, rax"), UNKNOWN);
    CHECK_EQ_I64(GROWTH("enter 0x10, 0"), UNKNOWN);
    CHECK_EQ_I64(GROWTH("push ax"), UNKNOWN);
    CHECK_EQ_I64(GROWTH("lea rsp, [rbp-0x28]"), UNKNOWN);
    CHECK_EQ_I64(GROWTH("mov esp, 0"), UNKNOWN);
}

static void reading_rsp_changes_nothing(void)
{
    CHECK_EQ_I64(GROWTH("mov rbp, rsp"), 0);
    CHECK_EQ_I64(GROWTH("mov rax, [rsp+8]"), 0);
    CHECK_EQ_I64(GROWTH("mov rsp, r12"), UNKNOWN);
    CHECK_EQ_I64(GROWTH("mov r12, rsp"), 0);
    CHECK_EQ_I64(GROWTH("sub r12, 0x18"), 0);
    CHECK_EQ_I64(GROWTH("lea r12, [rsp-8]"), 0);
    CHECK_EQ_I64(GROWTH("nop"), 0);
    CHECK_EQ_I64(GROWTH("syscall"), 0);
}

static const check_test tests[] = {
    CHECK_TEST(pushes_and_pops_are_eight_bytes),
    CHECK_TEST(constant_adjustments_are_known),
    CHECK_TEST(other_writes_to_rsp_are_unknown),
    CHECK_TEST(reading_rsp_changes_nothing),
};
CHECK_MAIN(tests)
