/* SPDX-License-Identifier: MIT */
/* The two ends of a timed call, and what else happens to the calls that are open. */
#ifndef HFN_COUNTERS_CALL_STACK_H
#define HFN_COUNTERS_CALL_STACK_H

#include "base/compiler.h"
#include "live/time_row.h"

/* Of an engine whose process has forbidden itself to read the clock: calls are counted only, and those that are
 * open end at their thread's latest event. */
#define HFN_CLOCK_STOPPED 0u

/* What all threads need to know; written before the first timed hook stands. */
typedef struct hfn_time_engine {
    uint32_t thread_at, log_at;
    uint32_t clock;
    uint32_t flags;       /* HOTFN_TIMING_* */
    const uint64_t *tick; /* the tick clock; NULL: `clock` is read */
    uint32_t session;     /* tick clock: bits of hfn_time_frame.how */
    uint32_t hints_at;    /* from the state on */
    hfn_time_node *nodes;
    hfn_time_header *header;    /* NULL: nothing is timed */
    uint32_t skips_at, gaps_at; /* from the state on */
    uint32_t sample_interval;   /* sampled: one call in so many is timed          */
    uint64_t slow_ticks;        /* UINT64_MAX: none are kept */
    uint64_t *histograms;
    hfn_slow_call *slow;
    hfn_time_event *events;
    hotfn_alloc_cell *allocs; /* by node; NULL: memory is not kept */
    const uint32_t
        *means; /* sampled: by slot, the parent may change them: no more of the calls are timed */
    uint32_t event_mask;
    uint64_t
        looks; /* not flat, nor sampled: an end of a call looks at what it takes if all these bits of the
                     * thread's latest tick are 0 */
    /* Calls that began before are of a session that has ended, and ended with it: they return as if they had never
     * been seen.  HFN_TIME_OFF: all calls are. */
    uint64_t begin_ticks;
} hfn_time_engine;

#define HFN_TIME_OFF UINT64_MAX
/* Of the row that is nobody's (a thread that found none, one that is paused): nothing is begun there, as several
 * threads may use it at once. */
#define HFN_DEPTH_CLOSED UINT32_C(0x80000000)

extern hfn_time_engine hfn_time;

/* In assembly, one file a CPU: what a stub calls, at its frame, around the function's body.  The full
 * ones also keep tree, histograms, slow calls and events. */
void hfn_time_enter_entry(void);
void hfn_time_exit_entry(void);
void hfn_time_enter_full_entry(void);
void hfn_time_exit_full_entry(void);
void hfn_time_enter_sampled_entry(void);
void hfn_time_exit_sampled_entry(void);

HFN_KEEPS_REGISTERS void hfn_time_enter(hfn_time_frame *frame);
HFN_KEEPS_REGISTERS void hfn_time_exit(hfn_time_frame *frame);
HFN_KEEPS_REGISTERS void hfn_time_enter_full(hfn_time_frame *frame);
HFN_KEEPS_REGISTERS void hfn_time_exit_full(hfn_time_frame *frame);
HFN_KEEPS_REGISTERS void hfn_time_enter_sampled(hfn_time_frame *frame);
HFN_KEEPS_REGISTERS void hfn_time_exit_sampled(hfn_time_frame *frame);
HFN_KEEPS_REGISTERS void hfn_time_went_back(void);

/* own_cost.c: the thread learns what a timed call costs now, when that many of each 2^16 of its calls have ended (flat). */
#define HFN_PROBE_AT 4096u
HFN_KEEPS_REGISTERS void hfn_time_learn_cost(void);
/* Not flat, nor sampled: one end of a call took so many ticks. */
HFN_KEEPS_REGISTERS void hfn_time_end_took(uint64_t ticks);
#define HFN_END_TICKS_MOST 32768u /* if it took longer, it was interrupted */
/* An end looks if these bits of the thread's latest tick are 0.  The lowest five may be anything: clocks go in steps (26 and
 * 37 ticks are seen), and a lowest bit may stay as it is for seconds. */
#define HFN_LOOKS_NEVER UINT64_MAX
#define HFN_LOOKS_SELDOM (UINT64_C(1023) << 5)
#define HFN_LOOKS_OFTEN (UINT64_C(31) << 5)
/* In assembly: so often what a stub does around a body that only returns; enter NULL: all but the two ends. */
void hfn_time_probe(uint64_t slot, void (*enter)(void), void (*exit)(void), uint64_t calls);

