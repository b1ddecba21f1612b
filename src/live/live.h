/* SPDX-License-Identifier: MIT */
/* The live record: shared memory with the modules, functions and counts of a running target.
 *
 * Life cycle.  The state is the word HFN_AT_STATE of the header.
 *
 *   hfn_live_create         The state is LIVE.  The creator owns the file: only it appends modules,
 *       |                   names and reasons, takes snapshots, and writes the finished record.
 *       |                   Its fd is >= 0.
 *   hfn_live_join           The target maps the same file by path.  It changes the flags of modules
 *       |                   and the states of functions that were appended (hfn_live_set_module,
 *       |                   hfn_live_set_function).  Its fd is -1.
 *   hfn_live_activate_rows  Counters use the rows.  From now on a thread may write to a row at any
 *       |                   time, so used rows stay mapped for good.
 *   hfn_live_finish         The creator writes a finished record with the state FINISHED, or KILLED
 *       |                   if the target was killed.  The counts are complete in both cases,
 *       |                   because the memory outlives the target.
 *   hfn_live_close          Unmap.  A durable file keeps the state LIVE; readers report the state
 *                           BROKEN if its creator ended before it finished the record.
 *
 * Two processes share the words that hfn_shared_put32 and hfn_shared_put64 store.  The stores
 * release, the loads of hfn_shared_get32 and hfn_shared_get64 acquire:
 * - publish_counts (append.c) stores the module count last; hfn_live_get_module_count loads it
 *   first.  A reader that sees a module sees its functions, names and slots.
 * - counters/thread_row.c orders the accesses to a row's owner word and to the number of cells.
 * - hfn_live_add_change stores the number of changes last; the reader of a record loads it first.
 *
 * The creator keeps its own counts in struct hfn_live and trusts only these.  The target may have
 * overwritten anything in the mapping, so every read is checked against the bounds. */
#ifndef HFN_LIVE_LIVE_H
#define HFN_LIVE_LIVE_H

#include "base/function_source.h"
#include "base/memory.h"
#include "live/clock.h"
#include "live/layout.h"
#include "live/time_row.h"
#include "os/files.h"

typedef struct hfn_live hfn_live;

/* The name of its shared memory. */
#define HFN_RECORD_MEMORY_NAME "hotfn-record"

/* A field left 0 means the default in brackets. */
typedef struct hfn_live_options {
    const char *durable_path; /* create the record in this file [shared memory]             */
    const char *command;
    const char *directory;
    uint32_t slot_capacity;      /* functions that can be counted [65536]                   */
    uint32_t thread_capacity;    /* rows [one for each 64 KiB of memory, 1024 to 32768, within
                                    256 GiB of addresses; durable: within 64 MiB of disk]     */
    uint32_t function_capacity;  /* functions that can be listed [slot_capacity * 2]        */
    uint32_t module_capacity;    /* [1024] */
    uint64_t string_bytes;       /* room for names [256 MiB, sparse]                        */
    uint32_t timing;             /* HOTFN_TIMING_* [0: calls are not timed]                 */
    uint32_t sample_mean;        /* HOTFN_TIMING_SAMPLED */
    uint64_t slow_ns;            /* HOTFN_TIMING_SLOW    */
    uint32_t node_capacity;      /* nodes of call trees [16th of the memory; durable: 2^16] */
    uint32_t histogram_capacity; /* one per function and thread [64th; durable: 2^11]       */
    uint32_t slow_capacity;      /* slow calls kept [4096]                                  */
    uint32_t event_capacity;     /* events kept per thread, a power of two [2^16]           */
    uint32_t budget_ppm;         /* limit for the cost of hooks [0: no budget]              */
    bool with_ticks;             /* timing: there is a tick clock                           */
} hfn_live_options;

/* ---- Calls for both ends. */

/* Create a live record.  HOTFN_OK, HOTFN_E_IO (the disk is full, the folder is not writable, or
 * another run writes the durable file), HOTFN_E_NO_MEMORY, HOTFN_E_LIMIT (a capacity),
 * HOTFN_E_UNSUPPORTED (timing on this CPU), HOTFN_E_DENIED (the memory cannot be sealed). */
hotfn_status hfn_live_create(hfn_live **out, const hfn_live_options *options, const hotfn_env *env,
                             hotfn_error *err);
