/* SPDX-License-Identifier: MIT */
/* Chooses the functions to unhook and to rehook by the cost of their calls since the last step.
 * Nothing here touches the target. */
#include "launch/budget/budget.h"

#include <stdlib.h>

#define KEEP_SHARE 0.75               /* of the budget is left to the functions that stay hooked */
#define MAX_REPAID_PART 0.8           /* of the share repays earlier excess, at most */
#define MAX_REPAID_PART_NO_REHOOK 0.5 /* the same if functions are never rehooked */
#define MAX_CHANGES 512u              /* in one stop                             */
#define MIN_CALLS_DIVISOR                                                                          \
    256u /* rarer than the top function by this factor: left for a later step */

static double count_cost(const hfn_budget *b, const hfn_function_budget *f)
{
    return f->level < HOTFN_BUDGET_UNHOOKED ? (double)f->calls * b->count_ns : 0;
}

double hfn_budget_cost(const hfn_budget *b, const hfn_function_budget *f)
{
    uint32_t mean = f->mean > b->mean ? f->mean : b->mean;
    bool is_timed = f->closest == HOTFN_BUDGET_TIMED && f->level < HOTFN_BUDGET_COUNTED &&
                    f->mean != 0; /* 0: timed calls of the slow start are too few to count */

    return count_cost(b, f) + (is_timed ? (double)f->calls * b->timed_ns / mean : 0);
}

/* Earlier excess reduces the budget of later steps: the start, the first steps and the stops of a
 * short run are thereby compensated. */
double hfn_budget_allowed(const hfn_budget *b, double bare_ns)
{
    const hfn_budget_header *h = b->header;
    double hooks = (double)h->cost_ns - (double)h->stopped_ns; /* stops take no processor time */
    double owed = (double)h->cost_ns - b->share * ((double)h->cpu_ns - hooks);
    double share_ns = b->share * bare_ns;
    double max_repaid = (b->never_rehooks ? MAX_REPAID_PART_NO_REHOOK : MAX_REPAID_PART) * share_ns;

    return share_ns - (owed < 0 ? 0 : owed < max_repaid ? owed : max_repaid);
}

/* ---- Functions to unhook. */

static const hfn_budget *compared; /* qsort passes no context; one thread runs all steps */

static int compare_calls(const void *left, const void *right)
{
    uint64_t a = compared->functions[*(const uint32_t *)left].calls;
    uint64_t c = compared->functions[*(const uint32_t *)right].calls;

    return (a < c) - (a > c);
}

void hfn_budget_choose_unhooked(hfn_budget *b, double counts, double allowed)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < b->called_count; i++) {
        const hfn_function_budget *f = &b->functions[b->called[i]];
        if (!f->is_fixed && f->calls > 0 && f->level > 0 && f->level < HOTFN_BUDGET_UNHOOKED) {
            b->chosen[count++] = b->called[i];
        }
    }
    compared = b;
    qsort(b->chosen, count, sizeof *b->chosen, compare_calls);
    for (uint32_t i = 0; i < count && i < MAX_CHANGES && counts > KEEP_SHARE * allowed; i++) {
        hfn_function_budget *f = &b->functions[b->chosen[i]];
        if (f->calls < b->functions[b->chosen[0]].calls / MIN_CALLS_DIVISOR) {
            break; /* the top hook's cost dominates and hides what the others cost */
        }
        f->wanted = HOTFN_BUDGET_UNHOOKED;
        counts -= count_cost(b, f);
        b->chosen_count++;
    }
}

/* ---- Functions to rehook. */

/* Subtract the price of a trial from the remaining budget of the whole run; false if it is
 * higher. */
static bool can_afford_try(const hfn_budget *b, const hfn_function_budget *f, double stop_ns,
                           double *left)
{
    double price =
        f->rate * 2 * (double)HFN_BUDGET_SHORT_STEP_NS + (b->chosen_count == 0 ? stop_ns : 0);

    if (!f->unpatch || price > *left) {
        return false;
    }
    *left -= price;
    return true;
}

void hfn_budget_choose_retried(hfn_budget *b, double stop_ns)
{
    const hfn_budget_header *h = b->header;
    double hooks = (double)h->cost_ns - (double)h->stopped_ns; /* stops take no processor time */
    double left = b->share * ((double)h->cpu_ns - hooks) - (double)h->cost_ns;

    for (uint32_t i = 0; i < b->called_count && b->chosen_count < HFN_BUDGET_MAX_TRIES; i++) {
        hfn_function_budget *f = &b->functions[b->called[i]];
        if (f->level != HOTFN_BUDGET_UNHOOKED || f->is_fixed || f->retry_ns > h->cpu_ns ||
            !can_afford_try(b, f, stop_ns, &left)) {
            continue;
        }
        f->wanted = HOTFN_BUDGET_COUNTED;
        b->chosen[b->chosen_count++] = b->called[i];
    }
}
