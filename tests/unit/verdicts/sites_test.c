/* SPDX-License-Identifier: MIT */
/* Which direct calls and jumps may be redirected to a stub: those that are certainly executed as
 * such and target exactly the entry of a hookable function. */
#include "scene.h"

#include "functions/functions.h"

/* Add a function that begins with five nops and a direct branch to target; returns the rva of the
 * branch's field. */
static uint64_t add_caller(scene *s, const char *name, uint8_t opcode, uint64_t target)
{
    uint64_t at = scene_here(s), field;

    SCENE_CODE(s, "\x90\x90\x90\x90\x90");
    field = scene_here(s) + 1;
    scene_branch(s, opcode, target);
    SCENE_CODE(s, "\xC3");
    scene_symbol(s, name, at, scene_here(s) - at, FUNC);
    return field;
}

/* The function that the site at field targets; 0 if there is no such site. */
static uint64_t site_at(const scene *s, uint64_t field)
{
    size_t count;
    const hfn_branch *sites = hfn_verdicts_sites(s->verdicts, &count);

    for (size_t i = 0; i < count; i++) {
        if (sites[i].field == field) {
            return hfn_functions_at(s->functions, sites[i].target)->rva;
        }
    }
    return 0;
}

static size_t site_count(const scene *s)
{
    size_t count;

    hfn_verdicts_sites(s->verdicts, &count);
    return count;
}

static void direct_calls_and_jumps_are_sites(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", "\x55\x48\x89\xE5\x5D\xC3");
    uint64_t g = SCENE_FUNCTION(&s, "g", "\xF3\x0F\x1E\xFA\x55\x48\x89\xE5\x5D\xC3"); /* endbr64 */
    uint64_t by_call = add_caller(&s, "by_call", 0xE8, f);
    uint64_t by_jump = add_caller(&s, "by_jump", 0xE9, f);
    uint64_t padded = add_caller(&s, "padded", 0xE8, g);

    scene_analyze(&s);
    CHECK_EQ_U64(site_at(&s, by_call), f);
    CHECK_EQ_U64(site_at(&s, by_jump), f);
    CHECK_EQ_U64(site_at(&s, padded), g);
    CHECK_EQ_U64(site_count(&s), 3);
    scene_finish(&s);
}

static void a_branch_into_the_middle_of_a_function_is_not_a_site(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", "\x55\x48\x89\xE5\x5D\xC3\x90\x90\x90\x90\x90\x90");
    uint64_t inside = add_caller(&s, "inside", 0xE8, f + 8);

    scene_analyze(&s);
    CHECK_EQ_U64(site_at(&s, inside), 0);
    scene_finish(&s);
}

static void a_branch_that_a_patch_covers_is_not_a_site(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", "\x55\x48\x89\xE5\x5D\xC3"), first = scene_here(&s), moved;

    scene_symbol(&s, "first", first, 6, FUNC); /* retargeted itself */
    scene_branch(&s, 0xE8, f);
    SCENE_CODE(&s, "\xC3");
    moved = scene_here(&s) + 2 + 1;
    scene_symbol(&s, "moved", scene_here(&s), 7, FUNC); /* xor eax, eax; jmp f */
    SCENE_CODE(&s, "\x31\xC0");
    scene_branch(&s, 0xE9, f);
    scene_analyze(&s);
    CHECK_EQ_U64(site_at(&s, first + 1), 0);
    CHECK_EQ_U64(site_at(&s, moved), 0);
    scene_finish(&s);
}

static void a_function_whose_first_call_is_retargeted_has_no_sites(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", "\x55\x48\x89\xE5\x5D\xC3"), calls = scene_here(&s), field;

    scene_symbol(&s, "calls", calls, 6, FUNC); /* call f; ret: its stub does not return here */
    scene_branch(&s, 0xE8, f);
    SCENE_CODE(&s, "\xC3");
    field = add_caller(&s, "caller", 0xE8, calls);
    scene_analyze(&s);
    EXPECT_STRATEGY(&s, calls, HOTFN_STRATEGY_RETARGET);
    CHECK_EQ_U64(site_at(&s, field), 0);
    scene_finish(&s);
}

