/* SPDX-License-Identifier: MIT */
/* hotfn_demangle in a C program, which has no C++ library: names are copied unchanged. */
#include "check.h"

#include <hotfn/env.h>

static void names_that_are_not_demangled_are_copied(void)
{
    char out[16] = "";

    CHECK_EQ_U64(hotfn_demangle("main", out, sizeof out), 4);
    CHECK_STR(out, "main");
    CHECK_EQ_U64(hotfn_demangle("", out, sizeof out), 0);
}

static void a_name_that_does_not_fit_leaves_the_output_untouched(void)
{
    char out[5] = "keep";

    CHECK_EQ_U64(hotfn_demangle("main_", out, 5), 0);
    CHECK_STR(out, "keep");
    CHECK_EQ_U64(hotfn_demangle("main", out, 5), 4);
    CHECK_EQ_U64(hotfn_demangle("main", out, 0), 0);
    CHECK_EQ_U64(hotfn_demangle(NULL, out, 5), 0);
    CHECK_EQ_U64(hotfn_demangle("main", NULL, 5), 0);
}

static const check_test tests[] = {
    CHECK_TEST(names_that_are_not_demangled_are_copied),
    CHECK_TEST(a_name_that_does_not_fit_leaves_the_output_untouched),
};
CHECK_MAIN(tests)
