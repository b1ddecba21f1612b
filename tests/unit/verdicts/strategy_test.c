/* SPDX-License-Identifier: MIT */
/* Each strategy, and each reason for a refusal that follows from the bytes of a function. */
#include "scene.h"

/* A block of 0x98 (cwde) so long that small positive displacements stay inside the image. */
#define IMAGE_BYTES 0x4000

static void whole_instructions_make_a_jump(void)
{
    scene s = scene_begin();
    /* push rbx; mov rbx, rdi; sub rsp, 16; ret */
    uint64_t f = SCENE_FUNCTION(&s, "f", "\x53\x48\x89\xFB\x48\x83\xEC\x10\xC3");
    hfn_moved moved;

    scene_analyze(&s);
    EXPECT_STRATEGY(&s, f, HOTFN_STRATEGY_JUMP);
    const hfn_verdict v = scene_verdict(&s, f);
    CHECK_EQ_U64(v.site_rva, f);
    CHECK_EQ_U64(v.pub.patch_offset, 0);
    CHECK_EQ_U64(v.pub.patch_bytes, 5);
    CHECK_EQ_U64(v.covered_bytes, 8);
    CHECK(hfn_verdicts_moved(s.verdicts, 0, &moved));
    CHECK_EQ_U64(moved.original_bytes, 8);
    CHECK(hfn_verdicts_at(s.verdicts, 1) == NULL);
    scene_finish(&s);
}

static void a_call_or_jump_at_the_entry_is_retargeted(void)
{
    scene s = scene_begin();
    uint64_t target = SCENE_FUNCTION(&s, "target", "\x53\x48\x89\xFB\x5B\xC3");
    uint64_t by_call = scene_here(&s), by_jump, behind_pad;
    hfn_moved moved;

    scene_symbol(&s, "by_call", by_call, 6, FUNC);
    scene_branch(&s, 0xE8, target);
    SCENE_CODE(&s, "\xC3");
    by_jump = scene_here(&s);
    scene_symbol(&s, "by_jump", by_jump, 5, FUNC);
    scene_branch(&s, 0xE9, target);
    behind_pad = SCENE_CODE(&s, "\xF3\x0F\x1E\xFA"); /* endbr64 */
    scene_symbol(&s, "behind_pad", behind_pad, 9, FUNC);
    scene_branch(&s, 0xE9, target);
    scene_analyze(&s);
    EXPECT_STRATEGY(&s, by_call, HOTFN_STRATEGY_RETARGET);
    EXPECT_STRATEGY(&s, by_jump, HOTFN_STRATEGY_RETARGET);
    EXPECT_STRATEGY(&s, behind_pad, HOTFN_STRATEGY_RETARGET);
    CHECK_EQ_U64(scene_verdict(&s, behind_pad).pub.patch_offset, 4);
    CHECK(scene_verdict(&s, behind_pad).pub.flags & HOTFN_VERDICT_LANDING_PAD);
    CHECK(hfn_verdicts_moved(s.verdicts, 1, &moved));
    CHECK_EQ_U64(moved.fixups[0].target_rva, target);
    scene_finish(&s);
}

static void the_first_call_is_retargeted_if_it_is_always_reached(void)
{
    scene s = scene_begin();
    uint64_t target = SCENE_FUNCTION(&s, "target", "\x53\x48\x89\xFB\x5B\xC3");
    uint64_t f = SCENE_CODE(&s, "\x48\x83\xEC\x08"); /* sub rsp, 8 */
    hfn_moved moved;

    scene_symbol(&s, "f", f, 14, FUNC);
    scene_branch(&s, 0xE8, target);
    SCENE_CODE(&s, "\x48\x83\xC4\x08\xC3"); /* add rsp, 8; ret */
    scene_analyze(&s);
    EXPECT_STRATEGY(&s, f, HOTFN_STRATEGY_RETARGET);
    CHECK_EQ_U64(scene_verdict(&s, f).pub.patch_offset, 4);
    CHECK_EQ_U64(scene_verdict(&s, f).site_rva, f + 4);
    CHECK(hfn_verdicts_moved(s.verdicts, 1, &moved));
    CHECK_EQ_U64(moved.fixups[0].target_rva, target);
    scene_finish(&s);
}

static void a_call_with_another_path_to_it_is_not_retargeted(void)
{
    scene s = scene_begin();
    uint64_t target = SCENE_FUNCTION(&s, "target", "\x53\x48\x89\xFB\x5B\xC3");
    uint64_t f = SCENE_CODE(&s, "\x48\x83\xEC\x08"); /* sub rsp, 8 */

    scene_symbol(&s, "f", f, 16, FUNC);
    scene_branch(&s, 0xE8, target);
    SCENE_CODE(&s, "\x75\xF9\x48\x83\xC4\x08\xC3"); /* jne to the call; add rsp, 8; ret */
    scene_analyze(&s);
    /* a pun: 4 bytes are patched; the jump's last byte is the call's E8, so it jumps below the
     * image */
    EXPECT_STRATEGY(&s, f, HOTFN_STRATEGY_PUN);
    CHECK_EQ_U64(scene_verdict(&s, f).pub.patch_bytes, 4);
    CHECK_EQ_U64(scene_verdict(&s, f).pun_mask, 0xFF000000);
    CHECK_EQ_U64(scene_verdict(&s, f).pun_fixed, 0xE8000000);
    scene_finish(&s);
}

