/* SPDX-License-Identifier: MIT */
/* One stub: its head (arch) and the moved instructions behind it, made to fit the place. */
#ifndef HFN_HOOKS_TRAMPOLINE_H
#define HFN_HOOKS_TRAMPOLINE_H

#include "arch/stub.h"
#include "hooks/plan.h"

/* The head's shape for an action (HOTFN_ACTION_*); see hfn_stub_shape_of. */
const hfn_stub_shape *hfn_trampoline_shape(uint32_t kind, const hfn_plan_hook *hook,
                                           hfn_stub_shape *room);
/* Of what stands behind the head, and with it. */
uint32_t hfn_trampoline_body_bytes(const hfn_plan_hook *hook);
uint32_t hfn_trampoline_bytes(uint32_t kind, const hfn_plan_hook *hook);

/* What all stubs of a region share. */
typedef struct hfn_gates {
    uint64_t count, call; /* addresses, 0 if there is none */
    uint64_t time_enter, time_exit;
} hfn_gates;

/* Write the stub of that shape that will run at address into out; base is the module's.  False if a target is out
 * of reach from there. */
bool hfn_trampoline_write(uint8_t *out, uint64_t address, const hfn_plan_hook *hook,
                          const hfn_stub_shape *shape, uint64_t base, const hotfn_hook_action *action,
                          const hotfn_row_access *access,
                          const hfn_gates *gates);

/* Where a thread's PC goes from inside the patched bytes: pc_offset is its distance from the site.
 * UINT32_MAX if no moved instruction begins there; else the distance from the stub's first byte. */
uint32_t hfn_trampoline_moved_pc(uint32_t kind, const hfn_plan_hook *hook, uint32_t pc_offset);

#endif
