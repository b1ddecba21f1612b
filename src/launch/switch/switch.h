/* SPDX-License-Identifier: MIT */
/*
 * Switching functions of a running target (docs/design/switch.md):
 *
 *   hotfn ctl --(order.h, a socket named after the record)--> serve.c --> switch.c
 *   hotfn_launch_switch ---------------------------------------------> switch.c
 *
 *   select.c    which functions an order matches
 *   switch.c    changes them, in groups, in all processes of the target
 *   order.h     the message; client.c sends it
 */
#ifndef HFN_LAUNCH_SWITCH_H
#define HFN_LAUNCH_SWITCH_H

#include "launch/budget/budget.h"
#include "os/local_socket.h"
#include "os/threads.h"

#include <hotfn/switch.h>

struct hotfn_launch;

/* A function of the record.  The first order that matches it finds its bytes in the target. */
typedef struct hfn_switched {
    hfn_unpatch_record *hook;   /* its patches: in place unless it is off                    */
    hfn_unpatch_record *timing; /* what leads to its timing: in place unless it only counts  */
    uint32_t module, entry;     /* of the plan                                               */
    uint8_t level;              /* HOTFN_BUDGET_*; 0: not known yet                          */
    uint8_t wanted;
    bool can_time;
    /* State in the order that is being carried out.  is_done: the function was changed in a
     * process; is_busy: a thread is inside it now; is_refused: a thread was inside it at the last
     * try. */
    bool is_done, is_busy, is_refused;
} hfn_switched;

/* A function that a tracer has replaced. */
typedef struct hfn_switched_replaced {
    hfn_unpatch_record *hook; /* NULL: not found yet */
    uint32_t module, entry;   /* of the plan         */
} hfn_switched_replaced;

typedef struct hfn_switch {
    hfn_os_mutex lock; /* held by an order, and while the target's record is replaced */
    hfn_live *live;    /* NULL: nothing can be switched now */
    hfn_plan_channel *channel;
    hfn_patched_module *modules;
    size_t module_capacity;
    hfn_switched *functions; /* by number in the record */
    size_t function_capacity;
    uint32_t *chosen; /* functions that the order matches */
    size_t chosen_count, chosen_capacity;
    /* methods.c: of a runtime whose kind obeys_orders */
    hfn_switched_replaced replaced[HFN_MODULE_MAX_OWN_HOOKS];
    uint32_t replaced_count;
    bool has_methods; /* the order is also for methods                 */
    bool is_restored; /* all methods are off, and `replaced` too           */
    bool is_split;    /* half of the functions without a method only count */
    /* serve.c */
    hfn_os_listener listener; /* HFN_OS_NO_LISTENER: none */
    hfn_os_thread thread;
    bool is_serving;
} hfn_switch;

void hfn_switch_init(hfn_switch *s);
void hfn_switch_finish(hfn_switch *s);
/* serve.c: serve orders for the record that the launch has now; stop before it has another one, or
 * before its program is reaped.  A failure is logged. */
void hfn_switch_start(struct hotfn_launch *launch);
void hfn_switch_stop(struct hotfn_launch *launch);

/* switch.c: the target's code is changed by others between the two calls. */
void hfn_switch_pause(struct hotfn_launch *launch);
void hfn_switch_resume(struct hotfn_launch *launch);
/* Forget all functions. */
void hfn_switch_forget(hfn_switch *s, const hotfn_env *env);

/* methods.c: before the first order to only count methods of a timed run: choose the functions
 * without a method that are for those that get one later (hfn_live_split_methods).  False: there is
 * nothing to do. */
bool hfn_switch_split_methods(struct hotfn_launch *launch, const hotfn_switch_order *order,
                              hotfn_status *status, hotfn_error *err);
/* methods.c: find what the tracer has replaced, and give the order to the target, which obeys it
 * for methods that have no function yet.  Does nothing if the order is not for methods. */
hotfn_status hfn_switch_order_methods(struct hotfn_launch *launch, const hotfn_switch_order *order,
                                      hotfn_error *err);
void hfn_switch_forget_methods(hfn_switch *s, const hotfn_env *env);

/* select.c: whether the order's globs match a module with this path. */
bool hfn_switch_matches_module(const hotfn_switch_order *order, const char *path);
/* Read the plan of a module that the target has loaded; false: it has none. */
bool hfn_switch_load_plan(hfn_switch *s, uint32_t index, const hotfn_record_module *known,
                          const hotfn_env *env);
/* select.c: choose the functions of a pool that have no method and are for methods that are only
 * counted.  HOTFN_OK, HOTFN_E_NO_MEMORY. */
hotfn_status hfn_switch_select_free(hfn_switch *s, uint32_t pool, const hotfn_env *env,
                                    hotfn_error *err);
/* select.c: set s->chosen, and the level and the plan entry of each.  HOTFN_OK, HOTFN_E_OPTION,
 * HOTFN_E_NO_MEMORY. */
hotfn_status hfn_switch_select(hfn_switch *s, const hotfn_switch_order *order, const hotfn_env *env,
                               hotfn_error *err);

#endif
