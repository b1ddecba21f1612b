/* SPDX-License-Identifier: MIT */
/* A64: classes of words, moved code and jump tables.  tests/property/arm64_relocate_test.c runs
 * moved code; arm64_agreement.c compares the decoder with another one. */
#include "arch/arch.h"
#include "arch/arm64/decode.h"
#include "arch/arm64/emit_stub.h"
#include "arch/arm64/relocate.h"

#include "check.h"

#define RVA 0x10000u
#define NOP 0xD503201Fu
#define LINE_MAX 16u
#define LIVE_MAX 1100u
#define CODE UINT64_C(0x1000)

static void store(uint8_t *at, uint32_t word)
{
    for (int i = 0; i < 4; i++) {
        at[i] = (uint8_t)(word >> 8 * i);
    }
}

static hfn_instruction decode(uint32_t word)
{
    hfn_instruction in = { .length = 0 };
    uint8_t bytes[4];

    store(bytes, word);
    CHECK(hfn_arch_arm64.decode(bytes, 4, RVA, 0, &in));
    CHECK_EQ_U64(in.length, 4);
    return in;
}

static bool decodes(uint32_t word, uint64_t rva, uint64_t size)
{
    hfn_instruction in;
    uint8_t bytes[4];

    store(bytes, word);
    return hfn_arch_arm64.decode(bytes, size, rva, 0, &in);
}

static void branch_targets_are_landing_pads(void)
{
    CHECK(decode(0xD503245F).is_landing_pad);  /* bti c   */
    CHECK(decode(0xD50324DF).is_landing_pad);  /* bti jc  */
    CHECK(decode(0xD503233F).is_landing_pad);  /* paciasp */
    CHECK(decode(0xD503237F).is_landing_pad);  /* pacibsp */
    CHECK(!decode(0xD50323BF).is_landing_pad); /* autiasp */
    CHECK(decode(0xD503233F).signs_return && !decode(0xD503233F).with_key_b);
    CHECK(decode(0xD503237F).signs_return && decode(0xD503237F).with_key_b);
    CHECK(!decode(NOP).is_landing_pad);
    CHECK(decode(NOP).is_padding);
}

static void unaligned_or_incomplete_words_are_refused(void)
{
    CHECK(decodes(NOP, RVA, 4));
    CHECK(!decodes(NOP, RVA + 2, 4));
    CHECK(!decodes(NOP, RVA, 3));
    CHECK(!decodes(0x02000000, RVA, 4)); /* unallocated */
}

static void second_instruction_completes_an_address(void)
{
    hfn_partial_addresses pages = { .known = 0 };
    uint8_t bytes[4];
    static const uint32_t words[] = { 0xB0000001,   /* adrp x1, +0x1000                     */
                                      0xF9400822,   /* ldr x2, [x1, #16]                    */
                                      0x91004020,   /* add x0, x1, #16                      */
                                      0x94000000,   /* bl: x1 is lost                       */
                                      0x91004020 }; /* add x0, x1, #16                      */
    hfn_instruction in[5];

    for (int i = 0; i < 5; i++) {
        store(bytes, words[i]);
        CHECK(hfn_arch_arm64.decode(bytes, 4, RVA, 0, &in[i]));
        hfn_arch_arm64.complete(bytes, &pages, &in[i]);
    }
    CHECK(!in[0].takes_address);
    CHECK(in[1].reads_memory_relative && in[1].target == RVA + 0x1010);
    CHECK(in[2].takes_address && in[2].target == RVA + 0x1010);
    CHECK(!in[4].takes_address);
}

