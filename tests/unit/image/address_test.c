/* SPDX-License-Identifier: MIT */
/* RVAs: whether they are code, the section that they are in, and holes between segments. */
#include "image/image.h"

#include "check.h"
#include "image/elf_builder.h"

static hotfn_image *open_builder(const elf_builder *b)
{
    hotfn_image *image = NULL;

    CHECK_EQ_I64(hotfn_image_open_bytes(&image, b->file.data, b->file.size, "a", NULL, NULL),
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

/* Returns the size of the tail of a segment with 3 bytes of code up to 0x403.  The file has zeros
 * up to zeros_end and then data, whose segment is mapped `pages` pages further. */
static uint64_t tail_of(uint32_t flags, uint64_t zeros_end, uint64_t pages)
{
    static const char zeros[0x2000];
    elf_builder *b = elf_new_x86_64();
    hotfn_image *image;
    uint64_t tail;

    elf_add(b, ".text", 1, ELF_ALLOC | ELF_CODE, "\x31\xc0\xc3", 3);
    put_data(&b->file, zeros, zeros_end - b->file.size);
    put_data(&b->file, "12345678", 8);
    elf_segment(b, 1, flags, 0, 0x403);
    elf_segment(b, 1, 6, zeros_end, 8)->address = 0x1000 * pages + 0x800;
    elf_finish(b);
    image = open_builder(b);
    tail = hfn_image_tail_bytes(image, 0x403);
    CHECK_EQ_U64(hfn_image_span(image, 0x400).size, 3 + tail);
    CHECK_EQ_U64(hfn_image_span(image, 0x403).size, tail);
    CHECK_EQ_U64(hfn_image_span(image, 0x403 + tail).size, 0);
    CHECK_EQ_U64(hfn_image_tail_bytes(image, 0x402), 0);
    CHECK_EQ_U64(hfn_image_tail_bytes(image, 0x1000 * pages + 0x808), 0); /* no code */
    CHECK_EQ_U64(hfn_image_section_of(image, 0x403), UINT32_MAX);
    hotfn_image_close(image);
    free(b);
    return tail;
}

static void zeros_behind_code_up_to_the_next_page_are_its_tail(void)
{
    CHECK_EQ_U64(tail_of(5, 0x1200, 1), 0x1000 - 0x403);
    CHECK_EQ_U64(tail_of(5, 0x500, 1), 0x500 - 0x403); /* up to what is not 0 */
    CHECK_EQ_U64(tail_of(5, 0x403, 1), 0);
    CHECK_EQ_U64(tail_of(5, 0x1200, 0), 0); /* another segment shares the page */
    CHECK_EQ_U64(tail_of(4, 0x1200, 1), 0);
    CHECK_EQ_U64(tail_of(7, 0x1200, 1), 0); /* the program may write there */
}

static const check_test tests[] = {
    CHECK_TEST(code_is_what_executable_sections_hold_not_the_segment),
    CHECK_TEST(thread_local_bss_covers_nothing),
    CHECK_TEST(addresses_in_no_segment_have_no_rva),
    CHECK_TEST(zeros_behind_code_up_to_the_next_page_are_its_tail),
};
CHECK_MAIN(tests)
