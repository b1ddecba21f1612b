/* SPDX-License-Identifier: MIT */
/* The live view: top.c reads options and keys, top_sample.c finds the record and takes what changed
 * since the last look, top_show.c draws it or writes JSON. */
#ifndef HOTFN_TOOL_TOP_H
#define HOTFN_TOOL_TOP_H

#include "cli/commands.h"

enum { TOP_BY_RATE, TOP_BY_CALLS, TOP_BY_SELF, TOP_BY_TOTAL, TOP_BY_ALLOC, TOP_ORDERS };
extern const char *const top_orders[TOP_ORDERS]; /* "rate" ... */

typedef struct top_row {
    uint32_t index; /* function or thread of the record */
    uint64_t calls, self_ns, total_ns;
    hotfn_alloc_cell memory; /* by itself */
    uint32_t watched;        /* HOTFN_BUDGET_*; 0: the budget never touched it     */
    double rate;             /* calls a second since the last look, or over the run */
    double busy;             /* self seconds a second, likewise                     */
} top_row;

typedef struct top_sample {
    hotfn_record *record;
    hotfn_record_info info;
    bool timed, with_memory;
    const char *times_note; /* the record's: why its times are not read, or "" */
    hotfn_record_budget budget;
    uint64_t at_ns;                                      /* CLOCK_MONOTONIC                  */
    double seconds;                                      /* that the rates are over          */
    uint64_t *calls, *self, *thread_calls, *thread_busy; /* of all functions and threads */
} top_sample;

typedef struct top_view {
    uint32_t by;
    bool threads, frozen, color, typing;
    char filter[128];
    uint32_t scroll;
    double interval_s;
} top_view;

/* The file of the record that a process counts into: false with a message if there is none. */
bool top_find(const char *what, char *path, size_t bytes);
/* Look at path; rates are over the time since before (NULL: over the whole run).  False: said why. */
bool top_look(top_sample *out, const char *path, const top_sample *before);
void top_forget(top_sample *sample);
/* The rows in order; NULL: no memory.  Freed by the caller. */
top_row *top_rows(const top_sample *sample, const top_sample *before, const top_view *view,
                  uint32_t *count);

void top_show(const top_sample *sample, const top_sample *before, const top_view *view,
              uint32_t columns, uint32_t lines);
void top_print(const top_sample *sample, const top_sample *before, const top_view *view);
void top_show_json(const top_sample *sample, const top_sample *before, const top_view *view);

#endif
