/* SPDX-License-Identifier: MIT */
/* Functions that a fault handler knows by the addresses of their code are not moved. */
#include <hotfn/lowlevel/verdicts.h>

#include "scene.h"

#define LOAD "\x48\x8B\x07\xC3\x98\x98\x98\x98" /* mov rax, [rdi]; ret; cwde ... */
#define SAFE                                                                                       \
    "\x48\x89\xF8\x31\xC9\x8B\x00\xC3" /* mov rax, rdi; xor ecx, ecx; mov eax, [rax]; ret */

/* lea rax, [rip + target] */
static void add_lea(scene *s, uint64_t target)
{
    SCENE_CODE(s, "\x48\x8D\x05");
    put(s->text, target - (scene_here(s) + 4), 4);
}

/* A function that computes an address; then the given code and ret. */
static void add_user(scene *s, uint64_t target, const char *code, size_t size)
{
    scene_symbol(s, "user", scene_here(s), 7 + size + 1, FUNC);
    add_lea(s, target);
    scene_code(s, code, size);
    SCENE_CODE(s, "\xC3");
}
#define ADD_USER(s, target, code) add_user(s, target, code, sizeof(code) - 1)

#define CMP_BELOW "\x48\x39\xC7\x72\x00" /* cmp rdi, rax; jb */
#define CMP_EQUAL "\x48\x39\xC7\x74\x00" /* cmp rdi, rax; je */

static void check_known(scene *s, uint64_t load, uint64_t other)
{
    scene_analyze(s);
    EXPECT_REFUSED(s, load, HOTFN_REASON_FAULT_KNOWN, 0);
    if (other) {
        CHECK_EQ_U64(scene_verdict(s, other).pub.verdict, HOTFN_VERDICT_HOOKABLE);
    }
    scene_finish(s);
}

static void a_function_that_no_address_is_about_is_moved(void)
{
    scene s = scene_begin();
    uint64_t load = SCENE_FUNCTION(&s, "load", LOAD);

    scene_pointer(&s, RODATA, load);
    ADD_USER(&s, load, "\xFF\xD0");     /* call rax */
    ADD_USER(&s, load, CMP_EQUAL);      /* as a guard of a virtual call */
    ADD_USER(&s, load, "\x48\x89\x07"); /* mov [rdi], rax */
    scene_analyze(&s);
    CHECK_EQ_U64(scene_verdict(&s, load).pub.verdict, HOTFN_VERDICT_HOOKABLE);
    scene_finish(&s);
}

static void a_compared_entry_is_known(void)
{
    scene s = scene_begin();
    uint64_t load = SCENE_FUNCTION(&s, "load", LOAD), safe = SCENE_FUNCTION(&s, "safe", SAFE);

    ADD_USER(&s, load, CMP_BELOW);
    ADD_USER(&s, safe, CMP_BELOW);
    check_known(&s, load, safe); /* no moved instruction of safe may fault */
}

static void all_functions_between_two_compared_ones_are_known(void)
{
    scene s = scene_begin();
    uint64_t before = SCENE_FUNCTION(&s, "before", LOAD);
    uint64_t begin = SCENE_FUNCTION(&s, "begin", SAFE), load = SCENE_FUNCTION(&s, "load", LOAD);
    uint64_t load_2 = SCENE_FUNCTION(&s, "load_2", LOAD), end = SCENE_FUNCTION(&s, "end", SAFE);

    scene_symbol(&s, "user", scene_here(&s), 25, FUNC);
    add_lea(&s, begin);
    SCENE_CODE(&s, CMP_BELOW);
    add_lea(&s, end);
    SCENE_CODE(&s, CMP_BELOW "\xC3");
    scene_analyze(&s);
    EXPECT_REFUSED(&s, load, HOTFN_REASON_FAULT_KNOWN, 0);
    EXPECT_REFUSED(&s, load_2, HOTFN_REASON_FAULT_KNOWN, 0);
    CHECK_EQ_U64(scene_verdict(&s, before).pub.verdict, HOTFN_VERDICT_HOOKABLE);
    scene_finish(&s);
}

/* Two words have the begin and the end of all code. */
static void the_range_of_all_code_of_a_go_program_is_not_known(void)
{
    for (int is_go = 0; is_go < 2; is_go++) {
        scene s = scene_begin();
        uint64_t first = SCENE_FUNCTION(&s, "first", LOAD);
        uint64_t middle = SCENE_FUNCTION(&s, "middle", LOAD);
        uint64_t last = SCENE_FUNCTION(&s, "last", LOAD);

        scene_pointer(&s, RODATA, first);
        scene_pointer(&s, RODATA + 8, last + 8);
        s.extra_name = is_go ? ".gopclntab" : NULL;
        scene_analyze(&s);
        CHECK_EQ_U64(scene_verdict(&s, middle).pub.verdict,
                     is_go ? HOTFN_VERDICT_HOOKABLE : HOTFN_VERDICT_REFUSED);
        scene_finish(&s);
    }
}

