/* SPDX-License-Identifier: MIT */
/* Finds system calls that disable the time stamp counter, as compilers emit them. */
#include "arch/arch.h"
#include "check.h"

#include <string.h>

#define NOT_FOUND UINT64_MAX
#define AT_64(code) find_call(&hfn_arch_x86_64, code, sizeof(code) - 1)
#define AT_32(code) find_call(&hfn_arch_x86, code, sizeof(code) - 1)

/* The offset in code at which a call is found, after a hundred bytes of padding. */
static uint64_t find_call(const hfn_arch *arch, const char *code, size_t size)
{
    enum { BEFORE = 100 };
    uint8_t bytes[BEFORE + 64];
    uint64_t at;

    memset(bytes, 0x90, sizeof bytes);
    memcpy(bytes + BEFORE, code, size);
    return arch->disables_tsc(bytes, BEFORE + size, &at) ? at - BEFORE : NOT_FOUND;
}

#define MOV_EAX_PRCTL "\xb8\x9d\x00\x00\x00"
#define MOV_EDI_TSC "\xbf\x1a\x00\x00\x00"
#define MOV_ESI_2 "\xbe\x02\x00\x00\x00"
#define SYSCALL "\x0f\x05"

static void raw_prctl_that_disables_the_tsc_is_found(void)
{
    CHECK_EQ_U64(AT_64(MOV_EAX_PRCTL MOV_EDI_TSC MOV_ESI_2 SYSCALL), 15);
    CHECK_EQ_U64(AT_64(MOV_ESI_2 "\x31\xd2" MOV_EDI_TSC MOV_EAX_PRCTL SYSCALL "\xc3"), 17);
    CHECK_EQ_U64(AT_64(MOV_EAX_PRCTL "\x6a\x1a\x5f\x6a\x02\x5e" SYSCALL), 11); /* clang -Oz */
    CHECK_EQ_U64(AT_64("\xb0\x9d" MOV_EDI_TSC MOV_ESI_2 SYSCALL), 12);         /* mov al */
}

static void strict_seccomp_is_found_by_either_call(void)
{
    CHECK_EQ_U64(AT_64(MOV_EAX_PRCTL "\xbf\x16\x00\x00\x00\xbe\x01\x00\x00\x00" SYSCALL), 15);
    CHECK_EQ_U64(AT_64("\xb8\x3d\x01\x00\x00\x31\xff" SYSCALL), 7);
    CHECK_EQ_U64(AT_64("\xb8\x3d\x01\x00\x00\xbf\x00\x00\x00\x00" SYSCALL), 10);
}

static void other_system_calls_do_not_match(void)
{
    CHECK_EQ_U64(AT_64(MOV_EAX_PRCTL MOV_EDI_TSC "\xbe\x01\x00\x00\x00" SYSCALL), NOT_FOUND);
    CHECK_EQ_U64(AT_64(MOV_EAX_PRCTL "\xbf\x0f\x00\x00\x00" MOV_ESI_2 SYSCALL), NOT_FOUND);
    CHECK_EQ_U64(AT_64("\xb8\x3d\x01\x00\x00\xbf\x01\x00\x00\x00" SYSCALL),
                 NOT_FOUND); /* a filter */
    CHECK_EQ_U64(AT_64("\xb8\x27\x00\x00\x00" MOV_EDI_TSC MOV_ESI_2 SYSCALL), NOT_FOUND);
    CHECK_EQ_U64(AT_64(MOV_EAX_PRCTL MOV_EDI_TSC MOV_ESI_2), NOT_FOUND);
}

static void distant_constants_do_not_match(void)
{
    uint8_t bytes[256];
    uint64_t at;
    static const char numbers[] = MOV_EAX_PRCTL MOV_EDI_TSC MOV_ESI_2;

    for (uint32_t between = 70; between < 120; between++) {
        memset(bytes, 0x90, sizeof bytes);
        memcpy(bytes, numbers, sizeof numbers - 1);
        memcpy(bytes + sizeof numbers - 1 + between, SYSCALL, 2);
        CHECK_EQ_U64(hfn_arch_x86_64.disables_tsc(bytes, sizeof numbers - 1 + between + 2, &at),
                     between <= 81); /* the opcode of the first constant is within 96 bytes */
    }
}

static void i386_has_other_numbers_and_three_entries(void)
{
#define NUMBERS "\xb8\xac\x00\x00\x00\xbb\x1a\x00\x00\x00\xb9\x02\x00\x00\x00"
    CHECK_EQ_U64(AT_32(NUMBERS "\xcd\x80"), 15);
    CHECK_EQ_U64(AT_32(NUMBERS "\x0f\x34"), 15);
    CHECK_EQ_U64(AT_32(NUMBERS "\x65\xff\x15\x10\x00\x00\x00"), 15);
    CHECK_EQ_U64(AT_32(NUMBERS "\x65\xff\x15\x10\x00\x00"), NOT_FOUND);
    CHECK_EQ_U64(AT_32(NUMBERS SYSCALL), NOT_FOUND);
    CHECK_EQ_U64(AT_32("\xb8\x62\x01\x00\x00\x31\xdb\xcd\x80"), 7);
    CHECK_EQ_U64(AT_32("\xb8\x62\x01\x00\x00\xbb\x01\x00\x00\x00\xcd\x80"), NOT_FOUND);
    CHECK_EQ_U64(AT_64(NUMBERS "\xcd\x80"), NOT_FOUND);
}

static const check_test tests[] = {
    CHECK_TEST(raw_prctl_that_disables_the_tsc_is_found),
    CHECK_TEST(strict_seccomp_is_found_by_either_call),
    CHECK_TEST(other_system_calls_do_not_match),
    CHECK_TEST(distant_constants_do_not_match),
    CHECK_TEST(i386_has_other_numbers_and_three_entries),
};
CHECK_MAIN(tests)
