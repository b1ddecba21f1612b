/* SPDX-License-Identifier: MIT */
/* Are flags live at an entry?  The law itself is tests/property/flags_test.c. */
#include "arch/arch.h"

#include "check.h"

#define RVA 0x1000u

static uint64_t jumps_to;

static bool live(const char *bytes, size_t size)
{
    return hfn_arch_x86_64.flags_live((const uint8_t *)bytes, size, RVA, &jumps_to);
}
#define LIVE(text) live(text, sizeof(text) - 1)

static void dead_where_all_are_written_first(void)
{
    CHECK(!LIVE("\x31\xC0\x72\x00"));                         /* xor eax, eax; jc */
    CHECK(!LIVE("\x55\x48\x89\xE5\x48\x83\xEC\x10\x72\x00")); /* push; mov; sub rsp, 16; jc */
    CHECK(!LIVE("\xF3\x0F\x1E\xFA\x85\xFF\x74\x00"));         /* endbr64; test; je */
    CHECK(!LIVE("\x40\x80\xFF\x05\x77\x00"));                 /* cmp dil, 5; ja */
}

static void live_where_one_is_read_first(void)
{
    CHECK(LIVE("\x72\x00\x31\xC0\xC3"));     /* jc */
    CHECK(LIVE("\x11\xC0\xC3"));             /* adc eax, eax */
    CHECK(LIVE("\x48\x83\xD8\x00\xC3"));     /* sbb rax, 0 */
    CHECK(LIVE("\x0F\x42\xC1\xC3"));         /* cmovc eax, ecx */
    CHECK(LIVE("\x0F\x92\xC0\xC3"));         /* setc al */
    CHECK(LIVE("\x9C\x58\xC3"));             /* pushfq; pop rax */
    CHECK(LIVE("\xFF\xC0\x72\x00"));         /* inc eax leaves CF; jc */
    CHECK(LIVE("\xD3\xE0\x74\x00"));         /* shl eax, cl with cl 0; je */
    CHECK(LIVE("\x0F\xAF\xC3\x74\x00\xC3")); /* imul leaves ZF undefined */
}

static void dead_at_returns_and_indirect_branches(void)
{
    CHECK(!LIVE("\xB8\x01\x00\x00\x00\xC3")); /* mov eax, 1; ret */
    CHECK(!LIVE("\x50\xFF\xD0\x72\x00"));     /* push rax; call rax; jc */
    CHECK(!LIVE("\x48\x8B\x07\xFF\x60\x18")); /* mov rax, [rdi]; jmp [rax+24] */
    CHECK(!LIVE("\x0F\x0B"));
}

static void direct_calls_are_followed(void)
{
    /* push rax; call 1f; jc; 1: xor eax, eax */
    CHECK(!LIVE("\x50\xE8\x02\x00\x00\x00\x72\x00\x31\xC0"));
    /* call 1f; xor eax, eax; 1: setc al */
    CHECK(LIVE("\xE8\x02\x00\x00\x00\x31\xC0\x0F\x92\xC0"));
    CHECK(LIVE("\xE8\x00\x01\x00\x00\x31\xC0"));
    CHECK_EQ_U64(jumps_to, RVA + 5 + 0x100);
}

static void jumps_are_followed_inside_and_told_outside(void)
{
    CHECK(!LIVE("\xEB\x02\x72\x00\x31\xC0")); /* jmp +2; jc; xor eax, eax */
    CHECK(LIVE("\xEB\x02\x31\xC0\x72\x00"));
    CHECK_EQ_U64(jumps_to, UINT64_MAX);
    CHECK(LIVE("\xE9\x00\x01\x00\x00"));
    CHECK_EQ_U64(jumps_to, RVA + 5 + 0x100);
    CHECK(LIVE("\xE9\x00\xFF\xFF\xFF")); /* before bytes */
    CHECK_EQ_U64(jumps_to, RVA + 5 - 0x100);
}

static void live_where_it_is_not_understood(void)
{
    CHECK(LIVE("\xE3\x00\x31\xC0")); /* jrcxz splits the line */
    CHECK(LIVE("\x06\x31\xC0"));     /* no instruction */
    CHECK(live("", 0));
    CHECK(LIVE("\xEB\xFE")); /* a loop without end */
}

static const check_test tests[] = {
    CHECK_TEST(dead_where_all_are_written_first),
    CHECK_TEST(live_where_one_is_read_first),
    CHECK_TEST(dead_at_returns_and_indirect_branches),
    CHECK_TEST(direct_calls_are_followed),
    CHECK_TEST(jumps_are_followed_inside_and_told_outside),
    CHECK_TEST(live_where_it_is_not_understood),
};
CHECK_MAIN(tests)
