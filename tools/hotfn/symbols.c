/* SPDX-License-Identifier: MIT */
/* `hotfn symbols FILE`: the names with addresses that a file and its separate debug file hold, a
 * PDB or a linker map. */
#include "forwards.h"
#include "listing.h"
#include "symbols_at.h"
#include "verbs.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>

enum { JSON = 256, DATA, AT, HELP };

static const struct option words[] = {
    { "json", no_argument, NULL, JSON }, SYMBOL_SOURCE_WORDS,
    { "data", no_argument, NULL, DATA }, { "at", required_argument, NULL, AT },
    { "help", no_argument, NULL, HELP }, { NULL, 0, NULL, 0 },
};

typedef struct wish {
    symbol_sources sources;
    const char *file;
    uint64_t *at; /* addresses to explain, instead of the list */
    uint32_t at_count;
    bool json;
} wish;

static int usage(FILE *out, int status)
{
    fputs("usage: hotfn symbols [options] FILE\n"
          "      --json            as JSON (schema hotfn.symbols/1)\n",
          out);
    fputs(SYMBOL_SOURCE_USAGE
          "      --data            data symbols too\n"
          "      --at ADDRESS      instead of all: the symbol and the source there, with what was\n"
          "                        inlined into each other (may be repeated)\n"
          "Each line: distance from the lowest load address, size in bytes, kind, source, name.\n",
          out);
    return status;
}

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
    if (flags & HOTFN_SYMBOL_WEAK)
        return "weak";
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
        hotfn_symbols_find_line(l->symbols, s->rva, &line) != HOTFN_OK)
        return;
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
    for (uint32_t i = 0; i < hotfn_symbols_count(l->symbols); i++) {
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
        if (s.flags & HOTFN_SYMBOL_SIZE_GUESSED)
            fputs(",\"size_guessed\":true", out);
        print_origin(out, l, &s);
        putc('}', out);
    }
    putc(']', out);
}

static void print_lines(FILE *out, const listing *l)
{
    for (uint32_t i = 0; i < hotfn_symbols_count(l->symbols); i++) {
        hotfn_symbol s = HOTFN_SYMBOL_INIT;
        hotfn_symbols_get(l->symbols, i, &s);
        fprintf(out, "%#12" PRIx64 " %8" PRIu64 " %-8s %-10s %s\n", s.rva, s.byte_count,
                kind_name(s.kind), source_name(s.source), s.name);
    }
}

static bool print_all(FILE *out, const listing *l, const wish *w, hotfn_error *err)
{
    if (w->json)
        print_json(out, l);
    else
        print_lines(out, l);
    return forwards_print(out, l, &w->sources, w->json, err);
}

static bool explain(FILE *out, const listing *l, const wish *w)
{
    if (!w->json) {
        symbols_at_print(out, l, w->at, w->at_count);
        return true;
    }
    listing_print_head(out, l, "hotfn.symbols/1");
    symbols_at_print_json(out, l, w->at, w->at_count);
    return true;
}

static int list_symbols(const wish *w)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    listing l;

    if (!listing_open_symbols(&l, w->file, &w->sources, &err))
        return hotfn_tool_fail("symbols", &err);
    if (hotfn_symbols_count(l.symbols) == 0)
        fprintf(stderr, "hotfn symbols: %s: no symbols; `hotfn list` still finds its functions\n",
                w->file);
    bool good = w->at_count ? explain(stdout, &l, w) : print_all(stdout, &l, w, &err);
    if (w->json)
        fputs("}\n", stdout);
    listing_close(&l);
    return good ? listing_finish("symbols", stdout) : hotfn_tool_fail("symbols", &err);
}

/* TOOL_OK to go on, TOOL_USAGE for a word that is not understood; *done for --help. */
static int read_words(wish *w, int argc, char **argv, bool *done)
{
    int word;

    optind = 1;
    while ((word = getopt_long(argc, argv, "", words, NULL)) != -1) {
        switch (word) {
        case JSON: w->json = true; break;
        case DATA: w->sources.options.flags |= HOTFN_SYMBOLS_DATA; break;
        case AT:
            if (!symbols_at_parse(optarg, &w->at[w->at_count++]))
                return TOOL_USAGE;
            break;
        case HELP: *done = true; return usage(stdout, TOOL_OK);
        default:
            if (!symbol_sources_take(&w->sources, word, optarg))
                return usage(stderr, TOOL_USAGE);
        }
    }
    if (optind != argc - 1)
        return usage(stderr, TOOL_USAGE);
    w->file = argv[optind];
    symbol_sources_end(&w->sources);
    return TOOL_OK;
}

int hotfn_verb_symbols(int argc, char **argv)
{
    wish w = { 0 };
    bool done = false;
    int status = TOOL_FAILED;

    w.at = calloc((size_t)argc, sizeof *w.at);
    if (w.at && symbol_sources_init(&w.sources, argc))
        status = read_words(&w, argc, argv, &done);
    if (status == TOOL_OK && !done)
        status = list_symbols(&w);
    symbol_sources_finish(&w.sources);
    free(w.at);
    return status;
}
