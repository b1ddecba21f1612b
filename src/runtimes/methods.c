/* SPDX-License-Identifier: MIT */
#include "runtimes/methods.h"

#include "arch/method_pool.h"

#include <hotfn/lowlevel/functions.h>
#include <stdio.h>
#include <string.h>

enum { MAX_NAME = 1024, MAX_IMPLEMENTATIONS = 64 };

void hfn_methods_open(hfn_methods *out, hfn_live *live, uint32_t module,
                      hfn_find_symbol_fn *find_symbol, uint64_t base)
{
    hfn_methods m = { .live = live, .module = module };

    m.targets = find_symbol(base, HFN_POOL_TARGETS);
    m.functions = find_symbol(base, HFN_POOL_FUNCTIONS);
    if (m.targets && m.functions) {
        *out = m;
    }
}

/* ---- Selection. */

/* The part of a name from " (" on; NULL: there is none. */
static const char *find_place(const char *name)
{
    const char *at = strchr(name, ' ');

    while (at && at[1] != '(') {
        at = strchr(at + 1, ' ');
    }
    return at;
}

static bool match_glob(const char *glob, const char *name)
{
    const char *place = find_place(name);
    char short_name[MAX_NAME];
    size_t length = place ? (size_t)(place - name) : 0;

    if (hotfn_glob_match(glob, name) == 1) {
        return true;
    }
    if (length == 0 || length >= sizeof short_name) {
        return false;
    }
    memcpy(short_name, name, length);
    short_name[length] = 0;
    return hotfn_glob_match(glob, short_name) == 1;
}

static bool is_selected(const hfn_methods *m, const char *name)
{
    const char *rule = hfn_live_get_method_rules(m->live, m->module);
    bool is_included = rule[0] != '+';

    for (; rule[0]; rule += strlen(rule) + 1) {
        bool is_match = match_glob(rule + 1, name);

        if (rule[0] == '-' && is_match) {
            return false;
        }
        is_included |= rule[0] == '+' && is_match;
    }
    return is_included;
}

/* ---- Functions of the pool. */

/* Store the target, unless another one is there. */
static bool take_place(hotfn_code *place, hotfn_code target)
{
    hotfn_code before = NULL;

    return __atomic_compare_exchange_n(place, &before, target, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE) ||
           before == target;
}

hotfn_code hfn_methods_get(const hfn_methods *m, hfn_method_kind kind, const char *name,
                           hotfn_code target)
{
    hfn_method_range range = { 0, HFN_POOL_FRAMED };
    char other[MAX_NAME + 16];

    if (!m->live || !is_selected(m, name)) {
        return NULL;
    }
    if (kind == HFN_METHOD_PLAIN) {
        range = (hfn_method_range){ HFN_POOL_FRAMED, HFN_POOL_PLAIN };
    }
    for (unsigned n = 1; n <= MAX_IMPLEMENTATIONS; n++) {
        snprintf(other, sizeof other, n == 1 ? "%.*s" : "%.*s #%u", MAX_NAME, name, n);
        uint32_t index = hfn_live_get_method(m->live, m->module, range, other);

        if (index == UINT32_MAX) {
            return NULL;
        }
        if (take_place(&m->targets[index], target)) {
            return m->functions[index];
        }
    }
    return NULL;
}
