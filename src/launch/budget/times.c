/* SPDX-License-Identifier: MIT */
/* Sets the sampling interval of each function.  The requested interval is used if it costs at most
 * a fair share of the allowance for timing; otherwise the interval is chosen so that timing costs
 * this share.  The live record has a word for each slot, which the target reads at each timed call,
 * so the target is not stopped. */
#include "launch/budget/budget.h"

#include "counters/timing/timing.h"
#include "live/live.h"
#include "os/os.h"

#define TICK_UNITS 256.0      /* hfn_time_header's costs */
#define COUNTED_MEAN 1000000u /* at this interval, calls are practically only counted */
#define ROUNDS 16
#define BEGUN_CALLS 1024u /* with fewer calls, a function has the interval HFN_SAMPLE_BEGIN */
/* After this time without calls, a function begins with HFN_SAMPLE_BEGIN again. */
#define FORGOTTEN_NS (1000 * HFN_BUDGET_MS)

/* ---- The cost of timing: the number of timed calls times the cost measured at the start. */

static uint64_t count_since(uint64_t *last, uint64_t now)
{
    uint64_t passed = now > *last ? now - *last : 0;

    *last = now;
    return passed;
}

static void load_cost(hfn_budget *b)
{
    const hfn_time_header *h = hfn_live_time_header(b->live);
    double ticks = (h->cost_inside_ticks + h->cost_outside_ticks) / TICK_UNITS;

    b->timed_ns = h->ticks_per_second ? ticks * 1e9 / (double)h->ticks_per_second : 0;
    b->header->sample_cost_ps = (uint64_t)(b->count_ns * 1e3);
    b->header->time_cost_ps = (uint64_t)((b->count_ns + b->timed_ns) * 1e3);
}

double hfn_budget_get_timing_cost(hfn_budget *b, uint32_t pid)
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
    load_cost(b);
    return b->timed_ns * (double)count_since(&b->timed_calls, calls);
}

/* ---- Choosing the interval. */

static bool is_timed(const hfn_function_budget *f)
{
    return f->closest == HOTFN_BUDGET_TIMED && f->level < HOTFN_BUDGET_UNHOOKED;
}

/* The cost of timing the function's calls since the last step at the requested interval. */
static double compute_requested_cost(const hfn_budget *b, const hfn_function_budget *f)
{
    return (double)f->calls * b->timed_ns / b->mean;
}

/* The max-min fair limit for the cost of each function: functions whose requested cost is below the
 * limit get that cost, all others get equal parts of the remaining allowance.  The limit grows from
 * round to round. */
static double compute_fair_share(const hfn_budget *b, double allowed)
{
    double share = 0;

    for (int round = 0; round < ROUNDS; round++) {
        double remaining = allowed;
        uint32_t limited_count = 0;

        for (uint32_t i = 0; i < b->called_count; i++) {
            const hfn_function_budget *f = &b->functions[b->called[i]];
            if (!is_timed(f) || f->calls == 0) {
                continue;
            }
            if (compute_requested_cost(b, f) > share) {
                limited_count++;
            } else {
                remaining -= compute_requested_cost(b, f);
            }
        }
        if (limited_count == 0 || remaining / limited_count <= share) {
            break;
        }
        share = remaining / limited_count;
    }
    return share;
}

/* The lower bound of the function's mean sampling interval; 1: the target chooses the interval. */
static uint32_t choose_mean(const hfn_budget *b, const hfn_function_budget *f, double share)
{
    double mean;

    if (compute_requested_cost(b, f) <= share) {
        return 1;
    }
    mean = (double)f->calls * b->timed_ns / share;
    return mean < COUNTED_MEAN ? (uint32_t)mean + 1 : COUNTED_MEAN;
}

/* ---- Writing the interval to the live record. */

/* It takes effect at the function's next block of calls. */
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

    if (f->mean == 0) { /* the recorded change then has the cost of the requested interval */
        f->mean = 1;
    }
    if (level != f->level) {
        hfn_budget_set_level(b, f, level, run_ns);
    } else {
        f->retry_ns = b->header->cpu_ns + HFN_BUDGET_MIN_WAIT_NS;
    }
    set_interval(b, slot, mean);
}

/* True if the interval must change now.  It is lengthened at once if hooks are over budget, and
 * shortened only after a delay. */
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

void hfn_budget_set_intervals(hfn_budget *b, double allowed, bool is_over, double run_ns)
{
    double share;

    share = compute_fair_share(b, allowed);
    for (uint32_t i = 0; i < b->called_count; i++) {
        uint32_t slot = b->called[i], mean;
        hfn_function_budget *f = &b->functions[slot];
        if (!is_timed(f)) {
            continue;
        }
        mean = choose_mean(b, f, share);
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
