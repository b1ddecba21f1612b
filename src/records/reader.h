/* SPDX-License-Identifier: MIT */
/* A record in memory: a copy of its sections, which is checked once, so that look-ups need no
 * checks. reader.c loads it, reader_check.c checks it, reader_query.c and find.c look things up,
 * repair.c loads damaged records and writes them again. */
#ifndef HFN_RECORDS_READER_H
#define HFN_RECORDS_READER_H

#include "base/memory.h"
#include "live/layout.h"
#include "records/pack.h"
#include "records/times.h"

/* The bytes of a section, owned; two NULs follow them. */
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
    uint32_t state; /* HOTFN_RECORD_*; an unfinished file that no process locks is BROKEN */
    uint32_t module_count, function_count, slot_count;
    uint32_t thread_count; /* rows, and cells in use                       */
    uint32_t process;      /* chosen pid, 0: all                           */
    uint32_t thread;       /* chosen tid, 0: all                           */
    uint64_t *totals;      /* [slot_count]                                 */
    hfn_times times;
    char times_note[96];       /* "", or why they were not read */
    uint32_t *slot_functions;  /* [slot_count], or NULL if the run was not timed */
    uint32_t *edges_by_callee; /* [edge_count]: indices in sums->edges, sorted by callee */
    uint32_t edge_count;
    struct hfn_time_sums *sums; /* owned by profile/; NULL until the record is opened for queries */
    /* for a repair: damage is not an error, but described in lost */
    bool tolerant;
    char *lost;
    uint64_t lost_bytes, lost_used;
};

/* The file that a record is loaded from. */
typedef struct hfn_source {
    hfn_os_file file;
    uint64_t file_bytes;
} hfn_source;

/* Load the record at path.  lost NULL: any damage is an error.  Else damage is skipped and
 * described in lost (lost_bytes with the NUL). */
hotfn_status hfn_record_load(hotfn_record **out, const char *path, char *lost, uint64_t lost_bytes,
                             const hotfn_env *env, hotfn_error *err);

/* Free a loaded record; NULL does nothing.  profile/ must have freed sums. */
void hfn_record_free(hotfn_record *record);

/* Report damage at offset: as an error, or, in a repair, as a text in lost with HOTFN_OK. */
hotfn_status hfn_record_report_damage(hotfn_record *record, uint64_t offset, hotfn_error *err,
                                      const char *format, ...) HFN_PRINTF(4, 5);

/* reader_check.c: check what was loaded.  A tolerant record is reduced to what is valid. */
hotfn_status hfn_record_check(hotfn_record *record, hotfn_error *err);

/* Read a section into parts and check its checksum. */
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

/* Only rows of the chosen process and thread are shown, numbered from 0.  hfn_record_shown_row
 * returns the row that is shown at index (thread_count: none); hfn_record_row_shown_as returns the
 * index that a row is shown at (UINT32_MAX: it is not shown). */
bool hfn_record_row_is_shown(const hotfn_record *record, uint32_t row);
uint32_t hfn_record_shown_row(const hotfn_record *record, uint32_t index);
uint32_t hfn_record_row_shown_as(const hotfn_record *record, uint32_t row);
uint32_t hfn_record_shown_count(const hotfn_record *record);

/* repair.c: write the record as a finished file.  Rows are packed again: a damaged row ends before
 * the damage. */
hotfn_status hfn_record_write(hotfn_record *record, const char *to, hotfn_error *err);

/* Store in the texts of the record that it was repaired, or merged from a repaired record, and what
 * the repair lost.  False: no memory. */
bool hfn_record_note_repair(hotfn_record *record, const char *lost);

/* The cell of a row below thread_count. */
hfn_thread_cell hfn_record_get_cell(const hotfn_record *record, uint32_t row);

/* The name of a function for display: its name as demangled by env, the linker's name if it cannot
 * be demangled, or "module+0x1234" if it has no name.  The text is in out or in the record. */
const char *hfn_record_display_name(const hotfn_record *record, const hotfn_env *env,
                                    const hotfn_record_function *function, char *out,
                                    size_t out_bytes);

/* The text at offset in the strings; "" if the offset is outside. */
const char *hfn_record_get_text(const hotfn_record *record, uint32_t offset);
const uint8_t *hfn_record_get_element(const hotfn_record *record, uint32_t type, uint64_t index);
/* Compute totals from the rows that are shown. */
void hfn_record_sum_rows(hotfn_record *record);

#endif
