/* SPDX-License-Identifier: MIT */
/* One site: is it as the plan says, write its patch, put its bytes back. */
#ifndef HFN_HOOKS_PATCH_H
#define HFN_HOOKS_PATCH_H

#include "os/os.h"
#include "plan/plan.h"

#define HFN_PATCH_SAME UINT32_MAX

/* Offset from the function's entry of the first byte that is not as in the plan; HFN_PATCH_SAME. */
uint32_t hfn_patch_compare(const hfn_plan_hook *hook, uint64_t base);
/* Jump to target; false if memory did not take the bytes (then the original ones are back). */
bool hfn_patch_write(const hfn_plan_hook *hook, uint64_t base, uint64_t target,
                     hfn_os_writable_text *window);
/* Put the original bytes back if our patch still stands there; false if something else does. */
bool hfn_patch_restore(const hfn_plan_hook *hook, uint64_t base, uint64_t target,
                       hfn_os_writable_text *window);

#endif
