/* SPDX-License-Identifier: MIT */
/* The table's two halves: table.c has what every record has, table_times.c what timing adds. */
#ifndef HFN_EXPORTERS_TABLE_H
#define HFN_EXPORTERS_TABLE_H

#include "exporters/exporter.h"

#define BOLD "\033[1m"
#define DIM "\033[2m"
#define HOT "\033[31m"
#define PLAIN "\033[0m"

const char *hfn_table_color(const hfn_view *view, const char *code); /* "" without colours */
const char *hfn_table_grouped(uint64_t value, char out[32]);         /* 1,234,567          */
const char *hfn_table_s(uint64_t count);                             /* "s", but "" of 1   */
/* The same, with a ">" before it if it is a lower bound. */
const char *hfn_table_calls(const hfn_view *view, uint32_t function, uint64_t calls, char out[33]);
/* At most width characters, 0: all; control characters do not reach the terminal. */
void hfn_table_name(hfn_sink *sink, const char *name, size_t width);
void hfn_table_column(hfn_sink *sink, const char *text, size_t width);

/* The function's name, and behind it file:line where that is known and there is room; 0: all. */
void hfn_table_function(const hfn_view *view, hfn_sink *sink, const hotfn_record_function *f,
                        const hotfn_record_module *m, size_t room);

/* table_memory.c: columns of a timed run that kept memory, and its sums. */
bool hfn_table_has_memory(const hfn_view *view);
void hfn_table_memory_columns(hfn_sink *sink);
void hfn_table_memory(hfn_sink *sink, const hotfn_record_timing *t);
void hfn_table_memory_notes(const hfn_view *view, hfn_sink *sink);

void hfn_table_time_columns(const hfn_view *view, hfn_sink *sink, size_t module_width);
void hfn_table_time_row(const hfn_view *view, hfn_sink *sink, uint32_t rank, size_t module_width);
/* What must be known to read the times right; slow calls; edges if asked for. */
bool hfn_table_time_notes(const hfn_view *view, hfn_sink *sink);

#endif
