/* SPDX-License-Identifier: MIT */
/* Interning of names. */
#include "base/names.h"

#include "base/counting_env.h"
#include "check.h"

static void equal_texts_have_one_number(void)
{
    hfn_names *names = hfn_names_create(NULL);

    CHECK_EQ_U64(hfn_names_intern(names, "main", 4), 0);
    CHECK_EQ_U64(hfn_names_intern(names, "mainly", 6), 1);
    CHECK_EQ_U64(hfn_names_intern(names, "mainly", 4), 0);
    CHECK_EQ_U64(hfn_names_intern(names, "", 0), 2);
    CHECK_EQ_U64(hfn_names_find(names, "mainly", 6), 1);
    CHECK_EQ_U64(hfn_names_find(names, "other", 5), HFN_NAME_NONE);
    CHECK_EQ_U64(hfn_names_count(names), 3);
    hfn_names_destroy(names);
    hfn_names_destroy(NULL);
}

static void each_of_many_names_is_found(void)
{
    hfn_names *names = hfn_names_create(NULL);
    char text[32];

    hfn_names_intern(names, "first", 5);
    for (int i = 0; i < 20000; i++) {
        int length = snprintf(text, sizeof text, "name%d", i);
        CHECK_EQ_U64(hfn_names_intern(names, text, (size_t)length), i + 1);
    }
    CHECK_EQ_U64(hfn_names_find(names, "first", 5), 0);
    CHECK_EQ_U64(hfn_names_find(names, "name776", 7), 777);
    hfn_names_destroy(names);
}

/* Whichever request fails, the table stays usable and frees all of its memory in the end. */
static void a_failed_allocation_is_reported_without_exit(void)
{
    char text[64];

    for (size_t n = 1; n < 60; n++) {
        counting c;
        hotfn_env env = counting_env(&c);
        c.fail_at = n;
        hfn_names *names = hfn_names_create(&env);
        for (int i = 0; names && i < 3000; i++) {
            int length = snprintf(text, sizeof text, "a longer name so that blocks fill %d", i);
            if (hfn_names_intern(names, text, (size_t)length) == HFN_NAME_NONE) {
                break;
            }
        }
        hfn_names_destroy(names);
        CHECK_EQ_U64(c.live_bytes, 0);
        CHECK_EQ_I64(c.size_mismatches, 0);
    }
}

static const check_test tests[] = {
    CHECK_TEST(equal_texts_have_one_number),
    CHECK_TEST(each_of_many_names_is_found),
    CHECK_TEST(a_failed_allocation_is_reported_without_exit),
};
CHECK_MAIN(tests)
