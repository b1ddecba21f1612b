/* SPDX-License-Identifier: MIT */
/* The commands, one file each.  argv[0] is "hotfn COMMAND"; each returns the exit status: 0 ok, 1
 * failed, 2 usage, 3 a threshold was passed.  run returns the child's status, or 125, 126, 127 for
 * its own failures.  main.c checks afterwards that all of stdout was written. */
#ifndef HOTFN_TOOL_COMMANDS_H
#define HOTFN_TOOL_COMMANDS_H

#include <hotfn.h>
#include <hotfn/lowlevel.h>
#include <stdbool.h>

#define TOOL_OK 0
#define TOOL_FAILED 1
#define TOOL_USAGE 2
#define TOOL_THRESHOLD 3

int hotfn_command_run(int argc, char **argv);
int hotfn_command_attach(int argc, char **argv);
int hotfn_command_detach(int argc, char **argv);
int hotfn_command_ctl(int argc, char **argv);
int hotfn_command_report(int argc, char **argv);
int hotfn_command_export(int argc, char **argv);
int hotfn_command_open(int argc, char **argv);
int hotfn_command_diff(int argc, char **argv);
int hotfn_command_merge(int argc, char **argv);
int hotfn_command_push(int argc, char **argv);
int hotfn_command_top(int argc, char **argv);
int hotfn_command_listen(int argc, char **argv);
int hotfn_command_info(int argc, char **argv);
int hotfn_command_repair(int argc, char **argv);
int hotfn_command_scan(int argc, char **argv);
int hotfn_command_symbols(int argc, char **argv);
int hotfn_command_list(int argc, char **argv);
int hotfn_command_kit(int argc, char **argv);
int hotfn_command_doctor(int argc, char **argv);
int hotfn_command_bisect(int argc, char **argv);

/* Print "hotfn COMMAND: text" (with file and offset if the error has them) to stderr; returns
 * TOOL_FAILED. */
int hotfn_tool_fail(const char *command, const hotfn_error *err);

/* Report on stderr why the times of a record cannot be read, if they cannot. */
void hotfn_tool_warn_unread_times(const char *command, const char *path,
                                  const hotfn_record *record);

/* Open a record, limited to one process or thread if pid or tid is not 0; NULL after a message. */
hotfn_record *hotfn_tool_open_record(const char *command, const char *path, uint32_t pid,
                                     uint32_t tid);

/* export.c: write to a file, or to stdout (NULL or "-").  The file is replaced when it is
 * complete. */
int hotfn_tool_export(const char *command, const hotfn_record *record, const char *format,
                      const hotfn_export_options *options, const char *output);

/* env.c: the hotfn_env of all commands. */
hotfn_env hotfn_tool_env(void);
size_t hotfn_tool_demangle(void *user, const char *mangled, char *out, size_t out_bytes);

#endif
