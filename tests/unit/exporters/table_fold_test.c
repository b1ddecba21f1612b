/* SPDX-License-Identifier: MIT */
/* Names that are wider than the column are shortened. */
#include "check.h"
#include "exporters/table.h"

#include <string.h>

#define DOTS "\xe2\x80\xa6"

static char shown[4096];
static size_t used;

static int32_t append_shown(void *user, const void *bytes, size_t count)
{
    (void)user;
    memcpy(shown + used, bytes, count);
    used += count;
    shown[used] = 0;
    return 0;
}

static const char *shorten(const char *name, size_t width)
{
    hfn_sink sink = { .write = append_shown };

    used = 0;
    shown[0] = 0;
    hfn_table_function(&sink, name, width);
    hfn_sink_flush(&sink);
    return shown;
}

#define MAP "std::map<int, std::pair<const int, long>, std::less<int> >::find(int const&)"

static void the_longest_innermost_brackets_are_folded_first(void)
{
    CHECK_STR(shorten(MAP, 0), MAP);
    CHECK_STR(shorten(MAP, strlen(MAP)), MAP);
    CHECK_STR(shorten(MAP, strlen(MAP) - 1),
              "std::map<int, std::pair<const int, " DOTS ">, std::less<int> >::find(int const&)");
    CHECK_STR(shorten(MAP, 60),
              "std::map<int, std::pair<" DOTS ">, std::less<int> >::find(" DOTS ")");
}

static void the_first_argument_is_folded_last(void)
{
    CHECK_STR(shorten(MAP, 40), "std::map<int, " DOTS ">::find(" DOTS ")");
    CHECK_STR(shorten(MAP, 24), "std::map<" DOTS ">::find(" DOTS ")");
    CHECK_STR(shorten("std::vector<int, std::allocator<int> >::push_back(int const&)", 44),
              "std::vector<int, " DOTS ">::push_back(" DOTS ")");
    CHECK_STR(shorten("std::vector<char, std::allocator<char> >::push_back(char&&)", 50),
              "std::vector<char, " DOTS ">::push_back(" DOTS ")");
}

static void operator_names_are_not_taken_for_brackets(void)
{
    CHECK_STR(shorten("operator<<(std::ostream&, T)", 20), "operator<<(" DOTS ")");
    CHECK_STR(shorten("A::operator()(int, int, int) const", 25), "A::operator()(" DOTS ") const");
    CHECK_STR(shorten("auto f<decltype(x->y)>(int, int)", 28), "auto f<decltype(x->y)>(" DOTS ")");
    CHECK_STR(shorten("my_operator<int, long>::f()", 25), "my_operator<int, " DOTS ">::f()");
}

static void names_without_matching_brackets_are_cut_in_the_middle(void)
{
    CHECK_STR(shorten("odd<(name>whatever", 9), "odd<" DOTS "ever");
    CHECK_STR(shorten("no_brackets_at_all", 9), "no_b" DOTS "_all");
    CHECK_STR(shorten("deep(er)", 7), "dee" DOTS "er)");
}

static const check_test tests[] = {
    CHECK_TEST(the_longest_innermost_brackets_are_folded_first),
    CHECK_TEST(the_first_argument_is_folded_last),
    CHECK_TEST(operator_names_are_not_taken_for_brackets),
    CHECK_TEST(names_without_matching_brackets_are_cut_in_the_middle),
};
CHECK_MAIN(tests)
