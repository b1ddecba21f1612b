/* SPDX-License-Identifier: MIT */
/* The file, or stdout, to which an export is written. */
#ifndef HOTFN_TOOL_EXPORT_FILE_H
#define HOTFN_TOOL_EXPORT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct export_file {
    const char *path;     /* NULL: stdout */
    FILE *file;           /* opened by the first bytes: a refused export leaves a file as it was */
    int error;            /* errno of the first failure */
    char temporary[4200]; /* "": path itself is written */
} export_file;

/* A hotfn_write_fn; user is an export_file. */
int32_t export_file_write(void *user, const void *bytes, size_t count);
/* Close, and replace or remove the file; reports a failure on stderr. */
void export_file_close(const char *command, export_file *file, bool complete);

#endif
