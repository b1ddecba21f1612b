/* SPDX-License-Identifier: MIT */
/* The forms of one name that a glob may mean: the linker's, that without its version, and the readable
 * one with and without its parameters.  One rule for lists, selections and reports. */
#ifndef HFN_FUNCTIONS_NAME_FORMS_H
#define HFN_FUNCTIONS_NAME_FORMS_H

#include <stdbool.h>
#include <stddef.h>

/* How much of the linker's name stands before its version ("memcpy@GLIBC_2.14"): all if it has none. */
size_t hfn_name_plain_length(const char *name);
/* How much of a readable name stands before its parameters: "a::f(int, b(*)()) const" -> "a::f". */
size_t hfn_name_short_length(const char *readable, size_t length);
/* Does a form of the linker's name, or of the readable one, match?  glob is sound. */
bool hfn_name_matches(const char *glob, const char *name);
bool hfn_readable_name_matches(const char *glob, const char *readable);

#endif
