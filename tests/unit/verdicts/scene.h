/* SPDX-License-Identifier: MIT */
/*
 * A library for the tests of this folder, made of functions given as bytes: 256 bytes of
 * read-only data at RODATA, then code at TEXT.  scene_analyze computes the verdicts; scene_finish
 * frees everything.  scene_begin_i386 begins a library of 32-bit code.
 */
#ifndef HFN_TESTS_SCENE_H
#define HFN_TESTS_SCENE_H

#include "check.h"
#include "functions/eh_frame_builder.h"
#include "verdicts/verdicts.h"

enum { RODATA = 0x400, RODATA_BYTES = 0x100, TEXT = 0x500 };
enum { FUNC = 2, OBJECT = 1, NOTYPE = 0, LOCAL = 0, GLOBAL = 1 };

typedef struct scene_fde {
    uint64_t begin;
    uint32_t size;
    bool inner, signal, lsda;
    const char *cfi; /* the FDE's call frame instructions; only used with lsda */
} scene_fde;

typedef struct scene {
    elf_builder *b;
    elf_bytes *text, *symbols, *names, *exports, *export_names, *relocations;
    uint8_t rodata[RODATA_BYTES];
    scene_fde fdes[16];
    uint32_t fde_count;
    const char *extra_name; /* name of another read-only section, after the code */
    uint8_t extra[64];
    uint64_t extra_rva;  /* valid once extra_name is set and the code is complete */
    bool is_extra_split; /* the second half of extra is a section of its own */
    uint32_t options;
    bool is_dynamic;
    bool has_tail; /* zeros follow the code up to the end of its page and segment */
    hotfn_image *image;
    hotfn_symbols *loaded;
    hotfn_functions *functions;
    hotfn_verdicts *verdicts;
} scene;

static inline scene scene_begin_in(elf_builder *b)
{
    scene s = { .b = b };
    elf_bytes **buffers[] = { &s.text,    &s.symbols,      &s.names,
                              &s.exports, &s.export_names, &s.relocations };

    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        *buffers[i] = elf_buffer(s.b);
    }
    put_text(s.names, "");
    put_text(s.export_names, "");
    put_symbol(s.symbols, 0, 0, 0, 0, 0, 0);
    put_symbol(s.exports, 0, 0, 0, 0, 0, 0);
    return s;
}

static inline scene scene_begin(void)
{
    return scene_begin_in(elf_new_x86_64());
}

static inline scene scene_begin_i386(void)
{
    return scene_begin_in(elf_new(32, false, 3));
}

/* The rva of the next byte of code. */
static inline uint64_t scene_here(const scene *s)
{
    return TEXT + s->text->size;
}

/* Code without a name. */
static inline uint64_t scene_code(scene *s, const char *bytes, size_t size)
{
    uint64_t rva = scene_here(s);

    put_data(s->text, bytes, size);
    return rva;
}
#define SCENE_CODE(s, text) scene_code(s, text, sizeof(text) - 1)

static inline void scene_symbol(scene *s, const char *name, uint64_t rva, uint64_t size,
                                uint8_t type)
{
    put_symbol(s->symbols, put_text(s->names, name), LOCAL, type, 2, s->b->base + rva, size);
}

/* A global label of hand-written code: no type, no size. */
static inline void scene_label(scene *s, const char *name, uint64_t rva)
{
    put_symbol(s->symbols, put_text(s->names, name), GLOBAL, NOTYPE, 2, s->b->base + rva, 0);
}

/* Add a function; returns its rva. */
static inline uint64_t scene_function(scene *s, const char *name, const char *bytes, size_t size)
{
    scene_symbol(s, name, scene_here(s), size, FUNC);
    return scene_code(s, bytes, size);
}
#define SCENE_FUNCTION(s, name, text) scene_function(s, name, text, sizeof(text) - 1)

static inline void scene_export(scene *s, const char *name, uint64_t rva, uint64_t size)
{
    put_symbol(s->exports, put_text(s->export_names, name), GLOBAL, FUNC, 2, rva, size);
}

static inline void scene_nops(scene *s, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put(s->text, 0x90, 1);
    }
}

/* Add a function of `size` bytes without branches.  With 128 bytes or more, code before it and code
 * after it are out of each other's reach by short jumps. */
static inline uint64_t scene_filler(scene *s, size_t size)
{
    uint64_t rva = scene_here(s);

    scene_symbol(s, "filler", rva, size, FUNC);
    for (size_t i = 0; i + 1 < size; i++) {
        put(s->text, 0x98, 1); /* cwde */
    }
    put(s->text, 0xC3, 1);
    return rva;
}

/* call or jmp (E8, E9) from here to rva */
static inline uint64_t scene_branch(scene *s, uint8_t opcode, uint64_t rva)
{
    uint64_t from = scene_here(s);

    put(s->text, opcode, 1);
    put(s->text, rva - (from + 5), 4);
    return from;
}

