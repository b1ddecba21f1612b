/* SPDX-License-Identifier: MIT */
/* The patching table.  Fixups of moved code are branches, and addresses stored after the code. */
#include "arch/arm64/decode.h"
#include "arch/arm64/emit.h"
#include "arch/arm64/relocate.h"

#include <hotfn/machine.h>

static bool fix_up(uint8_t *moved, uint64_t address, uint32_t at, uint32_t end, uint64_t target)
{
    hfn_arm64_writer w = hfn_arm64_begin_writer(moved, HFN_MOVED_MAX);
    uint32_t word;

    if (end == HFN_ARM64_FIXUP_ADDRESS) {
        hfn_arm64_replace_word(&w, at, (uint32_t)target);
        hfn_arm64_replace_word(&w, at + 4, (uint32_t)(target >> 32));
        return true;
    }
    if (!hfn_arm64_make_branch(&word, (int64_t)(target - (address + at)))) {
        return false;
    }
    hfn_arm64_replace_word(&w, at, word);
    return true;
}

static hfn_fixup_kind fixup_kind(uint32_t at, uint32_t end, uint32_t moved_bytes)
{
    if (at % HFN_ARM64_BYTES != 0) {
        return HFN_FIXUP_BROKEN;
    }
    if (end == HFN_ARM64_FIXUP_BRANCH) {
        return at + 4 <= moved_bytes ? HFN_FIXUP_NEAR : HFN_FIXUP_BROKEN;
    }
    return end == HFN_ARM64_FIXUP_ADDRESS && at + 8 <= moved_bytes ? HFN_FIXUP_ANYWHERE
                                                                   : HFN_FIXUP_BROKEN;
}

/* b, bl */
static uint64_t jump_target(const uint8_t *bytes, uint64_t address)
{
    uint32_t word = hfn_read_le32(bytes);
    hfn_arm64_form form = hfn_arm64_get_form(word);

    return form == HFN_ARM64_B || form == HFN_ARM64_BL
               ? address + (uint64_t)hfn_arm64_get_distance(word, form)
               : 0;
}

const hfn_patching hfn_patching_arm64 = {
    .machine = HOTFN_MACHINE_ARM64,
    .elf_machine = 183,
    .unit_bytes = HFN_ARM64_BYTES,
    .jump_bytes = HFN_ARM64_BYTES,
    .short_jump_bytes = 0,
    .jump_reach_bytes = HFN_ARM64_REACH,
    .fix_up = fix_up,
    .fixup_kind = fixup_kind,
    .jump_target = jump_target,
    .cfi_steps = hfn_arm64_write_cfi,
};
