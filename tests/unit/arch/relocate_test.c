/* SPDX-License-Identifier: MIT */
/* Moved prologues, byte by byte.  tests/property/relocate_test.c runs them. */
#include "arch/arch.h"

#include "arch_relocate_code.h"
#include "check.h"

#define RVA 0x1000u

static hfn_move_result last_result;
static uint32_t last_offset;

/* Move text's instructions (the rest of 64 bytes is int3) until patch_bytes are covered. */
static hfn_moved move(const char *text, size_t size, uint32_t patch_bytes)
{
    uint8_t bytes[64];
    hfn_moved moved = { .length = 0 };

    memset(bytes, 0xCC, sizeof bytes);
    memcpy(bytes, text, size);
    last_result = hfn_arch_x86_64.move(bytes, sizeof bytes, RVA, patch_bytes, HFN_NO_REGISTER,
                                       &moved, &last_offset);
    return moved;
}
#define MOVE(text, patch_bytes) move(CODE_64(text), patch_bytes)

static void check_fixup(const hfn_moved *m, uint32_t index, uint32_t at, uint32_t end,
                        uint64_t target)
{
    if (!CHECK(index < m->fixup_count)) {
        return;
    }
    CHECK_EQ_U64(m->fixups[index].at, at);
    CHECK_EQ_U64(m->fixups[index].end, end);
    CHECK_EQ_U64(m->fixups[index].target_rva, target);
}

static void plain_instructions_are_copied_before_a_jump_back(void)
{
    hfn_moved m = MOVE("push rbx; mov rbx, rdi; sub rsp, 0x10", 5);

    CHECK_EQ_U64(last_result, HFN_MOVED);
    CHECK_EQ_U64(m.length, 8 + 5);
    CHECK_MEM(m.bytes, "\x53\x48\x89\xFB\x48\x83\xEC\x10\xE9", 9);
    CHECK_EQ_U64(m.fixup_count, 1);
    check_fixup(&m, 0, 9, 13, RVA + 8);
    CHECK_EQ_U64(m.original_bytes, 8);
    CHECK_EQ_U64(m.instruction_count, 3);
    CHECK_MEM(m.original_at, "\x00\x01\x04", 3);
    CHECK_MEM(m.moved_at, "\x00\x01\x04", 3);
}

static void rip_relative_fields_become_fixups_even_before_an_immediate(void)
{
    hfn_moved m = MOVE("cmp dword ptr [rip+0x100], 7", 5);

    CHECK_EQ_U64(last_result, HFN_MOVED);
    check_fixup(&m, 0, 2, 7, RVA + 7 + 0x100);
    check_fixup(&m, 1, 8, 12, RVA + 7);
}

static void short_branches_are_widened(void)
{
    hfn_moved m = MOVE("test edi, edi; je .+0x22; ret", 5);

    CHECK_EQ_U64(last_result, HFN_MOVED);
    CHECK_MEM(m.bytes, "\x85\xFF\x0F\x84", 4);
    CHECK_EQ_U64(m.bytes[8], 0xC3);
    CHECK_EQ_U64(m.length, 9); /* nothing follows ret */
    CHECK_EQ_U64(m.fixup_count, 1);
    check_fixup(&m, 0, 4, 8, RVA + 4 + 0x20);
    m = MOVE("jmp .+0x22", 2);
    CHECK_MEM(m.bytes, "\xE9", 1);
    CHECK_EQ_U64(m.length, 5);
    check_fixup(&m, 0, 1, 5, RVA + 2 + 0x20);
}

static void loops_and_jrcxz_are_expanded(void)
{
    hfn_moved m = MOVE("jrcxz .+0x22; nop; nop; nop", 2);

    CHECK_EQ_U64(last_result, HFN_MOVED);
    CHECK_MEM(m.bytes, "\xE3\x02\xEB\x05\xE9", 5); /* jrcxz +2; jmp +5; jmp rel32 */
    check_fixup(&m, 0, 5, 9, RVA + 2 + 0x20);
    check_fixup(&m, 1, 10, 14, RVA + 2);
    m = MOVE("addr32 loop .+0x23", 3); /* loop by ecx */
    CHECK_MEM(m.bytes, "\x67\xE2\x02\xEB\x05\xE9", 6);
    check_fixup(&m, 0, 6, 10, RVA + 3 + 0x20);
}

