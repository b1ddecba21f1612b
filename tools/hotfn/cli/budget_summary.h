/* SPDX-License-Identifier: MIT */
/* The summary of a budget in `info` and `top`; `report` shows all of it. */
#ifndef HOTFN_TOOL_BUDGET_SUMMARY_H
#define HOTFN_TOOL_BUDGET_SUMMARY_H

#include <hotfn.h>
#include <hotfn/lowlevel.h>

/* Numbers of functions. */
typedef struct budget_counts {
    uint32_t unhooked;      /* unhooked now, or at the end of the run             */
    uint32_t ever_unhooked; /* unhooked at any time: their counts are lower bounds */
    uint32_t timed_less;    /* timed less often than requested                     */
} budget_counts;

budget_counts budget_count_functions(const hotfn_record *record);
/* The time that the hooks took, as a share of the program's time without hooks. */
double budget_get_share(const hotfn_record_budget *budget);
/* A function's state: "timed", "sampled", "counted", "unhooked". */
const char *budget_get_level_name(uint32_t state);

#endif
