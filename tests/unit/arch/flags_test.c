/* SPDX-License-Identifier: MIT */
/* Liveness of flags at an entry.  tests/property/flags_test.c checks it by running code. */
#include "arch/arch.h"

#include "arch_flags_code.h"
#include "check.h"

#define RVA 0x1000u

static const hfn_flag_reads nowhere = { .at_return = false };
static uint64_t leaves_to;

static bool live(const char *bytes, size_t size)
{
    return hfn_arch_x86_64.flags_live((const uint8_t *)bytes, size, RVA, RVA, &nowhere, &leaves_to);
}
#define LIVE(text) live(CODE_64(text))

static void flags_are_dead_when_all_are_written_first(void)
{
    CHECK(!LIVE("xor eax, eax; jb .+2"));
    CHECK(!LIVE("push rbp; mov rbp, rsp; sub rsp, 0x10; jb .+2"));
    CHECK(!LIVE("endbr64; test edi, edi; je .+2"));
    CHECK(!LIVE("cmp dil, 5; ja .+2"));
}

static void flags_are_live_when_one_is_read_first(void)
{
    CHECK(LIVE("jb .+2; xor eax, eax; ret"));
    CHECK(LIVE("adc eax, eax; ret"));
    CHECK(LIVE("sbb rax, 0; ret"));
    CHECK(LIVE("cmovb eax, ecx; ret"));
    CHECK(LIVE("setb al; ret"));
    CHECK(LIVE("pushf; pop rax; ret"));
    CHECK(LIVE("inc eax; jb .+2"));            /* inc leaves CF */
    CHECK(LIVE("shl eax, cl; je .+2"));        /* cl may be 0 */
    CHECK(LIVE("imul eax, ebx; je .+2; ret")); /* imul leaves ZF undefined */
}

static void both_sides_of_a_branch_are_followed(void)
{
    CHECK(!LIVE("shr rcx, 32; je .+4; xor eax, eax; ret"));
    CHECK(LIVE("shr ecx, 32; je .+4; xor eax, eax; ret")); /* by 0 */
    CHECK(!LIVE("inc eax; je .+4; xor eax, eax; ret"));    /* to the ret */
    CHECK(LIVE("inc eax; je .+5; xor eax, eax; ret; setb al; ret"));
    CHECK(LIVE("inc eax; je .+4; setb al; ret"));
    CHECK(!LIVE("inc eax; jne .-2; xor eax, eax; ret")); /* to the inc */
    CHECK(LIVE("inc eax; je .+0x102; xor eax, eax"));
    CHECK_EQ_U64(leaves_to, UINT64_MAX); /* not the only path */
}

static void flags_are_dead_at_returns_and_indirect_jumps(void)
{
    CHECK(!LIVE("mov eax, 1; ret"));
    CHECK(!LIVE("mov rax, [rdi]; jmp [rax+0x18]"));
    CHECK(!LIVE("ud2"));
}

static bool live_with(const char *bytes, size_t size, const hfn_flag_reads *reads)
{
    return hfn_arch_x86_64.flags_live((const uint8_t *)bytes, size, RVA, RVA, reads, &leaves_to);
}

#define LIVE_WITH(text, reads) live_with(CODE_64(text), reads)

/* An unknown callee may preserve them. */
static void flags_are_followed_behind_indirect_calls(void)
{
    CHECK(LIVE("push rax; call rax; jb .+2"));
    CHECK(!LIVE("push rax; call rax; xor eax, eax; jb .+2"));
    CHECK(LIVE("call .+7; jb .+2; jmp rax")); /* the target of the jump returns for the callee */
}

static void targets_of_indirect_branches_may_read_flags(void)
{
    const uint64_t jump = RVA + 3;
    const hfn_flag_reads at_tail = { .at_tail = true }, at_targets = { .at_targets = true },
                         at_jump = { .jumps = &jump, .jump_count = 1 };

    CHECK(LIVE_WITH("mov rax, [rdi]; jmp rax", &at_tail));
    CHECK(LIVE_WITH("mov rax, [rdi]; jmp rax", &at_targets));
    CHECK(LIVE_WITH("mov rax, [rdi]; jmp rax", &at_jump));
    CHECK(LIVE_WITH("mov rax, [rdi]; call rax; xor eax, eax; ret", &at_targets));
    CHECK(!LIVE_WITH("xor eax, eax; nop; jmp rax", &at_jump));
    CHECK(!LIVE_WITH("mov eax, 1; jmp rax", &at_jump)); /* another jump */
}

static void a_return_to_a_pushed_address_is_an_indirect_jump(void)
{
    const hfn_flag_reads at_targets = { .at_targets = true };

    CHECK(LIVE_WITH("push [rdi]; mov edi, 0; ret", &at_targets));
    CHECK(!LIVE_WITH("push rbx; mov edi, 0; pop rbx; ret", &at_targets));
    /* a retpoline: call 2f; 1: pause; lfence; jmp 1b; 2: mov [rsp], rax; ret */
    CHECK(LIVE_WITH("call .+0xc; pause; lfence; jmp .-5; mov [rsp], rax; ret", &at_targets));
    CHECK(!LIVE_WITH("push rbx; mov [rsp], rax; pop rbx; ret", &at_targets));
    CHECK(!LIVE_WITH("push rbp; mov rbp, rsp; leave; ret", &at_targets));
    CHECK(!LIVE("push [rdi]; ret"));
}

