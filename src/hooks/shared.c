/* SPDX-License-Identifier: MIT */
/*
 * Hooks of a process that may set thread pointers itself.  A stub finds the row of its thread in a
 * word of the C library's thread block; in a thread with another block this word is any memory.
 * So once a module of the process has code that sets thread pointers, stubs of all modules call a
 * function that counts in one row for all threads and uses no thread pointer.  Stubs that were
 * written before, because the module was loaded later, stay as they are.
 */
#include "base/status.h"
#include "hooks/hookset.h"
#include "hooks/trampoline.h"

void hfn_hooks_set_count_shared(hotfn_hooks *hooks, uint64_t function)
{
    hooks->count_shared = function;
}

void hfn_hooks_use_gs(hotfn_hooks *hooks)
{
    hooks->row_in_gs = true;
}

hotfn_status hfn_hooks_check_threads(hotfn_hooks *hooks, const hotfn_plan *plan, hotfn_error *err)
{
    if (!hfn_plan_has_own_threads(plan) || hooks->row_in_gs) {
        return HOTFN_OK;
    }
    if (hooks->count_shared == 0) {
        return hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                                "its code sets thread pointers, so threads may have no counters");
    }
    hooks->has_own_threads = true;
    return HOTFN_OK;
}

void hfn_hooks_share_counts(hotfn_hooks *hooks)
{
    for (size_t i = 0; hooks->has_own_threads && i < hooks->batch_count; i++) {
        hfn_batch *batch = &hooks->batches[i];

        if (batch->state == HFN_BATCH_PENDING && batch->slots) {
            batch->kind = HFN_ACTION_COUNT_SHARED;
        }
    }
}
