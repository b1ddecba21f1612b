/* SPDX-License-Identifier: MIT */
/* Reading ELF headers: all kinds are read, and invalid fields are reported with their offsets. */
#include "image/image.h"

#include "base/counting_env.h"
#include "check.h"
#include "image/elf_builder.h"

/* A library with code, data, .bss and an entry point. */
static elf_builder *new_sample(int bits, bool big, uint16_t machine, uint64_t base)
{
    elf_builder *b = elf_new(bits, big, machine);

    b->base = base;
    elf_add(b, ".text", 1, ELF_ALLOC | ELF_CODE, "\xc3\xcc\xcc\xcc\xcc\xcc\xcc\xcc", 8);
    elf_add(b, ".data", 1, ELF_ALLOC | ELF_WRITE, "12345678", 8);
    b->entry = b->sections[1].address;
    elf_finish(b);
    return b;
}

static hotfn_status open_bytes(hotfn_image **image, const elf_builder *b, hotfn_error *err)
{
    return hotfn_image_open_bytes(image, b->file.data, b->file.size, "sample", NULL, err);
}

static void both_classes_and_byte_orders_are_read(void)
{
    for (int kind = 0; kind < 4; kind++) {
        int bits = kind & 1 ? 64 : 32;
        elf_builder *b = new_sample(bits, kind & 2, 21, 0x10000);
        hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
        hotfn_section section = HOTFN_SECTION_INIT;
        hotfn_image *image = NULL;
        if (!CHECK_EQ_I64(open_bytes(&image, b, NULL), HOTFN_OK)) {
            continue;
        }
        CHECK_EQ_I64(hotfn_image_get_info(image, &info), HOTFN_OK);
        CHECK_EQ_U64(info.bits, bits);
        CHECK_EQ_U64(info.raw_machine, 21);
        CHECK_EQ_U64(info.machine, HOTFN_MACHINE_OTHER);
        CHECK_EQ_U64(info.link_base, 0x10000);
        CHECK_EQ_U64(info.entry_rva, 1024);
        CHECK_EQ_U64((info.flags & HOTFN_IMAGE_BIG_ENDIAN) != 0, (kind & 2) != 0);
        CHECK(info.flags & HOTFN_IMAGE_EXECUTABLE && info.flags & HOTFN_IMAGE_STRIPPED);
        CHECK_EQ_I64(hotfn_image_get_section(image, 1, &section), HOTFN_OK);
        CHECK_STR(section.name, ".text");
        CHECK_EQ_U64(section.flags, HOTFN_SECTION_EXECUTE | HOTFN_SECTION_LOADED);
        CHECK_EQ_U64(section.rva, 1024);
        CHECK_EQ_U64(section.byte_count, 8);
        hotfn_image_close(image);
        free(b);
    }
}

static uint32_t machine_in(int bits, bool big_endian, uint16_t machine)
{
    elf_builder *b = new_sample(bits, big_endian, machine, 0);
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
    hotfn_image *image = NULL;

    if (CHECK_EQ_I64(open_bytes(&image, b, NULL), HOTFN_OK)) {
        hotfn_image_get_info(image, &info);
    }
    hotfn_image_close(image);
    free(b);
    return info.machine;
}

static uint32_t machine_of(int bits, uint16_t machine)
{
    return machine_in(bits, false, machine);
}

static void machines_are_recognised_by_number_and_class(void)
{
    CHECK_EQ_U64(machine_of(64, 62), HOTFN_MACHINE_X86_64);
    CHECK_EQ_U64(machine_of(32, 3), HOTFN_MACHINE_X86);
    CHECK_EQ_U64(machine_of(64, 183), HOTFN_MACHINE_ARM64);
    CHECK_EQ_U64(machine_of(32, 40), HOTFN_MACHINE_ARM);
    CHECK_EQ_U64(machine_of(32, 62), HOTFN_MACHINE_OTHER);        /* x32 */
    CHECK_EQ_U64(machine_of(32, 183), HOTFN_MACHINE_OTHER);       /* ILP32 */
    CHECK_EQ_U64(machine_in(64, true, 183), HOTFN_MACHINE_OTHER); /* aarch64_be */
    CHECK_EQ_U64(machine_of(64, 0xffff), HOTFN_MACHINE_OTHER);
}