static void a_short_function_uses_the_padding_after_it(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", "\x31\xC0\xC3"); /* xor eax, eax; ret */
    hfn_moved moved;

    scene_nops(&s, 13);
    scene_analyze(&s);
    EXPECT_STRATEGY(&s, f, HOTFN_STRATEGY_JUMP_PAD);
    CHECK_EQ_U64(scene_verdict(&s, f).covered_bytes, 3);
    CHECK_EQ_U64(scene_verdict(&s, f).pub.patch_bytes, 5);
    CHECK(hfn_verdicts_moved(s.verdicts, 0, &moved));
    CHECK_EQ_U64(moved.length, 3); /* no jump back behind ret */
    scene_finish(&s);
}

static void padding_that_a_jump_reaches_is_not_used(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", "\x31\xC0\xC3");

    scene_nops(&s, 13);
    uint64_t g = scene_here(&s);
    scene_symbol(&s, "g", g, 5, FUNC);
    scene_branch(&s, 0xE9, f + 3); /* into the nops */
    scene_analyze(&s);
    /* the rest of the gap is not used either: the jump runs through it */
    EXPECT_REFUSED(&s, f, HOTFN_REASON_NO_ISLAND, 3);
    scene_finish(&s);
}

static void padding_that_is_reached_by_falling_through_is_not_used(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", "\x31\xC0\x98"); /* falls through */

    scene_nops(&s, 13);
    scene_analyze(&s);
    EXPECT_REFUSED(&s, f, HOTFN_REASON_NO_ISLAND, 3);
    scene_finish(&s);
}

/* xor eax, eax; again: inc eax; jne again; ret */
#define LOOP_AT_2 "\x31\xC0\xFF\xC0\x75\xFC\xC3"

static void a_loop_in_the_patch_makes_an_island(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", LOOP_AT_2);
    uint64_t pad = scene_here(&s);

    scene_nops(&s, 9);
    scene_analyze(&s);
    EXPECT_STRATEGY(&s, f, HOTFN_STRATEGY_ISLAND);
    const hfn_verdict v = scene_verdict(&s, f);
    CHECK_EQ_U64(v.island_rva, pad);
    CHECK_EQ_U64(v.pub.patch_bytes, 2);
    CHECK_EQ_U64(v.covered_bytes, 2);
    CHECK_EQ_U64(hfn_verdicts_island_original(s.verdicts, 0).size, 5);
    scene_finish(&s);
}

static void each_byte_of_padding_is_used_once(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", LOOP_AT_2);
    uint64_t g = SCENE_FUNCTION(&s, "g", LOOP_AT_2);
    uint64_t h = SCENE_FUNCTION(&s, "h", LOOP_AT_2);
    uint64_t pad = scene_here(&s);

    scene_nops(&s, 12); /* two islands and two bytes */
    scene_analyze(&s);
    EXPECT_STRATEGY(&s, f, HOTFN_STRATEGY_ISLAND);
    EXPECT_STRATEGY(&s, g, HOTFN_STRATEGY_ISLAND);
    CHECK_EQ_U64(scene_verdict(&s, f).island_rva, pad);
    CHECK_EQ_U64(scene_verdict(&s, g).island_rva, pad + 5);
    CHECK(scene_verdict(&s, h).pub.strategy != HOTFN_STRATEGY_ISLAND);
    scene_finish(&s);
}

static void an_island_is_within_a_short_jump(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", LOOP_AT_2);
    uint64_t filler = scene_filler(&s, 2 + 127 - 7 + 1);

    scene_nops(&s, 8); /* begins one byte too far away */
    scene_analyze(&s);
    CHECK_EQ_U64(filler + 123, f + 2 + 128);
    EXPECT_STRATEGY(&s, f, HOTFN_STRATEGY_PUN);
    CHECK_EQ_U64(scene_verdict(&s, f).pub.patch_bytes, 2);
    scene_finish(&s);
    s = scene_begin();
    f = SCENE_FUNCTION(&s, "f", LOOP_AT_2);
    scene_filler(&s, 2 + 127 - 7);
    scene_nops(&s, 8);
    scene_analyze(&s);
    EXPECT_STRATEGY(&s, f, HOTFN_STRATEGY_ISLAND);
    CHECK_EQ_U64(scene_verdict(&s, f).island_rva, f + 2 + 127);
    scene_finish(&s);
}

static scene scene_with_tail(void)
{
    scene s = scene_begin();

    s.has_tail = true;
    return s;
}

static void the_rest_of_the_last_page_is_padding(void)
{
    scene s = scene_with_tail();
    uint64_t f = SCENE_FUNCTION(&s, "f", "\x8B\x04\x24\xC3"); /* a get-pc thunk's bytes */
    uint64_t g = SCENE_FUNCTION(&s, "g", "\x8B\x34\x24\xC3");
    uint64_t h = SCENE_FUNCTION(&s, "h", "\xC3");

    scene_analyze(&s);
    EXPECT_STRATEGY(&s, f, HOTFN_STRATEGY_ISLAND);
    EXPECT_STRATEGY(&s, g, HOTFN_STRATEGY_ISLAND);
    EXPECT_STRATEGY(&s, h, HOTFN_STRATEGY_JUMP_PAD);
    CHECK_EQ_U64(scene_verdict(&s, f).island_rva, h + 5);
    CHECK_EQ_U64(scene_verdict(&s, g).island_rva, h + 10);
    CHECK_EQ_U64(scene_verdict(&s, h).covered_bytes, 1);
    scene_finish(&s);
}

