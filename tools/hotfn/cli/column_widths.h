/* SPDX-License-Identifier: MIT */
/* Lines that fit a terminal.  A pipe or a file gets them whole. */
#ifndef HOTFN_TOOL_FIT_H
#define HOTFN_TOOL_FIT_H

#include <stdint.h>
#include <stdio.h>

/* Columns of the terminal that is stdout; 0: it is none. */
uint32_t fit_columns(void);

/* At most so many columns of text, cut in the middle; what would move the cursor is shown as "?". */
void fit_cut(FILE *out, const char *text, uint32_t columns);

/* The same of a function's name: what stands between brackets goes first, so that instances of a template stay apart. */
void fit_name(FILE *out, const char *name, uint32_t columns);

/* What is printed to stdout between the two is fitted when it is complete: of each line `keep` columns stay and
 * the name behind them is cut; keep 0: lines are broken between words. */
void fit_begin(void);
void fit_end(uint32_t keep);

#endif
