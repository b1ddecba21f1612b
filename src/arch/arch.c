/* SPDX-License-Identifier: MIT */
/* Which CPU folder serves which machine. */
#include "arch/arch.h"

#include "arch/x86/decode.h"
#include "arch/x86/dispatch.h"
#include "arch/x86/flags.h"
#include "arch/x86/relocate.h"

#include <hotfn/machine.h>
#include <stddef.h>

const hfn_arch hfn_arch_x86_64 = {
    .name = "x86-64",
    .machine = HOTFN_MACHINE_X86_64,
    .pointer_bytes = 8,
    .jump_bytes = 5,
    .decode = hfn_x86_decode,
    .move = hfn_x86_move,
    .flags_live = hfn_x86_flags_live,
    .retarget = hfn_x86_retarget,
    .dispatch = hfn_x86_dispatch,
};

const hfn_arch *hfn_arch_of(uint32_t machine)
{
    return machine == HOTFN_MACHINE_X86_64 ? &hfn_arch_x86_64 : NULL;
}
