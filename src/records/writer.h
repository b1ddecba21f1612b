/* SPDX-License-Identifier: MIT */
/* Writing a finished record from its parts, wherever they come from: a live record, or what a repair
 * could save. */
#ifndef HFN_RECORDS_WRITER_H
#define HFN_RECORDS_WRITER_H

#include "live/layout.h"
#include "records/pack.h"

typedef struct hfn_parts {
    const uint8_t *bytes[HFN_SECTION_TYPES]; /* borrowed; META to CELLS, only what is used */
    uint64_t byte_counts[HFN_SECTION_TYPES];
    const hfn_packed *rows;
    uint8_t uuid[16];
    uint64_t start_ns, end_ns, window_start_ns, window_end_ns;
    uint32_t pid, state;
    int32_t exit_code;
    uint32_t module_count, function_count, slot_count;
} hfn_parts;

/* What still waited for its module waited in vain: it was refused for that. */
void hfn_settle_states(uint8_t *states, uint32_t count);

/* To a new file beside path, renamed over path at the end; sync: and flushed to the disk before. */
hotfn_status hfn_parts_write(const hfn_parts *parts, const char *path, bool sync,
                             const hotfn_env *env, hotfn_error *err);

#endif
