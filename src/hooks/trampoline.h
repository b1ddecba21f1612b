/* SPDX-License-Identifier: MIT */
/* One stub: its head (arch/stub.h) and the moved instructions after it. */
#ifndef HFN_HOOKS_TRAMPOLINE_H
#define HFN_HOOKS_TRAMPOLINE_H

#include "arch/stub.h"
#include "plan/plan.h"

#include <hotfn/lowlevel/hooks.h>

_Static_assert(HFN_STUB_POPS_ALL == HOTFN_POPS_ALL, "the value is passed to the stub unchanged");

/* An action of this library only: COUNT by a call of hooks->count_shared, which needs no word of
 * the thread. */
#define HFN_ACTION_COUNT_SHARED 0x100u

/* ---- Sizes, which are needed for all hooks before one is written.  Inline, so that unused fields
 * of a hook are not decoded. */

static inline hfn_stub_kind hfn_trampoline_kind(uint32_t action_kind)
{
    switch (action_kind) {
    case HOTFN_ACTION_COUNT: return HFN_STUB_COUNT;
    case HOTFN_ACTION_CALL:
    case HFN_ACTION_COUNT_SHARED: return HFN_STUB_CALL;
    case HOTFN_ACTION_REPLACE: return HFN_STUB_REPLACE;
    case HOTFN_ACTION_FILTER: return HFN_STUB_FILTER;
    case HOTFN_ACTION_TIME: return HFN_STUB_TIME;
    case HOTFN_ACTION_SAMPLE: return HFN_STUB_SAMPLE;
    default: return HFN_STUB_EMPTY;
    }
}

static inline uint32_t hfn_trampoline_flags(const hfn_plan_hook *hook)
{
    return ((hook->flags & HOTFN_VERDICT_FLAGS_LIVE) ? HFN_STUB_FLAGS_LIVE : 0) |
           ((hook->flags & HOTFN_VERDICT_RED_ZONE) ? HFN_STUB_RED_ZONE : 0) |
           ((hook->flags & HOTFN_VERDICT_RETURN_SIGNED) ? HFN_STUB_SIGNED : 0) |
           ((hook->flags & HOTFN_VERDICT_KEY_B) ? HFN_STUB_KEY_B : 0) |
           (hook->far_slot ? HFN_STUB_FAR_SLOT : 0) |
           (hook->tail_exit_count > 0 ? HFN_STUB_TAIL_EXIT : 0) |
           (uint32_t)hook->scratch << HFN_STUB_SCRATCH_SHIFT |
           (uint32_t)hook->arguments << HFN_STUB_ARGUMENTS_SHIFT |
           (uint32_t)hook->stored_arguments << HFN_STUB_STORED_SHIFT;
}

/* The head's shape for an action (HOTFN_ACTION_*); see hfn_stub_get_shape. */
static inline const hfn_stub_shape *hfn_trampoline_shape(uint32_t kind, const hfn_plan_hook *hook,
                                                         hfn_stub_shape *room)
{
    return hfn_stub_get_shape(hfn_trampoline_kind(kind), hfn_trampoline_flags(hook), room);
}

static inline uint32_t hfn_trampoline_bytes(uint32_t kind, const hfn_plan_hook *hook)
{
    hfn_stub_shape room;

    return hfn_trampoline_shape(kind, hook, &room)->head_bytes + hook->moved_bytes;
}

/* ---- Code. */

/* The code that all stubs of a region share. */
typedef struct hfn_gates {
    uint64_t count, call, filter; /* addresses, or 0 */
    uint64_t count_shared;        /* hooks->count_shared */
    bool row_in_gs;               /* hooks->row_in_gs */
    uint64_t time_enter, time_exit;
} hfn_gates;

/* Write the stub for `address` into out; base is the module's address.  False if a target is out
 * of reach. */
bool hfn_trampoline_write(uint8_t *out, uint64_t address, const hfn_plan_hook *hook,
                          const hfn_stub_shape *shape, uint64_t base,
                          const hotfn_hook_action *action, const hotfn_row_access *access,
                          const hfn_gates *gates);

/* Offset in the stub of the moved copy of the instruction at pc_offset from the site; UINT32_MAX
 * if no instruction begins there. */
uint32_t hfn_trampoline_moved_pc(uint32_t kind, const hfn_plan_hook *hook, uint32_t pc_offset);

#endif
