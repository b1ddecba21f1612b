/* SPDX-License-Identifier: MIT */
/* How every verb reads its words: one loop, one way to say what is wrong, and the kinds of values that
 * several verbs take. */
#ifndef HOTFN_TOOL_WORDS_H
#define HOTFN_TOOL_WORDS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#define WORDS_RECORD "hotfn.hfr" /* what `hotfn run` writes if nothing else is said */

enum { WORDS_HELP = 1024 }; /* no verb's own words are that high */

/* The end of a table of words. */
#define WORDS_END                                                                                  \
    { "help", no_argument, NULL, WORDS_HELP },                                                     \
    {                                                                                              \
        NULL, 0, NULL, 0                                                                           \
    }

typedef struct words {
    const char *usage;
    const char *letters; /* for getopt: "n:o:" */
    const struct option *table;
    /* NULL: taken; else what the argument should have been: "a time (2s, 500ms, 1.5m)".  NULL where no
     * word has a meaning of its own. */
    const char *(*take)(void *user, int word, const char *argument);
    void *user;
    int least, most; /* operands: what is no option; they stand at argv[optind] */
} words;

/* -1 to go on, else the status to end with: TOOL_OK behind --help, TOOL_USAGE after a message.
 * argv[0] is what messages begin with: "hotfn report". */
int words_read(const words *w, int argc, char **argv);

/* "hotfn report: --by 'x' is not <wanted> ..." on stderr; TOOL_USAGE. */
int words_refuse(const char *of, const struct option *table, int word, const char *argument,
                 const char *wanted);

/* "hotfn merge: -o is missing: hotfn merge -o FILE ..." on stderr, with the first line of usage; TOOL_USAGE. */
int words_misused(const char *of, const char *usage, const char *what);

/* Values; false (or, where a text is answered, what was wanted) if the argument is none. */
bool words_u32(const char *text, uint32_t least, uint32_t most, uint32_t *out);
const char *words_u64(const char *text, uint64_t *out); /* decimal, or 0x and hexadecimal */
/* "at most N": a number above what fits is all, 0. */
const char *words_limit(const char *text, uint32_t *out);
const char *words_time(const char *text, uint64_t *out_ns);
const char *words_glob(const char *text);
/* "calls", "self" ... as HOTFN_BY_*. */
const char *words_order(const char *text, uint32_t *by);
/* The index of text among the names, or count. */
uint32_t words_one_of(const char *text, const char *const *names, uint32_t count);

/* What counts have behind them: "s", but "" behind 1. */
const char *words_s(uint64_t count);

/* The record that is named, or that `hotfn run` wrote in this folder: then it says so on stderr.  NULL behind a
 * message: neither is there. */
const char *words_record(const char *of, const char *usage, int argc, char **argv);

/* Is what an option names for writing the input itself, which would be lost?  Says so on stderr. */
bool words_overwrites(const char *verb, const char *output, const char *input);

#endif
