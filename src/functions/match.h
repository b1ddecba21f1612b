/* SPDX-License-Identifier: MIT */
/*
 * The only matcher of function names.  A glob is compared with every spelling of a name: the
 * linker's with and without its version ("memcpy@GLIBC_2.14"), and the readable one with and
 * without its parameter list.  Lists, selections and reports all use it and therefore find the same
 * functions.
 */
#ifndef HFN_FUNCTIONS_MATCH_H
#define HFN_FUNCTIONS_MATCH_H

#include "base/memory.h"

/* The spellings of the current name.  The readable ones are made when a glob first needs them. */
typedef struct hfn_name_matcher {
    const hotfn_env *env; /* kept */
    const char *name;     /* borrowed until the next name is set */
    size_t length, plain_length;
    char *buffer; /* owned; the plain name if it had to be copied, then the demangled one */
    size_t buffer_bytes;
    const char
        *readable; /* in buffer, or name where that cannot be demangled; NULL: not made yet */
    size_t readable_length, short_length;
    bool out_of_memory; /* a name could not be demangled for lack of memory; stays set */
} hfn_name_matcher;

void hfn_matcher_init(hfn_name_matcher *matcher, const hotfn_env *env);
void hfn_matcher_finish(hfn_name_matcher *matcher);
void hfn_matcher_set_name(hfn_name_matcher *matcher, const char *name);
/* True if any spelling of the current name matches.  glob has been checked with hfn_glob_check. */
bool hfn_matcher_matches(hfn_name_matcher *matcher, const char *glob);
/* True if any of the count names matches; each ends with a NUL and the next one follows it.  An
 * empty name ends the list early. */
bool hfn_matcher_matches_any(hfn_name_matcher *matcher, const char *glob, const char *names,
                             uint32_t count);

/* The length of the linker's name without its version: the whole length if it has none. */
size_t hfn_name_plain_length(const char *name);
/* The length of a readable name without its parameters: "a::f(int, b(*)()) const" -> "a::f". */
size_t hfn_name_short_length(const char *readable, size_t length);

#endif
