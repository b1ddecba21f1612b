/* SPDX-License-Identifier: MIT */
/* Which system calls may switch the stack, on each CPU. */
#include "arch/arch.h"
#include "check.h"

#include <string.h>

/* Whether the last instruction of the code may. */
static bool may_switch(const hfn_arch *arch, const char *code, size_t size)
{
    uint32_t starts[16], count = 0;
    const uint8_t *bytes = (const uint8_t *)code;
    hfn_instruction in;

    for (uint32_t at = 0; at < size; at += in.length) {
        if (!CHECK(arch->decode(bytes + at, size - at, at, 0, &in)) || !CHECK(count < 16)) {
            return true;
        }
        starts[count++] = at;
    }
    const hfn_straight_line line = {
        .bytes = bytes, .size = size, .starts = starts, .count = count
    };
    return arch->may_switch_stack(&line);
}
#define SWITCHES_64(code) may_switch(&hfn_arch_x86_64, code, sizeof(code) - 1)
#define SWITCHES_32(code) may_switch(&hfn_arch_x86, code, sizeof(code) - 1)
#define SWITCHES_ARM(code) may_switch(&hfn_arch_arm64, code, sizeof(code) - 1)

#define EAX(number) "\xB8" number "\x00\x00" /* mov eax, number */
#define SYSCALL "\x0F\x05"
#define INT_80 "\xCD\x80"
#define CALL_GS_16 "\x65\xFF\x15\x10\x00\x00\x00" /* the kernel's entry: call gs:[16] */

static void x86_64_calls_are_known_by_number(void)
{
    CHECK(SWITCHES_64(EAX("\x0F\x00") SYSCALL));                  /* rt_sigreturn */
    CHECK(SWITCHES_64("\x48\xC7\xC0\x0F\x00\x00\x00" SYSCALL));   /* mov rax, 15 */
    CHECK(SWITCHES_64(EAX("\x38\x00") "\x31\xFF\x90" SYSCALL));   /* clone; xor edi, edi */
    CHECK(SWITCHES_64(EAX("\x3A\x00") SYSCALL));                  /* vfork */
    CHECK(SWITCHES_64(EAX("\xB3\x01") SYSCALL));                  /* clone3 */
    CHECK(SWITCHES_64("\xB8\x01\x02\x00\x40" SYSCALL));           /* rt_sigreturn of x32 */
    CHECK(SWITCHES_64("\xB8\x3A\x00\x00\x40" SYSCALL));           /* vfork of x32 */
    CHECK(SWITCHES_64(EAX("\x78\x00") INT_80));                   /* clone of i386 */
    CHECK(SWITCHES_64(EAX("\x0F\x00") "\x48" SYSCALL));           /* with a prefix */
    CHECK(!SWITCHES_64(EAX("\x01\x00") SYSCALL));                 /* write */
    CHECK(!SWITCHES_64("\x31\xC0\x89\xF7" SYSCALL));              /* read: xor eax, eax */
    CHECK(!SWITCHES_64(EAX("\x38\x00") EAX("\x27\x00") SYSCALL)); /* getpid */
    CHECK(!SWITCHES_64(EAX("\x0F\x00") INT_80));                  /* chmod of i386 */
    CHECK(!SWITCHES_64(EAX("\x0F\x00") "\x90"));                  /* no system call */
    CHECK(!SWITCHES_64("\xB8\x0F\x05\x0F\x05"));                  /* a constant */
}

static void x86_64_calls_without_a_constant_may_switch(void)
{
    CHECK(SWITCHES_64(SYSCALL));
    CHECK(SWITCHES_64("\x89\xF8" SYSCALL));                 /* mov eax, edi */
    CHECK(SWITCHES_64("\x6A\x01\x58" SYSCALL));             /* push 1; pop rax */
    CHECK(SWITCHES_64("\x31\xC0\xB0\x01" SYSCALL));         /* mov al, 1 */
    CHECK(SWITCHES_64(EAX("\x01\x00") "\xFF\xC0" SYSCALL)); /* inc eax */
    CHECK(SWITCHES_64(EAX("\x01\x00") "\x91" SYSCALL));     /* xchg eax, ecx */
    CHECK(SWITCHES_64(EAX("\x01\x00") "\xFF\xD1" SYSCALL)); /* call rcx */
    CHECK(SWITCHES_64(EAX("\x01\x00") SYSCALL SYSCALL));    /* number: result of the first */
}

