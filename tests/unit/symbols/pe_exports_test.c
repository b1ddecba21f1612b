/* SPDX-License-Identifier: MIT */
/* Exports and COFF symbols of PE images: which rows are read, and which invalid fields are reported
 * with their offset. */
#include "symbols/pe_exports.h"

#include "base/counting_env.h"
#include "check.h"
#include "image/pe_sample.h"

/* File offsets; .rdata is the second section. */
enum { RDATA_OFFSET = PE_HEAD_BYTES + 512, DIRECTORY = RDATA_OFFSET + 0x40 };

static hotfn_status load(hotfn_symbols **out, hotfn_image **image, const pe_builder *b,
                         hotfn_error *err)
{
    hotfn_symbols_options options = HOTFN_SYMBOLS_OPTIONS_INIT;

    options.flags = HOTFN_SYMBOLS_DATA;
    *image = NULL;
    *out = NULL;
    if (!CHECK_EQ_I64(hotfn_image_open_bytes(image, b->data, b->size, "sample", NULL, err),
                      HOTFN_OK)) {
        exit(1);
    }
    return hotfn_symbols_load(out, *image, &options, NULL, err);
}

static hotfn_symbol named(const hotfn_symbols *symbols, const char *name)
{
    hotfn_symbol s = HOTFN_SYMBOL_INIT;

    for (uint32_t i = 0; i < hotfn_symbols_get_count(symbols); i++) {
        hotfn_symbols_get(symbols, i, &s);
        if (strcmp(s.name, name) == 0) {
            return s;
        }
    }
    return (hotfn_symbol)HOTFN_SYMBOL_INIT;
}

static void exports_and_coff_symbols_are_taken(void)
{
    pe_builder *b = pe_new_sample();
    hotfn_symbols *symbols;
    hotfn_image *image;

    CHECK_EQ_I64(load(&symbols, &image, b, NULL), HOTFN_OK);
    CHECK_EQ_U64(hotfn_symbols_get_count(symbols), 4);
    CHECK_EQ_U64(named(symbols, "guarded").rva, PE_GUARDED);
    CHECK_EQ_U64(named(symbols, "guarded").flags, HOTFN_SYMBOL_GLOBAL | HOTFN_SYMBOL_EXPORTED);
    CHECK_EQ_U64(named(symbols, "guarded").kind, HOTFN_SYMBOL_FUNCTION);
    CHECK_EQ_U64(named(symbols, "#4").rva, PE_PLAIN);
    CHECK_EQ_U64(named(symbols, "relocat").rva, PE_RELOCATED);
    CHECK_EQ_U64(named(symbols, "relocat").kind, HOTFN_SYMBOL_FUNCTION);
    CHECK_EQ_U64(named(symbols, "a_long_named_label").kind, HOTFN_SYMBOL_LABEL);
    hotfn_symbols_destroy(symbols);
    hotfn_image_close(image);
    free(b);
}

static void exports_are_rows_and_a_forwarder_has_no_address(void)
{
    pe_builder *b = pe_new_sample();
    hotfn_exports *exports = NULL;
    hotfn_symbols *symbols;
    hotfn_image *image;
    hotfn_exported e = HOTFN_EXPORTED_INIT;

    load(&symbols, &image, b, NULL);
    CHECK_EQ_I64(hotfn_exports_load(&exports, image, NULL, NULL, NULL), HOTFN_OK);
    CHECK_EQ_U64(hotfn_exports_get_count(exports), 3);
    CHECK_EQ_I64(hotfn_exports_get(exports, 1, &e), HOTFN_OK);
    CHECK_EQ_U64(e.ordinal, 4);
    CHECK(e.name == NULL && e.forward == NULL);
    CHECK_EQ_I64(hotfn_exports_get(exports, 2, &e), HOTFN_OK);
    CHECK_EQ_U64(e.ordinal, 5);
    CHECK_EQ_U64(e.rva, 0);
    CHECK_STR(e.name, "Sleepy");
    CHECK_STR(e.forward, "OTHER.Sleep");
    CHECK(e.target_path == NULL);
    CHECK_EQ_I64(hotfn_exports_get(exports, 3, &e), HOTFN_E_NOT_FOUND);
    hotfn_exports_destroy(exports);
    hotfn_symbols_destroy(symbols);
    hotfn_image_close(image);
    free(b);
}

