/* SPDX-License-Identifier: MIT */
/* The command line of every command: the getopt loop, the messages about invalid options, and
 * parsers of the option values that several commands have in common. */
#ifndef HOTFN_TOOL_CLI_OPTIONS_H
#define HOTFN_TOOL_CLI_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#define CLI_DEFAULT_RECORD "hotfn.hfr" /* where `hotfn run` writes by default */

enum { CLI_HELP = 1024 }; /* above the values of every command's own options */

/* The end of an option table. */
#define CLI_OPTIONS_END                                                                            \
    { "help", no_argument, NULL, CLI_HELP },                                                       \
    {                                                                                              \
        NULL, 0, NULL, 0                                                                           \
    }

typedef struct cli_options {
    const char *usage;
    const char *letters; /* for getopt: "n:o:" */
    const struct option *table;
    /* Stores one option.  Returns NULL, or, if the argument is invalid, a description of a valid
     * one: "a time (2s, 500ms, 1.5m)".  A command that has only --help needs no read_option. */
    const char *(*read_option)(void *user, int option, const char *argument);
    void *user;
    int min_names, max_names; /* operands, from argv[optind] on */
} cli_options;

/* Returns -1 to continue, else the status to exit with: TOOL_OK after --help, TOOL_USAGE after a
 * message.  Messages begin with argv[0], for example "hotfn report". */
int cli_read_options(const cli_options *w, int argc, char **argv);

/* Print "hotfn report: --by 'x' is not <wanted> ..." on stderr; returns TOOL_USAGE. */
int cli_refuse_argument(const char *command, const struct option *table, int option,
                        const char *argument, const char *wanted);

/* Print `what` and the first line of usage on stderr: "hotfn merge: -o is missing: hotfn merge
 * -o FILE ..."; returns TOOL_USAGE. */
int cli_report_misuse(const char *command, const char *usage, const char *what);

/* Parsers of option values.  For a malformed value they return false, or a description of a valid
 * one; for a valid value true or NULL. */
bool cli_parse_u32(const char *text, uint32_t min, uint32_t max, uint32_t *out);
const char *cli_parse_u64(const char *text, uint64_t *out); /* decimal, or 0x and hexadecimal */
/* The N of "at most N rows"; 0 means all, and so does a number above UINT32_MAX. */
const char *cli_parse_limit(const char *text, uint32_t *out);
const char *cli_parse_time(const char *text, uint64_t *out_ns);
const char *cli_parse_width(const char *text, uint32_t *out); /* of a table, in columns */
const char *cli_check_glob(const char *text);
/* Parse "calls", "self" ... to HOTFN_BY_*. */
const char *cli_parse_order(const char *text, uint32_t *by);
/* The index of text among the names, or count. */
uint32_t cli_find_name(const char *text, const char *const *names, uint32_t count);

/* The plural ending for a count: "s", but "" for 1. */
const char *cli_plural(uint64_t count);

/* Returns the operand that names a record.  Without one, returns CLI_DEFAULT_RECORD, with a note on
 * stderr; NULL after a message if the current folder has no such file. */
const char *cli_choose_record(const char *command, const char *usage, int argc, char **argv);

/* True, after a message, if output is the same file as input. */
bool cli_would_overwrite(const char *command, const char *output, const char *input);

#endif
