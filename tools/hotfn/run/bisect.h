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
#define BISECT_BY_COMMAND 2 /* a shell command says so                               */

/* What is tried, and how it is judged. */
typedef struct bisect_setup {
    char folder[PATH_MAX - 64]; /* of our own, for outputs, lists and records  */
    char self[PATH_MAX];        /* this program                                */
    char **run_words;           /* options for `hotfn run`                     */
    int run_word_count;
    char **command;      /* NULL-terminated                                     */
    uint64_t timeout_ns; /* a longer trial hangs; 0: never                     */
    int by;              /* BISECT_BY_*                                        */
    const char *check;   /* BY_COMMAND: gets stdout as stdin, 0 means good     */
    bool interrupted;    /* the user asked to stop                             */
} bisect_setup;

/* How a trial ended. */
typedef struct bisect_outcome {
    int status; /* as waitpid gives it */
    bool hung;
    uint64_t time_ns;
    char output[PATH_MAX]; /* file with its stdout */
} bisect_outcome;

/* bisect_trial.c.  Signals INT, TERM and CHLD are taken over between begin and end. */
bool bisect_begin(bisect_setup *s);
void bisect_end(bisect_setup *s);
/* Run the command bare (list == NULL), or hooked: list "" hooks all, else it is an --only-list
 * file.  The record of a hooked trial is record.hfr in the folder.  label names the output file.
 * False, with a message, if no trial could be made. */
bool bisect_trial(bisect_setup *s, const char *list, const char *label, bisect_outcome *out);
/* Does the outcome differ from the bare one? */
bool bisect_differs(const bisect_setup *s, const bisect_outcome *bare, const bisect_outcome *other);
/* "exit status 1", "signal 11", "no end within 10 s". */
void bisect_say_outcome(const bisect_outcome *o, char *text, size_t text_bytes);

/* bisect_search.c: the fewest of item_count items with which bad(user, chosen, count) still holds;
 * they stand in items[0..answer) then.  bad holds for all of them. */
typedef bool (*bisect_bad_fn)(void *user, const uint32_t *chosen, uint32_t count);
uint32_t bisect_search(uint32_t *items, uint32_t item_count, bisect_bad_fn bad, void *user);

#endif
