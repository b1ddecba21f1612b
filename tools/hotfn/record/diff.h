/* SPDX-License-Identifier: MIT */
/* Comparing two records or two groups of records: diff.c reads the options, diff_side.c the records
 * of each side, diff_pair.c pairs functions, diff_rows.c makes rows and judges them, diff_table.c
 * and diff_document.c write them. */
#ifndef HOTFN_TOOL_DIFF_H
#define HOTFN_TOOL_DIFF_H

#include "cli/commands.h"

/* ---- One side: the old records or the new ones. */

/* A module of one record, and the keys by which modules of two records are the same. */
typedef struct diff_module {
    hotfn_record_module m;
    const char *key; /* see diff_side.c */
    uint32_t key_bytes;
} diff_module;

/* A function with its numbers in all runs of a side. */
typedef struct diff_function {
    const char *name; /* view into a record */
    const diff_module *module;
    uint64_t rva;
    uint64_t calls, self_ns, total_ns; /* sums over the runs                              */
    uint32_t runs;                     /* that counted it                                 */
    double mean, squares;              /* of the compared value: mean, squared deviations */
    double error_squares;              /* sum of the squared standard errors              */
    bool is_error_unknown;
    int name_bytes; /* compared bytes of the name */
    bool is_matched;
} diff_function;

typedef struct diff_run {
    const char *path;
    hotfn_record *record;
    diff_module *modules;
    uint32_t timing_flags; /* HOTFN_TIMING_*; 0: not timed */
    double tick_error_ns;  /* of its tick clock; 0: none    */
} diff_run;

typedef struct diff_side {
    diff_run *runs;
    uint32_t run_count;
    diff_function *functions;
    uint32_t function_count;
    double mean, squares; /* of the sum over all functions */
} diff_side;

/* --as OLD=NEW */
typedef struct diff_alias {
    const char *old, *new;
    uint32_t old_bytes;
} diff_alias;

/* A function in the old side, in the new one, or in both. */
typedef struct diff_row {
    const char *name, *module; /* views into one of the records */
    bool in_old, in_new;
    uint64_t old_calls, new_calls;                     /* means over the runs, as all that follow */
    uint64_t old_self, new_self, old_total, new_total; /* ns */
    uint64_t old_value, new_value;                     /* what is compared: calls or ns */
    double old_variance, new_variance; /* squared standard errors; negative: unknown */
} diff_row;

typedef struct diff {
    diff_side old, new;
    const diff_alias *aliases;
    uint32_t alias_count;
    bool timed;     /* all runs were timed                        */
    uint32_t by;    /* HOTFN_BY_*                                 */
    diff_row *rows; /* in descending order of the change          */
    uint32_t row_count;
    uint64_t old_sum, new_sum;
    double fail_above; /* percent; negative: never fail              */
    double min_share;  /* percent of the new sum: smaller functions do not fail */
    uint32_t limit;
    uint32_t width; /* of the table; 0: unbounded                              */
    uint32_t name_width;
} diff;

/* diff_side.c: read the functions of all runs of a side; false if memory runs out. */
bool diff_read_side(const diff *d, diff_side *side, bool is_new);
void diff_free_side(diff_side *side);

/* diff_pair.c: call found(user, a, b) for each pair, and for each function without a partner, whose
 * partner is NULL.  Both lists are sorted in place. */
typedef void (*diff_pair_fn)(void *user, diff_function *a, diff_function *b);
void diff_pair(diff_function *a, uint32_t a_count, diff_function *b, uint32_t b_count,
               diff_pair_fn found, void *user);

/* diff_rows.c: fill the rows and the sums.  False if memory runs out. */
bool diff_make_rows(diff *d);
/* The growth in percent; HUGE_VAL if the old value is 0 and the new one is not. */
double diff_compute_growth(uint64_t old_value, uint64_t new_value);
/* Is the difference no larger than the errors of both values explain? */
bool diff_row_is_noise(const diff *d, const diff_row *row);
/* Did the function, or the sum of all, grow by more than fail_above?  Noise never fails. */
bool diff_row_fails(const diff *d, const diff_row *row);
bool diff_sum_fails(const diff *d);
/* Is the difference of the sums no larger than their spread over the runs explains? */
bool diff_sum_is_noise(const diff *d);
/* Rows that differ come first. */
uint32_t diff_count_differing(const diff *d);

/* diff_table.c */
void diff_show_table(const diff *d);
/* diff_document.c */
void diff_show_markdown(const diff *d);
void diff_show_json(const diff *d);

/* diff_table.c: parts of both. */
const char *diff_get_order_name(const diff *d);
const char *diff_format_value(const diff *d, uint64_t value, char out[32]);
const char *diff_format_growth(double growth, char out[32]);
const char *diff_format_change(const diff_row *row, char out[32]);
/* The readable name in at most columns characters; 0: unlimited. */
const char *diff_get_display_name(const char *name, uint32_t columns, char *out, size_t bytes);
/* Print control characters as "?", and the characters in `escaped` after a backslash. */
void diff_print_name(const char *text, const char *escaped);
/* The number of rows to show, and how many rows that differ are hidden. */
uint32_t diff_count_shown(const diff *d);
void diff_print_hidden_count(const diff *d);

#endif
