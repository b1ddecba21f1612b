/* SPDX-License-Identifier: MIT */
/*
 * Functions that are switched off and on while their module stays hooked.
 *
 *     hook:   patched --(off)--> patched, OFF --(hfn_hooks_restore_off)--> OFF
 *             OFF --(on)--> neither --(hotfn_hooks_commit)--> patched
 *     batch:  PATCHED --(a hook is neither OFF nor patched)--> PENDING --(commit)--> PATCHED
 *
 * The stub is kept, because a call may be in it, and is used again when the function is switched
 * on.
 */
#include "hooks/hookset.h"
#include "hooks/trampoline.h"

static bool may_switch(const hfn_batch *batch)
{
    bool is_in_use = batch->state == HFN_BATCH_PENDING || batch->state == HFN_BATCH_PATCHED;

    return is_in_use &&
           (batch->kind == HOTFN_ACTION_COUNT || batch->kind == HOTFN_ACTION_TIME ||
            batch->kind == HOTFN_ACTION_SAMPLE || batch->kind == HFN_ACTION_COUNT_SHARED);
}

static void switch_batch(hotfn_hooks *hooks, hfn_batch *batch, hfn_hook_off_fn is_off, void *user)
{
    bool waits = false; /* for a commit */

    for (uint32_t i = 0; i < batch->hook_count; i++) {
        hfn_plan_hook hook;

        hfn_batch_hook(hooks, batch, i, &hook);
        batch->hooks[i] &= ~HFN_HOOK_OFF;
        batch->hooks[i] |= is_off(user, batch->module, hook.function_index) ? HFN_HOOK_OFF : 0;
        waits |= !(batch->hooks[i] & (HFN_HOOK_OFF | HFN_HOOK_PATCHED | HFN_HOOK_REFUSED));
    }
    if (waits) {
        batch->state = HFN_BATCH_PENDING;
    }
}

void hfn_hooks_switch(hotfn_hooks *hooks, hfn_hook_off_fn is_off, void *user)
{
    for (size_t i = 0; i < hooks->batch_count; i++) {
        if (may_switch(&hooks->batches[i])) {
            switch_batch(hooks, &hooks->batches[i], is_off, user);
        }
    }
}
