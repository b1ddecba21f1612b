/* SPDX-License-Identifier: MIT */
/* One patch: compare its place with the plan, write it, restore the original bytes. */
#ifndef HFN_HOOKS_PATCH_H
#define HFN_HOOKS_PATCH_H

#include "os/os.h"
#include "plan/plan.h"

#define HFN_PATCH_SAME UINT32_MAX

/* Offset from the function's entry of the first byte that differs from the plan, or
 * HFN_PATCH_SAME. */
uint32_t hfn_patch_compare(const hfn_plan_hook *hook, uint64_t base);
/* Write a jump to target; false if memory did not accept it and the original bytes are in place. */
bool hfn_patch_write(const hfn_plan_hook *hook, uint64_t base, uint64_t target,
                     hfn_os_writable_text *window);
/* Restore the original bytes if the patch is still in place; false if other code changed it. */
bool hfn_patch_restore(const hfn_plan_hook *hook, uint64_t base, uint64_t target,
                       hfn_os_writable_text *window);

#endif
