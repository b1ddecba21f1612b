/* SPDX-License-Identifier: MIT */
/* `hotfn merge`: several runs as one record. */
#include "verbs.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static int usage(FILE *out, int status)
{
    fputs("usage: hotfn merge [--mode MODE] -o FILE RECORD ...\n"
          "  -o, --output FILE  the new record\n"
          "      --mode MODE    sum, mean, min or max of each function [sum]\n",
          out);
    return status;
}

static bool take_mode(const char *word, uint32_t *mode)
{
    static const char *const modes[] = { "sum", "mean", "min", "max" };
    for (uint32_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(word, modes[i]) == 0) {
            *mode = i;
            return true;
        }
    }
    fprintf(stderr, "hotfn merge: no mode '%s': sum, mean, min or max\n", word);
    return false;
}

/* Times of some runs only would be no sum: say that they are left out. */
static void tell_untimed(char **paths, uint32_t count)
{
    uint32_t timed = 0;
    for (uint32_t i = 0; i < count; i++) {
        hotfn_record_time_info info = HOTFN_RECORD_TIME_INFO_INIT;
        hotfn_record *record = NULL;
        if (hotfn_record_open(&record, paths[i], NULL, NULL) == HOTFN_OK) {
            hotfn_record_get_time_info(record, &info);
        }
        hotfn_record_close(record);
        timed += info.flags != 0;
    }
    if (timed > 0 && timed < count) {
        fprintf(stderr, "hotfn merge: only %u of %u records were timed: calls alone are merged\n",
                timed, count);
    }
}

int hotfn_verb_merge(int argc, char **argv)
{
    static const struct option words[] = {
        { "output", required_argument, NULL, 'o' },
        { "mode", required_argument, NULL, 'm' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    hotfn_error err = HOTFN_ERROR_INIT;
    const char *output = NULL;
    uint32_t mode = HOTFN_MERGE_SUM;
    int word;
    optind = 1;
    while ((word = getopt_long(argc, argv, "o:", words, NULL)) != -1) {
        switch (word) {
        case 'o': output = optarg; break;
        case 'm':
            if (!take_mode(optarg, &mode)) {
                return usage(stderr, TOOL_USAGE);
            }
            break;
        case 'h': return usage(stdout, TOOL_OK);
        default: return usage(stderr, TOOL_USAGE);
        }
    }
    if (!output || optind == argc) {
        return usage(stderr, TOOL_USAGE);
    }
    if (hotfn_record_merge((const char *const *)argv + optind, (uint32_t)(argc - optind), output,
                           mode, NULL, &err) != HOTFN_OK) {
        return hotfn_tool_fail("merge", &err);
    }
    tell_untimed(argv + optind, (uint32_t)(argc - optind));
    return TOOL_OK;
}
