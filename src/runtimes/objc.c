/* SPDX-License-Identifier: MIT */
/*
 * Messages of Objective-C programs, in GCC's runtime (libobjc.so.4) and in libobjc2.  Code that GCC
 * compiles asks objc_msg_lookup, or objc_msg_lookup_super, for the function of a method (its IMP),
 * and calls it.  Both are replaced: they ask the original, and return the method's function of the
 * pool, which counts the call and enters the method with all registers unchanged.  With libobjc2,
 * clang's code calls objc_msgSend instead, whose replacement looks the function up and jumps to it
 * (arch/objc_send.h).
 *
 *     caller -> lookup -> original lookup -> IMP -> table: (class, selector, IMP) -> pool function
 *     caller -> pool function -> stub: count, clock -> method
 *
 * Because the IMP is a part of the key, a method that gets another IMP gets another function of
 * the pool.  The original lookup sends +initialize.  Afterwards classes of GCC's runtime are only
 * read, because the runtime's own functions may send messages, or wait for a thread that holds its
 * lock.
 */
#include "runtimes/objc.h"

#include "arch/objc_send.h"
#include "os/threads.h"
#include "runtimes/objc2.h"
#include "session/joined.h"

#include <hotfn/lowlevel/counters.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- What is used of the runtime's data (GCC 4.6 and later: libobjc/objc/message.h,
 * libobjc/objc-private/module-abi-8.h, selector.h). */

typedef struct objc_selector {
    const void *id; /* the same for all selectors of one name */
    const char *types;
} objc_selector;

typedef struct objc_method {
    const objc_selector *selector;
    const char *types;
    hotfn_code imp;
} objc_method;

typedef struct objc_method_list {
    const struct objc_method_list *next;
    int count;
    objc_method methods[1];
} objc_method_list;

typedef struct objc_class {
    const struct objc_class *meta, *super;
    const char *name;
    long version;
    unsigned long info; /* CLASS_* */
    long instance_size;
    const void *variables;
    const objc_method_list *methods;
} objc_class;

typedef struct objc_object {
    const objc_class *class;
} objc_object;

typedef struct objc_super {
    const objc_object *receiver;
    const objc_class *class; /* where the search begins */
} objc_super;

#define CLASS_META 2u
#define CLASS_RESOLVED 8u /* `super` is a class, and not the name of one */

typedef hotfn_code lookup_fn(const objc_object *receiver, const objc_selector *selector);
typedef const hotfn_code *lookup_slot_fn(const objc_super *super, const objc_selector *selector);
typedef hotfn_code get_imp_fn(const objc_class *class, const objc_selector *selector);
typedef hotfn_code lookup_super_fn(const objc_super *super, const objc_selector *selector);

/* ---- The tracer of this process. */

static struct {
    hfn_runtime_process process;
    hfn_methods methods;
    hotfn_code lookup, lookup_super, get_imp, dispose; /* the originals */
    void **lock;                                       /* __objc_runtime_mutex */
    int (*try_lock)(void *mutex);                      /* -1: another thread has the lock */
    int (*unlock)(void *mutex);
    const char *(*get_name)(const objc_selector *selector);
    bool is_libobjc2;
    uint32_t is_locked_out; /* 1: a name was not found, as another thread kept the lock; atomic */
} objc;

/* ---- The table of known sends.  An entry is claimed by its class, and published by its function.
 * If that is the IMP, because the method was switched off or is not selected, it is looked up again
 * when the orders have changed; else the entry is never changed.  A send that finds no room is
 * looked up by name each time. */

#define ENTRIES 65536u /* a power of two */
#define MAX_PROBES 16u

typedef struct known_send {
    const objc_class *class; /* atomic; NULL: free */
    const void *id;
    hotfn_code imp;
    hotfn_code function; /* atomic; NULL: not published */
    uint32_t orders;     /* atomic; under which the function was chosen */
} known_send;

static known_send entries[ENTRIES];

static uint32_t hash_send(const objc_class *class, const void *id, hotfn_code imp)
{
    uint64_t hash = (uint64_t)(uintptr_t) class ^ (uint64_t)(uintptr_t)id << 20 ^
                    (uint64_t)(uintptr_t)id >> 32 ^ (uint64_t)(uintptr_t)imp << 7;

    return (uint32_t)(hash * UINT64_C(0x9E3779B97F4A7C15) >> 40);
}

