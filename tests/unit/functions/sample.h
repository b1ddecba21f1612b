/* SPDX-License-Identifier: MIT */
/*
 * A program for the tests of this folder: 256 bytes of code at TEXT, and symbols and FDEs that the
 * test adds.  sample_build makes the image, the symbols and the functions; sample_finish frees
 * everything.
 */
#ifndef HFN_TESTS_SAMPLE_H
#define HFN_TESTS_SAMPLE_H

#include "check.h"
#include "functions/eh_frame_builder.h"

#include <hotfn/lowlevel/functions.h>

enum { TEXT = 1024, TEXT_BYTES = 256, FINI = 1280, EH_FRAME = 1312 };
enum { FUNC = 2, NOTYPE = 0, IFUNC = 10, LOCAL = 0, GLOBAL = 1, WEAK = 2 };

typedef struct sample {
    elf_builder *b;
    elf_bytes *symbols, *names, *eh;
    elf_bytes *late_rela; /* added behind .eh_frame; NULL: none */
    size_t cie;
    hotfn_env env;
    hotfn_image *image;
    hotfn_symbols *loaded;
    hotfn_functions *functions;
} sample;

static inline void sample_begin_with(sample *s, const char *text_name, const void *text)
{
    *s = (sample){ .b = elf_new_x86_64(), .env = HOTFN_ENV_INIT };
    elf_add(s->b, text_name, 1, ELF_ALLOC | ELF_CODE, text, TEXT_BYTES);
    elf_add(s->b, ".fini", 1, ELF_ALLOC | ELF_CODE, text, EH_FRAME - FINI);
    s->symbols = elf_buffer(s->b);
    s->names = elf_buffer(s->b);
    s->eh = elf_buffer(s->b);
    put_text(s->names, "");
    put_symbol(s->symbols, 0, 0, 0, 0, 0, 0);
    s->cie = put_plain_cie(s->eh);
}

static inline void sample_begin(sample *s)
{
    uint8_t text[TEXT_BYTES];

    memset(text, 0xc3, sizeof text);
    sample_begin_with(s, ".text", text);
}

static inline void symbol(sample *s, const char *name, uint8_t binding, uint8_t type,
                          uint64_t value, uint64_t size)
{
    put_symbol(s->symbols, put_text(s->names, name), binding, type, 1, value, size);
}

static inline void fde(sample *s, uint64_t begin, uint32_t size)
{
    put_fde(s->eh, s->cie, EH_FRAME, begin, size, "", 0);
}

/* Adds an FDE whose first byte lies inside a frame of 32 bytes. */
static inline void inner_fde(sample *s, uint64_t begin, uint32_t size)
{
    put_fde(s->eh, s->cie, EH_FRAME, begin, size, "\x0e\x20", 2);
}

static inline void sample_build(sample *s)
{
    uint32_t table = elf_add_buffer(s->b, ".eh_frame", 1, ELF_ALLOC, s->eh);

    CHECK_EQ_U64(s->b->sections[table].address, EH_FRAME);
    if (s->late_rela) {
        elf_add_buffer(s->b, ".rela.plt", 4, ELF_ALLOC, s->late_rela);
    }
    table = elf_add_buffer(s->b, ".symtab", 2, 0, s->symbols);
    s->b->sections[table].entry_size = 24;
    s->b->sections[table].link = table + 1;
    elf_add_buffer(s->b, ".strtab", 3, 0, s->names);
    elf_finish(s->b);
    CHECK_EQ_I64(hotfn_image_open_bytes(&s->image, s->b->file.data, s->b->file.size, "dir/prog",
                                        &s->env, NULL),
                 HOTFN_OK);
    CHECK_EQ_I64(hotfn_symbols_load(&s->loaded, s->image, NULL, &s->env, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_functions_build(&s->functions, s->image, s->loaded, &s->env, NULL),
                 HOTFN_OK);
}

static inline void sample_finish(sample *s)
{
    hotfn_functions_destroy(s->functions);
    hotfn_symbols_destroy(s->loaded);
    hotfn_image_close(s->image);
    free(s->b);
}

static inline uint32_t sample_count(const sample *s)
{
    return hotfn_functions_get_count(s->functions);
}

/* The function at exactly rva; all zero if there is none. */
static inline hotfn_function function_at(const sample *s, uint64_t rva)
{
    hotfn_function f = HOTFN_FUNCTION_INIT;
    uint32_t index = hotfn_functions_find(s->functions, rva);

    if (index != UINT32_MAX) {
        hotfn_functions_get(s->functions, index, &f);
    }
    if (index == UINT32_MAX || f.rva != rva) {
        memset(&f, 0, sizeof f);
    }
    return f;
}

#endif
