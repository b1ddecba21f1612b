/* SPDX-License-Identifier: MIT */
/* A budget in a line: how much of it was taken, and how many functions were watched less
 * closely. */
#include "budget_words.h"

watched_less budget_count_watched(const hotfn_record *record)
{
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    watched_less w = { 0, 0, 0 };
    hotfn_record_get_info(record, &info);
    for (uint32_t i = 0; i < info.function_count; i++) {
        uint32_t state = hotfn_record_get_budget_state(record, i);
        w.unhooked += (state & HOTFN_BUDGET_LEVEL) == HOTFN_BUDGET_UNHOOKED;
        w.ever += (state & HOTFN_BUDGET_LOWER_BOUND) != 0;
        w.timed_less += (state & HOTFN_BUDGET_REDUCED) != 0;
    }
    return w;
}

double budget_taken(const hotfn_record_budget *b)
{
    uint64_t hooks = b->cost_ns > b->stopped_ns ? b->cost_ns - b->stopped_ns : 0;
    return b->cpu_ns > hooks ? (double)b->cost_ns / (double)(b->cpu_ns - hooks) : 0;
}

const char *budget_level_name(uint32_t state)
{
    static const char *const names[] = { "not hooked", "timed", "sampled", "counted", "unhooked" };
    uint32_t level = state & HOTFN_BUDGET_LEVEL;
    return level < sizeof names / sizeof names[0] ? names[level] : "?";
}
