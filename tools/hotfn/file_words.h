/* SPDX-License-Identifier: MIT */
/* The words of the verbs that read one file and choose among its functions (list, scan). */
#ifndef HOTFN_TOOL_FILE_WORDS_H
#define HOTFN_TOOL_FILE_WORDS_H

#include "symbol_sources.h"

#include <stdio.h>

enum { FILE_JSON = 768, FILE_HELP }; /* no verb's own words are that high */

/* In the table of words of a verb; -f and -x are its short ones. */
#define FILE_WORDS                                                                                 \
    { "function", required_argument, NULL, 'f' },                                                  \
        { "match", required_argument, NULL, 'f' }, { "exclude", required_argument, NULL, 'x' },    \
        { "json", no_argument, NULL, FILE_JSON }, { "help", no_argument, NULL, FILE_HELP },        \
        SYMBOL_SOURCE_WORDS

/* What was asked for. */
typedef struct file_wish {
    hotfn_selection selection;
    symbol_sources sources;
    const char *file;
    bool json;
    const char **globs; /* room for the selection's */
} file_wish;

/* A verb's own: its words, how it is used, and what its further words mean (1: taken, 0: no such
 * word, -1: wrong, and it said why). */
typedef struct file_verb {
    const char *name;
    const char *letters; /* for getopt: "f:x:" and its own */
    const struct option *words;
    int (*usage)(FILE *out, int status);
    int (*take)(void *user, int word, const char *argument);
    void *user;
} file_verb;

/* Fills *wish, which the caller gives to file_words_finish in any case.  TOOL_OK to go on, or the
 * status to end with; *done if there is nothing to do (--help). */
int file_words_read(file_wish *wish, const file_verb *verb, int argc, char **argv, bool *done);
void file_words_finish(file_wish *wish);

#endif
