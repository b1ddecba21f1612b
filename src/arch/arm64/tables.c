/* SPDX-License-Identifier: MIT */
/* The table of this folder. */
#include "arch/arm64/decode.h"
#include "arch/arm64/dispatch.h"
#include "arch/arm64/emit.h"
#include "arch/arm64/relocate.h"

#include <hotfn/machine.h>

/* No stub of this CPU touches a flag: it counts with add, tests with cbz. */
static bool flags_live(const uint8_t *bytes, uint64_t size, uint64_t rva, uint64_t *jumps_to)
{
    (void)bytes;
    (void)size;
    (void)rva;
    *jumps_to = UINT64_MAX;
    return false;
}

const hfn_arch hfn_arch_arm64 = {
    .name = "arm64",
    .machine = HOTFN_MACHINE_ARM64,
    .pointer_bytes = 8,
    .unit_bytes = HFN_ARM64_BYTES,
    .jump_bytes = HFN_ARM64_BYTES,
    .short_jump_bytes = 0,
    .jump_reach_bytes = HFN_ARM64_REACH,
    .decode = hfn_arm64_decode,
    .complete = hfn_arm64_complete,
    .move = hfn_arm64_move,
    .fix_up = hfn_arm64_fix_up,
    .flags_live = flags_live,
    .retarget = hfn_arm64_retarget,
    .dispatch = hfn_arm64_dispatch,
};
