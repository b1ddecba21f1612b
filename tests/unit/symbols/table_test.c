/* SPDX-License-Identifier: MIT */
/* The symbol table: its order, and duplicates from several sources. */
#include "symbols/table.h"

#include "base/counting_env.h"
#include "check.h"

static void add(hfn_symbol_table *t, uint64_t rva, const char *name, uint8_t source, uint8_t flags)
{
    hfn_symbol s = { rva, 0, name, HOTFN_SYMBOL_FUNCTION, source, flags, 0 };

    CHECK(hfn_symbol_table_add(t, &s));
}

static void symbols_are_sorted_by_rva_then_globals_then_name(void)
{
    hfn_symbol_table t;

    hfn_symbol_table_init(&t, NULL);
    add(&t, 9, "z", 1, 0);
    add(&t, 5, "c", 1, HOTFN_SYMBOL_GLOBAL);
    add(&t, 5, "a", 1, 0);
    add(&t, 5, "d", 1, 0);
    add(&t, 5, "b", 1, HOTFN_SYMBOL_GLOBAL | HOTFN_SYMBOL_WEAK);
    CHECK(hfn_symbol_table_sort(&t));
    CHECK_EQ_U64(t.count, 5);
    CHECK_STR(t.items[0].name, "b");
    CHECK_STR(t.items[1].name, "c");
    CHECK_STR(t.items[2].name, "a");
    CHECK_STR(t.items[3].name, "d");
    CHECK_STR(t.items[4].name, "z");
    hfn_symbol_table_finish(&t);
}

static void duplicates_become_one_symbol_with_the_flags_of_all(void)
{
    hfn_symbol_table t;
    hfn_symbol label = { 5, 0, "f", HOTFN_SYMBOL_LABEL, HOTFN_SOURCE_SYMTAB, 0, 0 };
    hfn_symbol typed = { 5,
                         12,
                         "f",
                         HOTFN_SYMBOL_FUNCTION,
                         HOTFN_SOURCE_DYNSYM,
                         HOTFN_SYMBOL_GLOBAL | HOTFN_SYMBOL_EXPORTED,
                         0 };

    hfn_symbol_table_init(&t, NULL);
    CHECK(hfn_symbol_table_add(&t, &typed) && hfn_symbol_table_add(&t, &label));
    add(&t, 6, "f", 1, 0);
    CHECK_EQ_U64(t.function_count, 2);
    CHECK(hfn_symbol_table_sort(&t));
    CHECK_EQ_U64(t.count, 2);
    CHECK_EQ_U64(t.items[0].source, HOTFN_SOURCE_SYMTAB);
    CHECK_EQ_U64(t.items[0].kind, HOTFN_SYMBOL_FUNCTION);
    CHECK_EQ_U64(t.items[0].byte_count, 12);
    CHECK_EQ_U64(t.items[0].flags, HOTFN_SYMBOL_GLOBAL | HOTFN_SYMBOL_EXPORTED);
    hfn_symbol_table_finish(&t);
}

static void a_known_size_stays_and_a_guessed_one_gives_way(void)
{
    hfn_symbol known = { 5, 12, "f", HOTFN_SYMBOL_FUNCTION, HOTFN_SOURCE_SYMTAB, 0, 0 },
               guessed = { 6,
                           12,
                           "g",
                           HOTFN_SYMBOL_FUNCTION,
                           HOTFN_SOURCE_SYMTAB,
                           HOTFN_SYMBOL_SIZE_GUESSED,
                           0 },
               again = { 5, 20, "f", HOTFN_SYMBOL_FUNCTION, HOTFN_SOURCE_DYNSYM, 0, 0 };
    hfn_symbol_table t;

    hfn_symbol_table_init(&t, NULL);
    CHECK(hfn_symbol_table_add(&t, &known) && hfn_symbol_table_add(&t, &guessed) &&
          hfn_symbol_table_add(&t, &again));
    again.rva = 6;
    again.name = "g";
    CHECK(hfn_symbol_table_add(&t, &again));
    CHECK(hfn_symbol_table_sort(&t));
    CHECK_EQ_U64(t.items[0].byte_count, 12);
    CHECK_EQ_U64(t.items[1].byte_count, 20);
    CHECK_EQ_U64(t.items[1].flags, 0);
    hfn_symbol_table_finish(&t);
}

static void an_empty_table_is_fine(void)
{
    hfn_symbol_table t;

    hfn_symbol_table_init(&t, NULL);
    CHECK(hfn_symbol_table_sort(&t));
    CHECK_EQ_U64(t.count, 0);
    hfn_symbol_table_finish(&t);
}

static void a_failed_allocation_in_sorting_is_reported(void)
{
    hfn_symbol_table t;
    counting c;
    hotfn_env env = counting_env(&c);

    hfn_symbol_table_init(&t, &env);
    add(&t, 9, "z", 1, 0);
    c.fail_at = c.requests + 1;
    CHECK(!hfn_symbol_table_sort(&t));
    hfn_symbol_table_finish(&t);
    CHECK_EQ_U64(c.live_bytes, 0);
}

static const check_test tests[] = {
    CHECK_TEST(symbols_are_sorted_by_rva_then_globals_then_name),
    CHECK_TEST(duplicates_become_one_symbol_with_the_flags_of_all),
    CHECK_TEST(a_known_size_stays_and_a_guessed_one_gives_way),
    CHECK_TEST(an_empty_table_is_fine),
    CHECK_TEST(a_failed_allocation_in_sorting_is_reported),
};
CHECK_MAIN(tests)
