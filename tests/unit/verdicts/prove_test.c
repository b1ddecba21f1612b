/* SPDX-License-Identifier: MIT */
/* How the proofs of timing follow code: where paths meet, through jump tables, and through the
 * GOT. */
#include "timed.h"

#define REASON_OF(text) HOTFN_VERDICT_TIMING_REASON(flags_of(scene_begin(), text, sizeof(text) - 1))

/* push rbp; mov rbp, rsp; pop rbp; ret */
#define LEAF "\x55\x48\x89\xE5\x5D\xC3"

enum { UNKNOWN = HOTFN_REASON_STACK_UNKNOWN, ARGUMENTS = HOTFN_REASON_STACK_ARGUMENTS };

static void system_calls_that_may_switch_the_stack_end_the_proof(void)
{
    /* mov eax, 1 or 15; syscall; ret */
    CHECK_EQ_U64(REASON_OF("\xB8\x01\x00\x00\x00\x0F\x05\xC3"), 0);
    CHECK_EQ_U64(REASON_OF("\xB8\x0F\x00\x00\x00\x0F\x05\xC3"), HOTFN_REASON_SYSTEM_CALL);
    /* mov eax, 1; test edi, edi; je 1f; mov eax, 15; 1: syscall; ret: another block */
    CHECK_EQ_U64(REASON_OF("\xB8\x01\x00\x00\x00\x85\xFF\x74\x05\xB8\x0F\x00\x00\x00"
                           "\x0F\x05\xC3"),
                 HOTFN_REASON_SYSTEM_CALL);
}

static void paths_must_meet_at_one_stack_depth(void)
{
    /* test rdi, rdi; je 1f; push rbx; 1: ret */
    CHECK_EQ_U64(REASON_OF("\x48\x85\xFF\x74\x01\x53\xC3"), UNKNOWN);
    /* push rbx; test rdi, rdi; je 1f; pop rbx; push rcx; 1: pop rbx; ret */
    CHECK_EQ_U64(REASON_OF("\x53\x48\x85\xFF\x74\x02\x5B\x51\x5B\xC3"), 0);
}

/* `leave` restores the stack pointer only if rbp points into the frame on all paths. */
static void merged_paths_keep_only_values_that_all_share(void)
{
    /* push rbp; mov rbp, rsp; test rdi, rdi; je 2f; 1: leave; ret; 2: nop; nop; jmp 1b */
    CHECK_EQ_U64(REASON_OF("\x55\x48\x89\xE5\x48\x85\xFF\x74\x02\xC9\xC3\x90\x90\xEB\xFA"), 0);
    /* the same with xor ebp, ebp in place of the nops: the block at 1 is followed again */
    CHECK_EQ_U64(REASON_OF("\x55\x48\x89\xE5\x48\x85\xFF\x74\x02\xC9\xC3\x31\xED\xEB\xFA"),
                 UNKNOWN);
    /* push rbp; test rdi, rdi; je 1f; mov rbp, rsp; 1: leave; ret */
    CHECK_EQ_U64(REASON_OF("\x55\x48\x85\xFF\x74\x03\x48\x89\xE5\xC9\xC3"), UNKNOWN);
    /* push rbp; mov rbp, rsp; test rdi, rdi; je 1f; xor ebp, ebp; 1: leave; ret */
    CHECK_EQ_U64(REASON_OF("\x55\x48\x89\xE5\x48\x85\xFF\x74\x02\x31\xED\xC9\xC3"), UNKNOWN);
}

/* test rdi, rdi; je 1f; push rbx; call rax; 1: xor eax, eax; ret.  If the call returned, the stack
 * would be one word too deep at 1, so it is assumed never to return. */
static void a_path_with_a_call_is_dropped_for_another(void)
{
    CHECK_EQ_U64(REASON_OF("\x48\x85\xFF\x74\x03\x53\xFF\xD0\x31\xC0\xC3"), 0);
    /* a nop in place of the call */
    CHECK_EQ_U64(REASON_OF("\x48\x85\xFF\x74\x03\x53\x66\x90\x31\xC0\xC3"), UNKNOWN);
    /* push rbx; ...; call rax as the last instruction, then followed by padding, then by code */
    CHECK_EQ_U64(REASON_OF("\x53\x48\x89\xF8\x90\xFF\xD0"), 0);
    CHECK_EQ_U64(REASON_OF("\x53\x48\x89\xF8\x90\xFF\xD0\x66\x90"), 0);
    CHECK(REASON_OF("\x53\x48\x89\xF8\x90\xFF\xD0\x31\xC0") != 0);
}

/* push rbp; mov rbp, rsp; test rdi, rdi; je 2f; push rax; call rax; 1: ...; leave; ret; 2: nop; jmp
 * 1b.  The path with the call is followed first; its stack depth is dropped when the path without a
 * call reaches 1. */