static void an_address_inside_or_behind_makes_a_function_known(void)
{
    for (uint64_t offset = 6; offset <= 8; offset += 2) {
        scene s = scene_begin();
        uint64_t load = SCENE_FUNCTION(&s, "load", LOAD);
        scene_nops(&s, 8);
        uint64_t other = SCENE_FUNCTION(&s, "other", LOAD);
        ADD_USER(&s, load + offset, "\xFF\xD0");
        check_known(&s, load, other);
    }
}

static void a_word_of_data_beside_a_label_makes_a_function_known(void)
{
    scene s = scene_begin();
    uint64_t load = SCENE_FUNCTION(&s, "load", LOAD), fix = SCENE_FUNCTION(&s, "fix", SAFE);

    scene_pointer(&s, RODATA, load);
    scene_pointer(&s, RODATA + 8, fix + 3);
    check_known(&s, load, fix);
}

/* The last word of an array that the loader calls, and the first one of a table of labels. */
static void words_of_two_sections_are_no_row(void)
{
    for (int is_split = 0; is_split < 2; is_split++) {
        scene s = scene_begin();
        uint64_t load = SCENE_FUNCTION(&s, "load", LOAD),
                 middle = SCENE_FUNCTION(&s, "middle", LOAD);
        uint64_t labels = SCENE_FUNCTION(&s, "labels", SAFE);

        scene_nops(&s, 64);
        s.extra_name = ".first";
        s.is_extra_split = is_split;
        s.extra_rva = (scene_here(&s) + 15) & ~15ull;
        scene_pointer(&s, s.extra_rva + 24, load);
        scene_pointer(&s, s.extra_rva + 32, labels + 3);
        scene_analyze(&s);
        const uint32_t expected = is_split ? HOTFN_REASON_NONE : HOTFN_REASON_FAULT_KNOWN;
        CHECK_EQ_U64(scene_verdict(&s, load).pub.reason, expected);
        CHECK_EQ_U64(scene_verdict(&s, middle).pub.reason, expected);
        scene_finish(&s);
    }
}

static void two_neighbours_alone_in_data_are_a_range(void)
{
    scene s = scene_begin();
    uint64_t load = SCENE_FUNCTION(&s, "load", LOAD), next = SCENE_FUNCTION(&s, "next", SAFE);

    scene_pointer(&s, RODATA, load);
    scene_pointer(&s, RODATA + 8, next);
    check_known(&s, load, next);
}

static void neighbours_among_other_pointers_are_none(void)
{
    scene s = scene_begin();
    uint64_t load = SCENE_FUNCTION(&s, "load", LOAD), next = SCENE_FUNCTION(&s, "next", SAFE);

    scene_pointer(&s, RODATA, load);
    scene_pointer(&s, RODATA + 8, next);
    scene_pointer(&s, RODATA + 16, load);
    scene_analyze(&s);
    CHECK_EQ_U64(scene_verdict(&s, load).pub.verdict, HOTFN_VERDICT_HOOKABLE);
    scene_finish(&s);
}

static void a_handler_knows_what_it_compares_for_equality(void)
{
    scene s = scene_begin();
    uint64_t load = SCENE_FUNCTION(&s, "load", LOAD);

    scene_symbol(&s, "handler", scene_here(&s), 20, FUNC);
    SCENE_CODE(&s, "\x48\x8B\xBA\xA8\x00\x00\x00"); /* mov rdi, [rdx + 168] */
    add_lea(&s, load);
    SCENE_CODE(&s, CMP_EQUAL "\xC3");
    check_known(&s, load, 0);
}

static void words_relative_to_their_own_place_are_read(void)
{
    scene s = scene_begin();
    uint64_t load = SCENE_FUNCTION(&s, "load", LOAD), other = SCENE_FUNCTION(&s, "other", LOAD);

    scene_nops(&s, 64);
    s.extra_name = "__ex_table";
    s.extra_rva = (scene_here(&s) + 15) & ~15ull;
    for (uint64_t distance = load - s.extra_rva, i = 0; i < 4; i++) {
        s.extra[i] = (uint8_t)(distance >> 8 * i);
    }
    check_known(&s, load, other);
}

static const check_test tests[] = {
    CHECK_TEST(a_function_that_no_address_is_about_is_moved),
    CHECK_TEST(a_compared_entry_is_known),
    CHECK_TEST(all_functions_between_two_compared_ones_are_known),
    CHECK_TEST(the_range_of_all_code_of_a_go_program_is_not_known),
    CHECK_TEST(an_address_inside_or_behind_makes_a_function_known),
    CHECK_TEST(a_word_of_data_beside_a_label_makes_a_function_known),
    CHECK_TEST(words_of_two_sections_are_no_row),
    CHECK_TEST(two_neighbours_alone_in_data_are_a_range),
    CHECK_TEST(neighbours_among_other_pointers_are_none),
    CHECK_TEST(a_handler_knows_what_it_compares_for_equality),
    CHECK_TEST(words_relative_to_their_own_place_are_read),
};
CHECK_MAIN(tests)
