/* SPDX-License-Identifier: MIT */
/* `hotfn symbols FILE`: lists the symbols of a file and its separate debug file, of a PDB or of a
 * linker map. */
#include "cli/column_widths.h"
#include "cli/commands.h"
#include "cli/file_options.h"
#include "cli/listing.h"
#include "forwards.h"
#include "symbols_at.h"

#include <inttypes.h>
#include <stdlib.h>

#define BEFORE_NAMES 42 /* columns of a line */

enum { DATA = 256, AT };

static const struct option table[] = {
    { "json", no_argument, NULL, FILE_JSON },
    SYMBOL_SOURCE_OPTIONS,
    { "data", no_argument, NULL, DATA },
    { "at", required_argument, NULL, AT },
    CLI_OPTIONS_END,
};

typedef struct choices {
    file_options common;
    uint64_t *at; /* addresses to explain, instead of the list */
    uint32_t at_count;
} choices;

static const char usage[] =
    "usage: hotfn symbols [options] FILE\n"
    "      --json            print JSON (schema hotfn.symbols/1)\n" SYMBOL_SOURCE_USAGE
    "      --data            also list data symbols\n"
    "      --at ADDRESS      show only the symbol, the source line and the inlined calls at\n"
    "                        ADDRESS (may be repeated)\n"
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
                                         "dynsym",  "map",    "pdb",        "exports",
                                         "go" };

    return source < sizeof names / sizeof names[0] ? names[source] : names[0];
}

static const char *binding_name(uint32_t flags)
{
    if (flags & HOTFN_SYMBOL_WEAK) {
        return "weak";
    }
    return flags & HOTFN_SYMBOL_GLOBAL ? "global" : "local";
}

/* Add the source file and line of the symbol, if they are known. */
static void add_origin(hotfn_json *o, const listing *l, const hotfn_symbol *s)
{
    hotfn_source_line line = HOTFN_SOURCE_LINE_INIT;

    if (s->module) {
        json_add_text(o, "module", s->module);
    }
    if (s->kind == HOTFN_SYMBOL_DATA ||
        hotfn_symbols_find_line(l->symbols, s->rva, &line) != HOTFN_OK) {
        return;
    }
    json_add_text(o, "file", line.file);
    json_add_number(o, "line", line.line);
}

static void write_symbols(hotfn_json_writer *out, const listing *l)
{
    char text[16384];

    hotfn_json_begin_array(out, "symbols");
    for (uint32_t i = 0; i < hotfn_symbols_get_count(l->symbols); i++) {
        hotfn_symbol s = HOTFN_SYMBOL_INIT;
        hotfn_json *o = hotfn_json_create_object();
        hotfn_symbols_get(l->symbols, i, &s);
        json_add_number(o, "rva", s.rva);
        json_add_number(o, "size", s.byte_count);
        json_add_text(o, "name", s.name);
        json_add_text(o, "display", listing_display(l, s.name, text, sizeof text));
        json_add_text(o, "kind", kind_name(s.kind));
        json_add_text(o, "source", source_name(s.source));
        json_add_text(o, "binding", binding_name(s.flags));
        json_add_bool(o, "exported", s.flags & HOTFN_SYMBOL_EXPORTED);
        if (s.flags & HOTFN_SYMBOL_SIZE_GUESSED) {
            json_add_bool(o, "size_guessed", true);
        }
        add_origin(o, l, &s);
        hotfn_json_write(out, NULL, o);
    }
    hotfn_json_end(out);
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

static bool print_json(const listing *l, const choices *c, hotfn_error *err)
{
    hotfn_json_writer *out = json_open(stdout);
    bool ok;

    hotfn_json_begin_object(out, NULL);
    listing_write_head(out, l, "hotfn.symbols/1");
    if (c->at_count) {
        ok = symbols_at_write(out, l, c->at, c->at_count);
    } else {
        write_symbols(out, l);
        ok = forwards_write(out, l, &c->common.sources, err);
    }
    hotfn_json_end(out);
    return json_close(out) && ok;
}

static bool print_text(const listing *l, const choices *c, hotfn_error *err)
{
    if (c->at_count) {
        return symbols_at_print(stdout, l, c->at, c->at_count);
    }
    print_lines(stdout, l);
    return forwards_print(stdout, l, &c->common.sources, err);
}

static int list_symbols(const choices *c)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    listing l;

    if (!listing_open_symbols(&l, c->common.file, &c->common.sources, &err)) {
        return hotfn_tool_fail("symbols", &err);
    }
    if (hotfn_symbols_get_count(l.symbols) == 0) {
        fprintf(stderr, "hotfn symbols: %s: no symbols; `hotfn list` still finds its functions\n",
                c->common.file);
    }
    if (!c->common.json) {
        fit_begin();
    }
    bool good = c->common.json ? print_json(&l, c, &err) : print_text(&l, c, &err);
    fit_end(c->at_count ? 0 : BEFORE_NAMES);
    listing_close(&l);
    return good          ? TOOL_OK
           : c->at_count ? TOOL_FAILED /* report_unknown has printed a message */
                         : hotfn_tool_fail("symbols", &err);
}

static const char *read_option(void *user, int option, const char *argument)
{
    choices *c = user;

    if (option == DATA) {
        c->common.sources.options.flags |= HOTFN_SYMBOLS_DATA;
        return NULL;
    }
    return cli_parse_u64(argument, &c->at[c->at_count++])
               ? "a distance from the lowest load address (0x11f0)"
               : NULL;
}

int hotfn_command_symbols(int argc, char **argv)
{
    choices c = { .at = calloc((size_t)argc, sizeof *c.at) };
    const cli_options own = { usage, "", table, read_option, &c, 1, 1 };
    int status = TOOL_FAILED;

    if (c.at) {
        status = file_options_read(&c.common, &own, argc, argv);
    }
    if (status < 0) {
        status = list_symbols(&c);
    }
    file_options_free(&c.common);
    free(c.at);
    return status;
}
