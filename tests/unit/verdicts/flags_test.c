/* SPDX-License-Identifier: MIT */
/* Functions whose flags are live-out: a caller reads them after its call. */
#include "verdicts/scene.h"

#define MOVES "\xB8\x01\x00\x00\x00\xC3" /* mov eax, 1; ret */

typedef scene begin(void);

static begin *const machines[] = { scene_begin, scene_begin_i386 };
enum { MACHINES = sizeof machines / sizeof machines[0] };

/* Add a function: a call of target, the bytes, and ret. */
static uint64_t add_caller(scene *s, const char *name, uint64_t target, const char *bytes,
                           size_t size)
{
    uint64_t rva = scene_here(s);

    scene_symbol(s, name, rva, 5 + size + 1, FUNC);
    scene_branch(s, 0xE8, target);
    scene_code(s, bytes, size);
    SCENE_CODE(s, "\xC3");
    return rva;
}
#define CALLER(s, name, target, text) add_caller(s, name, target, text, sizeof(text) - 1)

static uint32_t has_live_flags(const scene *s, uint64_t rva)
{
    hfn_verdict v = scene_verdict(s, rva);

    CHECK_EQ_U64(v.pub.verdict, HOTFN_VERDICT_HOOKABLE);
    return v.pub.flags & HOTFN_VERDICT_FLAGS_LIVE;
}

static void flags_read_after_a_call_are_live_out_of_the_callee(void)
{
    for (int i = 0; i < MACHINES; i++) {
        scene s = machines[i]();
        uint64_t passes_on = SCENE_FUNCTION(&s, "passes_on", MOVES);
        uint64_t sets = SCENE_FUNCTION(&s, "sets", "\xB8\x01\x00\x00\x00\x85\xC0\xC3");
        uint64_t plain = SCENE_FUNCTION(&s, "plain", MOVES);
        CALLER(&s, "reads", passes_on, "\x75\x01\x98");      /* jne */
        CALLER(&s, "reads_set", sets, "\x75\x01\x98");       /* jne; the callee has test eax, eax */
        CALLER(&s, "writes", plain, "\x85\xC0\x75\x01\x98"); /* test eax, eax; jne */
        scene_analyze(&s);
        CHECK(has_live_flags(&s, passes_on));
        CHECK(!has_live_flags(&s, sets));
        CHECK(!has_live_flags(&s, plain));
        scene_finish(&s);
    }
}

static void flags_are_live_out_of_last_calls_and_tail_targets_too(void)
{
    for (int i = 0; i < MACHINES; i++) {
        scene s = machines[i]();
        uint64_t last = SCENE_FUNCTION(&s, "last", MOVES),
                 first = SCENE_FUNCTION(&s, "first", MOVES);
        uint64_t next = SCENE_FUNCTION(&s, "next", MOVES),
                 alone = SCENE_FUNCTION(&s, "alone", MOVES);
        uint64_t both = scene_here(&s), on;

        scene_symbol(&s, "both", both, 13, FUNC);
        scene_branch(&s, 0xE8, first);
        SCENE_CODE(&s, "\x85\xC0"); /* test eax, eax */
        scene_branch(&s, 0xE8, last);
        SCENE_CODE(&s, "\xC3");
        on = scene_here(&s);
        scene_symbol(&s, "on", on, 5, FUNC);
        scene_branch(&s, 0xE9, next);
        CALLER(&s, "reads", both, "\x75\x01\x98");
        CALLER(&s, "reads_on", on, "\x90\x75\x01\x98");
        CALLER(&s, "ends", alone, "");
        scene_analyze(&s);
        CHECK(has_live_flags(&s, last));
        CHECK(!has_live_flags(&s, first));
        CHECK(!has_live_flags(&s, both));
        CHECK(has_live_flags(&s, next));
        CHECK(has_live_flags(&s, on));
        CHECK(!has_live_flags(&s, alone));
        scene_finish(&s);
    }
}

