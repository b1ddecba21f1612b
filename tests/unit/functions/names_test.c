/* SPDX-License-Identifier: MIT */
/* The names of a function and their order. */
#include "functions/sample.h"

#include <limits.h>

/* Checks which of two names at one address comes first. */
static void check_order(const char *better, uint8_t better_binding, uint8_t better_type,
                        const char *worse, uint8_t worse_binding, uint8_t worse_type)
{
    sample s;

    sample_begin(&s);
    symbol(&s, worse, worse_binding, worse_type, TEXT, 4);
    symbol(&s, better, better_binding, better_type, TEXT, 4);
    sample_build(&s);
    CHECK_STR(hotfn_functions_get_name(s.functions, 0, 0), better);
    CHECK_STR(hotfn_functions_get_name(s.functions, 0, 1), worse);
    CHECK(hotfn_functions_get_name(s.functions, 0, 2) == NULL);
    CHECK(hotfn_functions_get_name(s.functions, 1, 0) == NULL);
    sample_finish(&s);
}

static void the_most_familiar_name_comes_first(void)
{
    check_order("typed_long", LOCAL, FUNC, "label", GLOBAL, NOTYPE);
    check_order("plain", GLOBAL, FUNC, "a@V1", GLOBAL, FUNC);
    check_order("global_long", GLOBAL, FUNC, "local", LOCAL, FUNC);
    check_order("malloc_long", WEAK, FUNC, "__malloc", GLOBAL, FUNC);
    check_order("_f", GLOBAL, FUNC, "__f", GLOBAL, FUNC);
    check_order("memcmp", GLOBAL, FUNC, "bcmp", WEAK, FUNC);
    check_order("_Zf", GLOBAL, FUNC, "_a", GLOBAL, FUNC);
    check_order("short", GLOBAL, FUNC, "a_long_one", GLOBAL, FUNC);
    check_order("_ZC1", GLOBAL, FUNC, "_ZC2", GLOBAL, FUNC);
}

static void a_thousand_aliases_are_all_kept(void)
{
    char name[32];
    sample s;

    sample_begin(&s);
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "alias%04d", (i * 7) % 1000);
        symbol(&s, name, GLOBAL, FUNC, TEXT, 4);
    }
    sample_build(&s);
    CHECK_EQ_U64(sample_count(&s), 1);
    for (uint32_t i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "alias%04u", i);
        CHECK_STR(hotfn_functions_get_name(s.functions, 0, i), name);
    }
    sample_finish(&s);
}

static void functions_are_named_after_a_long_file_name(void)
{
    char path[PATH_MAX];
    hotfn_functions *functions = NULL;
    hotfn_image *image = NULL;
    sample s;

    sample_begin(&s);
    fde(&s, TEXT, 8);
    sample_build(&s);
    memset(path, 'n', sizeof path);
    path[1] = '/';
    path[sizeof path - 1] = 0;
    CHECK_EQ_I64(hotfn_image_open_bytes(&image, s.b->file.data, s.b->file.size, path, NULL, NULL),
                 HOTFN_OK);
    CHECK_EQ_I64(hotfn_functions_build(&functions, image, NULL, NULL, NULL), HOTFN_OK);
    const char *name = hotfn_functions_get_name(functions, 0, 0);
    CHECK(name && strncmp(name, "nnnn", 4) == 0);
    CHECK_STR(strrchr(name, '+'), "+0x400");
    hotfn_functions_destroy(functions);
    hotfn_image_close(image);
    sample_finish(&s);
}

static const check_test tests[] = {
    CHECK_TEST(the_most_familiar_name_comes_first),
    CHECK_TEST(a_thousand_aliases_are_all_kept),
    CHECK_TEST(functions_are_named_after_a_long_file_name),
};
CHECK_MAIN(tests)
