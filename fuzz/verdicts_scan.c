/* SPDX-License-Identifier: MIT */
/* Any bytes as an image, through the judge. */
#include "verdicts_promises.h"

#include <stddef.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hotfn_image *image = NULL;

    if (hotfn_image_open_bytes(&image, data, size, "fuzz", NULL, NULL) != HOTFN_OK) {
        return 0;
    }
    judge_image(image);
    hotfn_image_close(image);
    return 0;
}
