/* SPDX-License-Identifier: MIT */
/* Inside of a budget: what stands in the target because of a function's hook, as bytes that can be
 * taken out and put in again from outside (budget_cut.c), for who decides about it (budget.c). */
#ifndef HFN_BUDGET_H
#define HFN_BUDGET_H

#include "live/budget_memory.h"
#include "os/remote.h"
#include "plan/plan.h"

#include <hotfn/lowlevel/budget.h>
#include <hotfn/lowlevel/target.h>
#include <hotfn/session.h>

/* A module of the target. */
typedef struct hfn_cut_module {
    hotfn_plan *plan;  /* NULL: it has none */
    const void *bytes; /* of the plan, mapped */
    uint64_t byte_count;
    uint64_t base;
    uint32_t first_function; /* in the record */
    uint32_t function_count;
    uint32_t *
        site_ends; /* by the plan's entry: where its sites end in site_fields; NULL: not yet made */
    uint32_t *site_fields; /* their fields' RVAs, by entry */
    uint32_t site_count;
} hfn_cut_module;

enum { HFN_CUT_BYTES_MAX = 8, HFN_CUT_STUB_BYTES = 16 };

typedef struct hfn_cut_write {
    uint64_t address;
    uint8_t byte_count;
    uint8_t is_entry; /* whole instructions change: nobody may stand between them */
    uint8_t bare[HFN_CUT_BYTES_MAX], hooked[HFN_CUT_BYTES_MAX];
} hfn_cut_write;

typedef struct hfn_cut {
    uint64_t stub;
    uint8_t stub_bytes[HFN_CUT_STUB_BYTES];
    uint32_t write_count, write_capacity;
    hfn_cut_write writes[];
} hfn_cut;

/* The target's text by pages, each read once and written once; forgotten by hfn_cut_pages_finish, as others may
 * change what stands there.  Zeroed but for the remote, up to the bytes. */
enum { HFN_CUT_PAGE_BYTES = 4096, HFN_CUT_PAGES = 256 };
typedef struct hfn_cut_page {
    uint64_t address;    /* 0: none */
    uint32_t begin, end; /* what was changed of it */
} hfn_cut_page;
typedef struct hfn_cut_pages {
    const hfn_remote *remote;
    hfn_cut_page pages[HFN_CUT_PAGES];
    uint8_t bytes[HFN_CUT_PAGES][HFN_CUT_PAGE_BYTES];
} hfn_cut_pages;

/* The hook of the plan's entry as it stands now in the target, whose memory is open; NULL if it does
 * not stand as it was made, or there is no memory.  Free by hfn_cut_free. */
hfn_cut *hfn_cut_make(hfn_cut_module *module, uint32_t entry, hfn_cut_pages *pages,
                      const hotfn_env *env);
void hfn_cut_free(hfn_cut *cut, const hotfn_env *env);
void hfn_cut_module_finish(hfn_cut_module *module, const hotfn_env *env);

/* The target is stopped.  Take the hook out; false: nothing of it stands any more. */
bool hfn_cut_take_out(const hfn_cut *cut, hfn_cut_pages *pages);
/* Put it in again; false: its stub is gone, or other bytes stand there.  The caller saw to it that no
 * thread stands in its ranges. */
bool hfn_cut_put_in(const hfn_cut *cut, hfn_cut_pages *pages);
/* All that is changed is in the target, and what was read is forgotten; before it stops, and before it goes on. */
void hfn_cut_pages_finish(hfn_cut_pages *pages);
/* Where no thread may stand meanwhile: at most one range a cut; 0: anywhere is fine. */
uint32_t hfn_cut_range(const hfn_cut *cut, hfn_remote_range *out);

/* ---- Who decides. */

#define HFN_BUDGET_MS UINT64_C(1000000)
#define HFN_BUDGET_SOON_NS (5 * HFN_BUDGET_MS) /* from one look to the next after a try */
#define HFN_BUDGET_TRIES 32u                   /* in one stop */
#define HFN_BUDGET_BACK_NS                                                                         \
    (200 * HFN_BUDGET_MS) /* until more is known of a function, after a change */

