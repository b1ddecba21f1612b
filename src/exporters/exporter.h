/* SPDX-License-Identifier: MIT */
/* The contract of an exporter: each format is one file, which reads a view of the record and writes
 * to a sink.  An exporter has no state of its own. */
#ifndef HFN_EXPORTERS_EXPORTER_H
#define HFN_EXPORTERS_EXPORTER_H

#include "base/compiler.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/utf8.h"

#include <hotfn/export.h>
#include <hotfn/lowlevel/timing.h>
#include <stdbool.h>

/* A buffered output.  After a failed write, everything is dropped. */
typedef struct hfn_sink {
    hotfn_write_fn write;
    void *user;
    bool failed;
    size_t used;
    char buffer[16384];
} hfn_sink;

void hfn_sink_bytes(hfn_sink *sink, const char *bytes, size_t count);
/* Write the low byte_count bytes of value, little-endian; at most 8. */
void hfn_sink_le(hfn_sink *sink, uint64_t value, uint32_t byte_count);
void hfn_sink_text(hfn_sink *sink, const char *text);
void hfn_sink_format(hfn_sink *sink, const char *format, ...) HFN_PRINTF(2, 3);
void hfn_sink_flush(hfn_sink *sink);

/* The record together with the options of the export. */
typedef struct hfn_view {
    const hotfn_record *record;
    hotfn_record_info info;
    hotfn_export_options options;
    hotfn_env env;
    const uint32_t *order;       /* function indices in the order of options.by */
    uint32_t count;              /* of indices in order */
    const uint8_t *matches;      /* per function: a name matches; NULL: all   */
    uint32_t limit;              /* maximum number of functions to list */
    uint64_t total_calls;        /* over all counted functions             */
    hotfn_record_time_info time; /* flags 0: the run was not timed   */
    hfn_progress *progress;
} hfn_view;

/* Called by the longest loops of an exporter, at `done` (from 0) of `total` passes. */
void hfn_view_reach(const hfn_view *view, uint64_t done, uint64_t total);

/* Return the readable form of a name: out or the name itself; "file+0x12" if a repair lost it. */
const char *hfn_view_display(const hfn_view *view, const hotfn_record_function *function, char *out,
                             size_t out_bytes);
/* Find the source line of a function by env's line_fn; false if it is not known or not wanted. */
bool hfn_view_line(const hfn_view *view, const hotfn_record_function *function,
                   const hotfn_record_module *module, char *file, size_t file_bytes,
                   uint32_t *line);
/* True if one of the function's names matches options.match, or if there is no such glob. */
bool hfn_view_matches(const hfn_view *view, uint32_t function);
void hfn_view_function(const hfn_view *view, uint32_t index, hotfn_record_function *out);
void hfn_view_timing(const hfn_view *view, uint32_t index, hotfn_record_timing *out);
void hfn_view_thread(const hfn_view *view, uint32_t index, hotfn_record_thread *out);
void hfn_view_node(const hfn_view *view, uint32_t index, hotfn_record_node *out);
void hfn_view_edge(const hfn_view *view, uint32_t index, hotfn_record_edge *out);
void hfn_view_module(const hfn_view *view, uint32_t index, hotfn_record_module *out);

/* The weight of a node's stack: its self time, or by options.by its bytes or calls. */
uint64_t hfn_view_weight(const hfn_view *view, const hotfn_record_node *node);
/* Store the functions from the root to node; returns the depth, at most max_depth.  A deeper stack
 * loses its outermost callers. */
uint32_t hfn_view_stack(const hfn_view *view, uint32_t node, uint32_t *functions,
                        uint32_t max_depth);
/* Find the range of each thread's nodes; nodes of other threads may lie in it.  first and end have
 * an element for each thread. */
void hfn_view_node_ranges(const hfn_view *view, uint32_t *first, uint32_t *end);
/* Format a thread's name: "name (tid 7)". */
const char *hfn_view_thread_name(const hfn_view *view, uint32_t thread, char *out,
                                 size_t out_bytes);

/* The sum of the self times of all functions. */
uint64_t hfn_view_self_ns(const hfn_view *view);
/* The share of the code that belongs to known functions, in percent; below 0 if it is unknown. */
double hfn_view_coverage(const hfn_view *view);
/* A warning if the hooks of a full run cost more than all self times, else "". */
const char *hfn_view_cost_note(const hfn_view *view, char out[200]);

const char *hfn_timing_name(uint32_t timing); /* "full" ...     */
const char *hfn_clock_name(uint32_t clock);   /* "tsc" ...      */
/* "symbol" ...: what shows that a function begins there; NULL: not known. */
const char *hfn_found_by_name(uint32_t flags);
/* Whether only a call or a pointer shows it. */
bool hfn_is_found_by_code(const hotfn_record_function *f);
const char *hfn_state_name(uint32_t state); /* "hooked" ...   */

#define HFN_LONG_PREPARATION_NS 100000000 /* shorter ones are not mentioned */

typedef struct hfn_exporter {
    const char *name;
    const char *extension;
    const char *about;
    uint32_t needs;                                      /* HOTFN_NEEDS_* */
    bool (*write)(const hfn_view *view, hfn_sink *sink); /* false: no memory */
} hfn_exporter;

extern const hfn_exporter hfn_exporter_table;
extern const hfn_exporter hfn_exporter_json;
extern const hfn_exporter hfn_exporter_csv;
extern const hfn_exporter hfn_exporter_html;
extern const hfn_exporter hfn_exporter_callgrind;
extern const hfn_exporter hfn_exporter_pprof;
extern const hfn_exporter hfn_exporter_folded;
extern const hfn_exporter hfn_exporter_speedscope;
extern const hfn_exporter hfn_exporter_chrome;
extern const hfn_exporter hfn_exporter_perfetto;
extern const hfn_exporter hfn_exporter_firefox;
extern const hfn_exporter hfn_exporter_traceview;
extern const hfn_exporter hfn_exporter_gmon;

#endif
