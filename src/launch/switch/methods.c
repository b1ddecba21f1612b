/* SPDX-License-Identifier: MIT */
/* Methods of a runtime that are switched.  Those that have a function are switched like any
 * function; an order that the record keeps decides about those that get one later.  While an order
 * has switched all methods off, the functions that the tracer has replaced are restored too. */
#include "base/status.h"
#include "launch/launch.h"
#include "launch/switch/switch.h"

#include <hotfn/lowlevel/functions.h>

_Static_assert(HFN_METHOD_OFF == HOTFN_SWITCH_OFF && HFN_METHOD_COUNT == HOTFN_SWITCH_COUNT &&
                   HFN_METHOD_TIME == HOTFN_SWITCH_TIME,
               "orders keep the modes of hotfn ctl");

/* UINT32_MAX: the target has none, the tracer obeys no orders, or the order is not for methods. */
static uint32_t find_pool(const hotfn_launch *l, const hotfn_switch_order *order)
{
    const hfn_runtime_kind *kind = hfn_runtime_find(l->options.runtime);

    if (!kind || !kind->obeys_orders ||
        (order->selection && (order->selection->min_bytes || order->selection->max_bytes))) {
        return UINT32_MAX;
    }
    for (uint32_t i = 0; i < hfn_live_get_module_count(l->live); i++) {
        hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;

        if (hfn_live_get_module(l->live, i, &m) == HOTFN_OK && m.flags & HOTFN_MODULE_METHODS) {
            return hfn_switch_matches_module(order, m.path) ? i : UINT32_MAX;
        }
    }
    return UINT32_MAX;
}

bool hfn_switch_split_methods(hotfn_launch *l, const hotfn_switch_order *order,
                              hotfn_status *status, hotfn_error *err)
{
    hfn_switch *s = &l->switching;
    uint32_t pool = find_pool(l, order);

    *status = HOTFN_OK;
    if (pool == UINT32_MAX || s->is_split || !l->timing || order->mode != HOTFN_SWITCH_COUNT) {
        return false;
    }
    /* before the functions are chosen: the target gives none of them to another method meanwhile */
    hfn_live_split_methods(l->live, pool);
    s->is_split = true;
    *status = hfn_switch_select_free(s, pool, &l->env, err);
    return *status == HOTFN_OK && s->chosen_count > 0;
}

static void find_replaced(hotfn_launch *l, uint32_t pool)
{
    uint32_t modules[HFN_MODULE_MAX_OWN_HOOKS], functions[HFN_MODULE_MAX_OWN_HOOKS];
    uint32_t count = hfn_live_get_replaced(l->live, pool, modules, functions);
    hfn_switch *s = &l->switching;

    for (; s->replaced_count < count; s->replaced_count++) {
        uint32_t module = modules[s->replaced_count];
        hfn_switched_replaced *r = &s->replaced[s->replaced_count];
        hotfn_record_module known = HOTFN_RECORD_MODULE_INIT;

        if (module >= s->module_capacity ||
            hfn_live_get_module(l->live, module, &known) != HOTFN_OK ||
            !hfn_switch_load_plan(s, module, &known, &l->env)) {
            return;
        }
        r->module = module;
        r->entry = hfn_plan_find_function(s->modules[module].plan, functions[s->replaced_count]);
        if (r->entry == UINT32_MAX) {
            return;
        }
    }
}

hotfn_status hfn_switch_order_methods(hotfn_launch *l, const hotfn_switch_order *order,
                                      hotfn_error *err)
{
    static const hotfn_selection all = HOTFN_SELECTION_INIT;
    const hotfn_selection *selection = order->selection ? order->selection : &all;
    hfn_method_rules rules = { selection->include, selection->exclude, selection->include_count,
                               selection->exclude_count, NULL };
    hfn_switch *s = &l->switching;
    uint32_t pool = find_pool(l, order);
    const uint32_t *orders;
    hotfn_status status;

    s->has_methods = pool != UINT32_MAX;
    if (!s->has_methods) {
        return HOTFN_OK;
    }
    status = hfn_live_order_methods(l->live, pool, order->mode, &rules, err);
    if (status == HOTFN_OK && hfn_runtime_find(l->options.runtime)->can_restore) {
        find_replaced(l, pool);
        orders = hfn_live_get_method_orders(l->live, pool);
        s->is_restored = *orders & HFN_METHOD_ORDERS_OFF &&
                         (*orders & HFN_METHOD_ORDERS_MASK) ==
                             (*orders >> HFN_METHOD_ORDERS_SHIFT & HFN_METHOD_ORDERS_MASK);
    }
    return status;
}

void hfn_switch_forget_methods(hfn_switch *s, const hotfn_env *env)
{
    for (uint32_t i = 0; i < s->replaced_count; i++) {
        hfn_unpatch_free_record(s->replaced[i].hook, env);
        s->replaced[i].hook = NULL;
    }
    s->replaced_count = 0;
    s->has_methods = s->is_restored = s->is_split = false;
}