static inline void scene_fde_at(scene *s, uint64_t begin, uint32_t size)
{
    s->fdes[s->fde_count++] = (scene_fde){ .begin = begin, .size = size };
}

static inline void scene_relocation(scene *s, uint64_t where, uint64_t symbol, uint8_t type,
                                    uint64_t addend)
{
    put_word(s->relocations, where);
    put_word(s->relocations, symbol << (s->b->file.wide ? 32 : 8) | type);
    put_word(s->relocations, addend);
}

/* Add a pointer that the loader writes at `where` (R_X86_64_RELATIVE, R_386_RELATIVE = 8). */
static inline void scene_pointer(scene *s, uint64_t where, uint64_t target)
{
    scene_relocation(s, where, 0, 8, target);
}

/* Add a word of the GOT that the loader sets to the function of that name (R_*_JUMP_SLOT = 7): this
 * library's at rva, or another library's if rva is 0.  The scene then has a dynamic section, whose
 * GOT is at RODATA. */
static inline void scene_slot(scene *s, uint64_t where, const char *name, uint64_t rva)
{
    uint64_t symbol = s->exports->size / (s->b->file.wide ? 24 : 16);

    put_symbol(s->exports, put_text(s->export_names, name), GLOBAL, FUNC, rva ? 2 : 0, rva, 0);
    scene_relocation(s, where, symbol, 7, 0);
    s->is_dynamic = true;
}

static inline void scene_add_eh_frame(scene *s)
{
    uint64_t address =
        (s->b->file.size + 15) & ~15ull; /* without the base: only distances are stored */
    elf_bytes *eh = elf_buffer(s->b);
    const char *entry = eh->wide ? ENTRY_X86_64 : ENTRY_I386;
    size_t plain = put_cie(eh, "zR", "\x1b", 1, entry, 5);
    size_t signal = put_cie(eh, "zRS", "\x1b", 1, entry, 5);

    for (uint32_t i = 0; i < s->fde_count; i++) {
        const scene_fde *f = &s->fdes[i];
        if (f->lsda) {
            continue;
        }
        put_fde(eh, f->signal ? signal : plain, address, f->begin, f->size, "\x0e\x20",
                f->inner ? 2 : 0);
    }
    /* zLR: FDEs with a pointer to language data */
    size_t lsda = put_cie(eh, "zLR", "\x1b\x1b", 2, entry, 5);
    for (uint32_t i = 0; i < s->fde_count; i++) {
        if (!s->fdes[i].lsda) {
            continue;
        }
        size_t start = eh->size;
        put(eh, 0, 4), put(eh, start + 4 - lsda, 4);
        put(eh, s->fdes[i].begin - (address + eh->size), 4), put(eh, s->fdes[i].size, 4);
        put(eh, 4, 1), put(eh, RODATA - (address + eh->size), 4);
        if (s->fdes[i].cfi) {
            put_data(eh, s->fdes[i].cfi, strlen(s->fdes[i].cfi));
        }
        put_align(eh, 4);
        put_at(eh, start, eh->size - start - 4, 4);
    }
    elf_add_buffer(s->b, ".eh_frame", 1, ELF_ALLOC, eh);
}

static inline void scene_add_table(scene *s, const char *name, uint32_t type, elf_bytes *symbols,
                                   const char *names_name, elf_bytes *names)
{
    uint64_t flags = type == 11 ? ELF_ALLOC : 0;
    uint32_t table = elf_add_buffer(s->b, name, type, flags, symbols);

    s->b->sections[table].entry_size = s->b->file.wide ? 24 : 16;
    s->b->sections[table].link = table + 1;
    s->b->sections[table].info = 1;
    elf_add_buffer(s->b, names_name, 3, flags, names);
}

/* Add a dynamic section for the sections before it: .rela.dyn, .symtab, .strtab, .dynsym,
 * .dynstr. */
static inline void scene_add_dynamic(scene *s)
{
    const elf_builder_section *end = &s->b->sections[s->b->section_count];
    const uint64_t entries[][2] = {
        { 3, RODATA },                                  /* DT_PLTGOT */
        { 7, end[-5].address }, { 8, end[-5].size },    /* DT_RELA, DT_RELASZ */
        { 6, end[-2].address }, { 5, end[-1].address }, /* DT_SYMTAB, DT_STRTAB */
        { 10, end[-1].size },   { 0, 0 },               /* DT_STRSZ, DT_NULL */
    };
    elf_bytes *dynamic = elf_buffer(s->b);

    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        put_word(dynamic, entries[i][0]), put_word(dynamic, entries[i][1]);
    }
    elf_segment_of(s->b, 2, elf_add_buffer(s->b, ".dynamic", 6, ELF_ALLOC, dynamic));
}

