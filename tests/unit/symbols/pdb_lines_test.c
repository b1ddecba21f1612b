/* SPDX-License-Identifier: MIT */
/* Source lines of a PDB: each address of a line finds it, and damaged tables have no lines. */
#include "base/counting_env.h"
#include "symbols/pdb_load.h"

static const uint32_t pairs[] = { 0, 10, 4, 11, 8, 13 };

static uint32_t line_at(hotfn_symbols *symbols, uint64_t rva)
{
    hotfn_source_line line = HOTFN_SOURCE_LINE_INIT;

    if (hotfn_symbols_find_line(symbols, rva, &line) != HOTFN_OK) {
        return 0;
    }
    CHECK_STR(line.file, "a.c");
    CHECK(line.rva <= rva && rva - line.rva < line.byte_count);
    return line.line;
}

static void each_address_has_the_last_line_that_begins_before_it(void)
{
    pdb_builder *b = pdb_begin(512);
    hotfn_source_line line = HOTFN_SOURCE_LINE_INIT;
    hotfn_symbols *symbols;

    b->scattered = true;
    files(b);
    lines(b, 0x20, 16, pairs, 3);
    lines(b, 0x10, 8, pairs, 2);
    symbols = load_good(b);
    CHECK_EQ_U64(line_at(symbols, 0x100f), 0);
    CHECK_EQ_U64(line_at(symbols, 0x1010), 10);
    CHECK_EQ_U64(line_at(symbols, 0x1017), 11);
    CHECK_EQ_U64(line_at(symbols, 0x1018), 0);
    CHECK_EQ_U64(line_at(symbols, 0x1020), 10);
    CHECK_EQ_U64(line_at(symbols, 0x102f), 13);
    CHECK_EQ_U64(line_at(symbols, 0x1030), 0);
    CHECK_EQ_I64(hotfn_symbols_find_line(symbols, 0x1029, &line), HOTFN_OK);
    CHECK_EQ_U64(line.rva, 0x1028);
    CHECK_EQ_U64(line.byte_count, 8);
    line.size = 0;
    CHECK_EQ_I64(hotfn_symbols_find_line(symbols, 0x1029, &line), HOTFN_E_OPTION);
    hotfn_symbols_destroy(symbols);
    pdb_free(b);
}

static void unsorted_lines_are_sorted(void)
{
    static const uint32_t mixed[] = { 8, 13, 0, 10, 4, 11, 4, 12 };
    pdb_builder *b = pdb_begin(512);
    hotfn_symbols *symbols;

    files(b);
    lines(b, 0x20, 16, mixed, 4);
    symbols = load_good(b);
    CHECK_EQ_U64(line_at(symbols, 0x1020), 10);
    CHECK_EQ_U64(line_at(symbols, 0x1025), 11); /* the first of two lines at one address */
    CHECK_EQ_U64(line_at(symbols, 0x1028), 13);
    hotfn_symbols_destroy(symbols);
    pdb_free(b);
}

static void special_line_numbers_are_not_lines(void)
{
    static const uint32_t hidden[] = { 0, 0xfeefee, 4, 11, 8, 0xf00f00 };
    pdb_builder *b = pdb_begin(512);
    hotfn_symbols *symbols;

    files(b);
    lines(b, 0x20, 16, hidden, 3);
    symbols = load_good(b);
    CHECK_EQ_U64(line_at(symbols, 0x1020), 0);
    CHECK_EQ_U64(line_at(symbols, 0x1024), 11);
    CHECK_EQ_U64(line_at(symbols, 0x1028), 0);
    hotfn_symbols_destroy(symbols);
    pdb_free(b);
}

/* The PDB loads without lines, and a warning gives the offset of the damage. */
static void check_skipped(pdb_builder *b, const char *why, uint64_t offset)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    counting c;
    hotfn_env env = counting_env(&c);
    hotfn_symbols *symbols = load_with(b, &env, HOTFN_OK, &err);
    char place_text[32];

    CHECK_EQ_U64(line_at(symbols, 0x1020), 0);
    CHECK_EQ_I64(c.warnings, 1);
    snprintf(place_text, sizeof place_text, "offset %llu:", (unsigned long long)offset);
    if (!CHECK(strstr(c.last_log, why) && strstr(c.last_log, place_text))) {
        printf("#   %s, not at %llu\n", c.last_log, (unsigned long long)offset);
    }
    hotfn_symbols_destroy(symbols);
    CHECK_EQ_U64(c.live_bytes, 0);
    pdb_free(b);
}

static pdb_builder *damaged(uint32_t at, uint32_t value, uint64_t *offset)
{
    pdb_builder *b = pdb_begin(512);
    uint32_t begin;

    files(b);
    begin = lines(b, 0x20, 16, pairs, 3);
    pdb_finish(b);
    *offset = place(b, MODULE, begin);
    set_32(b->file + *offset + at, value);
    return b;
}

static void damaged_tables_are_skipped_with_their_offset(void)
{
    uint64_t at;
    pdb_builder *b = damaged(4, 0xfffffff0, &at);

    check_skipped(b, "too many bytes", at + 4);
    b = damaged(4, 8, &at);
    check_skipped(b, "too short", at + 8);
    b = damaged(8 + 12 + 4, 0x10000000, &at);
    check_skipped(b, "block is damaged", at + 8);
    b = damaged(8 + 12 + 8, 0xffffffff, &at);
    check_skipped(b, "block is damaged", at + 8);
    b = damaged(8 + 12 + 8, 0, &at);
    check_skipped(b, "block is damaged", at + 8);
}

static void a_line_of_an_unlisted_file_is_not_returned(void)
{
    uint64_t at;
    pdb_builder *b = damaged(8 + 12, 0x1000, &at);
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_symbols *symbols = load_with(b, NULL, HOTFN_OK, &err);

    CHECK_EQ_U64(line_at(symbols, 0x1020), 0);
    hotfn_symbols_destroy(symbols);
    pdb_free(b);
}

static const check_test tests[] = {
    CHECK_TEST(each_address_has_the_last_line_that_begins_before_it),
    CHECK_TEST(unsorted_lines_are_sorted),
    CHECK_TEST(special_line_numbers_are_not_lines),
    CHECK_TEST(damaged_tables_are_skipped_with_their_offset),
    CHECK_TEST(a_line_of_an_unlisted_file_is_not_returned),
};
CHECK_MAIN(tests)
