/* SPDX-License-Identifier: MIT */
/* Selects methods by the rules of a run, and gives each selected one a function of the pool. */
#include "runtimes/methods.h"

#include "arch/method_pool.h"
#include "functions/glob.h"

#include <stdio.h>
#include <string.h>

void hfn_methods_open(hfn_methods *out, hfn_live *live, uint32_t module,
                      hfn_find_symbol_fn *find_symbol, uint64_t base)
{
    hfn_methods m = { .live = live, .module = module };

    m.targets = find_symbol(base, HFN_POOL_TARGETS_NAME);
    m.functions = find_symbol(base, HFN_POOL_FUNCTIONS_NAME);
    m.orders = hfn_live_get_method_orders(live, module);
    if (m.targets && m.functions && m.orders) {
        *out = m;
    }
}

/* ---- Selection. */

bool hfn_methods_is_selected(const hfn_methods *m, const char *name)
{
    const char *rule = hfn_live_get_method_rules(m->live, m->module);
    bool is_included = rule[0] != '+';

    for (; rule[0]; rule += strlen(rule) + 1) {
        bool is_match = hfn_glob_match_method(rule + 1, name);

        if (rule[0] == '-' && is_match) {
            return false;
        }
        is_included |= rule[0] == '+' && is_match;
    }
    return is_included;
}

bool hfn_methods_has_includes(const hfn_methods *m)
{
    return hfn_live_get_method_rules(m->live, m->module)[0] == '+';
}

const char *hfn_methods_get_watch(const hfn_methods *m)
{
    const char *rule = hfn_live_get_method_rules(m->live, m->module);

    while (rule[0] && rule[0] != '!') {
        rule += strlen(rule) + 1;
    }
    return rule[0] ? rule + 1 : NULL;
}

/* ---- Orders. */

/* The mode after the order at *at, which is advanced to the next one. */
static uint32_t apply_order(const char **at, const char *end, const char *name, uint32_t mode)
{
    const char *order = *at, *text = order + strlen(order) + 1;
    bool is_included = text >= end || text[0] != '+', is_excluded = false;

    for (; text < end && (text[0] == '+' || text[0] == '-'); text += strlen(text) + 1) {
        bool is_match = hfn_glob_match_method(text + 1, name);

        is_included |= text[0] == '+' && is_match;
        is_excluded |= text[0] == '-' && is_match;
    }
    *at = text;
    return is_included && !is_excluded ? (uint32_t)(order[0] - '0') : mode;
}

uint32_t hfn_methods_get_mode(const hfn_methods *m, uint32_t orders, const char *name)
{
    const char *texts = hfn_live_get_order_texts(m->live, m->module);
    const char *at = texts + (orders & HFN_METHOD_ORDERS_MASK);
    const char *end = texts + (orders >> HFN_METHOD_ORDERS_SHIFT & HFN_METHOD_ORDERS_MASK);
    uint32_t mode = orders & HFN_METHOD_ORDERS_OFF     ? HFN_METHOD_OFF
                    : orders & HFN_METHOD_ORDERS_COUNT ? HFN_METHOD_COUNT
                                                       : HFN_METHOD_TIME;

    while (at < end) {
        mode = apply_order(&at, end, name, mode);
    }
    return mode;
}

/* ---- Functions of the pool. */

uint32_t hfn_methods_get_index(const hfn_methods *m, hotfn_code function)
{
    uintptr_t first = (uintptr_t)m->functions[0], step = (uintptr_t)m->functions[1] - first;
    uintptr_t index = ((uintptr_t)function - first) / step;

    return function && index < HFN_POOL_FUNCTIONS ? (uint32_t)index : UINT32_MAX;
}

uint32_t hfn_methods_get_slot(const hfn_methods *m, hotfn_code function)
{
    uint32_t index = hfn_methods_get_index(m, function);

    return index == UINT32_MAX ? HOTFN_NO_SLOT : hfn_live_get_slots(m->live, m->module)[index];
}

/* Store the target, unless another one is there. */
static bool take_place(hotfn_code *place, hotfn_code target)
{
    hotfn_code before = NULL;

    return __atomic_compare_exchange_n(place, &before, target, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE) ||
           before == target;
}

/* The index of the function for the method; UINT32_MAX: there is none. */
static uint32_t find_place(const hfn_methods *m, const char *name, hfn_method_places places)
{
    bool is_counted = hfn_methods_get_mode(m, hfn_methods_get_orders(m), name) == HFN_METHOD_COUNT;

    return hfn_live_get_method(m->live, m->module, name,
                               places | (is_counted ? HFN_METHODS_COUNTED : HFN_METHODS_ALL));
}

hotfn_code hfn_methods_get_any(const hfn_methods *m, const char *name, hotfn_code target)
{
    uint32_t index = m->live ? find_place(m, name, HFN_METHODS_ALL) : UINT32_MAX;

    return index != UINT32_MAX && take_place(&m->targets[index], target) ? m->functions[index]
                                                                         : NULL;
}

hotfn_code hfn_methods_get_framed(const hfn_methods *m, const char *name, hotfn_code target,
                                  bool *is_new)
{
    uint32_t index = m->live ? find_place(m, name, HFN_METHODS_EVEN) : UINT32_MAX;

    *is_new = index != UINT32_MAX && !__atomic_load_n(&m->targets[index], __ATOMIC_RELAXED);
    return index != UINT32_MAX && take_place(&m->targets[index], target) ? m->functions[index]
                                                                         : NULL;
}

hotfn_code hfn_methods_get(const hfn_methods *m, const char *name, hotfn_code target)
{
    return m->live && hfn_methods_is_selected(m, name) ? hfn_methods_get_any(m, name, target)
                                                       : NULL;
}

hotfn_code hfn_methods_get_numbered(const hfn_methods *m, const char *name, hotfn_code target,
                                    bool may_frame)
{
    enum { MAX_NUMBER = 99, NUMBER_BYTES = 8 };
    hfn_method_places places = may_frame ? HFN_METHODS_EVEN : HFN_METHODS_ODD;
    char text[1024 + NUMBER_BYTES];
    int length = snprintf(text, sizeof text - NUMBER_BYTES, "%s", name);

    if (!m->live || length >= (int)sizeof text - NUMBER_BYTES ||
        !hfn_methods_is_selected(m, name)) {
        return NULL;
    }
    for (int number = 2; number <= MAX_NUMBER; number++) {
        uint32_t index = find_place(m, text, places);

        if (index == UINT32_MAX || take_place(&m->targets[index], target)) {
            return index == UINT32_MAX ? NULL : m->functions[index];
        }
        snprintf(text + length, NUMBER_BYTES, " (%d)", number);
    }
    return NULL;
}