static void a_function_that_falls_through_into_the_rest_of_its_page_has_no_padding(void)
{
    scene s = scene_with_tail();
    uint64_t f = SCENE_FUNCTION(&s, "f", "\x8B\x04\x24"); /* no end */

    scene_analyze(&s);
    EXPECT_REFUSED(&s, f, HOTFN_REASON_NO_ISLAND, 3);
    scene_finish(&s);
}

/* push rbx; again: add eax, imm32 5 or 0xF8000000; jmp again */
static uint64_t add_loop_at_1(scene *s, bool far_away)
{
    return far_away ? SCENE_FUNCTION(s, "f", "\x53\x05\x00\x00\x00\xF8\xEB\xF9")
                    : SCENE_FUNCTION(s, "f", "\x53\x05\x00\x00\x00\x00\xEB\xF9");
}

static void a_pun_needs_memory_outside_the_image(void)
{
    scene s = scene_begin();
    uint64_t f = add_loop_at_1(&s, true);

    scene_analyze(&s);
    /* a pun would put E9 before the bytes 05 00 00 00: a jump into the image */
    EXPECT_REFUSED(&s, f, HOTFN_REASON_JUMP_INTO_PATCH, 1);
    scene_finish(&s);
    s = scene_begin();
    f = SCENE_FUNCTION(&s, "f", "\x53\xB8\x00\x00\xF0\x12\xEB\xF9"); /* mov eax, 0x12f00000 */
    scene_analyze(&s);
    EXPECT_STRATEGY(&s, f, HOTFN_STRATEGY_PUN);
    CHECK_EQ_U64(scene_verdict(&s, f).pub.patch_bytes, 1);
    CHECK_EQ_U64(scene_verdict(&s, f).pun_fixed, 0xF00000B8);
    CHECK_EQ_U64(scene_verdict(&s, f).pun_mask, UINT32_MAX);
    scene_finish(&s);
}

static void a_pun_does_not_include_the_next_functions_entry(void)
{
    scene s = scene_begin();
    /* only sub rsp, 8: a pun would use a byte of the next function, which may change */
    uint64_t f = SCENE_FUNCTION(&s, "f", "\x48\x83\xEC\x08");

    SCENE_FUNCTION(&s, "g", "\xE8\x53\x48\x89\xFB\x5B\xC3");
    scene_analyze(&s);
    EXPECT_REFUSED(&s, f, HOTFN_REASON_OVERLAP, 4);
    scene_finish(&s);
}

static void int3_is_used_only_if_allowed(void)
{
    scene s = scene_begin();
    s.options = HOTFN_VERDICTS_ALLOW_INT3;
    uint64_t f = add_loop_at_1(&s, false);

    scene_analyze(&s);
    EXPECT_STRATEGY(&s, f, HOTFN_STRATEGY_INT3);
    CHECK_EQ_U64(scene_verdict(&s, f).pub.patch_bytes, 1);
    scene_finish(&s);
    s = scene_begin();
    f = add_loop_at_1(&s, false);
    scene_analyze(&s);
    EXPECT_REFUSED(&s, f, HOTFN_REASON_JUMP_INTO_PATCH, 1);
    scene_finish(&s);
}

static void jumps_into_the_patch_are_found_in_all_code(void)
{
    scene s = scene_begin();
    uint64_t by_jump = SCENE_FUNCTION(&s, "by_jump", "\x98\x98\x98\x98\x98\x98\xC3");
    uint64_t by_call = SCENE_FUNCTION(&s, "by_call", "\x98\x98\x98\x98\x98\x98\xC3");
    uint64_t by_lea = SCENE_FUNCTION(&s, "by_lea", "\x98\x98\x98\x98\x98\x98\xC3");
    uint64_t by_pointer = SCENE_FUNCTION(&s, "by_pointer", "\x98\x98\x98\x98\x98\x98\xC3");
    uint64_t by_gap = SCENE_FUNCTION(&s, "by_gap", "\x98\x98\x98\x98\x98\x98\xC3");
    uint64_t from = scene_here(&s);

    scene_symbol(&s, "from", from, 18, FUNC);
    scene_branch(&s, 0xE8, by_call + 4);
    SCENE_CODE(&s, "\x48\x8D\x05"); /* lea rax, [rip+x] */
    put(s.text, by_lea + 3 - (scene_here(&s) + 4), 4);
    scene_branch(&s, 0xE9, by_jump + 2);
    SCENE_CODE(&s, "\xC3");
    scene_branch(&s, 0xE9, by_gap + 1); /* code that has no name */
    scene_pointer(&s, RODATA, by_pointer + 4);
    scene_analyze(&s);
    CHECK(scene_verdict(&s, by_jump).pub.strategy != HOTFN_STRATEGY_JUMP);
    CHECK(scene_verdict(&s, by_call).pub.strategy != HOTFN_STRATEGY_JUMP);
    CHECK(scene_verdict(&s, by_lea).pub.strategy != HOTFN_STRATEGY_JUMP);
    CHECK(scene_verdict(&s, by_pointer).pub.strategy != HOTFN_STRATEGY_JUMP);
    CHECK(scene_verdict(&s, by_gap).pub.strategy != HOTFN_STRATEGY_JUMP);
    scene_finish(&s);
}

