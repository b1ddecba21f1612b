/* SPDX-License-Identifier: MIT */
/* Symbol records and their indexes, valid and damaged. */
#include "symbols/pdb_load.h"

static void set_16(pdb_builder *b, uint64_t at, uint32_t value)
{
    b->file[at] = (uint8_t)value;
    b->file[at + 1] = (uint8_t)(value >> 8);
}

static void a_record_of_an_impossible_length_is_refused(void)
{
    static const uint32_t lengths[] = { 0, 1, 0xffff };

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        pdb_builder *b = pdb_begin(512);
        uint32_t at = procedure(b, MODULE, 0x1110, "f", 0, 4);
        pdb_finish(b);
        set_16(b, place(b, MODULE, at), lengths[i]);
        refuse(b, "length is wrong", place(b, MODULE, at));
    }
}

static void a_name_without_an_end_is_refused(void)
{
    pdb_builder *b = pdb_begin(512);
    uint32_t at = procedure(b, MODULE, 0x1110, "f", 0, 4);

    pdb_finish(b);
    memset(b->file + place(b, MODULE, at) + 4 + 35, 'f', 5);
    refuse(b, "name has no end", place(b, MODULE, at));
}

static void a_module_with_more_symbols_than_bytes_is_refused(void)
{
    pdb_builder *b = pdb_begin(512);

    pdb_finish(b);
    set_32(b->file + place(b, DBI, 64 + 36), 0xffffffff);
    refuse(b, "more symbols than it has", place(b, MODULE, 0));
}

static void two_modules_of_one_stream_are_refused(void)
{
    pdb_builder *b = pdb_begin(512);

    pdb_finish(b);
    set_16(b, place(b, DBI, 64 + 34), MODULE_2);
    refuse(b, "which belongs to another module", directory_at(b, 4 + 4 * MODULE_2));
}

static void an_index_of_bytes_inside_records_is_refused(void)
{
    pdb_builder *b = pdb_begin(512);

    public_function(b, "f", 0);
    b->index[0][0] += 4;
    pdb_finish(b);
    refuse(b, "bytes inside of records", place(b, RECORDS, 0));
    b = pdb_begin(512);
    public_function(b, "f", 0);
    b->index[0][0] = 0x10000;
    pdb_finish(b);
    refuse(b, "refers to no symbol", place(b, PUBLICS, 28 + 16));
}

static void an_index_of_too_many_bytes_is_refused(void)
{
    pdb_builder *b = pdb_begin(512);

    pdb_finish(b);
    set_32(b->file + place(b, PUBLICS, 28 + 8), 0xfffffff8);
    refuse(b, "goes beyond the end", place(b, PUBLICS, b->s[PUBLICS].size - 1));
}

static void separated_code_is_a_fragment_of_its_parent(void)
{
    pdb_builder *b = pdb_begin(512);
    uint32_t at = procedure(b, MODULE, 0x1110, "parent", 0, 4);
    hotfn_symbols *symbols;

    separated(b, at, 0x100, 8);
    symbols = load_good(b);
    CHECK_EQ_U64(find(symbols, "parent", HOTFN_SYMBOL_FUNCTION).byte_count, 4);
    CHECK_EQ_U64(find(symbols, "parent", HOTFN_SYMBOL_FRAGMENT).rva, 0x1100);
    CHECK_EQ_U64(find(symbols, "parent", HOTFN_SYMBOL_FRAGMENT).byte_count, 8);
    hotfn_symbols_destroy(symbols);
    pdb_free(b);
    b = pdb_begin(512);
    procedure(b, MODULE, 0x1110, "parent", 0, 4);
    at = b->s[MODULE].size;
    separated(b, at + 1, 0x100, 8);
    pdb_finish(b);
    refuse(b, "refers to no procedure", place(b, MODULE, at));
}

