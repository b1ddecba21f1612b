/* SPDX-License-Identifier: MIT */
/* The table: table.c writes counts, table_times.c times, table_memory.c memory.  table_layout.c
 * chooses columns for the width of the terminal, table_wrap.c breaks longer lines. */
#ifndef HFN_EXPORTERS_TABLE_H
#define HFN_EXPORTERS_TABLE_H

#include "exporters/exporter.h"

#define BOLD "\033[1m"
#define DIM "\033[2m"
#define HOT "\033[31m"
#define PLAIN "\033[0m"

const char *hfn_table_color(const hfn_view *view, const char *code); /* "" without colours */
const char *hfn_table_grouped(uint64_t value, char out[32]);         /* 1,234,567          */
const char *hfn_table_s(uint64_t count);                             /* "" for 1, else "s" */
/* calls as 1,234,567, with a ">" before it if the count is a lower bound. */
const char *hfn_table_calls(const hfn_view *view, uint32_t function, uint64_t calls, char out[33]);
size_t hfn_table_characters(const char *text);
/* Write a name in at most width characters, with its middle replaced by an ellipsis; 0: all of it.
 * Control characters are replaced by "?". */
void hfn_table_name(hfn_sink *sink, const char *name, size_t width);

/* The same for a function's name: its scopes and brackets are shortened first (table_fold.c). */
void hfn_table_function(hfn_sink *sink, const char *name, size_t width);
/* The width of a name outside of the table's rows; 0: unlimited. */
size_t hfn_table_note_width(const hfn_view *view);

/* The columns from left to right; the function's name follows them. */
enum {
    HFN_COLUMN_RANK,
    HFN_COLUMN_CALLS,
    HFN_COLUMN_TOTAL,
    HFN_COLUMN_WAITED,
    HFN_COLUMN_ERROR,
    HFN_COLUMN_SELF,
    HFN_COLUMN_SHARE,
    HFN_COLUMN_P99,
    HFN_COLUMN_MAX,
    HFN_COLUMN_ALLOCATED,
    HFN_COLUMN_BLOCKS,
    HFN_COLUMN_FREED,
    HFN_COLUMN_BELOW,
    HFN_COLUMN_MODULE,
    HFN_COLUMN_COUNT,
};

typedef struct hfn_table_layout {
    size_t widths[HFN_COLUMN_COUNT]; /* characters; 0: not shown                       */
    size_t room;                     /* for the function's name; 0: unlimited          */
    const char *only_module;         /* of all rows, shown in the title; NULL: a column */
} hfn_table_layout;

void hfn_layout_choose(const hfn_view *view, uint32_t rows, hfn_table_layout *out);
void hfn_layout_titles(const hfn_view *view, hfn_sink *sink, const hfn_table_layout *l);
/* Write a cell, right-aligned, if its column is shown.  color is an escape sequence or "". */
void hfn_layout_put(const hfn_view *view, hfn_sink *sink, const hfn_table_layout *l,
                    uint32_t column, const char *color, const char *text);
void hfn_layout_put_module(const hfn_view *view, hfn_sink *sink, const hfn_table_layout *l,
                           const char *name);
/* Write a line that names the dropped columns, if there are any. */
void hfn_layout_notes(const hfn_view *view, hfn_sink *sink, const hfn_table_layout *l);

/* A filter: text written to w->sink is wrapped at width columns and written to `to`. */
typedef struct hfn_wrap {
    hfn_sink sink;
    hfn_sink *to;
    size_t width, column, indent;     /* of the line                   */
    size_t blanks, bytes, characters; /* before the word, and of it    */
    bool in_escape;
    char word[512];
} hfn_wrap;

void hfn_wrap_begin(hfn_wrap *w, hfn_sink *to, size_t width);
void hfn_wrap_end(hfn_wrap *w);

/* table_memory.c: the columns and the sums of a run with --with alloc. */
void hfn_table_memory(const hfn_view *view, hfn_sink *sink, const hfn_table_layout *l,
                      const hotfn_record_timing *t);
void hfn_table_memory_notes(const hfn_view *view, hfn_sink *sink);
/* table_waiting.c: whether the table has a column of waiting; and write the part of a sentence that
 * says how long threads waited in hooked functions, or nothing. */
bool hfn_table_shows_waiting(const hfn_view *view);
void hfn_table_waiting(const hfn_view *view, hfn_sink *sink);

/* The cells between calls and module. */
void hfn_table_times(const hfn_view *view, hfn_sink *sink, const hfn_table_layout *l,
                     const hotfn_record_timing *t);
/* " (counted only: ...)", " (did not return)" or nothing. */
void hfn_table_time_remark(const hotfn_record_timing *t, char *out, size_t out_bytes);
/* Write the notes about the times, the slow calls and, if requested, the edges.  False: no
 * memory. */
bool hfn_table_time_notes(const hfn_view *view, hfn_sink *sink);

/* table_children.c: nothing if the program itself was counted. */
void hfn_table_put_children(const hfn_view *view, hfn_sink *sink);

#endif
