/* SPDX-License-Identifier: MIT */
/* The options of the commands that read one file and select functions of it (list, scan). */
#ifndef HOTFN_TOOL_FILE_WORDS_H
#define HOTFN_TOOL_FILE_WORDS_H

#include "cli_options.h"
#include "scan/symbol_sources.h"

enum { FILE_JSON = 768 }; /* above the values of any command's own options */

/* For the option table of a command; -f and -x are the short forms. */
#define FILE_WORDS                                                                                 \
    { "function", required_argument, NULL, 'f' }, { "match", required_argument, NULL, 'f' },       \
        { "exclude", required_argument, NULL, 'x' }, SYMBOL_SOURCE_WORDS, WORDS_END

/* The values of the options. */
typedef struct file_wish {
    hotfn_selection selection;
    symbol_sources sources;
    const char *file;
    bool json;
    const char **globs; /* room for the selection's */
} file_wish;

/* Like words_read, with one operand; own has the further options of the command.  The caller passes
 * *wish to file_words_finish in any case. */
int file_words_read(file_wish *wish, const words *own, int argc, char **argv);
void file_words_finish(file_wish *wish);

/* Warn about a glob that matches nothing, which is most often a typing error; NULL if each glob
 * matches.  False if no function is selected. */
bool file_words_left(const char *of, const file_wish *wish, const char *unmatched,
                     const uint8_t *selected, uint32_t count);

#endif
