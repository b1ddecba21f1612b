/* SPDX-License-Identifier: MIT */
/* Fits lines to a terminal.  Output to a pipe or a file is unchanged. */
#ifndef HOTFN_TOOL_FIT_H
#define HOTFN_TOOL_FIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define FIT_NAME_WIDTH 100 /* characters of a function's name in a pipe or a file */

/* The width of stdout in columns; 0 if stdout is not a terminal. */
uint32_t fit_columns(void);

/* True if stdout is a terminal that shows colours, and NO_COLOR is not set (no-color.org). */
bool fit_wants_color(void);

/* Write at most `columns` columns of text, cut in the middle.  Control characters become "?". */
void fit_cut(FILE *out, const char *text, uint32_t columns);

/* The same for a function's name, whose bracketed parts are folded first so that instances of a
 * template stay distinct. */
void fit_name(FILE *out, const char *name, uint32_t columns);

/* Output to stdout between the two calls is held back and fitted by fit_end: it keeps the first
 * `keep` columns of each line and cuts the name after them.  With keep 0 it breaks lines between
 * words instead. */
void fit_begin(void);
void fit_end(uint32_t keep);
/* Print the text in this way; its newlines are overwritten. */
void fit_lines(char *text, uint32_t columns, uint32_t keep);

#endif
