/* SPDX-License-Identifier: MIT */
/* Which forms of a name a glob may mean. */
#include "check.h"

#include "functions/name_forms.h"

static void a_name_is_meant_with_and_without_its_version(void)
{
    CHECK(hfn_name_matches("memcpy", "memcpy@GLIBC_2.14"));
    CHECK(hfn_name_matches("memcpy@GLIBC_2.14", "memcpy@GLIBC_2.14"));
    CHECK(!hfn_name_matches("memcpy@GLIBC_2.2", "memcpy@GLIBC_2.14"));
    CHECK(!hfn_name_matches("memcp", "memcpy@GLIBC_2.14"));
    CHECK(!hfn_name_matches("?f", "?f@@YAXXZ"));
}

static void a_readable_name_is_meant_with_and_without_its_parameters(void)
{
    CHECK(hfn_readable_name_matches("D::f", "D::f(int)"));
    CHECK(hfn_readable_name_matches("D::f(int)", "D::f(int)"));
    CHECK(hfn_readable_name_matches("a::f", "a::f(int, b (*)(c)) const"));
    CHECK(hfn_readable_name_matches("main", "main"));
    CHECK(hfn_readable_name_matches("(anonymous)", "(anonymous)"));
    CHECK(!hfn_readable_name_matches("D::f(", "D::f(int)"));
    CHECK(!hfn_readable_name_matches("D::", "D::f(int)"));
    CHECK(!hfn_readable_name_matches("x", ""));
}

static const check_test tests[] = {
    CHECK_TEST(a_name_is_meant_with_and_without_its_version),
    CHECK_TEST(a_readable_name_is_meant_with_and_without_its_parameters),
};
CHECK_MAIN(tests)
