/* SPDX-License-Identifier: MIT */
/* Functions without symbol and unwind data: which evidence is accepted. */
#include "base/counting_env.h"
#include "functions/functions.h"
#include "scene.h"

/* Code that calls `target`, with unwind data: known to run. */
static void add_caller(scene *s, uint64_t target)
{
    uint64_t from = scene_branch(s, 0xe8, target);

    SCENE_CODE(s, "\xc3\x90\x90");
    scene_fde_at(s, from, 6);
}

static void find(scene *s)
{
    scene_build(s);
    CHECK_EQ_I64(hotfn_verdicts_find_functions(s->functions, s->image, 1, NULL, NULL), HOTFN_OK);
}

/* The flags of the function at rva; 0 if there is none. */
static uint32_t get_flags(const scene *s, uint64_t rva)
{
    uint32_t i = hotfn_functions_find(s->functions, rva);
    const hfn_function *f = i == UINT32_MAX ? NULL : hfn_functions_at(s->functions, i);

    return f && f->rva == rva ? f->flags : 0;
}

static void called_code_is_a_function_that_ends_behind_its_last_path(void)
{
    scene s = scene_begin();
    hotfn_function f = HOTFN_FUNCTION_INIT;

    add_caller(&s, TEXT + 8);
    /* push rbx; test edi, edi; je +2; pop rbx; ret; xor eax, eax; pop rbx; ret */
    uint64_t called = SCENE_CODE(&s, "\x53\x85\xff\x74\x02\x5b\xc3\x31\xc0\x5b\xc3");
    SCENE_CODE(&s, "\x31\xc0\xc3");
    find(&s);
    CHECK_EQ_U64(called, TEXT + 8);
    CHECK_EQ_U64(get_flags(&s, called), HOTFN_FUNCTION_FOUND_CALL);
    CHECK_EQ_U64(hotfn_functions_get_count(s.functions), 2);
    hotfn_functions_get(s.functions, 1, &f);
    CHECK_EQ_U64(f.byte_count, 11);
    CHECK_STR(f.name, "scene+0x508");
    scene_finish(&s);
}

static void calls_of_found_functions_count_and_those_of_other_code_do_not(void)
{
    scene s = scene_begin();

    add_caller(&s, TEXT + 8);
    scene_branch(&s, 0xe9, TEXT + 16); /* a tail jump is no evidence */
    SCENE_CODE(&s, "\x90\x90\x90");
    scene_branch(&s, 0xe8, TEXT + 32); /* nothing known calls this code */
    SCENE_CODE(&s, "\xc3\x90\x90");
    scene_branch(&s, 0xe8, TEXT + 16);
    SCENE_CODE(&s, "\xc3\x90\x90");
    SCENE_CODE(&s, "\x31\xc0\xc3");
    find(&s);
    CHECK_EQ_U64(get_flags(&s, TEXT + 8), HOTFN_FUNCTION_FOUND_CALL);
    CHECK_EQ_U64(get_flags(&s, TEXT + 16), 0);
    CHECK_EQ_U64(get_flags(&s, TEXT + 32), 0);
    scene_finish(&s);
}

static void a_chain_of_calls_is_followed(void)
{
    scene s = scene_begin();

    add_caller(&s, TEXT + 24);
    SCENE_CODE(&s, "\x31\xc0\xc3\x90\x90\x90\x90\x90"); /* TEXT + 8 */
    scene_branch(&s, 0xe8, TEXT + 8);                   /* TEXT + 16 */
    SCENE_CODE(&s, "\xc3\x90\x90");
    scene_branch(&s, 0xe8, TEXT + 16); /* TEXT + 24 */
    SCENE_CODE(&s, "\xc3\x90\x90");
    find(&s);
    for (uint64_t rva = TEXT + 8; rva <= TEXT + 24; rva += 8) {
        CHECK_EQ_U64(get_flags(&s, rva), HOTFN_FUNCTION_FOUND_CALL);
    }
    scene_finish(&s);
}

static void places_inside_of_code_are_no_entries(void)
{
    scene s = scene_begin();

    uint64_t from = scene_branch(&s, 0xe8, TEXT + 5); /* reads its own address */
    SCENE_CODE(&s, "\x58\xc3\x90");
    scene_fde_at(&s, from, 5);
    add_caller(&s, TEXT + 26); /* the middle of an instruction */
    add_caller(&s, TEXT + 31); /* the code before continues there */
    SCENE_CODE(&s, "\xb8\x05\x00\x00\x00\x31\xc0\x31\xdb\xc3\x90\x90"); /* TEXT + 24 */
    find(&s);
    CHECK_EQ_U64(hotfn_functions_get_count(s.functions), 3);
    scene_finish(&s);
}

