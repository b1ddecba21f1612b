/* SPDX-License-Identifier: MIT */
/* Fuzzes the analysis of functions with any bytes as an image. */
#include "verdicts_promises.h"

#include <stddef.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hotfn_image *image = NULL;

    if (hotfn_image_open_bytes(&image, data, size, "fuzz", NULL, NULL) != HOTFN_OK) {
        return 0;
    }
    check_image(image);
    hotfn_image_close(image);
    return 0;
}
