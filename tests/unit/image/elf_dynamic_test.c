/* SPDX-License-Identifier: MIT */
/* The dynamic section: tags, tables, and the number of symbols by the hash tables. */
#include "image/image.h"

#include "check.h"
#include "image/elf_builder.h"

enum { DT_HASH = 4, DT_STRTAB = 5, DT_STRSZ = 10 };
#define DT_GNU_HASH 0x6ffffef5u

static hotfn_image *image_with(elf_builder *b, uint32_t tag, elf_bytes *table)
{
    hotfn_image *image = NULL;
    elf_bytes *dynamic = elf_buffer(b);
    uint32_t section = elf_add_buffer(b, ".table", 1, ELF_ALLOC, table);

    put_word(dynamic, tag), put_word(dynamic, b->sections[section].address);
    put_word(dynamic, DT_STRTAB), put_word(dynamic, b->sections[section].address);
    put_word(dynamic, DT_STRSZ), put_word(dynamic, 4);
    put_word(dynamic, 0), put_word(dynamic, 0);
    put_word(dynamic, 77), put_word(dynamic, 1); /* behind the end */
    elf_segment_of(b, 2, elf_add_buffer(b, ".dynamic", 6, ELF_ALLOC, dynamic));
    elf_finish(b);
    CHECK_EQ_I64(hotfn_image_open_bytes(&image, b->file.data, b->file.size, "d", NULL, NULL),
                 HOTFN_OK);
    return image;
}

static void tags_are_found_up_to_the_null_tag(void)
{
    elf_builder *b = elf_new(32, true, 8);
    elf_bytes *table = elf_buffer(b);
    hotfn_image *image;
    uint64_t value = 0;

    put_text(table, "abcdefgh");
    image = image_with(b, 1, table);
    CHECK(hfn_elf_dynamic(image, DT_STRSZ, &value) && value == 4);
    CHECK(!hfn_elf_dynamic(image, 77, &value));
    CHECK_EQ_U64(hfn_elf_dynamic_span(image, DT_STRTAB, DT_STRSZ).size, 4);
    CHECK_EQ_U64(hfn_elf_dynamic_span(image, DT_STRTAB, 99).size, 0);
    CHECK_EQ_U64(hfn_elf_dynamic_symbol_count(image), 0);
    hotfn_image_close(image);
    free(b);
}

static void the_hash_table_counts_the_symbols(void)
{
    elf_builder *b = elf_new_x86_64();
    elf_bytes *table = elf_buffer(b);
    hotfn_image *image;

    put(table, 1, 4), put(table, 42, 4);
    image = image_with(b, DT_HASH, table);
    CHECK_EQ_U64(hfn_elf_dynamic_symbol_count(image), 42);
    hotfn_image_close(image);
    free(b);
}

/* Two buckets, the first hashed symbol is 3; chains 3-4 and 5-6: seven symbols. */
static void the_gnu_hash_table_counts_the_symbols(void)
{
    elf_builder *b = elf_new_x86_64();
    elf_bytes *table = elf_buffer(b);
    hotfn_image *image;

    put(table, 2, 4), put(table, 3, 4), put(table, 1, 4), put(table, 0, 4);
    put_word(table, 0); /* bloom filter */
    put(table, 3, 4), put(table, 5, 4);
    put(table, 2, 4), put(table, 3, 4), put(table, 4, 4), put(table, 5, 4);
    image = image_with(b, DT_GNU_HASH, table);
    CHECK_EQ_U64(hfn_elf_dynamic_symbol_count(image), 7);
    hotfn_image_close(image);
    free(b);
}

static void a_gnu_hash_table_that_lies_counts_nothing(void)
{
    elf_builder *b = elf_new_x86_64();
    elf_bytes *table = elf_buffer(b);
    hotfn_image *image;

    put(table, UINT32_MAX, 4), put(table, 3, 4), put(table, UINT32_MAX, 4), put(table, 0, 4);
    image = image_with(b, DT_GNU_HASH, table);
    CHECK_EQ_U64(hfn_elf_dynamic_symbol_count(image), 0);
    hotfn_image_close(image);
    free(b);
}

static const check_test tests[] = {
    CHECK_TEST(tags_are_found_up_to_the_null_tag),
    CHECK_TEST(the_hash_table_counts_the_symbols),
    CHECK_TEST(the_gnu_hash_table_counts_the_symbols),
    CHECK_TEST(a_gnu_hash_table_that_lies_counts_nothing),
};
CHECK_MAIN(tests)
