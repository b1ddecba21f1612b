/* SPDX-License-Identifier: MIT */
/* Budget: how much of a program's time its hooks may take, and what was done to keep that.  First the
 * memory in which a parent keeps book while the target runs (in the live record), then what a record
 * tells of it. */
#ifndef HOTFN_BUDGET_H
#define HOTFN_BUDGET_H

#include <hotfn/record.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How closely a function is watched. */
#define HOTFN_BUDGET_TIMED 1u    /* each call is timed                                   */
#define HOTFN_BUDGET_SAMPLED 2u  /* each call is counted, few are timed                  */
#define HOTFN_BUDGET_COUNTED 3u  /* each call is counted                                 */
#define HOTFN_BUDGET_UNHOOKED 4u /* its bytes are as they were: nothing is known of it   */

/* A function's state: one of the above, and what ever happened to it. */
#define HOTFN_BUDGET_LEVEL 0xffu     /* the bits of the level                           */
#define HOTFN_BUDGET_AT_LEAST 0x100u /* it was unhooked: its count is a lower bound     */
#define HOTFN_BUDGET_REDUCED 0x200u  /* fewer of its calls were timed than was asked    */

/* Why a level changed. */
#define HOTFN_BUDGET_TOO_DEAR 1u /* the hooks cost more than their share: this one most       */
#define HOTFN_BUDGET_TRY 2u      /* it was left alone for a while: perhaps it has cooled down */

typedef struct hotfn_record_budget {
    uint32_t size;         /* sizeof(hotfn_record_budget)                                */
    uint32_t share_ppm;    /* 0: the run had no budget                           */
    uint32_t change_count; /* that are kept                                      */
    uint32_t stops, failed_stops;
    uint32_t reserved;
    uint64_t changes_lost;
    uint64_t cpu_ns, cost_ns; /* stops included; the share taken is
                                 cost_ns / (cpu_ns - (cost_ns - stopped_ns)) */
    uint64_t stopped_ns, longest_stop_ns;
    double count_cost_ns, sample_cost_ns, time_cost_ns; /* of a call             */
    const char *note; /* "" or why the budget could not be kept             */
    uint64_t timing_ns,
        start_ns; /* of cost_ns: timed calls, and the target's start; the rest, without
                                     stopped_ns, are counts                              */
} hotfn_record_budget;
#define HOTFN_RECORD_BUDGET_INIT                                                                   \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_record_budget), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0      \
    }

/* A function's level changed. */
typedef struct hotfn_record_change {
    uint32_t size; /* sizeof(hotfn_record_change)                       */
    uint32_t function;
    uint32_t from, to; /* HOTFN_BUDGET_TIMED ...                        */
    uint32_t why;
    uint32_t cost_ppm; /* of the program's processor time, just before  */
    uint64_t at_ns;    /* since the run's start                         */
    uint64_t calls_per_second;
} hotfn_record_change;
#define HOTFN_RECORD_CHANGE_INIT                                                                   \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_record_change), 0, 0, 0, 0, 0, 0, 0                                 \
    }

/* Any record answers; one without a budget has share_ppm 0.  HOTFN_OK, HOTFN_E_OPTION. */
HOTFN_API hotfn_status hotfn_record_get_budget(const hotfn_record *record,
                                               hotfn_record_budget *out);
/* In the order in which they were made.  HOTFN_OK, HOTFN_E_NOT_FOUND past the end, HOTFN_E_OPTION. */
HOTFN_API hotfn_status hotfn_record_get_change(const hotfn_record *record, uint32_t index,
                                               hotfn_record_change *out);
/* HOTFN_BUDGET_* of the function at the end of the run; 0: the budget never touched it. */
HOTFN_API uint32_t hotfn_record_get_budget_state(const hotfn_record *record, uint32_t function);

#ifdef __cplusplus
}
#endif

#endif
