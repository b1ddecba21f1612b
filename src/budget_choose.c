/* SPDX-License-Identifier: MIT */
/* Who is watched less closely, and who more closely again: by what each function's calls since the
 * last look cost, at its level and at others.  Nothing here touches the target. */
#include "budget.h"

#include <stdlib.h>

#define KEEP_SHARE 0.75   /* of the share is left to those that stay                */
#define RAISE_SHARE 0.25  /* of that, to one that is watched more closely again     */
#define MOST_CHANGES 512u /* in one stop */

static double cost_at(const hotfn_budget *b, const hfn_book *f, uint32_t level)
{
    return level ? (double)f->calls * b->cost_ns[level] : 0;
}

double hfn_budget_cost(const hotfn_budget *b, const hfn_book *f)
{
    return cost_at(b, f, f->level);
}

/* ---- Less closely. */

static const hotfn_budget *compared; /* qsort has no word for it; steps come from one thread */

static int by_cost(const void *left, const void *right)
{
    double a = hfn_budget_cost(compared, &compared->books[*(const uint32_t *)left]);
    double c = hfn_budget_cost(compared, &compared->books[*(const uint32_t *)right]);

    return (a < c) - (a > c);
}

/* The level behind the last one that it may fall to. */
static uint32_t lowest_level(const hotfn_budget *b)
{
    return b->is_stuck ? HOTFN_BUDGET_COUNTED : HOTFN_BUDGET_UNHOOKED;
}

/* The closest level at which it takes no more than half of what those that stay may take. */
static uint32_t level_for(const hotfn_budget *b, const hfn_book *f, double allowed)
{
    uint32_t level = f->level + 1;

    while (level < lowest_level(b) && cost_at(b, f, level) > allowed / 2)
        level++;
    return level;
}

void hfn_budget_reduce(hotfn_budget *b, double cost, double run_ns)
{
    double allowed = b->share * KEEP_SHARE * run_ns;
    uint32_t count = 0;

    for (uint32_t i = 0; i < b->book_count; i++)
        if (!b->books[i].is_fixed && b->books[i].calls > 0 && b->books[i].level > 0 &&
            b->books[i].level < lowest_level(b))
            b->chosen[count++] = i;
    compared = b;
    qsort(b->chosen, count, sizeof *b->chosen, by_cost);
    for (uint32_t i = 0; i < count && i < MOST_CHANGES && cost > allowed; i++) {
        hfn_book *f = &b->books[b->chosen[i]];
        f->wanted = level_for(b, f, allowed);
        cost -= hfn_budget_cost(b, f) - cost_at(b, f, f->wanted);
        b->chosen_count++;
    }
}

/* ---- More closely. */

/* One that is unhooked is tried as far as what is left of the whole budget pays for that. */
static bool pays_try(const hotfn_budget *b, const hfn_book *f, double *left)
{
    double price = f->rate * 2 * (double)HFN_BUDGET_SOON_NS +
                   (b->chosen_count == 0 ? 2 * (double)HFN_BUDGET_MS : 0);

    if (b->is_stuck || !f->cut || price > *left)
        return false;
    *left -= price;
    return true;
}

/* Of one that is counted it is known what more would cost. */
static bool fits(const hotfn_budget *b, const hfn_book *f, double allowed, double *cost)
{
    double more = cost_at(b, f, f->level - 1) - hfn_budget_cost(b, f);

    if (more > allowed * RAISE_SHARE || *cost + more > allowed)
        return false;
    *cost += more;
    return true;
}

void hfn_budget_raise(hotfn_budget *b, double cost, double run_ns)
{
    const hotfn_budget_header *h = b->header;
    double hooks = (double)h->cost_ns - (double)h->stopped_ns; /* stops take no processor time */
    double left = b->share * ((double)h->cpu_ns - hooks) - (double)h->cost_ns;

    for (uint32_t i = 0; i < b->book_count && b->chosen_count < HFN_BUDGET_TRIES; i++) {
        hfn_book *f = &b->books[i];
        if (f->level <= f->closest || f->is_fixed || f->back_ns > h->cpu_ns)
            continue;
        if (f->level == HOTFN_BUDGET_UNHOOKED ? !pays_try(b, f, &left)
                                              : !fits(b, f, b->share * KEEP_SHARE * run_ns, &cost))
            continue;
        f->wanted = f->level - 1;
        b->chosen[b->chosen_count++] = i;
    }
}