static void shifts_by_one_write_flags(void)
{
    CHECK(!LIVE("shr rdx; je .+2; ret"));
    CHECK(!LIVE("sar eax, 1; js .+2; ret"));
}

static void direct_calls_are_followed(void)
{
    CHECK(!LIVE("push rax; call .+7; jb .+2; xor eax, eax"));
    CHECK(LIVE("call .+7; xor eax, eax; setb al"));
    CHECK(LIVE("call .+0x105; xor eax, eax"));
    CHECK_EQ_U64(leaves_to, RVA + 5 + 0x100);
}

static void calls_are_followed_and_returned_from(void)
{
    CHECK(LIVE("call .+7; jb .+2; mov eax, 1; ret"));
    CHECK(!LIVE("call .+9; xor eax, eax; jb .+2; mov eax, 1; ret"));
    CHECK(!LIVE("call .+6; ret; call .+6; ret; ret"));
    CHECK(LIVE("call .+0")); /* calls itself without end */
}

static void endless_loops_read_nothing(void)
{
    CHECK(!LIVE("jmp .+0")); /* jmp self */
    /* call 2f; 1: pause; lfence; jmp 1b; 2: mov [rsp], rax; ret: a retpoline */
    CHECK(!LIVE("call .+0xc; pause; lfence; jmp .-5; mov [rsp], rax; ret"));
    CHECK(LIVE("nop; nop; setb al; jmp .-5")); /* a loop with setc al */
}

static void caller_decides_liveness_across_the_return(void)
{
    static const uint8_t keeps_flags[] = { 0xE8, 0x01, 0, 0, 0, 0xC3, 0xC3 },
                         writes_flags[] = { 0x31, 0xC0, 0xC3 };

    for (int at_return = 0; at_return < 2; at_return++) {
        const hfn_flag_reads reads = { .at_return = at_return };
        CHECK(hfn_arch_x86_64.flags_live(keeps_flags, sizeof keeps_flags, RVA, RVA, &reads,
                                         &leaves_to) == at_return);
        CHECK(!hfn_arch_x86_64.flags_live(writes_flags, sizeof writes_flags, RVA, RVA, &reads,
                                          &leaves_to));
        CHECK(hfn_arch_x86_64.flags_live(writes_flags, sizeof writes_flags, RVA, RVA + 2, &reads,
                                         &leaves_to) == at_return); /* from its last instruction */
    }
}

static void common_instructions_are_classified(void)
{
    CHECK(LIVE("movzx eax, al; jb .+2"));
    CHECK(LIVE("pxor xmm0, xmm0; jb .+2"));
    CHECK(LIVE("movsd xmm8, [rdi]; jb .+2"));
    CHECK(LIVE("mov dword ptr [rdi], 1; jb .+2"));
    CHECK(!LIVE("ucomisd xmm0, xmm1; jb .+2"));                 /* ucomisd writes all flags */
    CHECK(!LIVE(".byte 0x66, 0x81, 0xc0, 0x34, 0x12; jb .+2")); /* add ax, 0x1234; jb */
    CHECK(LIVE("adc ax, [rdi]; ret"));
    CHECK(LIVE("cmovb r8w, ax; ret"));
    CHECK(LIVE("movss xmm0, [rdi]; setb al; ret"));
}

static void jumps_are_followed_inside_and_reported_outside(void)
{
    CHECK(!LIVE("jmp .+4; jb .+2; xor eax, eax"));
    CHECK(LIVE("jmp .+4; xor eax, eax; jb .+2"));
    CHECK_EQ_U64(leaves_to, UINT64_MAX);
    CHECK(LIVE("jmp .+0x105"));
    CHECK_EQ_U64(leaves_to, RVA + 5 + 0x100);
    CHECK(LIVE("jmp .-0xfb")); /* before bytes */
    CHECK_EQ_U64(leaves_to, RVA + 5 - 0x100);
}

static void flags_are_live_at_undecodable_code(void)
{
    CHECK(LIVE("jrcxz .+2; xor eax, eax"));  /* the two paths of jrcxz are not followed */
    CHECK(LIVE(".byte 0x06; xor eax, eax")); /* no instruction */
    CHECK(live("", 0));
}

static const check_test tests[] = {
    CHECK_TEST(flags_are_dead_when_all_are_written_first),
    CHECK_TEST(flags_are_live_when_one_is_read_first),
    CHECK_TEST(both_sides_of_a_branch_are_followed),
    CHECK_TEST(flags_are_dead_at_returns_and_indirect_jumps),
    CHECK_TEST(flags_are_followed_behind_indirect_calls),
    CHECK_TEST(targets_of_indirect_branches_may_read_flags),
    CHECK_TEST(a_return_to_a_pushed_address_is_an_indirect_jump),
    CHECK_TEST(shifts_by_one_write_flags),
    CHECK_TEST(direct_calls_are_followed),
    CHECK_TEST(calls_are_followed_and_returned_from),
    CHECK_TEST(endless_loops_read_nothing),
    CHECK_TEST(caller_decides_liveness_across_the_return),
    CHECK_TEST(common_instructions_are_classified),
    CHECK_TEST(jumps_are_followed_inside_and_reported_outside),
    CHECK_TEST(flags_are_live_at_undecodable_code),
};
CHECK_MAIN(tests)
