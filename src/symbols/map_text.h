/* SPDX-License-Identifier: MIT */
/* Text of a linker map: lines out of untrusted bytes, and the few words that maps are made of. */
#ifndef HFN_SYMBOLS_MAP_TEXT_H
#define HFN_SYMBOLS_MAP_TEXT_H

#include "base/span.h"

#include <hotfn/status.h>
#include <stddef.h>

/* [at, end): a view, no NUL behind it. */
typedef struct hfn_text {
    const char *at, *end;
} hfn_text;

typedef struct hfn_map_lines {
    const char *begin, *at, *end; /* the file, and how far it was read */
    const char *line;             /* where the current line begins      */
    uint32_t number;              /* of the current line, from 1        */
    bool cut_is_fine;             /* do not refuse a last line without an end */
    hotfn_status status;          /* why there are no more lines        */
    const char *path;
    hotfn_error *err;
} hfn_map_lines;

/* Refuses what is no text that a linker writes (empty, UTF-16); passes over a UTF-8 mark. */
hotfn_status hfn_map_lines_begin(hfn_map_lines *lines, hfn_span bytes, const char *path,
                                 hotfn_error *err);
/* The next line without its end, be that \n or \r\n, and without blanks behind. False at the end
 * of the file, or if status says what is wrong with it (too long, cut). */
bool hfn_map_next_line(hfn_map_lines *lines, hfn_text *line);
/* HOTFN_E_FORMAT at the current line. */
hotfn_status hfn_map_fail(const hfn_map_lines *lines, const char *what);

static inline size_t hfn_text_length(hfn_text t)
{
    return (size_t)(t.end - t.at);
}

/* Each takes what it names from the front of t; false, and t untouched, if it is not there. */
bool hfn_text_take(hfn_text *t, const char *word);
bool hfn_text_take_hex(hfn_text *t, uint64_t *out);     /* 1 to 16 digits */
bool hfn_text_take_0x(hfn_text *t, uint64_t *out);      /* 0x and the same */
bool hfn_text_take_decimal(hfn_text *t, uint64_t *out); /* 1 to 19 digits */
size_t hfn_text_take_blanks(hfn_text *t);               /* how many; tabs too */
hfn_text hfn_text_take_word(hfn_text *t);               /* up to a blank; may be empty */

bool hfn_text_begins(hfn_text t, const char *word);
bool hfn_text_ends(hfn_text t, const char *word);
bool hfn_text_is(hfn_text t, const char *word);
/* Where word first stands in t, NULL if nowhere. */
const char *hfn_text_find(hfn_text t, const char *word);

#endif