static void calls_of_the_address_behind_a_landing_pad_reach_the_function(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", "\xF3\x0F\x1E\xFA" MOVES); /* endbr64 */

    CALLER(&s, "reads", f + 4, "\x75\x01\x98");
    scene_analyze(&s);
    CHECK(has_live_flags(&s, f));
    scene_finish(&s);
}

static void a_function_passes_flags_to_the_code_that_it_continues_to(void)
{
    for (int i = 0; i < MACHINES; i++) {
        scene s = machines[i]();
        uint64_t through = SCENE_FUNCTION(&s, "through", "\xB8\x02\x00\x00\x00\x90");
        uint64_t next = SCENE_FUNCTION(&s, "next", MOVES);
        uint64_t alone = SCENE_FUNCTION(&s, "alone", MOVES);

        CALLER(&s, "reads", through, "\x75\x01\x98");
        scene_analyze(&s);
        CHECK(has_live_flags(&s, through));
        CHECK(has_live_flags(&s, next));
        CHECK(!has_live_flags(&s, alone));
        scene_finish(&s);
    }
}

static void flags_are_passed_on_by_code_without_a_name(void)
{
    for (int i = 0; i < MACHINES; i++) {
        scene s = machines[i]();
        uint64_t last = SCENE_FUNCTION(&s, "last", MOVES);
        uint64_t below = SCENE_FUNCTION(&s, "below", MOVES);
        uint64_t link = scene_here(&s);

        scene_branch(&s, 0xE9, last);
        uint64_t falls = SCENE_CODE(&s, "\x98");
        uint64_t behind = SCENE_FUNCTION(&s, "behind", MOVES);
        CALLER(&s, "reads", link, "\x75\x01\x98");
        CALLER(&s, "reads_too", falls, "\x75\x01\x98");
        scene_analyze(&s);
        CHECK(has_live_flags(&s, last));
        CHECK(has_live_flags(&s, behind));
        CHECK(!has_live_flags(&s, below));
        scene_finish(&s);
    }
}

static void an_indirect_call_may_reach_each_function_with_a_taken_address(void)
{
    for (int reads = 0; reads < 2; reads++) {
        scene s = scene_begin();
        uint64_t taken = SCENE_FUNCTION(&s, "taken", MOVES);
        uint64_t other = SCENE_FUNCTION(&s, "other", MOVES);

        scene_pointer(&s, RODATA, taken);
        CALLER(&s, "direct", other, "");
        /* 5 * cwde; call rax; (test eax, eax;) jne; cwde; ret */
        if (reads) {
            SCENE_FUNCTION(&s, "reads", "\x98\x98\x98\x98\x98\xFF\xD0\x75\x01\x98\xC3");
        } else {
            SCENE_FUNCTION(&s, "writes", "\x98\x98\x98\x98\x98\xFF\xD0\x85\xC0\x75\x01\x98\xC3");
        }
        scene_analyze(&s);
        CHECK_EQ_U64(has_live_flags(&s, taken), reads ? HOTFN_VERDICT_FLAGS_LIVE : 0);
        CHECK(!has_live_flags(&s, other));
        scene_finish(&s);
    }
}

static void the_code_behind_a_call_that_never_returns_reads_other_flags(void)
{
    scene s = scene_begin();
    uint64_t taken = SCENE_FUNCTION(&s, "taken", MOVES);

    scene_pointer(&s, RODATA, taken);
    /* 5 * cwde; test eax, eax; jmp over the call; call rax; jne; cwde; ret */
    SCENE_FUNCTION(&s, "f", "\x98\x98\x98\x98\x98\x85\xC0\xEB\x02\xFF\xD0\x75\x01\x98\xC3");
    scene_analyze(&s);
    CHECK(!has_live_flags(&s, taken));
    scene_finish(&s);
}

