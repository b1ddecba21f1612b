/* SPDX-License-Identifier: MIT */
/* The live record from inside: one shared mapping.  Who made it trusts its own counts; what stands in
 * the mapping may have been changed by a target gone wild, and is only read with bounds. */
#ifndef HFN_RECORDS_LIVE_H
#define HFN_RECORDS_LIVE_H

#include "base/function_source.h"
#include "base/memory.h"
#include "live/clock.h"
#include "live/layout.h"
#include "live/time_row.h"
#include "os/files.h"

#define HFN_KNOWN_TEXTS 16u

/* A text that came often: by address first. */
typedef struct hfn_known_text {
    const char *text;
    uint32_t value;
} hfn_known_text;

struct hotfn_live {
    hotfn_env env;
    hfn_os_file file; /* HFN_OS_NO_FILE: joined                                */
    bool is_durable;
    bool was_counted_in; /* rows were given to counters: threads may know them  */
    bool keeps_times;    /* and one may still be writing times: process.c               */
    char *path;          /* of the durable file, or NULL                        */
    uint8_t *base;       /* header to cells        */
    uint8_t *rows;
    uint8_t *tail; /* functions and names    */
    uint64_t base_bytes, tail_bytes;
    uint64_t rows_bytes; /* fewer rows than there are if addresses are scarce */
    hfn_layout layout;
    /* the maker's */
    hfn_clock clock; /* kind 0: not timed */
    uint32_t module_count, function_count, slot_count;
    uint64_t string_bytes;
    uint64_t function_bytes_there, string_bytes_there; /* durable: allocated on disk */
    hfn_known_text strategies[HFN_KNOWN_TEXTS];
    hfn_known_text reasons[HFN_KNOWN_TEXTS];
    uint32_t next_strategy, next_reason;
};

uint8_t *hfn_live_section(const hotfn_live *live, uint32_t type);
uint64_t hfn_live_section_bytes(const hotfn_live *live, uint32_t type);
hfn_cell_header *hfn_live_cell_header(const hotfn_live *live);
hfn_thread_cell *hfn_live_cells(const hotfn_live *live);
uint32_t hfn_live_slot_capacity(const hotfn_live *live);
uint32_t hfn_live_rows_used(const hotfn_live *live); /* as the target says, within capacity */
uint32_t hfn_live_slots_used(const hotfn_live *live);
/* The rows, for reading. */
hfn_row_memory hfn_live_get_rows(const hotfn_live *live);
/* The rows, for hfn_counters_create_in.  They stay mapped until the live record is closed; used rows
 * are then emptied and stay mapped for good, because a thread may still run a stub. */
hfn_row_memory hfn_live_activate_rows(hotfn_live *live);

/* Words that two processes share. */
uint32_t hfn_shared_get32(const uint8_t *at);
uint64_t hfn_shared_get64(const uint8_t *at);
void hfn_shared_put32(uint8_t *at, uint32_t value);
void hfn_shared_put64(uint8_t *at, uint64_t value);

/* The module's entry, and its functions' range within capacity; false past the end. */
bool hfn_live_module(const hotfn_live *live, uint32_t module, uint8_t **entry, uint32_t *first,
                     uint32_t *count);
/* The function that counts in this slot, without its calls; false: none. */
bool hfn_live_find_slot(const hotfn_live *live, uint32_t slot, hotfn_record_function *out);
/* The text at offset of the strings section, "" if it does not end inside. */
const char *hfn_live_text(const hotfn_live *live, uint64_t offset);

/* append.c */
/* hotfn_live_add_module, of module->function_count functions of a source. */
hotfn_status hfn_live_add_module(hotfn_live *live, const hotfn_record_module *module,
                                 const hfn_function_source *source, uint32_t *index,
                                 hotfn_error *err);

/* live_time.c: what timing adds to a live record. */
typedef struct hfn_time_sizes {
    bool is_timed;
    uint64_t nodes, allocs, histograms, slow_calls, events; /* capacities; events of a thread */
} hfn_time_sizes;
/* Where addresses are limited (ulimit -v) they are the program's to use: we ask for no more than this. */
uint64_t hfn_live_address_share(void);
hfn_time_sizes hfn_time_sizes_wanted(const hotfn_live_options *options);
hfn_time_sizes hfn_time_sizes_found(const hfn_layout *layout);
/* Say in the header what is kept and where, once the record is mapped; the clock starts. */
void hfn_live_begin_times(hotfn_live *live, const hotfn_live_options *options);
/* Memory that first calls will need: made, once functions are known; mapped, in the target. */
void hfn_live_make_ready(const hotfn_live *live);
void hfn_live_map_ready(const hotfn_live *live);
/* Its memory for the counters; false: the record is not timed. */
bool hfn_live_time_memory(const hotfn_live *live, hfn_time_memory *out);
hfn_time_header *hfn_live_time_header(const hotfn_live *live); /* NULL: not timed */
/* Measure the clock against the system's once more, over the whole run. */
void hfn_live_settle_clock(hotfn_live *live);

/* budget.c: the parent's book.  NULL: there is no budget. */
hfn_budget_header *hfn_live_budget(const hotfn_live *live);
void hfn_live_begin_budget(hotfn_live *live, const hotfn_live_options *options);
uint8_t *hfn_live_budget_state(const hotfn_live *live, uint32_t function); /* its word */
/* By slot; NULL: nothing is timed, or there is no budget. */
uint32_t *hfn_live_means(const hotfn_live *live);
/* How many calls the thread of a row passes over before it times the next one, and what that stands for. */
uint32_t *hfn_live_skip(const hotfn_live *live, uint32_t row, uint32_t slot);
/* What the row's timed calls took, of how many ends of them; false: it cannot be read.  By pread, as a mapping
 * would fill the holes. */
bool hfn_live_timed_ends(const hotfn_live *live, uint32_t row, uint64_t *ticks, uint64_t *ends);
hfn_time_gap *hfn_live_gap(const hotfn_live *live, uint32_t row, uint32_t slot);
bool hfn_live_is_timed(const hotfn_live *live, uint32_t function);
/* Append it, and mark the function. */
void hfn_live_note_change(hotfn_live *live, const hfn_budget_change *change);

/* live_place.c: where everything goes, and the memory for it. */
hotfn_status hfn_live_place(hfn_layout *out, const hotfn_live_options *options, uint64_t meta_bytes,
                            hotfn_error *err);
/* Does a record of another process stand as this version would have placed it? */
bool hfn_live_placed_alike(const hfn_layout *found);
hotfn_status hfn_live_make_memory(hotfn_live *live, hotfn_error *err);
hotfn_status hfn_live_make_durable(hotfn_live *live, hotfn_error *err);
hotfn_status hfn_live_map(hotfn_live *live, hfn_os_file file, const char *path, hotfn_error *err);
void hfn_live_unmap(hotfn_live *live);
/* Durable: make sure that bytes [0, byte_count) of a section stand on disk. */
hotfn_status hfn_live_allocate(hotfn_live *live, uint32_t type, uint64_t byte_count,
                               uint64_t *there, hotfn_error *err);

#endif
