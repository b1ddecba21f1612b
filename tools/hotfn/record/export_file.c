/* SPDX-License-Identifier: MIT */
/* An output file that is never half-written: bytes go to a new file in the same folder, which
 * replaces the named file when it is complete.  A device, a pipe, or a file in a folder that is not
 * writable is written directly. */
#include "export_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void create_temporary(export_file *f, const char *target, mode_t mode)
{
    int fd =
        snprintf(f->temporary, sizeof f->temporary, "%s.XXXXXX", target) < (int)sizeof f->temporary
            ? mkstemp(f->temporary)
            : -1;
    f->file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (f->file) {
        fchmod(fd, mode);
    } else if (fd >= 0) {
        close(fd);
        unlink(f->temporary);
    }
    if (!f->file) {
        f->temporary[0] = 0;
    }
}

/* If the path is a symbolic link, its target is replaced, not the link. */
static void open_output(export_file *f)
{
    struct stat found;
    mode_t mask = umask(0);
    umask(mask);
    char *resolved = realpath(f->path, NULL);
    if (stat(f->path, &found) != 0) {
        struct stat link;
        /* A link to a missing file exists for lstat, and is written directly. */
        if (lstat(f->path, &link) != 0) {
            create_temporary(f, f->path, 0666 & ~mask);
        }
    } else if (S_ISREG(found.st_mode) && access(f->path, W_OK) == 0 && resolved) {
        create_temporary(f, resolved, found.st_mode & 0777);
    }
    if (!f->file) {
        f->file = fopen(f->path, "we");
    }
    free(resolved);
}

int32_t export_file_write(void *user, const void *bytes, size_t count)
{
    export_file *f = user;
    if (!f->file && f->path) {
        open_output(f);
    } else if (!f->file) {
        f->file = stdout;
    }
    if (f->file && fwrite(bytes, 1, count, f->file) == count) {
        return 0;
    }
    f->error = errno;
    return -1;
}

static bool replace_target(export_file *f)
{
    char *resolved = realpath(f->path, NULL);
    bool ok = rename(f->temporary, resolved ? resolved : f->path) == 0;
    f->error = ok ? 0 : errno;
    free(resolved);
    return ok;
}

static void remove_incomplete(const export_file *f)
{
    const char *path = f->temporary[0] ? f->temporary : f->path;
    struct stat file;
    if (lstat(path, &file) == 0 && S_ISREG(file.st_mode)) {
        unlink(path);
    }
}

void export_file_close(const char *command, export_file *f, bool complete)
{
    bool opened = f->file != NULL;
    if (!f->path) {
        return; /* main reports a failure of stdout */
    }
    if (opened && fclose(f->file) != 0 && !f->error) {
        f->error = errno;
    }
    if (complete && !f->error && f->temporary[0]) {
        replace_target(f);
    }
    if (f->error) {
        fprintf(stderr, "hotfn %s: %s: %s: %s\n", command, f->path,
                opened ? "could not be written completely" : "cannot be written",
                strerror(f->error));
    }
    if (opened && (f->error || !complete)) {
        remove_incomplete(f);
    }
}
