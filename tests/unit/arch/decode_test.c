/* SPDX-License-Identifier: MIT */
/* Decodes x86-64 instructions for the scan and the verdicts. */
#include "arch/x86/decode.h"

#include "arch_decode_code.h"
#include "check.h"

#define RVA 0x1000u

/* Decode bytes, padded with nops to 16. */
static hfn_instruction decode(const char *bytes, size_t count)
{
    uint8_t padded[16];
    hfn_instruction in = { 0 };

    memset(padded, 0x90, sizeof padded);
    memcpy(padded, bytes, count);
    CHECK(hfn_arch_x86_64.decode(padded, sizeof padded, RVA, 0x400000, &in));
    return in;
}
#define DECODE(text) decode(CODE_64(text))

static void branches_have_flow_and_target(void)
{
    static const struct {
        const char *bytes;
        uint32_t size, flow, target;
    } cases[] = {
        { "\xE8\x10\0\0\0", 5, HFN_FLOW_CALL, RVA + 0x15 },       /* call */
        { "\xE9\xFB\xFF\xFF\xFF", 5, HFN_FLOW_JUMP, RVA },        /* jmp rel32 to itself */
        { "\xEB\x02", 2, HFN_FLOW_JUMP, RVA + 4 },                /* jmp rel8 */
        { "\x74\xFE", 2, HFN_FLOW_JUMP_IF, RVA },                 /* je to itself */
        { "\x0F\x85\0\1\0\0", 6, HFN_FLOW_JUMP_IF, RVA + 0x106 }, /* jne rel32 */
        { "\xE2\x04", 2, HFN_FLOW_JUMP_IF, RVA + 6 },             /* loop */
        { "\xE3\x04", 2, HFN_FLOW_JUMP_IF, RVA + 6 },             /* jrcxz */
        { "\x67\xE3\x04", 3, HFN_FLOW_JUMP_IF, RVA + 7 },         /* jecxz */
        { "\xC7\xF8\0\0\0\0", 6, HFN_FLOW_JUMP_IF, RVA + 6 },     /* xbegin */
        { "\x2E\x74\x10", 3, HFN_FLOW_JUMP_IF, RVA + 0x13 },      /* je, not taken hint */
        { "\xF2\xE9\0\0\0\0", 6, HFN_FLOW_JUMP, RVA + 6 },        /* bnd jmp */
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hfn_instruction in = decode(cases[i].bytes, cases[i].size);
        CHECK_EQ_U64(in.length, cases[i].size);
        CHECK_EQ_U64(in.flow, cases[i].flow);
        CHECK_EQ_U64(in.target, cases[i].target);
        CHECK_EQ_U64(in.relative_at + in.relative_bytes, in.length);
    }
}

static void returns_and_stops_are_distinguished(void)
{
    CHECK_EQ_U64(DECODE("ret").flow, HFN_FLOW_RETURN);
    CHECK_EQ_U64(DECODE("ret 8").flow, HFN_FLOW_RETURN);
    CHECK_EQ_U64(DECODE("repz ret").flow, HFN_FLOW_RETURN);
    CHECK_EQ_U64(DECODE("iretq").flow, HFN_FLOW_RETURN);
    CHECK_EQ_U64(DECODE("ud2").flow, HFN_FLOW_STOP);
    CHECK_EQ_U64(DECODE("hlt").flow, HFN_FLOW_STOP);
    CHECK_EQ_U64(DECODE("int3").flow, HFN_FLOW_STOP);
    CHECK_EQ_U64(DECODE("syscall").flow, HFN_FLOW_NEXT);
    CHECK_EQ_U64(DECODE("xend").flow, HFN_FLOW_NEXT);
    CHECK_EQ_U64(DECODE("call rax").flow, HFN_FLOW_CALL_INDIRECT);
    CHECK_EQ_U64(DECODE("call [rip]").flow, HFN_FLOW_CALL_INDIRECT);
}

static void indirect_jumps_that_may_use_a_table_are_marked(void)
{
    CHECK(DECODE("jmp rax").through_table);
    CHECK(DECODE("notrack jmp rax").through_table);
    CHECK(DECODE("jmp [rax*8]").through_table); /* jmp [rax*8+disp32] */
    CHECK(DECODE("jmp [rbx+r12*8]").through_table);
    CHECK(!DECODE("jmp [rip]").through_table);
    CHECK(!DECODE("jmp [rax+0x18]").through_table);
    CHECK(!DECODE("jmp [rsp+8]").through_table);
    CHECK_EQ_U64(DECODE("notrack jmp rax").flow, HFN_FLOW_JUMP_INDIRECT);
}

static void rip_relative_fields_are_relative_to_the_next_instruction(void)
{
    /* cmp dword [rip+0x10], imm32: 81 3D d32 i32 */
    hfn_instruction in = DECODE(".byte 0x81, 0x3d, 0x10, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00");

    CHECK_EQ_U64(in.length, 10);
    CHECK_EQ_U64(in.relative_at, 2);
    CHECK_EQ_U64(in.relative_bytes, 4);
    CHECK(in.reads_memory_relative);
    CHECK_EQ_U64(in.target, RVA + 10 + 0x10);
    /* the same by Zydis: vmovups ymm0, [rip+0x10] */
    in = DECODE("vmovups ymm0, [rip+0x10]");
    CHECK_EQ_U64(in.relative_at, 4);
    CHECK(in.reads_memory_relative);
    CHECK_EQ_U64(in.target, RVA + 8 + 0x10);
}

