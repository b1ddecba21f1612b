/* SPDX-License-Identifier: MIT */
/* Memory of this process: pages from the system, files and shared memory mapped into it.  Pages
 * near code, and executable ones, are in os/code_memory.h. */
#ifndef HFN_OS_MEMORY_H
#define HFN_OS_MEMORY_H

#include "os/files.h"

/* The size of a page, the smallest unit that can be mapped. */
uint64_t hfn_os_page_bytes(void);

/* Map private pages of zeros, which use memory only once they are written.  NULL if there is no
 * memory or no address space. */
void *hfn_os_map_pages(uint64_t byte_count);
/* The same at exactly this address; false if the range is not free. */
bool hfn_os_map_at(uint64_t address, uint64_t byte_count);
/* Replace the mapping at `at` by private pages of zeros; where parts cannot be unmapped, it is
 * replaced as a whole, and what lies behind the pages is unmapped. */
bool hfn_os_replace_pages(void *at, uint64_t byte_count);
/* Can a part of a mapping be unmapped or replaced?  Else a mapping of a file goes as a whole. */
bool hfn_os_can_unmap_parts(void);
void hfn_os_unmap(uint64_t address, uint64_t byte_count);

/* From now on a store to these pages faults. */
void hfn_os_forbid_writing(void *at, uint64_t byte_count);

/* Hints; a system without them ignores them. */
void hfn_os_prefault_pages(const void *at, uint64_t byte_count);
void hfn_os_exclude_from_dumps(const void *at, uint64_t byte_count);

/* Bytes of memory that this process may use; UINT64_MAX if it is unknown. */
uint64_t hfn_os_get_memory_limit(void);

/* ---- Files and shared memory in this process. */

enum {
    HFN_OS_MAP_WRITE = 1,    /* stores reach the file and every process that maps it        */
    HFN_OS_MAP_PREFAULT = 2, /* read all of it now                                          */
    HFN_OS_MAP_LATEST = 4,   /* stores of other processes are seen; implied by MAP_WRITE    */
};

/* wanted is the preferred address; 0: any.  *out is set on success only. */
hfn_os_error hfn_os_map_file(void **out, hfn_os_file file, uint64_t offset, uint64_t byte_count,
                             uint32_t flags, uint64_t wanted);

/* Create memory of byte_count bytes that processes share by passing the open file to each other;
 * name is for diagnosis. */
hfn_os_error hfn_os_create_shared(hfn_os_file *out, const char *name, uint64_t byte_count);
/* Fix the size of shared memory for all processes, so that no access to a mapping of it can
 * fail. */
hfn_os_error hfn_os_seal_shared(hfn_os_file file);
bool hfn_os_is_sealed(hfn_os_file file);
/* Give memory to a range of shared memory, so that a store to it cannot fail.  A system that gives
 * memory at the first store does nothing. */
hfn_os_error hfn_os_commit_shared(hfn_os_file file, uint64_t offset, uint64_t byte_count);
/* Does this process map shared memory of that name? */
bool hfn_os_maps_shared(const char *name);

#endif
