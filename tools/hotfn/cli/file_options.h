/* SPDX-License-Identifier: MIT */
/* The options of the commands that read one file and select functions of it (list, scan, kit). */
#ifndef HOTFN_TOOL_FILE_OPTIONS_H
#define HOTFN_TOOL_FILE_OPTIONS_H

#include "cli_options.h"
#include "scan/symbol_sources.h"

enum { FILE_JSON = 768 }; /* above the values of any command's own options */

/* For the option table of a command; -f and -x are the short forms. */
#define FILE_OPTIONS                                                                               \
    { "function", required_argument, NULL, 'f' }, { "match", required_argument, NULL, 'f' },       \
        { "exclude", required_argument, NULL, 'x' }, SYMBOL_SOURCE_OPTIONS, CLI_OPTIONS_END

/* The values of the options. */
typedef struct file_options {
    hotfn_selection selection;
    symbol_sources sources;
    const char *file;
    bool json;
    const char **globs; /* storage for the globs of selection */
} file_options;

/* Like cli_read_options, with one operand; `own` describes the further options of the command.  The
 * caller must call file_options_free whatever this returns. */
int file_options_read(file_options *options, const cli_options *own, int argc, char **argv);
void file_options_free(file_options *options);

/* Warn about `unmatched`, a glob that matches no function (NULL: there is none), because it is
 * usually misspelt.  False if no function is selected. */
bool file_options_check_matches(const char *command, const file_options *options,
                                const char *unmatched, const uint8_t *selected, uint32_t count);

#endif
