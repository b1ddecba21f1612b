/* SPDX-License-Identifier: MIT */
/* `hotfn push --kit`: pack the folder of a kit by tar, and send it. */
#include "cli/commands.h"
#include "record/push_options.h"
#include "scan/kit.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 20 };

/* Start tar with its output in a pipe.  Returns the reading end, or -1. */
static int start_tar(const char *folder, pid_t *child)
{
    char *const command[] = { "tar", "-C", (char *)(uintptr_t)folder, "-czf", "-", ".", NULL };
    posix_spawn_file_actions_t actions;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -1;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    int failure = posix_spawnp(child, "tar", &actions, NULL, command, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (failure) {
        close(ends[0]);
        errno = failure;
        return -1;
    }
    return ends[0];
}

/* Read until the end.  The caller frees *out; false if memory or the read fails. */
static bool read_all(int fd, char **out, uint64_t *byte_count)
{
    ssize_t n = 1;

    *out = NULL;
    *byte_count = 0;
    while (n > 0) {
        char *more = realloc(*out, *byte_count + PIECE_BYTES);
        if (!more) {
            return false;
        }
        *out = more;
        do {
            n = read(fd, *out + *byte_count, PIECE_BYTES);
        } while (n < 0 && errno == EINTR);
        *byte_count += n > 0 ? (uint64_t)n : 0;
    }
    return n == 0;
}

/* kit.json names the image that the kit is for. */
static bool check_kit(const char *folder, const hotfn_image *image, const char *file)
{
    char path[4096], text[8192], id[2 * sizeof((hotfn_image_info *)0)->id + 1] = "";
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;

    snprintf(path, sizeof path, "%s/" KIT_FACTS, folder);
    FILE *facts = fopen(path, "re");
    if (!facts) {
        fprintf(stderr, "hotfn push: %s is not a kit: make one with hotfn kit -o %s %s\n", folder,
                folder, file);
        return false;
    }
    text[fread(text, 1, sizeof text - 1, facts)] = 0;
    fclose(facts);
    hotfn_image_get_info(image, &info);
    for (uint32_t i = 0; i < info.id_bytes && i < sizeof info.id; i++) {
        snprintf(id + 2 * i, 3, "%02x", info.id[i]);
    }
    if (!strstr(text, id)) {
        fprintf(stderr, "hotfn push: %s is the kit of another build than %s (%s)\n", folder, file,
                id);
        return false;
    }
    return true;
}

static bool pack_folder(const char *folder, char **out, uint64_t *byte_count)
{
    pid_t child;
    int status = -1;

    int fd = start_tar(folder, &child);
    if (fd < 0) {
        fprintf(stderr, "hotfn push: tar cannot be started: %s\n", strerror(errno));
        return false;
    }
    bool ok = read_all(fd, out, byte_count);
    close(fd);
    waitpid(child, &status, 0);
    if (!ok || status != 0) {
        fprintf(stderr, "hotfn push: %s cannot be packed\n", folder);
        free(*out);
        return false;
    }
    return true;
}

bool push_kit_folder(const char *folder, const hotfn_image *image, const char *file,
                     const hotfn_push_options *options)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    uint64_t byte_count;
    char *archive;

    if (!check_kit(folder, image, file) || !pack_folder(folder, &archive, &byte_count)) {
        return false;
    }
    hotfn_status status = hotfn_push_kit(image, file, archive, byte_count, options, &err);
    free(archive);
    if (status != HOTFN_OK) {
        hotfn_tool_fail("push", &err);
    }
    return status == HOTFN_OK;
}
