/* SPDX-License-Identifier: MIT */
/* The table hfn_arch_arm64. */
#include "arch/arm64/address_use.h"
#include "arch/arm64/decode.h"
#include "arch/arm64/dispatch.h"
#include "arch/arm64/relocate.h"
#include "arch/arm64/stack_use.h"
#include "arch/arm64/system_calls.h"
#include "arch/arm64/thread_pointer.h"

#include <hotfn/machine.h>

/* Stubs of this CPU count with add and test with cbz, so they change x16 and x17 but no flag. */
static bool flags_live(const uint8_t *bytes, uint64_t size, uint64_t rva, uint64_t at,
                       const hfn_flag_reads *reads, uint64_t *leaves_to)
{
    *leaves_to = UINT64_MAX; /* callers do not rely on x16 and x17, which veneers may change */
    return hfn_arm64_are_scratch_registers_live(bytes, size, rva, at - rva, reads);
}

const hfn_arch hfn_arch_arm64 = {
    .name = "arm64",
    .machine = HOTFN_MACHINE_ARM64,
    .pointer_bytes = 8,
    .patching = &hfn_patching_arm64,
    .decode = hfn_arm64_decode,
    .complete = hfn_arm64_complete_address,
    .move = hfn_arm64_move_prologue,
    .flags_live = flags_live,
    .find_fault = hfn_arm64_find_fault,
    .get_address_use = hfn_arm64_get_address_use,
    .reads_context = hfn_arm64_reads_context,
    .retarget = hfn_arm64_make_retarget,
    .dispatch = hfn_arm64_describe_dispatch,
    .begin_stack = hfn_arm64_begin_stack,
    .step_stack = hfn_arm64_step_stack,
    .leave_stack = hfn_arm64_leave_stack,
    .stack_register = 31,
    .frame_register = 29,
    .return_place = HFN_ARM64_RETURN_PLACE,
    .is_never_shared = hfn_arm64_saves_link,
    .may_switch_stack = hfn_arm64_may_switch_stack,
    .find_thread_evidence = hfn_arm64_find_thread_evidence,
    .is_signal_restorer = hfn_arm64_is_signal_restorer,
    .touched_bytes = hfn_arm64_get_touched_bytes,
};