static known_send *find_known(const objc_class *class, const void *id, hotfn_code imp)
{
    uint32_t at = hash_send(class, id, imp);

    for (uint32_t i = 0; i < MAX_PROBES; i++) {
        known_send *e = &entries[(at + i) % ENTRIES];

        /* Pairs with the release stores in add_known. */
        if (__atomic_load_n(&e->function, __ATOMIC_ACQUIRE) && e->class == class && e->id == id &&
            e->imp == imp) {
            return e;
        }
        if (!__atomic_load_n(&e->class, __ATOMIC_RELAXED)) {
            return NULL;
        }
    }
    return NULL;
}

static void add_known(const objc_class *class, const void *id, hotfn_code imp, hotfn_code function,
                      uint32_t orders)
{
    uint32_t at = hash_send(class, id, imp);
    known_send *known = find_known(class, id, imp);

    if (known) {
        __atomic_store_n(&known->function, function, __ATOMIC_RELEASE);
        __atomic_store_n(&known->orders, orders, __ATOMIC_RELAXED);
        return;
    }
    for (uint32_t i = 0; i < MAX_PROBES; i++) {
        known_send *e = &entries[(at + i) % ENTRIES];
        const objc_class *before = NULL;

        if (__atomic_compare_exchange_n(&e->class, &before, class, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            e->id = id;
            e->imp = imp;
            e->orders = orders;
            __atomic_store_n(&e->function, function, __ATOMIC_RELEASE);
            return;
        }
    }
}

/* ---- Methods. */

static bool has_method(const objc_class *class, const void *id, hotfn_code imp)
{
    for (const objc_method_list *list = class->methods; list; list = list->next) {
        for (int i = 0; i < list->count; i++) {
            const objc_method *method = &list->methods[i];

            if (method->imp == imp && method->selector && method->selector->id == id) {
                return true;
            }
        }
    }
    return false;
}

/* The class that implements the method; NULL: the IMP belongs to none, for example because it
 * forwards the message. */
static const objc_class *find_class(const objc_class *class, const void *id, hotfn_code imp)
{
    while (class && !has_method(class, id, imp)) {
        class = class->info & CLASS_RESOLVED ? class->super : NULL;
    }
    return class;
}

/* Names are protected by the runtime's lock, which +initialize holds.  A thread must not wait for
 * it longer than for a moment: without hotfn it would not need the lock. */
static bool try_lock(void)
{
    enum { TRIES = 100, WAIT_NS = 200000 };
    _Atomic uint32_t word = 0;
    uint32_t tries = __atomic_load_n(&objc.is_locked_out, __ATOMIC_RELAXED) ? 1 : TRIES;

    while (objc.try_lock(*objc.lock) < 0) {
        if (--tries == 0) {
            return false;
        }
        hfn_os_wait_word(&word, 0, WAIT_NS);
    }
    return true;
}

/* The text is never freed. */
static const char *get_name(const objc_selector *selector)
{
    const char *name;

    if (!try_lock()) {
        if (!__atomic_exchange_n(&objc.is_locked_out, 1, __ATOMIC_RELAXED)) {
            objc.process.warn("some messages are not counted: they were sent while another thread "
                              "held the lock of the Objective-C runtime, as in +initialize");
        }
        return NULL;
    }
    name = objc.get_name(selector);
    objc.unlock(*objc.lock);
    __atomic_store_n(&objc.is_locked_out, 0, __ATOMIC_RELAXED);
    return name;
}

static bool write_gcc_name(char *out, size_t out_bytes, const objc_class *class,
                           const objc_selector *selector, hotfn_code imp)
{
    const objc_class *owner = find_class(class, selector->id, imp);
    const char *name = owner ? get_name(selector) : NULL;

    if (name) {
        snprintf(out, out_bytes, "%c[%.500s %.500s]", owner->info & CLASS_META ? '+' : '-',
                 owner->name, name);
    }
    return name != NULL;
}

/* If a program set an IMP that a lookup had returned for another method, the IMP is a function of
 * the pool already, and its calls are counted for the method that was looked up. */
static hotfn_code get_function(const char *name, hotfn_code imp)
{
    if (hfn_methods_get_index(&objc.methods, imp) != UINT32_MAX) {
        return imp;
    }

    hotfn_code function = hfn_methods_get_numbered(
        &objc.methods, name, imp, hfn_session_may_frame((uint64_t)(uintptr_t)imp, 0));
    return function ? function : imp;
}

/* The method's function, or its IMP while the method is off, under the orders that are stored. */
static hotfn_code obey_orders(uint32_t *orders, const char *name, hotfn_code imp)
{
    hotfn_code function;

    do {
        *orders = hfn_methods_get_orders(&objc.methods);
        function = hfn_methods_get_mode(&objc.methods, *orders, name) == HFN_METHOD_OFF
                       ? imp
                       : get_function(name, imp);
    } while (*orders != hfn_methods_get_orders(&objc.methods));
    return function;
}

/* NULL: the IMP is that of no method that is known. */
static hotfn_code find_function(const objc_class *class, const objc_selector *selector,
                                hotfn_code imp)
{
    void *paused = hotfn_counters_pause();
    char name[1024];
    uint32_t orders;
    hotfn_code function = NULL;

    if (objc.is_libobjc2 ? hfn_objc2_write_name(name, sizeof name, class, selector, imp)
                         : write_gcc_name(name, sizeof name, class, selector, imp)) {
        function = obey_orders(&orders, name, imp);
        add_known(class, selector->id, imp, function, orders);
    }
    hotfn_counters_resume(paused);
    return function;
}

/* HOT PATH: runs at each message.  The caller is compiled code that calls a C function. */
static hotfn_code choose_function(const objc_class *class, const objc_selector *selector,
                                  hotfn_code imp)
{
    const known_send *known = find_known(class, selector->id, imp);
    hotfn_code function = known ? __atomic_load_n(&known->function, __ATOMIC_RELAXED) : NULL;

    return known && (function != imp || __atomic_load_n(&known->orders, __ATOMIC_RELAXED) ==
                                            hfn_methods_get_orders(&objc.methods))
               ? function
               : find_function(class, selector, imp);
}

static const objc_class *get_class(const objc_object *receiver)
{
    return objc.is_libobjc2 ? hfn_objc2_get_class(receiver) : receiver->class;
}

static hotfn_code look_up(const objc_object *receiver, const objc_selector *selector)
{
    hotfn_code imp = ((lookup_fn *)objc.lookup)(receiver, selector), function = NULL;

    if (receiver && objc.methods.live) {
        function = choose_function(get_class(receiver), selector, imp);
    }
    return function ? function : imp;
}

/* class_getMethodImplementation of GCC's runtime: programs compare its result with a lookup's, to
 * learn whether a class overrides a method. */
static hotfn_code get_imp(const objc_class *class, const objc_selector *selector)
{
    hotfn_code imp = ((get_imp_fn *)objc.get_imp)(class, selector), function = NULL;

    if (class && selector && imp && objc.methods.live) {
        function = choose_function(class, selector, imp);
    }
    return function ? function : imp;
}

static hotfn_code look_up_super(const objc_super *super, const objc_selector *selector)
{
    hotfn_code imp = ((lookup_super_fn *)objc.lookup_super)(super, selector), function = NULL;

    if (super->receiver && objc.methods.live) {
        function = choose_function(super->class, selector, imp);
    }
    return function ? function : imp;
}

/* As look_up_super, where a slot is returned: the address of the function's address. */
static const hotfn_code *look_up_super_slot(const objc_super *super, const objc_selector *selector)
{
    const hotfn_code *slot = ((lookup_slot_fn *)objc.lookup_super)(super, selector);
    const known_send *known = NULL;

    if (super->receiver && objc.methods.live) {
        choose_function(super->class, selector, *slot);
        known = find_known(super->class, selector->id, *slot);
    }
    return known ? &known->function : slot;
}

/* Another class may get its address. */
static void forget_class(const objc_class *class)
{
    for (uint32_t i = 0; i < ENTRIES; i++) {
        if (__atomic_load_n(&entries[i].class, __ATOMIC_RELAXED) == class) {
            __atomic_store_n(&entries[i].function, NULL, __ATOMIC_RELEASE);
        }
    }
}

/* objc_disposeClassPair of libobjc2. */
static void dispose_class(const objc_class *class)
{
    if (class) {
        forget_class(hfn_objc2_get_class(class));
        forget_class(class);
    }
    ((void (*)(const objc_class *))objc.dispose)(class);
}

hfn_objc_code *hfn_objc_originals[HFN_OBJC_SENDS];

/* HOT PATH: runs at each message; objc_msgSend's replacement has saved the arguments.  Messages
 * without a method are sent by the original, which may forward them to another receiver. */
hfn_objc_code *hfn_objc_choose(const void *receiver, const void *selector, uint32_t variant)
{
    hotfn_code function = NULL;

    if (objc.methods.live) {
        hotfn_code imp = ((lookup_fn *)objc.lookup)(receiver, selector);

        function = choose_function(hfn_objc2_get_class(receiver), selector, imp);
    }
    return function ? function : hfn_objc_originals[variant];
}

/* ---- Start. */

static void *find_symbol(uint64_t base, const char *name)
{
    return objc.process.find_symbol(base, name);
}

static bool find_functions(uint64_t base)
{
    objc.lock = find_symbol(base, "__objc_runtime_mutex");
    objc.try_lock = (int (*)(void *))(hotfn_code)(uintptr_t)find_symbol(base, "objc_mutex_trylock");
    objc.unlock = (int (*)(void *))(hotfn_code)(uintptr_t)find_symbol(base, "objc_mutex_unlock");
    objc.get_name = (const char *(*)(const objc_selector *))(hotfn_code)(uintptr_t)find_symbol(
        base, "sel_getName");
    return objc.lock && objc.try_lock && objc.unlock && objc.get_name;
}

/* Is this GCC's runtime, with data as described above?  It has a second lookup for messages to
 * super and, since 4.6, class_getMethodImplementation. */
static bool check_version(uint64_t base)
{
    if (!find_symbol(base, "class_getMethodImplementation") ||
        !find_symbol(base, "objc_msg_lookup_super") || !find_functions(base)) {
        objc.process.warn("Objective-C messages are not counted: this runtime is not that of GCC "
                          "4.6 or later (libobjc.so.4)");
        return false;
    }
    return true;
}

/* objc_msgSend and its variants; several may be one function. */
static uint32_t find_sends(uint64_t base, hfn_replaced out[HFN_MAX_REPLACED], uint32_t count)
{
    static hfn_objc_code *const sends[HFN_OBJC_SENDS] = HFN_OBJC_SEND_ENTRIES;
    static const char *const names[HFN_OBJC_SENDS] = { "objc_msgSend", "objc_msgSend_fpret",
                                                       "objc_msgSend_stret" };
    uint64_t last = 0;

    for (uint32_t i = 0; i < HFN_OBJC_SENDS && sends[i]; i++) {
        uint64_t entry = (uint64_t)(uintptr_t)find_symbol(base, names[i]);

        if (entry && entry != last) {
            out[count++] = (hfn_replaced){ entry, sends[i], &hfn_objc_originals[i], true };
            last = entry;
        }
    }
    return count;
}

static uint32_t find_lookups(uint64_t base, hfn_replaced out[HFN_MAX_REPLACED])
{
    uint64_t plain = (uint64_t)(uintptr_t)find_symbol(base, "objc_msg_lookup");
    uint64_t super = (uint64_t)(uintptr_t)find_symbol(base, "objc_msg_lookup_super");

    if (!plain || !super) {
        return 0;
    }
    out[0] = (hfn_replaced){ plain, (hotfn_code)look_up, &objc.lookup, false };
    out[1] = (hfn_replaced){ super, (hotfn_code)look_up_super, &objc.lookup_super, false };
    return 2;
}

static uint32_t find_replaced(void *user, uint64_t base, hfn_replaced out[HFN_MAX_REPLACED])
{
    bool has_send = find_symbol(base, "objc_msgSend") != NULL;
    uint32_t lookups = objc.lookup ? 0 : find_lookups(base, out), count = 0;

    (void)user;
    if (objc.lookup || (lookups == 0 && !has_send)) {
        return 0;
    }
    if (!has_send) {
        if (!check_version(base)) {
            return 0;
        }
        out[lookups] =
            (hfn_replaced){ (uint64_t)(uintptr_t)find_symbol(base, "class_getMethodImplementation"),
                            (hotfn_code)get_imp, &objc.get_imp, false };
        return lookups + 1;
    }
    if (lookups > 0 && hfn_objc2_open(objc.process.find_symbol, base)) {
        if (hfn_objc_calls_slot_lookup((const void *)(uintptr_t)out[1].entry)) {
            out[1].replacement = (hotfn_code)look_up_super_slot;
            out[1].is_known = true;
        }
        count = find_sends(base, out, lookups);
    }
    objc.is_libobjc2 = count > lookups;
    if (!objc.is_libobjc2) {
        objc.process.warn("Objective-C messages are not counted: this runtime has objc_msgSend, "
                          "but not the calls of libobjc2 2.0 or later");
        return 0;
    }
    out[count] = (hfn_replaced){ (uint64_t)(uintptr_t)find_symbol(base, "objc_disposeClassPair"),
                                 (hotfn_code)dispose_class, &objc.dispose, false };
    return count + 1;
}

static void use_methods(void *user, hfn_live *live, uint32_t module, uint64_t base)
{
    (void)user;
    hfn_methods_open(&objc.methods, live, module, objc.process.find_symbol, base);
}

static void report_failure(void *user, const char *why)
{
    char text[400];

    (void)user;
    snprintf(text, sizeof text, "Objective-C messages are not counted, or not all: %.300s", why);
    objc.process.warn(text);
}

const hfn_runtime *hfn_objc_get_runtime(const hfn_runtime_process *process)
{
    static const hfn_runtime runtime = { find_replaced, use_methods, report_failure, NULL };

    objc.process = *process;
    return &runtime;
}
