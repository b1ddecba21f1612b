/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a linker map of any kind, by itself and beside an image. The table must be in order,
 * every row of a known kind; beside the image, the functions that come of it too.
 */
#include "image/elf_builder.h" /* of tests/unit */

#include <hotfn/functions.h>

static void check_order(const hotfn_symbol *before, const hotfn_symbol *s)
{
    int global_before = (before->flags & HOTFN_SYMBOL_GLOBAL) != 0;
    int global = (s->flags & HOTFN_SYMBOL_GLOBAL) != 0;

    if (before->rva > s->rva)
        abort();
    if (before->rva == s->rva && global_before < global)
        abort();
    if (before->rva == s->rva && global_before == global && strcmp(before->name, s->name) >= 0)
        abort();
}

static void check_symbols(const hotfn_symbols *symbols)
{
    hotfn_symbols_info info = HOTFN_SYMBOLS_INFO_INIT;
    hotfn_symbol before = HOTFN_SYMBOL_INIT;

    if (hotfn_symbols_get_info(symbols, &info) != HOTFN_OK || !info.format)
        abort();
    for (uint32_t i = 0; i < hotfn_symbols_count(symbols); i++) {
        hotfn_symbol s = HOTFN_SYMBOL_INIT;
        if (hotfn_symbols_get(symbols, i, &s) != HOTFN_OK || !s.kind || !s.source ||
            s.flags > (HOTFN_SYMBOL_SIZE_GUESSED << 1))
            abort();
        if (i > 0)
            check_order(&before, &s);
        before = s;
    }
}

static hotfn_image *new_image(void)
{
    static elf_builder *b;
    hotfn_image *image = NULL;

    if (!b) {
        b = elf_new_x86_64();
        elf_add(b, ".text", 1, ELF_ALLOC | ELF_CODE, "\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3", 8);
        elf_finish(b);
    }
    if (hotfn_image_from_bytes(&image, b->file.data, b->file.size, "image", NULL, NULL) != HOTFN_OK)
        abort();
    return image;
}

static void load(const uint8_t *data, size_t size, const hotfn_image *image, uint32_t flags)
{
    hotfn_symbols_options options = HOTFN_SYMBOLS_OPTIONS_INIT;
    hotfn_symbols *symbols = NULL;
    hotfn_functions *functions = NULL;

    options.flags = flags;
    if (hotfn_symbols_map_from_bytes(&symbols, data, size, "fuzz", image, &options, NULL, NULL) !=
        HOTFN_OK)
        return;
    check_symbols(symbols);
    if (image)
        hotfn_functions_build(&functions, image, symbols, NULL, NULL);
    hotfn_functions_destroy(functions);
    hotfn_symbols_destroy(symbols);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static hotfn_image *image;

    if (!image)
        image = new_image();
    load(data, size, NULL, HOTFN_SYMBOLS_DATA);
    load(data, size, image, HOTFN_SYMBOLS_DATA | HOTFN_SYMBOLS_FORCE);
    return 0;
}
