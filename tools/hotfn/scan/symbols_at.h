/* SPDX-License-Identifier: MIT */
/* `hotfn symbols --at ADDRESS`: the symbol, source line and inlined calls at an address. */
#ifndef HOTFN_TOOL_SYMBOLS_AT_H
#define HOTFN_TOOL_SYMBOLS_AT_H

#include "cli/listing.h"

/* False if an address is unknown, after a message on stderr. */
bool symbols_at_print(FILE *out, const listing *l, const uint64_t *rvas, uint32_t count);
/* The same as the member "addresses" of the open object. */
bool symbols_at_write(hotfn_json_writer *out, const listing *l, const uint64_t *rvas,
                      uint32_t count);

#endif
