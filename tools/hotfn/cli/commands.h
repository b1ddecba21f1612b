/* SPDX-License-Identifier: MIT */
/* The verbs of the command line, one file each.  argv[0] is "hotfn VERB"; the answer is the exit status:
 * 0 ok, 1 failed, 2 usage, 3 a threshold passed; run passes the child's on (125, 126, 127: ours).
 * Whether all of stdout could be written is looked at behind them, in main.c. */
#ifndef HOTFN_TOOL_VERBS_H
#define HOTFN_TOOL_VERBS_H

#include <hotfn.h>
#include <hotfn/lowlevel.h>
#include <stdbool.h>

#define TOOL_OK 0
#define TOOL_FAILED 1
#define TOOL_USAGE 2
#define TOOL_THRESHOLD 3

int hotfn_command_run(int argc, char **argv);
int hotfn_command_report(int argc, char **argv);
int hotfn_command_export(int argc, char **argv);
int hotfn_command_open(int argc, char **argv);
int hotfn_command_diff(int argc, char **argv);
int hotfn_command_merge(int argc, char **argv);
int hotfn_command_top(int argc, char **argv);
int hotfn_command_info(int argc, char **argv);
int hotfn_command_repair(int argc, char **argv);
int hotfn_command_scan(int argc, char **argv);
int hotfn_command_symbols(int argc, char **argv);
int hotfn_command_list(int argc, char **argv);
int hotfn_command_kit(int argc, char **argv);
int hotfn_command_doctor(int argc, char **argv);
int hotfn_command_bisect(int argc, char **argv);

/* Print "hotfn OF: text" (with file and offset if the error has them) to stderr; returns TOOL_FAILED. */
int hotfn_tool_fail(const char *of, const hotfn_error *err);

/* Say on stderr why a record's times are not read, if so. */
void hotfn_tool_tell_times(const char *of, const char *path, const hotfn_record *record);

/* Open a record, and of one process of it if pid is not 0; NULL after a message. */
hotfn_record *hotfn_tool_record(const char *of, const char *path, uint32_t pid, uint32_t tid);

/* export.c: to a file, or stdout (NULL or "-"); what is not written whole is said and removed. */
int hotfn_tool_export(const char *of, const hotfn_record *record, const char *format,
                      const hotfn_export_options *options, const char *output);

/* env.c: what tools register: demangle.c's demangler, xz by liblzma where it was there to build with. */
hotfn_env hotfn_tool_env(void);
size_t hotfn_tool_demangle(void *user, const char *mangled, char *out, size_t out_bytes);

#endif
