/* SPDX-License-Identifier: MIT */
/* Pages for generated code, and changes of code that is already mapped. */
#ifndef HFN_OS_CODE_MEMORY_H
#define HFN_OS_CODE_MEMORY_H

#include "os/memory.h"

/* Map byte_count writable bytes so that all of them and all of [near_begin, near_end) lie within
 * range_bytes of each other; 0 if there is no such gap. */
uint64_t hfn_os_map_near(uint64_t near_begin, uint64_t near_end, uint64_t byte_count,
                         uint64_t range_bytes);

/* The unmapped ranges that overlap [begin, end), at most capacity of them, by rising address.
 * Other threads may map something there at any time. */
typedef struct hfn_os_gap {
    uint64_t begin, end;
} hfn_os_gap;
uint32_t hfn_os_find_gaps(uint64_t begin, uint64_t end, hfn_os_gap *out, uint32_t capacity);

/* The pages become executable and read-only. */
bool hfn_os_make_executable(uint64_t address, uint64_t byte_count);

/* Code that may be written until hfn_os_close_text; it stays executable all the time. */
typedef struct hfn_os_writable_text {
    uint64_t begin, end; /* page aligned                                 */
    int64_t handle;      /* the system's, of the second method           */
    int32_t protection;  /* the system's, to be restored                 */
    uint32_t method;     /* the system's: how bytes are written          */
} hfn_os_writable_text;

/* False if the system forbids every method. */
bool hfn_os_open_text(hfn_os_writable_text *window, uint64_t begin, uint64_t end);
/* A hint: make the window's pages private in one batch, which saves a fault for each. */
void hfn_os_populate_text(const hfn_os_writable_text *window, uint64_t begin, uint64_t end);
void hfn_os_write_text(hfn_os_writable_text *window, uint64_t address, const uint8_t *bytes,
                       uint32_t byte_count);
void hfn_os_close_text(hfn_os_writable_text *window);

#endif
