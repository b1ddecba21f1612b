/* SPDX-License-Identifier: MIT */
/* `hotfn report`: the hot functions of a record, live, finished or killed. */
#include "source_lines.h"
#include "verbs.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

typedef struct report_options {
    const char *format, *output, *color, *match;
    uint32_t limit, flags, process, by;
    bool limit_given, main_process, raw;
} report_options;

enum {
    JSON = 256,
    CSV,
    REFUSED,
    MANGLED,
    COLOR,
    PROCESS,
    BY,
    RAW,
    EDGES,
    NO_LINES,
    SYMBOL_DIR,
    HELP
};

static const struct option words[] = {
    { "json", no_argument, NULL, JSON },
    { "csv", no_argument, NULL, CSV },
    { "format", required_argument, NULL, 'F' },
    { "limit", required_argument, NULL, 'n' },
    { "refused", no_argument, NULL, REFUSED },
    { "mangled", no_argument, NULL, MANGLED },
    { "color", required_argument, NULL, COLOR },
    { "process", required_argument, NULL, PROCESS },
    { "output", required_argument, NULL, 'o' },
    { "match", required_argument, NULL, 'f' },
    { "by", required_argument, NULL, BY },
    { "raw", no_argument, NULL, RAW },
    { "edges", no_argument, NULL, EDGES },
    { "no-lines", no_argument, NULL, NO_LINES },
    { "symbol-dir", required_argument, NULL, SYMBOL_DIR },
    { "help", no_argument, NULL, HELP },
    { NULL, 0, NULL, 0 },
};

static int usage(FILE *out, int status)
{
    fputs(
        "usage: hotfn report [options] RECORD\n"
        "  -f, --match GLOB   only functions with a name that matches\n"
        "  -n, --limit N      at most N functions [30 in the table, else all]; 0 is all\n"
        "      --json, --csv  instead of the table; -F, --format NAME: table, json, csv\n"
        "      --refused      list what could not be hooked, with the reasons\n"
        "      --mangled      show the linker's names\n"
        "      --process PID  only what this process called; 'main': not its forked children\n"
        "      --by ORDER     calls, self, total, max or alloc [self if the run was timed, else calls]\n"
        "      --raw          leave the hooks' own cost in the times\n"
        "      --edges        also list who called whom (table, json)\n"
        "      --no-lines     do not look for source lines\n"
        "      --symbol-dir DIR  look for debug files there too (may be repeated)\n"
        "      --color WHEN   auto, always, never\n"
        "  -o, --output FILE  instead of stdout\n",
        out);
    return status;
}

static bool parse_number(const char *text, uint32_t *out)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    *out = (uint32_t)value;
    return end != text && *end == 0 && text[0] != '-' && value <= UINT32_MAX;
}

bool hotfn_tool_order(const char *word, uint32_t *by)
{
    static const char *const orders[] = { "default", "calls", "self", "total", "max", "alloc" };
    for (uint32_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        if (strcmp(word, orders[i]) == 0) {
            *by = i;
            return true;
        }
    }
    return false;
}

static bool take(report_options *o, int word, const char *argument)
{
    switch (word) {
    case JSON: o->format = "json"; return true;
    case CSV: o->format = "csv"; return true;
    case 'F': o->format = argument; return true;
    case 'f': o->match = argument; return true;
    case 'o': o->output = argument; return true;
    case REFUSED: o->flags |= HOTFN_EXPORT_REFUSED; return true;
    case MANGLED: o->flags |= HOTFN_EXPORT_MANGLED; return true;
    case COLOR:
        o->color = argument;
        return strcmp(argument, "auto") == 0 || strcmp(argument, "always") == 0 ||
               strcmp(argument, "never") == 0;
    case PROCESS:
        o->main_process = strcmp(argument, "main") == 0;
        return o->main_process || parse_number(argument, &o->process);
    case 'n': o->limit_given = true; return parse_number(argument, &o->limit);
    case BY: return hotfn_tool_order(argument, &o->by);
    case RAW: return o->raw = true;
    case NO_LINES: o->flags |= HOTFN_EXPORT_NO_LINES; return true;
    case SYMBOL_DIR: return hotfn_tool_source_dir(argument);
    case EDGES: o->flags |= HOTFN_EXPORT_EDGES; return true;
    default: return false;
    }
}

/* no-color.org: NO_COLOR, not empty, wins; a dumb terminal has none. */
static bool wants_color(const report_options *o)
{
    const char *no = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    if (strcmp(o->color, "auto") != 0) {
        return strcmp(o->color, "always") == 0;
    }
    return !o->output && isatty(1) && !(no && no[0]) && terminal && strcmp(terminal, "dumb") != 0;
}

static uint32_t terminal_width(const report_options *o)
{
    struct winsize size;
    return !o->output && isatty(1) && ioctl(1, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static int32_t write_out(void *user, const void *bytes, size_t count)
{
    return fwrite(bytes, 1, count, user) == count ? 0 : -1;
}

static int export(const hotfn_record *record, const report_options *o)
{
    hotfn_env env = hotfn_tool_env();
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_export_options options = HOTFN_EXPORT_OPTIONS_INIT;
    bool table = strcmp(o->format, "table") == 0;
    options.flags = o->flags | (wants_color(o) ? HOTFN_EXPORT_COLOR : 0);
    options.limit = o->limit_given ? o->limit : table ? 30 : 0;
    options.width = terminal_width(o);
    options.match = o->match;
    options.by = o->by;
    FILE *out = o->output && strcmp(o->output, "-") != 0 ? fopen(o->output, "we") : stdout;
    if (!out) {
        perror(o->output);
        return TOOL_FAILED;
    }
    hotfn_status s = hotfn_export(record, o->format, &options, write_out, out, &env, &err);
    bool written = fflush(out) == 0;
    if (out != stdout) {
        written = fclose(out) == 0 && written;
    }
    if (s != HOTFN_OK) {
        hotfn_tool_fail("report", &err);
        return s == HOTFN_E_NOT_FOUND || s == HOTFN_E_OPTION ? TOOL_USAGE : TOOL_FAILED;
    }
    if (!written) {
        perror("hotfn report: the output could not be written");
        return TOOL_FAILED;
    }
    return TOOL_OK;
}

int hotfn_verb_report(int argc, char **argv)
{
    report_options o = { .format = "table", .color = "auto" };
    hotfn_record *record;
    hotfn_error err = HOTFN_ERROR_INIT;
    int word;
    optind = 1;
    while ((word = getopt_long(argc, argv, "f:n:F:o:", words, NULL)) != -1) {
        if (word == HELP) {
            return usage(stdout, TOOL_OK);
        }
        if (!take(&o, word, optarg)) {
            if (word != '?') {
                fprintf(stderr, "hotfn report: '%s' does not fit this option\n", optarg);
            }
            return usage(stderr, TOOL_USAGE);
        }
    }
    if (optind + 1 != argc) {
        return usage(stderr, TOOL_USAGE);
    }
    if (hotfn_record_open(&record, argv[optind], NULL, &err) != HOTFN_OK) {
        return hotfn_tool_fail("report", &err);
    }
    if (o.main_process) {
        hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
        hotfn_record_get_info(record, &info);
        o.process = info.pid;
    }
    if (o.process && hotfn_record_choose_process(record, o.process) != HOTFN_OK) {
        fprintf(stderr, "hotfn report: no process %u in this record (hotfn info lists them)\n",
                o.process);
        hotfn_record_close(record);
        return TOOL_FAILED;
    }
    hotfn_record_choose_raw(record, o.raw);
    int status = export(record, &o);
    hotfn_record_close(record);
    return status;
}
