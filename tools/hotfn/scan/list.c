/* SPDX-License-Identifier: MIT */
/* `hotfn list FILE`: lists the functions of a file, which are found by symbols and unwind data. */
#include "cli/column_widths.h"
#include "cli/commands.h"
#include "cli/file_options.h"
#include "cli/listing.h"
#include "list_write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BEFORE_NAMES 31 /* number of columns before the name */

enum { MIN_SIZE = 256, MAX_SIZE, REFUSED };

static const struct option table[] = {
    { "min-size", required_argument, NULL, MIN_SIZE },
    { "max-size", required_argument, NULL, MAX_SIZE },
    { "output", required_argument, NULL, 'o' },
    { "refused", required_argument, NULL, REFUSED },
    { "json", no_argument, NULL, FILE_JSON },
    FILE_OPTIONS,
};

typedef struct choices {
    file_options common;
    list_outputs outputs;
} choices;

static const char usage[] =
    "usage: hotfn list [options] FILE\n"
    "  -f, --match GLOB      only functions with a name that matches (may be repeated)\n"
    "  -x, --exclude GLOB    exclude functions that match\n"
    "      --min-size N, --max-size N   only functions of this size in bytes\n"
    "  -o, --output FILE     write the hookable functions to a function list (.flf; .txt: text)\n"
    "      --refused FILE    write the other functions with reasons, as JSON (hotfn.refused/1)\n" SYMBOL_SOURCE_USAGE
    "      --json            as JSON (schema hotfn.list/1)\n"
    "Each line: distance from the lowest load address, size in bytes, kind, name.\n";

static const char *get_kind_name(uint32_t kind)
{
    static const char *const names[] = {
        "unknown", "plain", "fragment", "plt", "resolver", "glue"
    };

    return kind < sizeof names / sizeof names[0] ? names[kind] : names[0];
}

static void add_names(hotfn_json *object, const hotfn_functions *functions, uint32_t index)
{
    hotfn_json *names = hotfn_json_create_array();
    const char *name;

    for (uint32_t i = 0; (name = hotfn_functions_get_name(functions, index, i)) != NULL; i++) {
        json_add_text(names, NULL, name);
    }
    hotfn_json_add(object, "names", names);
}

static void add_flags(hotfn_json *object, uint32_t flags)
{
    static const struct {
        uint32_t flag;
        const char *name;
    } names[] = {
        { HOTFN_FUNCTION_HAS_SYMBOL, "symbol" },
        { HOTFN_FUNCTION_HAS_FDE, "fde" },
        { HOTFN_FUNCTION_EXPORTED, "exported" },
        { HOTFN_FUNCTION_GLOBAL, "global" },
        { HOTFN_FUNCTION_SIZE_GUESSED, "size-guessed" },
        { HOTFN_FUNCTION_SIGNAL_FRAME, "signal-frame" },
        { HOTFN_FUNCTION_HAS_LSDA, "lsda" },
        { HOTFN_FUNCTION_UNTYPED, "untyped" },
        { HOTFN_FUNCTION_FOUND_CALL, "found-by-call" },
        { HOTFN_FUNCTION_FOUND_POINTER, "found-by-pointer" },
    };
    hotfn_json *list = hotfn_json_create_array();

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (flags & names[i].flag) {
            json_add_text(list, NULL, names[i].name);
        }
    }
    hotfn_json_add(object, "flags", list);
}

static bool print_json(FILE *file, const listing *l, const hotfn_functions *functions,
                       const uint8_t *selected)
{
    hotfn_json_writer *out = json_open(file);
    char text[16384];

    hotfn_json_begin_object(out, NULL);
    listing_write_head(out, l, "hotfn.list/1");
    hotfn_json_begin_array(out, "functions");
    for (uint32_t i = 0; i < hotfn_functions_get_count(functions); i++) {
        hotfn_function f = HOTFN_FUNCTION_INIT;
        if (!selected[i]) {
            continue;
        }
        hotfn_json *o = hotfn_json_create_object();
        hotfn_functions_get(functions, i, &f);
        json_add_number(o, "rva", f.rva);
        json_add_number(o, "size", f.byte_count);
        json_add_text(o, "name", f.name);
        json_add_text(o, "display", listing_display(l, f.name, text, sizeof text));
        add_names(o, functions, i);
        json_add_text(o, "kind", get_kind_name(f.kind));
        add_flags(o, f.flags);
        hotfn_json_write(out, NULL, o);
    }
    hotfn_json_end(out);
    hotfn_json_end(out);
    return json_close(out);
}

