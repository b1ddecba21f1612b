/* SPDX-License-Identifier: MIT */
/* `hotfn repair`: a clean record out of one that was cut, overwritten or never finished. */
#include "verbs.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static int usage(FILE *out, int status)
{
    fputs("usage: hotfn repair RECORD -o NEW\n"
          "Writes what can still be read of RECORD to NEW and says what could not.\n",
          out);
    return status;
}

int hotfn_verb_repair(int argc, char **argv)
{
    static const struct option words[] = { { "output", required_argument, NULL, 'o' },
                                           { "help", no_argument, NULL, 'h' },
                                           { NULL, 0, NULL, 0 } };
    const char *output = NULL;
    char lost[4096] = "";
    hotfn_error err = HOTFN_ERROR_INIT;
    int word;
    optind = 1;
    while ((word = getopt_long(argc, argv, "o:", words, NULL)) != -1) {
        if (word == 'h') {
            return usage(stdout, TOOL_OK);
        }
        if (word != 'o') {
            return usage(stderr, TOOL_USAGE);
        }
        output = optarg;
    }
    if (optind + 1 != argc || !output) {
        return usage(stderr, TOOL_USAGE);
    }
    if (hotfn_record_repair(argv[optind], output, lost, sizeof lost, NULL, &err) != HOTFN_OK) {
        return hotfn_tool_fail("repair", &err);
    }
    printf("%s: written%s%s\n", output, lost[0] ? "; lost: " : ", nothing lost", lost);
    return TOOL_OK;
}