/* The callee ends with a jump to code that is not known. */
static void flags_are_passed_on_by_a_jump_through_a_pointer(void)
{
    for (int i = 0; i < MACHINES; i++) {
        scene s = machines[i]();
        uint64_t taken = SCENE_FUNCTION(&s, "taken", MOVES);
        uint64_t other = SCENE_FUNCTION(&s, "other", MOVES);
        uint64_t ends = SCENE_FUNCTION(&s, "ends", "\xB8\x02\x00\x00\x00\xFF\xE1"); /* jmp rcx */
        uint64_t link = SCENE_CODE(&s, "\xFF\xE1"); /* without a name */

        if (i == 0) { /* the builder makes pointers of 64 bits */
            scene_pointer(&s, RODATA, taken);
        }
        CALLER(&s, "reads", i == 0 ? link : ends, "\x75\x01\x98");
        CALLER(&s, "reads_too", ends, "\x75\x01\x98");
        CALLER(&s, "calls", other, "");
        scene_analyze(&s);
        CHECK(has_live_flags(&s, ends));
        CHECK(i > 0 || has_live_flags(&s, taken));
        CHECK(!has_live_flags(&s, other));
        scene_finish(&s);
    }
}

/* Behind a call that may not return the same jump keeps nothing. */
static void jumps_through_pointers_behind_uncertain_calls_pass_no_flags(void)
{
    scene s = scene_begin();
    uint64_t ends = SCENE_FUNCTION(&s, "ends", "\xB8\x02\x00\x00\x00\xFF\xE1"); /* jmp rcx */
    uint64_t f = scene_here(&s);

    SCENE_CODE(&s, "\x98\x98\x98\x98\x98\x85\xC0\xEB\x05"); /* jmp over the call */
    scene_branch(&s, 0xE8, ends);
    SCENE_CODE(&s, "\x75\x01\x98\xC3");
    scene_symbol(&s, "f", f, scene_here(&s) - f, FUNC);
    scene_analyze(&s);
    CHECK(!has_live_flags(&s, ends));
    scene_finish(&s);
}

/* A function that reads flags at its entry may be the target of any jump through a pointer. */
static void flags_are_live_at_pointers_if_one_of_their_targets_reads_them(void)
{
    for (int reads = 0; reads < 2; reads++) {
        scene s = scene_begin();
        uint64_t target =
            reads ? SCENE_FUNCTION(&s, "reader", "\x0F\x92\xC0\x90\x90\xC3") /* setb al */
                  : SCENE_FUNCTION(&s, "writer", "\x85\xC0\x90\x90\x90\xC3");
        uint64_t jumps = SCENE_FUNCTION(&s, "jumps", "\xB8\x02\x00\x00\x00\xFF\xE1");

        scene_pointer(&s, RODATA, target);
        scene_pointer(&s, RODATA + 8, jumps);
        scene_analyze(&s);
        CHECK_EQ_U64(has_live_flags(&s, jumps), reads ? HOTFN_VERDICT_FLAGS_LIVE : 0);
        scene_finish(&s);
    }
}

static const check_test tests[] = {
    CHECK_TEST(flags_read_after_a_call_are_live_out_of_the_callee),
    CHECK_TEST(flags_are_live_out_of_last_calls_and_tail_targets_too),
    CHECK_TEST(calls_of_the_address_behind_a_landing_pad_reach_the_function),
    CHECK_TEST(a_function_passes_flags_to_the_code_that_it_continues_to),
    CHECK_TEST(flags_are_passed_on_by_code_without_a_name),
    CHECK_TEST(an_indirect_call_may_reach_each_function_with_a_taken_address),
    CHECK_TEST(flags_are_passed_on_by_a_jump_through_a_pointer),
    CHECK_TEST(jumps_through_pointers_behind_uncertain_calls_pass_no_flags),
    CHECK_TEST(flags_are_live_at_pointers_if_one_of_their_targets_reads_them),
    CHECK_TEST(the_code_behind_a_call_that_never_returns_reads_other_flags),
};
CHECK_MAIN(tests)