static void a_second_entry_within_the_patch_is_an_overlap(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", "\x98\x98\x98\x98\x98\x98\x98\xC3");

    scene_symbol(&s, "inside", f + 3, 5, FUNC);
    scene_analyze(&s);
    EXPECT_REFUSED(&s, f, HOTFN_REASON_OVERLAP, 3);
    EXPECT_STRATEGY(&s, f + 3, HOTFN_STRATEGY_JUMP);
    scene_finish(&s);
}

static void too_short_at_the_end_of_the_code(void)
{
    scene s = scene_begin();

    SCENE_FUNCTION(&s, "f", "\x98\x98\x98\x98\x98\xC3");
    uint64_t g = SCENE_FUNCTION(&s, "g", "\x31\xC0\xC3");
    scene_analyze(&s);
    EXPECT_REFUSED(&s, g, HOTFN_REASON_NO_ISLAND, 3);
    scene_finish(&s);
}

static void too_short_between_neighbours(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", "\xC3");
    uint64_t g = SCENE_FUNCTION(&s, "g", "\x31\xC0\xC3");

    SCENE_FUNCTION(&s, "h", "\x98\x98\x98\x98\x98\xC3");
    scene_analyze(&s);
    EXPECT_REFUSED(&s, f, HOTFN_REASON_TOO_SHORT, 1);
    EXPECT_REFUSED(&s, g, HOTFN_REASON_NO_ISLAND, 3);
    scene_finish(&s);
}

static void an_immovable_instruction_is_refused_with_its_offset(void)
{
    scene s = scene_begin();
    /* push rax; call [rsi]; add [rax], al; ret */
    uint64_t call = SCENE_FUNCTION(&s, "call", "\x50\xFF\x16\x00\x00\xC3");
    uint64_t eip =
        SCENE_FUNCTION(&s, "eip", "\x67\x8B\x05\x00\x00\x01\x00\xC3"); /* mov eax, [eip+0x10000] */
    uint64_t bad = SCENE_FUNCTION(&s, "bad", "\x98\x06\x06\x06\x06\x06\xC3");

    scene_filler(&s, IMAGE_BYTES);
    scene_analyze(&s);
    EXPECT_REFUSED(&s, call, HOTFN_REASON_CALL_IN_PATCH, 1);
    EXPECT_REFUSED(&s, eip, HOTFN_REASON_CANNOT_MOVE, 0);
    EXPECT_STRATEGY(&s, bad, HOTFN_STRATEGY_PUN); /* only its first byte moves */
    scene_finish(&s);
    s = scene_begin();
    bad = SCENE_FUNCTION(&s, "bad", "\x06\x06\x06\x06\x06\xC3");
    scene_analyze(&s);
    EXPECT_REFUSED(&s, bad, HOTFN_REASON_UNDECODABLE, 0);
    scene_finish(&s);
}

/* Add an instruction that accesses rva by a 4-byte displacement at its end. */
static void access(scene *s, const char *opcode, size_t opcode_bytes, uint64_t rva)
{
    scene_code(s, opcode, opcode_bytes);
    put(s->text, rva - (scene_here(s) + 4), 4);
}

/* The verdict on g if the code before it has an instruction that accesses g + from_g. */
static hfn_verdict verdict_with_access(const char *opcode, size_t opcode_bytes, int64_t from_g)
{
    scene s = scene_begin();
    uint64_t f = scene_here(&s);

    scene_symbol(&s, "f", f, opcode_bytes + 5, FUNC);
    access(&s, opcode, opcode_bytes, f + 64 + (uint64_t)from_g);
    SCENE_CODE(&s, "\xC3");
    scene_nops(&s, 64 - (scene_here(&s) - f));
    uint64_t g = SCENE_FUNCTION(&s, "g", "\x98\x98\x98\x98\x98\x98\x98\xC3");
    scene_filler(&s, IMAGE_BYTES);
    scene_analyze(&s);
    hfn_verdict v = scene_verdict(&s, g);
    scene_finish(&s);
    return v;
}

static void bytes_that_code_reads_are_not_patched(void)
{
    static const struct {
        const char *opcode;
        int64_t from_g;
        uint32_t verdict, strategy_or_offset;
    } rows[] = {
        { "\x8B\x05", 0, HOTFN_VERDICT_REFUSED, 0 },                      /* mov eax, [g]        */
        { "\x89\x05", -3, HOTFN_VERDICT_REFUSED, 0 },                     /* mov [g - 3], eax    */
        { "\x8B\x05", -4, HOTFN_VERDICT_HOOKABLE, HOTFN_STRATEGY_JUMP },  /* up to g             */
        { "\x8B\x05", 5, HOTFN_VERDICT_HOOKABLE, HOTFN_STRATEGY_JUMP },   /* after the patch     */
        { "\x8A\x05", 4, HOTFN_VERDICT_HOOKABLE, HOTFN_STRATEGY_ISLAND }, /* mov al, [g + 4]     */
        { "\x0F\x10\x05", -8, HOTFN_VERDICT_REFUSED, 0 },                 /* movups xmm0, [g - 8] */
        { "\x0F\x10\x05", -16, HOTFN_VERDICT_HOOKABLE, HOTFN_STRATEGY_JUMP },
        { "\xC5\xFC\x10\x05", -31, HOTFN_VERDICT_REFUSED, 0 }, /* vmovups ymm0        */
        { "\x48\x8D\x05", 0, HOTFN_VERDICT_HOOKABLE,
          HOTFN_STRATEGY_JUMP }, /* lea reads no byte   */
        { "\x0F\x1F\x05", 0, HOTFN_VERDICT_HOOKABLE,
          HOTFN_STRATEGY_JUMP }, /* nop                 */
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hfn_verdict v = verdict_with_access(rows[i].opcode, strlen(rows[i].opcode), rows[i].from_g);
        CHECK_EQ_U64(v.pub.verdict, rows[i].verdict);
        if (v.pub.verdict == HOTFN_VERDICT_HOOKABLE) {
            CHECK_EQ_U64(v.pub.strategy, rows[i].strategy_or_offset);
        } else {
            CHECK_EQ_U64(v.pub.reason, HOTFN_REASON_READ);
            CHECK_EQ_U64(v.pub.offset, rows[i].strategy_or_offset);
        }
    }
}

