/* SPDX-License-Identifier: MIT */
/* Finds the patching table of a machine.  Separate from arch.c so that code which patches processes
 * links without a decoder. */
#include "arch/arch.h"

#include <stddef.h>

const hfn_patching *hfn_patching_find(uint32_t machine)
{
    static const hfn_patching *const all[] = { &hfn_patching_x86_64, &hfn_patching_x86,
                                               &hfn_patching_arm64 };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i]->machine == machine) {
            return all[i];
        }
    }
    return NULL;
}
