/* SPDX-License-Identifier: MIT */
/* Globs over text with a length, so that a part of a name can be matched without a copy. */
#ifndef HFN_FUNCTIONS_GLOB_H
#define HFN_FUNCTIONS_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* False if a '[' is never closed or a '\\' stands at the end. */
bool hfn_glob_is_sound(const char *glob);
/* glob is sound. */
bool hfn_glob_matches(const char *glob, const char *text, size_t length);

#endif
