/* SPDX-License-Identifier: MIT */
/* The function table of Go programs without a symbol table. */
#include <hotfn/lowlevel/symbols.h>

#include "check.h"
#include "image/elf_builder.h"

/* Offsets within the table. */
enum { NAMES = 128, ENTRIES = 192, RECORDS = 96, TABLE_BYTES = 384, TEXT_BYTES = 64 };

static void store(uint8_t *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

/* Functions main.first at 0 and main.second at 32; the code ends at 48. */
static void fill_table(uint8_t table[TABLE_BYTES], uint32_t magic, uint64_t code)
{
    static const uint64_t begins[] = { 0, 32, 48 };
    int is_old = magic == 0xfffffffa, bytes = is_old ? 8 : 4;
    uint8_t *words = table + 8 + (is_old ? 0 : 8), *entries = table + ENTRIES;

    memset(table, 0, TABLE_BYTES);
    store(table, magic, 4);
    table[6] = 1;
    table[7] = 8;
    store(table + 8, 2, 8);
    if (!is_old) {
        store(table + 24, code, 8);
    }
    store(words + 16, NAMES, 8);
    store(words + 48, ENTRIES, 8);
    memcpy(table + NAMES, "\0main.first\0main.second", 24);
    for (int i = 0; i < 3; i++) {
        store(entries + 2 * i * bytes, begins[i] + (is_old ? code : 0), bytes);
        store(entries + (2 * i + 1) * bytes, RECORDS + 16u * (unsigned)i, i < 2 ? bytes : 0);
    }
    store(entries + RECORDS + bytes, 1, 4);
    store(entries + RECORDS + 16 + bytes, 12, 4);
}

/* Returns the number of symbols; *first receives the first one, if any.  The byte at `broken_at` is
 * replaced. */
static uint32_t load_broken(uint32_t magic, uint32_t broken_at, uint8_t byte, hotfn_symbol *first)
{
    static const char code[TEXT_BYTES] = { '\xc3' };
    uint8_t table[TABLE_BYTES];
    elf_builder *b = elf_new_x86_64();
    hotfn_symbols *symbols = NULL;
    hotfn_image *image = NULL;
    uint32_t count = 0;

    elf_add(b, ".text", 1, ELF_ALLOC | ELF_CODE, code, sizeof code);
    fill_table(table, magic, b->sections[1].address);
    table[broken_at] = broken_at ? byte : table[0];
    elf_add(b, ".gopclntab", 1, ELF_ALLOC, table, sizeof table);
    elf_finish(b);
    CHECK_EQ_I64(hotfn_image_open_bytes(&image, b->file.data, b->file.size, "go", NULL, NULL),
                 HOTFN_OK);
    if (CHECK_EQ_I64(hotfn_symbols_load(&symbols, image, NULL, NULL, NULL), HOTFN_OK)) {
        count = hotfn_symbols_get_count(symbols);
        hotfn_symbols_get(symbols, 0, first);
        CHECK(count == 0 || first->rva < ELF_HEAD_BYTES + TEXT_BYTES);
        if (count == 2) {
            CHECK(strcmp(first->name, "main.first") == 0 || broken_at != 0);
        }
    }
    hotfn_symbols_destroy(symbols);
    hotfn_image_close(image);
    free(b);
    return count;
}

static void functions_of_all_versions_are_read(void)
{
    static const uint32_t magics[] = { 0xfffffffa, 0xfffffff0, 0xfffffff1 };

    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
        hotfn_symbol first = HOTFN_SYMBOL_INIT;
        CHECK_EQ_U64(load_broken(magics[i], 0, 0, &first), 2);
        CHECK_EQ_U64(first.source, HOTFN_SOURCE_GO);
        CHECK_EQ_U64(first.kind, HOTFN_SYMBOL_FUNCTION);
        CHECK_EQ_U64(first.byte_count, 32);
    }
}

static void unknown_versions_have_no_functions(void)
{
    hotfn_symbol first = HOTFN_SYMBOL_INIT;

    CHECK_EQ_U64(load_broken(0xfffffff7, 0, 0, &first), 0);
    CHECK_EQ_U64(load_broken(0xfffffff0, 7, 3, &first), 0);    /* words of 3 bytes */
    CHECK_EQ_U64(load_broken(0xfffffff0, 10, 255, &first), 0); /* more functions than fit */
}

static void no_changed_byte_leads_outside(void)
{
    for (uint32_t at = 1; at < TABLE_BYTES; at++) {
        for (int bit = 0; bit < 8; bit++) {
            hotfn_symbol first = HOTFN_SYMBOL_INIT;
            CHECK(load_broken(at % 2 ? 0xfffffff0 : 0xfffffffa, at, (uint8_t)(1 << bit), &first) <=
                  2);
        }
    }
}

static const check_test tests[] = {
    CHECK_TEST(functions_of_all_versions_are_read),
    CHECK_TEST(unknown_versions_have_no_functions),
    CHECK_TEST(no_changed_byte_leads_outside),
};

int main(int argc, char **argv)
{
    return check_run(tests, sizeof tests / sizeof *tests, argc > 1 ? argv[1] : NULL);
}
