/* SPDX-License-Identifier: MIT */
/* Selections: globs match any name of a function, demangled names too, and sizes are bounded. */
#include "functions/sample.h"

static int demangle_calls;

/* Only "_ZN1a1fEi" is demangled. */
static size_t demangle(void *user, const char *mangled, char *out, size_t out_bytes)
{
    const char *text = "a::f(int, b (*)()) const";

    (void)user;
    demangle_calls++;
    if (strcmp(mangled, "_ZN1a1fEi") != 0 || strlen(text) >= out_bytes) {
        return 0;
    }
    strcpy(out, text);
    return strlen(text);
}

/* Four functions: phys_step (8 bytes), phys_init (16), _ZN1a1fEi (24) also called alias,
 * malloc@V1 (32). */
static void begin(sample *s)
{
    demangle_calls = 0;
    sample_begin(s);
    s->env.demangle_fn = demangle;
    symbol(s, "phys_step", GLOBAL, FUNC, TEXT, 8);
    symbol(s, "phys_init", GLOBAL, FUNC, TEXT + 16, 16);
    symbol(s, "_ZN1a1fEi", GLOBAL, FUNC, TEXT + 32, 24);
    symbol(s, "alias", LOCAL, FUNC, TEXT + 32, 24);
    symbol(s, "malloc@V1", GLOBAL, FUNC, TEXT + 64, 32);
    sample_build(s);
}

static hotfn_selection including(const char *const *globs, uint32_t count)
{
    hotfn_selection wanted = HOTFN_SELECTION_INIT;

    wanted.include = globs;
    wanted.include_count = count;
    return wanted;
}

/* The selected functions as a bit mask: function 0 is the lowest bit. */
static uint32_t selected(const sample *s, const hotfn_selection *wanted, const char **unmatched)
{
    uint8_t flags[4] = { 9, 9, 9, 9 };
    uint32_t bits = 0;

    CHECK_EQ_I64(hotfn_functions_select(s->functions, wanted, flags, unmatched, NULL), HOTFN_OK);
    for (uint32_t i = 0; i < 4; i++) {
        bits |= (uint32_t)flags[i] << i;
    }
    return bits;
}

static uint32_t selected_by(const sample *s, const char *glob)
{
    hotfn_selection wanted = including(&glob, 1);

    return selected(s, &wanted, NULL);
}

static void a_selection_without_globs_selects_all(void)
{
    const char *unmatched = "x";
    sample s;

    begin(&s);
    CHECK_EQ_U64(selected(&s, NULL, &unmatched), 15);
    CHECK(unmatched == NULL);
    CHECK_EQ_I64(demangle_calls, 0);
    sample_finish(&s);
}

static void any_name_of_a_function_may_match(void)
{
    sample s;

    begin(&s);
    CHECK_EQ_U64(selected_by(&s, "phys*"), 3);
    CHECK_EQ_U64(selected_by(&s, "alias"), 4);
    CHECK_EQ_U64(selected_by(&s, "nothing"), 0);
    sample_finish(&s);
}

static void a_glob_may_omit_the_symbol_version(void)
{
    sample s;

    begin(&s);
    CHECK_EQ_U64(selected_by(&s, "malloc"), 8);
    CHECK_EQ_U64(selected_by(&s, "malloc@V1"), 8);
    CHECK_EQ_U64(selected_by(&s, "malloc@V2"), 0);
    sample_finish(&s);
}

static void demangled_names_match_with_and_without_parameters(void)
{
    sample s;

    begin(&s);
    CHECK_EQ_U64(selected_by(&s, "a::f"), 4);
    CHECK_EQ_U64(selected_by(&s, "a::*"), 4);
    CHECK_EQ_U64(selected_by(&s, "*int*const"), 4);
    CHECK_EQ_U64(selected_by(&s, "a::f(int"), 0);
    sample_finish(&s);
}

static void a_name_that_matches_is_not_demangled(void)
{
    sample s;

    begin(&s);
    CHECK_EQ_U64(selected_by(&s, "*"), 15);
    CHECK_EQ_I64(demangle_calls, 0);
    sample_finish(&s);
}

static void exclude_globs_and_sizes_outweigh_include_globs(void)
{
    const char *all = "*", *out[] = { "*init", "a::f" };
    hotfn_selection wanted = including(&all, 1);
    sample s;

    begin(&s);
    wanted.exclude = out;
    wanted.exclude_count = 2;
    CHECK_EQ_U64(selected(&s, &wanted, NULL), 9);
    wanted.exclude_count = 0;
    wanted.min_bytes = 16;
    CHECK_EQ_U64(selected(&s, &wanted, NULL), 14);
    wanted.max_bytes = 24;
    CHECK_EQ_U64(selected(&s, &wanted, NULL), 6);
    sample_finish(&s);
}

static void the_first_glob_without_a_match_is_reported(void)
{
    const char *globs[] = { "phys*", "typo*", "other*" }, *unmatched = NULL;
    hotfn_selection wanted = including(globs, 3);
    sample s;

    begin(&s);
    CHECK_EQ_U64(selected(&s, &wanted, &unmatched), 3);
    CHECK(unmatched == globs[1]);
    sample_finish(&s);
}

static void broken_globs_and_unknown_settings_are_refused(void)
{
    const char *globs[] = { "good", "[bad" };
    hotfn_selection wanted = including(globs, 2);
    hotfn_error err = HOTFN_ERROR_INIT;
    uint8_t flags[4] = { 9, 9, 9, 9 };
    sample s;

    begin(&s);
    CHECK_EQ_I64(hotfn_functions_select(s.functions, &wanted, flags, NULL, &err), HOTFN_E_OPTION);
    CHECK(strstr(err.text, "[bad") != NULL);
    CHECK_EQ_U64(flags[0], 9);
    wanted.include_count = 1;
    wanted.flags = 1;
    CHECK_EQ_I64(hotfn_functions_select(s.functions, &wanted, flags, NULL, &err), HOTFN_E_OPTION);
    wanted.flags = 0;
    wanted.include = NULL;
    CHECK_EQ_I64(hotfn_functions_select(s.functions, &wanted, flags, NULL, &err), HOTFN_E_OPTION);
    sample_finish(&s);
}

static const check_test tests[] = {
    CHECK_TEST(a_selection_without_globs_selects_all),
    CHECK_TEST(any_name_of_a_function_may_match),
    CHECK_TEST(a_glob_may_omit_the_symbol_version),
    CHECK_TEST(demangled_names_match_with_and_without_parameters),
    CHECK_TEST(a_name_that_matches_is_not_demangled),
    CHECK_TEST(exclude_globs_and_sizes_outweigh_include_globs),
    CHECK_TEST(the_first_glob_without_a_match_is_reported),
    CHECK_TEST(broken_globs_and_unknown_settings_are_refused),
};
CHECK_MAIN(tests)
