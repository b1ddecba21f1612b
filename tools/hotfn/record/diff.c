/* SPDX-License-Identifier: MIT */
/* `hotfn diff`: compares the functions of two records.  With --fail-above the exit status reports
 * growth, for use in CI. */
#include "diff.h"
#include "cli/cli_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAIL_ABOVE = 256, MIN_SHARE, MARKDOWN, JSON, BY };

static const char usage[] =
    "usage: hotfn diff [options] OLD NEW\n"
    "      --by ORDER           compare calls, self or total [self if both are timed]\n"
    "      --fail-above P%      exit with 3 if the sum, or a function, grew by more than P%\n"
    "      --min-share P%       ignore functions with a smaller share of the new sum [1%]\n"
    "  -n, --limit N            at most N functions [30 in the table, else all]; 0 is all\n"
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
    bool limit_given;
} choices;

static const char *read_option(void *user, int option, const char *argument)
{
    choices *c = user;
    diff *d = c->diff;
    switch (option) {
    case FAIL_ABOVE: return read_percentage(argument, &d->fail_above);
    case MIN_SHARE: return read_percentage(argument, &d->min_share);
    case MARKDOWN: c->show = diff_show_markdown; return NULL;
    case JSON: c->show = diff_show_json; return NULL;
    case BY:
        return cli_parse_order(argument, &d->by) || d->by >= HOTFN_BY_MAX ? "calls, self or total"
                                                                          : NULL;
    default: c->limit_given = true; return cli_parse_limit(argument, &d->limit);
    }
}

static uint32_t get_timing_flags(const hotfn_record *record)
{
    hotfn_record_time_info info = HOTFN_RECORD_TIME_INFO_INIT;
    hotfn_record_get_time_info(record, &info);
    return info.flags;
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
    uint32_t old = get_timing_flags(d->old), new = get_timing_flags(d->new);
    d->timed = old && new;
    if (d->by == HOTFN_BY_DEFAULT) {
        d->by = !d->timed                            ? HOTFN_BY_CALLS
                : (old | new) & HOTFN_TIMING_SAMPLED ? HOTFN_BY_TOTAL
                                                     : HOTFN_BY_SELF;
    }
    if (d->by != HOTFN_BY_CALLS && !d->timed) {
        fprintf(stderr,
                "hotfn diff: %s was not timed; this order needs two timed runs (--mode time)\n",
                old ? d->new_path : d->old_path);
        return TOOL_FAILED;
    }
    if (d->by == HOTFN_BY_SELF && (old | new) & HOTFN_TIMING_SAMPLED) {
        fputs("hotfn diff: a sample has no self times; compare total or calls\n", stderr);
        return TOOL_FAILED;
    }
    if (d->by != HOTFN_BY_CALLS && ((old ^ new) & HOTFN_TIMING_SAMPLED)) {
        fprintf(stderr,
                "hotfn diff: %s timed a sample of the calls, the other record all of them: some of "
                "the differences come from this\n",
                old & HOTFN_TIMING_SAMPLED ? d->old_path : d->new_path);
    }
    if (!c->limit_given && c->show == diff_show_table) {
        d->limit = 30;
    }
    if (!diff_match_functions(d)) {
        fputs("hotfn diff: not enough memory\n", stderr);
        return TOOL_FAILED;
    }
    c->show(d);
    return has_failure(d) ? TOOL_THRESHOLD : TOOL_OK;
}

int hotfn_command_diff(int argc, char **argv)
{
    static const struct option table[] = {
        { "fail-above", required_argument, NULL, FAIL_ABOVE },
        { "min-share", required_argument, NULL, MIN_SHARE },
        { "markdown", no_argument, NULL, MARKDOWN },
        { "json", no_argument, NULL, JSON },
        { "by", required_argument, NULL, BY },
        { "limit", required_argument, NULL, 'n' },
        CLI_OPTIONS_END,
    };
    diff d = { .fail_above = -1, .min_share = 1 };
    choices c = { .diff = &d, .show = diff_show_table };
    const cli_options w = { usage, "n:", table, read_option, &c, 2, 2 };
    int status = cli_read_options(&w, argc, argv);
    if (status >= 0) {
        return status;
    }
    status = TOOL_FAILED;
    d.old_path = argv[optind];
    d.new_path = argv[optind + 1];
    d.old = hotfn_tool_record("diff", d.old_path, 0, 0);
    d.new = d.old ? hotfn_tool_record("diff", d.new_path, 0, 0) : NULL;
    if (d.new) {
        status = compare_records(&d, &c);
    }
    free(d.rows);
    hotfn_record_close(d.old);
    hotfn_record_close(d.new);
    return status;
}
