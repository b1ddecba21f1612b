/* SPDX-License-Identifier: MIT */
/* `hotfn push --kit` needs a tar that packs folders, which not every Windows has. */
#include "record/push_options.h"

#include <stdio.h>

bool push_kit_folder(const char *folder, const hotfn_image *image, const char *file,
                     const hotfn_push_options *options)
{
    (void)image, (void)file, (void)options;
    fprintf(stderr, "hotfn push: %s: a kit cannot be stored from Windows; do this on Linux\n",
            folder);
    return false;
}
