/* SPDX-License-Identifier: MIT */
/* Fits lines to a terminal.  Output to a pipe or a file is unchanged. */
#ifndef HOTFN_TOOL_FIT_H
#define HOTFN_TOOL_FIT_H

#include <stdint.h>
#include <stdio.h>

/* The width of stdout in columns; 0 if it is no terminal. */
uint32_t fit_columns(void);

/* Write at most `columns` columns of text, cut in the middle.  Control characters become "?". */
void fit_cut(FILE *out, const char *text, uint32_t columns);

/* The same for a function's name, whose bracketed parts are folded first so that instances of a
 * template stay distinct. */
void fit_name(FILE *out, const char *name, uint32_t columns);

/* Output to stdout between the two calls is fitted at the end: of each line the first `keep`
 * columns stay and the name after them is cut.  With keep 0, lines are broken between words. */
void fit_begin(void);
void fit_end(uint32_t keep);

#endif
