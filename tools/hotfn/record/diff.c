/* SPDX-License-Identifier: MIT */
/* `hotfn diff`: compares the functions of two records, or of two groups of records.  With
 * --fail-above the exit status reports growth, for use in CI. */
#include "diff.h"
#include "cli/cli_options.h"
#include "cli/column_widths.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAIL_ABOVE = 256, MIN_SHARE, MARKDOWN, JSON, BY, AS, WIDTH, FULL_NAMES };
enum { TABLE_ROWS = 30, MARKDOWN_ROWS = 20, MARKDOWN_NAME_WIDTH = 60 };

static const char usage[] =
    "usage: hotfn diff [options] OLD NEW\n"
    "       hotfn diff [options] OLD ... -- NEW ...     (means of several runs)\n"
    "      --by ORDER           compare calls, self or total [self if all are timed]\n"
    "      --as OLD=NEW         module OLD of the old records is module NEW of the new ones\n"
    "      --fail-above P%      exit with 3 if the sum, or a function, grew by more than P%\n"
    "      --min-share P%       ignore functions with a smaller share of the new sum [1%]\n"
    "  -n, --limit N            at most N functions [30 in the table, 20 in Markdown, else all];\n"
    "                           0 is all\n"
    "      --width N            fit the table to N columns [the terminal's]\n"
    "      --full-names         do not shorten names\n"
    "      --markdown, --json   instead of the table\n";

static const char *read_percentage(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && *out >= 0 && *out < 1e12 && strcmp(end[0] == '%' ? end + 1 : end, "") == 0
               ? NULL
               : "a percentage (10%)";
}

typedef struct choices {
    diff *diff;
    void (*show)(const diff *d);
    bool limit_given, full_names;
    diff_alias *aliases; /* room for each argument */
} choices;

static const char *read_alias(choices *c, const char *text)
{
    const char *sign = strchr(text, '=');
    if (!sign || sign == text || !sign[1]) {
        return "two names of modules (OLD=NEW)";
    }
    c->aliases[c->diff->alias_count++] =
        (diff_alias){ .old = text, .old_bytes = (uint32_t)(sign - text), .new = sign + 1 };
    return NULL;
}

static const char *read_option(void *user, int option, const char *argument)
{
    choices *c = user;
    diff *d = c->diff;
    switch (option) {
    case FAIL_ABOVE: return read_percentage(argument, &d->fail_above);
    case MIN_SHARE: return read_percentage(argument, &d->min_share);
    case MARKDOWN: c->show = diff_show_markdown; return NULL;
    case JSON: c->show = diff_show_json; return NULL;
    case AS: return read_alias(c, argument);
    case WIDTH: return cli_parse_width(argument, &d->width);
    case FULL_NAMES: c->full_names = true; return NULL;
    case BY:
        return cli_parse_order(argument, &d->by) || d->by >= HOTFN_BY_MAX ? "calls, self or total"
                                                                          : NULL;
    default: c->limit_given = true; return cli_parse_limit(argument, &d->limit);
    }
}

static void choose_limits(diff *d, const choices *c)
{
    bool is_table = c->show == diff_show_table, is_markdown = c->show == diff_show_markdown;
    if (!c->limit_given) {
        d->limit = is_table ? TABLE_ROWS : is_markdown ? MARKDOWN_ROWS : 0;
    }
    if (d->width == 0) {
        d->width = fit_columns();
    }
    if (c->full_names) {
        d->width = 0;
    }
    d->name_width = c->full_names ? 0 : is_markdown ? MARKDOWN_NAME_WIDTH : FIT_NAME_WIDTH;
}

/* ---- The timing of the runs. */

typedef struct timing {
    const diff_run *untimed, *sampled, *full; /* a run of each kind, or NULL */
} timing;

static timing find_timing(const diff *d)
{
    const diff_side *sides[] = { &d->old, &d->new };
    timing t = { NULL, NULL, NULL };
    for (size_t s = 0; s < 2; s++) {
        for (uint32_t i = 0; i < sides[s]->run_count; i++) {
            const diff_run *run = &sides[s]->runs[i];
            const diff_run **kind = run->timing_flags == 0                     ? &t.untimed
                                    : run->timing_flags & HOTFN_TIMING_SAMPLED ? &t.sampled
                                                                               : &t.full;
            *kind = *kind ? *kind : run;
        }
    }
    return t;
}

