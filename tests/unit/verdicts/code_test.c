/* SPDX-License-Identifier: MIT */
/* Regions and their marks, also with section headers that overlap or are wrong. */
#include "verdicts/code.h"

#include "scene.h"

/* A library with executable sections at these offsets and sizes, over 0x400 bytes of code. */
static hotfn_image *open_sections(elf_builder *b, const uint64_t (*sections)[2], uint32_t count)
{
    uint8_t code[0x400];
    hotfn_image *image = NULL;

    memset(code, 0x90, sizeof code);
    elf_add(b, ".text", 1, ELF_ALLOC | ELF_CODE, code, sizeof code);
    for (uint32_t i = 0; i < count; i++) {
        elf_add(b, ".text.more", 1, ELF_ALLOC | ELF_CODE, code, 0);
        b->sections[2 + i].address = b->sections[2 + i].offset = sections[i][0];
        b->sections[2 + i].size = sections[i][1];
    }
    elf_finish(b);
    CHECK_EQ_I64(hotfn_image_open_bytes(&image, b->file.data, b->file.size, "x", NULL, NULL),
                 HOTFN_OK);
    return image;
}

static void check_regions(const hfn_code *code, uint64_t file_bytes)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < code->count; i++) {
        CHECK(code->regions[i].rva < code->regions[i].end);
        CHECK(i == 0 || code->regions[i - 1].end <= code->regions[i].rva);
        sum += code->regions[i].end - code->regions[i].rva;
    }
    CHECK(sum <= file_bytes);
}

static void regions_do_not_overlap_for_any_sections(void)
{
    static const uint64_t sections[][2] = { { 0x500, 0x100 },    { 0x500, UINT64_MAX - 0x400 },
                                            { 0x480, 0x100 },    { 0x7FF, 0x10 },
                                            { 0x400, 0x400 },    { 0x300, 0x200 },
                                            { 0x100000, 0x100 }, { 0x600, 0 } };
    hotfn_env env = hfn_env_fill(NULL);
    elf_builder *b = elf_new_x86_64();
    hotfn_image *image = open_sections(b, sections, 8);
    hfn_code code;

    if (CHECK(image && hfn_code_init(&code, image, &env))) {
        check_regions(&code, b->file.size);
        CHECK(hfn_code_region(&code, 0x400) && hfn_code_region(&code, 0x7FE));
        CHECK(!hfn_code_region(&code, 0x100000) && !hfn_code_region(&code, UINT64_MAX));
        hfn_code_finish(&code, &env);
    }
    hotfn_image_close(image);
    free(b);
}

static void marks_of_adjacent_bytes_are_independent(void)
{
    hotfn_env env = hfn_env_fill(NULL);
    elf_builder *b = elf_new_x86_64();
    hotfn_image *image = open_sections(b, NULL, 0);
    hfn_code code;

    CHECK(hfn_code_init(&code, image, &env));
    hfn_code_mark(&code, 0x401, HFN_MARK_CALLED);
    hfn_code_mark(&code, 0x401, HFN_MARK_JUMPED);
    hfn_code_mark(&code, 0x7FF, HFN_MARK_TAKEN | HFN_MARK_FROM_PART);
    hfn_code_mark(&code, 0x800, HFN_MARK_TAKEN); /* behind the end */
    hfn_code_mark(&code, 0x3FF, HFN_MARK_TAKEN);
    CHECK_EQ_U64(hfn_code_marks(&code, 0x400), 0);
    CHECK_EQ_U64(hfn_code_marks(&code, 0x401), HFN_MARK_CALLED | HFN_MARK_JUMPED);
    CHECK_EQ_U64(hfn_code_marks(&code, 0x402), 0);
    CHECK_EQ_U64(hfn_code_marks(&code, 0x7FE), 0);
    CHECK_EQ_U64(hfn_code_marks(&code, 0x7FF), HFN_MARK_TAKEN | HFN_MARK_FROM_PART);
    CHECK_EQ_U64(hfn_code_marks(&code, 0x800), 0);
    hfn_code_finish(&code, &env);
    hotfn_image_close(image);
    free(b);
}

static const check_test tests[] = {
    CHECK_TEST(regions_do_not_overlap_for_any_sections),
    CHECK_TEST(marks_of_adjacent_bytes_are_independent),
};
CHECK_MAIN(tests)
