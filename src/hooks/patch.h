/* SPDX-License-Identifier: MIT */
/* One patch: compare its place with the plan, write it, restore the original bytes. */
#ifndef HFN_HOOKS_PATCH_H
#define HFN_HOOKS_PATCH_H

#include "arch/stub.h"
#include "os/os.h"
#include "plan/plan.h"

#define HFN_PATCH_SAME UINT32_MAX

/* The bytes of a patch: those at the site, and those of its island. */
typedef struct hfn_patch {
    uint8_t site[HFN_STUB_PATCH_MAX];
    uint8_t island[HFN_STUB_PATCH_MAX];
    uint64_t site_at, island_at; /* island_at 0: none */
} hfn_patch;

/* The patch of a hook: a jump to target. */
hfn_patch hfn_patch_make(const hfn_plan_hook *hook, uint64_t base, uint64_t target);

/* Offset from the function's entry of the first byte that differs from the plan, or
 * HFN_PATCH_SAME. */
uint32_t hfn_patch_compare(const hfn_plan_hook *hook, uint64_t base);
/* Write a jump to target; false if memory did not accept it and the original bytes are in place. */
bool hfn_patch_write(const hfn_plan_hook *hook, uint64_t base, uint64_t target,
                     hfn_os_writable_text *text);
/* Restore the original bytes, if they are not in place already (hotfn ctl); false if other code
 * changed the patch. */
bool hfn_patch_restore(const hfn_plan_hook *hook, uint64_t base, uint64_t target,
                       hfn_os_writable_text *text);

#endif
