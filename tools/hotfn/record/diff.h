/* SPDX-License-Identifier: MIT */
/* Two records side by side: diff.c reads the options, diff_match.c says which function is which,
 * diff_show.c writes tables. */
#ifndef HOTFN_TOOL_DIFF_H
#define HOTFN_TOOL_DIFF_H

#include "cli/commands.h"

/* A function in the old record, in the new one, or in both. */
typedef struct diff_row {
    const char *name, *module; /* views into either record */
    bool in_old, in_new;
    uint64_t old_calls, new_calls;
    uint64_t old_self, new_self, old_total, new_total; /* ns */
    uint64_t old_value, new_value;                     /* of what is compared */
} diff_row;

typedef struct diff {
    hotfn_record *old, *new;
    const char *old_path, *new_path;
    bool timed;     /* both are                                   */
    uint32_t by;    /* HOTFN_BY_*                                 */
    diff_row *rows; /* the largest change first                   */
    uint32_t row_count;
    uint64_t old_sum, new_sum;
    double fail_above; /* percent; < 0: never                      */
    double least;      /* percent of the sum that a function must have to fail */
    uint32_t limit;
} diff;

bool diff_match(diff *d); /* false: no memory */

/* By how many percent, HUGE_VAL for what was not there; rows that are too much grown. */
double diff_growth(uint64_t old_value, uint64_t new_value);
bool diff_row_fails(const diff *d, const diff_row *row);
bool diff_sum_fails(const diff *d);

void diff_show_table(const diff *d);
void diff_show_markdown(const diff *d);
void diff_show_json(const diff *d);

#endif
