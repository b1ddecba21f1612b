/* SPDX-License-Identifier: MIT */
/* The budget's data in the live record: a header, then the changes of level.  Only the launcher
 * writes it. */
#ifndef HFN_LIVE_BUDGET_MEMORY_H
#define HFN_LIVE_BUDGET_MEMORY_H

#include <stdint.h>

/* 256 bytes; the changes follow. */
typedef struct hfn_budget_header {
    uint32_t share_ppm; /* limit for the cost of hooks, as a share of the time without hooks */
    uint32_t change_capacity;
    uint64_t change_count; /* changes made; those beyond the capacity are not kept            */
    uint64_t cpu_ns;       /* processor time of the target over the observed intervals        */
    uint64_t cost_ns;      /* cost of hooks in it: counts at the costs below, timing_ns, start_ns,
                              stopped_ns                                                      */
    uint64_t stopped_ns;   /* total time for which the target was stopped for changes         */
    uint64_t longest_stop_ns;
    uint32_t stops, failed_stops;
    uint64_t count_cost_ps, sample_cost_ps, time_cost_ps; /* per counted, skipped, timed call */
    uint64_t timing_ns; /* cost of timed calls as measured in the target                      */
    uint64_t start_ns;  /* processor time in which the target installed its hooks             */
    uint64_t spare[4];
    char note[128]; /* why the budget could not be kept; "" if it was                         */
} hfn_budget_header;

/* One change of a function's level. */
typedef struct hfn_budget_change {
    uint64_t at_ns;            /* since the start of the record                    */
    uint64_t calls_per_second; /* of processor time, just before the change        */
    uint32_t cost_ppm;         /* share of the processor time, just before         */
    uint32_t function;         /* index in the record                              */
    uint32_t from, to;         /* HOTFN_BUDGET_TIMED ...                           */
    uint32_t why;              /* HOTFN_BUDGET_OVER_BUDGET ...                        */
    uint32_t spare[3];
} hfn_budget_change;

#endif