static void a_path_without_a_call_keeps_its_own_depth(void)
{
#define FRAME_TEST "\x55\x48\x89\xE5\x48\x85\xFF\x74"
#define PUSH_CALL "\x50\xFF\xD0"
    CHECK_EQ_U64(REASON_OF(FRAME_TEST "\x05" PUSH_CALL "\xC9\xC3\x90\xEB\xFB"), 0);
    CHECK_EQ_U64(REASON_OF(FRAME_TEST "\x09" PUSH_CALL "\x48\x8B\x04\x24\xC9\xC3\x90\xEB\xF7"),
                 0); /* rax = [rsp] */
    CHECK_EQ_U64(REASON_OF(FRAME_TEST "\x0A" PUSH_CALL "\x48\x8B\x44\x24\x08\xC9\xC3\x90\xEB\xF6"),
                 HOTFN_REASON_RETURN_ADDRESS); /* rax = [rsp+8] */
}

/* The reason of f: test rdi, rdi; je f.cold; nop; ret.  The code of f.cold ends with a jump back to
 * the nop. */
static uint32_t reason_of_cold_part(const char *cold)
{
    scene s = scene_begin();
    uint64_t f = SCENE_CODE(&s, "\x48\x85\xFF\x90\x90\x0F"), back, part = f + 64;
    uint32_t reason;

    scene_branch(&s, 0x84, part); /* 0F 84 */
    back = SCENE_CODE(&s, "\x90\xC3");
    scene_symbol(&s, "f", refer_to(&s, f), scene_here(&s) - f, FUNC);
    scene_nops(&s, part - scene_here(&s));
    scene_code(&s, cold, strlen(cold));
    scene_branch(&s, 0xE9, back);
    scene_symbol(&s, "f.cold", part, scene_here(&s) - part, FUNC);
    s.fdes[s.fde_count++] =
        (scene_fde){ .begin = part, .size = (uint32_t)(scene_here(&s) - part), .inner = true };
    prove_scene(&s);
    CHECK_EQ_U64(scene_verdict(&s, part).pub.verdict, HOTFN_VERDICT_FRAGMENT);
    reason = reason_at(&s, f);
    scene_finish(&s);
    return reason;
}

static void a_path_through_a_fragment_is_proven_too(void)
{
    CHECK_EQ_U64(reason_of_cold_part("\x31\xC0"), 0);
    CHECK_EQ_U64(reason_of_cold_part("\x53"), UNKNOWN); /* push rbx */
    CHECK_EQ_U64(reason_of_cold_part("\x48\x8D\x44\x24\x08"), ARGUMENTS);
}

/* push rbx; mov rax, rdi; nop; call the function that begins where this one ends; pop rbx; ret */
static void a_call_of_the_next_function_is_not_an_inner_call(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_CODE(&s, "\x53\x48\x89\xF8\x90"), next = f + 12;

    scene_branch(&s, 0xE8, next);
    SCENE_CODE(&s, "\x5B\xC3");
    scene_symbol(&s, "f", refer_to(&s, f), 12, FUNC);
    refer_to(&s, SCENE_FUNCTION(&s, "next", LEAF));
    prove_scene(&s);
    CHECK_EQ_U64(reason_at(&s, f), 0);
    scene_finish(&s);
}

/* More blocks than the prover's table holds at first. */
static void a_function_of_many_blocks_is_followed_completely(void)
{
    static char code[5 + 600 * 4 + 8];
    size_t size = 0;

    memcpy(code, "\x53\x48\x85\xFF\x90", size = 5); /* push rbx; test rdi, rdi; nop */
    for (int i = 0; i < 600; i++, size += 4) {
        memcpy(code + size, "\x74\x00\x66\x90", 4); /* je the next */
    }
    memcpy(code + size, "\x5B\xC3", 2); /* pop rbx; ret */
    CHECK_EQ_U64(HOTFN_VERDICT_TIMING_REASON(flags_of(scene_begin(), code, size + 2)), 0);
    memcpy(code + size, "\x48\x8D\x44\x24\x10\x5B\xC3", 7); /* lea rax, [rsp+16] first */
    CHECK_EQ_U64(HOTFN_VERDICT_TIMING_REASON(flags_of(scene_begin(), code, size + 7)), ARGUMENTS);
}

/* ---- Tables. */

/* The reason of a function: `before`, a switch over rdi, `behind`, which is case 0, and `one`,
 * which is case 1.  The codes contain no zero byte. */
