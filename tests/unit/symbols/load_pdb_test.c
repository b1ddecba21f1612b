/* SPDX-License-Identifier: MIT */
/* Whole PDBs: a valid file is read completely, and damage is either harmless or reported with its
 * offset in the file. */
#include "base/counting_env.h"
#include "check.h"
#include "image/elf_builder.h"
#include "symbols/pdb_builder.h"

#include <hotfn/lowlevel/symbols.h>

static hotfn_status load(hotfn_symbols **out, const pdb_builder *b, uint32_t flags,
                         hotfn_error *err)
{
    hotfn_symbols_options options = HOTFN_SYMBOLS_OPTIONS_INIT;

    *out = NULL;
    options.flags = flags;
    return hotfn_symbols_pdb_from_bytes(out, b->file, b->file_bytes, "x.pdb", NULL, &options, NULL,
                                        err);
}

static hotfn_symbol symbol_named(const hotfn_symbols *symbols, const char *name)
{
    hotfn_symbol s = HOTFN_SYMBOL_INIT;

    for (uint32_t i = 0; i < hotfn_symbols_get_count(symbols); i++) {
        if (hotfn_symbols_get(symbols, i, &s) == HOTFN_OK && strcmp(s.name, name) == 0) {
            return s;
        }
    }
    CHECK_STR("(no symbol)", name);
    s = (hotfn_symbol)HOTFN_SYMBOL_INIT;
    return s;
}

static void check_symbol(const hotfn_symbols *symbols, const char *name, uint64_t rva,
                         uint64_t size, uint32_t kind, const char *module)
{
    hotfn_symbol s = symbol_named(symbols, name);

    CHECK_EQ_U64(s.rva, rva);
    CHECK_EQ_U64(s.byte_count, size);
    CHECK_EQ_U64(s.kind, kind);
    CHECK_STR(s.module, module);
    CHECK_EQ_U64(s.source, HOTFN_SOURCE_PDB);
}

static void check_everything(uint32_t block_bytes, bool scattered)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    pdb_builder *b = pdb_begin(block_bytes);
    hotfn_symbols *symbols;

    b->scattered = scattered;
    put_everything(b);
    pdb_finish(b);
    if (!CHECK_EQ_I64(load(&symbols, b, HOTFN_SYMBOLS_DATA, &err), HOTFN_OK)) {
        printf("#   %s\n", err.text);
    }
    if (symbols) {
        CHECK_EQ_U64(hotfn_symbols_get_count(symbols), 11);
        check_symbol(symbols, "@ILT+5(?one@@YAHXZ)", 0x1005, 5, HOTFN_SYMBOL_THUNK, "one.obj");
        check_symbol(symbols, "thunk", 0x1010, 6, HOTFN_SYMBOL_THUNK, "one.obj");
        check_symbol(symbols, "?one@@YAHXZ", 0x1020, 0, HOTFN_SYMBOL_FUNCTION, NULL);
        check_symbol(symbols, "by_id", 0x1030, 16, HOTFN_SYMBOL_FUNCTION, "one.obj");
        check_symbol(symbols, "local", 0x1040, 32, HOTFN_SYMBOL_FUNCTION, "two.obj");
        check_symbol(symbols, "label", 0x1050, 0, HOTFN_SYMBOL_LABEL, NULL);
        check_symbol(symbols, "data", 0x4008, 0, HOTFN_SYMBOL_DATA, NULL);
        check_symbol(symbols, "data_public", 0x4008, 0, HOTFN_SYMBOL_DATA, NULL);
        check_symbol(symbols, "kept", 0x4010, 0, HOTFN_SYMBOL_DATA, "two.obj");
        CHECK_EQ_U64(symbol_named(symbols, "local").flags, 0);
        CHECK_EQ_U64(symbol_named(symbols, "by_id").flags, HOTFN_SYMBOL_GLOBAL);
    }
    hotfn_symbols_destroy(symbols);
    pdb_free(b);
}

static void everything_is_read_with_blocks_of_each_size(void)
{
    for (uint32_t bytes = 512; bytes <= 32768; bytes *= 2) {
        check_everything(bytes, false);
        check_everything(bytes, true);
    }
}

