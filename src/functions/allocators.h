/* SPDX-License-Identifier: MIT */
/* The functions of a memory allocator, by the names that the C and C++ standards reserve for
 * them. */
#ifndef HFN_FUNCTIONS_ALLOCATORS_H
#define HFN_FUNCTIONS_ALLOCATORS_H

#include <stdbool.h>

/* The effect of a call on its block of memory. */
typedef enum hfn_allocator_kind {
    HFN_ALLOCATOR_NONE,
    HFN_ALLOCATOR_RETURNS, /* returns it, as malloc does         */
    HFN_ALLOCATOR_FREES,   /* frees its first argument           */
    HFN_ALLOCATOR_MOVES,   /* realloc                            */
    HFN_ALLOCATOR_STORES   /* posix_memalign: stores its address */
} hfn_allocator_kind;

/* names is a list of texts that each end with a NUL; an empty text ends the list. */
hfn_allocator_kind hfn_find_allocator_kind(const char *names);
bool hfn_has_allocator_name(const char *names);

#endif
