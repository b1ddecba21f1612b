/* SPDX-License-Identifier: MIT */
/* A record in memory: copies of its sections, checked once, so that every later look-up is a plain
 * read.  reader.c loads and checks, reader_query.c answers, repair.c loads what is left. */
#ifndef HFN_RECORDS_READER_H
#define HFN_RECORDS_READER_H

#include "base/memory.h"
#include "records/layout.h"
#include "records/pack.h"

/* A section's bytes, in memory of the record's own. */
typedef struct hfn_part {
    uint8_t *bytes;
    uint64_t byte_count;
} hfn_part;

struct hotfn_record {
    hotfn_env env;
    char *path;
    hfn_layout layout;
    uint8_t header[HFN_HEADER_BYTES];
    hfn_part parts[HFN_SECTION_TYPES]; /* META to CELLS */
    hfn_packed rows;
    uint32_t state; /* HOTFN_RECORD_*, BROKEN if its writer is gone */
    uint32_t module_count, function_count, slot_count;
    uint32_t thread_count; /* cells in use = rows                          */
    uint32_t process;      /* chosen pid, 0: all                           */
    uint64_t *totals;      /* [slot_count]                                 */
    /* when repairing: damage is passed over, and told here */
    bool tolerant;
    char *lost;
    uint64_t lost_bytes, lost_used;
};

/* Load path; NULL lost: any damage is an error, else it is passed over and told in words. */
hotfn_status hfn_record_load(hotfn_record **out, const char *path, char *lost, uint64_t lost_bytes,
                             const hotfn_env *env, hotfn_error *err);

/* Damage at offset: an error, or passed over (HOTFN_OK) and told when repairing. */
hotfn_status hfn_record_damage(hotfn_record *record, uint64_t offset, hotfn_error *err,
                               const char *format, ...) HFN_PRINTF(4, 5);

/* reader_check.c: does what was loaded make sense?  Tolerant: cut it down to what does. */
hotfn_status hfn_record_check(hotfn_record *record, hotfn_error *err);

/* The text at offset of the strings, "" outside. */
const char *hfn_record_text(const hotfn_record *record, uint32_t offset);
const uint8_t *hfn_record_element(const hotfn_record *record, uint32_t type, uint64_t index);
/* Sum up the rows of the chosen process into totals. */
void hfn_record_sum(hotfn_record *record);

#endif