/* Join a live record of another process; path may be /proc/PID/fd/N.  The file is mapped and closed
 * again.  Calls no libc function that allocates.  HOTFN_OK, HOTFN_E_IO, HOTFN_E_FORMAT,
 * HOTFN_E_MISMATCH (another version, or not live), HOTFN_E_NO_MEMORY. */
hotfn_status hfn_live_join(hfn_live **out, const char *path, const hotfn_env *env,
                           hotfn_error *err);
/* NULL is fine. */
void hfn_live_close(hfn_live *live);
/* The descriptor of the memory or the file, owned by live; -1 if joined. */
int32_t hfn_live_get_fd(const hfn_live *live);

/* Append a module with module->function_count functions.  Functions in state HOOKED or WAITING get
 * the next slots, in order; functions without a free slot are refused ("no-slots").  If functions
 * or names do not fit, the module is listed without functions, FAILED, with a note.  *index is its
 * number.  HOTFN_OK, HOTFN_E_LIMIT (no room for the module itself), HOTFN_E_STATE (not the
 * creator), HOTFN_E_IO (durable: the disk is full). */
hotfn_status hfn_live_add_module_from(hfn_live *live, const hotfn_record_module *module,
                                      const hfn_function_source *source, uint32_t *index,
                                      hotfn_error *err);
/* The same, with the functions in an array, which is borrowed. */
hotfn_status hfn_live_add_module(hfn_live *live, const hotfn_record_module *module,
                                 const hotfn_record_function *functions, uint32_t *index,
                                 hotfn_error *err);

/* methods.c: the functions of a module with HOTFN_MODULE_METHODS have no names when it is added.  A
 * function gets the name of a method when the method is called for the first time.  Functions that
 * got none are dropped when the record is read (records/methods.c).  The functions are a
 * hash table of names, whose size is a power of two. */

/* Which methods are counted: those that match an include glob, or any if there is none, and match
 * no exclude glob.  A method matches by its whole name, or by the part before " (". */
typedef struct hfn_method_rules {
    const char *const *includes, *const *excludes; /* borrowed */
    uint32_t include_count, exclude_count;
    const char *watch; /* borrowed; the rule for watched methods (runtimes/methods.h); NULL: none */
} hfn_method_rules;

/* Make room for the names of methods, and store the rules there.  Only the creator, once per
 * module.  HOTFN_OK, HOTFN_E_NOT_FOUND, HOTFN_E_LIMIT, HOTFN_E_NO_MEMORY, HOTFN_E_IO. */
hotfn_status hfn_live_reserve_names(hfn_live *live, uint32_t module, uint64_t byte_count,
                                    const hfn_method_rules *rules, hotfn_error *err);
/* The rules of the module, as texts that begin with '+', '-' or '!', and an empty one; a view. */
const char *hfn_live_get_method_rules(const hfn_live *live, uint32_t module);
/* Methods for which there was no room. */
uint32_t hfn_live_count_lost_methods(const hfn_live *live, uint32_t module);
/* Which functions of the module may be given to a method: message_pool.S has two kinds. */
typedef enum hfn_method_places {
    HFN_METHODS_ALL,
    HFN_METHODS_EVEN,
    HFN_METHODS_ODD,
    HFN_METHODS_COUNTED = 4, /* flag: an order says that the method is only counted */
} hfn_method_places;

/* The function of the module that has this name; it is given to a function without one if there is
 * none.  UINT32_MAX if there is no room, which the module counts.  Either end, in any process and
 * thread at the same time; async-signal-safe. */
uint32_t hfn_live_get_method(hfn_live *live, uint32_t module, const char *name,
                             hfn_method_places places);
/* ---- Methods that are switched while the program runs.  Functions that have a name are switched
 * from outside; the orders decide about methods that get a name later. */

/* Modes of a method; those of HOTFN_SWITCH_*. */
enum { HFN_METHOD_OFF = 1, HFN_METHOD_COUNT, HFN_METHOD_TIME };

/* The word of the orders that hold: */
#define HFN_METHOD_ORDERS_OFF 0x80000000u /* methods are off unless an order matches them   */
#define HFN_METHOD_ORDERS_COUNT                                                                    \
    0x40000000u                        /* the same: they are counted; else: timed if the run
                                             * is timed */