/* Choose the value to compare; false after a message if a record does not have it. */
static bool choose_order(diff *d)
{
    timing t = find_timing(d);
    d->timed = !t.untimed;
    if (d->by == HOTFN_BY_DEFAULT) {
        d->by = t.untimed ? HOTFN_BY_CALLS : t.sampled ? HOTFN_BY_TOTAL : HOTFN_BY_SELF;
    }
    if (d->by != HOTFN_BY_CALLS && t.untimed) {
        fprintf(stderr, "hotfn diff: %s was not timed; this order needs timed runs (--mode time)\n",
                t.untimed->path);
        return false;
    }
    if (d->by == HOTFN_BY_SELF && t.sampled) {
        fputs("hotfn diff: a sample has no self times; compare total or calls\n", stderr);
        return false;
    }
    if (d->by != HOTFN_BY_CALLS && t.sampled && t.full) {
        fprintf(stderr,
                "hotfn diff: %s timed a sample of the calls, %s all of them: some of the "
                "differences come from this\n",
                t.sampled->path, t.full->path);
    }
    return true;
}

/* ---- The command. */

static bool open_side(diff_side *side, char **paths, uint32_t count)
{
    side->runs = calloc(count, sizeof *side->runs);
    for (uint32_t i = 0; side->runs && i < count; i++) {
        hotfn_record_time_info info = HOTFN_RECORD_TIME_INFO_INIT;
        diff_run *run = &side->runs[side->run_count];
        run->path = paths[i];
        run->record = hotfn_tool_open_record("diff", paths[i], 0, 0);
        if (!run->record) {
            return false;
        }
        hotfn_record_get_time_info(run->record, &info);
        run->timing_flags = info.flags;
        run->tick_error_ns = info.tick_error_ns;
        side->run_count++;
    }
    return side->runs != NULL;
}

static bool has_failure(const diff *d)
{
    for (uint32_t i = 0; i < d->row_count; i++) {
        if (diff_row_fails(d, &d->rows[i])) {
            return true;
        }
    }
    return diff_sum_fails(d);
}

static int compare_records(diff *d, const choices *c)
{
    if (!choose_order(d)) {
        return TOOL_FAILED;
    }
    choose_limits(d, c);
    if (!diff_make_rows(d)) {
        fputs("hotfn diff: not enough memory\n", stderr);
        return TOOL_FAILED;
    }
    c->show(d);
    return has_failure(d) ? TOOL_THRESHOLD : TOOL_OK;
}

/* The number of old records: those before `--`, or, without that sign, the first of two.  0 after a
 * message. */
static uint32_t count_old(char **argv, int argc, uint32_t after_sign)
{
    uint32_t count = (uint32_t)(argc - optind);
    if (after_sign > 0 && after_sign < count) {
        return count - after_sign;
    }
    if (count == 2) {
        return 1;
    }
    fprintf(stderr,
            "%s: %u records without a `--` between the old and the new ones: hotfn diff OLD ... -- "
            "NEW ...\n",
            argv[0], count);
    return 0;
}

/* The number of arguments after `--`; getopt removes the sign. */
static uint32_t count_after_sign(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            return (uint32_t)(argc - i - 1);
        }
    }
    return 0;
}

static int run_diff(diff *d, choices *c, int argc, char **argv)
{
    static const struct option table[] = {
        { "fail-above", required_argument, NULL, FAIL_ABOVE },
        { "min-share", required_argument, NULL, MIN_SHARE },
        { "markdown", no_argument, NULL, MARKDOWN },
        { "json", no_argument, NULL, JSON },
        { "by", required_argument, NULL, BY },
        { "as", required_argument, NULL, AS },
        { "limit", required_argument, NULL, 'n' },
        { "width", required_argument, NULL, WIDTH },
        { "full-names", no_argument, NULL, FULL_NAMES },
        CLI_OPTIONS_END,
    };
    const cli_options w = { usage, "n:", table, read_option, c, 2, INT_MAX };
    uint32_t after_sign = count_after_sign(argc, argv), old_count;
    int status = cli_read_options(&w, argc, argv);
    if (status >= 0) {
        return status;
    }
    old_count = count_old(argv, argc, after_sign);
    if (old_count == 0) {
        return TOOL_USAGE;
    }
    if (!open_side(&d->old, argv + optind, old_count) ||
        !open_side(&d->new, argv + optind + old_count, (uint32_t)(argc - optind) - old_count)) {
        return TOOL_FAILED;
    }
    return compare_records(d, c);
}

int hotfn_command_diff(int argc, char **argv)
{
    diff d = { .fail_above = -1, .min_share = 1 };
    choices c = { .diff = &d, .show = diff_show_table };
    int status = TOOL_FAILED;
    c.aliases = calloc((size_t)argc, sizeof *c.aliases);
    d.aliases = c.aliases;
    if (c.aliases) {
        status = run_diff(&d, &c, argc, argv);
    }
    free(d.rows);
    diff_free_side(&d.old);
    diff_free_side(&d.new);
    free(c.aliases);
    return status;
}
