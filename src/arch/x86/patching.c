/* SPDX-License-Identifier: MIT */
/* Patching tables.  A fixup is a 4-byte distance from the end of its instruction to the target; on
 * 32-bit x86 it may also be an address. */
#include "arch/arch.h"
#include "arch/x86/cfi_steps.h"
#include "arch/x86/emit.h"
#include "base/byte_order.h"

#include <hotfn/machine.h>

static bool fix_up(uint8_t *moved, uint64_t address, uint32_t at, uint32_t end, uint64_t target)
{
    hfn_x86_writer field = hfn_x86_begin_writer(moved + at, 4);
    int64_t distance = (int64_t)(target - (address + end));

    if (distance != (int32_t)distance) {
        return false;
    }
    hfn_x86_put_u32(&field, (uint32_t)distance);
    return true;
}

/* Addresses wrap around at 4 GiB, so everything is within reach. */
static bool fix_up_32(uint8_t *moved, uint64_t address, uint32_t at, uint32_t end, uint64_t target)
{
    hfn_x86_writer field = hfn_x86_begin_writer(moved + at, 4);
    uint64_t from = end == HFN_FIXUP_NO_END ? 0 : address + end;

    hfn_x86_put_u32(&field, (uint32_t)(target - from));
    return true;
}

static hfn_fixup_kind fixup_kind(uint32_t at, uint32_t end, uint32_t moved_bytes)
{
    return at + 4 <= end && end <= moved_bytes ? HFN_FIXUP_NEAR : HFN_FIXUP_BROKEN;
}

/* The field of the `lea` after a moved call is relative to the end of the call, which precedes
 * it. */
static hfn_fixup_kind fixup_kind_32(uint32_t at, uint32_t end, uint32_t moved_bytes)
{
    if (at + 4 > moved_bytes || end > moved_bytes) {
        return HFN_FIXUP_BROKEN;
    }
    return end == HFN_FIXUP_NO_END ? HFN_FIXUP_ADDRESS : HFN_FIXUP_NEAR;
}

/* jmp rel32; call rel32 */
static uint64_t jump_target(const uint8_t *bytes, uint64_t address)
{
    bool relative = bytes[0] == 0xe9 || bytes[0] == 0xe8;

    return relative ? address + 5 + (uint64_t)hfn_read_signed_le32(bytes + 1) : 0;
}

/* Addresses wrap around at 4 GiB. */
static uint64_t jump_target_32(const uint8_t *bytes, uint64_t address)
{
    return (uint32_t)jump_target(bytes, address);
}

static uint32_t cfi_steps_64(const hfn_moved *moved, uint8_t *out, uint32_t out_bytes)
{
    return hfn_x86_write_cfi(HFN_X86_64, moved, out, out_bytes);
}

static uint32_t cfi_steps_32(const hfn_moved *moved, uint8_t *out, uint32_t out_bytes)
{
    return hfn_x86_write_cfi(HFN_X86_32, moved, out, out_bytes);
}

const hfn_patching hfn_patching_x86_64 = {
    .machine = HOTFN_MACHINE_X86_64,
    .elf_machine = 62,
    .unit_bytes = 1,
    .jump_bytes = 5,
    .short_jump_bytes = 2,
    .jump_reach_bytes = UINT64_C(1) << 31,
    .has_tail_exits = true,
    .fix_up = fix_up,
    .fixup_kind = fixup_kind,
    .jump_target = jump_target,
    .cfi_steps = cfi_steps_64,
};

const hfn_patching hfn_patching_x86 = {
    .machine = HOTFN_MACHINE_X86,
    .elf_machine = 3,
    .unit_bytes = 1,
    .jump_bytes = 5,
    .short_jump_bytes = 2,
    .jump_reach_bytes = UINT64_C(1) << 32,
    .has_addresses = true,
    .fix_up = fix_up_32,
    .fixup_kind = fixup_kind_32,
    .jump_target = jump_target_32,
    .cfi_steps = cfi_steps_32,
};
