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

static bool has_live_flags(const scene *s, uint64_t rva)
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

static const check_test tests[] = {
    CHECK_TEST(flags_read_after_a_call_are_live_out_of_the_callee),
    CHECK_TEST(flags_are_live_out_of_last_calls_and_tail_targets_too),
    CHECK_TEST(calls_of_the_address_behind_a_landing_pad_reach_the_function),
};
CHECK_MAIN(tests)
