/* SPDX-License-Identifier: MIT */
/* PDBs of images that were reordered after linking. */
#include "symbols/pdb_load.h"

#include "symbols/pdb_omap.h"

#include "../../property/random.h"

static void a_moved_function_has_its_new_address(void)
{
    pdb_builder *b = pdb_begin(512);
    hotfn_symbols *symbols;

    procedure(b, MODULE, 0x1110, "moved", 0x10, 16);
    omap(b, 0x1000, 0x1000);
    omap(b, 0x1010, 0x2000);
    omap(b, 0x1020, 0x1010);
    symbols = load_good(b);
    CHECK_EQ_U64(hotfn_symbols_get_count(symbols), 1);
    CHECK_EQ_U64(find(symbols, "moved", HOTFN_SYMBOL_FUNCTION).rva, 0x2000);
    CHECK_EQ_U64(find(symbols, "moved", HOTFN_SYMBOL_FUNCTION).byte_count, 16);
    hotfn_symbols_destroy(symbols);
    pdb_free(b);
}

static void adjacent_pieces_are_joined(void)
{
    pdb_builder *b = pdb_begin(512);
    hotfn_symbols *symbols;

    procedure(b, MODULE, 0x1110, "whole", 0x10, 16);
    omap(b, 0x1000, 0x2000);
    omap(b, 0x1018, 0x2018);
    symbols = load_good(b);
    CHECK_EQ_U64(hotfn_symbols_get_count(symbols), 1);
    CHECK_EQ_U64(find(symbols, "whole", HOTFN_SYMBOL_FUNCTION).byte_count, 16);
    hotfn_symbols_destroy(symbols);
    pdb_free(b);
}

static void moved_parts_are_fragments_and_removed_parts_are_dropped(void)
{
    pdb_builder *b = pdb_begin(512);
    hotfn_symbols *symbols;

    procedure(b, MODULE, 0x1110, "split", 0x10, 16);
    procedure(b, MODULE, 0x1110, "gone", 0x20, 16);
    omap(b, 0x1010, 0x2000);
    omap(b, 0x1018, 0x3000);
    omap(b, 0x101c, 0);
    symbols = load_good(b);
    CHECK_EQ_U64(hotfn_symbols_get_count(symbols), 2);
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
    CHECK_EQ_U64(line.byte_count, 2); /* up to the end of the piece */
    CHECK_EQ_I64(hotfn_symbols_find_line(symbols, 0x3005, &line), HOTFN_OK);
    CHECK_EQ_U64(line.line, 12);
    CHECK_EQ_I64(hotfn_symbols_find_line(symbols, 0x2009, &line), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hotfn_symbols_find_line(symbols, 0x1010, &line), HOTFN_E_NOT_FOUND);
    hotfn_symbols_destroy(symbols);
    pdb_free(b);
}

static void an_unsorted_or_truncated_omap_is_refused(void)
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

/* A thousand procedures that each cover a thousand entries must not take a million steps. */
static void procedures_that_overlap_too_much_are_refused(void)
{
    pdb_builder *b = pdb_begin(512);

    for (uint32_t i = 0; i < 1000; i++) {
        procedure(b, MODULE, 0x1110, "f", 0, 0x100000);
        omap(b, 0x1000 + 4 * i, 0x1000 + 4 * i);
    }
    pdb_finish(b);
    refuse(b, "overlap each other", place(b, OMAP_FROM, 0));
}

/* Sets the optional debug stream with that index (LLVM docs, "PDB DBI Stream"). */
static void set_debug_stream(pdb_builder *b, uint32_t index, uint32_t stream)
{
    uint8_t *number = b->file + place(b, DBI, b->s[DBI].size - 22 + 2 * index);

    number[0] = (uint8_t)stream;
    number[1] = (uint8_t)(stream >> 8);
}

static void addresses_refer_to_the_original_sections(void)
{
    enum { SECTION_HEADERS = 5, ORIGINAL_HEADERS = 10 };
    uint8_t headers[2 * 40] = { [13] = 0x50, [36] = 0x20, [40 + 13] = 0x60 };
    pdb_builder *b = pdb_begin(512);
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_symbols *symbols;

    procedure(b, MODULE, 0x1110, "moved", 0x10, 16);
    put_bytes(b, NAMES, headers, sizeof headers); /* a stream that this file does not need */
    omap(b, 0x1010, 0x3000);
    omap(b, 0x5010, 0x2000);
    omap(b, 0x5010, 0x2000); /* an equal entry does not break the order */
    pdb_finish(b);
    symbols = load_with(b, NULL, HOTFN_OK, &err);
    CHECK_EQ_U64(find(symbols, "moved", HOTFN_SYMBOL_FUNCTION).rva, 0x3000);
    hotfn_symbols_destroy(symbols);
    set_debug_stream(b, ORIGINAL_HEADERS, NAMES);
    symbols = load_with(b, NULL, HOTFN_OK, &err);
    CHECK_EQ_U64(find(symbols, "moved", HOTFN_SYMBOL_FUNCTION).rva, 0x2000);
    hotfn_symbols_destroy(symbols);
    set_debug_stream(b, ORIGINAL_HEADERS, NO_STREAM);
    set_debug_stream(b, SECTION_HEADERS, NO_STREAM);
    load_with(b, NULL, HOTFN_E_UNSUPPORTED, &err);
    pdb_free(b);
}