static void expect_refusal(const void *bytes, size_t size, hotfn_status status, uint64_t offset,
                           const char *part)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_image *image = NULL;

    CHECK_EQ_I64(hotfn_image_open_bytes(&image, bytes, size, "bad", NULL, &err), status);
    CHECK(image == NULL);
    CHECK_STR(err.file, "bad");
    CHECK_EQ_U64(err.offset, offset);
    if (!CHECK(strstr(err.text, part) != NULL)) {
        printf("#   text: %s\n", err.text);
    }
}

static void what_is_no_elf_file_is_named(void)
{
    expect_refusal("", 0, HOTFN_E_FORMAT, 0, "empty");
    expect_refusal("hello", 5, HOTFN_E_FORMAT, 0, "neither an ELF nor a PE");
    expect_refusal("#! /bin/sh -e\nls\n", 17, HOTFN_E_FORMAT, 0, "interpreter (/bin/sh -e)");
    expect_refusal("MZ\x90", 3, HOTFN_E_FORMAT, 3, "DOS header");
    expect_refusal("\177ELF\2\1\1", 7, HOTFN_E_FORMAT, 4, "truncated");
    expect_refusal("\177ELF\3\1\1\0\0\0\0\0\0\0\0\0", 16, HOTFN_E_FORMAT, 4, "class");
    expect_refusal("\177ELF\2\3\1\0\0\0\0\0\0\0\0\0", 16, HOTFN_E_FORMAT, 5, "byte order");
    expect_refusal("\177ELF\2\1\2\0\0\0\0\0\0\0\0\0", 16, HOTFN_E_FORMAT, 6, "version");
    expect_refusal("\177ELF\2\1\1\0\0\0\0\0\0\0\0\0", 16, HOTFN_E_FORMAT, 16, "truncated");
}

static void object_files_and_core_dumps_are_not_served(void)
{
    elf_builder *b = new_sample(64, false, 62, 0);

    put_at(&b->file, 16, 1, 2);
    expect_refusal(b->file.data, b->file.size, HOTFN_E_UNSUPPORTED, 16, "linked");
    put_at(&b->file, 16, 4, 2);
    expect_refusal(b->file.data, b->file.size, HOTFN_E_UNSUPPORTED, 16, "core");
    put_at(&b->file, 16, 9, 2);
    expect_refusal(b->file.data, b->file.size, HOTFN_E_FORMAT, 16, "neither");
    free(b);
}

static void a_file_cut_anywhere_is_refused(void)
{
    elf_builder *b = new_sample(64, false, 62, 0);

    for (size_t size = 0; size < b->file.size; size++) {
        hotfn_error err = HOTFN_ERROR_INIT;
        hotfn_image *image = NULL;
        uint8_t *cut = malloc(size ? size : 1); /* so that asan sees a read past the cut */
        memcpy(cut, b->file.data, size);
        if (!CHECK_EQ_I64(hotfn_image_open_bytes(&image, cut, size, "cut", NULL, &err),
                          HOTFN_E_FORMAT)) {
            printf("#   cut at %zu\n", size);
        }
        CHECK(err.text[0] && err.offset != HOTFN_NO_OFFSET);
        hotfn_image_close(image);
        free(cut);
    }
    free(b);
}

static void tables_outside_the_file_are_refused(void)
{
    elf_builder *b = new_sample(64, false, 62, 0);

    put_at(&b->file, 32, UINT64_MAX - 8, 8); /* e_phoff */
    expect_refusal(b->file.data, b->file.size, HOTFN_E_FORMAT, UINT64_MAX - 8, "program headers");
    put_at(&b->file, 32, 64, 8);
    put_at(&b->file, 40, UINT64_MAX - 8, 8); /* e_shoff */
    expect_refusal(b->file.data, b->file.size, HOTFN_E_FORMAT, UINT64_MAX - 8, "section headers");
    put_at(&b->file, 40, b->headers_at, 8);
    put_at(&b->file, 58, 63, 2); /* e_shentsize */
    expect_refusal(b->file.data, b->file.size, HOTFN_E_FORMAT, b->headers_at, "63 bytes");
    free(b);
}

