/* SPDX-License-Identifier: MIT */
/* The parts of `hotfn run`: reading the options, and the summary at the end.  hotfn_launch_* does
 * the rest. */
#ifndef HOTFN_TOOL_RUN_H
#define HOTFN_TOOL_RUN_H

#ifdef HOTFN_HAVE_PUSH
#include "record/push_options.h"
#endif

#include <hotfn.h>
#include <stdbool.h>

/* Failures of `hotfn run` itself, by the convention of env, nice and timeout. */
#define RUN_FAILED 125
#define RUN_NOT_EXECUTABLE 126
#define RUN_NOT_FOUND 127

enum { RUN_PATH_BYTES = 4096 };

/* run_kit.c: what a kit adds to the options, and the texts to which they refer. */
typedef struct run_kit {
    char *settings; /* owned */
    const char *command[2];
    char folder[RUN_PATH_BYTES], program[RUN_PATH_BYTES], record[3 * RUN_PATH_BYTES];
    char list[RUN_PATH_BYTES], token[3 * RUN_PATH_BYTES];
} run_kit;

typedef struct run_options {
    hotfn_launch_options launch;
    hotfn_selection selection;
    const char **modules, **includes, **excludes, **symbol_dirs; /* owned */
    bool quiet, verbose;
    run_kit kit;
#ifdef HOTFN_HAVE_PUSH
    push_choices push;
#endif
} run_options;

/* run_options.c: read the command line.  Returns -1 to continue, else the exit status (after --help
 * or a message). */
int run_parse_options(run_options *options, int argc, char **argv);
void run_free_options(run_options *options);
/* run_kit.c: use the settings of the kit that the options name.  Returns -1 to continue, else the
 * exit status after a message. */
int run_use_kit(run_options *options);

/* The options that `hotfn run` and `hotfn attach` share: RUN_SHARED_LETTERS and RUN_SHARED_OPTIONS
 * for getopt_long, the lines of the usage about the selected functions, and what is read. */
enum {
    RUN_MIN_SIZE = 256,
    RUN_MAX_SIZE,
    RUN_MODULE,
    RUN_FOR,
    RUN_LIST,
    RUN_SYMBOL_DIR,
    RUN_NO_CACHE,
    RUN_MODE,
    RUN_FLAT,
    RUN_SLOWER,
    RUN_EVENTS,
    RUN_SAMPLE,
    RUN_CLOCK,
    RUN_MAX_THREADS,
    RUN_MAX_PLACES,
    RUN_FIRST_OWN_OPTION,
};

#define RUN_SHARED_LETTERS "o:f:x:qv"
/* clang-format off */
#define RUN_SHARED_OPTIONS                                                                         \
    { "output", required_argument, NULL, 'o' },                                                    \
    { "function", required_argument, NULL, 'f' },                                                  \
    { "exclude", required_argument, NULL, 'x' },                                                   \
    { "min-size", required_argument, NULL, RUN_MIN_SIZE },                                         \
    { "max-size", required_argument, NULL, RUN_MAX_SIZE },                                         \
    { "module", required_argument, NULL, RUN_MODULE },                                             \
    { "for", required_argument, NULL, RUN_FOR },                                                   \
    { "list", required_argument, NULL, RUN_LIST },                                                 \
    { "symbol-dir", required_argument, NULL, RUN_SYMBOL_DIR },                                     \
    { "no-cache", no_argument, NULL, RUN_NO_CACHE },                                               \
    { "mode", required_argument, NULL, RUN_MODE },                                                 \
    { "flat", no_argument, NULL, RUN_FLAT },                                                       \
    { "slower-than", required_argument, NULL, RUN_SLOWER },                                        \
    { "events", no_argument, NULL, RUN_EVENTS },                                                   \
    { "sample", required_argument, NULL, RUN_SAMPLE },                                             \
    { "clock", required_argument, NULL, RUN_CLOCK },                                               \
    { "max-threads", required_argument, NULL, RUN_MAX_THREADS },                                   \
    { "max-places", required_argument, NULL, RUN_MAX_PLACES },                                     \
    { "quiet", no_argument, NULL, 'q' },                                                           \
    { "verbose", no_argument, NULL, 'v' }
/* clang-format on */
#define RUN_SELECTION_USAGE                                                                        \
    "  -f, --function GLOB  count only functions that match (may be repeated)\n"                   \
    "  -x, --exclude GLOB   exclude functions that match\n"                                        \
    "      --min-size N, --max-size N   by size in bytes\n"                                        \
    "      --module GLOB    modules to hook, by file name [the program itself]; '*' is all\n"

/* Returns NULL, or what to print after "is not". */
const char *run_read_shared_option(run_options *options, int option, const char *argument);
/* Let options->launch refer to the lists and the selection that were read.  Returns false after a
 * message, with the command's name, if no function can be selected. */
bool run_use_lists(run_options *options, const char *command);

/* run_end.c: return the exit status of the child, or end this process by the signal that killed the
 * child. */
int run_end_like_child(int32_t exit_code);

/* run_push.c: wait until the program has ended; send its record if the options ask for it. */
void run_wait(run_options *options, hotfn_launch *launch);
void run_send_record(run_options *options, const hotfn_launch *launch);

/* find_process.c: the process of the program whose name matches.  If there is none, or more than
 * one, a message is printed, and false is returned. */
bool run_find_process(const char *command, const char *glob, uint32_t *pid);

/* run_summary.c: print on stderr what was counted, and which processes still run. */
void run_print_summary(const run_options *options, const hotfn_launch *launch);

#endif
