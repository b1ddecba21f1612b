/* SPDX-License-Identifier: MIT */
/* `hotfn repair`: turns a truncated, overwritten or unfinished record into a finished record. */
#include "cli/cli_options.h"
#include "cli/commands.h"

#include <stdio.h>

static const char usage[] = "usage: hotfn repair RECORD -o NEW\n"
                            "Writes the readable part of RECORD to NEW and prints what was lost.\n";

static const char *read_option(void *user, int option, const char *argument)
{
    (void)option;
    *(const char **)user = argument;
    return NULL;
}

int hotfn_command_repair(int argc, char **argv)
{
    static const struct option table[] = { { "output", required_argument, NULL, 'o' },
                                           CLI_OPTIONS_END };
    const char *output = NULL;
    const cli_options w = { usage, "o:", table, read_option, &output, 1, 1 };
    char lost[4096] = "";
    hotfn_error err = HOTFN_ERROR_INIT;
    int status = cli_read_options(&w, argc, argv);
    if (status >= 0) {
        return status;
    }
    if (!output) {
        return cli_report_misuse(argv[0], usage, "-o is missing");
    }
    if (cli_would_overwrite("repair", output, argv[optind])) {
        return TOOL_FAILED;
    }
    if (hotfn_record_repair(argv[optind], output, lost, sizeof lost, NULL, &err) != HOTFN_OK) {
        return hotfn_tool_fail("repair", &err);
    }
    printf("%s: written%s%s\n", output, lost[0] ? "; lost: " : ", nothing lost", lost);
    return TOOL_OK;
}
