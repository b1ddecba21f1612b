/* SPDX-License-Identifier: MIT */
/* The addresses that the loader writes into an ELF image: relocations, constructor tables,
 * entry. */
#include "image/image.h"

#include "check.h"
#include "image/elf_builder.h"

enum { DT_RELA = 7, DT_REL = 17, DT_RELR = 36, DT_INIT_ARRAY = 25, DT_INIT = 12, DT_SYMTAB = 6 };

typedef struct seen {
    uint64_t rvas[64];
    int count;
} seen;

static void note(void *user, uint64_t rva)
{
    seen *s = user;

    if (s->count < 64) {
        s->rvas[s->count++] = rva;
    }
}

typedef struct slots {
    hfn_image_slot all[8];
    int count;
} slots;

static void note_slot(void *user, const hfn_image_slot *slot)
{
    slots *s = user;

    if (s->count < 8) {
        s->all[s->count++] = *slot;
    }
}

static bool has(const seen *s, uint64_t rva)
{
    for (int i = 0; i < s->count; i++) {
        if (s->rvas[i] == rva) {
            return true;
        }
    }
    return false;
}

/* Add a dynamic section: pairs of tag and value that locate the other tables. */
static void add_dynamic(elf_builder *b, const uint64_t *pairs, size_t count)
{
    elf_bytes *dynamic = elf_buffer(b);

    for (size_t i = 0; i < 2 * count; i++) {
        put_word(dynamic, pairs[i]);
    }
    put_word(dynamic, 0), put_word(dynamic, 0);
    elf_segment_of(b, 2, elf_add_buffer(b, ".dynamic", 6, ELF_ALLOC | ELF_WRITE, dynamic));
}

static hotfn_image *open_builder(elf_builder *b)
{
    hotfn_image *image = NULL;

    elf_finish(b);
    CHECK_EQ_I64(hotfn_image_open_bytes(&image, b->file.data, b->file.size, "p", NULL, NULL),
                 HOTFN_OK);
    return image;
}

static void put_rela(elf_bytes *b, uint64_t place, uint32_t symbol, uint32_t type, uint64_t addend)
{
    put_word(b, place);
    put_word(b, b->wide ? (uint64_t)symbol << 32 | type : symbol << 8 | type);
    put_word(b, addend);
}

static void rela_targets_are_visited(void)
{
    elf_builder *b = elf_new_x86_64();
    elf_bytes *rela = elf_buffer(b), *symbols = elf_buffer(b);
    seen all = { { 0 }, 0 }, resolvers = { { 0 }, 0 };
    hotfn_image *image;

    b->base = 0x10000;
    put_symbol(symbols, 0, 0, 0, 0, 0, 0);
    put_symbol(symbols, 0, 1, 2, 1, b->base + 0x103, 1);
    put_symbol(symbols, 0, 1, 2, 0, b->base + 0x104, 1); /* undefined */
    put_rela(rela, 0, 0, 8, b->base + 0x101);            /* RELATIVE  */
    put_rela(rela, 0, 0, 37, b->base + 0x102);           /* IRELATIVE */
    put_rela(rela, 0, 1, 1, 4);                          /* 64        */
    put_rela(rela, 0, 1, 7, 99);                         /* JUMP_SLOT */
    put_rela(rela, 0, 2, 6, 0);                          /* GLOB_DAT of an undefined symbol */
    put_rela(rela, 0, 9999999, 6, 0);                    /* the symbol does not exist */
    put_rela(rela, 0, 0, 8, UINT64_MAX);                 /* outside the image */
    put(rela, 8, 4);                                     /* half an entry */
    uint32_t size = (uint32_t)rela->size;
    uint32_t r = elf_add_buffer(b, ".rela.dyn", 4, ELF_ALLOC, rela);
    uint32_t s = elf_add_buffer(b, ".dynsym", 11, ELF_ALLOC, symbols);
    const uint64_t pairs[] = { DT_RELA,   b->sections[r].address, 8, size,
                               DT_SYMTAB, b->sections[s].address };
    add_dynamic(b, pairs, 3);
    image = open_builder(b);
    hfn_image_each_pointer(image, note, &all);
    CHECK_EQ_I64(all.count, 4);
    CHECK(has(&all, 0x101) && has(&all, 0x102) && has(&all, 0x107) && has(&all, 0x103));
    hfn_image_each_resolver(image, note, &resolvers);
    CHECK_EQ_I64(resolvers.count, 1);
    CHECK(has(&resolvers, 0x102));
    hotfn_image_close(image);
    free(b);
}