static void accesses_have_the_width_of_their_register(void)
{
    static const struct {
        uint32_t word, width;
    } rows[] = {
        { 0x18000000, 4 }, { 0x58000000, 8 },  /* ldr w0, ldr x0, by a literal */
        { 0x98000000, 4 }, { 0x1C000000, 4 },  /* ldrsw x0, ldr s0             */
        { 0x5C000000, 8 }, { 0x9C000000, 16 }, /* ldr d0, ldr q0               */
        { 0x39400020, 1 }, { 0x79400020, 2 },  /* ldrb, ldrh w0, [x1]          */
        { 0xB9400020, 4 }, { 0xF9000020, 8 },  /* ldr w0, str x0, [x1]         */
        { 0xBD400020, 4 }, { 0x3DC00020, 16 }, /* ldr s0, ldr q0, [x1]         */
    };
    uint8_t bytes[4];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        store(bytes, rows[i].word);
        CHECK_EQ_U64(hfn_arch_arm64.touched_bytes(bytes, 4), rows[i].width);
    }
}

static hfn_move_result move(uint32_t word, hfn_moved *m)
{
    uint8_t bytes[8];
    uint32_t offset;

    store(bytes, word);
    store(bytes + 4, NOP);
    return hfn_arch_arm64.move(bytes, sizeof bytes, RVA, 4, HFN_NO_REGISTER, m, &offset);
}

static void plain_instructions_are_copied_before_a_branch_back(void)
{
    hfn_moved m;

    CHECK_EQ_U64(move(0xA9BF7BFD, &m), HFN_MOVED); /* stp x29, x30, [sp, #-16]! */
    CHECK_EQ_U64(m.length, 8);
    CHECK_EQ_U64(m.fixup_count, 1);
    CHECK_EQ_U64(m.fixups[0].target_rva, RVA + 4);
    CHECK_EQ_U64(m.fixups[0].end, HFN_ARM64_FIXUP_BRANCH);
    CHECK_EQ_I64(m.cfa_delta_end, 16);
    CHECK_EQ_U64(move(0xD65F03C0, &m), HFN_MOVED); /* ret */
    CHECK_EQ_U64(m.length, 4);
    CHECK_EQ_U64(m.fixup_count, 0);
    CHECK_EQ_U64(move(0x1000005F, &m), HFN_MOVED); /* adr xzr, .+8: has no effect */
    CHECK_MEM(m.bytes, "\x1f\x20\x03\xd5", 4);
}

static void branch_to_itself_targets_its_copy(void)
{
    hfn_moved m;

    CHECK_EQ_U64(move(0x14000000, &m), HFN_MOVED); /* b . */
    CHECK_EQ_U64(m.length, 4);
    CHECK_EQ_U64(m.fixup_count, 0);
    CHECK_MEM(m.bytes, "\0\0\0\x14", 4);
    CHECK_EQ_U64(move(0xB4000000, &m), HFN_MOVED); /* cbz x0, . */
    CHECK_EQ_U64(m.fixup_count, 1);
}

static void position_dependent_instructions_are_refused(void)
{
    hfn_moved m;

    CHECK_EQ_U64(move(0x94000010, &m), HFN_MOVE_CALL);       /* bl             */
    CHECK_EQ_U64(move(0xD63F0000, &m), HFN_MOVE_CALL);       /* blr x0         */
    CHECK_EQ_U64(move(0x58000000, &m), HFN_MOVE_IMPOSSIBLE); /* ldr x0, .      */
    CHECK_EQ_U64(move(0x58FFFFC0, &m),
                 HFN_MOVE_IMPOSSIBLE);             /* ldr x0, .-8: loads have up to 16 bytes */
    CHECK_EQ_U64(move(0x58FFFF80, &m), HFN_MOVED); /* ldr x0, .-16   */
    CHECK_EQ_U64(move(0x0420BC00, &m), HFN_MOVE_IMPOSSIBLE); /* movprfx z0, z0 */
    CHECK_EQ_U64(move(0x04BF5020, &m), HFN_MOVE_IMPOSSIBLE); /* rdvl x0, #1    */
    CHECK_EQ_U64(move(0x19020440, &m), HFN_MOVE_IMPOSSIBLE); /* cpyfp          */
    CHECK_EQ_U64(move(0xDAC1A3FE, &m), HFN_MOVE_IMPOSSIBLE); /* paciasppc      */
    CHECK_EQ_U64(move(0x02000000, &m), HFN_MOVE_UNDECODABLE);
}