static uint32_t reason_of_switch(const char *before, const char *behind, const char *one)
{
    scene s = scene_begin();
    uint64_t f = scene_code(&s, before, strlen(before)), end;
    uint32_t offset, reason;

    SCENE_CODE(&s,
               "\x83\xFF\x01\x77\x10\x48\x8D\x0D"); /* cmp edi, 1; ja the end; lea rcx, the table */
    put(s.text, RODATA - (scene_here(&s) + 4), 4);
    SCENE_CODE(&s, "\x48\x63\x04\xB9\x48\x01\xC8\xFF\xE0"); /* rax = rcx + the entry; jmp rax */
    end = scene_code(&s, behind, strlen(behind));
    offset = (uint32_t)(end - RODATA), memcpy(s.rodata, &offset, 4);
    offset = (uint32_t)(scene_here(&s) - RODATA), memcpy(s.rodata + 4, &offset, 4);
    scene_code(&s, one, strlen(one));
    scene_symbol(&s, "f", refer_to(&s, f), scene_here(&s) - f, FUNC);
    prove_scene(&s);
    reason = reason_at(&s, f);
    scene_finish(&s);
    return reason;
}
#define PUSHES "\x53\x48\x89\xF8\x90" /* push rbx; mov rax, rdi; nop */

#define POPS "\x5B\xC3" /* pop rbx; ret */

static void cases_are_followed_with_the_stack_of_their_jump(void)
{
    CHECK_EQ_U64(reason_of_switch(PUSHES, POPS, "\x31\xC0" POPS), 0);
    CHECK_EQ_U64(reason_of_switch(PUSHES, POPS, "\x31\xC0\xC3"), UNKNOWN); /* without pop rbx */
    CHECK_EQ_U64(reason_of_switch(PUSHES, POPS, "\x48\x8D\x44\x24\x10" POPS), ARGUMENTS);
}

/* A block keeps its latest instructions only, so a long line before the switch may be cut
 * anywhere. */
static void a_switch_after_a_long_straight_line_is_recognised(void)
{
    char before[3 * 140 + 1] = "\x48\x31\xC0\x48\x31\xD2"; /* xor rax, rax; xor rdx, rdx */

    for (int count = 2; count < 140; count++) {
        if (!CHECK_EQ_U64(reason_of_switch(before, "\x31\xC0\xC3", "\x31\xD2\xC3"), 0)) {
            return;
        }
        memcpy(before + 3 * count, "\x48\x89\xF8", 3); /* mov rax, rdi */
    }
}

/* the dispatch of the switch again: rax = rcx + the entry; jmp rax */
#define JUMPS "\x48\x63\x04\xB9\x48\x01\xC8\xFF\xE0"

static void all_table_jumps_must_have_one_stack_depth(void)
{
    CHECK_EQ_U64(reason_of_switch(PUSHES, POPS, "\x31\xC0" JUMPS), 0);
    CHECK_EQ_U64(reason_of_switch(PUSHES, POPS, "\x53" JUMPS), UNKNOWN); /* push rbx */
}

/* ---- Words of the GOT. */

enum { GOT_WORD = RODATA + 24 };

/* The reason of f, which ends with a jump to a PLT entry.  The loader resolves the entry's word to
 * the function of this name: `own` in this module, or a function of another module if `own` is
 * NULL. */
static uint32_t reason_of_jump_through_plt(const char *name, const char *own, size_t own_size)
{
    scene s = scene_begin();
    uint64_t target = own ? refer_to(&s, scene_code(&s, own, own_size)) : 0, plt, f;
    uint32_t reason;

    if (own) {
        scene_symbol(&s, name, target, own_size, FUNC);
    }
    scene_nops(&s, 16);
    plt = SCENE_CODE(&s, "\xF3\x0F\x1E\xFA\xFF\x25"); /* endbr64; jmp [the word] */
    put(s.text, GOT_WORD - (scene_here(&s) + 4), 4);
    scene_nops(&s, 16);
    f = SCENE_CODE(&s, "\x31\xC0\x90\x90\x90");
    scene_branch(&s, 0xE9, plt);
    scene_symbol(&s, "f", refer_to(&s, f), 10, FUNC);
    scene_slot(&s, GOT_WORD, name, target);
    prove_scene(&s);
    reason = reason_at(&s, f);
    scene_finish(&s);
    return reason;
}
#define REASON_OF_JUMP_THROUGH_PLT(name, own) reason_of_jump_through_plt(name, own, sizeof(own) - 1)

