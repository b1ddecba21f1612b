/* SPDX-License-Identifier: MIT */
/* Comparing two records: diff.c reads the options, diff_match.c pairs the functions of both
 * records, diff_show.c writes the result. */
#ifndef HOTFN_TOOL_DIFF_H
#define HOTFN_TOOL_DIFF_H

#include "cli/commands.h"

/* A function in the old record, in the new one, or in both. */
typedef struct diff_row {
    const char *name, *module; /* views into one of the records */
    bool in_old, in_new;
    uint64_t old_calls, new_calls;
    uint64_t old_self, new_self, old_total, new_total; /* ns */
    uint64_t old_value, new_value;                     /* what is compared: calls or ns */
    uint64_t old_error, new_error;                     /* standard errors of these; 0 of calls */
} diff_row;

typedef struct diff {
    hotfn_record *old, *new;
    const char *old_path, *new_path;
    bool timed;     /* both runs were timed                       */
    uint32_t by;    /* HOTFN_BY_*                                 */
    diff_row *rows; /* in descending order of the change          */
    uint32_t row_count;
    uint64_t old_sum, new_sum;
    double fail_above; /* percent; negative: never fail              */
    double min_share;  /* percent of the new sum: smaller functions do not fail */
    uint32_t limit;
} diff;

/* Fill the rows and the sums.  False if memory runs out. */
bool diff_match_functions(diff *d);

/* The growth in percent; HUGE_VAL if the old value is 0 and the new one is not. */
double diff_compute_growth(uint64_t old_value, uint64_t new_value);
/* Is the difference no larger than the errors of both values explain? */
bool diff_row_is_noise(const diff_row *row);
/* Did the function, or the sum of all, grow by more than fail_above?  Noise never fails. */
bool diff_row_fails(const diff *d, const diff_row *row);
bool diff_sum_fails(const diff *d);

void diff_show_table(const diff *d);
void diff_show_markdown(const diff *d);
void diff_show_json(const diff *d);

#endif