/* Each slot has the name of its symbol, and the RVA of the function if this image defines it and it
 * is not an ifunc. */
static void slots_are_visited_with_names_and_functions(void)
{
    elf_builder *b = elf_new_x86_64();
    elf_bytes *rela = elf_buffer(b), *symbols = elf_buffer(b);
    static const uint8_t words[16];
    uint64_t place;
    slots all = { .count = 0 };
    hotfn_image *image;

    b->base = 0x10000;
    place = b->sections[elf_add(b, ".got", 1, ELF_ALLOC | ELF_WRITE, words, sizeof words)].address;
    put_symbol(symbols, 0, 0, 0, 0, 0, 0);
    put_symbol(symbols, 1, 1, 2, 1, b->base + 0x103, 1);
    put_symbol(symbols, 3, 1, 10, 1, b->base + 0x105, 1); /* a resolver */
    put_symbol(symbols, 5, 1, 2, 0, 0, 0);                /* undefined  */
    put_symbol(symbols, 999, 1, 2, 1, b->base + 0x103, 1);
    put_rela(rela, place, 1, 7, 0);     /* JUMP_SLOT  */
    put_rela(rela, place + 8, 1, 6, 0); /* GLOB_DAT   */
    put_rela(rela, place, 2, 7, 0);
    put_rela(rela, place, 3, 7, 0);
    put_rela(rela, place, 4, 7, 0);       /* no name */
    put_rela(rela, place, 9999999, 7, 0); /* no symbol */
    put_rela(rela, 0x7fffffff, 1, 7, 0);  /* outside the image */
    put_rela(rela, place, 1, 1, 0);       /* 64: data */
    put_rela(rela, place, 0, 8, b->base); /* RELATIVE */
    uint32_t size = (uint32_t)rela->size;
    uint32_t r = elf_add_buffer(b, ".rela.dyn", 4, ELF_ALLOC, rela);
    uint32_t s = elf_add_buffer(b, ".dynsym", 11, ELF_ALLOC, symbols);
    uint32_t n = elf_add(b, ".dynstr", 3, ELF_ALLOC, "\0f\0g\0h", 7);
    const uint64_t pairs[] = { DT_RELA,   b->sections[r].address, 8, size,
                               DT_SYMTAB, b->sections[s].address, 5, b->sections[n].address };
    add_dynamic(b, pairs, 4);
    image = open_builder(b);
    hfn_image_each_slot(image, note_slot, &all);
    CHECK_EQ_I64(all.count, 4);
    CHECK_EQ_U64(all.all[1].place_rva, all.all[0].place_rva + 8);
    CHECK_STR(all.all[0].name, "f");
    CHECK_EQ_U64(all.all[0].target_rva, 0x103);
    CHECK_EQ_U64(all.all[1].target_rva, 0x103);
    CHECK_STR(all.all[2].name, "g");
    CHECK_EQ_U64(all.all[2].target_rva, UINT64_MAX);
    CHECK_STR(all.all[3].name, "h");
    CHECK_EQ_U64(all.all[3].target_rva, UINT64_MAX);
    hotfn_image_close(image);
    free(b);
}

static void rel_addends_are_read_in_place(void)
{
    elf_builder *b = elf_new(32, false, 3);
    elf_bytes *rel = elf_buffer(b);
    uint32_t data = elf_add(b, ".data", 1, ELF_ALLOC | ELF_WRITE, "\x22\x01\0\0", 4);
    seen all = { { 0 }, 0 };
    hotfn_image *image;

    put_word(rel, b->sections[data].address), put_word(rel, 8); /* RELATIVE */
    put_word(rel, 0xfffffff0), put_word(rel, 8);
    uint32_t r = elf_add_buffer(b, ".rel.dyn", 9, ELF_ALLOC, rel);
    const uint64_t pairs[] = { DT_REL, b->sections[r].address, 18, 16 };
    add_dynamic(b, pairs, 2);
    image = open_builder(b);
    hfn_image_each_pointer(image, note, &all);
    CHECK(has(&all, 0x122));
    hotfn_image_close(image);
    free(b);
}

