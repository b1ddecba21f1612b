/* SPDX-License-Identifier: MIT */
/* Globs: what they match, and which ones are refused. */
#include "functions/glob.h"

#include <hotfn/lowlevel/functions.h>

#include "check.h"

typedef struct glob_case {
    const char *glob, *text;
    int32_t answer;
} glob_case;

static void check_cases(const glob_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!CHECK_EQ_I64(hotfn_glob_match(cases[i].glob, cases[i].text), cases[i].answer)) {
            printf("#   glob \"%s\", text \"%s\"\n", cases[i].glob, cases[i].text);
        }
    }
}

#define CHECK_CASES(cases) check_cases(cases, sizeof(cases) / sizeof((cases)[0]))

static void stars_and_question_marks_match(void)
{
    static const glob_case cases[] = {
        { "", "", 1 },          { "", "a", 0 },        { "*", "", 1 },
        { "*", "abc", 1 },      { "a*", "abc", 1 },    { "a*", "bac", 0 },
        { "*c", "abc", 1 },     { "*b*", "abc", 1 },   { "a*c*e", "abcde", 1 },
        { "a*c*e", "abcd", 0 }, { "**a**", "a", 1 },   { "?", "a", 1 },
        { "?", "", 0 },         { "??", "a", 0 },      { "a?c", "abc", 1 },
        { "*ab", "aab", 1 },    { "*aab", "aaab", 1 }, { "abc", "abc", 1 },
        { "abc", "abcd", 0 },   { "*/x", "a/b/x", 1 }, { "a*b?d", "aXbbcd", 1 },
    };

    CHECK_CASES(cases);
}

static void brackets_match_ranges(void)
{
    static const glob_case cases[] = {
        { "[a-c]x", "bx", 1 },
        { "[a-c]x", "dx", 0 },
        { "[!a-c]x", "dx", 1 },
        { "[^a-c]x", "bx", 0 },
        { "[]]", "]", 1 },
        { "[!]]", "]", 0 },
        { "[a-]", "-", 1 },
        { "[a\\]b]", "]", 1 },
        { "[\\a-\\c]", "b", 1 },
        { "[a]", "", 0 },
        { "[z-a]", "m", 0 },
        { "*[0-9]", "f12", 1 },
        { "[\xc0-\xff]", "\xe4", 1 },
    };

    CHECK_CASES(cases);
}

static void a_backslash_makes_a_character_literal(void)
{
    static const glob_case cases[] = {
        { "\\*", "*", 1 },     { "\\*", "a", 0 },   { "a\\?", "a?", 1 },
        { "\\[a]", "[a]", 1 }, { "\\\\", "\\", 1 },
    };

    CHECK_CASES(cases);
}

static void broken_globs_are_reported_for_any_text(void)
{
    static const glob_case cases[] = {
        { "[", "", -1 },    { "a[b", "x", -1 },  { "[]", "]", -1 },  { "[!]", "!", -1 },
        { "a\\", "a", -1 }, { "[a\\", "a", -1 }, { "[a-", "a", -1 }, { "*[", "abc", -1 },
    };

    CHECK_CASES(cases);
}

static void many_stars_on_a_long_name_are_matched_fast(void)
{
    char text[20001];

    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = 0;
    CHECK_EQ_I64(hotfn_glob_match("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text), 0);
}

static void a_method_matches_with_and_without_its_place(void)
{
    static const struct {
        const char *glob, *name;
        bool answer;
    } rows[] = {
        { "f", "f (a.py:1)", true },
        { "f (a.py:1)", "f (a.py:1)", true },
        { "*a.py*", "f (a.py:1)", true },
        { "f*", "f", true },
        { "f", "g (f)", false },
        { "A.f", "A.f (my files (x)/a.py:1)", true },
        { "-\\[A b:\\]", "-[A b:]", true },
        { "f (a.py", "f (a.py:1)", false },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!CHECK(hfn_glob_match_method(rows[i].glob, rows[i].name) == rows[i].answer)) {
            printf("#   glob \"%s\", method \"%s\"\n", rows[i].glob, rows[i].name);
        }
    }
}

static const check_test tests[] = {
    CHECK_TEST(a_method_matches_with_and_without_its_place),
    CHECK_TEST(stars_and_question_marks_match),
    CHECK_TEST(brackets_match_ranges),
    CHECK_TEST(a_backslash_makes_a_character_literal),
    CHECK_TEST(broken_globs_are_reported_for_any_text),
    CHECK_TEST(many_stars_on_a_long_name_are_matched_fast),
};
CHECK_MAIN(tests)