/* Many records of 32 bytes that refer to one long name must not copy it each time. */
static void separated_code_reads_a_bounded_number_of_bytes(void)
{
    pdb_builder *b = pdb_begin(512);
    char name[400];
    uint32_t at;

    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    at = procedure(b, MODULE, 0x1110, name, 0, 4);
    for (uint32_t i = 0; i < 1000; i++) {
        separated(b, at, 0x100, 8);
    }
    pdb_finish(b);
    refuse(b, "too many records of separated code", place(b, MODULE, at));
}

static void many_jumps_to_a_long_name_are_called_by_number(void)
{
    pdb_builder *b = pdb_begin(512);
    hotfn_symbols *symbols;
    char name[1000];

    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    procedure(b, MODULE, 0x1110, name, 0x2000, 4);
    for (uint32_t i = 0; i < 1000; i++) {
        trampoline(b, 5 * i, 0x2000);
    }
    symbols = load_good(b);
    CHECK_EQ_U64(hotfn_symbols_get_count(symbols), 1001);
    CHECK_EQ_U64(find(symbols, "@ILT+4995", HOTFN_SYMBOL_THUNK).rva, 0x1000 + 4995);
    hotfn_symbols_destroy(symbols);
    pdb_free(b);
}

static void trampolines_are_followed_and_cycles_end(void)
{
    pdb_builder *b = pdb_begin(512);
    hotfn_symbols *symbols;

    procedure(b, MODULE, 0x1110, "f", 0x100, 4);
    trampoline(b, 0x0a, 0x100);
    trampoline(b, 0x05, 0x0a);
    trampoline(b, 0x14, 0x19);
    trampoline(b, 0x19, 0x14);
    symbols = load_good(b);
    CHECK_EQ_U64(find(symbols, "@ILT+5(f)", HOTFN_SYMBOL_THUNK).rva, 0x1005);
    CHECK_EQ_U64(find(symbols, "@ILT+10(f)", HOTFN_SYMBOL_THUNK).byte_count, 5);
    CHECK_EQ_U64(find(symbols, "@ILT+20", HOTFN_SYMBOL_THUNK).rva, 0x1014);
    hotfn_symbols_destroy(symbols);
    pdb_free(b);
}

static void a_trampoline_needs_the_exact_address_of_its_target(void)
{
    pdb_builder *b = pdb_begin(512);
    hotfn_symbols *symbols;

    procedure(b, MODULE, 0x1110, "f", 0x100, 4);
    procedure(b, MODULE, 0x1110, "g", 0x300, 4);
    trampoline(b, 0x05, 0x100); /* leads to f, not to the jump at 0x200, which follows f */
    trampoline(b, 0x200, 0x300);
    trampoline(b, 0x0a, 0x150); /* no function is at 0x150: the jump is not named after g */
    symbols = load_good(b);
    CHECK_EQ_U64(find(symbols, "@ILT+5(f)", HOTFN_SYMBOL_THUNK).rva, 0x1005);
    CHECK_EQ_U64(find(symbols, "@ILT+10", HOTFN_SYMBOL_THUNK).rva, 0x100a);
    CHECK_EQ_U64(find(symbols, "@ILT+512(g)", HOTFN_SYMBOL_THUNK).rva, 0x1200);
    hotfn_symbols_destroy(symbols);
    pdb_free(b);
}

static const check_test tests[] = {
    CHECK_TEST(a_record_of_an_impossible_length_is_refused),
    CHECK_TEST(a_name_without_an_end_is_refused),
    CHECK_TEST(a_module_with_more_symbols_than_bytes_is_refused),
    CHECK_TEST(two_modules_of_one_stream_are_refused),
    CHECK_TEST(an_index_of_bytes_inside_records_is_refused),
    CHECK_TEST(an_index_of_too_many_bytes_is_refused),
    CHECK_TEST(separated_code_is_a_fragment_of_its_parent),
    CHECK_TEST(separated_code_reads_a_bounded_number_of_bytes),
    CHECK_TEST(many_jumps_to_a_long_name_are_called_by_number),
    CHECK_TEST(a_trampoline_needs_the_exact_address_of_its_target),
    CHECK_TEST(trampolines_are_followed_and_cycles_end),
};
CHECK_MAIN(tests)
