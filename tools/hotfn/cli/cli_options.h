/* SPDX-License-Identifier: MIT */
/* The options of every command: one loop that reads them, one form of messages about wrong ones,
 * and the kinds of values that several commands take. */
#ifndef HOTFN_TOOL_WORDS_H
#define HOTFN_TOOL_WORDS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#define WORDS_RECORD "hotfn.hfr" /* where `hotfn run` writes by default */

enum { WORDS_HELP = 1024 }; /* above the values of every command's own options */

/* The end of an option table. */
#define WORDS_END                                                                                  \
    { "help", no_argument, NULL, WORDS_HELP },                                                     \
    {                                                                                              \
        NULL, 0, NULL, 0                                                                           \
    }

typedef struct words {
    const char *usage;
    const char *letters; /* for getopt: "n:o:" */
    const struct option *table;
    /* Returns NULL if the option is valid, else what its argument should have been: "a time
     * (2s, 500ms, 1.5m)".  The pointer is NULL if no option has a meaning of its own. */
    const char *(*take)(void *user, int word, const char *argument);
    void *user;
    int min_names, max_names; /* operands, from argv[optind] on */
} words;

/* Returns -1 to continue, else the status to exit with: TOOL_OK after --help, TOOL_USAGE after a
 * message.  argv[0] begins messages: "hotfn report". */
int words_read(const words *w, int argc, char **argv);

/* "hotfn report: --by 'x' is not <wanted> ..." on stderr; TOOL_USAGE. */
int words_refuse(const char *of, const struct option *table, int word, const char *argument,
                 const char *wanted);

/* "hotfn merge: -o is missing: hotfn merge -o FILE ..." on stderr, with the first line of usage;
 * TOOL_USAGE. */
int words_misused(const char *of, const char *usage, const char *what);

/* Values.  A malformed argument gives false, or, from the calls that return a text, what was
 * expected. */
bool words_u32(const char *text, uint32_t min, uint32_t max, uint32_t *out);
const char *words_u64(const char *text, uint64_t *out); /* decimal, or 0x and hexadecimal */
/* "at most N"; a number that does not fit means all, 0. */
const char *words_limit(const char *text, uint32_t *out);
const char *words_time(const char *text, uint64_t *out_ns);
const char *words_glob(const char *text);
/* "calls", "self" ... as HOTFN_BY_*. */
const char *words_order(const char *text, uint32_t *by);
/* The index of text among the names, or count. */
uint32_t words_one_of(const char *text, const char *const *names, uint32_t count);

/* The plural ending for a count: "s", but "" for 1. */
const char *words_s(uint64_t count);

/* Returns the record that is named, or else the record that `hotfn run` wrote in this folder, with
 * a note on stderr.  NULL after a message if neither exists. */
const char *words_record(const char *of, const char *usage, int argc, char **argv);

/* True, after a message, if output names the same file as input, which would be lost. */
bool words_overwrites(const char *command, const char *output, const char *input);

#endif
