/* SPDX-License-Identifier: MIT */
/* The layout of .hfr records; docs/man/hotfn.hfr.5 describes the same format for users.  Within a
 * major version the constants below keep their meaning.  All words are little-endian.
 *
 *   header    HFN_HEADER_BYTES; the first half is constant, the second half changes while live
 *   table     HFN_AT_SECTION_COUNT entries of HFN_ENTRY_BYTES
 *   sections  anywhere after the table, each inside the file
 *
 * A live record has all sections at full capacity, and plain rows.  A finished record has only the
 * used parts, and packed rows. */
#ifndef HFN_LIVE_LAYOUT_H
#define HFN_LIVE_LAYOUT_H

#include "base/byte_order.h"
#include "base/compiler.h"
#include "base/span.h"
#include "live/budget_memory.h"
#include "live/rows.h"
#include "live/time_memory.h"

#include <hotfn/lowlevel/budget.h>
#include <hotfn/lowlevel/timing.h>
#include <hotfn/record.h>
#include <string.h>

#define HFN_RECORD_MAGIC "\x89HFN\r\n\x1a\n"
#define HFN_RECORD_ENDIAN 0x01020304u
#define HFN_RECORD_MAJOR 1u
#define HFN_RECORD_MINOR 0u

enum { /* header, first half: constant */
       HFN_AT_MAGIC = 0,
       HFN_AT_ENDIAN = 8,
       HFN_AT_MAJOR = 12,
       HFN_AT_MINOR = 16,
       HFN_AT_HEADER_BYTES = 20, /* offset of the table                     */
       HFN_AT_ENTRY_BYTES = 24,  /* distance of table entries               */
       HFN_AT_SECTION_COUNT = 28,
       HFN_AT_UUID = 32,        /* 16 bytes                                */
       HFN_AT_START_NS = 48,    /* u64                                     */
       HFN_AT_FILE_BYTES = 56,  /* u64                                     */
       HFN_AT_ROW_BYTES = 64,   /* live: distance of rows                  */
       HFN_AT_KIND = 68,        /* HFN_KIND_*                              */
       HFN_AT_STATIC_CRC = 124, /* over [0, 124) and the table             */
       /* second half: changes while live */
       HFN_AT_STATE = 128, /* HOTFN_RECORD_*                          */
       HFN_AT_EXIT_CODE = 132,
       HFN_AT_PID = 136,
       HFN_AT_MODULES = 140, /* numbers of modules, functions, slots in use */
       HFN_AT_FUNCTIONS = 144,
       HFN_AT_SLOTS = 148,
       HFN_AT_STRINGS = 152, /* u64 bytes                               */
       HFN_AT_END_NS = 160,  /* u64                                     */
       HFN_AT_WINDOW_START_NS = 168,
       HFN_AT_WINDOW_END_NS = 176,
       HFN_AT_CHECKED_NS = 184,  /* u64: when patches were last compared with memory */
       HFN_AT_PROCESSES = 192,   /* processes that had hooks                */
       HFN_AT_VERIFIED = 196,    /* those whose patches were compared at their end */
       HFN_AT_MUTABLE_CRC = 252, /* over [128, 252); finished records only  */
       HFN_HEADER_BYTES = 256,
};

#define HFN_KIND_LIVE 1u
#define HFN_KIND_FINISHED 2u

enum { /* a table entry */
       HFN_ENTRY_TYPE = 0,
       HFN_ENTRY_FLAGS = 4,
       HFN_ENTRY_OFFSET = 8,      /* u64 */
       HFN_ENTRY_BYTE_COUNT = 16, /* u64 */
       HFN_ENTRY_ELEMENT_BYTES = 24,
       HFN_ENTRY_CRC = 28,      /* CRC-32C of the section, if HFN_SECTION_HAS_CRC */
       HFN_ENTRY_ELEMENTS = 32, /* u64: capacity                                  */
       HFN_ENTRY_BYTES = 48,
};

#define HFN_SECTION_CRITICAL 1u /* a reader that does not know its type refuses the record */
#define HFN_SECTION_HAS_CRC 2u

