/* SPDX-License-Identifier: MIT */
/*
 * Unwind tables of stubs in a process to which hotfn is attached.  libgcc, shared or static, finds
 * the tables of a PC by _dl_find_object or dl_iterate_phdr of the C library.  While calls are
 * timed, both functions are replaced by those of the core, which answer for the stubs and the core,
 * and pass everything else to the originals.  The launcher fills these structures.
 */
#ifndef HFN_OS_CORE_UNWIND_H
#define HFN_OS_CORE_UNWIND_H

#include <stdint.h>

#define HFN_FIND_OBJECT_NAME "_dl_find_object"
#define HFN_ITERATE_PHDR_NAME "dl_iterate_phdr"

typedef struct hfn_core_region {
    uint64_t begin, end;   /* code */
    uint64_t eh_frame_hdr; /* its table */
} hfn_core_region;

typedef struct hfn_core_unwind {
    uint64_t find_object, iterate_phdr; /* the originals; 0: the function is not replaced */
    uint64_t regions;                   /* sorted by begin */
    uint64_t region_count;
} hfn_core_unwind;

extern hfn_core_unwind hfn_core_tables;

/* The region with the code at this address; NULL: none. */
const hfn_core_region *hfn_core_find_region(uint64_t pc);

#endif
