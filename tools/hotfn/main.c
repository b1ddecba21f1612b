/* SPDX-License-Identifier: MIT */
/* The command line: picks the verb and leaves the rest to it. */
#include "cli/commands.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST_VERB = 8 };

typedef struct verb {
    char name[LONGEST_VERB + 1];
    int (*run)(int argc, char **argv);
    const char *about;
} verb;

static const verb verbs[] = {
    { "run", hotfn_command_run, "run a program and count every call of its functions" },
    { "report", hotfn_command_report, "show the hot functions of a record" },
    { "export", hotfn_command_export, "write a record for other viewers" },
    { "open", hotfn_command_open, "show a record in the browser" },
    { "diff", hotfn_command_diff, "say what changed between two records" },
    { "merge", hotfn_command_merge, "make one record out of several runs" },
    { "top", hotfn_command_top, "watch what a program calls now" },
    { "info", hotfn_command_info, "show what a record holds" },
    { "repair", hotfn_command_repair, "make a clean record out of a damaged one" },
    { "scan", hotfn_command_scan, "say which functions of a file can be hooked, how, and why not" },
    { "symbols", hotfn_command_symbols, "list the symbols of a file" },
    { "list", hotfn_command_list, "list the functions of a file" },
    { "kit", hotfn_command_kit, "pack what a test machine needs to count one program" },
    { "doctor", hotfn_command_doctor, "say what this system allows" },
    { "bisect", hotfn_command_bisect, "find the function whose hook changes a program's outcome" },
};

static int usage(FILE *out, int status)
{
    fprintf(out, "usage: hotfn VERB [options] ...\n\n");
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        fprintf(out, "  %-8s %s\n", verbs[i].name, verbs[i].about);
    }
    fprintf(out, "\n  hotfn run -- ./program args   then   hotfn report hotfn.hfr\n"
                 "  hotfn VERB --help says more, and so does hotfn help VERB; hotfn --version.\n");
    return status;
}

int hotfn_tool_fail(const char *of, const hotfn_error *err)
{
    fprintf(stderr, "hotfn %s: ", of);
    if (err->file[0]) {
        fprintf(stderr, "%s: ", err->file);
    }
    if (err->offset != HOTFN_NO_OFFSET) {
        fprintf(stderr, "offset %llu: ", (unsigned long long)err->offset);
    }
    fprintf(stderr, "%s\n", err->text[0] ? err->text : hotfn_status_get_name(err->status));
    return TOOL_FAILED;
}

static char called[32] = "hotfn"; /* what messages begin with, getopt's too */

/* How many letters must be changed, put in, left out or swapped with their neighbour to come from a
 * to b (optimal string alignment). */
static size_t letters_apart(const char *a, const char *b)
{
    size_t rows[3][LONGEST_VERB + 1], width = strlen(b);
    size_t *before = rows[2], *last = rows[0], *now = rows[1];
    for (size_t j = 0; j <= width; j++) {
        last[j] = j;
    }
    for (size_t i = 0; a[i]; i++) {
        now[0] = i + 1;
        for (size_t j = 0; j < width; j++) {
            size_t least = last[j] + (a[i] != b[j]);
            least = last[j + 1] + 1 < least ? last[j + 1] + 1 : least;
            least = now[j] + 1 < least ? now[j] + 1 : least;
            bool swapped = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
            now[j + 1] = swapped && before[j - 1] + 1 < least ? before[j - 1] + 1 : least;
        }
        size_t *oldest = before;
        before = last;
        last = now;
        now = oldest;
    }
    return last[width];
}

/* What may have been meant: the nearest verb, or a program without `run --` before it. */
static int refuse_verb(const char *word)
{
    const char *nearest = NULL;
    size_t least = 3;
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        size_t apart = letters_apart(word, verbs[i].name);
        if (apart < least && apart < strlen(verbs[i].name) - 1) {
            least = apart;
            nearest = verbs[i].name;
        }
    }
    fprintf(stderr, "hotfn: no verb '%s'", word);
    if (nearest) {
        fprintf(stderr, ": did you mean '%s'?", nearest);
    } else if (strchr(word, '/') && access(word, X_OK) == 0) {
        fprintf(stderr, ": to count a program, hotfn run -- %s", word);
    }
    fputs("\n`hotfn --help` names all verbs\n", stderr);
    return TOOL_USAGE;
}

static int run_verb(int argc, char **argv)
{
    if (argc < 2) {
        return usage(stderr, TOOL_USAGE);
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
        printf("hotfn %s\n", hotfn_get_version());
        return TOOL_OK;
    }
    if (strcmp(argv[1], "help") == 0 && argc > 2) { /* hotfn help VERB */
        static char help[] = "--help";
        argv[1] = argv[2];
        argv[2] = help;
        argc = 3;
    } else if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
               strcmp(argv[1], "help") == 0) {
        return usage(stdout, TOOL_OK);
    }
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(argv[1], verbs[i].name) == 0) {
            snprintf(called, sizeof called, "hotfn %.*s", LONGEST_VERB, verbs[i].name);
            argv[1] = called;
            return verbs[i].run(argc - 1, argv + 1);
        }
    }
    return refuse_verb(argv[1]);
}

/* What a verb printed must have gone out, or its status would lie. */
int main(int argc, char **argv)
{
    int status = run_verb(argc, argv);
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "%s: the output could not be written whole%s%s\n", called,
                errno ? ": " : "", errno ? strerror(errno) : "");
        status = status == TOOL_OK || status == TOOL_THRESHOLD ? TOOL_FAILED : status;
    }
    return status;
}