static void branches_reach_128_mib(void)
{
    uint64_t reach = UINT64_C(1) << 27, at = UINT64_C(1) << 40;
    uint8_t bytes[4] = { 0, 0, 0, 0x14 };

    CHECK(hfn_patching_arm64.fix_up(bytes, at, 0, HFN_ARM64_FIXUP_BRANCH, at - reach));
    CHECK(hfn_patching_arm64.fix_up(bytes, at, 0, HFN_ARM64_FIXUP_BRANCH, at + reach - 4));
    CHECK_MEM(bytes, "\xFF\xFF\xFF\x15", 4);
    CHECK(!hfn_patching_arm64.fix_up(bytes, at, 0, HFN_ARM64_FIXUP_BRANCH, at + reach));
    CHECK(!hfn_patching_arm64.fix_up(bytes, at, 0, HFN_ARM64_FIXUP_BRANCH, at - reach - 4));
    CHECK(!hfn_patching_arm64.fix_up(bytes, at, 0, HFN_ARM64_FIXUP_BRANCH, at + 2));
}

static int32_t growth(uint32_t word)
{
    int32_t bytes;

    return hfn_arm64_get_stack_growth(word, &bytes) ? bytes : INT32_MAX;
}

static void stack_grows_by_constants_and_write_backs(void)
{
    CHECK_EQ_I64(growth(0xD10083FF), 32);        /* sub sp, sp, #32            */
    CHECK_EQ_I64(growth(0xD14007FF), 4096);      /* sub sp, sp, #1, lsl #12    */
    CHECK_EQ_I64(growth(0x910083FF), -32);       /* add sp, sp, #32            */
    CHECK_EQ_I64(growth(0xA9BE7BFD), 32);        /* stp x29, x30, [sp, #-32]!  */
    CHECK_EQ_I64(growth(0x6DBD23E9), 48);        /* stp d9, d8, [sp, #-48]!    */
    CHECK_EQ_I64(growth(0xA8C27BFD), -32);       /* ldp x29, x30, [sp], #32    */
    CHECK_EQ_I64(growth(0xF81F0FFE), 16);        /* str x30, [sp, #-16]!       */
    CHECK_EQ_I64(growth(0xF84107FE), -16);       /* ldr x30, [sp], #16         */
    CHECK_EQ_I64(growth(0xF90007FE), 0);         /* str x30, [sp, #8]          */
    CHECK_EQ_I64(growth(0xA9017BFD), 0);         /* stp x29, x30, [sp, #16]    */
    CHECK_EQ_I64(growth(0x910003BF), INT32_MAX); /* mov sp, x29                */
    CHECK_EQ_I64(growth(0x927CEC1F), INT32_MAX); /* and sp, x0, #-16           */
    CHECK_EQ_I64(growth(0xCB3063FF), INT32_MAX); /* sub sp, sp, x16            */
    CHECK_EQ_I64(growth(0x0C9F7FE0), INT32_MAX); /* st1 {v0.1d}, [sp], #8      */
    CHECK_EQ_I64(growth(0xF100041F), 0);         /* cmp x0, #1                 */
}

static hfn_dispatch dispatch(const uint32_t *words, uint32_t count)
{
    uint8_t bytes[4 * LINE_MAX];
    uint32_t starts[LINE_MAX];
    hfn_straight_line line = { bytes, sizeof bytes, RVA, 0, starts, count, 0, false };
    hfn_dispatch d;

    for (uint32_t i = 0; i < count; i++) {
        starts[i] = 4 * i;
        store(bytes + 4 * i, words[i]);
    }
    hfn_arch_arm64.dispatch(&line, &d);
    return d;
}
#define DISPATCH(...)                                                                              \
    dispatch((const uint32_t[]){ __VA_ARGS__ }, sizeof((uint32_t[]){ __VA_ARGS__ }) / 4)

/* cmp w0, #19; b.hi; adrp x0; add x0, #0x40; ldrb w0, [x0, w2, uxtw]; adr x2, 12; add x0, x2, w0,
 * sxtb #2; br x0: gcc -O2 */
