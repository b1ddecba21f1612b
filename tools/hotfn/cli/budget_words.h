/* SPDX-License-Identifier: MIT */
/* The summary of a budget in `info` and `top`; `report` shows all of it. */
#ifndef HOTFN_TOOL_BUDGET_WORDS_H
#define HOTFN_TOOL_BUDGET_WORDS_H

#include <hotfn.h>
#include <hotfn/lowlevel.h>

/* How many functions. */
typedef struct watched_less {
    uint32_t unhooked;   /* that are unhooked now, or were at the end */
    uint32_t ever;       /* ever were: their counts are lower bounds  */
    uint32_t timed_less; /* were timed less than was asked for        */
} watched_less;

watched_less budget_count_watched(const hotfn_record *record);
/* Hooks' share of the time that the program took without them. */
double budget_taken(const hotfn_record_budget *budget);
/* A function's state: "timed", "sampled", "counted", "unhooked". */
const char *budget_level_name(uint32_t state);

#endif
