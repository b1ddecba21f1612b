/* SPDX-License-Identifier: MIT */
/* `hotfn symbols --at ADDRESS`: what the code at an address was made of. */
#ifndef HOTFN_TOOL_SYMBOLS_AT_H
#define HOTFN_TOOL_SYMBOLS_AT_H

#include "listing.h"

/* A number, 0x before it or not hexadecimal; false, and a message, if it is none. */
bool symbols_at_parse(const char *text, uint64_t *rva);
void symbols_at_print(FILE *out, const listing *l, const uint64_t *rvas, uint32_t count);
/* ,"addresses":[...] */
void symbols_at_print_json(FILE *out, const listing *l, const uint64_t *rvas, uint32_t count);

#endif
