/* SPDX-License-Identifier: MIT */
/* The start script of a kit, and its settings: `hotfn run --kit` reads them, so that no name and no
 * address is in the script, where a shell would change some of their characters. */
#include "kit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define KIT_PATH_BYTES 4096

static const char unix_script[] =
    "#!/bin/sh\n"
    "# Counts every call of one build of a program; any other build is refused.\n"
    "#     count [options of hotfn run] PROGRAM [ARG ...]\n"
    "# The record is hotfn.hfr in the current folder, or FILE of -o FILE; to show it: hotfn report\n"
    "# Without PROGRAM it is the one in this folder or in the folder above; the record is here then.\n"
    "here=$(CDPATH= cd -- \"$(dirname -- \"$0\")\" && pwd) || exit 125\n"
    "exec \"$here/" KIT_TOOL "\" run --kit \"$here\" \"$@\"\n";

/* A double click has no arguments, and closes the window at the end. */
static const char windows_script[] =
    "@echo off\r\n"
    "rem Counts every call of one build of a program; any other build is refused.\r\n"
    "rem     count.cmd [options of hotfn run] [PROGRAM [ARG ...]]\r\n"
    "rem Without PROGRAM (a double click) it is the one in this folder or in the folder above,\r\n"
    "rem and the record is in this folder.\r\n"
    "setlocal\r\n"
    "\"%~dp0" KIT_TOOL ".exe\" run --kit \"%~dp0.\" %*\r\n"
    "set hotfn_status=%errorlevel%\r\n"
    "if \"%~1\"==\"\" pause\r\n"
    "exit /b %hotfn_status%\r\n";

static bool write_file(const char *folder, const char *name, const char *text, mode_t mode)
{
    char path[KIT_PATH_BYTES];
    FILE *file;
    bool good;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "we");
    good = file && fputs(text, file) >= 0 && fchmod(fileno(file), mode) == 0;
    if (file && fclose(file) != 0) {
        good = false;
    }
    if (!good) {
        fprintf(stderr, "hotfn kit: %s: cannot be written: %s\n", path, strerror(errno));
    }
    return good;
}

bool kit_write_start(const char *folder, bool is_windows)
{
    return is_windows ? write_file(folder, KIT_START ".cmd", windows_script, 0755)
                      : write_file(folder, KIT_START, unix_script, 0755);
}

static bool copy_token(const char *folder, const char *token_file)
{
    char path[KIT_PATH_BYTES];

    snprintf(path, sizeof path, "%s/" KIT_TOKEN, folder);
    if (!kit_copy(token_file, folder, KIT_TOKEN)) {
        return false;
    }
    if (chmod(path, 0600) != 0) {
        fprintf(stderr, "hotfn kit: %s: cannot be protected: %s\n", path, strerror(errno));
        return false;
    }
    return true;
}

bool kit_write_settings(const char *folder, const char *program, const kit_sending *sending)
{
    const char *const settings[][2] = {
        { "program", program },
        { "push", sending->url },
        { "app", sending->app },
        { "app-version", sending->version },
        { "token-file", sending->token_file ? KIT_TOKEN : NULL },
    };
    char text[4 * KIT_PATH_BYTES];
    size_t used = 0;

    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        const char *key = settings[i][0], *value = settings[i][1];

        if (!value) {
            continue;
        }
        if (strpbrk(value, "\r\n") || used + strlen(value) + 32 > sizeof text) {
            fprintf(stderr, "hotfn kit: the %s must be one short line\n", key);
            return false;
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "%s %s\n", key, value);
    }
    return write_file(folder, KIT_SETTINGS, text, 0644) &&
           (!sending->token_file || copy_token(folder, sending->token_file));
}
