/* SPDX-License-Identifier: MIT */
/* Write a finished record from its parts.  The parts come from a live record, or from a record in
 * memory that was repaired or merged. */
#ifndef HFN_RECORDS_WRITER_H
#define HFN_RECORDS_WRITER_H

#include "live/layout.h"
#include "records/pack.h"

typedef struct hfn_parts {
    const uint8_t *bytes[HFN_SECTION_TYPES]; /* borrowed; only the used part of a section */
    uint64_t byte_counts[HFN_SECTION_TYPES];
    const hfn_packed *rows;
    uint8_t uuid[16];
    uint64_t start_ns, end_ns, window_start_ns, window_end_ns;
    uint64_t checked_ns;
    uint32_t pid, state, process_count, verified_count;
    int32_t exit_code;
    uint32_t module_count, function_count, slot_count;
} hfn_parts;

/* Mark the functions whose module was never loaded as refused. */
void hfn_refuse_unloaded_functions(uint8_t *states, uint32_t count);

/* Write a temporary file next to path, then rename it to path.  sync: flush the file to the disk
 * before the rename.  If path is /dev/null, nothing is written. */
hotfn_status hfn_parts_write(const hfn_parts *parts, const char *path, bool sync,
                             const hotfn_env *env, hotfn_error *err);

#endif