static void print_lines(FILE *out, const listing *l, const hotfn_functions *functions,
                        const uint8_t *selected)
{
    char text[16384];

    for (uint32_t i = 0; i < hotfn_functions_get_count(functions); i++) {
        hotfn_function f = HOTFN_FUNCTION_INIT;
        if (!selected[i]) {
            continue;
        }
        hotfn_functions_get(functions, i, &f);
        /* The name starts after BEFORE_NAMES columns. */
        fprintf(out, "%#12" PRIx64 " %8" PRIu64 " %-8s %s\n", f.rva, f.byte_count,
                get_kind_name(f.kind), listing_display(l, f.name, text, sizeof text));
    }
}

static int print_selected(const choices *c, const listing *l, const hotfn_functions *functions)
{
    uint32_t count = hotfn_functions_get_count(functions);
    uint8_t *selected = malloc(count ? count : 1);
    hotfn_error err = HOTFN_ERROR_INIT;
    const char *unmatched = NULL;
    int status = TOOL_OK;

    if (!selected ||
        hotfn_functions_select(functions, &c->common.selection, selected, &unmatched, &err)) {
        free(selected);
        return hotfn_tool_fail("list", &err);
    }
    if (!file_options_check_matches("list", &c->common, unmatched, selected, count)) {
        status = TOOL_FAILED;
    } else if (c->outputs.list || c->outputs.refused) {
        status = list_write("list", l, functions, selected, &c->outputs);
    } else if (c->common.json) {
        print_json(stdout, l, functions, selected);
    } else {
        fit_begin();
        print_lines(stdout, l, functions, selected);
        fit_end(BEFORE_NAMES);
    }
    free(selected);
    return status;
}

static int list_functions(const choices *c)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_functions *functions = NULL;
    listing l;
    int status;

    if (!listing_open(&l, c->common.file, &c->common.sources, &err)) {
        return hotfn_tool_fail("list", &err);
    }
    if (hotfn_functions_build(&functions, l.image, l.symbols, &l.env, &err) != HOTFN_OK ||
        hotfn_verdicts_find_functions(functions, l.image, 0, &l.env, &err) != HOTFN_OK) {
        status = hotfn_tool_fail("list", &err);
    } else {
        status = print_selected(c, &l, functions);
    }
    hotfn_functions_destroy(functions);
    listing_close(&l);
    return status;
}

static const char *read_option(void *user, int option, const char *argument)
{
    choices *c = user;

    switch (option) {
    case MIN_SIZE: return cli_parse_u64(argument, &c->common.selection.min_bytes);
    case MAX_SIZE: return cli_parse_u64(argument, &c->common.selection.max_bytes);
    case 'o': c->outputs.list = argument; return NULL;
    default: c->outputs.refused = argument; return NULL;
    }
}

int hotfn_command_list(int argc, char **argv)
{
    choices c = { .outputs = { 0 } };
    const cli_options own = { usage, "f:x:o:", table, read_option, &c, 1, 1 };
    int status = file_options_read(&c.common, &own, argc, argv);

    const hotfn_selection *pick = &c.common.selection;
    if (status < 0 && pick->max_bytes && pick->max_bytes < pick->min_bytes) {
        status = cli_report_misuse(argv[0], usage, "--min-size is above --max-size");
    } else if (status < 0 && c.outputs.list && strcmp(c.outputs.list, "-") == 0) {
        status = cli_report_misuse(argv[0], usage, "-o cannot write to stdout: name a file");
    }
    if (status < 0) {
        status = list_functions(&c);
    }
    file_options_free(&c.common);
    return status;
}
