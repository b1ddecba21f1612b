/* SPDX-License-Identifier: MIT */
/* Internals of the budget: the state of each function and of the target (budget.c), the choice of
 * functions (choose.c), and unpatching and repatching hooks from outside the target (unpatch.c). */
#ifndef HFN_BUDGET_H
#define HFN_BUDGET_H

#include "live/live.h"
#include "live/plan_channel.h"
#include "os/remote.h"
#include "plan/plan.h"

#include <hotfn/lowlevel/budget.h>

typedef struct hfn_budget hfn_budget;

/* Create a budget for a live record that has a budget_ppm.  The budget keeps live and channel.  The
 * call measures the cost of a hook, which takes a few milliseconds.  HOTFN_OK, HOTFN_E_OPTION,
 * HOTFN_E_NO_MEMORY, HOTFN_E_UNSUPPORTED (this CPU). */
hotfn_status hfn_budget_create(hfn_budget **out, hfn_live *live, hfn_plan_channel *channel,
                               const hotfn_env *env, hotfn_error *err);
/* Measure what hooks cost in process pid, which is not reaped yet, and unhook or rehook functions.
 * All steps must be made by one thread.  A step may stop the target by ptrace; if another thread
 * waits for pid meanwhile, it must use waitid with WNOWAIT, or it consumes the report of that stop.
 * Returns the nanoseconds until the next step. */
uint64_t hfn_budget_step(hfn_budget *budget, uint32_t pid);
/* Detach from the target; unhooked functions stay unhooked.  NULL is fine. */
void hfn_budget_destroy(hfn_budget *budget);

/* A module of the target. */
typedef struct hfn_patched_module {
    hotfn_plan *plan;  /* NULL: the module has none, or it was not read yet */
    const void *bytes; /* of the plan, mapped */
    uint64_t byte_count;
    uint64_t base;
    uint32_t first_function; /* in the record */
    uint32_t function_count;
    uint32_t *site_ends;   /* by plan entry: end of its sites in site_fields; NULL: not indexed */
    uint32_t *site_fields; /* RVAs of the call operands, grouped by plan entry */
    uint32_t site_count;
    bool uncounts; /* calls that let stacks grow take back a count (attach/stack_growth.c) */
} hfn_patched_module;

enum { HFN_MAX_PATCH_WRITE_BYTES = 8, HFN_RECORDED_STUB_BYTES = 16 };

typedef struct hfn_patch_write {
    uint64_t address;
    uint8_t byte_count;
    uint8_t is_entry; /* it replaces instructions, so no thread may be inside */
    uint8_t unhooked[HFN_MAX_PATCH_WRITE_BYTES], hooked[HFN_MAX_PATCH_WRITE_BYTES];
} hfn_patch_write;

typedef struct hfn_unpatch_record {
    uint64_t stub;
    uint8_t stub_bytes[HFN_RECORDED_STUB_BYTES];
    uint32_t write_count, write_capacity;
    hfn_patch_write writes[];
} hfn_unpatch_record;

/* A cache of the target's code pages: each page is read once and written once per step.
 * hfn_target_pages_write_back empties it, since other processes may change the code in between.
 * Initially `pages` must be zeroed. */
enum { HFN_TARGET_PAGE_BYTES = 4096, HFN_TARGET_PAGES = 256 };
typedef struct hfn_target_page {
    uint64_t address;    /* 0: empty */
    uint32_t begin, end; /* the bytes to write back */
} hfn_target_page;
typedef struct hfn_target_pages {
    const hfn_remote *remote;
    hfn_target_page pages[HFN_TARGET_PAGES];
    uint8_t bytes[HFN_TARGET_PAGES][HFN_TARGET_PAGE_BYTES];
} hfn_target_pages;

/* Record the bytes of a plan entry's hook in the target, whose memory must be open.  NULL if they
 * differ from those that the plan installs, or if there is no memory.  The caller owns the
 * record. */
hfn_unpatch_record *hfn_unpatch_create_record(hfn_patched_module *module, uint32_t entry,
                                              hfn_target_pages *pages, const hotfn_env *env);
/* Record the instructions of a stub that lead to its timing: "hooked" they time, "unhooked" they
 * only count.  NULL if the stub does not time, or only counts already. */
hfn_unpatch_record *hfn_unpatch_create_timing(uint64_t stub, hfn_target_pages *pages,
                                              const hotfn_env *env);
void hfn_unpatch_free_record(hfn_unpatch_record *unpatch, const hotfn_env *env);
void hfn_patched_module_finish(hfn_patched_module *module, const hotfn_env *env);

/* Restore the original bytes in the stopped target.  Returns false if other code changed or removed
 * the hook. */
bool hfn_unpatch_function(const hfn_unpatch_record *unpatch, hfn_target_pages *pages);
/* Install the hook again.  Returns false if its stub is gone, or its entry holds other bytes.  The
 * caller has checked that no thread is inside the record's range. */
bool hfn_repatch_function(const hfn_unpatch_record *unpatch, hfn_target_pages *pages);
/* Write all changes to the target and empty the cache.  Called before the target stops, and before
 * it resumes. */
void hfn_target_pages_write_back(hfn_target_pages *pages);
/* Store the range that must contain no thread while the record is repatched.  Returns the number of
 * ranges, 0 or 1. */