/* The thread begins to use the row; thread: index of its cell + 1. */
void hfn_time_begin_row(uint8_t *row, uint32_t thread);
/* The thread goes on in the row `to`, with the calls that are open in `from`. */
void hfn_time_move(uint8_t *to, const uint8_t *from);
/* The row is a forked child's: calls that began before it are its own from now on only. */
void hfn_time_begin_child(uint8_t *row);
/* to's times += from's, for the first `slots` slots. */
void hfn_time_add_row(uint8_t *to, const uint8_t *from, uint32_t slots);
/* The row's times end at this tick: what is open ends there, what waits when it was last seen. */
void hfn_time_end_row(uint8_t *row, uint64_t now);
/* The stub's frame at `frame` is unwound, or 0: the innermost one is. */
void hfn_time_leave(uint64_t frame);
/* The clock; where it is stopped, the thread's last reading. */
uint64_t hfn_time_now(void);

/* A stub's personality (timing.c): an exception passes it. */
int hfn_time_personality(int version, int actions, uint64_t exception_class, void *exception,
                         void *context);

/* call_tree.c, for the full ones. */
HFN_KEEPS_REGISTERS uint32_t hfn_tree_root(hfn_time_state *t);
HFN_KEEPS_REGISTERS uint32_t hfn_tree_child(hfn_time_state *t, uint32_t parent, uint32_t slot);
/* The same for a tick clock, and keep it in the hints. */
HFN_KEEPS_REGISTERS uint32_t hfn_tree_hint_child(hfn_time_state *t, uint32_t parent, uint32_t slot);
HFN_KEEPS_REGISTERS uint32_t hfn_tree_of_open_calls(hfn_time_state *t, uint32_t depth,
                                                    uint32_t slot);
HFN_KEEPS_REGISTERS void hfn_tree_new_histogram(hfn_time_cell *cell);
/* Where a call that took so many ticks is counted in the pool of histograms.  False: the function
 * has no histogram. */
HFN_KEEPS_REGISTERS bool hfn_tree_find_bucket(hfn_time_cell *cell, uint64_t ticks, uint64_t *index);
HFN_KEEPS_REGISTERS void hfn_tree_keep_slow(const hfn_time_state *t, uint32_t slot, uint32_t node,
                                            uint64_t start, uint64_t ticks);

/* Tick clock: where the row has the index of the node that was found last for such a pair.  The node
 * says whether it is the one. */
static inline uint32_t *hfn_tree_hint(hfn_time_state *t, uint32_t parent, uint32_t slot)
{
    uint32_t *hints = (uint32_t *)(void *)((uint8_t *)t + hfn_time.hints_at);

    return &hints[(parent * 0x9e3779b1u + slot * 0x85ebca6bu) >> (32 - HFN_HINT_BITS)];
}

static inline bool hfn_time_is_on(void)
{
    return hfn_time.header && hfn_time.begin_ticks != HFN_TIME_OFF;
}

static inline hfn_time_state *hfn_time_state_of(uint8_t *row)
{
    return (hfn_time_state *)(void *)(row + hfn_time.thread_at);
}

static inline hfn_time_cell *hfn_time_cell_of(hfn_time_state *t, uint32_t number)
{
    return &t->outside + number;
}

static inline hfn_open_call *hfn_time_log_of(hfn_time_state *t)
{
    return (hfn_open_call *)(void *)((uint8_t *)t + hfn_time.log_at);
}

static inline hfn_waiting_call *hfn_time_suspended_of(hfn_time_state *t)
{
    return (hfn_waiting_call *)(void *)(hfn_time_log_of(t) + HFN_LOG_CAPACITY);
}

/* Sampled. */
static inline uint32_t *hfn_time_skip_of(hfn_time_state *t, uint32_t slot)
{
    return (uint32_t *)(void *)((uint8_t *)t + hfn_time.skips_at) + slot;
}

static inline hfn_time_gap *hfn_time_gap_of(hfn_time_state *t, uint32_t slot)
{
    return (hfn_time_gap *)(void *)((uint8_t *)t + hfn_time.gaps_at) + slot;
}

/* What the engine keeps in the words of a node that only samples use. */
static inline uint64_t *hfn_node_last_child(hfn_time_node *n)
{
    return &n->within_timed;
}

static inline uint64_t *hfn_node_depth(hfn_time_node *n)
{
    return &n->spread;
}

/* Of what runs outside of all timed calls. */
static inline uint32_t hfn_outside_node(const hfn_time_state *t)
{
    return hfn_time.flags & HOTFN_TIMING_TREE ? t->root : 0;
}

static inline uint32_t hfn_call_slot(uint64_t how)
{
    return (uint32_t)how & HFN_CALL_SLOT;
}

static inline uint32_t hfn_call_node(uint64_t how)
{
    return (uint32_t)(how >> HFN_CALL_NODE_SHIFT);
}

#endif
