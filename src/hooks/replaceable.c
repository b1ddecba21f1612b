/* SPDX-License-Identifier: MIT */
/* Which hookable functions can be replaced or filtered.  A count needs only one place that each
 * call passes; a replacement needs the function's entry, as callers see it. */
#include "base/status.h"
#include "hooks/hookset.h"

static const char *why_not_replaced(const hfn_plan_hook *hook)
{
    if (hook->strategy == HOTFN_STRATEGY_RETARGET) {
        return "its hook is at a call inside the function, not at the entry";
    }
    if (hook->flags & HOTFN_VERDICT_ENTRY_LOOP) {
        return "it jumps back to its own entry, which would run the replacement again";
    }
    if (hook->flags & (HOTFN_VERDICT_FLAGS_LIVE | HOTFN_VERDICT_RED_ZONE)) {
        return "its callers pass data in processor flags or below the stack pointer";
    }
    return NULL;
}

/* Returning without the function takes knowledge of what it would remove from the stack. */
static const char *why_not_filtered(const hotfn_plan *plan, const hfn_plan_hook *hook)
{
    if (plan->machine == HOTFN_MACHINE_X86 && !(hook->flags & HOTFN_VERDICT_TIMED)) {
        return "it is not proven that it leaves its arguments on the stack";
    }
    if (plan->machine == HOTFN_MACHINE_X86 && hook->arguments >> 5 != HOTFN_POPS_NOTHING) {
        return "it removes its arguments from the stack";
    }
    return NULL;
}

hotfn_status hfn_hooks_check_replaceable(const hotfn_plan *plan, uint32_t entry, uint32_t kind,
                                         hotfn_error *err)
{
    hfn_plan_hook hook;
    const char *why;

    hfn_plan_hook_at(plan, entry, &hook);
    why = why_not_replaced(&hook);
    if (!why && kind == HOTFN_ACTION_FILTER) {
        why = why_not_filtered(plan, &hook);
    }
    return why ? hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                                  "the function at RVA 0x%x can be counted, but not %s: %s",
                                  (unsigned)hook.rva,
                                  kind == HOTFN_ACTION_FILTER ? "filtered" : "replaced", why)
               : HOTFN_OK;
}

hotfn_status hfn_hooks_add_known(hotfn_hooks *hooks, const hotfn_plan *plan, uint64_t base,
                                 uint32_t function_index, const hotfn_hook_action *action,
                                 uint32_t *module, hotfn_error *err)
{
    hotfn_status status;

    hooks->knows_entries = true;
    status = hotfn_hooks_add(hooks, plan, base, function_index, action, module, err);
    hooks->knows_entries = false;
    return status;
}
