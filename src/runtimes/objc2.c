/* SPDX-License-Identifier: MIT */
/* Classes and methods of libobjc2, by its public functions.  These are called after the runtime has
 * looked the message up and sent +initialize, so they send no messages.  An object may be a number
 * that is stored in the pointer itself, so its class is obtained by a call, not by a read. */
#include "runtimes/objc2.h"

#include <stdio.h>

static struct {
    const void *(*get_class)(const void *object);
    const void *(*get_super)(const void *class);
    const char *(*get_class_name)(const void *class);
    signed char (*is_meta)(const void *class);
    const void *(*get_method)(const void *class, const void *selector);
    hotfn_code (*get_imp)(const void *method);
    const char *(*get_selector_name)(const void *selector);
} calls;

static bool find_call(hfn_find_symbol_fn *find_symbol, uint64_t base, const char *name, void *out)
{
    void *found = find_symbol(base, name);

    *(void **)out = found;
    return found != NULL;
}

bool hfn_objc2_open(hfn_find_symbol_fn *find_symbol, uint64_t base)
{
    return find_symbol(base, "objc_disposeClassPair") &&
           find_call(find_symbol, base, "object_getClass", &calls.get_class) &&
           find_call(find_symbol, base, "class_getSuperclass", &calls.get_super) &&
           find_call(find_symbol, base, "class_getName", &calls.get_class_name) &&
           find_call(find_symbol, base, "class_isMetaClass", &calls.is_meta) &&
           find_call(find_symbol, base, "class_getInstanceMethod", &calls.get_method) &&
           find_call(find_symbol, base, "method_getImplementation", &calls.get_imp) &&
           find_call(find_symbol, base, "sel_getName", &calls.get_selector_name);
}

const void *hfn_objc2_get_class(const void *receiver)
{
    return calls.get_class(receiver);
}

static bool has_method(const void *class, const void *selector, hotfn_code imp)
{
    const void *method = class ? calls.get_method(class, selector) : NULL;

    return method && calls.get_imp(method) == imp;
}

bool hfn_objc2_write_name(char *out, size_t out_bytes, const void *class, const void *selector,
                          hotfn_code imp)
{
    const void *super;

    if (!has_method(class, selector, imp)) {
        return false;
    }
    while (has_method(super = calls.get_super(class), selector, imp)) {
        class = super;
    }
    snprintf(out, out_bytes, "%c[%.500s %.500s]", calls.is_meta(class) ? '+' : '-',
             calls.get_class_name(class), calls.get_selector_name(selector));
    return true;
}
