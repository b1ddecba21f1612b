/* SPDX-License-Identifier: MIT */
/* Functions that have neither a symbol nor unwind data, found by decoding code (verdicts/). */
#ifndef HFN_FUNCTIONS_FOUND_H
#define HFN_FUNCTIONS_FOUND_H

#include "functions/functions.h"

typedef struct hfn_found {
    uint64_t rva, byte_count;
    uint16_t flag; /* HOTFN_FUNCTION_FOUND_* */
} hfn_found;

/* Add entries, sorted by rva, that are not in the table yet.  A function of guessed size ends where
 * one of them begins.  False if there is no memory; the table is then unchanged. */
bool hfn_functions_add_found(hotfn_functions *functions, const hfn_found *found, uint32_t count);

#endif
