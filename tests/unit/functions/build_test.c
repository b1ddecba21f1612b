/* SPDX-License-Identifier: MIT */
/* Lookups of functions, and the functions of real files. */
#include "base/counting_env.h"
#include "functions/functions.h"
#include "functions/sample.h"

static void a_function_is_found_by_any_of_its_bytes(void)
{
    sample s;

    sample_begin(&s);
    symbol(&s, "a", GLOBAL, FUNC, TEXT, 8);
    symbol(&s, "b", GLOBAL, FUNC, TEXT + 16, 8);
    sample_build(&s);
    CHECK_EQ_U64(hotfn_functions_find(s.functions, TEXT - 1), UINT32_MAX);
    CHECK_EQ_U64(hotfn_functions_find(s.functions, TEXT), 0);
    CHECK_EQ_U64(hotfn_functions_find(s.functions, TEXT + 7), 0);
    CHECK_EQ_U64(hotfn_functions_find(s.functions, TEXT + 8), UINT32_MAX);
    CHECK_EQ_U64(hotfn_functions_find(s.functions, TEXT + 16), 1);
    CHECK_EQ_U64(hotfn_functions_find(s.functions, UINT64_MAX), UINT32_MAX);
    CHECK(hfn_functions_at(s.functions, 1)->rva == TEXT + 16);
    CHECK(hfn_functions_at(s.functions, 2) == NULL);
    sample_finish(&s);
}

static void gaps_of_code_are_not_known(void)
{
    uint64_t code, known, with_gap;
    sample s;

    sample_begin(&s);
    symbol(&s, "a", GLOBAL, FUNC, TEXT, 16);
    symbol(&s, "aligned", GLOBAL, FUNC, TEXT + 31, 16); /* 15 bytes of padding between them */
    symbol(&s, "b", GLOBAL, FUNC, TEXT + 80, 16);       /* 33 bytes of an unknown function  */
    sample_build(&s);
    hotfn_functions_get_coverage(s.functions, &code, &known);
    CHECK_EQ_U64(known, 48);
    with_gap = code;
    sample_finish(&s);
    sample_begin(&s);
    symbol(&s, "a", GLOBAL, FUNC, TEXT, 96);
    symbol(&s, "guessed", GLOBAL, FUNC, TEXT + 96,
           0); /* up to the end, so its size is no evidence */
    sample_build(&s);
    hotfn_functions_get_coverage(s.functions, &code, &known);
    CHECK_EQ_U64(known, 96);
    CHECK_EQ_U64(code, with_gap + 15);
    sample_finish(&s);
    hotfn_functions_get_coverage(NULL, &code, &known);
    CHECK(code == 0 && known == 0);
    code = known = 1;
    hotfn_functions_get_coverage(NULL, &code, NULL);
    hotfn_functions_get_coverage(NULL, NULL, &known);
    CHECK(code == 0 && known == 0);
}

static void structs_are_filled_up_to_the_size_given(void)
{
    hotfn_function f = HOTFN_FUNCTION_INIT;
    sample s;

    sample_begin(&s);
    symbol(&s, "a", GLOBAL, FUNC, TEXT, 8);
    sample_build(&s);
    f.section = 77;
    f.size = offsetof(hotfn_function, section);
    CHECK_EQ_I64(hotfn_functions_get(s.functions, 0, &f), HOTFN_OK);
    CHECK_STR(f.name, "a");
    CHECK_EQ_U64(f.section, 77);
    CHECK_EQ_I64(hotfn_functions_get(s.functions, 1, &f), HOTFN_E_NOT_FOUND);
    f.size = 0;
    CHECK_EQ_I64(hotfn_functions_get(s.functions, 0, &f), HOTFN_E_OPTION);
    sample_finish(&s);
}

static void an_image_without_functions_is_fine(void)
{
    hotfn_functions *functions = NULL;
    sample s;

    sample_begin(&s);
    sample_build(&s);
    CHECK_EQ_U64(sample_count(&s), 0);
    CHECK_EQ_U64(hotfn_functions_find(s.functions, TEXT), UINT32_MAX);
    CHECK_EQ_I64(hotfn_functions_build(&functions, s.image, NULL, NULL, NULL), HOTFN_OK);
    hotfn_functions_destroy(functions);
    hotfn_functions_destroy(NULL);
    sample_finish(&s);
}

/* The functions of a file are sorted, not empty and do not overlap, and all memory is freed: for
 * this program and its libc. */
static void check_file(const char *path)
{
    hotfn_image *image = NULL;
    hotfn_symbols *symbols = NULL;
    hotfn_functions *functions = NULL;
    uint64_t end = 0;
    counting c;
    hotfn_env env = counting_env(&c);

    if (!CHECK_EQ_I64(hotfn_image_open(&image, path, &env, NULL), HOTFN_OK)) {
        return;
    }
    CHECK_EQ_I64(hotfn_symbols_load(&symbols, image, NULL, &env, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_functions_build(&functions, image, symbols, &env, NULL), HOTFN_OK);
    CHECK(hotfn_functions_get_count(functions) > 20);
    for (uint32_t i = 0; i < hotfn_functions_get_count(functions); i++) {
        const hfn_function *f = hfn_functions_at(functions, i);
        if (!CHECK(f->rva >= end && f->byte_count > 0 && f->name_count > 0)) {
            break;
        }
        end = f->rva + f->byte_count;
    }
    hotfn_functions_destroy(functions);
    hotfn_symbols_destroy(symbols);
    hotfn_image_close(image);
    CHECK_EQ_U64(c.live_bytes, 0);
    CHECK_EQ_I64(c.size_mismatches, 0);
}

static void real_files_give_ordered_functions(void)
{
    check_file("/proc/self/exe");
    check_file("/bin/sh");
}

static const check_test tests[] = {
    CHECK_TEST(gaps_of_code_are_not_known),
    CHECK_TEST(a_function_is_found_by_any_of_its_bytes),
    CHECK_TEST(structs_are_filled_up_to_the_size_given),
    CHECK_TEST(an_image_without_functions_is_fine),
    CHECK_TEST(real_files_give_ordered_functions),
};
CHECK_MAIN(tests)