static inline void scene_end_page(elf_builder *b)
{
    elf_segment(b, 1, 5, 0, b->file.size);
    put_align(&b->file, 0x1000);
    elf_segment(b, 1, 4, b->file.size, 0x4000);
}

static inline void scene_build(scene *s)
{
    elf_add(s->b, ".rodata", 1, ELF_ALLOC, s->rodata, sizeof s->rodata);
    CHECK_EQ_U64(s->b->sections[1].address, s->b->base + RODATA);
    elf_add_buffer(s->b, ".text", 1, ELF_ALLOC | ELF_CODE, s->text);
    CHECK_EQ_U64(s->b->sections[2].address, s->b->base + TEXT);
    if (s->has_tail) {
        scene_end_page(s->b);
    }
    if (s->extra_name) {
        size_t first = sizeof s->extra / (s->is_extra_split ? 2 : 1);
        elf_add(s->b, s->extra_name, 1, ELF_ALLOC, s->extra, first);
        if (s->is_extra_split) {
            elf_add(s->b, ".second", 1, ELF_ALLOC, s->extra + first, sizeof s->extra - first);
        }
    }
    scene_add_eh_frame(s);
    elf_add_buffer(s->b, ".rela.dyn", 4, ELF_ALLOC, s->relocations);
    s->b->sections[s->b->section_count - 1].entry_size = s->b->file.wide ? 24 : 12;
    scene_add_table(s, ".symtab", 2, s->symbols, ".strtab", s->names);
    scene_add_table(s, ".dynsym", 11, s->exports, ".dynstr", s->export_names);
    if (s->is_dynamic) {
        scene_add_dynamic(s);
    }
    if (s->has_tail) {
        put_data(&s->b->file, (const char[0x4000]){ 0 }, 0x4000); /* the second segment's end */
    }
    elf_finish(s->b);
    CHECK_EQ_I64(
        hotfn_image_open_bytes(&s->image, s->b->file.data, s->b->file.size, "scene", NULL, NULL),
        HOTFN_OK);
    CHECK_EQ_I64(hotfn_symbols_load(&s->loaded, s->image, NULL, NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_functions_build(&s->functions, s->image, s->loaded, NULL, NULL), HOTFN_OK);
}

static inline void scene_analyze(scene *s)
{
    hotfn_verdicts_options options = HOTFN_VERDICTS_OPTIONS_INIT;

    scene_build(s);
    options.flags = s->options;
    options.threads = 1;
    CHECK_EQ_I64(hotfn_verdicts_create(&s->verdicts, s->image, s->functions, &options, NULL, NULL),
                 HOTFN_OK);
}

static inline void scene_finish(scene *s)
{
    hotfn_verdicts_destroy(s->verdicts);
    hotfn_functions_destroy(s->functions);
    hotfn_symbols_destroy(s->loaded);
    hotfn_image_close(s->image);
    free(s->b);
}

/* The verdict of the function at rva; all zero if there is none. */
static inline hfn_verdict scene_verdict(const scene *s, uint64_t rva)
{
    uint32_t index = hotfn_functions_find(s->functions, rva);
    const hfn_verdict *v = index == UINT32_MAX ? NULL : hfn_verdicts_at(s->verdicts, index);

    return v && v->site_rva - v->pub.patch_offset == rva ? *v : (hfn_verdict){ .site_rva = 0 };
}

static inline void scene_expect(const scene *s, uint64_t rva, uint32_t strategy, const char *file,
                                int line)
{
    const hfn_verdict v = scene_verdict(s, rva);

    if (!check_report(v.pub.verdict == HOTFN_VERDICT_HOOKABLE && v.pub.strategy == strategy, file,
                      line, "the strategy")) {
        printf("#   got verdict %u, %s, reason %s at %u; wanted %s\n", v.pub.verdict,
               hotfn_strategy_get_name(v.pub.strategy), hotfn_reason_get_name(v.pub.reason),
               v.pub.offset, hotfn_strategy_get_name(strategy));
    }
}
#define EXPECT_STRATEGY(s, rva, strategy) scene_expect(s, rva, strategy, __FILE__, __LINE__)

static inline void scene_expect_refused(const scene *s, uint64_t rva, uint32_t reason,
                                        uint32_t offset, const char *file, int line)
{
    const hfn_verdict v = scene_verdict(s, rva);

    if (!check_report(v.pub.verdict == HOTFN_VERDICT_REFUSED && v.pub.reason == reason &&
                          v.pub.offset == offset,
                      file, line, "the reason")) {
        printf("#   got verdict %u, %s, reason %s at %u; wanted %s at %u\n", v.pub.verdict,
               hotfn_strategy_get_name(v.pub.strategy), hotfn_reason_get_name(v.pub.reason),
               v.pub.offset, hotfn_reason_get_name(reason), offset);
    }
}
#define EXPECT_REFUSED(s, rva, reason, offset)                                                     \
    scene_expect_refused(s, rva, reason, offset, __FILE__, __LINE__)

#endif
