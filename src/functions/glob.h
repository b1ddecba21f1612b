/* SPDX-License-Identifier: MIT */
/* Globs over text with a length, so that a part of a name can be matched without a copy. */
#ifndef HFN_FUNCTIONS_GLOB_H
#define HFN_FUNCTIONS_GLOB_H

#include <hotfn/status.h>
#include <stdbool.h>
#include <stddef.h>

/* HOTFN_E_OPTION if glob is NULL, does not close a '[' or ends with a '\\'. */
hotfn_status hfn_glob_check(const char *glob, hotfn_error *err);
/* glob has been checked. */
bool hfn_glob_matches(const char *glob, const char *text, size_t length);

/* True if glob matches a runtime method's whole name, or the part before " (" and the source
 * position.  glob has been checked.  Async-signal-safe. */
bool hfn_glob_match_method(const char *glob, const char *name);

#endif