static void copies_follow_the_widened_branch(void)
{
    static const struct {
        const char *bytes;
        uint32_t size, moved_bytes;
    } rows[] = {
        { "\xEB\x20\x90\x90\x90", 5, 5 },      /* jmp */
        { "\x74\x20\x90\x90\x90", 5, 6 },      /* je */
        { "\xE0\x20\x90\x90\x90", 5, 9 },      /* loopne */
        { "\xE1\x20\x90\x90\x90", 5, 9 },      /* loope */
        { "\xE2\x20\x90\x90\x90", 5, 9 },      /* loop */
        { "\xE3\x20\x90\x90\x90", 5, 9 },      /* jrcxz */
        { "\x67\xE3\x20\x90\x90\x90", 6, 10 }, /* jecxz */
        { "\x7F\x20\x90\x90\x90", 5, 6 },      /* jg */
    };

    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hfn_moved m = move(rows[i].bytes, rows[i].size, rows[i].size);
        CHECK_EQ_U64(last_result, HFN_MOVED);
        CHECK_EQ_U64(m.moved_at[1], rows[i].moved_bytes);
        CHECK_EQ_U64(m.moved_at[3], rows[i].moved_bytes + 2);
        CHECK_MEM(m.bytes + rows[i].moved_bytes, "\x90\x90\x90\xE9", 4);
    }
}

static void a_jump_to_a_moved_instruction_goes_to_its_copy(void)
{
    hfn_moved m = MOVE("je .+3; nop; nop; nop", 5);

    CHECK_EQ_U64(last_result, HFN_MOVED);
    CHECK_MEM(m.bytes, "\x0F\x84\x01\x00\x00\x00\x90\x90\x90", 9);
    CHECK_EQ_U64(m.fixup_count, 1);
    /* a jump back to the first nop */
    m = MOVE("nop; nop; nop; jmp .-3", 5);
    CHECK_MEM(m.bytes, "\x90\x90\x90\xE9\xF8\xFF\xFF\xFF", 8);
    CHECK_EQ_U64(m.fixup_count, 0);
    /* xbegin to the nop after it */
    m = MOVE("xbegin .+6; nop", 7);
    CHECK_MEM(m.bytes, "\xC7\xF8\x00\x00\x00\x00\x90", 7);
    CHECK_EQ_U64(m.fixup_count, 1);
    /* je to the first instruction that is not moved */
    m = MOVE("je .+5; nop; nop; nop", 5);
    CHECK_EQ_U64(last_result, HFN_MOVED);
    check_fixup(&m, 0, 2, 6, RVA + 5);
}

static void a_jump_into_the_middle_of_a_moved_instruction_is_refused(void)
{
    MOVE("je .+3; mov eax, 0x4030201", 5);
    CHECK_EQ_U64(last_result, HFN_MOVE_IMPOSSIBLE);
    CHECK_EQ_U64(last_offset, 0);
}

static void calls_are_refused_with_their_offset(void)
{
    MOVE("sub rsp, 8; call .+5", 5);
    CHECK_EQ_U64(last_result, HFN_MOVE_CALL);
    CHECK_EQ_U64(last_offset, 4);
    MOVE("push rax; call [rax]", 5);
    CHECK_EQ_U64(last_result, HFN_MOVE_CALL);
    CHECK_EQ_U64(last_offset, 1);
    MOVE("call [rip]; nop", 7); /* it returns into the patch */
    CHECK_EQ_U64(last_result, HFN_MOVE_CALL);
    CHECK_EQ_U64(last_offset, 0);
}