static void code_that_reads_its_own_entry_is_not_patched(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", "\x8B\x05\xFA\xFF\xFF\xFF\xC3"); /* mov eax, [rip-6] */

    scene_filler(&s, IMAGE_BYTES);
    scene_analyze(&s);
    EXPECT_REFUSED(&s, f, HOTFN_REASON_READ, 0);
    scene_finish(&s);
}

/* A constant whose bytes are those of nops may be data. */
static void padding_that_is_read_holds_no_island(void)
{
    for (uint32_t read_at = 0; read_at < 10; read_at += 9) {
        scene s = scene_begin();
        uint64_t f = SCENE_FUNCTION(&s, "f", LOOP_AT_2), pad = scene_here(&s);

        scene_nops(&s, 9);
        scene_symbol(&s, "g", scene_here(&s), 7, FUNC);
        access(&s, "\x8B\x05", 2, pad + read_at); /* mov eax, [pad]; or reads its own bytes */
        SCENE_CODE(&s, "\xC3");
        scene_filler(&s, IMAGE_BYTES);
        scene_analyze(&s);
        CHECK_EQ_U64(scene_verdict(&s, f).pub.strategy,
                     read_at == 0 ? HOTFN_STRATEGY_PUN : HOTFN_STRATEGY_ISLAND);
        scene_finish(&s);
    }
}

static void a_call_that_is_read_keeps_its_target(void)
{
    scene s = scene_begin();
    uint64_t target = SCENE_FUNCTION(&s, "target", "\x53\x48\x89\xFB\x5B\xC3"), calls[2] = { 0 };

    for (size_t i = 0; i < 2; i++) { /* a call at the entry, and a call after sub rsp, 8 */
        calls[i] = SCENE_CODE(&s, "\x48\x83\xEC\x08") + 4 * (i == 0);
        scene_symbol(&s, i ? "second" : "first", calls[i], 10 + 4 * i, FUNC);
        scene_branch(&s, 0xE8, target);
        SCENE_CODE(&s, "\x48\x83\xC4\x08\xC3"); /* add rsp, 8; ret */
    }
    scene_symbol(&s, "g", scene_here(&s), 13, FUNC);
    access(&s, "\x8B\x05", 2, calls[0] + 1);
    access(&s, "\x8B\x05", 2, calls[1] + 5);
    SCENE_CODE(&s, "\xC3");
    scene_filler(&s, IMAGE_BYTES);
    scene_analyze(&s);
    EXPECT_REFUSED(&s, calls[0], HOTFN_REASON_READ, 1);
    CHECK(scene_verdict(&s, calls[1]).pub.strategy != HOTFN_STRATEGY_RETARGET);
    scene_finish(&s);
}

static void a_computed_jump_limits_the_patch_to_one_byte(void)
{
    scene s = scene_begin();
    /* lea rax, [rip]; imul rcx, rcx, 16; add rax, rcx; jmp rax */
    uint64_t f =
        SCENE_FUNCTION(&s, "f", "\x48\x8D\x05\0\0\0\0\x48\x6B\xC9\x10\x48\x01\xC8\xFF\xE0");

    scene_filler(&s, IMAGE_BYTES);
    scene_analyze(&s);
    EXPECT_REFUSED(&s, f, HOTFN_REASON_UNBOUNDED_TABLE, 14);
    scene_finish(&s);
}

static void a_landing_pad_may_follow_a_jump(void)
{
    static const char code[] = "\xEB\x04\x98\x98\x98\x98\xC3"; /* jmp +4; ... */
    scene s = scene_begin();
    uint64_t plain = scene_function(&s, "plain", code, 7);
    uint64_t with_lsda = scene_function(&s, "with_lsda", code, 7);

    scene_nops(&s, 9);
    s.fdes[s.fde_count++] = (scene_fde){ .begin = with_lsda, .size = 7, .lsda = true };
    scene_analyze(&s);
    EXPECT_STRATEGY(&s, plain, HOTFN_STRATEGY_JUMP);
    EXPECT_STRATEGY(&s, with_lsda, HOTFN_STRATEGY_ISLAND);
    scene_finish(&s);
}

/* The function is "mov eax, [rdi]; add eax, 5; ret"; its LSDA has one call site, which begins at
 * `at`, covers one byte, and has a landing pad at offset `pad`. */
static hotfn_verdict verdict_with_call_site(uint8_t at, uint8_t pad, uint8_t call_site_bytes)
{
    const uint8_t lsda[] = { 0xFF, 0xFF, 0x01, call_site_bytes, at, 1, pad, 0 };
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", "\x8B\x07\x83\xC0\x05\xC3");

    scene_nops(&s, 9);
    s.fdes[s.fde_count++] = (scene_fde){ .begin = f, .size = 6, .lsda = true };
    memcpy(s.rodata, lsda, sizeof lsda);
    scene_analyze(&s);
    hotfn_verdict v = scene_verdict(&s, f).pub;
    scene_finish(&s);
    return v;
}

