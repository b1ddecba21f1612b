/* SPDX-License-Identifier: MIT */
/* How many of a function's calls are timed: as many as was asked, if that takes no more than a fair
 * share of what is left for timing; else so many that it takes just that.  A word for each slot
 * says it, in the live record; the target reads it with each call that it times, and is not stopped
 * for it. */
#include "launch/budget/budget.h"

#include "counters/timing/timing.h"
#include "live/live.h"
#include "os/os.h"

#define TICK_UNITS 256.0      /* hfn_time_header's costs */
#define COUNTED_MEAN 1000000u /* one call in so many is as good as none */
#define ROUNDS 16
#define BEGUN_CALLS 1024u                   /* until then the interval is HFN_SAMPLE_BEGIN */
#define FORGOTTEN_NS (1000 * HFN_BUDGET_MS) /* a function without calls for so long begins anew */

/* ---- What it takes: the number of timed calls times the cost that was measured at the start. */

static uint64_t count_since(uint64_t *last, uint64_t now)
{
    uint64_t passed = now > *last ? now - *last : 0;

    *last = now;
    return passed;
}

static void learn_cost(hfn_budget *b)
{
    const hfn_time_header *h = hfn_live_time_header(b->live);
    double ticks = (h->cost_inside_ticks + h->cost_outside_ticks) / TICK_UNITS;

    b->timed_ns = h->ticks_per_second ? ticks * 1e9 / (double)h->ticks_per_second : 0;
    b->header->sample_cost_ps = (uint64_t)(b->count_ns * 1e3);
    b->header->time_cost_ps = (uint64_t)((b->count_ns + b->timed_ns) * 1e3);
}

double hfn_budget_timing(hfn_budget *b, uint32_t pid)
{
    const hfn_thread_cell *cells = hfn_live_cells(b->live);
    uint64_t calls = 0, row_calls;

    if (!b->means) {
        return 0;
    }
    for (uint32_t i = 0; i < hfn_live_rows_used(b->live); i++) {
        if (cells[i].pid == pid && hfn_live_read_timed_calls(b->live, i, &row_calls)) {
            calls += row_calls;
        }
    }
    learn_cost(b);
    return b->timed_ns * (double)count_since(&b->timed_calls, calls);
}

/* ---- How many. */

static bool is_timed(const hfn_function_budget *f)
{
    return f->closest == HOTFN_BUDGET_TIMED && f->level < HOTFN_BUDGET_UNHOOKED;
}

/* What its calls would have taken, timed as closely as was asked. */
static double asked_cost(const hfn_budget *b, const hfn_function_budget *f)
{
    return (double)f->calls * b->timed_ns / b->mean;
}

/* The limit for each function at which all timed functions together use the allowance: a function
 * gets no more than it can use, and those that can use more get equal parts.  It grows from round
 * to round. */
static double fair_share(const hfn_budget *b, double allowed)
{
    double share = 0;

    for (int round = 0; round < ROUNDS; round++) {
        double left = allowed;
        uint32_t dear = 0;

        for (uint32_t i = 0; i < b->called_count; i++) {
            const hfn_function_budget *f = &b->functions[b->called[i]];
            if (!is_timed(f) || f->calls == 0) {
                continue;
            }
            if (asked_cost(b, f) > share) {
                dear++;
            } else {
                left -= asked_cost(b, f);
            }
        }
        if (dear == 0 || left / dear <= share) {
            break;
        }
        share = left / dear;
    }
    return share;
}

/* One call in so many at least is passed over; 1: as the target would do it. */
static uint32_t mean_for(const hfn_budget *b, const hfn_function_budget *f, double share)
{
    double mean;

    if (asked_cost(b, f) <= share) {
        return 1;
    }
    mean = (double)f->calls * b->timed_ns / share;
    return mean < COUNTED_MEAN ? (uint32_t)mean + 1 : COUNTED_MEAN;
}

/* ---- Saying so. */

/* It holds from the function's next block of calls on. */
static void set_interval(hfn_budget *b, uint32_t slot, uint32_t mean)
{
    b->functions[slot].mean = mean;
    __atomic_store_n(&b->means[slot], mean, __ATOMIC_RELAXED);
}

void hfn_budget_stop_timing(hfn_budget *b, uint32_t slot)
{
    if (b->means && b->functions[slot].closest == HOTFN_BUDGET_TIMED) {
        set_interval(b, slot, COUNTED_MEAN);
    }
}

static void change_mean(hfn_budget *b, uint32_t slot, uint32_t mean, double run_ns)
{
    hfn_function_budget *f = &b->functions[slot];
    uint32_t level = mean <= b->mean        ? HOTFN_BUDGET_TIMED
                     : mean >= COUNTED_MEAN ? HOTFN_BUDGET_COUNTED
                                            : HOTFN_BUDGET_SAMPLED;

    if (f->mean == 0) { /* what it would have taken is why */
        f->mean = 1;
    }
    if (level != f->level) {
        hfn_budget_set_level(b, f, level, run_ns);
    } else {
        f->retry_ns = b->header->cpu_ns + HFN_BUDGET_MIN_WAIT_NS;
    }
    set_interval(b, slot, mean);
}

/* Is this to be done now?  More calls are timed only after a while. */
static bool is_due(const hfn_budget *b, const hfn_function_budget *f, uint32_t mean, bool is_over)
{
    if (f->mean == 0) {
        return f->calls > 0 && f->last + f->calls >= BEGUN_CALLS;
    }
    if (mean >= f->mean) {
        return is_over && mean > f->mean;
    }
    return !is_over && f->retry_ns <= b->header->cpu_ns && mean <= f->mean / 2;
}

void hfn_budget_time(hfn_budget *b, double allowed, bool is_over, double run_ns)
{
    double share;

    share = fair_share(b, allowed);
    for (uint32_t i = 0; i < b->called_count; i++) {
        uint32_t slot = b->called[i], mean;
        hfn_function_budget *f = &b->functions[slot];
        if (!is_timed(f)) {
            continue;
        }
        mean = mean_for(b, f, share);
        if (f->calls > 0) {
            f->seen_ns = b->header->cpu_ns;
        }
        if (is_due(b, f, mean, is_over)) {
            change_mean(b, slot, mean, run_ns);
        } else if (f->mean == 1 && b->header->cpu_ns - f->seen_ns > FORGOTTEN_NS) {
            set_interval(b, slot, 0);
        }
    }
}