static void four_billion_sections_are_refused(void)
{
    elf_builder *b = elf_new_x86_64();

    elf_add(b, ".text", 1, ELF_ALLOC | ELF_CODE, "\xc3", 1);
    b->extended_counts = true;
    elf_finish(b);
    put_at(&b->file, elf_section_field(b, 0, 32), 0x100000000u, 8); /* sh_size of section 0 */
    expect_refusal(b->file.data, b->file.size, HOTFN_E_FORMAT, b->headers_at,
                   "4294967296 section headers");
    put_at(&b->file, elf_section_field(b, 0, 32), UINT64_MAX, 8);
    expect_refusal(b->file.data, b->file.size, HOTFN_E_FORMAT, b->headers_at, "section headers");
    free(b);
}

static void counts_in_section_0_are_followed(void)
{
    elf_builder *b = elf_new_x86_64();
    hotfn_image *image = NULL;

    elf_add(b, ".text", 1, ELF_ALLOC | ELF_CODE, "\xc3", 1);
    b->extended_counts = true;
    elf_finish(b);
    if (CHECK_EQ_I64(open_bytes(&image, b, NULL), HOTFN_OK)) {
        CHECK_EQ_U64(hotfn_image_get_section_count(image), 3);
        CHECK(hfn_elf_section_named(image, ".text") != NULL);
    }
    hotfn_image_close(image);
    free(b);
}

static void expect_segment_refusal(size_t field, uint64_t value, const char *part)
{
    elf_builder *b = new_sample(64, false, 62, 0);
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_image *image = NULL;

    put_at(&b->file, 64 + field, value, 8);
    CHECK_EQ_I64(open_bytes(&image, b, &err), HOTFN_E_FORMAT);
    if (!CHECK(strstr(err.text, part) != NULL)) {
        printf("#   text: %s\n", err.text);
    }
    free(b);
}

static void segments_that_lie_are_refused(void)
{
    expect_segment_refusal(8, 0x10000000, "truncated");                       /* p_offset */
    expect_segment_refusal(40, 1, "more bytes in the file");                  /* p_memsz  */
    expect_segment_refusal(16, UINT64_MAX - 8, "beyond the address space");   /* p_vaddr */
    expect_segment_refusal(0, 0x500000000u | 7, "no segment is ever loaded"); /* p_type, p_flags */
}

static void an_invalid_section_is_empty_and_reported(void)
{
    elf_builder *b = new_sample(64, false, 62, 0);
    hotfn_image *image = NULL;
    counting c;
    hotfn_env env = counting_env(&c);

    put_at(&b->file, elf_section_field(b, 2, 32), UINT64_MAX - 16, 8); /* size of .data */
    CHECK_EQ_I64(hotfn_image_open_bytes(&image, b->file.data, b->file.size, "lie", &env, NULL),
                 HOTFN_OK);
    CHECK_EQ_I64(c.warnings, 1);
    CHECK(strstr(c.last_log, ".data") != NULL);
    CHECK_EQ_U64(hfn_elf_section_bytes(image, hfn_elf_section_at(image, 2)).size, 0);
    CHECK_EQ_U64(hfn_elf_section_bytes(image, hfn_elf_section_at(image, 1)).size, 8);
    hotfn_image_close(image);
    CHECK_EQ_U64(c.live_bytes, 0);
    free(b);
}

static void cyclic_links_are_harmless(void)
{
    elf_builder *b = new_sample(64, false, 62, 0);
    hotfn_image *image = NULL;

    for (uint32_t i = 0; i < 3; i++) {
        put_at(&b->file, elf_section_field(b, i, 40), (i + 1) % 3, 4); /* sh_link */
    }
    CHECK_EQ_I64(open_bytes(&image, b, NULL), HOTFN_OK);
    hotfn_image_close(image);
    free(b);
}

static void names_outside_their_table_are_empty(void)
{
    elf_builder *b = new_sample(64, false, 62, 0);
    hotfn_image *image = NULL;

    put_at(&b->file, elf_section_field(b, 1, 0), UINT32_MAX, 4);
    CHECK_EQ_I64(open_bytes(&image, b, NULL), HOTFN_OK);
    CHECK_STR(hfn_elf_section_at(image, 1)->name, "");
    hotfn_image_close(image);
    put_at(&b->file, 62, 0xfff0, 2); /* e_shstrndx */
    CHECK_EQ_I64(open_bytes(&image, b, NULL), HOTFN_OK);
    CHECK_STR(hfn_elf_section_at(image, 2)->name, "");
    hotfn_image_close(image);
    free(b);
}