/* A C++ name has one definition, so its code is proven; the program may replace a C function. */
static void a_jump_through_the_plt_is_followed_if_its_target_is_certain(void)
{
    static const char takes[] = "\x48\x8D\x44\x24\x08\xC3"; /* lea rax, [rsp+8]; ret */

    CHECK_EQ_U64(reason_of_jump_through_plt("free", NULL, 0), 0);
    CHECK_EQ_U64(reason_of_jump_through_plt("other", NULL, 0), HOTFN_REASON_TAIL_UNKNOWN);
    CHECK_EQ_U64(REASON_OF_JUMP_THROUGH_PLT("other", LEAF), HOTFN_REASON_TAIL_UNKNOWN);
    CHECK_EQ_U64(REASON_OF_JUMP_THROUGH_PLT("_ZN1a1bEv", LEAF), 0);
    CHECK_EQ_U64(REASON_OF_JUMP_THROUGH_PLT("_ZN1a1bEv", takes), HOTFN_REASON_TAIL_UNPROVEN);
    CHECK_EQ_U64(REASON_OF_JUMP_THROUGH_PLT("free", takes), HOTFN_REASON_TAIL_UNPROVEN);
}

/* The reason of a function with an unknown tail target, under the given names.  A visible function
 * with a standard name has only the arguments that the standard specifies, so it passes no others
 * on. */
static uint32_t reason_of_unknown_tail(const char *name, const char *other, bool exported)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, name, "\x48\x89\xF8\x48\xFF\xE0"); /* mov rax, rdi; jmp rax */
    uint32_t reason;

    if (exported) {
        scene_export(&s, name, f, 6);
    }
    if (other) {
        scene_export(&s, other, f, 6);
    }
    refer_to(&s, f);
    prove_scene(&s);
    reason = reason_at(&s, f);
    scene_finish(&s);
    return reason;
}

static void a_standard_function_passes_no_stack_arguments_on(void)
{
    CHECK_EQ_U64(reason_of_unknown_tail("memcpy", NULL, true), 0);
    CHECK_EQ_U64(reason_of_unknown_tail("memcpy", NULL, false), HOTFN_REASON_TAIL_UNKNOWN);
    CHECK_EQ_U64(reason_of_unknown_tail("other", NULL, true), HOTFN_REASON_TAIL_UNKNOWN);
    CHECK_EQ_U64(reason_of_unknown_tail("memcpy", "memcpy_fast", true), 0);
    CHECK_EQ_U64(reason_of_unknown_tail("a_copy", "memcpy", true), 0);
    CHECK_EQ_U64(reason_of_unknown_tail("z", "memcpy", true), 0);
    CHECK_EQ_U64(reason_of_unknown_tail("a_copy", "another", true), HOTFN_REASON_TAIL_UNKNOWN);
}

/* An array of 16 words at the bottom of the frame, whose index a branch limits. */
static void indexes_that_a_branch_limits_stay_in_the_frame(void)
{
    /* sub rsp, 0x80; cmp rdi, n; ja +8; mov rax, [rsp+rdi*8]; add rsp, 0x80; ret */
#define LIMITED(n, condition, distance)                                                            \
    "\x48\x81\xEC\x80\0\0\0\x48\x83\xFF" n condition distance                                      \
    "\x48\x8B\x04\xFC\x48\x81\xC4\x80\0\0\0\xC3"
    CHECK_EQ_U64(REASON_OF(LIMITED("\x0F", "\x77", "\x04")), 0);
    CHECK_EQ_U64(REASON_OF(LIMITED("\x10", "\x73", "\x04")), 0);
    CHECK_EQ_U64(REASON_OF(LIMITED("\x10", "\x77", "\x04")), HOTFN_REASON_STACK_ARGUMENTS);
    CHECK_EQ_U64(REASON_OF(LIMITED("\x0F", "\x7F", "\x04")), HOTFN_REASON_STACK_ARGUMENTS);
    CHECK_EQ_U64(REASON_OF(LIMITED("\x0F", "\x77", "\x00")), HOTFN_REASON_STACK_ARGUMENTS);
#undef LIMITED
}

static const check_test tests[] = {
    CHECK_TEST(indexes_that_a_branch_limits_stay_in_the_frame),
    CHECK_TEST(system_calls_that_may_switch_the_stack_end_the_proof),
    CHECK_TEST(paths_must_meet_at_one_stack_depth),
    CHECK_TEST(merged_paths_keep_only_values_that_all_share),
    CHECK_TEST(a_path_with_a_call_is_dropped_for_another),
    CHECK_TEST(a_path_without_a_call_keeps_its_own_depth),
    CHECK_TEST(a_path_through_a_fragment_is_proven_too),
    CHECK_TEST(a_call_of_the_next_function_is_not_an_inner_call),
    CHECK_TEST(a_function_of_many_blocks_is_followed_completely),
    CHECK_TEST(cases_are_followed_with_the_stack_of_their_jump),
    CHECK_TEST(a_switch_after_a_long_straight_line_is_recognised),
    CHECK_TEST(all_table_jumps_must_have_one_stack_depth),
    CHECK_TEST(a_jump_through_the_plt_is_followed_if_its_target_is_certain),
    CHECK_TEST(a_standard_function_passes_no_stack_arguments_on),
};
CHECK_MAIN(tests)
