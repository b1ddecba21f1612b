/* SPDX-License-Identifier: MIT */
/* `hotfn symbols FILE`: the names with addresses that a file and its separate debug file hold, a
 * PDB or a linker map. */
#include "cli/column_widths.h"
#include "cli/commands.h"
#include "cli/file_words.h"
#include "cli/listing.h"
#include "forwards.h"
#include "symbols_at.h"

#include <inttypes.h>
#include <stdlib.h>

#define BEFORE_NAMES 42 /* columns of a line */

enum { DATA = 256, AT };

static const struct option table[] = {
    { "json", no_argument, NULL, FILE_JSON },
    SYMBOL_SOURCE_WORDS,
    { "data", no_argument, NULL, DATA },
    { "at", required_argument, NULL, AT },
    WORDS_END,
};

typedef struct wish {
    file_wish common;
    uint64_t *at; /* addresses to explain, instead of the list */
    uint32_t at_count;
} wish;

static const char usage[] =
    "usage: hotfn symbols [options] FILE\n"
    "      --json            as JSON (schema hotfn.symbols/1)\n" SYMBOL_SOURCE_USAGE
    "      --data            data symbols too\n"
    "      --at ADDRESS      instead of all: the symbol and the source there, with what was\n"
    "                        inlined into each other (may be repeated)\n"
    "Each line: distance from the lowest load address, size in bytes, kind, source, name.\n";

static const char *kind_name(uint32_t kind)
{
    static const char *const names[] = { "unknown", "function", "data",    "ifunc",
                                         "label",   "thunk",    "fragment" };

    return kind < sizeof names / sizeof names[0] ? names[kind] : names[0];
}

static const char *source_name(uint32_t source)
{
    static const char *const names[] = { "unknown", "symtab", "debug-file", "debugdata",
                                         "dynsym",  "map",    "pdb",        "exports" };

    return source < sizeof names / sizeof names[0] ? names[source] : names[0];
}

static const char *binding_name(uint32_t flags)
{
    if (flags & HOTFN_SYMBOL_WEAK) {
        return "weak";
    }
    return flags & HOTFN_SYMBOL_GLOBAL ? "global" : "local";
}

/* Where it was written, as far as that is known. */
static void print_origin(FILE *out, const listing *l, const hotfn_symbol *s)
{
    hotfn_source_line line = HOTFN_SOURCE_LINE_INIT;

    if (s->module) {
        fputs(",\"module\":", out);
        listing_json_text(out, s->module);
    }
    if (s->kind == HOTFN_SYMBOL_DATA ||
        hotfn_symbols_find_line(l->symbols, s->rva, &line) != HOTFN_OK) {
        return;
    }
    fputs(",\"file\":", out);
    listing_json_text(out, line.file);
    fprintf(out, ",\"line\":%" PRIu32, line.line);
}

/* The closing bracket is the caller's: more may follow. */
static void print_json(FILE *out, const listing *l)
{
    char text[16384];

    listing_print_head(out, l, "hotfn.symbols/1");
    fputs(",\"symbols\":[", out);
    for (uint32_t i = 0; i < hotfn_symbols_get_count(l->symbols); i++) {
        hotfn_symbol s = HOTFN_SYMBOL_INIT;
        hotfn_symbols_get(l->symbols, i, &s);
        fprintf(out, "%s\n{\"rva\":%" PRIu64 ",\"size\":%" PRIu64 ",\"name\":", i ? "," : "", s.rva,
                s.byte_count);
        listing_json_text(out, s.name);
        fputs(",\"display\":", out);
        listing_json_text(out, listing_display(l, s.name, text, sizeof text));
        fprintf(out, ",\"kind\":\"%s\",\"source\":\"%s\",\"binding\":\"%s\",\"exported\":%s",
                kind_name(s.kind), source_name(s.source), binding_name(s.flags),
                s.flags & HOTFN_SYMBOL_EXPORTED ? "true" : "false");
        if (s.flags & HOTFN_SYMBOL_SIZE_GUESSED) {
            fputs(",\"size_guessed\":true", out);
        }
        print_origin(out, l, &s);
        putc('}', out);
    }
    putc(']', out);
}

static void print_lines(FILE *out, const listing *l)
{
    for (uint32_t i = 0; i < hotfn_symbols_get_count(l->symbols); i++) {
        hotfn_symbol s = HOTFN_SYMBOL_INIT;
        hotfn_symbols_get(l->symbols, i, &s);
        fprintf(out, "%#12" PRIx64 " %8" PRIu64 " %-8s %-10s %s\n", s.rva, s.byte_count,
                kind_name(s.kind), source_name(s.source), s.name);
    }
}

static bool print_all(FILE *out, const listing *l, const wish *w, hotfn_error *err)
{
    if (w->common.json) {
        print_json(out, l);
    } else {
        print_lines(out, l);
    }
    return forwards_print(out, l, &w->common.sources, w->common.json, err);
}

static bool explain(FILE *out, const listing *l, const wish *w)
{
    if (!w->common.json) {
        return symbols_at_print(out, l, w->at, w->at_count);
    }
    listing_print_head(out, l, "hotfn.symbols/1");
    return symbols_at_print_json(out, l, w->at, w->at_count);
}

static int list_symbols(const wish *w)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    listing l;

    if (!listing_open_symbols(&l, w->common.file, &w->common.sources, &err)) {
        return hotfn_tool_fail("symbols", &err);
    }
    if (hotfn_symbols_get_count(l.symbols) == 0) {
        fprintf(stderr, "hotfn symbols: %s: no symbols; `hotfn list` still finds its functions\n",
                w->common.file);
    }
    if (!w->common.json) {
        fit_begin();
    }
    bool good = w->at_count ? explain(stdout, &l, w) : print_all(stdout, &l, w, &err);
    fit_end(w->at_count ? 0 : BEFORE_NAMES);
    if (w->common.json) {
        fputs("}\n", stdout);
    }
    listing_close(&l);
    return good          ? TOOL_OK
           : w->at_count ? TOOL_FAILED /* said already */
                         : hotfn_tool_fail("symbols", &err);
}

static const char *take(void *user, int word, const char *argument)
{
    wish *w = user;

    if (word == DATA) {
        w->common.sources.options.flags |= HOTFN_SYMBOLS_DATA;
        return NULL;
    }
    return words_u64(argument, &w->at[w->at_count++])
               ? "a distance from the lowest load address (0x11f0)"
               : NULL;
}

int hotfn_command_symbols(int argc, char **argv)
{
    wish w = { .at = calloc((size_t)argc, sizeof *w.at) };
    const words own = { usage, "", table, take, &w, 1, 1 };
    int status = TOOL_FAILED;

    if (w.at) {
        status = file_words_read(&w.common, &own, argc, argv);
    }
    if (status < 0) {
        status = list_symbols(&w);
    }
    file_words_finish(&w.common);
    free(w.at);
    return status;
}