static void variables_are_read_on_request_only(void)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    pdb_builder *b = pdb_begin(512);
    hotfn_symbols *symbols;

    put_everything(b);
    pdb_finish(b);
    CHECK_EQ_I64(load(&symbols, b, 0, &err), HOTFN_OK);
    CHECK_EQ_U64(hotfn_symbols_get_count(symbols), 8);
    hotfn_symbols_destroy(symbols);
    pdb_free(b);
}

static void names_that_cross_blocks_are_whole(void)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    pdb_builder *b = pdb_begin(512);
    hotfn_symbols *symbols;
    char name[200];

    b->scattered = true;
    for (uint32_t i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "%0150u", i);
        procedure(b, MODULE, 0x1110, name, 16 * i, 16);
    }
    pdb_finish(b);
    CHECK_EQ_I64(load(&symbols, b, 0, &err), HOTFN_OK);
    for (uint32_t i = 0; i < 100 && symbols; i++) {
        hotfn_symbol s = HOTFN_SYMBOL_INIT;
        snprintf(name, sizeof name, "%0150u", i);
        CHECK_EQ_I64(hotfn_symbols_get(symbols, i, &s), HOTFN_OK);
        CHECK_STR(s.name, name);
        CHECK_EQ_U64(s.rva, 0x1000 + 16 * i);
    }
    hotfn_symbols_destroy(symbols);
    pdb_free(b);
}

static void the_id_is_the_guid_and_the_age_of_the_debug_information(void)
{
    hotfn_symbols_info info = HOTFN_SYMBOLS_INFO_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    pdb_builder *b = pdb_begin(4096);
    hotfn_symbols *symbols;

    b->age = 0x0102;
    pdb_finish(b);
    CHECK_EQ_I64(load(&symbols, b, 0, &err), HOTFN_OK);
    CHECK_EQ_I64(hotfn_symbols_get_info(symbols, &info), HOTFN_OK);
    CHECK_EQ_U64(info.machine, HOTFN_MACHINE_X86_64);
    CHECK_EQ_U64(info.id_kind, HOTFN_ID_PDB);
    CHECK_EQ_U64(info.id_bytes, 20);
    CHECK_MEM(info.id, "0123456789abcdef\x02\x01\0\0", 20);
    CHECK_STR(info.path, "x.pdb");
    hotfn_symbols_destroy(symbols);
    pdb_free(b);
}

/* An ELF image refers to no PDB, so every PDB belongs to another build. */
static void another_builds_pdb_is_refused_unless_forced(void)
{
    hotfn_symbols_options options = HOTFN_SYMBOLS_OPTIONS_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    elf_builder *elf = elf_new_x86_64();
    pdb_builder *b = pdb_begin(4096);
    hotfn_symbols *symbols = NULL;
    hotfn_image *image = NULL;
    counting c;
    hotfn_env env = counting_env(&c);

    elf_add(elf, ".text", 1, ELF_ALLOC | ELF_CODE, "\xc3", 1);
    elf_finish(elf);
    pdb_finish(b);
    CHECK_EQ_I64(hotfn_image_open_bytes(&image, elf->file.data, elf->file.size, "game", NULL, &err),
                 HOTFN_OK);
    CHECK_EQ_I64(hotfn_symbols_pdb_from_bytes(&symbols, b->file, b->file_bytes, "x.pdb", image,
                                              &options, &env, &err),
                 HOTFN_E_MISMATCH);
    CHECK(symbols == NULL && strstr(err.text, "age 1") && strstr(err.text, "game"));
    options.flags = HOTFN_SYMBOLS_FORCE;
    CHECK_EQ_I64(hotfn_symbols_pdb_from_bytes(&symbols, b->file, b->file_bytes, "x.pdb", image,
                                              &options, &env, &err),
                 HOTFN_OK);
    CHECK_EQ_I64(c.warnings, 1);
    hotfn_symbols_destroy(symbols);
    hotfn_image_close(image);
    free(elf);
    pdb_free(b);
}