static void gcc_table_of_bytes_is_described(void)
{
    hfn_dispatch d = DISPATCH(0x71004C5F, 0x54000068, 0xB0000000, 0x91010000, 0x38624800,
                              0x10000062, 0x8B208840, 0xD61F0000);

    CHECK_EQ_U64(d.kind, HFN_DISPATCH_TABLE);
    CHECK_EQ_U64(d.entry_bytes, 1);
    CHECK_EQ_U64(d.entry_shift, 2);
    CHECK(d.entry_is_signed);
    CHECK_EQ_U64(d.table_rva, RVA + 0x1040);
    CHECK_EQ_U64(d.base_rva, RVA + 5 * 4 + 12);
    CHECK_EQ_U64(d.entry_count, 20);
}

/* ldrh w1, [x1, w0, uxtw #1]; adr x0, 12; add x1, x0, w1, sxth #2; br x1 */
static void gcc_table_of_halves_is_described(void)
{
    hfn_dispatch d =
        DISPATCH(0x90000001, 0x91000021, 0x78605821, 0x10000060, 0x8B21A801, 0xD61F0020);

    CHECK_EQ_U64(d.kind, HFN_DISPATCH_TABLE);
    CHECK_EQ_U64(d.entry_bytes, 2);
    CHECK(d.entry_is_signed);
    CHECK_EQ_U64(d.entry_count, 0);
}

/* cmp w0, #6; b.hi; adrp x9; mov w8, w0; add x9; adr x10, 16; ldrb w11, [x9, x8]; add x10, x10,
 * x11, lsl #2; br x10: clang -O2 */
static void clang_table_of_bytes_is_described(void)
{
    hfn_dispatch d = DISPATCH(0x7100181F, 0x54000148, 0x90000009, 0x2A0003E8, 0x91000129,
                              0x1000008A, 0x3868692B, 0x8B0B094A, 0xD61F0140);

    CHECK_EQ_U64(d.kind, HFN_DISPATCH_TABLE);
    CHECK_EQ_U64(d.entry_bytes, 1);
    CHECK_EQ_U64(d.entry_shift, 2);
    CHECK(!d.entry_is_signed);
    CHECK_EQ_U64(d.base_rva, RVA + 5 * 4 + 16);
    CHECK_EQ_U64(d.entry_count, 7);
}

/* adrp x10; add x10; adr x8; ldrsw x9, [x10, x11, lsl #2]; add x8, x8, x9; br x8: clang -O0 */
static void clang_table_of_words_is_described(void)
{
    hfn_dispatch d =
        DISPATCH(0x9000000A, 0x9100014A, 0x10000008, 0xB8AB7949, 0x8B090108, 0xD61F0100);

    CHECK_EQ_U64(d.kind, HFN_DISPATCH_TABLE);
    CHECK_EQ_U64(d.entry_bytes, 4);
    CHECK_EQ_U64(d.entry_shift, 0);
    CHECK(d.entry_is_signed);
}

static void jumps_through_pointers_are_no_tables(void)
{
    CHECK_EQ_U64(DISPATCH(0xF9400410, 0xD61F0200).kind,
                 HFN_DISPATCH_POINTER); /* ldr x16, [x0, #8] */
    CHECK_EQ_U64(DISPATCH(NOP, 0xD61F0200).kind, HFN_DISPATCH_VALUE);
    CHECK_EQ_U64(DISPATCH(0x94000000, 0xD61F0000).kind, HFN_DISPATCH_POINTER);  /* bl; br x0 */
    CHECK_EQ_U64(DISPATCH(0xCA010000, 0xD61F0000).kind, HFN_DISPATCH_COMPUTED); /* eor x0 */
}

/* The instructions from the patch's target to the moved instructions. */
static uint32_t count_instructions(hfn_stub_kind kind, uint32_t flags)
{
    const hfn_stub_shape *shape = hfn_arm64_get_stub_shape(kind, flags);

    return (shape->head_bytes - shape->entry_at) / HFN_ARM64_BYTES;
}