static void code_with_bytes_that_are_no_instructions_is_no_function(void)
{
    scene s = scene_begin();

    add_caller(&s, TEXT + 8);
    SCENE_CODE(&s, "\x31\xc0\x06\x31\xc0\xc3");
    find(&s);
    CHECK_EQ_U64(get_flags(&s, TEXT + 8), 0);
    scene_finish(&s);
}

static void linker_stubs_are_no_functions(void)
{
    scene s = scene_begin();

    add_caller(&s, TEXT + 8);
    SCENE_CODE(&s, "\xff\x25\x00\x00\x00\x00\x66\x90"); /* jmp [rip + 0] */
    SCENE_CODE(&s, "\x31\xc0\xc3");
    find(&s);
    CHECK_EQ_U64(get_flags(&s, TEXT + 8), 0);
    scene_finish(&s);
}

static void pointers_lead_to_functions_only_behind_a_trap(void)
{
    scene s = scene_begin();

    add_caller(&s, TEXT);
    SCENE_CODE(&s, "\x31\xc0\xc3\xcc\xcc\xcc\xcc\xcc"); /* TEXT + 8 */
    SCENE_CODE(&s, "\x31\xc0\xc3\x90\x90\x90\x90\x90"); /* TEXT + 16 */
    SCENE_CODE(&s, "\x90\x90\x90\x90\x90\x90\x90\x90");
    SCENE_CODE(&s, "\x31\xc0\xc3\xcc\xcc"); /* TEXT + 32: may be a label */
    SCENE_CODE(&s, "\x31\xc0\xc3");         /* TEXT + 37: not aligned */
    for (uint64_t i = 0; i < 3; i++) {
        scene_pointer(&s, RODATA + 8 * i, (const uint64_t[]){ TEXT + 16, TEXT + 32, TEXT + 37 }[i]);
    }
    find(&s);
    CHECK_EQ_U64(get_flags(&s, TEXT + 16), HOTFN_FUNCTION_FOUND_POINTER);
    CHECK_EQ_U64(hotfn_functions_get_count(s.functions), 2);
    scene_finish(&s);
}

static void complete_tables_stay_as_they_are(void)
{
    scene s = scene_begin();

    scene_filler(&s, 128);
    find(&s);
    CHECK_EQ_U64(hotfn_functions_get_count(s.functions), 1);
    CHECK_EQ_I64(hotfn_verdicts_find_functions(NULL, s.image, 1, NULL, NULL), HOTFN_E_OPTION);
    CHECK_EQ_I64(hotfn_verdicts_find_functions(s.functions, NULL, 1, NULL, NULL), HOTFN_E_OPTION);
    scene_finish(&s);
}

static void lack_of_memory_is_reported(void)
{
    scene s = scene_begin();
    hotfn_status status = HOTFN_E_NO_MEMORY;
    size_t failures = 0;

    add_caller(&s, TEXT + 8);
    SCENE_CODE(&s, "\x31\xc0\xc3\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90");
    scene_build(&s);
    while (status == HOTFN_E_NO_MEMORY) {
        counting c;
        hotfn_env env = counting_env(&c);
        c.fail_at = failures + 1;
        status = hotfn_verdicts_find_functions(s.functions, s.image, 1, &env, NULL);
        CHECK_EQ_U64(c.live_bytes, 0);
        failures += status == HOTFN_E_NO_MEMORY;
    }
    CHECK_EQ_I64(status, HOTFN_OK);
    CHECK(failures >= 3); /* marks, starts, and at least one list */
    CHECK_EQ_U64(get_flags(&s, TEXT + 8), HOTFN_FUNCTION_FOUND_CALL);
    scene_finish(&s);
}

static const check_test tests[] = {
    CHECK_TEST(called_code_is_a_function_that_ends_behind_its_last_path),
    CHECK_TEST(calls_of_found_functions_count_and_those_of_other_code_do_not),
    CHECK_TEST(a_chain_of_calls_is_followed),
    CHECK_TEST(places_inside_of_code_are_no_entries),
    CHECK_TEST(code_with_bytes_that_are_no_instructions_is_no_function),
    CHECK_TEST(linker_stubs_are_no_functions),
    CHECK_TEST(pointers_lead_to_functions_only_behind_a_trap),
    CHECK_TEST(complete_tables_stay_as_they_are),
    CHECK_TEST(lack_of_memory_is_reported),
};
CHECK_MAIN(tests)