#define HFN_METHOD_ORDERS_MASK 0x7fffu /* 15 bits: begin of their texts, 15 bits above it: end */
#define HFN_METHOD_ORDERS_SHIFT 15u

/* Switch the methods that match the rules to a mode (HFN_METHOD_*); a later order overrides an
 * earlier one.  Only the creator.  HOTFN_OK, HOTFN_E_NOT_FOUND, HOTFN_E_LIMIT (no room for the
 * globs). */
hotfn_status hfn_live_order_methods(hfn_live *live, uint32_t module, uint32_t mode,
                                    const hfn_method_rules *rules, hotfn_error *err);
/* From now on half of the functions without a name are for methods that are only counted.  Only the
 * creator, which then changes their hooks (hfn_live_is_counted_place). */
void hfn_live_split_methods(hfn_live *live, uint32_t module);
static inline bool hfn_live_is_counted_place(uint32_t function_index)
{
    return (function_index & 2) != 0; /* of even and of odd functions */
}
/* The address of the word, which another process changes; NULL: there is no such module. */
const uint32_t *hfn_live_get_method_orders(const hfn_live *live, uint32_t module);
/* The texts of all orders: the digit of its mode, then its globs with '+' or '-'; a view. */
const char *hfn_live_get_order_texts(const hfn_live *live, uint32_t module);
/* Store that the tracer has replaced this function.  Only the target, at the end of a commit. */
void hfn_live_add_replaced(hfn_live *live, uint32_t pool, uint32_t module, uint32_t function);
/* Returns the number of them, at most HFN_MODULE_MAX_OWN_HOOKS. */
uint32_t hfn_live_get_replaced(const hfn_live *live, uint32_t pool, uint32_t *modules,
                               uint32_t *functions);
/* Replace the flags of a module; also its load_base if not 0, and its note if not NULL (cut at 255
 * bytes).  Either end.  HOTFN_OK, HOTFN_E_NOT_FOUND. */
hotfn_status hfn_live_set_module(hfn_live *live, uint32_t module, uint32_t flags,
                                 uint64_t load_base, const char *note);
/* Set the state of a function, the number of its reason, and the offset of the reason from the
 * entry.  Either end.  HOTFN_OK, HOTFN_E_NOT_FOUND, HOTFN_E_LIMIT (reason above 255). */
hotfn_status hfn_live_set_function(hfn_live *live, uint32_t module, uint32_t function_index,
                                   uint32_t state, uint32_t reason, uint32_t reason_offset);
/* Remove flags (HOTFN_VERDICT_*) that do not hold in this target. */
void hfn_live_remove_function_flags(hfn_live *live, uint32_t module, uint32_t function_index,
                                    uint32_t flags);
/* Is the function hooked now? */
bool hfn_live_is_hooked(const hfn_live *live, uint32_t module, uint32_t function_index);
/* Store that calls of a function are counted only; nothing happens in a record without times. */
void hfn_live_set_count_only(hfn_live *live, uint32_t module, uint32_t function_index,
                             uint32_t reason);
/* Store name and text of a reason's number, so that the record explains itself.  HOTFN_OK,
 * HOTFN_E_STATE (not the creator), HOTFN_E_LIMIT (reason 0 or above 255, or no room for names),
 * HOTFN_E_IO. */
hotfn_status hfn_live_set_reason(hfn_live *live, uint32_t reason, const char *name,
                                 const char *text);
/* Set the pid of the target. */
void hfn_live_set_pid(hfn_live *live, uint32_t pid);

/* Add a text about the run to the finished record.  Only the creator; false: no memory. */
bool hfn_live_add_run_text(hfn_live *live, const char *key, const char *value);

/* The patches of a process: begin when it has hooks; checked when they were compared with memory;
 * verified when that was done at the end of the process, revoked if it goes on (a failed exec).
 * Either end; in any thread, also in a signal handler. */
void hfn_live_begin_process(hfn_live *live);
void hfn_live_set_checked(hfn_live *live, uint64_t time_ns);
void hfn_live_set_verified(hfn_live *live);
void hfn_live_revoke_verified(hfn_live *live);

/* slots[i] is the slot of the module's function i, a view; NULL if there is no such module. */
const uint32_t *hfn_live_get_slots(const hfn_live *live, uint32_t module);
/* A view; NULL if there is no such function. */
const char *hfn_live_get_function_name(const hfn_live *live, uint32_t module,
                                       uint32_t function_index);
