/* SPDX-License-Identifier: MIT */
/* Unstable.  The budget of a run: the share of the program's time that hooks may take, and what
 * `hotfn run --budget` changed to keep it. */
#ifndef HOTFN_BUDGET_H
#define HOTFN_BUDGET_H

#include <hotfn/record.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the calls of a function are counted and timed. */
#define HOTFN_BUDGET_TIMED 1u    /* every call is timed                                     */
#define HOTFN_BUDGET_SAMPLED 2u  /* every call is counted, some are timed                   */
#define HOTFN_BUDGET_COUNTED 3u  /* every call is counted                                   */
#define HOTFN_BUDGET_UNHOOKED 4u /* the function is not hooked; its calls are not counted   */

/* The state of a function: one of the levels above, and flags. */
#define HOTFN_BUDGET_LEVEL 0xffu /* mask of the level                                     */
#define HOTFN_BUDGET_LOWER_BOUND                                                                   \
    0x100u                          /* it was unhooked for a while: its count is a lower bound */
#define HOTFN_BUDGET_REDUCED 0x200u /* fewer of its calls were timed than requested          */

/* Why a level changed. */
#define HOTFN_BUDGET_OVER_BUDGET 1u /* hooks cost more than their share, this function's most */
#define HOTFN_BUDGET_TRY 2u         /* it is tried again after a while                        */

typedef struct hotfn_record_budget {
    uint32_t size;         /* sizeof(hotfn_record_budget)                             */
    uint32_t share_ppm;    /* the budget, in millionths; 0: the run had none          */
    uint32_t change_count; /* recorded changes: hotfn_record_get_change               */
    uint32_t stops;        /* how often the program was stopped for changes           */
    uint32_t failed_stops; /* stops that failed                                       */
    uint32_t reserved;
    uint64_t changes_lost;    /* changes that the record had no room for                 */
    uint64_t cpu_ns;          /* processor time of the program, hooks included           */
    uint64_t cost_ns;         /* time that hooks and stops took; the share is
                               * cost_ns / (cpu_ns - (cost_ns - stopped_ns))                */
    uint64_t stopped_ns;      /* time that the program was stopped                   */
    uint64_t longest_stop_ns; /* the longest single stop                             */
    double count_cost_ns;     /* cost of a counted call                              */
    double sample_cost_ns;    /* cost of a call that a sample skips                  */
    double time_cost_ns;      /* cost of a timed call                                */
    const char *note;         /* view; "", or why the budget was exceeded            */
    uint64_t timing_ns;       /* the part of cost_ns that timed calls took           */
    uint64_t start_ns;        /* the part that installing the hooks took             */
} hotfn_record_budget;
#define HOTFN_RECORD_BUDGET_INIT                                                                   \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_record_budget), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0      \
    }

/* A change of the level of a function. */
typedef struct hotfn_record_change {
    uint32_t size;             /* sizeof(hotfn_record_change)                             */
    uint32_t function;         /* index; HOTFN_NO_FUNCTION: not in the record             */
    uint32_t from, to;         /* levels: HOTFN_BUDGET_TIMED and the like                 */
    uint32_t why;              /* HOTFN_BUDGET_OVER_BUDGET or HOTFN_BUDGET_TRY            */
    uint32_t cost_ppm;         /* cost of its hooks before, of the program's processor time */
    uint64_t at_ns;            /* since the run began                                     */
    uint64_t calls_per_second; /* per second of processor time, before the change         */
} hotfn_record_change;
#define HOTFN_RECORD_CHANGE_INIT                                                                   \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_record_change), 0, 0, 0, 0, 0, 0, 0                                 \
    }

/* Fill out (borrowed) with the budget of the run; share_ppm is 0 if it had none.  HOTFN_OK,
 * HOTFN_E_OPTION.  Together with other readers of the record.  Since 0.1. */
HOTFN_API hotfn_status hotfn_record_get_budget(const hotfn_record *record,
                                               hotfn_record_budget *out);
/* Fill out (borrowed) with the change at index, in the order of time.  HOTFN_OK, HOTFN_E_NOT_FOUND
 * past the end, HOTFN_E_OPTION.  Together with other readers of the record.  Since 0.1. */
HOTFN_API hotfn_status hotfn_record_get_change(const hotfn_record *record, uint32_t index,
                                               hotfn_record_change *out);
/* The state of the function at index at the end of the run: a level and flags; 0 if its level never
 * changed, and past the end.  Together with other readers of the record.  Since 0.1. */
HOTFN_API uint32_t hotfn_record_get_budget_state(const hotfn_record *record, uint32_t function);

#ifdef __cplusplus
}
#endif

#endif
