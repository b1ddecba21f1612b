/* SPDX-License-Identifier: MIT */
/* A record in memory: copies of its sections, checked once, so that every later look-up is a plain
 * read.  reader.c loads and checks, reader_query.c answers, repair.c loads what is left. */
#ifndef HFN_RECORDS_READER_H
#define HFN_RECORDS_READER_H

#include "base/memory.h"
#include "live/layout.h"
#include "records/pack.h"
#include "records/times.h"

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
    uint32_t thread;       /* chosen tid, 0: all                           */
    uint64_t *totals;      /* [slot_count]                                 */
    hfn_times times;
    const char *times_note;    /* NULL, or why they were not read              */
    uint32_t *slot_functions;  /* [slot_count], or NULL if the run was not timed */
    uint32_t *edges_by_callee; /* [edge_count]; of sums, sorted by profile/ */
    uint32_t edge_count;
    struct hfn_time_sums *sums; /* owned by profile/; NULL until the record is opened for queries */
    bool is_raw;                /* the hooks' own cost is left in the times */
    /* when repairing: damage is passed over, and told here */
    bool tolerant;
    char *lost;
    uint64_t lost_bytes, lost_used;
};

/* What is read from. */
typedef struct hfn_source {
    int fd;
    uint64_t file_bytes;
} hfn_source;

/* Load path; NULL lost: any damage is an error, else it is passed over and told in words. */
hotfn_status hfn_record_load(hotfn_record **out, const char *path, char *lost, uint64_t lost_bytes,
                             const hotfn_env *env, hotfn_error *err);

/* Free what hfn_record_load made; sums must have been freed. */
void hfn_record_free(hotfn_record *record);

/* Damage at offset: an error, or passed over (HOTFN_OK) and told when repairing. */
hotfn_status hfn_record_damage(hotfn_record *record, uint64_t offset, hotfn_error *err,
                               const char *format, ...) HFN_PRINTF(4, 5);

/* reader_check.c: does what was loaded make sense?  Tolerant: cut it down to what does. */
hotfn_status hfn_record_check(hotfn_record *record, hotfn_error *err);

/* Copy a section with its checksum checked into parts. */
hotfn_status hfn_record_load_section(hotfn_record *record, const hfn_source *in, uint32_t type,
                                     hotfn_error *err);
/* reader_times.c: load the times, if the record has any; and free them. */
hotfn_status hfn_record_load_times(hotfn_record *record, const hfn_source *in, hotfn_error *err);
void hfn_record_drop_times(hotfn_record *record);
/* budget.c */
hotfn_status hfn_record_load_budget(hotfn_record *record, const hfn_source *in, hotfn_error *err);
static inline bool hfn_record_shows_all(const hotfn_record *r)
{
    return r->process == 0 && r->thread == 0;
}

/* Rows of other processes and threads than the chosen ones are not shown: is a row, which is the index-th that is
 * (thread_count: none), as which is a row shown (UINT32_MAX: not), and how many are there? */
bool hfn_record_row_is_shown(const hotfn_record *record, uint32_t row);
uint32_t hfn_record_shown_row(const hotfn_record *record, uint32_t index);
uint32_t hfn_record_row_shown_as(const hotfn_record *record, uint32_t row);
uint32_t hfn_record_shown_count(const hotfn_record *record);

/* repair.c: a record in memory as a finished file.  The rows are packed anew: damaged ones end where
 * their sense does. */
hotfn_status hfn_record_write(hotfn_record *record, const char *to, hotfn_error *err);

/* The record says from now on that it, or one that it was made of, was repaired, and what that lost.  False: no memory. */
bool hfn_record_note_repair(hotfn_record *record, const char *lost);

/* The cell of a row below thread_count. */
hfn_thread_cell hfn_record_get_cell(const hotfn_record *record, uint32_t row);

/* The readable name of a function, in out or in the record: by env's demangler, else the linker's; a
 * function without a name is "module+0x1234". */
const char *hfn_record_display_name(const hotfn_record *record, const hotfn_env *env,
                                    const hotfn_record_function *function, char *out,
                                    size_t out_bytes);

/* The text at offset of the strings, "" outside. */
const char *hfn_record_text(const hotfn_record *record, uint32_t offset);
const uint8_t *hfn_record_element(const hotfn_record *record, uint32_t type, uint64_t index);
/* Sum up the rows that are shown into totals. */
void hfn_record_sum(hotfn_record *record);

#endif
