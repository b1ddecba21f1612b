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

static void return_types_and_leading_scopes_are_dropped_first(void)
{
    CHECK_STR(shorten("std::pair<int, int> engine::render::Phong::shade(Ray const&)", 40),
              "engine::render::Phong::shade(Ray const&)");
    CHECK_STR(shorten("engine::render::Phong::shade(Ray const&)", 32),
              "render::Phong::shade(Ray const&)");
    CHECK_STR(shorten("engine::render::Phong::shade(Ray const&)", 26), "Phong::shade(Ray const&)");
    CHECK_STR(shorten("engine::render::Toon::shade(Ray const&)", 16), "Toon::shade(" DOTS ")");
    CHECK_STR(shorten("std::ostream& operator<< <char>(std::ostream&, char)", 45),
              "operator<< <char>(std::ostream&, char)");
    CHECK_STR(shorten("public: virtual void __cdecl a::b::C::f(int) const", 22),
              "a::b::C::f(int) const");
    CHECK_STR(shorten("decltype (f(1)) a::b::g<int>(int)", 17), "a::b::g<int>(int)");
    CHECK_STR(shorten("(anonymous namespace)::Scene::draw(int)", 20), "Scene::draw(int)");
    CHECK_STR(shorten("core::iter::Iterator::next", 16), "Iterator::next");
}

static void the_last_component_stays(void)
{
    CHECK_STR(shorten("engine::render::Phong::shade(Ray const&)", 14), DOTS "ng::shade(" DOTS ")");
    CHECK_STR(shorten("engine::render::Toon::shade(Ray const&)", 10), "shade(" DOTS ")");
    CHECK_STR(shorten("a::very_long_name_of_a_function", 9), "very" DOTS "tion");
    CHECK_STR(shorten("a::b::run(int)::{lambda(int)#1}::operator()(int) const", 45),
              "run(" DOTS ")::{lambda(" DOTS ")#1}::operator()(int) const");
    CHECK_STR(shorten("core::iter::map_fold::{{closure}}", 24), "map_fold::{{closure}}");
    CHECK_STR(shorten("A::B::C::operator std::string() const", 33),
              "C::operator std::string() const");
}

static void words_before_a_qualified_name_are_kept(void)
{
    CHECK_STR(shorten("vtable for a::b::C", 15), "vtable for b::C");
    CHECK_STR(shorten("non-virtual thunk to a::b::C::f(int)", 30),
              "non-virtual thunk to C::f(int)");
    CHECK_STR(shorten("-[NSString length::]", 12), "-[NSSt" DOTS "th::]");
}

#define MAP "std::map<int, std::pair<const int, long>, std::less<int> >::find(int const&)"

static void the_longest_innermost_brackets_are_folded_first(void)
{
    CHECK_STR(shorten(MAP, 0), MAP);
    CHECK_STR(shorten(MAP, strlen(MAP)), MAP);
    CHECK_STR(shorten(MAP, strlen(MAP) - 1), &MAP[strlen("std::")]);
    CHECK_STR(shorten(MAP, 68),
              "map<int, std::pair<const int, " DOTS ">, std::less<int> >::find(int const&)");
    CHECK_STR(shorten(MAP, 55), "map<int, std::pair<" DOTS ">, std::less<int> >::find(" DOTS ")");
}

static void the_first_argument_is_folded_last(void)
{
    CHECK_STR(shorten(MAP, 35), "map<int, " DOTS ">::find(" DOTS ")");
    CHECK_STR(shorten(MAP, 18), "map<" DOTS ">::find(" DOTS ")");
    CHECK_STR(shorten("std::vector<int, std::allocator<int> >::push_back(int const&)", 39),
              "vector<int, " DOTS ">::push_back(" DOTS ")");
    CHECK_STR(shorten("std::vector<char, std::allocator<char> >::push_back(char&&)", 45),
              "vector<char, " DOTS ">::push_back(" DOTS ")");
}

static void operator_names_are_not_taken_for_brackets(void)
{
    CHECK_STR(shorten("operator<<(std::ostream&, T)", 20), "operator<<(" DOTS ")");
    CHECK_STR(shorten("A::operator()(int, int, int) const", 25), "A::operator()(" DOTS ") const");
    CHECK_STR(shorten("auto f<decltype(x->y)>(int, int)", 23), "f<decltype(x->y)>(" DOTS ")");
    CHECK_STR(shorten("my_operator<int, long>::f()", 25), "my_operator<int, " DOTS ">::f()");
}

static void names_without_matching_brackets_are_cut_in_the_middle(void)
{
    CHECK_STR(shorten("odd<(name>whatever", 9), "odd<" DOTS "ever");
    CHECK_STR(shorten("no_brackets_at_all", 9), "no_b" DOTS "_all");
    CHECK_STR(shorten("deep(er)", 7), "dee" DOTS "r)");
}

static const check_test tests[] = {
    CHECK_TEST(return_types_and_leading_scopes_are_dropped_first),
    CHECK_TEST(the_last_component_stays),
    CHECK_TEST(words_before_a_qualified_name_are_kept),
    CHECK_TEST(the_longest_innermost_brackets_are_folded_first),
    CHECK_TEST(the_first_argument_is_folded_last),
    CHECK_TEST(operator_names_are_not_taken_for_brackets),
    CHECK_TEST(names_without_matching_brackets_are_cut_in_the_middle),
};
CHECK_MAIN(tests)