static void a_call_through_memory_pushes_the_original_return_address(void)
{
    hfn_moved m = MOVE("push rax; call [rip+0x100]; nop", 5);

    CHECK_EQ_U64(last_result, HFN_MOVED);
    CHECK_EQ_U64(m.length, 1 + 18);
    CHECK_MEM(m.bytes, "\x50\x50\x48\x8D\x05", 5);         /* push rax; push rax; lea  */
    CHECK_MEM(m.bytes + 9, "\x48\x87\x04\x24\xFF\x25", 6); /* xchg [rsp], rax; jmp     */
    CHECK_EQ_U64(m.fixup_count, 2);
    check_fixup(&m, 0, 5, 9, RVA + 7);
    check_fixup(&m, 1, 15, 19, RVA + 7 + 0x100);
    CHECK_EQ_U64(m.original_bytes, 7);
    CHECK_EQ_U64(m.instruction_count, 2);
}

static void narrow_branches_and_addresses_are_refused(void)
{
    MOVE(".byte 0x66, 0xe9, 0x00, 0x00, 0x00, 0x00",
         5); /* data16 jmp: its length depends on the CPU's vendor */
    CHECK_EQ_U64(last_result, HFN_MOVE_IMPOSSIBLE);
    MOVE("mov eax, [eip]", 5);
    CHECK_EQ_U64(last_result, HFN_MOVE_IMPOSSIBLE);
    MOVE(".byte 0xf2, 0x67, 0x0f, 0x10, 0x05, 0x00, 0x00, 0x00, 0x00", 5); /* movsd xmm0, [eip] */
    CHECK_EQ_U64(last_result, HFN_MOVE_IMPOSSIBLE);
}

static void opcode_67_is_not_a_prefix(void)
{
    hfn_moved m = MOVE("packuswb xmm0, [rip]", 5);

    CHECK_EQ_U64(last_result, HFN_MOVED);
    check_fixup(&m, 0, 4, 8, RVA + 8);
}

static void xbegin_keeps_its_form(void)
{
    hfn_moved m = MOVE("xbegin .+0x26", 5);

    CHECK_EQ_U64(last_result, HFN_MOVED);
    CHECK_MEM(m.bytes, "\xC7\xF8", 2);
    check_fixup(&m, 0, 2, 6, RVA + 6 + 0x20);
}

static void an_indirect_jump_ends_the_moved_code(void)
{
    hfn_moved m = MOVE("notrack jmp [rip+0x10]", 5);

    CHECK_EQ_U64(last_result, HFN_MOVED);
    CHECK_EQ_U64(m.length, 7);
    check_fixup(&m, 0, 3, 7, RVA + 7 + 0x10);
}

static void stack_depth_is_reported_before_each_instruction(void)
{
    hfn_moved m = MOVE("push rbp; push r12; sub rsp, 0x20; lea rsp, [rsp-8]; pop rax", 13);

    CHECK_EQ_U64(m.instruction_count, 5);
    CHECK_EQ_I64(m.cfa_delta[0], 0);
    CHECK_EQ_I64(m.cfa_delta[1], 8);
    CHECK_EQ_I64(m.cfa_delta[2], 16);
    CHECK_EQ_I64(m.cfa_delta[3], 48);
    CHECK_EQ_I64(m.cfa_delta[4], 56);
    CHECK_EQ_I64(m.cfa_delta_end, 48);
}

static void unknown_stack_depth_stays_unknown(void)
{
    hfn_moved m = MOVE("push rbp; and rsp, -16; push rax", 6);

    CHECK_EQ_I64(m.cfa_delta[1], 8);
    CHECK_EQ_I64(m.cfa_delta[2], HFN_CFA_UNKNOWN);
    CHECK_EQ_I64(m.cfa_delta_end, HFN_CFA_UNKNOWN);
}

static void stack_depth_beyond_int16_is_unknown(void)
{
    CHECK_EQ_I64(MOVE("sub rsp, 0x7fff", 5).cfa_delta_end, INT16_MAX);
    CHECK_EQ_I64(MOVE("sub rsp, 0x8000", 5).cfa_delta_end, HFN_CFA_UNKNOWN);
    CHECK_EQ_I64(MOVE("sub rsp, 0xffffffffffff8001", 5).cfa_delta_end, INT16_MIN + 1);
    CHECK_EQ_I64(MOVE("sub rsp, 0xffffffffffff8000", 5).cfa_delta_end, HFN_CFA_UNKNOWN);
    CHECK_EQ_I64(MOVE("sub rsp, 0xfffffffffffe0000", 5).cfa_delta_end, HFN_CFA_UNKNOWN);
    CHECK_EQ_I64(MOVE("sub rsp, 0x8010", 5).cfa_delta_end, HFN_CFA_UNKNOWN);
    /* the push counts too */
    CHECK_EQ_I64(MOVE("push rax; sub rsp, 0x7ff8", 8).cfa_delta_end, HFN_CFA_UNKNOWN);
    CHECK_EQ_I64(MOVE("push rax; sub rsp, 0x7ff0", 8).cfa_delta_end, 0x7ff8);
}