/* What is known of a slot. */
typedef struct hfn_book {
    uint64_t last, calls;      /* until the last look, and since        */
    uint64_t back_ns, wait_ns; /* when it may come back; the last wait  */
    uint64_t came_ns;          /* when it came back last                */
    uint64_t seen_ns;          /* when it was called last               */
    double rate;               /* what its count cost, of the time, when it was unhooked */
    hfn_cut *cut;              /* while it is out                       */
    uint32_t function, module;
    uint32_t level;   /* HOTFN_BUDGET_*; 0: not hooked yet     */
    uint32_t closest; /* the level that was asked for          */
    uint32_t wanted;  /* the level to change to now            */
    uint32_t mean;    /* one call in so many is timed, at most; 0: few, it begins slowly */
    bool was_called;  /* ever                                  */
    bool is_fixed;    /* it cannot be changed                  */
    bool is_just_out; /* since the last look: it was called until then */
} hfn_book;

struct hotfn_budget {
    hotfn_env env;
    hotfn_live *live;
    hotfn_handover *handover;
    hfn_budget_header *header;
    double share;
    double count_ns, timed_ns;        /* of a call that is counted, and of timing one in addition */
    uint64_t measured_ns;             /* when count_ns was measured last */
    double counted_calls, counts_ns;  /* until now */
    uint64_t timed_ticks, timed_ends; /* until the last look, of the target's timed calls */
    double seen_ticks, seen_ends;     /* of late: what timed_ns is made of */
    uint64_t start_ns, started_ns;    /* the record's; what the target's start took */
    double excess_ns;                 /* what counts took too much since the last stop */
    uint32_t *means;                  /* shared, by slot, as hfn_book's; NULL: none is timed */
    uint32_t mean;                    /* as asked */
    hfn_book *books;
    uint32_t book_count, book_capacity;
    hfn_cut_module *modules;
    uint32_t module_count, module_capacity;
    uint64_t *row, *sums; /* a thread's counts; of all threads, behind it, [row_slots] */
    uint32_t row_slots;
    uint32_t *chosen; /* slots, [book_capacity] */
    uint32_t chosen_count;
    uint32_t *called; /* slots that were ever called, behind chosen */
    uint32_t called_count;
    hfn_remote remote;
    hfn_cut_pages *pages;
    bool only_go;  /* no hook of this target ever comes back              */
    bool is_held;  /* a thread of the target is still held               */
    bool is_stuck; /* the target cannot be changed: header->note says why */
    uint64_t cpu_ns, next_stop_ns;
};

/* budget_measure.c: what the hook of a call costs that is not timed, in nanoseconds, by whether the run
 * times some; measured now, takes two milliseconds.  0 where no budget can be kept. */
double hfn_budget_measure(bool is_sampled);
/* The same while the target runs, in 0.1 ms: what was known, moved towards what is so now. */
double hfn_budget_measure_again(bool is_sampled, double known_ns);
/* budget_choose.c: what the calls since the last look cost, counted and timed as they were. */
double hfn_budget_cost(const hotfn_budget *budget, const hfn_book *function);
/* What hooks may take in so much of the program's own time: its share, less what they took too much before. */
double hfn_budget_allowed(const hotfn_budget *budget, double bare_ns);
/* Counts took so much, which is more than is allowed: choose who is unhooked. */
void hfn_budget_reduce(hotfn_budget *budget, double counts, double allowed);
/* They do not: choose who is tried again; a stop takes stop_ns. */
void hfn_budget_raise(hotfn_budget *budget, double stop_ns);

/* budget_times.c: what timed calls took in the process since the last look, in nanoseconds. */
double hfn_budget_timing(hotfn_budget *budget, uint32_t pid);
/* Let timing take what is allowed, by functions that are hooked; the target goes on.
 * is_over: hooks cost too much now.  run_ns: of processor time since the last look. */
void hfn_budget_time(hotfn_budget *budget, double allowed, bool is_over, double run_ns);
/* Its calls are counted only, when it comes back. */
void hfn_budget_time_none(hotfn_budget *budget, uint32_t slot);

/* budget.c: the function's level changes. */
void hfn_budget_note(hotfn_budget *budget, hfn_book *function, uint32_t level, double run_ns);

#endif