/* These numbers are documented in docs/design/cpu.md. */
static bool are_live(const uint32_t *words, uint32_t count, const hfn_flag_reads *reads)
{
    static uint8_t bytes[4 * LIVE_MAX];

    for (uint32_t i = 0; i < count; i++) {
        store(bytes + 4 * i, words[i]);
    }
    return hfn_arm64_are_scratch_registers_live(bytes, 4 * count, CODE, 4, reads);
}
/* The code begins at the second word. */
#define LIVE_IN(reads, ...)                                                                        \
    are_live((const uint32_t[]){ __VA_ARGS__ }, sizeof((uint32_t[]){ __VA_ARGS__ }) / 4, reads)
#define LIVE(...) LIVE_IN(&(const hfn_flag_reads){ .at_entry = true }, __VA_ARGS__)

static void scratch_registers_are_live_if_any_path_reads_them(void)
{
    enum { ADD_X16 = (int)0x8B100000, SET_X16 = (int)0xD2800030, SET_X17 = (int)0xD2800031 };
    enum { RET = (int)0xD65F03C0, BL = (int)0x94000010, BR_X9 = (int)0xD61F0120 };
    enum { CBZ_8 = (int)0xB4000040, B_8 = 0x14000002, B_BACK = 0x17FFFFFF };

    CHECK(LIVE(NOP, (uint32_t)ADD_X16, (uint32_t)RET));
    CHECK(!LIVE((uint32_t)ADD_X16, NOP, (uint32_t)RET));
    CHECK(!LIVE(NOP, (uint32_t)SET_X16, (uint32_t)ADD_X16, (uint32_t)RET));
    CHECK(!LIVE(NOP, (uint32_t)BL, (uint32_t)ADD_X16)); /* a veneer may change it */
    CHECK(LIVE(NOP, (uint32_t)CBZ_8, (uint32_t)RET, (uint32_t)ADD_X16));
    CHECK(LIVE(NOP, B_8, NOP, (uint32_t)ADD_X16));
    CHECK(LIVE((uint32_t)ADD_X16, B_BACK));
    CHECK(!LIVE(NOP, NOP, B_BACK)); /* a loop */
    CHECK(!LIVE(NOP, (uint32_t)BR_X9));
    CHECK(!LIVE(NOP, (uint32_t)SET_X16, (uint32_t)SET_X17, (uint32_t)BR_X9));
    CHECK(LIVE(NOP, (uint32_t)CBZ_8, (uint32_t)SET_X16, (uint32_t)ADD_X16, (uint32_t)RET));
    CHECK(!LIVE(NOP, B_8)); /* to another function: a veneer may change it */
    CHECK(LIVE(NOP, NOP));  /* the code behind is unknown */
}

static void scratch_registers_are_live_if_targets_of_indirect_branches_read_them(void)
{
    enum { BR_X9 = (int)0xD61F0120, BLR_X9 = (int)0xD63F0120, RET = (int)0xD65F03C0 };
    enum { SET_X16 = (int)0xD2800030, SET_X17 = (int)0xD2800031, BL = (int)0x94000010 };
    const uint64_t jumps[] = { CODE + 8 };
    const hfn_flag_reads targets = { .at_targets = true },
                         jump = { .jumps = jumps, .jump_count = 1 };

    CHECK(LIVE_IN(&targets, NOP, (uint32_t)BR_X9));
    CHECK(LIVE_IN(&targets, NOP, (uint32_t)BLR_X9));
    CHECK(LIVE_IN(&targets, NOP, (uint32_t)SET_X16, (uint32_t)BR_X9));
    CHECK(!LIVE_IN(&targets, NOP, (uint32_t)SET_X16, (uint32_t)SET_X17, (uint32_t)BR_X9));
    CHECK(!LIVE_IN(&targets, NOP, (uint32_t)BL, (uint32_t)BR_X9));
    CHECK(!LIVE_IN(&targets, NOP, (uint32_t)RET));
    CHECK(LIVE_IN(&jump, NOP, NOP, (uint32_t)BR_X9));
    CHECK(!LIVE_IN(&jump, NOP, (uint32_t)BR_X9));
}

