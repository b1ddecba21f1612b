/* SPDX-License-Identifier: MIT */
/* The command line: selects the command and passes the remaining arguments to it. */
#include "cli/commands.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_COMMAND_NAME = 8 };

typedef struct command {
    char name[MAX_COMMAND_NAME + 1];
    int (*run)(int argc, char **argv);
    const char *about;
} command;

static const command commands[] = {
    { "run", hotfn_command_run, "run a program and count every call of its functions" },
    { "attach", hotfn_command_attach, "count the calls of a process that runs already" },
    { "detach", hotfn_command_detach, "restore the code of a process that hotfn has attached to" },
    { "ctl", hotfn_command_ctl, "switch functions of a running program off, on, or to times" },
    { "report", hotfn_command_report, "show the hot functions of a record" },
    { "export", hotfn_command_export, "write a record for other viewers" },
    { "open", hotfn_command_open, "show a record in the browser" },
    { "diff", hotfn_command_diff, "show what changed between two records" },
    { "merge", hotfn_command_merge, "make one record out of several runs" },
#ifdef HOTFN_HAVE_PUSH
    { "push", hotfn_command_push, "send records to a hotfn-collector" },
#endif
    { "top", hotfn_command_top, "watch what a program calls now" },
    { "listen", hotfn_command_listen, "show what a program calls, as it happens, on any machine" },
    { "info", hotfn_command_info, "show what a record holds" },
    { "repair", hotfn_command_repair, "make a clean record out of a damaged one" },
    { "scan", hotfn_command_scan,
      "show which functions of a file can be hooked, how, and why not" },
    { "symbols", hotfn_command_symbols, "list the symbols of a file" },
    { "list", hotfn_command_list, "list the functions of a file" },
    { "kit", hotfn_command_kit, "pack what a test machine needs to count one program" },
    { "doctor", hotfn_command_doctor, "check whether counting works on this system" },
    { "bisect", hotfn_command_bisect, "find the function whose hook changes a program's outcome" },
};

static int print_usage(FILE *out, int status)
{
    fprintf(out, "usage: hotfn COMMAND [options] ...\n\n");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].about);
    }
    fprintf(out, "\n  hotfn run -- ./program args   then   hotfn report hotfn.hfr\n"
                 "  hotfn COMMAND --help or hotfn help COMMAND gives details; hotfn --version.\n");
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

static char message_prefix[32] = "hotfn"; /* of getopt's messages too */

/* The number of letters to change, insert, delete or swap with their neighbour that turns a into b
 * (optimal string alignment). */
static size_t letters_apart(const char *a, const char *b)
{
    size_t rows[3][MAX_COMMAND_NAME + 1], width = strlen(b);
    size_t *before = rows[2], *last = rows[0], *now = rows[1];
    for (size_t j = 0; j <= width; j++) {
        last[j] = j;
    }
    for (size_t i = 0; a[i]; i++) {
        now[0] = i + 1;
        for (size_t j = 0; j < width; j++) {
            size_t smallest = last[j] + (a[i] != b[j]);
            smallest = last[j + 1] + 1 < smallest ? last[j + 1] + 1 : smallest;
            smallest = now[j] + 1 < smallest ? now[j] + 1 : smallest;
            bool swapped = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
            now[j + 1] = swapped && before[j - 1] + 1 < smallest ? before[j - 1] + 1 : smallest;
        }
        size_t *oldest = before;
        before = last;
        last = now;
        now = oldest;
    }
    return last[width];
}

/* Suggest the nearest command name, or `run --` if the word is a program. */
static int refuse_command(const char *word)
{
    const char *nearest = NULL;
    size_t smallest = 3;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        size_t apart = letters_apart(word, commands[i].name);
        if (apart < smallest && apart < strlen(commands[i].name) - 1) {
            smallest = apart;
            nearest = commands[i].name;
        }
    }
    fprintf(stderr, "hotfn: no command '%s'", word);
    if (nearest) {
        fprintf(stderr, ": did you mean '%s'?", nearest);
    } else if (strchr(word, '/') && access(word, X_OK) == 0) {
        fprintf(stderr, ": to count a program, hotfn run -- %s", word);
    }
    fputs("\n`hotfn --help` lists all commands\n", stderr);
    return TOOL_USAGE;
}

static int run_command(int argc, char **argv)
{
    if (argc < 2) {
        return print_usage(stderr, TOOL_USAGE);
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
        printf("hotfn %s\n", hotfn_get_version());
        return TOOL_OK;
    }
    if (strcmp(argv[1], "help") == 0 && argc > 2) { /* hotfn help COMMAND */
        static char help[] = "--help";
        argv[1] = argv[2];
        argv[2] = help;
        argc = 3;
    } else if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
               strcmp(argv[1], "help") == 0) {
        return print_usage(stdout, TOOL_OK);
    }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            snprintf(message_prefix, sizeof message_prefix, "hotfn %.*s", MAX_COMMAND_NAME,
                     commands[i].name);
            argv[1] = message_prefix;
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    return refuse_command(argv[1]);
}

/* A failure to write the output must change the exit status. */
int main(int argc, char **argv)
{
    int status = run_command(argc, argv);
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "%s: the output could not be written completely%s%s\n", message_prefix,
                errno ? ": " : "", errno ? strerror(errno) : "");
        status = status == TOOL_OK || status == TOOL_THRESHOLD ? TOOL_FAILED : status;
    }
    return status;
}