static void a_function_whose_first_jump_is_retargeted_has_sites(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", "\x55\x48\x89\xE5\x5D\xC3"), jumps = scene_here(&s), field;

    scene_symbol(&s, "jumps", jumps, 5, FUNC);
    scene_branch(&s, 0xE9, f);
    field = add_caller(&s, "caller", 0xE8, jumps);
    scene_analyze(&s);
    EXPECT_STRATEGY(&s, jumps, HOTFN_STRATEGY_RETARGET);
    CHECK_EQ_U64(site_at(&s, field), jumps);
    scene_finish(&s);
}

static void code_with_undecodable_bytes_has_no_sites(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", "\x55\x48\x89\xE5\x5D\xC3"), dirty = scene_here(&s), field;

    SCENE_CODE(&s, "\x90\x90\x90\x90\x90");
    field = scene_here(&s) + 1;
    scene_branch(&s, 0xE8, f);
    SCENE_CODE(&s, "\xC3\x06\x06\x06"); /* data after the code */
    scene_symbol(&s, "dirty", dirty, scene_here(&s) - dirty, FUNC);
    scene_analyze(&s);
    CHECK_EQ_U64(site_at(&s, field), 0);
    scene_finish(&s);
}

static void a_branch_that_a_jump_enters_is_not_a_site(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", "\x55\x48\x89\xE5\x5D\xC3");
    uint64_t field = add_caller(&s, "caller", 0xE8, f);

    add_caller(&s, "jumps", 0xE9, field + 2);
    scene_analyze(&s);
    CHECK_EQ_U64(site_at(&s, field), 0);
    scene_finish(&s);
}

static void code_between_functions_has_no_sites(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", "\x55\x48\x89\xE5\x5D\xC3"), field;

    SCENE_CODE(&s, "\x90\x90");
    field = scene_here(&s) + 1;
    scene_branch(&s, 0xE8, f);
    scene_analyze(&s);
    CHECK_EQ_U64(site_at(&s, field), 0);
    scene_finish(&s);
}

/* Data behind a jump can look like a call, also if the decoder resynchronises with the code. */
static void a_call_that_no_path_reaches_is_not_a_site(void)
{
    for (int reached = 0; reached < 2; reached++) {
        scene s = scene_begin();
        uint64_t f = SCENE_FUNCTION(&s, "f", "\x55\x48\x89\xE5\x5D\xC3"), field;
        uint64_t at = SCENE_CODE(&s, "\x90\x90\x90\x90\x90");

        if (reached) {
            SCENE_CODE(&s, "\x75\x02"); /* jne over the next jump */
        }
        SCENE_CODE(&s, "\xEB\x05"); /* jmp over the call */
        field = scene_here(&s) + 1;
        scene_branch(&s, 0xE8, f);
        SCENE_CODE(&s, "\xC3");
        scene_symbol(&s, "caller", at, scene_here(&s) - at, FUNC);
        scene_analyze(&s);
        CHECK_EQ_U64(site_at(&s, field), reached ? f : 0);
        scene_finish(&s);
    }
}

static const check_test tests[] = {
    CHECK_TEST(direct_calls_and_jumps_are_sites),
    CHECK_TEST(a_branch_into_the_middle_of_a_function_is_not_a_site),
    CHECK_TEST(a_branch_that_a_patch_covers_is_not_a_site),
    CHECK_TEST(a_function_whose_first_call_is_retargeted_has_no_sites),
    CHECK_TEST(a_function_whose_first_jump_is_retargeted_has_sites),
    CHECK_TEST(code_with_undecodable_bytes_has_no_sites),
    CHECK_TEST(a_branch_that_a_jump_enters_is_not_a_site),
    CHECK_TEST(code_between_functions_has_no_sites),
    CHECK_TEST(a_call_that_no_path_reaches_is_not_a_site),
};
CHECK_MAIN(tests)
