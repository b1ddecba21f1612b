/* SPDX-License-Identifier: MIT */
/* Invariants of a loaded symbol table that the later folders rely on; a violation aborts. */
#ifndef HFN_FUZZ_SYMBOLS_PROMISES_H
#define HFN_FUZZ_SYMBOLS_PROMISES_H

#include <hotfn/lowlevel/symbols.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LINES_ASKED = 256 };

static inline void check_order(const hotfn_symbol *before, const hotfn_symbol *s)
{
    int global_before = (before->flags & HOTFN_SYMBOL_GLOBAL) != 0;
    int global = (s->flags & HOTFN_SYMBOL_GLOBAL) != 0;

    if (before->rva > s->rva) {
        abort();
    }
    if (before->rva == s->rva && global_before < global) {
        abort();
    }
    if (before->rva == s->rva && global_before == global && strcmp(before->name, s->name) >= 0) {
        abort();
    }
}

/* The range of a line must contain the address of the query. */
static inline void check_line(hotfn_symbols *symbols, uint64_t rva)
{
    hotfn_source_line line = HOTFN_SOURCE_LINE_INIT;

    if (hotfn_symbols_find_line(symbols, rva, &line) != HOTFN_OK) {
        return;
    }
    if (line.rva > rva || rva - line.rva >= line.byte_count || strlen(line.file) > SIZE_MAX / 2) {
        abort();
    }
}

/* Symbols must be in order, each of a known kind and source, and their names must end. */
static inline void check_symbols(hotfn_symbols *symbols)
{
    hotfn_symbol before = HOTFN_SYMBOL_INIT;

    for (uint32_t i = 0; i < hotfn_symbols_get_count(symbols); i++) {
        hotfn_symbol s = HOTFN_SYMBOL_INIT;
        if (hotfn_symbols_get(symbols, i, &s) != HOTFN_OK || !s.kind || !s.source ||
            s.flags > (HOTFN_SYMBOL_SIZE_GUESSED << 1) ||
            (s.module && strlen(s.module) > SIZE_MAX / 2)) {
            abort();
        }
        if (i > 0) {
            check_order(&before, &s);
        }
        if (i < MOST_LINES_ASKED) {
            check_line(symbols, s.rva);
            check_line(symbols, s.rva + s.byte_count / 2);
        }
        before = s;
    }
}

#endif
