/* SPDX-License-Identifier: MIT */
/* Claims about RVAs: what is code, which section, and where holes are. */
#include "image/image.h"

#include "check.h"
#include "image/elf_builder.h"

static hotfn_image *open_builder(const elf_builder *b)
{
    hotfn_image *image = NULL;

    CHECK_EQ_I64(hotfn_image_from_bytes(&image, b->file.data, b->file.size, "a", NULL, NULL),
                 HOTFN_OK);
    return image;
}

static void code_is_what_executable_sections_hold_not_the_segment(void)
{
    elf_builder *b = elf_new_x86_64();
    hotfn_image *image;

    b->base = 0x400000;
    elf_add(b, ".rodata", 1, ELF_ALLOC, "12345678", 8);
    elf_add(b, ".text", 1, ELF_ALLOC | ELF_CODE, "\xc3\xc3", 2);
    elf_add(b, ".fini", 1, ELF_ALLOC | ELF_CODE, "\xc3", 1);
    elf_finish(b);
    image = open_builder(b);
    CHECK(!hfn_image_is_code(image, 1024));
    CHECK(hfn_image_is_code(image, 1040) && hfn_image_is_code(image, 1041));
    CHECK(!hfn_image_is_code(image, 1042)); /* the hole before .fini */
    CHECK(hfn_image_is_code(image, 1056));
    CHECK(!hfn_image_is_code(image, UINT64_MAX));
    CHECK_EQ_U64(hfn_image_section_of(image, 1041), 2);
    CHECK_EQ_U64(hfn_image_section_of(image, 1042), UINT32_MAX);
    hotfn_image_close(image);
    free(b);
}

static void thread_local_bss_covers_nothing(void)
{
    elf_builder *b = elf_new_x86_64();
    hotfn_image *image;

    elf_add(b, ".tbss", 8, ELF_ALLOC | ELF_WRITE | 0x400, NULL, 64);
    elf_add(b, ".data", 1, ELF_ALLOC | ELF_WRITE, "12345678", 8);
    CHECK_EQ_U64(b->sections[1].address, b->sections[2].address);
    elf_finish(b);
    image = open_builder(b);
    CHECK_EQ_U64(hfn_image_section_of(image, 1024), 2);
    hotfn_image_close(image);
    free(b);
}

static void addresses_in_no_segment_have_no_rva(void)
{
    elf_builder *b = elf_new_x86_64();
    hotfn_image *image;
    uint64_t rva = 7;

    b->base = 0x400000;
    elf_add(b, ".text", 1, ELF_ALLOC | ELF_CODE, "\xc3", 1);
    elf_segment(b, 1, 5, 1024, 1);
    elf_segment(b, 1, 6, 512, 8)->address = 0x500123;
    elf_finish(b);
    image = open_builder(b);
    CHECK(hfn_image_rva(image, 0x400400, &rva) && rva == 0x400);
    CHECK(hfn_image_rva(image, 0x50012a, &rva) && rva == 0x10012a);
    CHECK(!hfn_image_rva(image, 0x50012b, &rva));
    CHECK(!hfn_image_rva(image, 0x4003ff, &rva) && rva == 0x10012a);
    CHECK(!hfn_image_rva(image, 0, &rva));
    CHECK(hfn_image_span(image, 0x100124).data == b->file.data + 513);
    CHECK_EQ_U64(hfn_image_span(image, 0x100124).size, 7);
    hotfn_image_close(image);
    free(b);
}

static const check_test tests[] = {
    CHECK_TEST(code_is_what_executable_sections_hold_not_the_segment),
    CHECK_TEST(thread_local_bss_covers_nothing),
    CHECK_TEST(addresses_in_no_segment_have_no_rva),
};
CHECK_MAIN(tests)