static void no_jump_back_follows_a_stop(void)
{
    hfn_moved m = MOVE("nop; nop; nop; ud2", 5);

    CHECK_EQ_U64(m.length, 5);
    m = MOVE("nop; nop; nop; nop; int3", 5); /* int3: a debugger may continue after it */
    CHECK_EQ_U64(m.length, 5 + 5);
}

static void too_many_fixups_are_refused(void)
{
    /* seven fixups for je, one for the jump back */
    hfn_moved m = MOVE(
        "je .+0x22; je .+0x22; je .+0x22; je .+0x22; je .+0x22; je .+0x22; je .+0x22; nop", 15);

    CHECK_EQ_U64(last_result, HFN_MOVED);
    CHECK_EQ_U64(m.fixup_count, HFN_FIXUP_MAX);
    MOVE("je .+0x22; je .+0x22; je .+0x22; je .+0x22; je .+0x22; je .+0x22; je .+0x22; je .+0x22",
         16);
    CHECK_EQ_U64(last_result, HFN_MOVE_TOO_LONG); /* no room for the jump back */
    MOVE(
        "je .+0x22; je .+0x22; je .+0x22; je .+0x22; je .+0x22; je .+0x22; je .+0x22; je .+0x22; jmp .+0x22",
        18);
    CHECK_EQ_U64(last_result, HFN_MOVE_TOO_LONG);
}

static void too_many_bytes_are_refused(void)
{
    static const uint8_t nop[15] = { 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x0F, 0x1F, 0x84 };
    uint8_t bytes[7 * 15];
    hfn_moved m;
    uint32_t offset;

    for (uint32_t i = 0; i < 7; i++) {
        memcpy(bytes + i * 15, nop, 15);
    }
    CHECK_EQ_U64(hfn_arch_x86_64.move(bytes, sizeof bytes, RVA, 90, HFN_NO_REGISTER, &m, &offset),
                 HFN_MOVED);
    CHECK_EQ_U64(m.length, 90 + 5);
    CHECK_EQ_U64(hfn_arch_x86_64.move(bytes, sizeof bytes, RVA, 91, HFN_NO_REGISTER, &m, &offset),
                 HFN_MOVE_TOO_LONG);
}

static void nothing_is_read_beyond_the_code(void)
{
    static const uint8_t bytes[] = { 0x90, 0x90, 0xB8, 1, 0, 0, 0 }; /* nop; nop; mov eax, 1 */
    hfn_moved m;
    uint32_t offset;

    CHECK_EQ_U64(hfn_arch_x86_64.move(bytes, 7, RVA, 5, HFN_NO_REGISTER, &m, &offset), HFN_MOVED);
    CHECK_EQ_U64(hfn_arch_x86_64.move(bytes, 6, RVA, 5, HFN_NO_REGISTER, &m, &offset),
                 HFN_MOVE_UNDECODABLE);
    CHECK_EQ_U64(offset, 2);
}

static void refusals_report_the_offset(void)
{
    MOVE("nop; .byte 0x06", 5);
    CHECK_EQ_U64(last_result, HFN_MOVE_UNDECODABLE);
    CHECK_EQ_U64(last_offset, 1);
    move("\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90", 18, 18);
    CHECK_EQ_U64(last_result, HFN_MOVE_TOO_LONG);
}