enum {
    HFN_SECTION_META = 1, /* key NUL value NUL ...                              */
    HFN_SECTION_MODULES,
    HFN_SECTION_REASONS,
    HFN_SECTION_SLOTS, /* u32 per function, HOTFN_NO_SLOT: none              */
    HFN_SECTION_STATES,
    HFN_SECTION_FUNCTIONS,
    HFN_SECTION_STRINGS,     /* begins with an empty string, ends with two NULs    */
    HFN_SECTION_CELLS,       /* hfn_cell_header, then hfn_thread_cell ...      */
    HFN_SECTION_ROWS,        /* u64 per slot; live only                            */
    HFN_SECTION_PACKED_ROWS, /* pack.h; finished only                              */
    /* Timing (time_memory.h): all optional, never critical. */
    HFN_SECTION_TIME_HEADER,   /* hfn_time_header                                */
    HFN_SECTION_TIME_ROWS,     /* live only: row_bytes per thread: hfn_time_thread,
                                  then an hfn_time_cell per slot at cells_at     */
    HFN_SECTION_PACKED_TIMES,  /* times.h; finished only                           */
    HFN_SECTION_HISTOGRAMS,    /* live: HFN_HISTOGRAM_BYTES each; finished: pack.h */
    HFN_SECTION_NODES,         /* hfn_time_node                                  */
    HFN_SECTION_NODE_ALLOCS,   /* hotfn_alloc_cell per node                        */
    HFN_SECTION_SLOW_CALLS,    /* hfn_slow_call                                  */
    HFN_SECTION_EVENTS,        /* live: event_capacity hfn_time_event per thread;
                                  finished: times.h                                */
    HFN_SECTION_TIMING_STATES, /* u32 per function: HFN_TIMING_WORD                */
    HFN_SECTION_BUDGET,        /* hfn_budget_header, then hfn_budget_change ...  */
    HFN_SECTION_BUDGET_STATES, /* u32 per function: HOTFN_BUDGET_*                 */
    HFN_SECTION_BUDGET_MEANS,  /* live only, timed: u32 per slot, mean sampling interval */
    HFN_SECTION_TICKS,         /* live only: one page whose first word is the tick clock */
    HFN_SECTION_TYPES,
};

enum { /* a module */
       HFN_MODULE_FLAGS = 0,
       HFN_MODULE_MACHINE = 4,
       HFN_MODULE_ID_KIND = 8,
       HFN_MODULE_ID_BYTES = 12,
       HFN_MODULE_ID = 16, /* 32 bytes */
       HFN_MODULE_FIRST_FUNCTION = 48,
       HFN_MODULE_FUNCTIONS = 52,
       HFN_MODULE_FIRST_SLOT = 56,
       HFN_MODULE_SLOTS = 60,
       HFN_MODULE_LOAD_BASE = 64,    /* u64 */
       HFN_MODULE_DEVICE = 72,       /* u64 */
       HFN_MODULE_INODE = 80,        /* u64 */
       HFN_MODULE_PATH = 88,         /* string */
       HFN_MODULE_STAMP = 96,        /* u64 */
       HFN_MODULE_CODE_BYTES = 104,  /* u64 */
       HFN_MODULE_KNOWN_BYTES = 112, /* u64 */
       /* HOTFN_MODULE_METHODS, live only: offsets in the strings section (methods.c) */
       HFN_MODULE_NAMES_BEGIN = 120, /* of the room for names of methods */
       HFN_MODULE_NAMES_NEXT = 124,
       HFN_MODULE_NAMES_END = 128,
       HFN_MODULE_METHODS_LOST = 132, /* methods for which there was no room */
       HFN_MODULE_ORDERS_BEGIN = 136, /* of the room for orders */
       HFN_MODULE_ORDERS = 140,       /* HFN_METHOD_ORDERS_* */
       HFN_MODULE_OWN_HOOKS = 144,    /* count of the tracer's own hooks */
       HFN_MODULE_OWN_HOOKS_AT = 148,  /* module and function of each, u32 */
       HFN_MODULE_MAX_OWN_HOOKS = 8,
       HFN_MODULE_IS_SPLIT = HFN_MODULE_OWN_HOOKS_AT + 8 * HFN_MODULE_MAX_OWN_HOOKS,
       HFN_MODULE_LIVE_END = HFN_MODULE_IS_SPLIT + 4,
       HFN_MODULE_NOTE = 256,         /* text with NUL         */
       HFN_MODULE_NOTE_BYTES = 256,
       HFN_MODULE_BYTES = 512,
};

enum { HFN_METHOD_ORDERS_BYTES = 16384 }; /* room for orders, behind that for names */