static void lea_and_wide_immediates_take_addresses(void)
{
    hfn_instruction in = DECODE("lea rax, [rip+0x10]");

    CHECK(in.takes_address && in.relative_at == 3 && !in.reads_memory_relative);
    CHECK_EQ_U64(in.target, RVA + 7 + 0x10);
    in = DECODE("mov edi, 0x401234");
    CHECK(in.takes_address && in.relative_at == 0);
    CHECK_EQ_U64(in.target, 0x1234);
    in = DECODE("movabs rax, 0x401234");
    CHECK(in.takes_address);
    CHECK_EQ_U64(in.target, 0x1234);
    in = DECODE("push 0x401234");
    CHECK(in.takes_address);
    in = DECODE("lea rdx, [rax*8+0x401234]");
    CHECK(in.takes_address);
    CHECK_EQ_U64(in.target, 0x1234);
    CHECK(!DECODE("sub rsp, 0x18").takes_address);
}

static void padding_and_landing_pads_are_recognised(void)
{
    CHECK(DECODE("nop").is_padding);
    CHECK(DECODE("xchg ax, ax").is_padding);
    CHECK(DECODE("int3").is_padding);
    CHECK(DECODE("{disp32} nop dword ptr [rax+rax]").is_padding);
    /* nopw cs:[rax+rax+0], with one and two prefixes 66 */
    CHECK(DECODE(".byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00").is_padding);
    CHECK(DECODE(".byte 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00")
              .is_padding);
    CHECK(!DECODE("pause").is_padding);
    CHECK(!DECODE("xchg r8d, eax").is_padding);
    CHECK(!DECODE("add [rax], al").is_padding);
    CHECK(DECODE("endbr64").is_landing_pad);
    CHECK(!DECODE("rdsspd eax").is_landing_pad);
}

static void invalid_instructions_are_refused(void)
{
    static const uint8_t bad[16] = { 0x06 }, cut[2] = { 0xE8, 0 };
    hfn_instruction in;

    CHECK(!hfn_arch_x86_64.decode(bad, sizeof bad, RVA, 0, &in));
    CHECK(!hfn_arch_x86_64.decode(cut, sizeof cut, RVA, 0, &in));
    CHECK(!hfn_arch_x86_64.decode(cut, 0, RVA, 0, &in));
}

static void effects_list_registers_and_flags(void)
{
    static const uint8_t add[] = { 0x48, 0x01, 0xD8 };      /* add rax, rbx */
    static const uint8_t pop[] = { 0x5C };                  /* pop rsp */
    static const uint8_t shift[] = { 0xD3, 0xE0 };          /* shl eax, cl */
    static const uint8_t multiply[] = { 0x0F, 0xAF, 0xC3 }; /* imul eax, ebx */
    static const uint8_t carry[] = { 0x83, 0xD0, 0x00 };    /* adc eax, 0 */
    static const uint8_t high[] = { 0x0F, 0xB6, 0xC4 };     /* movzx eax, ah */
    hfn_x86_effects e;

    CHECK(hfn_x86_decode_effects(HFN_X86_64, add, sizeof add, 0, &e));
    CHECK_EQ_U64(e.shape, HFN_X86_ADD);
    CHECK_EQ_U64(e.reads, 1u << 0 | 1u << 3);
    CHECK_EQ_U64(e.writes, 1u << 0);
    CHECK_EQ_U64(e.flags_written, HFN_X86_ARITHMETIC_FLAGS);
    CHECK(hfn_x86_decode_effects(HFN_X86_64, pop, sizeof pop, 0, &e));
    CHECK(e.writes & 1u << HFN_X86_RSP);
    CHECK(hfn_x86_decode_effects(HFN_X86_64, shift, sizeof shift, 0, &e));
    CHECK_EQ_U64(e.flags_written, 0); /* cl may be 0 */
    CHECK(hfn_x86_decode_effects(HFN_X86_64, multiply, sizeof multiply, 0, &e));
    CHECK_EQ_U64(e.flags_written, 0x801); /* CF OF; AMD's CPUs leave the others unchanged */
    CHECK(hfn_x86_decode_effects(HFN_X86_64, carry, sizeof carry, 0, &e));
    CHECK_EQ_U64(e.flags_read, 1);
    CHECK(hfn_x86_decode_effects(HFN_X86_64, high, sizeof high, 0, &e));
    CHECK_EQ_U64(e.shape, HFN_X86_OTHER); /* no copy of al */
}

static const check_test tests[] = {
    CHECK_TEST(branches_have_flow_and_target),
    CHECK_TEST(returns_and_stops_are_distinguished),
    CHECK_TEST(indirect_jumps_that_may_use_a_table_are_marked),
    CHECK_TEST(rip_relative_fields_are_relative_to_the_next_instruction),
    CHECK_TEST(lea_and_wide_immediates_take_addresses),
    CHECK_TEST(padding_and_landing_pads_are_recognised),
    CHECK_TEST(invalid_instructions_are_refused),
    CHECK_TEST(effects_list_registers_and_flags),
};
CHECK_MAIN(tests)
