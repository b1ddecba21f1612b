/* SPDX-License-Identifier: MIT */
/* `hotfn repair`: make a finished record of a truncated, overwritten or unfinished record. */
#include "cli/cli_options.h"
#include "cli/commands.h"

#include <stdio.h>

static const char usage[] = "usage: hotfn repair RECORD -o NEW\n"
                            "Writes the readable part of RECORD to NEW and prints what was lost.\n";

static const char *read_option(void *user, int word, const char *argument)
{
    (void)word;
    *(const char **)user = argument;
    return NULL;
}

int hotfn_command_repair(int argc, char **argv)
{
    static const struct option table[] = { { "output", required_argument, NULL, 'o' }, WORDS_END };
    const char *output = NULL;
    const words w = { usage, "o:", table, read_option, &output, 1, 1 };
    char lost[4096] = "";
    hotfn_error err = HOTFN_ERROR_INIT;
    int status = words_read(&w, argc, argv);
    if (status >= 0) {
        return status;
    }
    if (!output) {
        return words_misused(argv[0], usage, "-o is missing");
    }
    if (words_overwrites("repair", output, argv[optind])) {
        return TOOL_FAILED;
    }
    if (hotfn_record_repair(argv[optind], output, lost, sizeof lost, NULL, &err) != HOTFN_OK) {
        return hotfn_tool_fail("repair", &err);
    }
    printf("%s: written%s%s\n", output, lost[0] ? "; lost: " : ", nothing lost", lost);
    return TOOL_OK;
}
