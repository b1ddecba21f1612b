/* SPDX-License-Identifier: MIT */
/* `hotfn merge`: make one record of several runs. */
#include "cli/cli_options.h"
#include "cli/commands.h"

#include <limits.h>
#include <stdio.h>

static const char usage[] =
    "usage: hotfn merge [--mode MODE] -o FILE RECORD ...\n"
    "  -o, --output FILE  the new record\n"
    "      --mode MODE    sum, mean, mean-called, median, p95, min or max of each function\n"
    "                     [sum]\n";

typedef struct choices {
    const char *output;
    uint32_t mode;
} choices;

static const char *read_option(void *user, int option, const char *argument)
{
    static const char *const modes[] = {
        "sum", "mean", "min", "max", "median", "p95", "mean-called"
    };
    const uint32_t count = sizeof modes / sizeof modes[0];
    choices *c = user;
    if (option == 'o') {
        c->output = argument;
        return NULL;
    }
    c->mode = cli_find_name(argument, modes, count);
    return c->mode < count ? NULL : "sum, mean, mean-called, median, p95, min or max";
}

/* Count the timed and the sampled records.  Call this before the merge, whose output may replace
 * one of the records. */
static uint32_t count_timed(char **paths, uint32_t count, uint32_t *sampled)
{
    uint32_t timed = 0;
    for (uint32_t i = 0; i < count; i++) {
        hotfn_record_time_info info = HOTFN_RECORD_TIME_INFO_INIT;
        hotfn_record *record = NULL;
        if (hotfn_record_open(&record, paths[i], NULL, NULL) == HOTFN_OK) {
            hotfn_record_get_time_info(record, &info);
            hotfn_tool_warn_unread_times("merge", paths[i], record);
        }
        hotfn_record_close(record);
        timed += info.flags != 0;
        *sampled += (info.flags & HOTFN_TIMING_SAMPLED) != 0;
    }
    return timed;
}

int hotfn_command_merge(int argc, char **argv)
{
    static const struct option table[] = {
        { "output", required_argument, NULL, 'o' },
        { "mode", required_argument, NULL, 'm' },
        CLI_OPTIONS_END,
    };
    hotfn_error err = HOTFN_ERROR_INIT;
    choices c = { NULL, HOTFN_MERGE_SUM };
    const cli_options w = { usage, "o:", table, read_option, &c, 1, INT_MAX };
    int status = cli_read_options(&w, argc, argv);
    if (status >= 0) {
        return status;
    }
    if (!c.output) {
        return cli_report_misuse(argv[0], usage, "-o is missing");
    }
    hotfn_env env = hotfn_tool_env();
    uint32_t count = (uint32_t)(argc - optind);
    uint32_t sampled = 0, timed = count_timed(argv + optind, count, &sampled);
    if (hotfn_record_merge((const char *const *)argv + optind, count, c.output, c.mode, &env,
                           &err) != HOTFN_OK) {
        return hotfn_tool_fail("merge", &err);
    }
    if (timed > 0 && timed < count) { /* times are merged only if every record has them */
        fprintf(stderr, "hotfn merge: only %u of %u records %s timed: only calls are merged\n",
                timed, count, timed == 1 ? "was" : "were");
    }
    if (timed == count && sampled > 0 && sampled < count) {
        fprintf(stderr,
                "hotfn merge: %u of %u records timed a sample of the calls: the merged times "
                "include estimates\n",
                sampled, count);
    }
    return TOOL_OK;
}
