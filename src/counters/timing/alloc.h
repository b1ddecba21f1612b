/* SPDX-License-Identifier: MIT */
/* Memory by place: which timed functions belong to a memory allocator. */
#ifndef HFN_COUNTERS_ALLOC_H
#define HFN_COUNTERS_ALLOC_H

#include "base/compiler.h"
#include "live/time_row.h"

#define HFN_ALLOC_RETURNS 1u /* malloc and the like: the block is what it returns        */
#define HFN_ALLOC_FREES 2u   /* the block is its first argument                          */
#define HFN_ALLOC_MOVES 3u   /* realloc                                                  */
#define HFN_ALLOC_STORES 4u  /* posix_memalign: the block's address goes where that says */

typedef struct hfn_allocator {
    uint32_t slot, kind;
    uintptr_t usable; /* address of its module's malloc_usable_size */
} hfn_allocator;

#define HFN_ALLOCATORS_MAX 64u

/* Record what this function's calls allocate and free.  False: there are too many. */
bool hfn_alloc_add(const hfn_allocator *allocator);

/* In assembly, one file a CPU: like the counter mode's entries, for a run that records memory. They
 * pass the call's arguments, and its result. */
void hfn_alloc_enter_entry(void);
void hfn_alloc_exit_entry(void);
HFN_KEEPS_REGISTERS void hfn_alloc_enter(hfn_time_frame *frame, uintptr_t first, uintptr_t second);
HFN_KEEPS_REGISTERS void hfn_alloc_exit(hfn_time_frame *frame, uintptr_t result);
/* Calls function(argument), which follows the C calling convention, and keeps the other registers.
 */
HFN_KEEPS_REGISTERS uintptr_t hfn_alloc_call(uintptr_t function, uintptr_t argument);

#endif