static void code_with_a_landing_pad_is_not_moved(void)
{
    hotfn_verdict v = verdict_with_call_site(0, 5, 4);

    CHECK_EQ_U64(v.reason, HOTFN_REASON_FAULT_KNOWN);
    CHECK_EQ_U64(v.offset, 0);
    CHECK_EQ_U64(verdict_with_call_site(2, 5, 4).strategy, HOTFN_STRATEGY_ISLAND);
    CHECK_EQ_U64(verdict_with_call_site(5, 5, 4).strategy, HOTFN_STRATEGY_JUMP);
    /* without a landing pad */
    CHECK_EQ_U64(verdict_with_call_site(0, 0, 4).strategy, HOTFN_STRATEGY_JUMP);
    /* the table ends within the call site */
    CHECK_EQ_U64(verdict_with_call_site(0, 0, 3).reason, HOTFN_REASON_FAULT_KNOWN);
}

static void flags_are_followed_through_calls_and_tail_calls(void)
{
    scene s = scene_begin();
    uint64_t reads = SCENE_FUNCTION(&s, "reads", "\x83\xD0\x00\x98\x98\xC3");   /* adc eax, 0 */
    uint64_t writes = SCENE_FUNCTION(&s, "writes", "\x31\xC0\x98\x98\x98\xC3"); /* xor eax, eax */
    uint64_t to_reads = scene_here(&s), to_writes, calls_reads;

    scene_symbol(&s, "to_reads", to_reads, 5, FUNC);
    scene_branch(&s, 0xE9, reads);
    to_writes = scene_here(&s);
    scene_symbol(&s, "to_writes", to_writes, 5, FUNC);
    scene_branch(&s, 0xE9, writes);
    calls_reads = scene_here(&s);
    scene_symbol(&s, "calls_reads", calls_reads, 6, FUNC);
    scene_branch(&s, 0xE8, reads);
    SCENE_CODE(&s, "\xC3");
    scene_analyze(&s);
    CHECK(scene_verdict(&s, calls_reads).pub.flags & HOTFN_VERDICT_FLAGS_LIVE);
    CHECK(scene_verdict(&s, reads).pub.flags & HOTFN_VERDICT_FLAGS_LIVE);
    CHECK(!(scene_verdict(&s, writes).pub.flags & HOTFN_VERDICT_FLAGS_LIVE));
    CHECK(scene_verdict(&s, to_reads).pub.flags & HOTFN_VERDICT_FLAGS_LIVE);
    CHECK(!(scene_verdict(&s, to_writes).pub.flags & HOTFN_VERDICT_FLAGS_LIVE));
    scene_finish(&s);
}

static void a_register_that_is_written_first_is_a_scratch_register(void)
{
    scene s = scene_begin();
    uint64_t f =
        SCENE_FUNCTION(&s, "f", "\xF3\x0F\x1E\xFA\x31\xC9\x98\x98\x98\xC3"); /* xor ecx, ecx */
    uint64_t g = SCENE_FUNCTION(&s, "g", "\x01\xC9\x98\x98\x98\xC3");        /* add ecx, ecx */
    uint64_t to_f = scene_here(&s);

    scene_symbol(&s, "to_f", to_f, 5, FUNC);
    scene_branch(&s, 0xE9, f);
    scene_analyze(&s);
    CHECK_EQ_U64(scene_verdict(&s, f).scratch, 1 + 1);
    CHECK_EQ_U64(scene_verdict(&s, g).scratch, 0);
    CHECK_EQ_U64(scene_verdict(&s, to_f).scratch, 1 + 1);
    scene_finish(&s);
}

static void jumps_to_the_own_entry_are_flagged(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", "\x98\x98\x98\x98\x98\x75\xF9\xC3"); /* jne entry */
    /* endbr64; 5 * cwde; jne behind endbr64; ret */
    uint64_t g = SCENE_FUNCTION(&s, "g", "\xF3\x0F\x1E\xFA\x98\x98\x98\x98\x98\x75\xF9\xC3");
    uint64_t h = SCENE_FUNCTION(&s, "h", "\x98\x98\x98\x98\x98\x75\xFA\xC3"); /* jne entry+1 */

    scene_analyze(&s);
    CHECK(scene_verdict(&s, f).pub.flags & HOTFN_VERDICT_ENTRY_LOOP);
    CHECK(scene_verdict(&s, g).pub.flags & HOTFN_VERDICT_ENTRY_LOOP);
    CHECK(!(scene_verdict(&s, h).pub.flags & HOTFN_VERDICT_ENTRY_LOOP));
    scene_finish(&s);
}

/* jmp over one byte, which looks like the opcode of a call; then the opcode of a jump to target */
static uint64_t add_hidden_jump(scene *s, uint64_t target)
{
    uint64_t rva = scene_here(s);

    SCENE_CODE(s, "\xEB\x01\xE8");
    scene_branch(s, 0xE9, target);
    SCENE_CODE(s, "\xC3");
    scene_symbol(s, "hides", rva, scene_here(s) - rva, FUNC);
    return rva;
}