/* The relocations of the PLT have their own table, whose kind is in DT_PLTREL; i386 uses REL, and
 * its symbols have 16 bytes. */
static void check_plt_relocations(bool wide)
{
    elf_builder *b = wide ? elf_new_x86_64() : elf_new(32, false, 3);
    elf_bytes *table = elf_buffer(b), *symbols = elf_buffer(b), *words = elf_buffer(b);
    const uint32_t types[] = { 7, 6, 1 }; /* JUMP_SLOT, GLOB_DAT, 64 or 32 */
    seen all = { { 0 }, 0 };
    hotfn_image *image;

    b->base = 0x10000;
    put_word(words, 0), put_word(words, 0), put_word(words, 0x20);
    uint32_t data = elf_add_buffer(b, ".data", 1, ELF_ALLOC | ELF_WRITE, words);
    put_symbol(symbols, 0, 0, 0, 0, 0, 0);
    put_symbol(symbols, 0, 1, 2, 0, 0, 0); /* undefined */
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t place = b->sections[data].address + i * (wide ? 8 : 4);
        put_symbol(symbols, 0, 1, 2, 1, b->base + 0x103 + i, 1);
        put_word(table, place);
        put_word(table, wide ? (uint64_t)(i + 2) << 32 | types[i] : (i + 2) << 8 | types[i]);
        if (wide) {
            put_word(table, types[i] == 1 ? 0x20 : 0);
        }
    }
    uint64_t size = table->size;
    uint32_t r = elf_add_buffer(b, ".rel.plt", wide ? 4 : 9, ELF_ALLOC, table);
    uint32_t s = elf_add_buffer(b, ".dynsym", 11, ELF_ALLOC, symbols);
    const uint64_t pairs[] = { 23, b->sections[r].address,  2,         size,
                               20, wide ? DT_RELA : DT_REL, DT_SYMTAB, b->sections[s].address };
    add_dynamic(b, pairs, 4);
    image = open_builder(b);
    hfn_image_each_pointer(image, note, &all);
    CHECK_EQ_I64(all.count, 3);
    CHECK(has(&all, 0x103) && has(&all, 0x104) && has(&all, 0x125));
    hotfn_image_close(image);
    free(b);
}

static void relocations_of_the_plt_are_visited(void)
{
    check_plt_relocations(true);
    check_plt_relocations(false);
}

static void functions_called_by_the_loader_are_visited(void)
{
    elf_builder *b = elf_new_x86_64();
    elf_bytes *words = elf_buffer(b);
    seen all = { { 0 }, 0 };
    hotfn_image *image;

    for (uint64_t i = 0; i < 6; i++) {
        put_word(words, 0x301 + i);
    }
    uint32_t a = elf_add_buffer(b, ".arrays", 1, ELF_ALLOC | ELF_WRITE, words);
    uint64_t at = b->sections[a].address;
    enum { DT_FINI = 13, DT_FINI_ARRAY = 26, DT_PREINIT_ARRAY = 32 };
    enum { DT_INIT_ARRAYSZ = 27, DT_FINI_ARRAYSZ = 28, DT_PREINIT_ARRAYSZ = 33 };
    /* clang-format off */
    const uint64_t pairs[] = {
        DT_PREINIT_ARRAY, at,      DT_PREINIT_ARRAYSZ, 16,
        DT_INIT_ARRAY,    at + 16, DT_INIT_ARRAYSZ,    16,
        DT_FINI_ARRAY,    at + 32, DT_FINI_ARRAYSZ,    16,
        DT_INIT,          0x307,   DT_FINI,            0x308,
    };
    /* clang-format on */
    add_dynamic(b, pairs, 8);
    image = open_builder(b);
    hfn_image_each_pointer(image, note, &all);
    CHECK_EQ_I64(all.count, 8);
    for (uint64_t rva = 0x301; rva <= 0x308; rva++) {
        CHECK(has(&all, rva));
    }
    hotfn_image_close(image);
    free(b);
}