static void exports_are_found_by_name_and_by_number(void)
{
    static const struct {
        const char *name;
        uint64_t rva;
    } known[] = { { "Sleepy", 0 }, { "guarded", PE_GUARDED }, { "#4", PE_PLAIN } };
    pe_builder *b = pe_new_sample();
    hotfn_symbols *symbols;
    hotfn_image *image;
    hfn_exports exports;
    hfn_export found;

    load(&symbols, &image, b, NULL);
    CHECK_EQ_I64(hfn_exports_open(&exports, image, NULL), HOTFN_OK);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        CHECK(hfn_exports_find(&exports, known[i].name, &found));
        CHECK_EQ_U64(found.rva, known[i].rva);
    }
    CHECK(!hfn_exports_find(&exports, "Sleep", &found));
    CHECK(!hfn_exports_find(&exports, "zzz", &found));
    CHECK(!hfn_exports_find(&exports, "#6", &found) && !hfn_exports_find(&exports, "#2", &found));
    hotfn_symbols_destroy(symbols);
    hotfn_image_close(image);
    free(b);
}

static void check_lie_is_refused(uint32_t at, uint32_t value, uint64_t offset, const char *part)
{
    pe_builder *b = pe_new_sample();
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_symbols *symbols;
    hotfn_image *image;

    pe_put(b, at, value, 4);
    CHECK_EQ_I64(load(&symbols, &image, b, &err), HOTFN_E_FORMAT);
    CHECK_EQ_U64(err.offset, offset);
    if (!CHECK(strstr(err.text, part) != NULL)) {
        printf("#   text: %s\n", err.text);
    }
    hotfn_symbols_destroy(symbols);
    hotfn_image_close(image);
    free(b);
}

static void invalid_tables_are_reported_with_their_offset(void)
{
    check_lie_is_refused(DIRECTORY + 20, UINT32_MAX, DIRECTORY + 20, "4294967295 exports");
    check_lie_is_refused(DIRECTORY + 24, UINT32_MAX, DIRECTORY + 24, "4294967295 names");
    check_lie_is_refused(DIRECTORY + 24, 65536, DIRECTORY + 24, "65536 names");
    check_lie_is_refused(DIRECTORY + 28, 0x70000000, DIRECTORY + 20, "3 exports");
    check_lie_is_refused(DIRECTORY + 32, 0x70000000, DIRECTORY + 24, "2 names");
    check_lie_is_refused(DIRECTORY + 36, 0x23ff, DIRECTORY + 24, "2 names");
}

/* The name of the export lies outside the file or has no end, or its function does not exist. */
static void a_single_broken_export_is_skipped(void)
{
    static const struct {
        uint32_t at, value;
    } lies[] = {
        { DIRECTORY + 0x34 + 4, 0x70000000 }, /* the name of "guarded" */
        { DIRECTORY + 0x34 + 4, 0x23ff },
        { DIRECTORY + 0x3e, 0xffff },
        { DIRECTORY + 0x28, 0x70000000 }, /* its address */
    };

    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        pe_builder *b = pe_new_sample();
        hotfn_symbols *symbols;
        hotfn_image *image;
        pe_put(b, lies[i].at, lies[i].value, i == 2 ? 2 : 4);
        b->data[RDATA_OFFSET + 0x3ff] = 'x';
        CHECK_EQ_I64(load(&symbols, &image, b, NULL), HOTFN_OK);
        CHECK(named(symbols, "guarded").kind == 0);
        CHECK_EQ_U64(named(symbols, "#4").rva, PE_PLAIN);
        hotfn_symbols_destroy(symbols);
        hotfn_image_close(image);
        free(b);
    }
}

/* The pointer to the table leads outside the file, or the table is longer than the file: it is read
 * as empty, with a warning. */
static void a_symbol_table_outside_the_file_is_empty(void)
{
    for (int kind = 0; kind < 2; kind++) {
        pe_builder *b = pe_new_sample();
        counting c;
        hotfn_env env = counting_env(&c);
        hotfn_image *image = NULL;
        hotfn_symbols *symbols = NULL;
        pe_put(b, PE_FILE_AT + (kind ? 8 : 12), UINT32_MAX, 4);
        CHECK_EQ_I64(hotfn_image_open_bytes(&image, b->data, b->size, "s", &env, NULL), HOTFN_OK);
        CHECK_EQ_I64(hotfn_symbols_load(&symbols, image, NULL, &env, NULL), HOTFN_OK);
        CHECK(strstr(c.last_log, "outside the file") != NULL);
        CHECK(named(symbols, "relocat").kind == 0);
        CHECK_EQ_U64(named(symbols, "guarded").rva, PE_GUARDED);
        hotfn_symbols_destroy(symbols);
        hotfn_image_close(image);
        free(b);
    }
}

static const check_test tests[] = {
    CHECK_TEST(exports_and_coff_symbols_are_taken),
    CHECK_TEST(exports_are_rows_and_a_forwarder_has_no_address),
    CHECK_TEST(exports_are_found_by_name_and_by_number),
    CHECK_TEST(invalid_tables_are_reported_with_their_offset),
    CHECK_TEST(a_single_broken_export_is_skipped),
    CHECK_TEST(a_symbol_table_outside_the_file_is_empty),
};
CHECK_MAIN(tests)
