/* SPDX-License-Identifier: MIT */
/* Chooses the functions to unhook and to rehook by the cost of their calls since the last step.
 * Nothing here touches the target. */
#include "launch/budget/budget.h"

#include <stdlib.h>

#define KEEP_SHARE 0.75               /* part of the budget for the functions that stay hooked */
#define MAX_REPAID_PART 0.8           /* maximum part of the share that repays earlier excess */
#define MAX_REPAID_PART_NO_REHOOK 0.5 /* the same if functions are never rehooked */
#define MAX_CHANGES 512u              /* in one stop */
/* A function with fewer calls than the most called one divided by this is not unhooked yet. */
#define MIN_CALLS_DIVISOR 256u

static double get_counting_cost(const hfn_budget *b, const hfn_function_budget *f)
{
    return f->level < HOTFN_BUDGET_UNHOOKED ? (double)f->calls * b->count_ns : 0;
}

double hfn_budget_cost(const hfn_budget *b, const hfn_function_budget *f)
{
    uint32_t mean = f->mean > b->mean ? f->mean : b->mean;
    bool is_timed = f->closest == HOTFN_BUDGET_TIMED && f->level < HOTFN_BUDGET_COUNTED &&
                    f->mean != 0; /* 0: timed calls of the slow start are too few to count */

    return get_counting_cost(b, f) + (is_timed ? (double)f->calls * b->timed_ns / mean : 0);
}

/* Earlier excess reduces the budget of later steps: the start, the first steps and the stops of a
 * short run are thereby compensated. */
double hfn_budget_allowed(const hfn_budget *b, double bare_ns)
{
    const hfn_budget_header *h = b->header;
    double hooks_ns = (double)h->cost_ns - (double)h->stopped_ns; /* stops take no processor time */
    double owed = (double)h->cost_ns - b->share * ((double)h->cpu_ns - hooks_ns);
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

void hfn_budget_choose_unhooked(hfn_budget *b, double counting_ns, double allowed_ns)
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
    for (uint32_t i = 0; i < count && i < MAX_CHANGES && counting_ns > KEEP_SHARE * allowed_ns;
         i++) {
        hfn_function_budget *f = &b->functions[b->chosen[i]];
        if (f->calls < b->functions[b->chosen[0]].calls / MIN_CALLS_DIVISOR) {
            break; /* negligible until the most called functions are unhooked */
        }
        f->wanted = HOTFN_BUDGET_UNHOOKED;
        counting_ns -= get_counting_cost(b, f);
        b->chosen_count++;
    }
}

/* ---- Functions to rehook. */

/* Subtract the cost of rehooking a function for a trial from the remaining budget of the whole run.
 * Returns false if the budget is too small. */
static bool pay_for_trial(const hfn_budget *b, const hfn_function_budget *f, double stop_ns,
                          double *remaining_ns)
{
    double trial_ns =
        f->rate * 2 * (double)HFN_BUDGET_SHORT_STEP_NS + (b->chosen_count == 0 ? stop_ns : 0);

    if (!f->unpatch || trial_ns > *remaining_ns) {
        return false;
    }
    *remaining_ns -= trial_ns;
    return true;
}

void hfn_budget_choose_retried(hfn_budget *b, double stop_ns)
{
    const hfn_budget_header *h = b->header;
    double hooks_ns = (double)h->cost_ns - (double)h->stopped_ns; /* stops take no processor time */
    double remaining_ns = b->share * ((double)h->cpu_ns - hooks_ns) - (double)h->cost_ns;

    for (uint32_t i = 0; i < b->called_count && b->chosen_count < HFN_BUDGET_MAX_TRIES; i++) {
        hfn_function_budget *f = &b->functions[b->called[i]];
        if (f->level != HOTFN_BUDGET_UNHOOKED || f->is_fixed || f->retry_ns > h->cpu_ns ||
            !pay_for_trial(b, f, stop_ns, &remaining_ns)) {
            continue;
        }
        f->wanted = HOTFN_BUDGET_COUNTED;
        b->chosen[b->chosen_count++] = b->called[i];
    }
}
