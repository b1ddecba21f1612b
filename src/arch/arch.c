/* SPDX-License-Identifier: MIT */
/* Finds the table of the CPU folder that decodes for a machine. */
#include "arch/arch.h"

#include <stddef.h>

const hfn_arch *hfn_arch_find(uint32_t machine)
{
    static const hfn_arch *const all[] = {
#ifndef HFN_WITHOUT_X86 /* a build for another CPU, without Zydis */
        &hfn_arch_x86_64, &hfn_arch_x86,
#endif
        &hfn_arch_arm64
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i]->machine == machine) {
            return all[i];
        }
    }
    return NULL;
}
