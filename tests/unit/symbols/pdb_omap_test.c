/* SPDX-License-Identifier: MIT */
/* Claims about images that were reordered after linking. */
#include "symbols/pdb_load.h"

static void a_moved_function_is_where_the_image_has_it(void)
{
    pdb_builder *b = pdb_begin(512);
    hotfn_symbols *symbols;

    procedure(b, MODULE, 0x1110, "moved", 0x10, 16);
    omap(b, 0x1000, 0x1000);
    omap(b, 0x1010, 0x2000);
    omap(b, 0x1020, 0x1010);
    symbols = load_good(b);
    CHECK_EQ_U64(hotfn_symbols_count(symbols), 1);
    CHECK_EQ_U64(find(symbols, "moved", HOTFN_SYMBOL_FUNCTION).rva, 0x2000);
    CHECK_EQ_U64(find(symbols, "moved", HOTFN_SYMBOL_FUNCTION).byte_count, 16);
    hotfn_symbols_destroy(symbols);
    pdb_free(b);
}

static void pieces_that_stay_neighbours_are_one(void)
{
    pdb_builder *b = pdb_begin(512);
    hotfn_symbols *symbols;

    procedure(b, MODULE, 0x1110, "whole", 0x10, 16);
    omap(b, 0x1000, 0x2000);
    omap(b, 0x1018, 0x2018);
    symbols = load_good(b);
    CHECK_EQ_U64(hotfn_symbols_count(symbols), 1);
    CHECK_EQ_U64(find(symbols, "whole", HOTFN_SYMBOL_FUNCTION).byte_count, 16);
    hotfn_symbols_destroy(symbols);
    pdb_free(b);
}

static void what_left_the_entry_is_a_fragment_and_what_left_the_image_is_none(void)
{
    pdb_builder *b = pdb_begin(512);
    hotfn_symbols *symbols;

    procedure(b, MODULE, 0x1110, "split", 0x10, 16);
    procedure(b, MODULE, 0x1110, "gone", 0x20, 16);
    omap(b, 0x1010, 0x2000);
    omap(b, 0x1018, 0x3000);
    omap(b, 0x101c, 0);
    symbols = load_good(b);
    CHECK_EQ_U64(hotfn_symbols_count(symbols), 2);
    CHECK_EQ_U64(find(symbols, "split", HOTFN_SYMBOL_FUNCTION).rva, 0x2000);
    CHECK_EQ_U64(find(symbols, "split", HOTFN_SYMBOL_FUNCTION).byte_count, 8);
    CHECK_EQ_U64(find(symbols, "split", HOTFN_SYMBOL_FRAGMENT).rva, 0x3000);
    CHECK_EQ_U64(find(symbols, "split", HOTFN_SYMBOL_FRAGMENT).byte_count, 4);
    hotfn_symbols_destroy(symbols);
    pdb_free(b);
}

static void lines_of_moved_code_are_found_by_its_new_address(void)
{
    static const uint32_t pairs[] = { 0, 10, 4, 11, 12, 12 };
    hotfn_source_line line = HOTFN_SOURCE_LINE_INIT;
    pdb_builder *b = pdb_begin(512);
    hotfn_symbols *symbols;

    procedure(b, MODULE, 0x1110, "moved", 0x10, 16);
    files(b);
    lines(b, 0x10, 16, pairs, 3);
    omap(b, 0x1010, 0x2000);
    omap(b, 0x1018, 0x3000);
    put_32(b, OMAP_TO, 0x2000);
    put_32(b, OMAP_TO, 0x1010);
    put_32(b, OMAP_TO, 0x2008);
    put_32(b, OMAP_TO, 0);
    put_32(b, OMAP_TO, 0x3000);
    put_32(b, OMAP_TO, 0x1018);
    symbols = load_good(b);
    CHECK_EQ_I64(hotfn_symbols_find_line(symbols, 0x2006, &line), HOTFN_OK);
    CHECK_EQ_U64(line.line, 11);
    CHECK_EQ_U64(line.rva, 0x2006);
    CHECK_EQ_U64(line.byte_count, 2); /* up to where the line leaves the piece */
    CHECK_EQ_I64(hotfn_symbols_find_line(symbols, 0x3005, &line), HOTFN_OK);
    CHECK_EQ_U64(line.line, 12);
    CHECK_EQ_I64(hotfn_symbols_find_line(symbols, 0x2009, &line), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hotfn_symbols_find_line(symbols, 0x1010, &line), HOTFN_E_NOT_FOUND);
    hotfn_symbols_destroy(symbols);
    pdb_free(b);
}

static void an_omap_out_of_order_or_cut_is_refused(void)
{
    pdb_builder *b = pdb_begin(512);

    omap(b, 0x1010, 0x2000);
    omap(b, 0x1000, 0x3000);
    pdb_finish(b);
    refuse(b, "not sorted", place(b, OMAP_FROM, 8));
    b = pdb_begin(512);
    omap(b, 0x1010, 0x2000);
    put_32(b, OMAP_FROM, 0x1020);
    pdb_finish(b);
    refuse(b, "ends inside an entry", place(b, OMAP_FROM, 11));
}

/* A thousand procedures, each over all of a thousand entries: no million looks. */
static void procedures_all_over_the_omap_are_refused(void)
{
    pdb_builder *b = pdb_begin(512);

    for (uint32_t i = 0; i < 1000; i++) {
        procedure(b, MODULE, 0x1110, "f", 0, 0x100000);
        omap(b, 0x1000 + 4 * i, 0x1000 + 4 * i);
    }
    pdb_finish(b);
    refuse(b, "lie upon each other", place(b, OMAP_FROM, 0));
}

static const check_test tests[] = {
    CHECK_TEST(a_moved_function_is_where_the_image_has_it),
    CHECK_TEST(pieces_that_stay_neighbours_are_one),
    CHECK_TEST(what_left_the_entry_is_a_fragment_and_what_left_the_image_is_none),
    CHECK_TEST(lines_of_moved_code_are_found_by_its_new_address),
    CHECK_TEST(an_omap_out_of_order_or_cut_is_refused),
    CHECK_TEST(procedures_all_over_the_omap_are_refused),
};
CHECK_MAIN(tests)
