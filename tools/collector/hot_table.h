/* SPDX-License-Identifier: MIT */
/* The hot functions of a selection: folded, sorted and searched. */
#ifndef HOTFN_COLLECTOR_HOT_TABLE_H
#define HOTFN_COLLECTOR_HOT_TABLE_H

#include "functions.h"
#include "selection.h"

typedef struct hot_table {
    selection sel, base_sel;
    folded now, base;
    function_list list, base_list;
    bool has_base;
    uint32_t *pairs; /* by number: the number in the base build */
    uint32_t *order; /* the functions that match, sorted */
    uint32_t *ranks; /* by number, from 1 */
    uint32_t count, called;
} hot_table;

/* False after a refusal; free the table either way. */
bool hot_table_make(request *r, store *s, hot_table *out);
void hot_table_free(hot_table *t);
/* The value of the same function in the base build: 0 if it was not called there. */
double get_base_value(const hot_table *t, uint32_t number);

#endif
