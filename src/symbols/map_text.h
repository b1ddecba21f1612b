/* SPDX-License-Identifier: MIT */
/* The text of a linker map: reads lines from untrusted bytes, and the few words that maps consist
 * of. */
#ifndef HFN_SYMBOLS_MAP_TEXT_H
#define HFN_SYMBOLS_MAP_TEXT_H

#include "base/progress.h"
#include "base/span.h"

#include <hotfn/status.h>
#include <stddef.h>

/* [at, end): a view without a final NUL. */
typedef struct hfn_text {
    const char *at, *end;
} hfn_text;

typedef struct hfn_map_lines {
    const char *begin, *at, *end; /* the file; at: how far it was read */
    const char *line;             /* where the current line begins      */
    uint32_t number;              /* of the current line, from 1        */
    bool allow_truncated;         /* accept a last line without an end */
    hotfn_status status;          /* HOTFN_OK, or the error that ended the reading */
    const char *path;
    hotfn_error *err;
    hfn_progress progress;
} hfn_map_lines;

/* HOTFN_E_FORMAT for an empty file and for UTF-16 text, which no linker writes.  A UTF-8 byte order
 * mark is skipped.  Progress is reported to env (NULL: it is not), and its end by the caller. */
hotfn_status hfn_map_lines_begin(hfn_map_lines *lines, hfn_span bytes, const char *path,
                                 const hotfn_env *env, hotfn_error *err);
/* Reads the next line without its end (\n or \r\n) and without trailing blanks. False at the end of
 * the file, or on an error, which is in status: the line is too long or truncated. */
bool hfn_map_next_line(hfn_map_lines *lines, hfn_text *line);
/* Reports HOTFN_E_FORMAT at the current line. */
hotfn_status hfn_map_fail(const hfn_map_lines *lines, const char *what);

static inline size_t hfn_text_length(hfn_text t)
{
    return (size_t)(t.end - t.at);
}

/* Each of these calls consumes the word or number in its name at the front of t. If that is not
 * there, it returns false and leaves t unchanged. */
bool hfn_text_take(hfn_text *t, const char *word);
bool hfn_text_take_hex(hfn_text *t, uint64_t *out);     /* 1 to 16 digits */
bool hfn_text_take_0x(hfn_text *t, uint64_t *out);      /* 0x and such a number */
bool hfn_text_take_decimal(hfn_text *t, uint64_t *out); /* 1 to 19 digits */
size_t hfn_text_take_blanks(hfn_text *t);               /* returns their number; tabs too */
hfn_text hfn_text_take_word(hfn_text *t);               /* up to a blank; may be empty */

bool hfn_text_begins(hfn_text t, const char *word);
bool hfn_text_ends(hfn_text t, const char *word);
bool hfn_text_is(hfn_text t, const char *word);
/* The first occurrence of word in t, NULL if there is none. */
const char *hfn_text_find(hfn_text t, const char *word);

#endif
