/* SPDX-License-Identifier: MIT */
/* `hotfn diff`: what changed between two records; with --fail-above it answers a build with its exit
 * status. */
#include "diff.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAIL_ABOVE = 256, LEAST, MARKDOWN, JSON, BY, HELP };

static int usage(FILE *out, int status)
{
    fputs("usage: hotfn diff [options] OLD NEW\n"
          "      --by ORDER           compare calls, self or total [self if both are timed]\n"
          "      --fail-above P%      exit with 3 if the sum, or a function that matters, grew by\n"
          "                           more\n"
          "      --least P%           a function matters with this share of the new sum [1%]\n"
          "  -n, --limit N            at most N functions [30 in the table, else all]; 0 is all\n"
          "      --markdown, --json   instead of the table\n",
          out);
    return status;
}

static bool percent(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && *out >= 0 && *out < 1e12 &&
           strcmp(end[0] == '%' ? end + 1 : end, "") == 0;
}

typedef struct choices {
    bool markdown, json, limit_given, by_given;
} choices;

static bool take(diff *d, choices *c, int word, const char *argument)
{
    char *end;
    switch (word) {
    case FAIL_ABOVE: return percent(argument, &d->fail_above);
    case LEAST: return percent(argument, &d->least);
    case MARKDOWN: return c->markdown = true;
    case JSON: return c->json = true;
    case BY: c->by_given = true; return hotfn_tool_order(argument, &d->by) && d->by < HOTFN_BY_MAX;
    case 'n':
        c->limit_given = true;
        d->limit = (uint32_t)strtoul(argument, &end, 10);
        return end != argument && *end == 0 && argument[0] != '-';
    default: return false;
    }
}

static bool is_timed(const hotfn_record *record)
{
    hotfn_record_time_info info = HOTFN_RECORD_TIME_INFO_INIT;
    hotfn_record_get_time_info(record, &info);
    return info.flags != 0;
}

static bool any_fails(const diff *d)
{
    for (uint32_t i = 0; i < d->row_count; i++) {
        if (diff_row_fails(d, &d->rows[i])) {
            return true;
        }
    }
    return diff_sum_fails(d);
}

static int compare(diff *d, const choices *c)
{
    d->timed = is_timed(d->old) && is_timed(d->new);
    if (d->by == HOTFN_BY_DEFAULT) {
        d->by = d->timed ? HOTFN_BY_SELF : HOTFN_BY_CALLS;
    }
    if (d->by != HOTFN_BY_CALLS && !d->timed) {
        fputs("hotfn diff: both records must be timed for that (run with --mode time)\n", stderr);
        return TOOL_FAILED;
    }
    if (!c->limit_given && !c->json && !c->markdown) {
        d->limit = 30;
    }
    if (!diff_match(d)) {
        fputs("hotfn diff: no memory\n", stderr);
        return TOOL_FAILED;
    }
    (c->json ? diff_show_json : c->markdown ? diff_show_markdown : diff_show_table)(d);
    if (fflush(stdout) != 0) {
        perror("hotfn diff: the output could not be written");
        return TOOL_FAILED;
    }
    return any_fails(d) ? TOOL_THRESHOLD : TOOL_OK;
}

int hotfn_verb_diff(int argc, char **argv)
{
    static const struct option words[] = {
        { "fail-above", required_argument, NULL, FAIL_ABOVE },
        { "least", required_argument, NULL, LEAST },
        { "markdown", no_argument, NULL, MARKDOWN },
        { "json", no_argument, NULL, JSON },
        { "by", required_argument, NULL, BY },
        { "limit", required_argument, NULL, 'n' },
        { "help", no_argument, NULL, HELP },
        { NULL, 0, NULL, 0 },
    };
    diff d = { .fail_above = -1, .least = 1 };
    hotfn_error err = HOTFN_ERROR_INIT;
    choices c = { 0 };
    int word, status;
    optind = 1;
    while ((word = getopt_long(argc, argv, "n:", words, NULL)) != -1) {
        if (word == HELP) {
            return usage(stdout, TOOL_OK);
        }
        if (!take(&d, &c, word, optarg)) {
            if (word != '?') {
                fprintf(stderr, "hotfn diff: '%s' does not fit this option\n", optarg);
            }
            return usage(stderr, TOOL_USAGE);
        }
    }
    if (optind + 2 != argc) {
        return usage(stderr, TOOL_USAGE);
    }
    d.old_path = argv[optind];
    d.new_path = argv[optind + 1];
    if (hotfn_record_open(&d.old, d.old_path, NULL, &err) != HOTFN_OK ||
        hotfn_record_open(&d.new, d.new_path, NULL, &err) != HOTFN_OK) {
        status = hotfn_tool_fail("diff", &err);
    } else {
        status = compare(&d, &c);
    }
    free(d.rows);
    hotfn_record_close(d.old);
    hotfn_record_close(d.new);
    return status;
}
