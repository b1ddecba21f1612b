/* SPDX-License-Identifier: MIT */
/* Any bytes as an image with symbols.  The table must be in order and its names must end. */
#include <hotfn/symbols.h>
#include <stdlib.h>
#include <string.h>

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
    hotfn_symbol before = HOTFN_SYMBOL_INIT;

    for (uint32_t i = 0; i < hotfn_symbols_count(symbols); i++) {
        hotfn_symbol s = HOTFN_SYMBOL_INIT;
        if (hotfn_symbols_get(symbols, i, &s) != HOTFN_OK || !s.kind || !s.source)
            abort();
        if (i > 0)
            check_order(&before, &s);
        before = s;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hotfn_symbols_options options = HOTFN_SYMBOLS_OPTIONS_INIT;
    hotfn_image *image = NULL;
    hotfn_symbols *symbols = NULL;

    if (hotfn_image_from_bytes(&image, data, size, "fuzz", NULL, NULL) != HOTFN_OK)
        return 0;
    /* Never looks at other files: the input alone decides what happens. */
    options.flags = HOTFN_SYMBOLS_NO_SEPARATE | HOTFN_SYMBOLS_DATA;
    if (hotfn_symbols_load(&symbols, image, &options, NULL, NULL) == HOTFN_OK)
        check_symbols(symbols);
    hotfn_symbols_destroy(symbols);
    hotfn_image_close(image);
    return 0;
}