static void a_jump_behind_data_is_found(void)
{
    for (int i386 = 0; i386 < 2; i386++) {
        scene s = i386 ? scene_begin_i386() : scene_begin();
        uint64_t f = SCENE_FUNCTION(&s, "f", "\x98\x98\x98\x98\x98\x98\xC3"); /* 6 * cwde; ret */
        uint64_t g = SCENE_FUNCTION(&s, "g", "\x98\x98\x98\x98\x98\x98\xC3");

        add_hidden_jump(&s, f + 2);
        scene_analyze(&s);
        CHECK(scene_verdict(&s, f).pub.strategy != HOTFN_STRATEGY_JUMP);
        EXPECT_STRATEGY(&s, g, HOTFN_STRATEGY_JUMP);
        scene_finish(&s);
    }
}

static void a_jump_behind_an_instruction_across_an_entry_is_found(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", "\x98\x98\x98\x98\x98\x98\xC3");

    SCENE_FUNCTION(&s, "head", "\xB8");               /* mov eax, the next 4 bytes */
    SCENE_FUNCTION(&s, "inside", "\x90\x90\x48\xB9"); /* movabs rcx, the next 8 bytes */
    scene_branch(&s, 0xE9, f + 2);
    SCENE_CODE(&s, "\x90\x90\x90\xC3");
    scene_analyze(&s);
    CHECK(scene_verdict(&s, f).pub.strategy != HOTFN_STRATEGY_JUMP);
    scene_finish(&s);
}

static void hidden_code_may_hide_more(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", "\x98\x98\x98\x98\x98\x98\xC3");
    /* movabs rcx; only the hidden jump leads to the last bytes of its number, a jump to f+2 */
    uint64_t middle = SCENE_FUNCTION(&s, "middle", "\x48\xB9\x90\x90\x90");

    scene_branch(&s, 0xE9, f + 2);
    SCENE_CODE(&s, "\xC3");
    add_hidden_jump(&s, middle + 5);
    scene_analyze(&s);
    CHECK(scene_verdict(&s, f).pub.strategy != HOTFN_STRATEGY_JUMP);
    scene_finish(&s);
}

static void a_hidden_indirect_jump_may_lead_anywhere_in_its_function(void)
{
    scene s = scene_begin();
    /* cwde; 2 * xor eax, eax; 2 * cwde; jmp over one byte; the byte; jmp rax; 3 * ret */
    uint64_t f =
        SCENE_FUNCTION(&s, "f", "\x98\x31\xC0\x31\xC0\x98\x98\xEB\x01\xE8\xFF\xE0\xC3\xC3\xC3");

    scene_analyze(&s);
    CHECK(scene_verdict(&s, f).pub.strategy != HOTFN_STRATEGY_JUMP);
    scene_finish(&s);
}

static void branches_among_ambiguous_code_keep_their_targets(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", "\x98\x98\x98\x98\x98\x98\xC3");
    uint64_t g = SCENE_FUNCTION(&s, "g", "\x98\x98\x98\x98\x98\x98\xC3");
    uint64_t clear = scene_here(&s);
    size_t count;

    SCENE_CODE(&s, "\x98\x98\x98\x98\x98");
    scene_branch(&s, 0xE8, f);
    SCENE_CODE(&s, "\xC3");
    scene_symbol(&s, "clear", clear, scene_here(&s) - clear, FUNC);
    uint64_t unclear = SCENE_CODE(&s, "\x98\x98\x98\x98\x98");
    scene_branch(&s, 0xE8, g);
    SCENE_CODE(&s, "\xEB\x01\xE8\x98\x98\x98\x98\xC3");
    scene_symbol(&s, "unclear", unclear, scene_here(&s) - unclear, FUNC);
    scene_analyze(&s);
    const hfn_branch *sites = hfn_verdicts_sites(s.verdicts, &count);
    CHECK_EQ_U64(count, 1);
    CHECK_EQ_U64(count ? sites[0].field : 0, clear + 6);
    scene_finish(&s);
}

static void a_jump_from_code_that_uses_the_red_zone_keeps_it(void)
{
    scene s = scene_begin();
    uint64_t first = scene_here(&s), last, plain, from;

    scene_symbol(&s, "first", first, 8, FUNC);
    SCENE_CODE(&s, "\x98\x98\x98\x98\x98\x98\xEB\x00");            /* 6 * cwde; jmp to last */
    last = SCENE_FUNCTION(&s, "last", "\x48\x8B\x44\x24\xF8\xC3"); /* mov rax, [rsp-8]; ret */
    plain = SCENE_FUNCTION(&s, "plain", "\x98\x98\x98\x98\x98\x98\xC3");
    from = SCENE_CODE(&s, "\x48\x89\x7C\x24\xF8"); /* mov [rsp-8], rdi */
    scene_branch(&s, 0xE9, first);
    scene_symbol(&s, "uses", from, scene_here(&s) - from, FUNC);
    from = scene_branch(&s, 0xE9, plain);
    scene_symbol(&s, "jumps", from, 5, FUNC);
    from = scene_branch(&s, 0xE8, first);
    scene_branch(&s, 0xE8, last);
    scene_branch(&s, 0xE8, plain);
    SCENE_CODE(&s, "\xC3");
    scene_symbol(&s, "calls", from, scene_here(&s) - from, FUNC);
    scene_analyze(&s);
    CHECK(scene_verdict(&s, first).pub.flags & HOTFN_VERDICT_RED_ZONE);
    CHECK(scene_verdict(&s, last).pub.flags & HOTFN_VERDICT_RED_ZONE);
    CHECK(!(scene_verdict(&s, plain).pub.flags & HOTFN_VERDICT_RED_ZONE));
    scene_finish(&s);
}

