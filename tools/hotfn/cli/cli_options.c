/* SPDX-License-Identifier: MIT */
/* Options of the command line: the loop over them, their values, and the messages about wrong
 * ones. */
#include "cli_options.h"

#include "commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int words_refuse(const char *of, const struct option *table, int word, const char *argument,
                 const char *wanted)
{
    while (table->name && table->val != word) {
        table++;
    }
    if (table->name) { /* else getopt has reported it */
        fprintf(stderr, "%s: --%s '%s' is not %s\n", of, table->name, argument, wanted);
    }
    fprintf(stderr, "`%s --help` lists all options\n", of);
    return TOOL_USAGE;
}

int words_misused(const char *of, const char *usage, const char *what)
{
    usage += strlen("usage: ");
    fprintf(stderr, "%s: %s: %.*s\n`%s --help` lists all options\n", of, what,
            (int)strcspn(usage, "\n"), usage, of);
    return TOOL_USAGE;
}

int words_read(const words *w, int argc, char **argv)
{
    int word;
    optind = 1;
    while ((word = getopt_long(argc, argv, w->letters, w->table, NULL)) != -1) {
        if (word == WORDS_HELP) {
            fputs(w->usage, stdout);
            return TOOL_OK;
        }
        const char *wanted = word == '?' ? "known" : w->take(w->user, word, optarg);
        if (wanted) {
            return words_refuse(argv[0], w->table, word, optarg, wanted);
        }
    }
    if (argc - optind > w->max_names) {
        char what[300];
        snprintf(what, sizeof what, "'%.250s' is one name too many", argv[optind + w->max_names]);
        return words_misused(argv[0], w->usage, what);
    }
    if (argc - optind < w->min_names) {
        return words_misused(argv[0], w->usage, "a name is missing");
    }
    return -1;
}

/* Digits with nothing before or after them. */
const char *words_u64(const char *text, uint64_t *out)
{
    char *end = NULL;
    bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    errno = 0;
    *out = strtoull(text, &end, hexadecimal ? 16 : 10);
    return text[0] >= '0' && text[0] <= '9' && *end == 0 && errno == 0 ? NULL : "a number";
}

bool words_u32(const char *text, uint32_t min, uint32_t max, uint32_t *out)
{
    uint64_t value;
    bool fits = !words_u64(text, &value) && value >= min && value <= max;
    *out = fits ? (uint32_t)value : 0;
    return fits;
}

const char *words_limit(const char *text, uint32_t *out)
{
    uint64_t value;
    const char *wanted = words_u64(text, &value);
    *out = value <= UINT32_MAX ? (uint32_t)value : 0;
    return wanted;
}

/* 2s, 500ms, 1.5m; a bare number is seconds. */
const char *words_time(const char *text, uint64_t *out_ns)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = { { "ms", 1e6 }, { "us", 1e3 },   { "ns", 1 }, { "s", 1e9 },
                  { "m", 60e9 }, { "h", 3600e9 }, { "", 1e9 } };
    char *end;
    double value = strtod(text, &end);
    for (size_t i = 0; end != text && i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(end, units[i].unit) == 0 && value >= 0 && value * units[i].ns < 9e18) {
            *out_ns = (uint64_t)(value * units[i].ns);
            return NULL;
        }
    }
    return "a time (2s, 500ms, 1.5m)";
}

const char *words_glob(const char *text)
{
    return hotfn_glob_match(text, "") < 0 ? "a glob: close its [ or quote it with \\" : NULL;
}

uint32_t words_one_of(const char *text, const char *const *names, uint32_t count)
{
    uint32_t i = 0;
    while (i < count && strcmp(text, names[i]) != 0) {
        i++;
    }
    return i;
}

const char *words_order(const char *text, uint32_t *by)
{
    static const char *const orders[] = { "default", "calls", "self", "total", "max", "alloc" };
    *by = words_one_of(text, orders, 6);
    return *by < 6 ? NULL : "calls, self, total, max or alloc";
}

const char *words_s(uint64_t count)
{
    return count == 1 ? "" : "s";
}

const char *words_record(const char *of, const char *usage, int argc, char **argv)
{
    if (optind < argc) {
        return argv[optind];
    }
    struct stat found;
    if (lstat(WORDS_RECORD, &found) != 0) { /* a dangling link: opening it reports more */
        words_misused(of, usage, "no record is named, and there is no " WORDS_RECORD " here");
        return NULL;
    }
    fprintf(stderr, "%s: no record is named: this is " WORDS_RECORD "\n", of);
    return WORDS_RECORD;
}

bool words_overwrites(const char *command, const char *output, const char *input)
{
    struct stat a, b;
    if (stat(output, &a) != 0 || stat(input, &b) != 0 || !S_ISREG(a.st_mode) ||
        a.st_dev != b.st_dev || a.st_ino != b.st_ino) {
        return false;
    }
    fprintf(stderr, "hotfn %s: %s: is the input, which would be lost: name another file\n", command,
            output);
    return true;
}
