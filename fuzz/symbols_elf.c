/* SPDX-License-Identifier: MIT */
/* Any bytes as an image with symbols. */
#include "symbols_promises.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hotfn_symbols_options options = HOTFN_SYMBOLS_OPTIONS_INIT;
    hotfn_image *image = NULL;
    hotfn_symbols *symbols = NULL;

    if (hotfn_image_open_bytes(&image, data, size, "fuzz", NULL, NULL) != HOTFN_OK) {
        return 0;
    }
    /* Never looks at other files: the input alone decides what happens. */
    options.flags = HOTFN_SYMBOLS_NO_SEPARATE | HOTFN_SYMBOLS_DATA;
    if (hotfn_symbols_load(&symbols, image, &options, NULL, NULL) == HOTFN_OK) {
        check_symbols(symbols);
    }
    hotfn_symbols_destroy(symbols);
    hotfn_image_close(image);
    return 0;
}
