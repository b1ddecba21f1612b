/* SPDX-License-Identifier: MIT */
/* The summary of a budget: the share of the time that the hooks took, and how many functions the
 * budget unhooked or timed less often. */
#include "budget_summary.h"

budget_counts budget_count_functions(const hotfn_record *record)
{
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    budget_counts w = { 0, 0, 0 };
    hotfn_record_get_info(record, &info);
    for (uint32_t i = 0; i < info.function_count; i++) {
        uint32_t state = hotfn_record_get_budget_state(record, i);
        w.unhooked += (state & HOTFN_BUDGET_LEVEL) == HOTFN_BUDGET_UNHOOKED;
        w.ever_unhooked += (state & HOTFN_BUDGET_LOWER_BOUND) != 0;
        w.timed_less += (state & HOTFN_BUDGET_REDUCED) != 0;
    }
    return w;
}

double budget_get_share(const hotfn_record_budget *b)
{
    uint64_t hooks = b->cost_ns > b->stopped_ns ? b->cost_ns - b->stopped_ns : 0;
    return b->cpu_ns > hooks ? (double)b->cost_ns / (double)(b->cpu_ns - hooks) : 0;
}

const char *budget_get_level_name(uint32_t state)
{
    static const char *const names[] = { "not hooked", "timed", "sampled", "counted", "unhooked" };
    uint32_t level = state & HOTFN_BUDGET_LEVEL;
    return level < sizeof names / sizeof names[0] ? names[level] : "?";
}
