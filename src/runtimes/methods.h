/* SPDX-License-Identifier: MIT */
/* Methods become functions of the live record: each gets a function of the pool
 * (arch/method_pool.h), which is hooked like any other function and then enters the method
 * (docs/design/runtimes.md). */
#ifndef HFN_RUNTIMES_METHODS_H
#define HFN_RUNTIMES_METHODS_H

#include "live/live.h"

#include <hotfn/hooks.h>

/* The address of a symbol that the module at base exports; NULL: there is none. */
typedef void *hfn_find_symbol_fn(uint64_t base, const char *name);

/* What a tracer needs of the process that it is in. */
typedef struct hfn_runtime_process {
    hfn_find_symbol_fn *find_symbol;
    void (*warn)(const char *text); /* shown to the user */
} hfn_runtime_process;

typedef struct hfn_methods {
    hfn_live *live;  /* NULL: the pool is not ready */
    uint32_t module; /* of the live record          */
    hotfn_code *targets;
    const hotfn_code *functions;
    const uint32_t *orders; /* the word of the orders by which methods are switched; atomic */
} hfn_methods;

/* Use the pool, which is loaded at base and is that module of the live record. */
void hfn_methods_open(hfn_methods *out, hfn_live *live, uint32_t module,
                      hfn_find_symbol_fn *find_symbol, uint64_t base);
/* The function through which calls of the method at target are counted.  The target takes no
 * arguments from the stack.  NULL: the method is not selected, there is no room for it, or its name
 * is that of another target; the caller then calls target itself.  Any thread, also in a signal
 * handler; the caller has paused its counting. */
hotfn_code hfn_methods_get(const hfn_methods *methods, const char *name, hotfn_code target);
/* The same for a name that needs not be selected. */
hotfn_code hfn_methods_get_any(const hfn_methods *methods, const char *name, hotfn_code target);
/* The number of a function of the pool; UINT32_MAX if it is none. */
uint32_t hfn_methods_get_index(const hfn_methods *methods, hotfn_code function);
/* The slot of a function of the pool; HOTFN_NO_SLOT if it is none. */
uint32_t hfn_methods_get_slot(const hfn_methods *methods, hotfn_code function);
bool hfn_methods_is_selected(const hfn_methods *methods, const char *name);
/* Are only methods selected whose names match a glob? */
bool hfn_methods_has_includes(const hfn_methods *methods);
/* The orders that hold now; and the mode of a method under them: HFN_METHOD_OFF, _COUNT, or _TIME
 * (hfn_live_order_methods). */
static inline uint32_t hfn_methods_get_orders(const hfn_methods *m)
{
    return __atomic_load_n(m->orders, __ATOMIC_ACQUIRE);
}
uint32_t hfn_methods_get_mode(const hfn_methods *m, uint32_t orders, const char *name);
/* The rule that selects watched methods, NULL if there is none: "limit in nanoseconds GLOB". */
const char *hfn_methods_get_watch(const hfn_methods *methods);
/* As hfn_methods_get with a pool of message_pool.S, for a target that may have any arguments.
 * may_frame: the target accesses nothing on its caller's stack, so a frame of the pool may call it,
 * and it may be timed.  If another target has the name, the method gets the name with a number:
 * "-[A b] (2)". */
hotfn_code hfn_methods_get_numbered(const hfn_methods *methods, const char *name, hotfn_code target,
                                    bool may_frame);

/* The same, with the exact name, which needs not be selected.  *is_new: the function had no target
 * before. */
hotfn_code hfn_methods_get_framed(const hfn_methods *methods, const char *name, hotfn_code target,
                                  bool *is_new);

#endif
