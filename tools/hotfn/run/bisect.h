/* SPDX-License-Identifier: MIT */
/* The parts of `hotfn bisect`: one trial of the command, and the search over sets of functions. */
#ifndef HOTFN_TOOL_BISECT_H
#define HOTFN_TOOL_BISECT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BISECT_BY_OUTPUT 0  /* exit status or stdout differs from the bare command's */
#define BISECT_BY_EXIT 1    /* exit status alone                                     */
#define BISECT_BY_COMMAND 2 /* a shell command exits with a status other than 0      */

/* The command to run, and how two of its outcomes are compared. */
typedef struct bisect_setup {
    char folder[PATH_MAX - 64]; /* temporary: outputs, lists and records       */
    char self[PATH_MAX];        /* this program                                */
    char **run_arguments;       /* options for `hotfn run`                     */
    int run_argument_count;
    char **command;      /* NULL-terminated                                     */
    uint64_t timeout_ns; /* a longer trial counts as a hang; 0: no limit       */
    int by;              /* BISECT_BY_*                                        */
    const char *check;   /* BY_COMMAND: exits with 0 if the stdout that it reads is good */
    bool interrupted;    /* by SIGINT or SIGTERM                               */
} bisect_setup;

/* How a trial ended. */
typedef struct bisect_outcome {
    int status; /* from waitpid */
    bool hung;
    uint64_t time_ns;
    char output[PATH_MAX]; /* file with its stdout */
} bisect_outcome;

/* bisect_trial.c.  SIGINT, SIGTERM and SIGCHLD are blocked between begin and end. */
bool bisect_begin(bisect_setup *s);
void bisect_end(bisect_setup *s);
/* Run the command once.  list: NULL runs it without hooks, "" hooks all functions, anything else is
 * the path of an --only-list file.  label is the name of the output file; a hooked run also writes
 * record.hfr in the folder.  False after a message if the run failed, or if it was interrupted. */
bool bisect_trial(bisect_setup *s, const char *list, const char *label, bisect_outcome *out);
/* Run the --check command on the outcome's output; true: the outcome is bad. */
bool bisect_check_fails(const bisect_setup *s, const bisect_outcome *o);
/* "exit status 1", "signal 11", "no end within 10 s". */
void bisect_format_outcome(const bisect_outcome *o, char *text, size_t text_bytes);

/* bisect_outcome.c: the path of a file in the folder. */
void bisect_make_path(const bisect_setup *s, const char *name, char path[PATH_MAX]);
/* `hotfn run` itself failed: print its messages to stderr.  Returns false. */
bool bisect_print_errors(const bisect_setup *s);
/* Does the outcome differ from the bare one? */
bool bisect_differs(const bisect_setup *s, const bisect_outcome *bare, const bisect_outcome *other);

/* bisect_search.c: find a smallest subset of the items for which test(user, chosen, count) is true,
 * move it to the front of items and return its size.  test must be true for all items together. */
typedef bool (*bisect_test_fn)(void *user, const uint32_t *chosen, uint32_t count);
uint32_t bisect_search(uint32_t *items, uint32_t item_count, bisect_test_fn test, void *user);

#endif
