/* SPDX-License-Identifier: MIT */
/* The spellings of a name that a glob matches. */
#include "check.h"

#include "base/memory.h"
#include "functions/match.h"

enum { LONG_BYTES = 40000 };

typedef struct demangler {
    const char *mangled, *readable;
    int calls;
} demangler;

static size_t demangle(void *user, const char *mangled, char *out, size_t out_bytes)
{
    demangler *d = user;
    size_t length = strlen(d->readable);

    d->calls++;
    if (strcmp(mangled, d->mangled) != 0 || length >= out_bytes) {
        return 0;
    }
    memcpy(out, d->readable, length + 1);
    return length;
}

static bool is_matched(const char *glob, const char *name, demangler *d)
{
    hotfn_env env = hfn_env_fill(NULL);
    hfn_name_matcher matcher;

    env.demangle_fn = demangle;
    env.demangle_user = d;
    hfn_matcher_init(&matcher, &env);
    hfn_matcher_set_name(&matcher, name);
    bool answer = hfn_matcher_matches(&matcher, glob);
    hfn_matcher_finish(&matcher);
    return answer;
}

static void a_name_matches_with_and_without_its_version(void)
{
    demangler d = { "_Z1fi", "f(int)", 0 };

    CHECK(is_matched("memcpy", "memcpy@GLIBC_2.14", &d));
    CHECK(is_matched("memcpy@GLIBC_2.14", "memcpy@GLIBC_2.14", &d));
    CHECK(!is_matched("memcpy@GLIBC_2.2", "memcpy@GLIBC_2.14", &d));
    CHECK(!is_matched("memcp", "memcpy@GLIBC_2.14", &d));
    CHECK(!is_matched("?f", "?f@@YAXXZ", &d));
    CHECK(is_matched("f(int)", "_Z1fi@@V2", &d));
}

static void a_readable_name_matches_with_and_without_its_parameters(void)
{
    static const struct {
        const char *glob, *readable;
        bool matches;
    } rows[] = {
        { "D::f", "D::f(int)", true },
        { "D::f(int)", "D::f(int)", true },
        { "a::f", "a::f(int, b (*)(c)) const", true },
        { "main", "main", true },
        { "(anonymous)", "(anonymous)", true },
        { "D::f(", "D::f(int)", false },
        { "D::", "D::f(int)", false },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        demangler d = { "mangled", rows[i].readable, 0 }, none = { "", "", 0 };

        CHECK_EQ_I64(is_matched(rows[i].glob, "mangled", &d), rows[i].matches);
        /* PDBs and linker maps have names that are already readable. */
        CHECK_EQ_I64(is_matched(rows[i].glob, rows[i].readable, &none), rows[i].matches);
    }
}

static void a_readable_name_may_have_any_length(void)
{
    static char readable[LONG_BYTES + 16];
    demangler d = { "_Z4longv", readable, 0 };

    strcpy(readable, "ns::");
    memset(readable + 4, 'x', LONG_BYTES);
    strcpy(readable + 4 + LONG_BYTES, "work()");
    CHECK(is_matched("*xwork()", "_Z4longv", &d));
    CHECK(is_matched("ns::*work", "_Z4longv", &d));
    CHECK(!is_matched("ns::*play", "_Z4longv", &d));
}

static void a_name_is_demangled_once_and_only_if_needed(void)
{
    demangler d = { "_Z1fi", "f(int)", 0 };
    hotfn_env env = hfn_env_fill(NULL);
    hfn_name_matcher matcher;

    env.demangle_fn = demangle;
    env.demangle_user = &d;
    hfn_matcher_init(&matcher, &env);
    hfn_matcher_set_name(&matcher, "_Z1fi");
    CHECK(hfn_matcher_matches(&matcher, "_Z*"));
    CHECK_EQ_I64(d.calls, 0);
    CHECK(hfn_matcher_matches(&matcher, "f"));
    CHECK(!hfn_matcher_matches(&matcher, "g"));
    CHECK_EQ_I64(d.calls, 1);
    hfn_matcher_finish(&matcher);
}

static void any_of_several_names_may_match(void)
{
    demangler d = { "", "", 0 };
    hotfn_env env = hfn_env_fill(NULL);
    hfn_name_matcher matcher;

    env.demangle_fn = demangle;
    env.demangle_user = &d;
    hfn_matcher_init(&matcher, &env);
    CHECK(hfn_matcher_matches_any(&matcher, "two", "one\0two\0three\0", 3));
    CHECK(!hfn_matcher_matches_any(&matcher, "three", "one\0two\0three\0", 2));
    CHECK(!hfn_matcher_matches_any(&matcher, "three", "one\0\0three\0", 3));
    CHECK(!hfn_matcher_matches_any(&matcher, "*", "", 1));
    hfn_matcher_finish(&matcher);
}

static const check_test tests[] = {
    CHECK_TEST(a_name_matches_with_and_without_its_version),
    CHECK_TEST(a_readable_name_matches_with_and_without_its_parameters),
    CHECK_TEST(a_readable_name_may_have_any_length),
    CHECK_TEST(a_name_is_demangled_once_and_only_if_needed),
    CHECK_TEST(any_of_several_names_may_match),
};
CHECK_MAIN(tests)