uint32_t hfn_live_get_module_count(const hfn_live *live);
/* The texts are views.  HOTFN_OK, HOTFN_E_NOT_FOUND, HOTFN_E_OPTION (out->size). */
hotfn_status hfn_live_get_module(const hfn_live *live, uint32_t module, hotfn_record_module *out);
/* Find the function that counts in a slot, without its calls. */
bool hfn_live_find_slot(const hfn_live *live, uint32_t slot, hotfn_record_function *out);

/* The rows, for reading. */
hfn_row_memory hfn_live_get_rows(const hfn_live *live);
/* The rows, for hfn_counters_create_in. */
hfn_row_memory hfn_live_activate_rows(hfn_live *live);
/* Memory of times for the counters; false if the record is not timed. */
bool hfn_live_time_memory(const hfn_live *live, hfn_time_memory *out);
hfn_time_header *hfn_live_time_header(const hfn_live *live); /* NULL: not timed */
uint64_t *hfn_live_tick(const hfn_live *live); /* the word of the tick clock; NULL: there is none */
/* True if a tick clock serves a run that records these times (HOTFN_TIMING_*). */
bool hfn_live_can_tick(uint32_t timing);
/* The tick clock has no thread: the counter is read in its place.  Before the target begins. */
void hfn_live_use_counter(const hfn_live *live);
/* Map the memory that the first timed calls touch, so that these calls take no page faults. */
void hfn_live_map_first_histograms(hfn_live *live);
/* Measure the clock's frequency again, over the whole run. */
void hfn_live_measure_clock(hfn_live *live);
bool hfn_live_is_timed(const hfn_live *live, uint32_t function);

/* ---- Budget.  Only the launcher writes it. */

hfn_budget_header *hfn_live_get_budget(const hfn_live *live);                /* NULL: no budget */
uint8_t *hfn_live_get_budget_state(const hfn_live *live, uint32_t function); /* its u32       */
/* By slot; NULL if nothing is timed or there is no budget. */
uint32_t *hfn_live_get_means(const hfn_live *live);
/* The number of a row's timed calls that ended, in a sample; false if the row cannot be read.
 * Reads the file, because reading the mapping would allocate pages for its holes. */
bool hfn_live_read_timed_calls(const hfn_live *live, uint32_t row, uint64_t *calls);
/* Append a change and update the state of its function. */
void hfn_live_add_change(hfn_live *live, const hfn_budget_change *change);
/* Update the state of a function that was switched.  Any record has these states. */
void hfn_live_set_level(hfn_live *live, uint32_t function, uint32_t level);
/* Has any function a state? */
bool hfn_live_has_levels(const hfn_live *live);
/* Has the launcher ever unhooked the function?  Its count is a lower bound since. */
bool hfn_live_was_unhooked(const hfn_live *live, uint32_t module, uint32_t function_index);

/* ---- Inside: the mapping and its sections. */

#define HFN_KNOWN_TEXTS 16u

/* A text that was stored already.  It is looked up by address first, then by its characters. */
typedef struct hfn_known_text {
    const char *text;
    uint32_t value; /* offset of the string, or number of the reason */
} hfn_known_text;

/* The processor time of a row's owners (threads.c). */
typedef struct hfn_owner_time {
    uint32_t process, thread_count; /* which owner is the latest */
    uint64_t latest_ns, earlier_ns; /* of the latest owner, of those before it */
} hfn_owner_time;

struct hfn_live {
    hotfn_env env;
    hfn_os_file file; /* HFN_OS_NO_FILE: joined                                             */
    bool is_durable;
    bool rows_were_active; /* counters used the rows: threads may still write to them            */
    uint64_t mapped_histogram_bytes; /* so far, by hfn_live_map_first_histograms */
    bool keeps_times; /* a thread may still write times: the pools stay mapped              */
    char *path;       /* of the durable file, or NULL                                       */
    uint8_t *base;    /* header to cells    */
    uint8_t *rows;
    uint8_t *tail; /* functions and names */
    uint64_t base_bytes, tail_bytes;
    uint64_t rows_bytes; /* mapped; less than the section where address space is scarce */
    hfn_layout layout;
    /* of the creator */
    hfn_clock clock; /* kind 0: not timed */
    uint32_t module_count, function_count, slot_count;
    uint64_t string_bytes;
    uint64_t function_bytes_allocated, string_bytes_allocated; /* durable: on disk */
    hfn_known_text strategies[HFN_KNOWN_TEXTS];
    hfn_known_text reasons[HFN_KNOWN_TEXTS];
    uint32_t next_strategy, next_reason;
    char *run_texts; /* key NUL value NUL ..., behind those of the meta section */
    size_t run_text_bytes, run_text_capacity;
    hfn_owner_time *owner_times; /* [threads]; NULL: not read yet */
    bool reads_threads;          /* a thread is in hfn_live_read_threads */
};

