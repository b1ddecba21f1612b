/* SPDX-License-Identifier: MIT */
/* Image ids: build-ids, and the hash of the code that replaces a missing build-id. */
#include "image/image.h"

#include "check.h"
#include "image/elf_builder.h"

static void put_note(elf_bytes *b, const char *name, uint32_t type, const void *data, uint32_t size,
                     size_t alignment)
{
    put(b, strlen(name) + 1, 4), put(b, size, 4), put(b, type, 4);
    put_text(b, name);
    put_align(b, alignment);
    put_data(b, data, size);
    put_align(b, alignment);
}

static hotfn_image_info info_of(const elf_builder *b)
{
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
    hotfn_image *image = NULL;

    CHECK_EQ_I64(hotfn_image_open_bytes(&image, b->file.data, b->file.size, "i", NULL, NULL),
                 HOTFN_OK);
    hotfn_image_get_info(image, &info);
    info.path = NULL; /* a view into the image, which is closed next */
    hotfn_image_close(image);
    return info;
}

static void the_build_id_is_found_behind_other_notes(void)
{
    for (uint32_t alignment = 4; alignment <= 8; alignment += 4) {
        elf_builder *b = elf_new_x86_64();
        elf_bytes *notes = elf_buffer(b);
        hotfn_image_info info;
        put_note(notes, "GNU", 5, "12345", 5, alignment);
        put_note(notes, "Go", 3, "no", 2, alignment);
        put_note(notes, "GNU", 3, "abcdefghijklmnopqrst", 20, alignment);
        uint32_t section = elf_add_buffer(b, ".notes", 7, ELF_ALLOC, notes);
        elf_segment_of(b, 4, section)->alignment = alignment;
        elf_finish(b);
        info = info_of(b);
        CHECK_EQ_U64(info.id_kind, HOTFN_ID_BUILD_ID);
        CHECK_EQ_U64(info.id_bytes, 20);
        CHECK_MEM(info.id, "abcdefghijklmnopqrst", 20);
        free(b);
    }
}

static void the_build_id_is_found_in_a_section_without_a_segment(void)
{
    elf_builder *b = elf_new_x86_64();
    elf_bytes *notes = elf_buffer(b);
    hotfn_image_info info;

    put_note(notes, "GNU", 3, "12345678", 8, 4);
    elf_add_buffer(b, ".note.gnu.build-id", 7, 0, notes);
    elf_finish(b);
    info = info_of(b);
    CHECK_EQ_U64(info.id_kind, HOTFN_ID_BUILD_ID);
    CHECK_EQ_U64(info.id_bytes, 8);
    free(b);
}

static void an_id_longer_than_the_field_is_truncated(void)
{
    elf_builder *b = elf_new_x86_64();
    elf_bytes *notes = elf_buffer(b);
    char id[100];
    hotfn_image_info info;

    memset(id, 'x', sizeof id);
    put_note(notes, "GNU", 3, id, sizeof id, 4);
    elf_add_buffer(b, ".note.gnu.build-id", 7, 0, notes);
    elf_finish(b);
    info = info_of(b);
    CHECK_EQ_U64(info.id_bytes, 32);
    free(b);
}

static void a_note_with_a_wrong_size_ends_the_search(void)
{
    elf_builder *b = elf_new_x86_64();
    elf_bytes *notes = elf_buffer(b);
    hotfn_image_info info;

    put(notes, 4, 4), put(notes, UINT32_MAX, 4), put(notes, 3, 4);
    put_text(notes, "GNU");
    elf_add_buffer(b, ".note.gnu.build-id", 7, 0, notes);
    elf_finish(b);
    info = info_of(b);
    CHECK_EQ_U64(info.id_kind, HOTFN_ID_CODE_HASH);
    free(b);
}

/* The test vector of the FNV authors: FNV-1a 64 of "foobar" is 85944171f73967e8. */
static void without_a_build_id_the_code_is_hashed(void)
{
    elf_builder *b = elf_new_x86_64();
    hotfn_image_info info;

    elf_add(b, ".text", 1, ELF_ALLOC | ELF_CODE, "foo", 3);
    elf_add(b, ".data", 1, ELF_ALLOC | ELF_WRITE, "xxx", 3);
    elf_add(b, ".fini", 1, ELF_ALLOC | ELF_CODE, "bar", 3);
    elf_finish(b);
    info = info_of(b);
    CHECK_EQ_U64(info.id_kind, HOTFN_ID_CODE_HASH);
    CHECK_EQ_U64(info.id_bytes, 8);
    CHECK_MEM(info.id, "\x85\x94\x41\x71\xf7\x39\x67\xe8", 8);
    free(b);
}

static const check_test tests[] = {
    CHECK_TEST(the_build_id_is_found_behind_other_notes),
    CHECK_TEST(the_build_id_is_found_in_a_section_without_a_segment),
    CHECK_TEST(an_id_longer_than_the_field_is_truncated),
    CHECK_TEST(a_note_with_a_wrong_size_ends_the_search),
    CHECK_TEST(without_a_build_id_the_code_is_hashed),
};
CHECK_MAIN(tests)