static void i386_calls_are_known_by_number(void)
{
    CHECK(SWITCHES_32(EAX("\xAD\x00") INT_80));        /* rt_sigreturn */
    CHECK(SWITCHES_32("\x58" EAX("\x77\x00") INT_80)); /* pop eax; sigreturn */
    CHECK(SWITCHES_32(EAX("\x78\x00") INT_80));        /* clone */
    CHECK(SWITCHES_32(EAX("\xBE\x00") INT_80));        /* vfork */
    CHECK(SWITCHES_32(EAX("\xB3\x01") INT_80));        /* clone3 */
    CHECK(SWITCHES_32(EAX("\x04\x00") "\x40" INT_80)); /* inc eax */
    CHECK(SWITCHES_32(INT_80));
    CHECK(SWITCHES_32(EAX("\x04\x00") "\x0F\x34"));  /* sysenter */
    CHECK(!SWITCHES_32(EAX("\x04\x00") INT_80));     /* write */
    CHECK(!SWITCHES_32(EAX("\x78\x00") "\xCD\x81")); /* another interrupt */
    CHECK(SWITCHES_32(EAX("\x78\x00") CALL_GS_16));
    CHECK(SWITCHES_32(CALL_GS_16));
    CHECK(!SWITCHES_32(EAX("\x04\x00") CALL_GS_16));
    CHECK(!SWITCHES_32(EAX("\x78\x00") "\x65\xFF\x15\x14\x00\x00\x00")); /* call gs:[20] */
    CHECK(!SWITCHES_32(EAX("\x78\x00") "\xFF\x15\x10\x00\x00\x00"));     /* call [16] */
}

#define X8_SIGRETURN "\x68\x11\x80\xD2" /* mov x8, #139 */
#define X8_CLONE "\x88\x1B\x80\xD2"     /* mov x8, #220 */
#define X8_CLONE3 "\x68\x36\x80\xD2"    /* mov x8, #435 */
#define W8_WRITE "\x08\x08\x80\x52"     /* mov w8, #64  */
#define SVC "\x01\x00\x00\xD4"

static void arm64_calls_are_known_by_number(void)
{
    CHECK(SWITCHES_ARM(X8_SIGRETURN SVC));
    CHECK(SWITCHES_ARM(X8_CLONE SVC));
    CHECK(SWITCHES_ARM(X8_CLONE3 SVC));
    CHECK(SWITCHES_ARM(SVC));
    CHECK(SWITCHES_ARM(W8_WRITE "\xE8\x03\x00\xAA" SVC)); /* mov x8, x0 */
    CHECK(SWITCHES_ARM(W8_WRITE "\x08\x00\x40\xF9" SVC)); /* ldr x8, [x0] */
    CHECK(SWITCHES_ARM(W8_WRITE "\xE0\x23\xC1\xA8" SVC)); /* ldp x0, x8, [sp], #16 */
    CHECK(SWITCHES_ARM(W8_WRITE "\x00\x7C\x08\xC8" SVC)); /* stxr w8, x0, [x0] */
    CHECK(SWITCHES_ARM(W8_WRITE "\x00\x00\x3F\xD6" SVC)); /* blr x0 */
    CHECK(!SWITCHES_ARM(W8_WRITE SVC));
    CHECK(!SWITCHES_ARM(W8_WRITE "\x00\x01\x80\xD2" SVC)); /* mov x0, #8 */
    CHECK(!SWITCHES_ARM(W8_WRITE "\xE0\x03\x08\xAA" SVC)); /* mov x0, x8 */
    CHECK(!SWITCHES_ARM(X8_CLONE));
}

#define RESTORES(arch, code) (arch).is_signal_restorer((const uint8_t *)(code), sizeof(code) - 1)

static void signal_restorers_are_known_by_their_bytes(void)
{
    CHECK(RESTORES(hfn_arch_x86_64, "\x48\xC7\xC0\x0F\x00\x00\x00" SYSCALL));
    CHECK(!RESTORES(hfn_arch_x86_64, "\x48\xC7\xC0\x0F\x00\x00\x00\x0F"));
    CHECK(RESTORES(hfn_arch_x86, "\x58" EAX("\x77\x00") INT_80));
    CHECK(RESTORES(hfn_arch_x86, EAX("\xAD\x00") INT_80));
    CHECK(!RESTORES(hfn_arch_x86, EAX("\xAE\x00") INT_80));
    CHECK(RESTORES(hfn_arch_arm64, X8_SIGRETURN SVC));
    CHECK(!RESTORES(hfn_arch_arm64, X8_CLONE SVC));
}

static const check_test tests[] = {
    CHECK_TEST(x86_64_calls_are_known_by_number),
    CHECK_TEST(x86_64_calls_without_a_constant_may_switch),
    CHECK_TEST(i386_calls_are_known_by_number),
    CHECK_TEST(arm64_calls_are_known_by_number),
    CHECK_TEST(signal_restorers_are_known_by_their_bytes),
};
CHECK_MAIN(tests)
