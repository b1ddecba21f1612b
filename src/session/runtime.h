/* SPDX-License-Identifier: MIT */
/* The interface between a session in a target and a tracer of runtime methods (src/runtimes). */
#ifndef HFN_SESSION_RUNTIME_H
#define HFN_SESSION_RUNTIME_H

#include "live/live.h"

#include <hotfn/hooks.h>

#define HFN_MAX_REPLACED 8u

/* A function to replace (hotfn_hooks_replace), and where its original is stored. */
typedef struct hfn_replaced {
    uint64_t entry;
    hotfn_code replacement;
    hotfn_code *original;
    bool is_known; /* hfn_hooks_add_known */
} hfn_replaced;

/* A tracer.  Its calls are made with the hooks locked, from the thread that loads a module. */
typedef struct hfn_runtime {
    /* Store the functions of the module at base that must be replaced; returns their number. */
    uint32_t (*find_replaced)(void *user, uint64_t base, hfn_replaced out[HFN_MAX_REPLACED]);
    /* The pool of functions for methods has been hooked.  It is `module` of the live record and
     * loaded at base. */
    void (*use_methods)(void *user, hfn_live *live, uint32_t module, uint64_t base);
    /* A function could not be replaced. */
    void (*report_failure)(void *user, const char *why);
    void *user;
} hfn_runtime;

#endif