static void a_retargeted_call_moves_nothing(void)
{
    static const uint8_t call[] = { 0xE8, 0x10, 0, 0, 0, 0x90 };
    static const uint8_t jump[] = { 0xE9, 0x10, 0, 0, 0 };
    static const uint8_t other[] = { 0xF2, 0xE9, 0x10, 0, 0, 0 };
    hfn_moved m;

    CHECK(hfn_arch_x86_64.retarget(call, sizeof call, RVA, &m));
    CHECK_EQ_U64(m.length, 5);
    CHECK_EQ_U64(m.bytes[0], 0xE9);
    CHECK_EQ_U64(m.instruction_count, 0);
    CHECK_EQ_U64(m.original_bytes, 5);
    check_fixup(&m, 0, 1, 5, RVA + 0x15);
    CHECK(hfn_arch_x86_64.retarget(jump, sizeof jump, RVA, &m));
    CHECK(!hfn_arch_x86_64.retarget(jump, 4, RVA, &m));
    CHECK(!hfn_arch_x86_64.retarget(other, sizeof other, RVA, &m));
}

/* Only branches that every CPU decodes alike may be changed by writing their field. */
static void plain_calls_and_jumps_are_retargetable(void)
{
    static const struct {
        const char *bytes;
        uint32_t size;
        bool is_retargetable;
    } rows[] = {
        { "\xE8\x10\x00\x00\x00", 5, true },          /* call     */
        { "\xE9\x10\x00\x00\x00", 5, true },          /* jmp      */
        { "\x0F\x80\x10\x00\x00\x00", 6, true },      /* jo       */
        { "\x0F\x8F\x10\x00\x00\x00", 6, true },      /* jg       */
        { "\xC7\xF8\x10\x00\x00\x00", 6, false },     /* xbegin   */
        { "\xF2\xE8\x10\x00\x00\x00", 6, false },     /* bnd call */
        { "\x3E\x0F\x85\x10\x00\x00\x00", 7, false }, /* jne with a prefix */
        { "\x8B\x05\x10\x00\x00\x00", 6, false },     /* mov eax, [rip]    */
        { "\xB8\x10\x00\x00\x00", 5, false },         /* mov eax, imm32    */
        { "\x74\x10", 2, false },                     /* je       */
    };

    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const uint8_t *bytes = (const uint8_t *)rows[i].bytes;
        hfn_instruction in;
        CHECK(hfn_arch_x86_64.decode(bytes, rows[i].size, RVA, 0, &in));
        if (!CHECK(hfn_arch_x86_64.is_retargetable(bytes, &in) == rows[i].is_retargetable)) {
            printf("# row %u\n", i);
        }
    }
}

static const check_test tests[] = {
    CHECK_TEST(plain_instructions_are_copied_before_a_jump_back),
    CHECK_TEST(rip_relative_fields_become_fixups_even_before_an_immediate),
    CHECK_TEST(short_branches_are_widened),
    CHECK_TEST(loops_and_jrcxz_are_expanded),
    CHECK_TEST(copies_follow_the_widened_branch),
    CHECK_TEST(a_jump_to_a_moved_instruction_goes_to_its_copy),
    CHECK_TEST(a_jump_into_the_middle_of_a_moved_instruction_is_refused),
    CHECK_TEST(calls_are_refused_with_their_offset),
    CHECK_TEST(a_call_through_memory_pushes_the_original_return_address),
    CHECK_TEST(narrow_branches_and_addresses_are_refused),
    CHECK_TEST(opcode_67_is_not_a_prefix),
    CHECK_TEST(xbegin_keeps_its_form),
    CHECK_TEST(an_indirect_jump_ends_the_moved_code),
    CHECK_TEST(stack_depth_is_reported_before_each_instruction),
    CHECK_TEST(unknown_stack_depth_stays_unknown),
    CHECK_TEST(stack_depth_beyond_int16_is_unknown),
    CHECK_TEST(no_jump_back_follows_a_stop),
    CHECK_TEST(too_many_fixups_are_refused),
    CHECK_TEST(too_many_bytes_are_refused),
    CHECK_TEST(nothing_is_read_beyond_the_code),
    CHECK_TEST(refusals_report_the_offset),
    CHECK_TEST(a_retargeted_call_moves_nothing),
    CHECK_TEST(plain_calls_and_jumps_are_retargetable),
};
CHECK_MAIN(tests)