static void without_omap_both_addresses_are_equal(void)
{
    hfn_pdb_addresses a = { .steps_left = 0 };
    hfn_pdb_piece piece = { 0, 0, 0 };
    uint64_t source = 0;

    CHECK(hfn_pdb_piece_at(&a, 5, 8, &piece));
    CHECK(piece.source == 5 && piece.image == 5 && piece.bytes == 3);
    CHECK(!hfn_pdb_piece_at(&a, 5, 5, &piece));
    CHECK(hfn_pdb_to_source(&a, 9, &source) && source == 9);
    a.from_source.size = 8; /* with OMAP, but no entry leads back */
    CHECK(!hfn_pdb_to_source(&a, 9, &source));
}

/* ---- Comparison with a byte-by-byte search. */

enum { MAX_SOURCE = 40, REMOVED = -1 };

typedef struct entry {
    uint32_t from, to;
} entry;

/* The image address of a source byte, by the last entry that begins at or before it. */
static int64_t find_image_address(const entry *omap, uint32_t count, uint64_t source)
{
    int64_t image = REMOVED;

    for (uint32_t i = 0; i < count; i++) {
        if (omap[i].from <= source) {
            image = omap[i].to ? (int64_t)(omap[i].to + source - omap[i].from) : REMOVED;
        }
    }
    return image;
}

static hfn_pdb_piece find_piece(const entry *omap, uint32_t count, uint64_t source, uint64_t end)
{
    hfn_pdb_piece piece = { source, 0, 0 };

    while (piece.source < end && find_image_address(omap, count, piece.source) == REMOVED) {
        piece.source++;
    }
    if (piece.source == end) {
        return piece;
    }
    piece.image = (uint64_t)find_image_address(omap, count, piece.source);
    while (piece.source + piece.bytes < end &&
           find_image_address(omap, count, piece.source + piece.bytes) ==
               (int64_t)(piece.image + piece.bytes)) {
        piece.bytes++;
    }
    return piece;
}

/* Sorted entries, some with equal sources; targets are random, continue the previous one, or are
 * removed. */
static uint32_t random_omap(entry *omap, random_source *r)
{
    uint32_t count = 1 + (uint32_t)(random_u64(r) % 8), from = 0, to = 0, last = 0;

    for (uint32_t i = 0; i < count; i++) {
        from += (uint32_t)(random_u64(r) % 6);
        switch (random_u64(r) % 4) {
        case 0: to = 0; break;
        case 1: to = to ? to + (from - last) : 1; break;
        default: to = 100 * (1 + (uint32_t)(random_u64(r) % 9)); break;
        }
        omap[i] = (entry){ from, to };
        last = from;
    }
    return count;
}

static void lookups_agree_with_a_byte_by_byte_search(void)
{
    random_source r = random_seed(1);
    uint64_t wrong = 0, pieces = 0;
    entry omap[8];

    for (int round = 0; round < 20000; round++) {
        uint32_t count = random_omap(omap, &r);
        hfn_span bytes = { (const uint8_t *)omap, count * sizeof(entry), false };
        hfn_pdb_addresses a = { .from_source = bytes, .to_source = bytes };
        uint64_t source = 1 + random_u64(&r) % MAX_SOURCE, end = source + random_u64(&r) % 40;
        hfn_pdb_piece expected = find_piece(omap, count, source, end), got = { 0, 0, 0 };
        bool any = hfn_pdb_piece_at(&a, source, end, &got);
        pieces += any;
        wrong += any != (expected.bytes > 0) || (any && memcmp(&got, &expected, sizeof got) != 0);
        uint64_t back = 0;
        int64_t found = find_image_address(omap, count, source);
        wrong += hfn_pdb_to_source(&a, source, &back) != (found != REMOVED) ||
                 (found != REMOVED && back != (uint64_t)found);
    }
    CHECK_EQ_U64(wrong, 0);
    CHECK(pieces > 5000);
}

static void sections_are_numbered_from_one(void)
{
    uint8_t headers[2 * 40] = { [12] = 0x10, [36] = 0x20, [40 + 13] = 0x20, [40 + 39] = 0x20 };
    hfn_pdb_addresses a = { .sections = { headers, sizeof headers, false } };
    uint64_t rva = 0;

    CHECK(hfn_pdb_image_rva(&a, 1, 3, &rva) && rva == 0x13);
    CHECK(hfn_pdb_source_rva(&a, 2, 0xffffffff, &rva) && rva == 0x100001fff);
    CHECK(!hfn_pdb_source_rva(&a, 0, 3, &rva) && !hfn_pdb_image_rva(&a, 3, 3, &rva));
    CHECK(hfn_pdb_section_is_code(&a, 1) && hfn_pdb_section_is_code(&a, 2));
    /* section 1: initialized data, section 2: readable; neither is code */
    headers[36] = headers[40 + 39] = 0x40;
    CHECK(!hfn_pdb_section_is_code(&a, 1) && !hfn_pdb_section_is_code(&a, 2));
    CHECK(!hfn_pdb_section_is_code(&a, 0));
}

static const check_test tests[] = {
    CHECK_TEST(a_moved_function_has_its_new_address),
    CHECK_TEST(adjacent_pieces_are_joined),
    CHECK_TEST(moved_parts_are_fragments_and_removed_parts_are_dropped),
    CHECK_TEST(lines_of_moved_code_are_found_by_its_new_address),
    CHECK_TEST(an_unsorted_or_truncated_omap_is_refused),
    CHECK_TEST(procedures_that_overlap_too_much_are_refused),
    CHECK_TEST(addresses_refer_to_the_original_sections),
    CHECK_TEST(without_omap_both_addresses_are_equal),
    CHECK_TEST(lookups_agree_with_a_byte_by_byte_search),
    CHECK_TEST(sections_are_numbered_from_one),
};
CHECK_MAIN(tests)