static void an_image_without_sections_gets_one_a_segment(void)
{
    elf_builder *b = elf_new_x86_64();
    hotfn_section section = HOTFN_SECTION_INIT;
    hotfn_image *image = NULL;

    elf_add(b, ".text", 1, ELF_ALLOC | ELF_CODE, "\xc3", 1);
    b->no_sections = true;
    elf_finish(b);
    if (CHECK_EQ_I64(open_bytes(&image, b, NULL), HOTFN_OK)) {
        CHECK_EQ_U64(hotfn_image_get_section_count(image), 1);
        CHECK_EQ_I64(hotfn_image_get_section(image, 0, &section), HOTFN_OK);
        CHECK_STR(section.name, "segment0");
        CHECK(section.flags & HOTFN_SECTION_EXECUTE);
        CHECK(hfn_image_is_code(image, 1024));
    }
    hotfn_image_close(image);
    free(b);
}

static void a_debug_file_is_read_although_its_segments_have_no_bytes(void)
{
    elf_builder *b = elf_new_x86_64();
    hotfn_image *image = NULL;
    uint64_t count = 1;

    elf_add(b, ".text", 8, ELF_ALLOC | ELF_CODE, NULL, 4096); /* NOBITS */
    elf_segment(b, 1, 5, 0, 1 << 20);
    elf_finish(b);
    if (CHECK_EQ_I64(open_bytes(&image, b, NULL), HOTFN_OK)) {
        CHECK(hotfn_image_get_bytes(image, 1024, &count) == NULL);
        CHECK_EQ_U64(count, 0);
    }
    hotfn_image_close(image);
    free(b);
}

static void dynamic_facts_are_flags(void)
{
    elf_builder *b = elf_new_x86_64();
    elf_bytes *dynamic = elf_buffer(b);
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
    hotfn_image *image = NULL;
    uint32_t interp, section;

    put_word(dynamic, 22), put_word(dynamic, 0); /* DT_TEXTREL */
    put_word(dynamic, 0), put_word(dynamic, 0);
    interp = elf_add(b, ".interp", 1, ELF_ALLOC, "/ld.so", 7);
    section = elf_add_buffer(b, ".dynamic", 6, ELF_ALLOC | ELF_WRITE, dynamic);
    b->type = 2;
    elf_segment_of(b, 2, section);
    elf_segment_of(b, 3, interp);
    elf_finish(b);
    if (CHECK_EQ_I64(open_bytes(&image, b, NULL), HOTFN_OK)) {
        hotfn_image_get_info(image, &info);
        CHECK_EQ_U64(info.flags, HOTFN_IMAGE_DYNAMIC | HOTFN_IMAGE_INTERPRETER | HOTFN_IMAGE_FIXED |
                                     HOTFN_IMAGE_TEXTREL | HOTFN_IMAGE_STRIPPED);
        CHECK_STR(info.interpreter, "/ld.so");
    }
    hotfn_image_close(image);
    free(b);
}

static const check_test tests[] = {
    CHECK_TEST(both_classes_and_byte_orders_are_read),
    CHECK_TEST(machines_are_recognised_by_number_and_class),
    CHECK_TEST(what_is_no_elf_file_is_named),
    CHECK_TEST(object_files_and_core_dumps_are_not_served),
    CHECK_TEST(a_file_cut_anywhere_is_refused),
    CHECK_TEST(tables_outside_the_file_are_refused),
    CHECK_TEST(four_billion_sections_are_refused),
    CHECK_TEST(counts_in_section_0_are_followed),
    CHECK_TEST(segments_that_lie_are_refused),
    CHECK_TEST(an_invalid_section_is_empty_and_reported),
    CHECK_TEST(cyclic_links_are_harmless),
    CHECK_TEST(names_outside_their_table_are_empty),
    CHECK_TEST(an_image_without_sections_gets_one_a_segment),
    CHECK_TEST(a_debug_file_is_read_although_its_segments_have_no_bytes),
    CHECK_TEST(dynamic_facts_are_flags),
};
CHECK_MAIN(tests)