/* Words that two processes share; the header of this file names the pairs. */
uint32_t hfn_shared_get32(const uint8_t *at);
uint64_t hfn_shared_get64(const uint8_t *at);
void hfn_shared_put32(uint8_t *at, uint32_t value);
void hfn_shared_put64(uint8_t *at, uint64_t value);

uint8_t *hfn_live_section(const hfn_live *live, uint32_t type);
uint64_t hfn_live_section_bytes(const hfn_live *live, uint32_t type);
hfn_cell_header *hfn_live_cell_header(const hfn_live *live);
hfn_thread_cell *hfn_live_cells(const hfn_live *live);
uint32_t hfn_live_slot_capacity(const hfn_live *live);
uint32_t hfn_live_rows_used(const hfn_live *live);  /* bounded by the capacity */
uint32_t hfn_live_slots_used(const hfn_live *live); /* bounded by the capacity */
/* The entry of a module and the range of its functions, within capacity; false if there is none. */
bool hfn_live_find_module(const hfn_live *live, uint32_t module, uint8_t **entry, uint32_t *first,
                          uint32_t *count);
/* The string at an offset; "" if it does not end inside the section. */
const char *hfn_live_text(const hfn_live *live, uint64_t offset);

/* threads.c: read names and processor times of all threads that own rows, for the creator of the
 * record.  While a thread does this, calls by others do nothing. */
void hfn_live_read_threads(hfn_live *live);
void hfn_live_forget_owner_times(hfn_live *live);

/* times.c: what timing adds to a live record. */
typedef struct hfn_time_sizes {
    bool is_timed, has_ticks;
    uint64_t nodes, allocs, histograms, slow_calls, events; /* capacities; events per thread */
} hfn_time_sizes;
hfn_time_sizes hfn_time_sizes_wanted(const hfn_live_options *options);
hfn_time_sizes hfn_time_sizes_found(const hfn_layout *layout);
/* Choose and start the clock, and describe in the header what is kept, once the record is mapped.
 */
void hfn_live_write_time_header(hfn_live *live, const hfn_live_options *options);
/* Allocate the memory that hfn_live_map_first_histograms maps. */
void hfn_live_allocate_first_histograms(const hfn_live *live);
/* In the target: the tick clock is only read. */
void hfn_live_protect_tick(const hfn_live *live);

/* budget.c */
void hfn_live_write_budget_header(hfn_live *live, const hfn_live_options *options);

/* place.c: the layout of the file, and its memory. */

/* Upper bound of the address space that a record takes if address space is limited (ulimit -v):
 * the program needs some too. */
uint64_t hfn_live_get_address_share(void);
hotfn_status hfn_live_choose_layout(hfn_layout *out, const hfn_live_options *options,
                                    uint64_t meta_bytes, hotfn_error *err);
/* Whether this version would choose the same layout for the capacities of the record. */
bool hfn_live_is_own_layout(const hfn_layout *found);
hotfn_status hfn_live_create_memory(hfn_live *live, hotfn_error *err);
hotfn_status hfn_live_create_file(hfn_live *live, hotfn_error *err);
hotfn_status hfn_live_map(hfn_live *live, hfn_os_file file, const char *path, hotfn_error *err);
void hfn_live_unmap(hfn_live *live);
/* Durable: allocate bytes [0, byte_count) of a section on disk.  *allocated is the number of bytes
 * that are allocated already; it is updated. */
hotfn_status hfn_live_allocate(hfn_live *live, uint32_t type, uint64_t byte_count,
                               uint64_t *allocated, hotfn_error *err);

#endif
