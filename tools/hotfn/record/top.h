/* SPDX-License-Identifier: MIT */
/* The live view: top.c reads options and keys, top_sample.c finds the record and samples its
 * counts, top_show.c draws the screen or writes JSON. */
#ifndef HOTFN_TOOL_TOP_H
#define HOTFN_TOOL_TOP_H

#include "cli/commands.h"

enum { TOP_BY_RATE, TOP_BY_CALLS, TOP_BY_SELF, TOP_BY_TOTAL, TOP_BY_ALLOC, TOP_ORDERS };
extern const char *const top_orders[TOP_ORDERS]; /* "rate" ... */

typedef struct top_row {
    uint32_t index; /* function or thread of the record */
    uint64_t calls, self_ns, total_ns;
    hotfn_alloc_cell memory; /* allocated by the function itself */
    uint32_t budget_state;   /* HOTFN_BUDGET_*; 0: not changed by the budget      */
    double rate;             /* calls per second since the last sample, or over the run */
    double busy;             /* self seconds per second, of the same period             */
} top_row;

typedef struct top_sample {
    hotfn_record *record;
    hotfn_record_info info;
    bool timed, with_memory;
    const char *times_note; /* view; why the times of the record cannot be read, or "" */
    hotfn_record_budget budget;
    uint64_t at_ns;                                      /* by top_read_clock                */
    double seconds;                                      /* the period of the rates          */
    uint64_t *calls, *self, *thread_calls, *thread_busy; /* owned; of each function and thread */
} top_sample;

typedef struct top_view {
    uint32_t by;
    bool threads, frozen, color, typing;
    char filter[128];
    uint32_t scroll;
    double interval_s;
    const char *path;  /* of the record */
    char message[512]; /* of the latest switch; "": none */
} top_view;

/* Find the record named by `what`: a path, or the id or the name of a counted process.  False after
 * a message. */
bool top_find_record(const char *what, char *path, size_t bytes);
/* Sample the record at path.  Its rates are over the time since the sample `before`, or over the
 * whole run if that is NULL.  False after a message. */
bool top_take_sample(top_sample *out, const char *path, const top_sample *before);
void top_free_sample(top_sample *sample);
/* Returns the rows in the order of the view; the caller frees them.  NULL if memory runs out. */
top_row *top_sort_rows(const top_sample *sample, const top_sample *before, const top_view *view,
                       uint32_t *count);

void top_show(const top_sample *sample, const top_sample *before, const top_view *view,
              uint32_t columns, uint32_t lines);
void top_print(const top_sample *sample, const top_sample *before, const top_view *view);
void top_show_json(const top_sample *sample, const top_sample *before, const top_view *view);

/* top_terminal.c: the screen and the keys.  False after a message: there is no terminal. */
bool top_prepare_terminal(void);
void top_restore_terminal(void);
void top_get_terminal_size(uint32_t *columns, uint32_t *lines);
enum { TOP_NO_KEY = 0, TOP_END_OF_KEYS = -1 };
/* Wait for a key for at most `seconds`. */
int top_read_key(double seconds);
/* Nanoseconds of a clock that never goes back. */
uint64_t top_read_clock(void);
void top_sleep(double seconds);

#endif
