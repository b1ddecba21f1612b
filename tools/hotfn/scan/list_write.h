/* SPDX-License-Identifier: MIT */
/* The output files of `hotfn list` and `hotfn kit`: hookable functions as a function list, all
 * others with their reasons as JSON. */
#ifndef HOTFN_TOOL_LIST_WRITE_H
#define HOTFN_TOOL_LIST_WRITE_H

#include "cli/listing.h"

typedef struct list_outputs {
    const char *list;    /* NULL: none; .flf, text if its name ends in .txt */
    const char *refused; /* NULL: none; "-" is stdout                       */
} list_outputs;

/* selected has one byte for each function.  Returns the exit status, after a message if it is not
 * 0. */
int list_write(const char *command, const listing *l, const hotfn_functions *functions,
               const uint8_t *selected, const list_outputs *outputs);

#endif
