/* SPDX-License-Identifier: MIT */
/* Loads the symbols of any bytes as an image. */
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
    /* No other files are read: the result depends on the input alone. */
    options.flags = HOTFN_SYMBOLS_NO_SEPARATE | HOTFN_SYMBOLS_DATA;
    if (hotfn_symbols_load(&symbols, image, &options, NULL, NULL) == HOTFN_OK) {
        check_symbols(symbols);
    }
    hotfn_symbols_destroy(symbols);
    hotfn_image_close(image);
    return 0;
}
