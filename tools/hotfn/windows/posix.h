/* SPDX-License-Identifier: MIT */
/* Included before every file of the program on Windows: the calls of POSIX that the program uses
 * and the C library of Windows lacks, and those whose paths or texts would not be UTF-8 there. */
#ifndef HOTFN_TOOL_WINDOWS_POSIX_H
#define HOTFN_TOOL_WINDOWS_POSIX_H

#include <direct.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#undef stat
#undef lstat
FILE *tool_fopen(const char *path, const char *mode);
int tool_stat(const char *path, struct stat *out);
int tool_access(const char *path, int mode);
int tool_unlink(const char *path);
int tool_rename(const char *from, const char *to);
mode_t tool_umask(mode_t mask);
int tool_mkdir(const char *path);
int tool_chdir(const char *path);
char *tool_getcwd(char *out, size_t capacity);
int tool_mkstemps(char *path, int suffix_bytes);
char *tool_realpath(const char *path, char *out);
char *tool_strcasestr(const char *text, const char *part);
struct tm *tool_localtime_r(const time_t *time, struct tm *out);
int hotfn_main(int argc, char **argv); /* main() of main.c */

#define fopen tool_fopen
#define stat(path, out) tool_stat(path, out)
#define lstat(path, out) tool_stat(path, out)
#define access(path, mode) tool_access(path, mode)
#define unlink(path) tool_unlink(path)
#define rename(from, to) tool_rename(from, to)
#define mkdir(path, mode) tool_mkdir(path)
#define chdir(path) tool_chdir(path)
#define getcwd(out, capacity) tool_getcwd(out, capacity)
#define mkstemp(path) tool_mkstemps(path, 0)
#define mkstemps(path, suffix_bytes) tool_mkstemps(path, suffix_bytes)
#define realpath(path, out) tool_realpath(path, out)
#define strcasestr(text, part) tool_strcasestr(text, part)
#define localtime_r(time, out) tool_localtime_r(time, out)
#define fchmod(file, mode) (void)(mode)
#define umask(mask) tool_umask(mask)

#endif