enum {                          /* a function; strings are u32 offsets into the strings section */
       HFN_FUNCTION_RVA = 0,    /* u64 */
       HFN_FUNCTION_SIZE = 8,   /* u64 */
       HFN_FUNCTION_NAME = 16,  /* other names follow, then an empty one */
       HFN_FUNCTION_NAMES = 20, /* count */
       HFN_FUNCTION_FLAGS = 24,
       HFN_FUNCTION_STRATEGY = 28, /* string */
       HFN_FUNCTION_BYTES = 32,
};

enum {                     /* a state */
       HFN_STATE_WORD = 0, /* HOTFN_STATE_* | reason << 8 */
       HFN_STATE_OFFSET = 4,
       HFN_STATE_BYTES = 8,
};

enum { /* a reason; its index is its number */
       HFN_REASON_NAME = 0,
       HFN_REASON_TEXT = 4,
       HFN_REASON_BYTES = 8,
       HFN_REASON_CAPACITY = 256,
};

/* Key of the meta section; its value lists what a repair of the record lost. */
#define HFN_META_REPAIRED "repaired"
#define HFN_LOST_NOTHING "nothing"

/* Texts of a finished record. */
#define HFN_META_SCRIPT "script" /* the script whose interpreter was counted */
#define HFN_META_BECAME "became" /* the program that replaced the target by exec; not counted */
#define HFN_META_CPU "cpu_ns"    /* processor time of the program itself */
#define HFN_META_PREPARATION "preparation_ns" /* of the launcher, before the program started */
#define HFN_META_CHILD "child" /* for each program of uncounted children: "ns processes path" */

/* A histogram in live memory: a u64 per bucket. */
#define HFN_HISTOGRAM_BYTES (HOTFN_HISTOGRAM_BUCKETS * sizeof(uint64_t))

/* Capacity for changes of level. */
#define HFN_BUDGET_CHANGES 8192u

/* How a function was timed (HOTFN_TIMING_FULL ...), and the number of the reason if not in full. */
#define HFN_TIMING_WORD(mode, reason) ((uint32_t)(mode) | (uint32_t)(reason) << 8)

#define HFN_STATE_OF(word) ((word)&0xffu)
#define HFN_REASON_OF(word) ((word) >> 8)
#define HFN_STATE_AND_REASON(state, reason) ((uint32_t)(state) | (uint32_t)(reason) << 8)

/* Used bytes of a budget section. */
uint64_t hfn_budget_used_bytes(const uint8_t *section, uint64_t byte_count);

typedef struct hfn_section {
    uint32_t type, flags;
    uint64_t offset, bytes;
    uint32_t element_bytes, crc;
    uint64_t elements;
} hfn_section;

/* A decoded table, by section type; type is 0 where there is no section. */
typedef struct hfn_layout {
    uint32_t kind;
    uint32_t row_bytes;
    uint64_t file_bytes;
    hfn_section sections[HFN_SECTION_TYPES];
} hfn_layout;

/* The element size that this version writes and expects (0: bytes). */
uint32_t hfn_section_element_bytes(uint32_t type);
/* HFN_SECTION_CRITICAL, or 0 if readers that do not know the type ignore it. */
uint32_t hfn_section_critical(uint32_t type);

/* Read the constant fields of an element of HFN_SECTION_MODULES, and its note: everything except
 * flags, load base, functions and texts. */
void hfn_module_read(const uint8_t *element, hotfn_record_module *out);

/* Write the constant half and the table, then their CRC.  header has hfn_header_bytes(layout)
 * bytes. */
void hfn_header_write(uint8_t *header, const hfn_layout *layout, const uint8_t uuid[16],
                      uint64_t start_ns);
uint32_t hfn_header_bytes(const hfn_layout *layout);
/* Store the CRC of the second half. */
void hfn_header_seal(uint8_t *header);

/*
 * Check and decode a header with its table.
 *
 * head        the first bytes of the file.
 * file_bytes  real size of the file.
 * tolerant    accept wrong checksums and sizes, for a repair.
 *
 * HOTFN_OK, HOTFN_E_FORMAT with the offset, HOTFN_E_MISMATCH (another version or byte order).
 */
hotfn_status hfn_header_read(hfn_layout *out, hfn_span head, uint64_t file_bytes, bool tolerant,
                             const char *path, hotfn_error *err);

#endif
