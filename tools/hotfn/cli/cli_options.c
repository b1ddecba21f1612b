/* SPDX-License-Identifier: MIT */
/* The command line of every command: the getopt loop, the parsers of option values, and the
 * messages about invalid options. */
#include "cli_options.h"

#include "commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int cli_refuse_argument(const char *command, const struct option *table, int option,
                        const char *argument, const char *wanted)
{
    while (table->name && table->val != option) {
        table++;
    }
    if (table->name) { /* getopt has already reported an unknown option */
        fprintf(stderr, "%s: --%s '%s' is not %s\n", command, table->name, argument, wanted);
    }
    fprintf(stderr, "`%s --help` lists all options\n", command);
    return TOOL_USAGE;
}

int cli_report_misuse(const char *command, const char *usage, const char *what)
{
    usage += strlen("usage: ");
    fprintf(stderr, "%s: %s: %.*s\n`%s --help` lists all options\n", command, what,
            (int)strcspn(usage, "\n"), usage, command);
    return TOOL_USAGE;
}

int cli_read_options(const cli_options *w, int argc, char **argv)
{
    int option;
    char letters[64];
    snprintf(letters, sizeof letters, "%sh", w->letters);
    optind = 1;
    while ((option = getopt_long(argc, argv, letters, w->table, NULL)) != -1) {
        if (option == CLI_HELP || option == 'h') {
            fputs(w->usage, stdout);
            return TOOL_OK;
        }
        const char *wanted = option == '?' ? "known" : w->read_option(w->user, option, optarg);
        if (wanted) {
            return cli_refuse_argument(argv[0], w->table, option, optarg, wanted);
        }
    }
    if (argc - optind > w->max_names) {
        char what[300];
        snprintf(what, sizeof what, "'%.250s' is one name too many", argv[optind + w->max_names]);
        return cli_report_misuse(argv[0], w->usage, what);
    }
    if (argc - optind < w->min_names) {
        return cli_report_misuse(argv[0], w->usage, "a name is missing");
    }
    return -1;
}

/* Unlike strtoull, accept no blanks, sign or trailing text. */
const char *cli_parse_u64(const char *text, uint64_t *out)
{
    char *end = NULL;
    bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    errno = 0;
    *out = strtoull(text, &end, hexadecimal ? 16 : 10);
    return text[0] >= '0' && text[0] <= '9' && *end == 0 && errno == 0 ? NULL : "a number";
}

bool cli_parse_u32(const char *text, uint32_t min, uint32_t max, uint32_t *out)
{
    uint64_t value;
    bool fits = !cli_parse_u64(text, &value) && value >= min && value <= max;
    *out = fits ? (uint32_t)value : 0;
    return fits;
}

const char *cli_parse_limit(const char *text, uint32_t *out)
{
    uint64_t value;
    const char *wanted = cli_parse_u64(text, &value);
    *out = value <= UINT32_MAX ? (uint32_t)value : 0;
    return wanted;
}

/* 2s, 500ms, 1.5m. */
const char *cli_parse_time(const char *text, uint64_t *out_ns)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = { { "ms", 1e6 }, { "us", 1e3 }, { "ns", 1 },
                  { "s", 1e9 },  { "m", 60e9 }, { "h", 3600e9 } };
    char *end;
    double value = strtod(text, &end);
    for (size_t i = 0; end != text && i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(end, units[i].unit) == 0 && value >= 0 && value * units[i].ns < 9e18) {
            *out_ns = (uint64_t)(value * units[i].ns);
            return NULL;
        }
    }
    return "a time with a unit (2s, 500ms, 1.5m)";
}

const char *cli_parse_width(const char *text, uint32_t *out)
{
    return cli_parse_u32(text, 20, 10000, out) ? NULL : "a number of columns from 20 to 10000";
}

const char *cli_check_glob(const char *text)
{
    return hotfn_glob_match(text, "") < 0 ? "a glob: close its [ or quote it with \\" : NULL;
}

uint32_t cli_find_name(const char *text, const char *const *names, uint32_t count)
{
    uint32_t i = 0;
    while (i < count && strcmp(text, names[i]) != 0) {
        i++;
    }
    return i;
}

const char *cli_parse_order(const char *text, uint32_t *by)
{
    static const char *const orders[] = { "default", "calls", "self", "total", "max", "alloc" };
    *by = cli_find_name(text, orders, 6);
    return *by < 6 ? NULL : "calls, self, total, max or alloc";
}

const char *cli_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

const char *cli_choose_record(const char *command, const char *usage, int argc, char **argv)
{
    if (optind < argc) {
        return argv[optind];
    }
    struct stat found;
    /* lstat accepts a dangling link, because opening it gives a better message. */
    if (lstat(CLI_DEFAULT_RECORD, &found) != 0) {
        cli_report_misuse(command, usage,
                          "name a record: there is no " CLI_DEFAULT_RECORD " in this folder");
        return NULL;
    }
    fprintf(stderr, "%s: no record named, using " CLI_DEFAULT_RECORD "\n", command);
    return CLI_DEFAULT_RECORD;
}

bool cli_would_overwrite(const char *command, const char *output, const char *input)
{
    struct stat a, b;
    if (stat(output, &a) != 0 || stat(input, &b) != 0 || !S_ISREG(a.st_mode) ||
        a.st_dev != b.st_dev || a.st_ino != b.st_ino) {
        return false;
    }
    fprintf(stderr,
            "hotfn %s: %s: this is the input, which would be overwritten: name another file\n",
            command, output);
    return true;
}