/* Vector extensions, hints and long code: what is not known is a read. */
static void scratch_registers_are_live_if_that_is_not_known(void)
{
    enum { RET = (int)0xD65F03C0, CNTB_X7 = (int)0x0420E3E7, WHILELO_X16 = (int)0x25300FE0 };
    enum { AUTIA1716 = (int)0xD503219F, CHKFEAT = (int)0xD503251F, CPYFP = (int)0x19010440 };
    enum { B_NEXT = 0x14000001, CBZ_NEXT = (int)0xB4000020 };
    static uint32_t many[LIVE_MAX];

    CHECK(!LIVE(NOP, (uint32_t)CNTB_X7, (uint32_t)RET));
    CHECK(LIVE(NOP, (uint32_t)WHILELO_X16, (uint32_t)RET));
    CHECK(LIVE(NOP, (uint32_t)AUTIA1716, (uint32_t)RET));
    CHECK(LIVE(NOP, (uint32_t)CHKFEAT, (uint32_t)RET));
    CHECK(LIVE(NOP, (uint32_t)CPYFP, (uint32_t)RET));
    for (uint32_t i = 0; i < LIVE_MAX; i++) {
        many[i] = i % 2 ? (uint32_t)CBZ_NEXT : (uint32_t)B_NEXT;
    }
    many[LIVE_MAX - 1] = (uint32_t)RET;
    CHECK(are_live(many, LIVE_MAX, &(const hfn_flag_reads){ 0 }));
    CHECK(!are_live(many + LIVE_MAX - 50, 50, &(const hfn_flag_reads){ 0 }));
}

static void count_takes_six_instructions_or_seven_beyond_slot_4095(void)
{
    CHECK_EQ_U64(HFN_STUB_NEAR_SLOT_BYTES, 8 * 4096);
    CHECK_EQ_U64(count_instructions(HFN_STUB_COUNT, 0), 6);
    CHECK_EQ_U64(count_instructions(HFN_STUB_COUNT, HFN_STUB_SIGNED), 6);
    CHECK_EQ_U64(count_instructions(HFN_STUB_COUNT, HFN_STUB_FAR_SLOT), 7);
    CHECK_EQ_U64(count_instructions(HFN_STUB_COUNT, HFN_STUB_FLAGS_LIVE), 8);
    CHECK_EQ_U64(count_instructions(HFN_STUB_TIME, 0), 6 + 12);
    CHECK_EQ_U64(count_instructions(HFN_STUB_TIME, HFN_STUB_SIGNED), 6 + 14);
    CHECK_EQ_U64(count_instructions(HFN_STUB_SAMPLE, 0), 6 + 7 + 12);
}

static const check_test tests[] = {
    CHECK_TEST(scratch_registers_are_live_if_any_path_reads_them),
    CHECK_TEST(scratch_registers_are_live_if_targets_of_indirect_branches_read_them),
    CHECK_TEST(scratch_registers_are_live_if_that_is_not_known),
    CHECK_TEST(count_takes_six_instructions_or_seven_beyond_slot_4095),
    CHECK_TEST(branch_targets_are_landing_pads),
    CHECK_TEST(unaligned_or_incomplete_words_are_refused),
    CHECK_TEST(second_instruction_completes_an_address),
    CHECK_TEST(accesses_have_the_width_of_their_register),
    CHECK_TEST(plain_instructions_are_copied_before_a_branch_back),
    CHECK_TEST(branch_to_itself_targets_its_copy),
    CHECK_TEST(position_dependent_instructions_are_refused),
    CHECK_TEST(branches_reach_128_mib),
    CHECK_TEST(stack_grows_by_constants_and_write_backs),
    CHECK_TEST(gcc_table_of_bytes_is_described),
    CHECK_TEST(gcc_table_of_halves_is_described),
    CHECK_TEST(clang_table_of_bytes_is_described),
    CHECK_TEST(clang_table_of_words_is_described),
    CHECK_TEST(jumps_through_pointers_are_no_tables),
};
CHECK_MAIN(tests)
