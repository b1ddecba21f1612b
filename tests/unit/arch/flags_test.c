/* SPDX-License-Identifier: MIT */
/* Liveness of flags at an entry.  tests/property/flags_test.c checks it by running code. */
#include "arch/arch.h"

#include "check.h"

#define RVA 0x1000u

static uint64_t leaves_to;

static bool live(const char *bytes, size_t size)
{
    return hfn_arch_x86_64.flags_live((const uint8_t *)bytes, size, RVA, RVA, false, &leaves_to);
}
#define LIVE(text) live(text, sizeof(text) - 1)

static void flags_are_dead_when_all_are_written_first(void)
{
    CHECK(!LIVE("\x31\xC0\x72\x00"));                         /* xor eax, eax; jc */
    CHECK(!LIVE("\x55\x48\x89\xE5\x48\x83\xEC\x10\x72\x00")); /* push; mov; sub rsp, 16; jc */
    CHECK(!LIVE("\xF3\x0F\x1E\xFA\x85\xFF\x74\x00"));         /* endbr64; test; je */
    CHECK(!LIVE("\x40\x80\xFF\x05\x77\x00"));                 /* cmp dil, 5; ja */
}

static void flags_are_live_when_one_is_read_first(void)
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

static void flags_are_dead_at_returns_and_indirect_branches(void)
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
    CHECK_EQ_U64(leaves_to, RVA + 5 + 0x100);
}

static void calls_are_followed_and_returned_from(void)
{
    /* call 1f; jc; 1: mov eax, 1; ret */
    CHECK(LIVE("\xE8\x02\x00\x00\x00\x72\x00\xB8\x01\x00\x00\x00\xC3"));
    /* call 1f; xor eax, eax; jc; 1: mov eax, 1; ret */
    CHECK(!LIVE("\xE8\x04\x00\x00\x00\x31\xC0\x72\x00\xB8\x01\x00\x00\x00\xC3"));
    /* call 1f; ret; 1: call 2f; ret; 2: ret */
    CHECK(!LIVE("\xE8\x01\x00\x00\x00\xC3\xE8\x01\x00\x00\x00\xC3\xC3"));
    CHECK(LIVE("\xE8\xFB\xFF\xFF\xFF")); /* calls itself without end */
}

static void endless_loops_read_nothing(void)
{
    CHECK(!LIVE("\xEB\xFE")); /* jmp self */
    /* call 2f; 1: pause; lfence; jmp 1b; 2: mov [rsp], rax; ret: a retpoline */
    CHECK(!LIVE("\xE8\x07\x00\x00\x00\xF3\x90\x0F\xAE\xE8\xEB\xF9\x48\x89\x04\x24\xC3"));
    CHECK(LIVE("\x90\x90\x0F\x92\xC0\xEB\xF9")); /* a loop with setc al */
}

static void caller_decides_liveness_across_the_return(void)
{
    static const uint8_t leaves[] = { 0xE8, 0x01, 0, 0, 0, 0xC3, 0xC3 },
                         writes[] = { 0x31, 0xC0, 0xC3 };

    for (int at_return = 0; at_return < 2; at_return++) {
        CHECK(hfn_arch_x86_64.flags_live(leaves, sizeof leaves, RVA, RVA, at_return, &leaves_to) ==
              at_return);
        CHECK(!hfn_arch_x86_64.flags_live(writes, sizeof writes, RVA, RVA, at_return, &leaves_to));
        CHECK(hfn_arch_x86_64.flags_live(writes, sizeof writes, RVA, RVA + 2, at_return,
                                         &leaves_to) == at_return); /* from its last instruction */
    }
}

static void common_instructions_are_classified(void)
{
    CHECK(LIVE("\x0F\xB6\xC0\x72\x00"));             /* movzx eax, al; jc */
    CHECK(LIVE("\x66\x0F\xEF\xC0\x72\x00"));         /* pxor xmm0, xmm0; jc */
    CHECK(LIVE("\xF2\x44\x0F\x10\x07\x72\x00"));     /* movsd xmm8, [rdi]; jc */
    CHECK(LIVE("\xC7\x07\x01\x00\x00\x00\x72\x00")); /* mov dword [rdi], 1; jc */
    CHECK(!LIVE("\x66\x0F\x2E\xC1\x72\x00"));        /* ucomisd writes them all; jc */
    CHECK(!LIVE("\x66\x81\xC0\x34\x12\x72\x00"));    /* add ax, 0x1234; jc */
    CHECK(LIVE("\x66\x13\x07\xC3"));                 /* adc ax, [rdi] */
    CHECK(LIVE("\x66\x44\x0F\x42\xC0\xC3"));         /* cmovc r8w, ax */
    CHECK(LIVE("\xF3\x0F\x10\x07\x0F\x92\xC0\xC3")); /* movss; setc al */
}

static void jumps_are_followed_inside_and_reported_outside(void)
{
    CHECK(!LIVE("\xEB\x02\x72\x00\x31\xC0")); /* jmp +2; jc; xor eax, eax */
    CHECK(LIVE("\xEB\x02\x31\xC0\x72\x00"));
    CHECK_EQ_U64(leaves_to, UINT64_MAX);
    CHECK(LIVE("\xE9\x00\x01\x00\x00"));
    CHECK_EQ_U64(leaves_to, RVA + 5 + 0x100);
    CHECK(LIVE("\xE9\x00\xFF\xFF\xFF")); /* before bytes */
    CHECK_EQ_U64(leaves_to, RVA + 5 - 0x100);
}

static void flags_are_live_at_undecodable_code(void)
{
    CHECK(LIVE("\xE3\x00\x31\xC0")); /* jrcxz splits the line */
    CHECK(LIVE("\x06\x31\xC0"));     /* no instruction */
    CHECK(live("", 0));
}

static const check_test tests[] = {
    CHECK_TEST(flags_are_dead_when_all_are_written_first),
    CHECK_TEST(flags_are_live_when_one_is_read_first),
    CHECK_TEST(flags_are_dead_at_returns_and_indirect_branches),
    CHECK_TEST(direct_calls_are_followed),
    CHECK_TEST(calls_are_followed_and_returned_from),
    CHECK_TEST(endless_loops_read_nothing),
    CHECK_TEST(caller_decides_liveness_across_the_return),
    CHECK_TEST(common_instructions_are_classified),
    CHECK_TEST(jumps_are_followed_inside_and_reported_outside),
    CHECK_TEST(flags_are_live_at_undecodable_code),
};
CHECK_MAIN(tests)