/* gABI ch. 5: an address, then a bitmap of the 63 words behind it. */
static void relr_bitmaps_are_unpacked(void)
{
    elf_builder *b = elf_new_x86_64();
    elf_bytes *words = elf_buffer(b), *relr = elf_buffer(b);
    seen all = { { 0 }, 0 };
    hotfn_image *image;

    for (uint64_t i = 0; i < 70; i++) {
        put_word(words, 0x200 + i);
    }
    uint32_t data = elf_add_buffer(b, ".data", 1, ELF_ALLOC | ELF_WRITE, words);
    put_word(relr, b->sections[data].address);
    put_word(relr, 1 | 1u << 1 | UINT64_C(1) << 63); /* words 1 and 63 */
    put_word(relr, 1 | 1u << 2);                     /* word 65 */
    put_word(relr, UINT64_C(1) << 62);               /* outside the image */
    put_word(relr, UINT64_MAX);
    uint32_t r = elf_add_buffer(b, ".relr.dyn", 19, ELF_ALLOC, relr);
    const uint64_t pairs[] = { DT_RELR, b->sections[r].address, 35, 40 };
    add_dynamic(b, pairs, 2);
    image = open_builder(b);
    hfn_image_each_pointer(image, note, &all);
    CHECK_EQ_I64(all.count, 4);
    CHECK(has(&all, 0x200) && has(&all, 0x201) && has(&all, 0x23f) && has(&all, 0x241));
    hotfn_image_close(image);
    free(b);
}

/* lld leaves zeros where RELA relocations will write. */
static void array_words_come_from_the_file_or_its_relocations(void)
{
    elf_builder *b = elf_new_x86_64();
    elf_bytes *words = elf_buffer(b), *rela = elf_buffer(b);
    seen init = { { 0 }, 0 };
    hotfn_image *image;

    put_word(words, 0x301), put_word(words, 0);
    uint32_t a = elf_add_buffer(b, ".init_array", 14, ELF_ALLOC | ELF_WRITE, words);
    put_rela(rela, b->sections[a].address + 8, 0, 8, 0x302);
    put_rela(rela, b->sections[a].address + 16, 0, 8, 0x303); /* behind it */
    uint32_t r = elf_add_buffer(b, ".rela.dyn", 4, ELF_ALLOC, rela);
    const uint64_t pairs[] = { DT_INIT_ARRAY, b->sections[a].address, 27, 16,
                               DT_RELA,       b->sections[r].address, 8,  48 };
    add_dynamic(b, pairs, 4);
    image = open_builder(b);
    hfn_image_each_array_word(image, false, note, &init);
    CHECK(has(&init, 0x301) && has(&init, 0x302) && !has(&init, 0x303));
    hotfn_image_close(image);
    free(b);
}

static void words_of_a_fixed_program_that_point_to_code_are_visited(void)
{
    elf_builder *b = elf_new_x86_64();
    elf_bytes *words = elf_buffer(b);
    seen all = { { 0 }, 0 };
    hotfn_image *image;

    b->type = 2;
    b->base = 0x400000;
    elf_add(b, ".text", 1, ELF_ALLOC | ELF_CODE, "\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3", 8);
    put_word(words, 0x400402); /* into .text   */
    put_word(words, 0x400408); /* just past it */
    put(words, 0, 4);          /* not aligned  */
    put_word(words, 0x400403);
    elf_add_buffer(b, ".rodata", 1, ELF_ALLOC, words);
    b->entry = 0x400400;
    image = open_builder(b);
    hfn_image_each_pointer(image, note, &all);
    CHECK_EQ_I64(all.count, 2);
    CHECK(has(&all, 0x400) && has(&all, 0x402));
    hotfn_image_close(image);
    free(b);
}

static const check_test tests[] = {
    CHECK_TEST(rela_targets_are_visited),
    CHECK_TEST(slots_are_visited_with_names_and_functions),
    CHECK_TEST(rel_addends_are_read_in_place),
    CHECK_TEST(relocations_of_the_plt_are_visited),
    CHECK_TEST(functions_called_by_the_loader_are_visited),
    CHECK_TEST(relr_bitmaps_are_unpacked),
    CHECK_TEST(array_words_come_from_the_file_or_its_relocations),
    CHECK_TEST(words_of_a_fixed_program_that_point_to_code_are_visited),
};
CHECK_MAIN(tests)
