/* SPDX-License-Identifier: MIT */
/* `hotfn report`: lists the hot functions of a record. */
#include "cli/cli_options.h"
#include "cli/column_widths.h"
#include "cli/commands.h"
#include "report_runs.h"
#include "scan/source_lines.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct report_options {
    const char *format, *output, *color;
    hotfn_export_options export;
    uint32_t process, thread;
    bool limit_given, main_process, full_names, runs;
} report_options;

enum {
    JSON = 256,
    CSV,
    REFUSED,
    MANGLED,
    COLOR,
    PROCESS,
    THREAD,
    BY,
    EDGES,
    NO_LINES,
    SYMBOL_DIR,
    WIDTH,
    FULL_NAMES,
    RUNS
};

static const struct option table[] = {
    { "json", no_argument, NULL, JSON },
    { "csv", no_argument, NULL, CSV },
    { "format", required_argument, NULL, 'F' },
    { "limit", required_argument, NULL, 'n' },
    { "why", no_argument, NULL, REFUSED },
    { "refused", no_argument, NULL, REFUSED }, /* its earlier name */
    { "mangled", no_argument, NULL, MANGLED },
    { "color", required_argument, NULL, COLOR },
    { "process", required_argument, NULL, PROCESS },
    { "thread", required_argument, NULL, THREAD },
    { "output", required_argument, NULL, 'o' },
    { "match", required_argument, NULL, 'f' },
    { "by", required_argument, NULL, BY },
    { "edges", no_argument, NULL, EDGES },
    { "no-lines", no_argument, NULL, NO_LINES },
    { "width", required_argument, NULL, WIDTH },
    { "full-names", no_argument, NULL, FULL_NAMES },
    { "symbol-dir", required_argument, NULL, SYMBOL_DIR },
    { "runs", no_argument, NULL, RUNS },
    CLI_OPTIONS_END,
};

static const char usage[] =
    "usage: hotfn report [options] [RECORD]\n"
    "  -f, --match GLOB   only functions with a name that matches\n"
    "  -n, --limit N      at most N functions [30 in the table, else all]; 0 is all\n"
    "      --json, --csv  instead of the table; -F, --format NAME: table, json, csv\n"
    "      --why          list the functions that could not be hooked, with the reasons\n"
    "      --mangled      show the linker's names\n"
    "      --process PID  only calls of this process; 'main': without its forked children\n"
    "      --thread TID   only calls of this thread (hotfn info lists threads)\n"
    "      --by ORDER     calls, self, total, max or alloc [self if the run was timed, else calls]\n"
    "      --edges        also list callers with their callees (table, json)\n"
    "      --runs         of a merged record: mean, median, p95 and maximum over its runs, and\n"
    "                     how many runs called the function (with --by, -f, -n)\n"
    "      --no-lines     do not search for source lines\n"
    "      --symbol-dir DIR  also search DIR for debug files (may be repeated)\n"
    "      --width N      fit the table to N columns [the terminal's]\n"
    "      --full-names   do not shorten names [100 characters if the output is no terminal]\n"
    "      --color WHEN   auto, always, never\n"
    "  -o, --output FILE  instead of stdout\n"
    "Without RECORD: hotfn.hfr in this folder, which hotfn run writes by default.\n";

static const char *read_color(report_options *o, const char *when)
{
    static const char *const whens[] = { "auto", "always", "never" };
    o->color = when;
    return cli_find_name(when, whens, 3) < 3 ? NULL : "auto, always or never";
}

static const char *read_process(report_options *o, const char *argument)
{
    o->main_process = strcmp(argument, "main") == 0;
    return o->main_process || cli_parse_u32(argument, 1, UINT32_MAX, &o->process)
               ? NULL
               : "the number of a process or 'main'";
}

static const char *read_option(void *user, int option, const char *argument)
{
    report_options *o = user;
    switch (option) {
    case JSON: o->format = "json"; return NULL;
    case CSV: o->format = "csv"; return NULL;
    case 'F': o->format = argument; return NULL;
    case 'f': o->export.match = argument; return cli_check_glob(argument);
    case 'o': o->output = argument; return NULL;
    case REFUSED: o->export.flags |= HOTFN_EXPORT_REFUSED; return NULL;
    case MANGLED: o->export.flags |= HOTFN_EXPORT_MANGLED; return NULL;
    case COLOR: return read_color(o, argument);
    case PROCESS: return read_process(o, argument);
    case THREAD:
        return cli_parse_u32(argument, 1, UINT32_MAX, &o->thread) ? NULL : "the number of a thread";
    case 'n': o->limit_given = true; return cli_parse_limit(argument, &o->export.limit);
    case BY: return cli_parse_order(argument, &o->export.by);
    case NO_LINES: o->export.flags |= HOTFN_EXPORT_NO_LINES; return NULL;
    case WIDTH: return cli_parse_width(argument, &o->export.width);
    case FULL_NAMES: o->full_names = true; return NULL;
    case RUNS: o->runs = true; return NULL;
    case SYMBOL_DIR:
        return hotfn_tool_add_source_dir(argument) ? NULL : "stored: not enough memory";
    default: o->export.flags |= HOTFN_EXPORT_EDGES; return NULL;
    }
}

static bool wants_color(const report_options *o)
{
    if (strcmp(o->color, "auto") != 0) {
        return strcmp(o->color, "always") == 0;
    }
    return !o->output && fit_wants_color();
}

static void choose_widths(report_options *o)
{
    if (o->full_names) {
        o->export.width = 0;
    } else if (o->export.width == 0 && !o->output) {
        o->export.width = fit_columns();
    }
    o->export.name_width = o->full_names ? 0 : FIT_NAME_WIDTH;
}

static int show_runs(const report_options *o, hotfn_record *record, const char *path)
{
    static const char *const formats[] = { "table", "csv", "json" };
    const runs_options runs = { .format = (int)cli_find_name(o->format, formats, 3),
                                .by = o->export.by,
                                .limit = o->export.limit,
                                .match = o->export.match,
                                .name_width = o->export.name_width };
    if (runs.format > RUNS_JSON || o->output || o->process || o->thread || o->main_process ||
        o->export.flags & (HOTFN_EXPORT_REFUSED | HOTFN_EXPORT_EDGES)) {
        return cli_report_misuse(
            "hotfn report", usage,
            "--runs goes with --json, --csv, --by, -f, -n and --full-names only");
    }
    return report_runs(record, path, &runs);
}

int hotfn_command_report(int argc, char **argv)
{
    report_options o = { .format = "table", .color = "auto", .export = HOTFN_EXPORT_OPTIONS_INIT };
    const cli_options w = { usage, "f:n:F:o:", table, read_option, &o, 0, 1 };
    int status = cli_read_options(&w, argc, argv);
    if (status >= 0) {
        return status;
    }
    const char *path = cli_choose_record(argv[0], usage, argc, argv);
    if (!path) {
        return TOOL_USAGE;
    }
    hotfn_record *record = hotfn_tool_open_record("report", path, o.process, o.thread);
    if (!record) {
        return TOOL_FAILED;
    }
    if (o.main_process) {
        hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
        hotfn_record_get_info(record, &info);
        hotfn_record_choose_process(record, info.pid);
    }
    o.export.flags |= wants_color(&o) ? HOTFN_EXPORT_COLOR : 0;
    choose_widths(&o);
    if (!o.limit_given && strcmp(o.format, "table") == 0) {
        o.export.limit = 30;
    }
    status = o.runs ? show_runs(&o, record, path)
                    : hotfn_tool_export("report", record, o.format, &o.export, o.output);
    hotfn_record_close(record);
    return status;
}
