/* SPDX-License-Identifier: MIT */
/* Tests of the bitmap of data addresses that code refers to. */
#include "verdicts/references.h"

#include "scene.h"

static hfn_references start(scene *s, hotfn_env *env)
{
    hfn_references r;

    *env = hfn_env_fill(NULL);
    *s = scene_begin();
    scene_nops(s, 16);
    scene_build(s);
    CHECK(hfn_references_init(&r, s->image, env));
    CHECK(r.rva <= RODATA && r.end >= RODATA + RODATA_BYTES);
    return r;
}

static void the_next_reference_ends_an_object(void)
{
    hotfn_env env;
    scene s;
    hfn_references r = start(&s, &env);

    CHECK_EQ_U64(hfn_references_next(&r, RODATA), r.end);
    hfn_references_add(&r, RODATA);
    hfn_references_add(&r, RODATA + 8);
    hfn_references_add(&r, RODATA + 0xF3); /* rounded down */
    CHECK_EQ_U64(hfn_references_next(&r, RODATA), RODATA + 8);
    CHECK_EQ_U64(hfn_references_next(&r, RODATA + 4), RODATA + 8);
    CHECK_EQ_U64(hfn_references_next(&r, RODATA + 8), RODATA + 0xF0);
    CHECK_EQ_U64(hfn_references_next(&r, RODATA + 0xF0), r.end);
    hfn_references_finish(&r, &env);
    scene_finish(&s);
}

enum { FILE_BYTES = 0x1000 };

typedef struct data_section {
    uint32_t type;
    uint64_t flags, rva, size;
} data_section;

/* The references of a library of FILE_BYTES with these two sections. */
static hfn_references references_of(const data_section sections[2], const hotfn_env *env)
{
    static const uint8_t bytes[0x300];
    elf_builder *b = elf_new_x86_64();
    hotfn_image *image;
    hfn_references r;

    elf_segment(b, 1, 4, 0, FILE_BYTES)->memory_bytes = 4 * FILE_BYTES;
    for (uint32_t i = 0; i < 2; i++) {
        const data_section *s = &sections[i];
        uint32_t at = elf_add(b, ".s", s->type, s->flags, bytes, s->size);
        b->sections[at].address = b->base + s->rva;
    }
    elf_finish(b);
    CHECK(b->file.size <= FILE_BYTES);
    CHECK_EQ_I64(hotfn_image_open_bytes(&image, b->file.data, FILE_BYTES, "data", NULL, NULL),
                 HOTFN_OK);
    CHECK(hfn_references_init(&r, image, env));
    hotfn_image_close(image);
    free(b);
    return r;
}

/* One reference at a time, searched from every address, over more than one word of the bitmap. */
static void each_reference_is_found_from_every_address_before_it(void)
{
    static const data_section data[2] = { { 1, ELF_ALLOC, 0x800, 0x2fc }, { 1, 0, 0, 0 } };
    const hotfn_env env = hfn_env_fill(NULL);
    hfn_references r = references_of(data, &env);
    uint64_t count = 0x2fc / HFN_REFERENCE_BYTES;
    uint32_t wrong = 0;

    for (uint64_t referenced = 0; referenced < count; referenced++) {
        hfn_references_add(&r, r.rva + referenced * HFN_REFERENCE_BYTES);
        for (uint64_t from = 0; from < count; from++) {
            uint64_t next = hfn_references_next(&r, r.rva + from * HFN_REFERENCE_BYTES);
            wrong += next != (from < referenced ? r.rva + referenced * HFN_REFERENCE_BYTES : r.end);
        }
        memset(r.words, 0, count / 64 * 8 + 8);
    }
    CHECK_EQ_U64(wrong, 0);
    hfn_references_finish(&r, &env);
    CHECK(r.words == NULL);
}

static void only_loaded_data_is_covered(void)
{
    /* FAR is the maximum distance: twice the size of the file */
    enum { PROGBITS = 1, NOBITS = 8, FAR = 2 * FILE_BYTES };
    static const data_section cases[][2] = {
        { { PROGBITS, ELF_ALLOC, 0x800, 0x40 }, { PROGBITS, ELF_ALLOC, 0xa00, 0x40 } },
        { { PROGBITS, ELF_ALLOC, 0xa00, 0x40 }, { PROGBITS, ELF_ALLOC, 0x800, 0x40 } },
        { { PROGBITS, ELF_ALLOC, 0x800, 0x40 }, { PROGBITS, 0, 0xa00, 0x40 } },
        { { PROGBITS, ELF_ALLOC, 0x800, 0x40 }, { NOBITS, ELF_ALLOC, 0xa00, 0x40 } },
        { { PROGBITS, ELF_ALLOC, 0x800, 0x40 }, { PROGBITS, ELF_ALLOC | ELF_CODE, 0xa00, 0x40 } },
        { { PROGBITS, ELF_ALLOC, 0x800, 0x40 }, { PROGBITS, ELF_ALLOC, 0xa00, 0 } },
        { { PROGBITS, ELF_ALLOC, 0x800, 0x40 }, { PROGBITS, ELF_ALLOC, 0x800 + FAR - 0x40, 0x40 } },
        { { PROGBITS, ELF_ALLOC, 0x800, 0x40 }, { PROGBITS, ELF_ALLOC, 0x800 + FAR - 0x3f, 0x40 } },
        { { PROGBITS, ELF_ALLOC, 0x800, 0x80 }, { PROGBITS, ELF_ALLOC, 0x820, 0x40 } },
        { { PROGBITS, ELF_ALLOC, 0x800, 0x40 }, { PROGBITS, ELF_ALLOC, 0x840, 0x40 } },
    };
    static const uint64_t extents[][2] = {
        { 0x800, 0xa40 }, { 0x800, 0xa40 }, { 0x800, 0x840 },       { 0x800, 0x840 },
        { 0x800, 0x840 }, { 0x800, 0x840 }, { 0x800, 0x800 + FAR }, { 0x800, 0x840 },
        { 0x800, 0x880 }, { 0x800, 0x880 },
    };
    const hotfn_env env = hfn_env_fill(NULL);

    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hfn_references r = references_of(cases[i], &env);
        if (!CHECK_EQ_U64(r.rva, extents[i][0]) || !CHECK_EQ_U64(r.end, extents[i][1])) {
            printf("# row %u\n", i);
        }
        hfn_references_finish(&r, &env);
    }
}

static void addresses_outside_the_data_are_ignored(void)
{
    hotfn_env env;
    scene s;
    hfn_references r = start(&s, &env);

    hfn_references_add(&r, r.end);
    hfn_references_add(&r, r.rva - 1);
    hfn_references_add(&r, UINT64_MAX);
    hfn_references_add(&r, 0);
    CHECK_EQ_U64(hfn_references_next(&r, r.rva), r.end);
    CHECK_EQ_U64(hfn_references_next(&r, r.end), UINT64_MAX);
    CHECK_EQ_U64(hfn_references_next(&r, r.rva - 1), UINT64_MAX);
    hfn_references_finish(&r, &env);
    scene_finish(&s);
}

static const check_test tests[] = {
    CHECK_TEST(the_next_reference_ends_an_object),
    CHECK_TEST(each_reference_is_found_from_every_address_before_it),
    CHECK_TEST(only_loaded_data_is_covered),
    CHECK_TEST(addresses_outside_the_data_are_ignored),
};
CHECK_MAIN(tests)
