/* SPDX-License-Identifier: MIT */
/* The files of a kit: copies of the tool, its agent and its libraries, and the start script. */
#include "kit.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KIT_PATH_BYTES 4096

static bool report_failure(const char *path, const char *what)
{
    fprintf(stderr, "hotfn kit: %s: cannot be %s: %s\n", path, what, strerror(errno));
    return false;
}

bool kit_make_folder(const char *path)
{
    return mkdir(path, 0755) == 0 || errno == EEXIST || report_failure(path, "made");
}

static bool copy_bytes(FILE *from, FILE *to)
{
    char buffer[65536];
    size_t bytes;

    while ((bytes = fread(buffer, 1, sizeof buffer, from)) > 0) {
        if (fwrite(buffer, 1, bytes, to) != bytes) {
            return false;
        }
    }
    return !ferror(from);
}

bool kit_copy(const char *from_path, const char *folder, const char *name)
{
    char path[KIT_PATH_BYTES];
    FILE *from = fopen(from_path, "rbe"), *to;
    bool good;

    if (!from) {
        return report_failure(from_path, "read");
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path); /* it may run right now */
    to = fopen(path, "wbe");
    good = to && copy_bytes(from, to) && fchmod(fileno(to), 0755) == 0;
    fclose(from);
    if (to && fclose(to) != 0) {
        good = false;
    }
    return good || report_failure(path, "written");
}

static bool is_of_libc(const char *file)
{
    static const char *const begins[] = { "libc.so",  "libm.so",  "libpthread.so",
                                          "libdl.so", "librt.so", "ld-linux" };

    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
        if (strncmp(file, begins[i], strlen(begins[i])) == 0) {
            return true;
        }
    }
    return false;
}

static int copy_library(struct dl_phdr_info *info, size_t size, void *folder)
{
    const char *slash = strrchr(info->dlpi_name, '/');

    (void)size;
    if (!slash || is_of_libc(slash + 1)) { /* the program itself has no name, the vDSO no folder */
        return 0;
    }
    return kit_copy(info->dlpi_name, folder, slash + 1) ? 0 : 1;
}

bool kit_copy_libraries(const char *folder)
{
    char path[KIT_PATH_BYTES];

    snprintf(path, sizeof path, "%s/" KIT_LIBRARIES, folder);
    return kit_make_folder(path) && dl_iterate_phdr(copy_library, path) == 0;
}

/* Write an option of the start script; single quotes are the only characters of sh in them. */
static void write_script_option(FILE *file, const char *option, const char *value)
{
    if (!value) {
        return;
    }
    fprintf(file, " %s '", option);
    for (; *value; value++) {
        if (*value == '\'') {
            fputs("'\\''", file);
        } else {
            fputc(*value, file);
        }
    }
    fputc('\'', file);
}

static bool copy_token(const char *folder, const char *token_file)
{
    char path[KIT_PATH_BYTES];

    snprintf(path, sizeof path, "%s/" KIT_TOKEN, folder);
    return kit_copy(token_file, folder, KIT_TOKEN) &&
           (chmod(path, 0600) == 0 || report_failure(path, "protected"));
}

bool kit_write_start(const char *folder, const char *program, const kit_sending *sending)
{
    char path[KIT_PATH_BYTES];
    FILE *file;
    bool good;

    snprintf(path, sizeof path, "%s/" KIT_START, folder);
    file = fopen(path, "we");
    if (!file) {
        return report_failure(path, "written");
    }
    fprintf(
        file,
        "#!/bin/sh\n"
        "# Counts every call of one build of %s; any other build is refused.\n"
        "#     %s [options of hotfn run] PROGRAM [ARG ...]\n"
        "# The record is hotfn.hfr in the current folder, or FILE of -o FILE; to show it: hotfn "
        "report\n"
        "here=$(CDPATH= cd -- \"$(dirname -- \"$0\")\" && pwd) || exit 125\n"
        "exec \"$here/" KIT_TOOL "\" run --kit \"$here\"",
        program, KIT_START);
    write_script_option(file, "--push", sending->url);
    write_script_option(file, "--app", sending->app);
    write_script_option(file, "--app-version", sending->version);
    fprintf(file, "%s \"$@\"\n",
            sending->token_file ? " --token-file \"$here/" KIT_TOKEN "\"" : "");
    good = fchmod(fileno(file), 0755) == 0 && !ferror(file);
    if (fclose(file) != 0) {
        good = false;
    }
    if (!good) {
        return report_failure(path, "written");
    }
    return !sending->token_file || copy_token(folder, sending->token_file);
}
