/* SPDX-License-Identifier: MIT */
/* Forwarded exports, for `hotfn symbols`. */
#ifndef HOTFN_TOOL_FORWARDS_H
#define HOTFN_TOOL_FORWARDS_H

#include "cli/listing.h"

/* Print a line for each forwarded export; prints nothing if the file is not a PE image.  On failure
 * returns false and sets *err. */
bool forwards_print(FILE *out, const listing *l, const symbol_sources *sources, hotfn_error *err);
/* Write the forwarded exports as the member "forwards" of the open object. */
bool forwards_write(hotfn_json_writer *out, const listing *l, const symbol_sources *sources,
                    hotfn_error *err);

#endif
