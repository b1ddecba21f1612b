/* SPDX-License-Identifier: MIT */
/* Whose hook goes, and whose is tried again: by what each function's calls since the last look cost.
 * Nothing here touches the target. */
#include "launch/budget/budget.h"

#include <stdlib.h>

#define KEEP_SHARE 0.75   /* of the share is left to those that stay */
#define PAID_PART 0.8     /* of the share goes for what was too much, at most */
#define PAID_FOR_EVER 0.5 /* the same where hooks only go */
#define MOST_CHANGES 512u /* in one stop                             */
#define FAR_BELOW 256u    /* called so much less than the first: judged when that one is gone */

static double count_cost(const hotfn_budget *b, const hfn_book *f)
{
    return f->level < HOTFN_BUDGET_UNHOOKED ? (double)f->calls * b->count_ns : 0;
}

double hfn_budget_cost(const hotfn_budget *b, const hfn_book *f)
{
    uint32_t mean = f->mean > b->mean ? f->mean : b->mean;
    bool is_timed = f->closest == HOTFN_BUDGET_TIMED && f->level < HOTFN_BUDGET_COUNTED &&
                    f->mean != 0; /* the first ones are few */

    return count_cost(b, f) + (is_timed ? (double)f->calls * b->timed_ns / mean : 0);
}

/* So the start, the first looks and the stops of a short run are paid for by what comes behind them. */
double hfn_budget_allowed(const hotfn_budget *b, double bare_ns)
{
    const hfn_budget_header *h = b->header;
    double hooks = (double)h->cost_ns - (double)h->stopped_ns; /* stops take no processor time */
    double owed = (double)h->cost_ns - b->share * ((double)h->cpu_ns - hooks);
    double share_ns = b->share * bare_ns;
    double most = (b->only_go ? PAID_FOR_EVER : PAID_PART) * share_ns;

    return share_ns - (owed < 0 ? 0 : owed < most ? owed : most);
}

/* ---- Out. */

static const hotfn_budget *compared; /* qsort has no word for it; steps come from one thread */

static int by_calls(const void *left, const void *right)
{
    uint64_t a = compared->books[*(const uint32_t *)left].calls;
    uint64_t c = compared->books[*(const uint32_t *)right].calls;

    return (a < c) - (a > c);
}

void hfn_budget_reduce(hotfn_budget *b, double counts, double allowed)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < b->called_count; i++) {
        const hfn_book *f = &b->books[b->called[i]];
        if (!f->is_fixed && f->calls > 0 && f->level > 0 && f->level < HOTFN_BUDGET_UNHOOKED) {
            b->chosen[count++] = b->called[i];
        }
    }
    compared = b;
    qsort(b->chosen, count, sizeof *b->chosen, by_calls);
    for (uint32_t i = 0; i < count && i < MOST_CHANGES && counts > KEEP_SHARE * allowed; i++) {
        hfn_book *f = &b->books[b->chosen[i]];
        if (f->calls < b->books[b->chosen[0]].calls / FAR_BELOW) {
            break; /* while a hook takes most of the time, what the rest may take is hardly known */
        }
        f->wanted = HOTFN_BUDGET_UNHOOKED;
        counts -= count_cost(b, f);
        b->chosen_count++;
    }
}

/* ---- In again. */

/* It is tried as far as what is left of the whole budget pays for that. */
static bool pays_try(const hotfn_budget *b, const hfn_book *f, double stop_ns, double *left)
{
    double price = f->rate * 2 * (double)HFN_BUDGET_SOON_NS + (b->chosen_count == 0 ? stop_ns : 0);

    if (!f->cut || price > *left) {
        return false;
    }
    *left -= price;
    return true;
}

void hfn_budget_raise(hotfn_budget *b, double stop_ns)
{
    const hfn_budget_header *h = b->header;
    double hooks = (double)h->cost_ns - (double)h->stopped_ns; /* stops take no processor time */
    double left = b->share * ((double)h->cpu_ns - hooks) - (double)h->cost_ns;

    for (uint32_t i = 0; i < b->called_count && b->chosen_count < HFN_BUDGET_TRIES; i++) {
        hfn_book *f = &b->books[b->called[i]];
        if (f->level != HOTFN_BUDGET_UNHOOKED || f->is_fixed || f->back_ns > h->cpu_ns ||
            !pays_try(b, f, stop_ns, &left)) {
            continue;
        }
        f->wanted = HOTFN_BUDGET_COUNTED;
        b->chosen[b->chosen_count++] = b->called[i];
    }
}
