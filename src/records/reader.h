/* SPDX-License-Identifier: MIT */
/* A record in memory: copies of its sections, checked once, so that every later look-up is a plain
 * read.  reader.c loads and checks, reader_query.c answers, repair.c loads what is left. */
#ifndef HFN_RECORDS_READER_H
#define HFN_RECORDS_READER_H

#include "base/memory.h"
#include "live/layout.h"
#include "records/pack.h"
#include "records/times_sum.h"

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
    const char *times_note;   /* NULL, or why they were not read              */
    hfn_time_sums sums;       /* empty unless times are there             */
    uint32_t *slot_functions; /* [slot_count]; likewise                   */
    bool is_raw;              /* the hooks' own cost is left in the times */
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

/* Damage at offset: an error, or passed over (HOTFN_OK) and told when repairing. */
hotfn_status hfn_record_damage(hotfn_record *record, uint64_t offset, hotfn_error *err,
                               const char *format, ...) HFN_PRINTF(4, 5);

/* reader_check.c: does what was loaded make sense?  Tolerant: cut it down to what does. */
hotfn_status hfn_record_check(hotfn_record *record, hotfn_error *err);

/* Copy a section with its checksum checked into parts. */
hotfn_status hfn_record_load_section(hotfn_record *record, const hfn_source *in, uint32_t type,
                                     hotfn_error *err);
/* reader_times.c: load what there is of timing, and (again) sum it up for the chosen process. */
hotfn_status hfn_record_load_times(hotfn_record *record, const hfn_source *in, hotfn_error *err);
hotfn_status hfn_record_sum_times(hotfn_record *record);
void hfn_record_drop_times(hotfn_record *record);
/* budget.c */
hotfn_status hfn_record_load_budget(hotfn_record *record, const hfn_source *in, hotfn_error *err);
/* times_query.c: ticks as nanoseconds; ticks without the inner cost of so many calls and the outer one
 * of so many; a node's, corrected and scaled up, and its callees'. */
uint64_t hfn_times_ns(const hotfn_record *record, uint64_t ticks);
double hfn_times_root(double x); /* square root; 0 of a negative number */
uint64_t hfn_times_less_cost(const hotfn_record *record, uint64_t ticks, uint64_t inside_calls,
                             uint64_t outside_calls);
/* Of `outermost` calls, less what hooks within them cost too: of a slot, a node, an edge. */
uint64_t hfn_times_less_hooks(const hotfn_record *record, uint64_t ticks, uint64_t within,
                              uint64_t outermost);
/* One call's, less its share of what hooks below it cost. */
uint64_t hfn_times_one_call(const hotfn_record *record, const hfn_slot_sum *sum, uint64_t ticks);
uint64_t hfn_times_one_call_ns(const hotfn_record *record, const hfn_slot_sum *sum, uint64_t ticks);
/* Sampled: what a slot's timed calls stand for, fitted to how many calls there were; else value. */
uint64_t hfn_times_scaled(const hotfn_record *record, uint32_t slot, uint64_t value);
/* Once the sums are made: of each function's calls, for the errors of a sample.  Then its bounds (times_bounds.c). */
void hfn_times_find_variances(hotfn_record *record);
void hfn_times_bound_sample(hotfn_record *record);
/* Before that: what is known from calls that were all timed (times_exact.c).  False: no memory. */
bool hfn_times_use_exact(hotfn_record *record);
/* times_totals.c.  Sampled: the total of a slot's outermost calls, and its own time; their standard errors, or
 * HFN_TICKS_UNKNOWN and more; ticks. */
#define HFN_TICKS_UNKNOWN 1e18
uint64_t hfn_times_sampled_ticks(const hotfn_record *record, const hfn_slot_sum *sum);
uint64_t hfn_times_sampled_self(const hotfn_record *record, const hfn_slot_sum *sum);
double hfn_times_total_error(const hotfn_record *record, const hfn_slot_sum *sum);
double hfn_times_self_error(const hotfn_record *record, const hfn_slot_sum *sum);
/* Of all its calls, those in each other too. */
double hfn_times_sample_error(const hotfn_record *record, const hfn_slot_sum *sum);
/* Was each of its calls timed? */
bool hfn_times_is_known(const hotfn_record *record, const hfn_slot_sum *sum);
/* Before a sample's bounds, once they are known, and again when what hooks cost is taken out or left in: of each circle of functions. */
void hfn_times_find_circles(hotfn_record *record);
/* Sampled: scaled up, and cut down to what the slot can have taken. */
uint64_t hfn_times_cut(const hotfn_record *record, uint32_t slot, uint64_t ticks);
/* What a node's estimate is multiplied with, since it cannot be so long; 1: it can. */
double hfn_times_node_cut(const hotfn_record *record, uint32_t node);
uint64_t hfn_times_node_ticks(const hotfn_record *record, uint32_t node);
/* Sampled: before it is scaled up and cut down. */
double hfn_times_node_raw(const hotfn_record *record, uint32_t node);
/* counts: a histogram over the shown threads; and where its buckets begin. */
void hfn_times_histogram(const hotfn_record *record, const hfn_slot_sum *sum, uint64_t *counts);
uint64_t hfn_times_bucket_begin(uint32_t bucket);
/* The next of its callees, or of those that it came to by counted-only functions; UINT32_MAX: the first, the end. */
uint32_t hfn_times_next_callee(const hotfn_record *record, uint32_t node, uint32_t callee);
uint64_t hfn_times_callee_ticks(const hotfn_record *record, uint32_t node);
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
uint64_t hfn_record_busy_ns(const hotfn_record *record, uint32_t row);

/* repair.c: a record in memory as a finished file.  The rows are packed anew: damaged ones end where
 * their sense does. */
hotfn_status hfn_record_write(hotfn_record *record, const char *to, hotfn_error *err);

/* The record says from now on that it, or one that it was made of, was repaired, and what that lost.  False: no memory. */
bool hfn_record_note_repair(hotfn_record *record, const char *lost);

/* The text at offset of the strings, "" outside. */
const char *hfn_record_text(const hotfn_record *record, uint32_t offset);
const uint8_t *hfn_record_element(const hotfn_record *record, uint32_t type, uint64_t index);
/* Sum up the rows that are shown into totals. */
void hfn_record_sum(hotfn_record *record);

#endif
