/* SPDX-License-Identifier: MIT */
/* Pages for generated code, and changes of code that is already mapped. */
#ifndef HFN_OS_CODE_MEMORY_H
#define HFN_OS_CODE_MEMORY_H

#include "os/memory.h"

/* Map byte_count writable bytes so that all of them and all of [near_begin, near_end) lie within
 * range_bytes of each other.  Returns their address, or 0 if no gap in the mappings is suitable. */
uint64_t hfn_os_map_near(uint64_t near_begin, uint64_t near_end, uint64_t byte_count,
                         uint64_t range_bytes);

/* List at most capacity unmapped ranges inside [begin, end), by rising address.  Other threads may
 * map memory there at any time. */
typedef struct hfn_os_gap {
    uint64_t begin, end;
} hfn_os_gap;
uint32_t hfn_os_find_gaps(uint64_t begin, uint64_t end, hfn_os_gap *out, uint32_t capacity);

/* Make the pages executable and read-only. */
bool hfn_os_make_executable(uint64_t address, uint64_t byte_count);

/* A range of code that may be written between hfn_os_open_text and hfn_os_close_text; the code
 * stays executable meanwhile.  Only the os folder interprets the last three fields. */
typedef struct hfn_os_writable_text {
    uint64_t begin, end; /* page aligned                                      */
    int64_t handle;      /* open file through which bytes are written, if any */
    int32_t protection;  /* of the pages before the call; to be restored      */
    uint32_t method;     /* how bytes are written                             */
} hfn_os_writable_text;

/* Returns false if a part of the range is not mapped or the system forbids every method. */
bool hfn_os_open_text(hfn_os_writable_text *text, uint64_t begin, uint64_t end);
/* A hint: make these pages private in one batch, which saves a page fault for each page. */
void hfn_os_populate_text(const hfn_os_writable_text *text, uint64_t begin, uint64_t end);
void hfn_os_write_text(hfn_os_writable_text *text, uint64_t address, const uint8_t *bytes,
                       uint32_t byte_count);
void hfn_os_close_text(hfn_os_writable_text *text);

#endif
