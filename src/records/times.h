/* SPDX-License-Identifier: MIT */
/* The times of a record in one form, for all sources: a live record's memory (times_live.c), a
 * finished record's sections (times_pack.c), or a merge.  They have the ticks and slots that the
 * engine wrote; profile/ converts them to nanoseconds and functions.
 *
 * The packed sections of a finished record:
 *
 *   PACKED_TIMES  a u64 for each thread: the end of its bytes, from the first packed byte;
 *                 then the bytes, which are ULEB128 numbers:
 *                 - busy_ticks, events, first_tick, last_tick of the thread
 *                 - for each cell that is not empty: number of empty cells before it, timed_calls,
 *                   total_ticks, self_ticks, max_ticks, histogram, open (calls that had not
 *                   returned), callee_timed, within_timed, waited_ticks, total_waited_ticks
 *   HISTOGRAMS    as PACKED_ROWS (pack.h): a row for each histogram, a slot for each bucket
 *   NODES         parents before children; parent UINT32_MAX: called from outside
 *   EVENTS        a u64 for each thread: the end of its events, as a number of events;
 *                 then the events
 */
#ifndef HFN_RECORDS_TIMES_H
#define HFN_RECORDS_TIMES_H

#include "base/memory.h"
#include "live/layout.h"
#include "live/time_row.h"
#include "records/pack.h"

/* Ticks of the header's clock in nanoseconds; UINT64_MAX if they are more. */
uint64_t hfn_ticks_to_ns(const hfn_time_header *header, uint64_t ticks);

/* A cell that is not empty. */
typedef struct hfn_time_entry {
    hfn_time_cell cell;
    uint32_t slot, thread;
    uint64_t total_waited_ticks; /* part of cell.total_ticks */
} hfn_time_entry;

/* times_open.c: a call that had not returned when a live record was read, or what ran then. */
enum {
    HFN_UNRETURNED_RUNS,    /* the current place                                           */
    HFN_UNRETURNED_SAMPLED, /* a call of a sample                                          */
    HFN_UNRETURNED_COUNTED, /* a call whose times are in the tree already                  */
};
typedef struct hfn_unreturned {
    uint64_t ticks;  /* since it began; RUNS: since the thread's latest event */
    uint64_t waited; /* RUNS: ticks of them in which it waited                */
    uint64_t start;  /* when that was; RUNS: 0                                */
    uint64_t weight; /* SAMPLED: the number of calls that it represents       */
    uint32_t thread, slot;
    uint32_t node; /* index + 1, 0: none */
    uint32_t kind; /* HFN_UNRETURNED_*   */
} hfn_unreturned;

typedef struct hfn_times {
    hotfn_env env;
    bool present; /* the run was timed */
    hfn_time_header header;
    hfn_time_thread *threads;
    uint32_t thread_count;
    hfn_time_entry *entries; /* by thread, then by slot */
    size_t entry_count, entry_capacity;
    hfn_unreturned *open; /* not yet in cells and nodes */
    size_t open_count, open_capacity;
    hfn_packed histograms;
    hfn_time_node *nodes;     /* validated: each directly before its callees, and no roots */
    hotfn_alloc_cell *allocs; /* in parallel, or NULL */
    uint32_t node_count, node_capacity;
    hfn_slow_call *slow; /* validated: by sequence */
    uint32_t slow_count, slow_capacity;
    hfn_time_event *events; /* by thread, oldest first */
    uint64_t *event_ends;   /* [thread_count] */
    uint64_t event_count, event_capacity;
    uint32_t nodes_dropped; /* by hfn_times_validate: they were damaged */
} hfn_times;

void hfn_times_init(hfn_times *times, const hotfn_env *env);
void hfn_times_finish(hfn_times *times);
/* Allocate a known number of elements, or append; false: no memory. */
bool hfn_times_make_threads(hfn_times *times, uint32_t thread_count);
bool hfn_times_make_nodes(hfn_times *times, uint32_t node_count, bool with_allocs);
bool hfn_times_make_slow_calls(hfn_times *times, uint32_t count);
bool hfn_times_add_entry(hfn_times *times, const hfn_time_entry *entry);
bool hfn_times_add_events(hfn_times *times, const hfn_time_event *events, uint64_t count);

/* Copy all times to an object that is initialised and empty; false: no memory. */
bool hfn_times_copy(hfn_times *out, const hfn_times *from);

/* Set ends[row] to the tick of the end of the row's process: `now` for the latest process with
 * this pid, otherwise the latest event of the process.  False: no memory. */
bool hfn_times_find_ends(const hfn_times *times, const hfn_thread_cell *owners, uint32_t rows,
                         uint32_t pid, uint64_t now, uint64_t *ends);
/* Add to `open` the place that the thread executed at `end`, or `count` calls of its open-call
 * stack from index `depth`.  owner: of its row.  The thread's busy_ticks must still hold its
 * hook_ticks.  False: no
 * memory. */
bool hfn_times_add_running(hfn_times *times, uint32_t thread, const hfn_thread_cell *owner,
                           uint64_t end);
bool hfn_times_add_open(hfn_times *times, uint32_t thread, const hfn_open_call *calls,
                        uint32_t depth, uint32_t count, uint64_t end);
/* tree_times.c: make the cells and the totals of the nodes from a live record's tree.  False: no
 * memory. */
bool hfn_times_sum_tree(hfn_times *times, uint32_t slot_count);
/* Add all open calls to cells and nodes, as ended. */
void hfn_times_end_open(hfn_times *times);
/* Subtract the times of calls that were open in an earlier state, but not their number. */
void hfn_times_subtract_open(hfn_times *times, const hfn_times *from);

/* Copy a live record's times from its file; if it has none, `present` stays false.  Open calls are
 * charged until `now`, a tick of its clock; 0: until the latest event of their process.
 * HOTFN_E_FORMAT: its header is damaged; HOTFN_E_IO, HOTFN_E_NO_MEMORY. */
hotfn_status hfn_times_read_live(hfn_times *out, hfn_os_file file, const hfn_layout *layout,
                                 uint64_t file_bytes, uint32_t thread_count, uint32_t slot_count,
                                 uint64_t now, const char *path, hotfn_error *err);

/* Order the nodes, and remove elements whose slot, thread or parent does not exist.  False: no
 * memory. */
bool hfn_times_validate(hfn_times *times, uint32_t slot_count, uint32_t thread_count);

/* times -= from, an earlier state of the same live record; before either is validated.  Maxima stay
 * those of the whole run.  False: no memory. */
bool hfn_times_subtract(hfn_times *times, const hfn_times *from);

/* The sections of a finished record, empty at first; finish them also after a failure. */
typedef struct hfn_times_sections {
    hotfn_env env;
    uint8_t *bytes[HFN_SECTION_TYPES];
    uint64_t byte_counts[HFN_SECTION_TYPES];
} hfn_times_sections;
bool hfn_times_pack(hfn_times_sections *out, const hfn_times *times);
void hfn_times_sections_finish(hfn_times_sections *sections);
/* The reverse.  HOTFN_E_FORMAT, and *damaged is the type of the damaged section. */
hotfn_status hfn_times_unpack(hfn_times *out, const hfn_span sections[HFN_SECTION_TYPES],
                              uint32_t thread_count, uint32_t *damaged);

#endif
