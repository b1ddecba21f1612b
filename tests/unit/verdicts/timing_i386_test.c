/* SPDX-License-Identifier: MIT */
/* The proofs of timing on i386: all arguments are on the stack, callees may pop them, and code
 * finds its data through a return address. */
#include "timed.h"

#define FLAGS_OF(text) flags_of(scene_begin_i386(), text, sizeof(text) - 1)
#define REASON_OF(text) HOTFN_VERDICT_TIMING_REASON(FLAGS_OF(text))

/* The flags of a timed function as one number: copied words, popped words, the timing flag. */
#define TIMED(words, pops)                                                                         \
    ((uint32_t)(words) | (uint32_t)(HOTFN_POPS_##pops) << 8 | HOTFN_VERDICT_TIMED << 16)

static uint32_t copies(uint32_t flags)
{
    return HOTFN_VERDICT_ARGUMENTS(flags) | HOTFN_VERDICT_POPS(flags) << 8 |
           (flags & HOTFN_VERDICT_TIMED) << 16;
}
#define COPIES_OF(text) copies(FLAGS_OF(text))

static void stack_argument_words_are_counted(void)
{
    CHECK_EQ_U64(COPIES_OF("\x55\x89\xE5\x5D\xC3"), TIMED(0, NOTHING));
    CHECK_EQ_U64(COPIES_OF("\x8B\x44\x24\x04\x90\xC3"), TIMED(1, NOTHING)); /* eax = [esp+4] */
    CHECK_EQ_U64(COPIES_OF("\x8A\x44\x24\x07\x90\xC3"), TIMED(1, NOTHING)); /* al = [esp+7]  */
    CHECK_EQ_U64(COPIES_OF("\x8A\x44\x24\x08\x90\xC3"), TIMED(2, NOTHING)); /* al = [esp+8]  */
    CHECK_EQ_U64(COPIES_OF("\xDD\x44\x24\x08\x90\xC3"), TIMED(3, NOTHING)); /* fld qword [esp+8] */
    /* push ebp; mov ebp, esp; mov eax, [ebp+20]; pop ebp */
    CHECK_EQ_U64(COPIES_OF("\x55\x89\xE5\x8B\x45\x14\x5D\xC3"), TIMED(4, NOTHING));
    CHECK_EQ_U64(COPIES_OF("\x8B\x44\x24\x7C\x90\xC3"), TIMED(31, NOTHING)); /* eax = [esp+124] */
    CHECK_EQ_U64(REASON_OF("\x8B\x84\x24\x80\x00\x00\x00\xC3"),
                 HOTFN_REASON_STACK_ARGUMENTS); /* eax = [esp+128] */
    CHECK_EQ_U64(REASON_OF("\x8D\x44\x24\x04\x90\xC3"), HOTFN_REASON_STACK_ARGUMENTS); /* lea */
    CHECK_EQ_U64(REASON_OF("\x8B\x04\x24\x90\x90\xC3"), HOTFN_REASON_RETURN_ADDRESS);
    CHECK_EQ_U64(REASON_OF("\x53\x31\xC0\x31\xD2\xC3"), HOTFN_REASON_STACK_UNKNOWN); /* push ebx */
}

/* The argument words that are written back when f, which jumps to g at its end, returns. */
static uint32_t stored_in(const char *f, size_t f_size, const char *g, size_t g_size)
{
    scene s = scene_begin_i386();
    uint64_t first = refer_to(&s, scene_function(&s, "g", g, g_size));
    uint64_t rva = refer_to(&s, scene_code(&s, f, f_size));
    uint32_t stored;

    scene_branch(&s, 0xE9, first);
    scene_symbol(&s, "f", rva, f_size + 5, FUNC);
    prove_scene(&s);
    CHECK_EQ_U64(reason_at(&s, rva), HOTFN_REASON_NONE);
    stored = scene_verdict(&s, rva).stored_arguments;
    scene_finish(&s);
    return stored;
}
#define STORED_IN(f, g) stored_in(f, sizeof(f) - 1, g, sizeof(g) - 1)

/* The caller may read a stored argument word, unless the return pops it. */
static void stored_arguments_are_written_back(void)
{
    /* mov [esp+4], eax; test eax, eax, je over mov [esp+8], eax; inc dword [esp+32] */
    CHECK_EQ_U64(STORED_IN("\x89\x44\x24\x04\x90", "\x31\xC0\x90\x90\x90\xC3"), 1);
    CHECK_EQ_U64(STORED_IN("\x31\xC0\x90\x90\x90", "\x85\xC0\x90\x74\x04\x89\x44\x24\x08\xC3"), 2);
    CHECK_EQ_U64(STORED_IN("\x89\x44\x24\x04\x90", "\xFF\x44\x24\x20\x90\xC3"), 0x81);
    CHECK_EQ_U64(STORED_IN("\x89\x44\x24\x04\x90", "\xFF\x44\x24\x20\x90\xC2\x04\x00"), 0x80);
    CHECK_EQ_U64(STORED_IN("\x89\x44\x24\x04\x90", "\xFF\x44\x24\x0C\x90\xC2\x0C\x00"), 0);
    CHECK_EQ_U64(REASON_OF("\xFF\x44\x24\x24\x90\xC3"), HOTFN_REASON_STACK_ARGUMENTS);
    CHECK_EQ_U64(COPIES_OF("\x89\x44\x24\x04\x8B\x54\x24\x08\xC3"), TIMED(2, NOTHING));
}

static void returns_pop_one_word_or_all(void)
{
    /* push ebx; nop; pop ebx; ret n */
    CHECK_EQ_U64(COPIES_OF("\x53\x90\x5B\xC2\x00\x00"), TIMED(0, NOTHING));
    CHECK_EQ_U64(COPIES_OF("\x53\x90\x5B\xC2\x04\x00"), TIMED(1, ALL));
    CHECK_EQ_U64(COPIES_OF("\x53\x90\x5B\xC2\x7C\x00"), TIMED(31, ALL));
    CHECK_EQ_U64(REASON_OF("\x53\x90\x5B\xC2\x02\x00"), HOTFN_REASON_RETURN_POPS);
    CHECK_EQ_U64(REASON_OF("\x53\x90\x5B\xC2\x80\x00"), HOTFN_REASON_RETURN_POPS);
    CHECK_EQ_U64(COPIES_OF("\x8B\x44\x24\x08\x90\xC2\x04\x00"), TIMED(2, ONE));
    CHECK_EQ_U64(COPIES_OF("\x8B\x44\x24\x04\x90\xC2\x08\x00"), TIMED(2, ALL));
    CHECK_EQ_U64(REASON_OF("\x8B\x44\x24\x0C\x90\xC2\x08\x00"), HOTFN_REASON_RETURN_POPS);
    /* test eax, eax; je the second return */
    CHECK_EQ_U64(COPIES_OF("\x85\xC0\x90\x74\x03\xC2\x08\x00\xC2\x08\x00"), TIMED(2, ALL));
    CHECK_EQ_U64(REASON_OF("\x85\xC0\x90\x74\x03\xC2\x08\x00\xC2\x04\x00"),
                 HOTFN_REASON_RETURN_POPS);
    CHECK_EQ_U64(REASON_OF("\x85\xC0\x90\x74\x03\xC2\x04\x00\xC3"), HOTFN_REASON_RETURN_POPS);
}

/* The flags of f: test eax, eax; je 1f; jmp g; 1: mov edx, eax; jmp h.  Both targets must pop the
 * same words. */
static uint32_t flags_of_two_tails(const char *g, size_t g_size, const char *h, size_t h_size)
{
    scene s = scene_begin_i386();
    uint64_t first = refer_to(&s, scene_function(&s, "g", g, g_size)), second, f;
    uint32_t flags;

    second = refer_to(&s, scene_function(&s, "h", h, h_size));
    f = SCENE_CODE(&s, "\x85\xC0\x90\x74\x05");
    scene_branch(&s, 0xE9, first);
    SCENE_CODE(&s, "\x89\xC2");
    scene_branch(&s, 0xE9, second);
    scene_symbol(&s, "f", refer_to(&s, f), scene_here(&s) - f, FUNC);
    prove_scene(&s);
    flags = flags_at(&s, f);
    scene_finish(&s);
    return flags;
}
#define TAILS(g, h) flags_of_two_tails(g, sizeof(g) - 1, h, sizeof(h) - 1)

static void a_tail_target_pops_as_much_as_the_function(void)
{
    static const char nothing[] = "\x53\x90\x5B\x90\x90\xC3", word[] = "\x53\x90\x5B\xC2\x04\x00",
                      words[] = "\x53\x90\x5B\xC2\x08\x00",
                      never[] = "\x53\x90\x5B\x90\x90\x0F\x0B";
    const uint32_t differ = HOTFN_REASON_RETURN_POPS;

    CHECK_EQ_U64(copies(TAILS(nothing, nothing)), TIMED(0, NOTHING));
    CHECK_EQ_U64(copies(TAILS(words, words)), TIMED(2, ALL));
    CHECK_EQ_U64(copies(TAILS(words, never)), TIMED(2, ALL));
    CHECK_EQ_U64(copies(TAILS(never, word)), TIMED(1, ALL));
    CHECK_EQ_U64(HOTFN_VERDICT_TIMING_REASON(TAILS(nothing, word)), differ);
    CHECK_EQ_U64(HOTFN_VERDICT_TIMING_REASON(TAILS(word, nothing)), differ);
    CHECK_EQ_U64(HOTFN_VERDICT_TIMING_REASON(TAILS(word, words)), differ);
}

/* lea ecx, [esp+4]; and esp, -16; push [ecx-4]; push ebp; mov ebp, esp; push ecx; sub esp, 4 ... */
#define REALIGNS "\x8D\x4C\x24\x04\x83\xE4\xF0\xFF\x71\xFC\x55\x89\xE5\x51\x83\xEC\x04"

static void arguments_are_found_through_a_register_when_the_stack_is_realigned(void)
{
    /* eax = [ecx+4]; ecx = [ebp-4]; leave; lea esp, [ecx-4] */
    CHECK_EQ_U64(COPIES_OF(REALIGNS "\x8B\x41\x04\x8B\x4D\xFC\xC9\x8D\x61\xFC\xC3"),
                 TIMED(2, NOTHING));
    /* the same with ecx loaded from another word than the saved one */
    CHECK_EQ_U64(REASON_OF(REALIGNS "\x8B\x41\x04\x8B\x4D\xF8\xC9\x8D\x61\xFC\xC3"),
                 HOTFN_REASON_STACK_UNKNOWN);
    /* lea esp, [ecx-8] */
    CHECK_EQ_U64(REASON_OF(REALIGNS "\x8B\x41\x04\x8B\x4D\xFC\xC9\x8D\x61\xF8\xC3"),
                 HOTFN_REASON_STACK_UNKNOWN);
}

/* ---- Calls. */

#define TAKES_NOTHING "\x31\xC0\x90\x90\x90\xC3"
#define TAKES_A_WORD "\x31\xC0\x90\xC2\x04\x00"

/* The flags of f: `before`, a call of g (the callee), `behind`. */
static uint32_t caller_flags(const char *callee, size_t callee_size, const char *before,
                             size_t before_size, const char *behind, size_t behind_size)
{
    scene s = scene_begin_i386();
    uint64_t g = scene_function(&s, "g", callee, callee_size), f;
    uint32_t flags;

    scene_nops(&s, 16);
    f = scene_code(&s, before, before_size);
    scene_branch(&s, 0xE8, g);
    scene_code(&s, behind, behind_size);
    scene_symbol(&s, "f", refer_to(&s, f), scene_here(&s) - f, FUNC);
    prove_scene(&s);
    flags = flags_at(&s, f);
    scene_finish(&s);
    return flags;
}
#define CALLER_REASON(callee, before, behind)                                                      \
    HOTFN_VERDICT_TIMING_REASON(caller_flags(callee, sizeof(callee) - 1, before,                   \
                                             sizeof(before) - 1, behind, sizeof(behind) - 1))

#define PUSHES "\x53\x31\xC0\x50\x90" /* push ebx; xor eax, eax; push eax */

static void a_known_callee_pops_what_its_returns_pop(void)
{
    /* add esp, 4; pop ebx; ret; or pop ebx; ret */
    CHECK_EQ_U64(CALLER_REASON(TAKES_NOTHING, PUSHES, "\x83\xC4\x04\x5B\xC3"), 0);
    CHECK_EQ_U64(CALLER_REASON(TAKES_A_WORD, PUSHES, "\x5B\xC3"), 0);
    CHECK_EQ_U64(CALLER_REASON(TAKES_NOTHING, PUSHES, "\x5B\xC3"), HOTFN_REASON_STACK_UNKNOWN);
    CHECK_EQ_U64(CALLER_REASON(TAKES_A_WORD, PUSHES, "\x83\xC4\x04\x5B\xC3"),
                 HOTFN_REASON_RETURN_ADDRESS);
}

/* eax = [esp]; ud2: reads the function's own word only if the callee popped nothing. */
#define READS_TOP "\x8B\x04\x24\x0F\x0B"

/* test eax, eax; nop; je 1f; ret 4; 1: ret */
#define TWO_RETURNS "\x85\xC0\x90\x74\x03\xC2\x04\x00\xC3"

/* An unknown callee is assumed to pop nothing while no access near the return address depends on
 * it. */
static void an_unknown_callee_pops_nothing_if_returns_confirm_it(void)
{
    static const char no_return[] = "\x31\xC0\x90\x90\x90\x0F\x0B";
    static const char no_code[] = "\x31\xC0\x90\xC2\x04\x00\xFF\xFF";

    CHECK_EQ_U64(CALLER_REASON(TAKES_NOTHING, PUSHES, READS_TOP), 0);
    CHECK_EQ_U64(CALLER_REASON(TWO_RETURNS, PUSHES, "\x83\xC4\x04\x5B\xC3"), 0);
    CHECK_EQ_U64(CALLER_REASON(TWO_RETURNS, PUSHES, READS_TOP), HOTFN_REASON_STACK_UNKNOWN);
    CHECK_EQ_U64(CALLER_REASON(no_return, PUSHES, READS_TOP), HOTFN_REASON_STACK_UNKNOWN);
    CHECK_EQ_U64(CALLER_REASON(no_code, PUSHES, READS_TOP), HOTFN_REASON_STACK_UNKNOWN);
}

/* call eax: the callee is unknown. */
static void an_access_near_the_return_address_needs_confirmed_calls(void)
{
    static const uint32_t unknown = HOTFN_REASON_STACK_UNKNOWN;

    /* push ebp; mov ebp, esp; push ebx; nop; call eax; eax = [esp]; leave; ret */
    CHECK_EQ_U64(REASON_OF("\x55\x89\xE5\x53\x90\xFF\xD0\x8B\x04\x24\xC9\xC3"), unknown);
    /* the same with pop ebx; pop ebp in place of leave */
    CHECK_EQ_U64(REASON_OF("\x55\x89\xE5\x53\x90\xFF\xD0\x8B\x04\x24\x5B\x5D\xC3"), 0);
    /* the same access one word farther from the return address */
    CHECK_EQ_U64(REASON_OF("\x55\x89\xE5\x53\x53\xFF\xD0\x8B\x04\x24\xC9\xC3"), 0);
    /* the same after two calls */
    CHECK_EQ_U64(REASON_OF("\x55\x89\xE5\x53\x53\xFF\xD0\xFF\xD0\x8B\x04\x24\xC9\xC3"), unknown);
    /* an access by the frame pointer does not depend on calls */
    CHECK_EQ_U64(REASON_OF("\x55\x89\xE5\x53\x90\xFF\xD0\x8B\x45\xFC\xC9\xC3"), 0);
    /* after the access one path aborts: test eax, eax; je ud2; pop ebx; pop ebp; ret */
    CHECK_EQ_U64(
        REASON_OF("\x55\x89\xE5\x53\x90\xFF\xD0\x8B\x04\x24\x85\xC0\x74\x03\x5B\x5D\xC3\x0F\x0B"),
        0);
    /* the access is on the path that aborts: test eax, eax; je 1f; eax = [esp]; ud2; 1: pop ebx;
     * pop ebp; ret */
    CHECK_EQ_U64(
        REASON_OF("\x55\x89\xE5\x53\x90\xFF\xD0\x85\xC0\x74\x05\x8B\x04\x24\x0F\x0B\x5B\x5D\xC3"),
        unknown);
    /* both paths reset the stack pointer: eax = [esp]; test eax, eax; je leave; jmp leave; leave;
     * ret */
    CHECK_EQ_U64(
        REASON_OF("\x55\x89\xE5\x53\x90\xFF\xD0\x8B\x04\x24\x85\xC0\x74\x02\xEB\x00\xC9\xC3"),
        unknown);
}

/* The reason of f, which calls g and has a landing pad for that call. */
static uint32_t reason_of_pad(const char *behind, size_t behind_size, const char *pad,
                              size_t pad_size, const char *cfi)
{
    scene s = scene_begin_i386();
    uint64_t g = SCENE_FUNCTION(&s, "g", TWO_RETURNS), f = scene_here(&s);
    uint8_t at = (uint8_t)(10 + behind_size), size = (uint8_t)(at + pad_size);
    /* no @LPStart, no @TType, call sites in uleb: one of 5 bytes */
    const uint8_t lsda[] = { 0xFF, 0xFF, 0x01, 4, 5, 5, at, 0 };
    uint32_t reason;

    SCENE_CODE(&s, "\x53\x83\xEC\x10\x90"); /* push ebx; sub esp, 16; nop */
    scene_branch(&s, 0xE8, g);
    scene_code(&s, behind, behind_size);
    scene_code(&s, pad, pad_size);
    scene_symbol(&s, "f", refer_to(&s, f), size, FUNC);
    s.fdes[s.fde_count++] = (scene_fde){ .begin = f, .size = size, .lsda = true, .cfi = cfi };
    memcpy(s.rodata, lsda, sizeof lsda);
    prove_scene(&s);
    reason = reason_at(&s, f);
    scene_finish(&s);
    return reason;
}
#define REASON_OF_PAD(behind, pad, cfi)                                                            \
    reason_of_pad(behind, sizeof(behind) - 1, pad, sizeof(pad) - 1, cfi)

#define RETURNS "\x83\xC4\x10\x5B\xC3" /* add esp, 16; pop ebx; ret */
#define NEAR_ACCESS "\x8B\x44\x24\x10" /* eax = [esp+16] */

static void an_exception_confirms_no_call_before_it(void)
{
    CHECK_EQ_U64(REASON_OF_PAD(RETURNS, RETURNS, NULL), 0);
    /* call eax; an access near the return address; ud2 */
    CHECK_EQ_U64(REASON_OF_PAD("\xFF\xD0" NEAR_ACCESS "\x0F\x0B", RETURNS, NULL),
                 HOTFN_REASON_STACK_UNKNOWN);
    /* an access in the pad itself */
    CHECK_EQ_U64(REASON_OF_PAD(RETURNS, NEAR_ACCESS RETURNS, NULL), 0);
    CHECK_EQ_U64(REASON_OF_PAD(RETURNS, NEAR_ACCESS "\x0F\x0B", NULL), HOTFN_REASON_STACK_UNKNOWN);
}

#define TAKES_16 "\x41\x2E\x10" /* advance 1; GNU_args_size 16 */

static void an_exception_removes_the_arguments_of_its_call(void)
{
    CHECK_EQ_U64(REASON_OF_PAD(RETURNS, "\x5B\xC3", NULL), HOTFN_REASON_STACK_UNKNOWN);
    CHECK_EQ_U64(REASON_OF_PAD(RETURNS, "\x5B\xC3", TAKES_16), 0);
    CHECK_EQ_U64(REASON_OF_PAD(RETURNS, RETURNS, TAKES_16), HOTFN_REASON_RETURN_ADDRESS);
}

/* ---- Words of the GOT. */

enum { GOT = RODATA, GOT_WORD = 12 };

/* The flags of f: `before`, a branch to a PLT entry, `behind`.  The PLT entry jumps through a word
 * of the GOT that the loader sets to the function of this name. */
static uint32_t plt_flags(scene s, const char *name, uint64_t own, const char *before,
                          uint8_t branch, const char *behind, size_t behind_size)
{
    bool wide = s.b->file.wide;
    uint64_t plt = scene_code(&s, wide ? "\xFF\x25" : "\xFF\xA3", 2), f; /* by rip, by ebx */
    uint32_t flags;

    put(s.text, wide ? GOT + GOT_WORD - (plt + 6) : GOT_WORD, 4);
    scene_nops(&s, 10);
    f = scene_code(&s, before, 5);
    scene_branch(&s, branch, plt);
    scene_code(&s, behind, behind_size);
    scene_symbol(&s, "f", refer_to(&s, f), scene_here(&s) - f, FUNC);
    scene_slot(&s, GOT + GOT_WORD, name, own);
    prove_scene(&s);
    flags = flags_at(&s, f);
    scene_finish(&s);
    return flags;
}
#define JUMP_BEHIND(scene, name, before) plt_flags(scene, name, 0, before, 0xE9, "", 0)
#define JUMP_ON(scene, name) JUMP_BEHIND(scene, name, "\x31\xC0\x90\x90\x90")
#define CALLS_PLT(name, own)                                                                       \
    HOTFN_VERDICT_TIMING_REASON(                                                                   \
        plt_flags(scene_begin_i386(), name, own, PUSHES, 0xE8, READS_TOP, sizeof READS_TOP - 1))

static void a_standard_function_has_seven_argument_words_at_most(void)
{
    CHECK_EQ_U64(copies(JUMP_ON(scene_begin_i386(), "memcpy")), TIMED(7, NOTHING));
    /* eax = [esp+4], [esp+28], [esp+32] */
    CHECK_EQ_U64(copies(JUMP_BEHIND(scene_begin_i386(), "memcpy", "\x8B\x44\x24\x04\x90")),
                 TIMED(7, NOTHING));
    CHECK_EQ_U64(copies(JUMP_BEHIND(scene_begin_i386(), "memcpy", "\x8B\x44\x24\x1C\x90")),
                 TIMED(7, NOTHING));
    CHECK_EQ_U64(copies(JUMP_BEHIND(scene_begin_i386(), "memcpy", "\x8B\x44\x24\x20\x90")),
                 TIMED(8, NOTHING));
    CHECK_EQ_U64(HOTFN_VERDICT_TIMING_REASON(JUMP_ON(scene_begin_i386(), "other")),
                 HOTFN_REASON_TAIL_UNKNOWN);
    CHECK_EQ_U64(HOTFN_VERDICT_TIMING_REASON(JUMP_ON(scene_begin_i386(), "div")),
                 HOTFN_REASON_TAIL_UNKNOWN);
    CHECK_EQ_U64(copies(JUMP_ON(scene_begin(), "memcpy")), TIMED(0, NOTHING));
    CHECK_EQ_U64(copies(JUMP_ON(scene_begin(), "div")), TIMED(0, NOTHING));
    CHECK_EQ_U64(HOTFN_VERDICT_TIMING_REASON(JUMP_ON(scene_begin(), "other")),
                 HOTFN_REASON_TAIL_UNKNOWN);
}

static void functions_that_pop_nothing_are_known_by_name(void)
{
    CHECK_EQ_U64(CALLS_PLT("memcpy", 0), 0);
    CHECK_EQ_U64(CALLS_PLT("snprintf", 0), 0);
    CHECK_EQ_U64(CALLS_PLT("sscanf", 0), 0);
    CHECK_EQ_U64(CALLS_PLT("__stack_chk_fail", 0), 0);
    CHECK_EQ_U64(CALLS_PLT("__stack_chk_fai", 0), HOTFN_REASON_STACK_UNKNOWN);
    CHECK_EQ_U64(CALLS_PLT("__cxa_throw", 0), 0);
    CHECK_EQ_U64(CALLS_PLT("_ZSt17__throw_bad_allocv", 0), 0);
    CHECK_EQ_U64(CALLS_PLT("_ZSt9terminatev", 0), HOTFN_REASON_STACK_UNKNOWN);
    CHECK_EQ_U64(CALLS_PLT("div", 0), HOTFN_REASON_STACK_UNKNOWN);
    CHECK_EQ_U64(CALLS_PLT("other", 0), HOTFN_REASON_STACK_UNKNOWN);
}

/* The module defines the name itself: its own definition shows the bytes that a call pops,
 * whichever definition the loader binds. */
static void an_own_function_behind_the_plt_is_followed(void)
{
    scene s = scene_begin_i386();
    uint64_t own = SCENE_FUNCTION(&s, "own", TAKES_A_WORD), plt, f;

    scene_nops(&s, 16);
    plt = SCENE_CODE(&s, "\xFF\xA3\x0C\0\0\0\x90\x90\x90\x90");
    f = SCENE_CODE(&s, PUSHES);
    scene_branch(&s, 0xE8, plt);
    SCENE_CODE(&s, "\x5B\xC3");
    scene_symbol(&s, "f", refer_to(&s, f), 12, FUNC);
    scene_slot(&s, GOT + GOT_WORD, "own", own);
    prove_scene(&s);
    CHECK_EQ_U64(reason_at(&s, f), 0);
    scene_finish(&s);
}

/* ---- Code that reads its own address. */

/* The flags of f: push ebp; mov ebp, esp; call thunk; add ebx, 256; `behind`. */
static uint32_t thunk_flags(const char *thunk, size_t thunk_size, const char *behind,
                            size_t behind_size)
{
    scene s = scene_begin_i386();
    uint64_t t = scene_function(&s, "t", thunk, thunk_size), f;
    uint32_t flags;

    scene_nops(&s, 16);
    f = SCENE_CODE(&s, "\x55\x89\xE5");
    scene_branch(&s, 0xE8, t);
    SCENE_CODE(&s, "\x81\xC3\x00\x01\x00\x00");
    scene_code(&s, behind, behind_size);
    scene_symbol(&s, "f", refer_to(&s, f), scene_here(&s) - f, FUNC);
    prove_scene(&s);
    CHECK_EQ_U64(scene_verdict(&s, f).pub.patch_offset, 0);
    flags = flags_at(&s, f);
    scene_finish(&s);
    return flags;
}
#define BEHIND_THUNK(thunk, behind)                                                                \
    HOTFN_VERDICT_TIMING_REASON(thunk_flags(thunk, sizeof(thunk) - 1, behind, sizeof(behind) - 1))

/* The reason of f: xor eax, eax; nop; jmp thunk.  A function that can be timed follows f. */
static uint32_t reason_of_jump_to_thunk(void)
{
    scene s = scene_begin_i386();
    uint64_t t = refer_to(&s, SCENE_FUNCTION(&s, "t", "\x8B\x1C\x24\xC3")), f;
    uint32_t reason;

    scene_nops(&s, 16);
    f = SCENE_CODE(&s, "\x31\xC0\x90\x90\x90");
    scene_branch(&s, 0xE9, t);
    scene_symbol(&s, "f", refer_to(&s, f), 10, FUNC);
    SCENE_FUNCTION(&s, "next", "\x31\xC0\x90\x90\x90\xC3");
    prove_scene(&s);
    reason = reason_at(&s, f);
    scene_finish(&s);
    return reason;
}

static void a_pc_thunk_is_not_treated_as_a_callee(void)
{
    /* thunk: mov ebx, [esp]; ret.  It pops nothing, so eax = [esp]; ud2 is accepted */
    CHECK_EQ_U64(BEHIND_THUNK("\x8B\x1C\x24\xC3", READS_TOP), 0);
    CHECK_EQ_U64(BEHIND_THUNK("\x8B\x1C\x24\xC3", "\xC9\xC3"), 0); /* leave; ret */
    /* mov ebp, [esp]; ret: the frame pointer is overwritten */
    CHECK_EQ_U64(BEHIND_THUNK("\x8B\x2C\x24\xC3", "\xC9\xC3"), HOTFN_REASON_STACK_UNKNOWN);
    /* a tail jump to the thunk is a tail jump to a function that reads its return address */
    CHECK_EQ_U64(reason_of_jump_to_thunk(), HOTFN_REASON_TAIL_UNPROVEN);
    /* push ebp; mov ebp, esp; xor eax, eax; call +0; pop eax; pop ebp; ret */
    CHECK_EQ_U64(REASON_OF("\x55\x89\xE5\x31\xC0\xE8\x00\x00\x00\x00\x58\x5D\xC3"), 0);
    CHECK_EQ_U64(REASON_OF("\x55\x89\xE5\x31\xC0\xE8\x00\x00\x00\x00\x5D\xC3"),
                 HOTFN_REASON_STACK_UNKNOWN);
    /* call +1 */
    CHECK_EQ_U64(REASON_OF("\x55\x89\xE5\x31\xC0\xE8\x01\x00\x00\x00\x90\x58\x5D\xC3"),
                 HOTFN_REASON_STACK_UNKNOWN);
}

/* f: lea eax, [ebx + distance].  If the image has a GOT, ebx holds its address, f takes the address
 * of g, and so g is a function although it has no name. */
static void an_address_relative_to_the_got_is_a_function(void)
{
    for (int has_got = 0; has_got < 2; has_got++) {
        scene s = scene_begin_i386();
        uint64_t g = SCENE_CODE(&s, "\x53\x31\xC0\x31\xD2\x5B\xC3");
        scene_fde_at(&s, g, 7);
        SCENE_CODE(&s, "\x8D\x83");
        put(s.text, g - GOT, 4);
        SCENE_CODE(&s, "\xC3");
        scene_symbol(&s, "f", g + 7, 7, FUNC);
        s.is_dynamic = has_got;
        prove_scene(&s);
        CHECK_EQ_U64(scene_verdict(&s, g).pub.verdict,
                     has_got ? HOTFN_VERDICT_HOOKABLE : HOTFN_VERDICT_FRAGMENT);
        scene_finish(&s);
    }
}

/* mov eax, number; call gs:[16]; ret */
static void system_calls_through_the_thread_block_are_followed(void)
{
    CHECK_EQ_U64(REASON_OF("\xB8\x78\x00\x00\x00\x65\xFF\x15\x10\x00\x00\x00\xC3"),
                 HOTFN_REASON_SYSTEM_CALL);
    CHECK_EQ_U64(REASON_OF("\xB8\x04\x00\x00\x00\x65\xFF\x15\x10\x00\x00\x00\xC3"), 0);
}

static const check_test tests[] = {
    CHECK_TEST(stack_argument_words_are_counted),
    CHECK_TEST(stored_arguments_are_written_back),
    CHECK_TEST(returns_pop_one_word_or_all),
    CHECK_TEST(a_tail_target_pops_as_much_as_the_function),
    CHECK_TEST(arguments_are_found_through_a_register_when_the_stack_is_realigned),
    CHECK_TEST(a_known_callee_pops_what_its_returns_pop),
    CHECK_TEST(an_unknown_callee_pops_nothing_if_returns_confirm_it),
    CHECK_TEST(an_access_near_the_return_address_needs_confirmed_calls),
    CHECK_TEST(an_exception_confirms_no_call_before_it),
    CHECK_TEST(an_exception_removes_the_arguments_of_its_call),
    CHECK_TEST(a_standard_function_has_seven_argument_words_at_most),
    CHECK_TEST(an_own_function_behind_the_plt_is_followed),
    CHECK_TEST(a_pc_thunk_is_not_treated_as_a_callee),
    CHECK_TEST(an_address_relative_to_the_got_is_a_function),
    CHECK_TEST(functions_that_pop_nothing_are_known_by_name),
    CHECK_TEST(system_calls_through_the_thread_block_are_followed),
};
CHECK_MAIN(tests)