static void a_jump_by_a_pointer_keeps_the_red_zone_of_all_functions_with_an_address(void)
{
    for (int uses = 0; uses < 2; uses++) {
        scene s = scene_begin();
        uint64_t taken = SCENE_FUNCTION(&s, "taken", "\x48\x8B\x44\x24\xF8\xC3"); /* rsp-8 */
        uint64_t from = scene_here(&s);

        scene_pointer(&s, RODATA, taken);
        SCENE_CODE(&s, "\x98\x98\x98\x98\x98");
        if (uses) {
            SCENE_CODE(&s, "\x48\x89\x7C\x24\xF8"); /* mov [rsp-8], rdi */
        }
        SCENE_CODE(&s, "\xFF\xE0"); /* jmp rax */
        scene_symbol(&s, "jumps", from, scene_here(&s) - from, FUNC);
        scene_analyze(&s);
        CHECK_EQ_U64(scene_verdict(&s, taken).pub.flags & HOTFN_VERDICT_RED_ZONE,
                     uses ? HOTFN_VERDICT_RED_ZONE : 0);
        scene_finish(&s);
    }
}

static void padding_leads_to_the_next_function_only_if_it_is_reached(void)
{
    for (int jumps = 0; jumps < 2; jumps++) {
        scene s = scene_begin();
        uint64_t from = SCENE_CODE(&s, "\x48\x89\x7C\x24\xF8"); /* mov [rsp-8], rdi */

        if (jumps) {
            SCENE_CODE(&s, "\x74\x01\xC3\x90"); /* je over ret; ret; nop */
        } else {
            SCENE_CODE(&s, "\x74\x00\xC3\x90"); /* je to ret; ret; nop */
        }
        scene_symbol(&s, "uses", from, scene_here(&s) - from, FUNC);
        uint64_t next = SCENE_FUNCTION(&s, "next", "\x48\x8B\x44\x24\xF8\xC3");
        scene_branch(&s, 0xE8, next);
        scene_analyze(&s);
        bool keeps = scene_verdict(&s, next).pub.flags & HOTFN_VERDICT_RED_ZONE;
        CHECK(keeps == (jumps == 1));
        scene_finish(&s);
    }
}

static const check_test tests[] = {
    CHECK_TEST(whole_instructions_make_a_jump),
    CHECK_TEST(a_call_or_jump_at_the_entry_is_retargeted),
    CHECK_TEST(the_first_call_is_retargeted_if_it_is_always_reached),
    CHECK_TEST(a_call_with_another_path_to_it_is_not_retargeted),
    CHECK_TEST(a_short_function_uses_the_padding_after_it),
    CHECK_TEST(padding_that_a_jump_reaches_is_not_used),
    CHECK_TEST(padding_that_is_reached_by_falling_through_is_not_used),
    CHECK_TEST(a_loop_in_the_patch_makes_an_island),
    CHECK_TEST(each_byte_of_padding_is_used_once),
    CHECK_TEST(an_island_is_within_a_short_jump),
    CHECK_TEST(the_rest_of_the_last_page_is_padding),
    CHECK_TEST(a_function_that_falls_through_into_the_rest_of_its_page_has_no_padding),
    CHECK_TEST(a_pun_needs_memory_outside_the_image),
    CHECK_TEST(a_pun_does_not_include_the_next_functions_entry),
    CHECK_TEST(int3_is_used_only_if_allowed),
    CHECK_TEST(jumps_into_the_patch_are_found_in_all_code),
    CHECK_TEST(a_second_entry_within_the_patch_is_an_overlap),
    CHECK_TEST(too_short_at_the_end_of_the_code),
    CHECK_TEST(too_short_between_neighbours),
    CHECK_TEST(an_immovable_instruction_is_refused_with_its_offset),
    CHECK_TEST(bytes_that_code_reads_are_not_patched),
    CHECK_TEST(code_that_reads_its_own_entry_is_not_patched),
    CHECK_TEST(padding_that_is_read_holds_no_island),
    CHECK_TEST(a_call_that_is_read_keeps_its_target),
    CHECK_TEST(a_computed_jump_limits_the_patch_to_one_byte),
    CHECK_TEST(a_landing_pad_may_follow_a_jump),
    CHECK_TEST(code_with_a_landing_pad_is_not_moved),
    CHECK_TEST(flags_are_followed_through_calls_and_tail_calls),
    CHECK_TEST(a_register_that_is_written_first_is_a_scratch_register),
    CHECK_TEST(jumps_to_the_own_entry_are_flagged),
    CHECK_TEST(a_jump_from_code_that_uses_the_red_zone_keeps_it),
    CHECK_TEST(a_jump_by_a_pointer_keeps_the_red_zone_of_all_functions_with_an_address),
    CHECK_TEST(padding_leads_to_the_next_function_only_if_it_is_reached),
    CHECK_TEST(a_jump_behind_data_is_found),
    CHECK_TEST(a_jump_behind_an_instruction_across_an_entry_is_found),
    CHECK_TEST(hidden_code_may_hide_more),
    CHECK_TEST(a_hidden_indirect_jump_may_lead_anywhere_in_its_function),
    CHECK_TEST(branches_among_ambiguous_code_keep_their_targets),
};
CHECK_MAIN(tests)
