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

typedef struct run_options {
    hotfn_launch_options launch;
    hotfn_selection selection;
    const char **modules, **includes, **excludes, **symbol_dirs; /* owned */
    bool quiet, verbose;
#ifdef HOTFN_HAVE_PUSH
    push_choices push;
#endif
} run_options;

/* run_options.c: read the command line.  Returns -1 to continue, else the exit status (after --help
 * or a message). */
int run_parse_options(run_options *options, int argc, char **argv);
void run_free_options(run_options *options);

/* run_end.c: the exit status after the child's, or an end by the signal that killed it. */
int run_end_like_child(int32_t exit_code);

/* run_push.c: wait until the program has ended, and send its record where that is asked for. */
void run_wait(run_options *options, hotfn_launch *launch);
void run_send_record(run_options *options, const hotfn_launch *launch);

/* Append to a list that the options own.  Returns NULL, or what to print after "is not". */
const char *run_append_item(const char ***list, uint32_t *count, const char *item);
const char *run_append_glob(const char ***list, uint32_t *count, const char *glob);
const char *run_parse_positive_time(const char *text, uint64_t *out_ns);

/* find_process.c: the process of the program whose name matches.  If there is none, or more than
 * one, a message is printed, and false is returned. */
bool run_find_process(const char *glob, uint32_t *pid);

/* run_summary.c: print on stderr what was counted, and which processes still run. */
void run_print_summary(const run_options *options, const hotfn_launch *launch);

#endif
