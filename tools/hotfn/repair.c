/* SPDX-License-Identifier: MIT */
/* `hotfn repair`: a clean record out of one that was cut, overwritten or never finished. */
#include "verbs.h"
#include "words.h"

#include <stdio.h>
#include <sys/stat.h>

static const char usage[] =
    "usage: hotfn repair RECORD -o NEW\n"
    "Writes what can still be read of RECORD to NEW and says what could not.\n";

static const char *take(void *user, int word, const char *argument)
{
    (void)word;
    *(const char **)user = argument;
    return NULL;
}

static bool is_same_file(const char *one, const char *other)
{
    struct stat a, b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

int hotfn_verb_repair(int argc, char **argv)
{
    static const struct option table[] = { { "output", required_argument, NULL, 'o' }, WORDS_END };
    const char *output = NULL;
    const words w = { usage, "o:", table, take, &output, 1, 1 };
    char lost[4096] = "";
    hotfn_error err = HOTFN_ERROR_INIT;
    int status = words_read(&w, argc, argv);
    if (status >= 0) {
        return status;
    }
    if (!output) {
        fputs(usage, stderr);
        return TOOL_USAGE;
    }
    if (is_same_file(argv[optind], output)) {
        fprintf(stderr, "hotfn repair: %s: is the damaged record itself: name another file\n",
                output);
        return TOOL_FAILED;
    }
    if (hotfn_record_repair(argv[optind], output, lost, sizeof lost, NULL, &err) != HOTFN_OK) {
        return hotfn_tool_fail("repair", &err);
    }
    printf("%s: written%s%s\n", output, lost[0] ? "; lost: " : ", nothing lost", lost);
    return TOOL_OK;
}