uint32_t hfn_unpatch_get_range(const hfn_unpatch_record *unpatch, hfn_remote_range *out);

/* ---- The decisions. */

#define HFN_BUDGET_MS UINT64_C(1000000)
#define HFN_BUDGET_SHORT_STEP_NS (5 * HFN_BUDGET_MS) /* between steps after a change */
#define HFN_BUDGET_MAX_TRIES 32u                     /* functions rehooked in one stop */
#define HFN_BUDGET_MIN_WAIT_NS (200 * HFN_BUDGET_MS) /* between two changes of a function */

/* The budget's state of one function, by slot. */
typedef struct hfn_function_budget {
    uint64_t last;               /* total of calls at the last step       */
    uint64_t calls;              /* calls since the last step             */
    uint64_t retry_ns;           /* when to rehook it                     */
    uint64_t wait_ns;            /* the last wait before it was rehooked  */
    uint64_t rehooked_ns;        /* when it was rehooked last             */
    uint64_t seen_ns;            /* when it was called last               */
    double rate;                 /* share of the time that counting it took when it was unhooked */
    hfn_unpatch_record *unpatch; /* while it is unhooked                  */
    uint32_t function, module;
    uint32_t level;         /* HOTFN_BUDGET_*; 0: not hooked yet     */
    uint32_t closest;       /* the level that the options request    */
    uint32_t wanted;        /* the level that this step changes to   */
    uint32_t mean;          /* min sampling interval; 0: not set, the target's slow start applies */
    bool was_called;        /* at least once                         */
    bool is_fixed;          /* it cannot be changed                  */
    bool was_just_unhooked; /* since the last step: its counts may still include earlier calls */
} hfn_function_budget;

struct hfn_budget {
    hotfn_env env;
    hfn_live *live;
    hfn_plan_channel *channel;
    hfn_budget_header *header;
    double share;
    double count_ns, timed_ns; /* cost of counting a call, and extra cost of timing it */
    uint64_t measured_ns;      /* when count_ns was measured last */
    double counted_calls;      /* total so far */
    double total_counting_ns;  /* total cost of counting them */
    uint64_t timed_calls;      /* total of timed calls at the last step */
    uint64_t start_ns;         /* when the record began */
    uint64_t startup_ns;       /* duration of the target's start */
    double excess_ns;          /* cost of counting above the budget since the last stop */
    uint32_t *means;           /* shared, by slot: sampling intervals; NULL: no calls are timed */
    uint32_t mean;             /* requested sampling interval */
    hfn_function_budget *functions;
    uint32_t function_count, function_capacity;
    hfn_patched_module *modules;
    uint32_t module_count, module_capacity;
    uint64_t *row, *sums; /* [row_slots] each: counts of one thread; sums of all threads */
    uint32_t row_slots;
    uint32_t *chosen; /* slots, [function_capacity] */
    uint32_t chosen_count;
    uint32_t *called; /* slots called at least once; same allocation as chosen */
    uint32_t called_count;
    hfn_remote remote;
    hfn_target_pages *pages;
    bool never_rehooks; /* thread positions of this target cannot be read */
    bool is_held;       /* a thread of the target is still stopped        */
    bool is_stuck;      /* the target cannot be changed: header->note has the reason */
    uint64_t cpu_ns, next_stop_ns;
};

/* measure.c: measure the cost of counting a call, in nanoseconds.  is_sampled: in a run that also
 * times some calls, measure a call that is counted but not timed.  Takes about 2 ms.  Returns 0 on
 * a CPU without budgets. */
double hfn_budget_measure(bool is_sampled);
/* Measure again in about 0.1 ms, while the target runs.  Returns the moving mean of known_ns and
 * the new result. */
double hfn_budget_measure_again(bool is_sampled, double known_ns);
/* choose.c: the cost of counting and timing the function's calls since the last step. */
double hfn_budget_cost(const hfn_budget *budget, const hfn_function_budget *function);
/* Returns the budget of the hooks for bare_ns of the program's own time: the share of that time,
 * less a part of the excess of earlier steps. */
double hfn_budget_allowed(const hfn_budget *budget, double bare_ns);
/* Choose the functions to unhook if the cost of counting, counting_ns, is above allowed_ns. */
void hfn_budget_choose_unhooked(hfn_budget *budget, double counting_ns, double allowed_ns);
/* Choose the functions to rehook if counting is within the budget; a stop takes stop_ns. */
void hfn_budget_choose_retried(hfn_budget *budget, double stop_ns);

/* times.c: the cost of timed calls in the process since the last step, in nanoseconds. */
double hfn_budget_get_timing_cost(hfn_budget *budget, uint32_t pid);
/* Set the sampling intervals of hooked functions so that timing costs `allowed`; the target is not
 * stopped.  is_over: hooks are over budget now; run_ns: processor time since the last step. */
void hfn_budget_set_intervals(hfn_budget *budget, double allowed, bool is_over, double run_ns);
/* Once rehooked, the function's calls are counted but not timed. */
void hfn_budget_stop_timing(hfn_budget *budget, uint32_t slot);

/* budget.c: change the function's level and add the change to the live record. */
void hfn_budget_set_level(hfn_budget *budget, hfn_function_budget *function, uint32_t level,
                          double run_ns);

#endif
