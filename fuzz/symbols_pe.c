/* SPDX-License-Identifier: MIT */
/* Any bytes as a PE image (their first two are made "MZ") with exports and COFF symbols.  The table
 * must be in order and its names must end; what is exported by name is found by it. */
#include "symbols/pe_exports.h"
#include "symbols_promises.h"

enum { FOUND_MAX = 64 };

static void find_exports(const hotfn_image *image)
{
    hfn_exports exports;
    hfn_export e, found;

    if (hfn_exports_open(&exports, image, NULL) != HOTFN_OK) {
        return;
    }
    for (uint32_t n = 0; n < exports.name_count && n < FOUND_MAX; n++) {
        if (hfn_exports_named(&exports, n, &e) && hfn_exports_find(&exports, e.name, &found) &&
            e.name[0] != '#' && strcmp(e.name, found.name) != 0) {
            abort(); /* "#12" is a look-up by ordinal */
        }
    }
    hfn_exports_find(&exports, "#1", &found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hotfn_symbols_options options = HOTFN_SYMBOLS_OPTIONS_INIT;
    hotfn_image *image = NULL;
    hotfn_symbols *symbols = NULL;
    uint8_t *copy = malloc(size ? size : 1);

    if (!copy || size < 2) {
        goto done;
    }
    memcpy(copy, data, size);
    memcpy(copy, "MZ", 2);
    if (hotfn_image_open_bytes(&image, copy, size, "fuzz", NULL, NULL) != HOTFN_OK) {
        goto done;
    }
    /* No other files are read: the result depends on the input alone. */
    options.flags = HOTFN_SYMBOLS_NO_SEPARATE | HOTFN_SYMBOLS_DATA;
    if (hotfn_symbols_load(&symbols, image, &options, NULL, NULL) == HOTFN_OK) {
        check_symbols(symbols);
    }
    find_exports(image);
    hotfn_symbols_destroy(symbols);
    hotfn_image_close(image);
done:
    free(copy);
    return 0;
}