static void check_refused(const char *bytes, size_t size, hotfn_status status, const char *why)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_symbols *symbols = NULL;

    CHECK_EQ_I64(
        hotfn_symbols_pdb_from_bytes(&symbols, bytes, size, "x.pdb", NULL, NULL, NULL, &err),
        status);
    CHECK(symbols == NULL && strstr(err.text, why));
}

static void other_formats_are_named_and_refused(void)
{
    pdb_builder *b = pdb_begin(512);

    check_refused("BSJB\1\0\1\0", 8, HOTFN_E_UNSUPPORTED, "portable .NET");
    check_refused("Microsoft C/C++ program database 2.00\r\n\032JG", 44, HOTFN_E_UNSUPPORTED,
                  "MSF 2.00");
    check_refused("Microsoft MSFZ Container\r\n\032ALD\0\0", 32, HOTFN_E_UNSUPPORTED, "MSFZ");
    check_refused("MZ", 2, HOTFN_E_FORMAT, "not a PDB");
    check_refused("", 0, HOTFN_E_FORMAT, "not a PDB");
    put_info(b);
    lay_out(b);
    check_refused((const char *)b->file, b->file_bytes, HOTFN_E_UNSUPPORTED, "only types");
    pdb_free(b);
}

/* Loading must not crash; a format error must carry its offset. */
static void load_damaged(const pdb_builder *b, uint64_t size)
{
    hotfn_symbols_options options = HOTFN_SYMBOLS_OPTIONS_INIT;
    hotfn_source_line line = HOTFN_SOURCE_LINE_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_symbols *symbols = NULL;
    hotfn_status status;

    options.flags = HOTFN_SYMBOLS_DATA;
    status =
        hotfn_symbols_pdb_from_bytes(&symbols, b->file, size, "x.pdb", NULL, &options, NULL, &err);
    CHECK((status == HOTFN_OK) == (symbols != NULL));
    if (status == HOTFN_OK) {
        for (uint64_t rva = 0x1000; rva < 0x1040; rva += 8) {
            hotfn_symbols_find_line(symbols, rva, &line);
        }
    } else if (!CHECK(status == HOTFN_E_UNSUPPORTED || err.offset != HOTFN_NO_OFFSET)) {
        printf("#   %s\n", err.text);
    }
    hotfn_symbols_destroy(symbols);
}

static void each_damaged_byte_is_reported_at_its_offset_or_harmless(void)
{
    static const uint8_t values[] = { 0, 1, 0x7f, 0xff };
    pdb_builder *b = pdb_begin(512);

    put_everything(b);
    omap(b, 0x1000, 0x1000);
    omap(b, 0x1030, 0x2000);
    pdb_finish(b);
    for (uint64_t at = 0; at < b->file_bytes; at++) {
        uint8_t good = b->file[at];
        for (size_t i = 0; i < sizeof values; i++) {
            b->file[at] = values[i];
            if (values[i] != good) {
                load_damaged(b, b->file_bytes);
            }
        }
        b->file[at] = good;
    }
    pdb_free(b);
}

static void a_truncated_file_is_reported_with_an_offset_or_harmless(void)
{
    pdb_builder *b = pdb_begin(512);

    put_everything(b);
    pdb_finish(b);
    for (uint64_t size = 0; size < b->file_bytes; size += 7) {
        load_damaged(b, size);
    }
    pdb_free(b);
}

static const check_test tests[] = {
    CHECK_TEST(everything_is_read_with_blocks_of_each_size),
    CHECK_TEST(variables_are_read_on_request_only),
    CHECK_TEST(names_that_cross_blocks_are_whole),
    CHECK_TEST(the_id_is_the_guid_and_the_age_of_the_debug_information),
    CHECK_TEST(another_builds_pdb_is_refused_unless_forced),
    CHECK_TEST(other_formats_are_named_and_refused),
    CHECK_TEST(each_damaged_byte_is_reported_at_its_offset_or_harmless),
    CHECK_TEST(a_truncated_file_is_reported_with_an_offset_or_harmless),
};
CHECK_MAIN(tests)
