/* SPDX-License-Identifier: MIT */
/* Writes a stub.  The moved instructions are taken from the plan; only their PC-relative fields
 * depend on the address of the stub. */
#include "hooks/trampoline.h"

static bool fix_up(uint8_t *moved, uint64_t address, const hfn_plan_hook *hook, uint64_t base)
{
    uint64_t site = base + hook->site_rva;

    for (uint32_t i = 0; i < hook->fixup_count; i++) {
        const uint8_t *fixup = hook->fixups + i * PLAN_FIXUP_BYTES;
        uint64_t target = site + (uint64_t)hfn_read_signed_le32(fixup + 2);
        if (!hfn_stub_get_patching()->fix_up(moved, address, fixup[0], fixup[1], target)) {
            return false;
        }
    }
    return true;
}

static uint64_t gate_for(const hfn_gates *gates, uint32_t kind)
{
    return kind == HOTFN_ACTION_CALL || kind == HFN_ACTION_COUNT_SHARED ? gates->call
           : kind == HOTFN_ACTION_FILTER                                ? gates->filter
                                                                        : gates->count;
}

/* What a stub calls or jumps to. */
static uint64_t callback_of(const hotfn_hook_action *action)
{
    switch (action->kind) {
    case HOTFN_ACTION_REPLACE: return (uint64_t)(uintptr_t)action->replacement;
    case HOTFN_ACTION_FILTER: return (uint64_t)(uintptr_t)action->filter;
    default: return (uint64_t)(uintptr_t)action->callback;
    }
}

bool hfn_trampoline_write(uint8_t *out, uint64_t address, const hfn_plan_hook *hook,
                          const hfn_stub_shape *shape, uint64_t base,
                          const hotfn_hook_action *action, const hotfn_row_access *access,
                          const hfn_gates *gates)
{
    uint32_t head_bytes = shape->head_bytes;
    hfn_stub_request request = {
        .kind = hfn_trampoline_kind(action->kind),
        .flags = hfn_trampoline_flags(hook),
        .address = address,
        .gate = gate_for(gates, action->kind),
        .row_in_gs = gates->row_in_gs,
        .row_displacement = access->displacement,
        .slot_displacement = (int32_t)(access->slot_base_bytes + 8 * action->slot),
        .callback = callback_of(action),
        .user = (uint64_t)(uintptr_t)action->user,
        .time_enter = gates->time_enter,
        .time_exit = gates->time_exit,
        .slot = action->slot,
        .skip_displacement = (int32_t)(access->skip_base_bytes + 4 * action->slot),
        .tail_target = base + hook->tail_target_rva,
    };
    int64_t distance = (int64_t)(request.tail_target - address);

    if (action->kind == HFN_ACTION_COUNT_SHARED) {
        request.callback = gates->count_shared;
        request.user = access->slot_base_bytes + UINT64_C(8) * action->slot;
    }
    if (hook->tail_exit_count > 0 && distance != (int32_t)distance) {
        return false;
    }

    hfn_stub_emit(out, &request);
    memcpy(out + head_bytes, hook->moved, hook->moved_bytes);
    return fix_up(out + head_bytes, address + head_bytes, hook, base);
}

uint32_t hfn_trampoline_moved_pc(uint32_t kind, const hfn_plan_hook *hook, uint32_t pc_offset)
{
    hfn_stub_shape room;

    for (uint32_t i = 0; i < hook->step_count; i++) {
        if (hook->steps[i * PLAN_STEP_BYTES] == pc_offset) {
            return hfn_trampoline_shape(kind, hook, &room)->head_bytes +
                   hook->steps[i * PLAN_STEP_BYTES + 1];
        }
    }
    return UINT32_MAX;
}
