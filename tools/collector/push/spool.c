/* SPDX-License-Identifier: MIT */
/* The id of the installation and the spool, below the user's state folder. */
#include "push/spool.h"

#include "push/files.h"
#include "push/http.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MAX_PATH_BYTES = PUSH_PATH_BYTES + 400 };
#define DEFAULT_SPOOL_BYTES (UINT64_C(64) << 20)

hotfn_status state_find_folder(char out[PUSH_PATH_BYTES], const hotfn_push_options *options,
                               hotfn_error *err)
{
    char spool[MAX_PATH_BYTES];
    bool found = options->state_dir
                     ? snprintf(out, PUSH_PATH_BYTES, "%s", options->state_dir) < PUSH_PATH_BYTES
                     : files_find_state(out);

    if (!found) {
        return push_fail(err, HOTFN_E_OPTION,
                         "HOME (on Windows LOCALAPPDATA) is not set: name a folder for the spool");
    }
    snprintf(spool, sizeof spool, "%s/spool", out);
    return files_make_folders(spool)
               ? HOTFN_OK
               : push_fail(err, HOTFN_E_IO, "%.256s cannot be created: %s", spool, strerror(errno));
}

hotfn_status state_get_client(char out[33], const char *folder, hotfn_error *err)
{
    char path[MAX_PATH_BYTES];
    byte_buffer known = { 0 };
    uint8_t random[16];

    snprintf(path, sizeof path, "%s/client-id", folder);
    if (!files_read(path, &known) || known.used < 32) {
        if (!fill_random(random, sizeof random)) {
            return push_fail(err, HOTFN_E_IO, "the system has no random bytes");
        }
        buffer_free(&known);
        for (size_t i = 0; i < sizeof random; i++) {
            buffer_append_format(&known, "%02x", random[i]);
        }
        if (known.failed || !files_replace(path, known.data, known.used)) {
            buffer_free(&known);
            return push_fail(err, HOTFN_E_IO, "%.256s cannot be written: %s", path,
                             strerror(errno));
        }
    }
    memcpy(out, known.data, 32);
    out[32] = 0;
    buffer_free(&known);
    return HOTFN_OK;
}

static bool add_bytes(void *user, const char *name, uint64_t bytes)
{
    (void)name;
    *(uint64_t *)user += bytes;
    return true;
}

hotfn_status spool_write(const char *folder, const char *name, const byte_buffer *bytes,
                         uint64_t max_bytes, hotfn_error *err)
{
    char path[MAX_PATH_BYTES];
    uint64_t sum = bytes->used;

    max_bytes = max_bytes ? max_bytes : DEFAULT_SPOOL_BYTES;
    snprintf(path, sizeof path, "%s/spool", folder);
    files_for_each(path, add_bytes, &sum);
    snprintf(path, sizeof path, "%s/spool/%s", folder, name);
    if (files_exist(path)) {
        return HOTFN_OK;
    }
    if (sum > max_bytes) {
        return push_fail(
            err, HOTFN_E_LIMIT,
            "the collector is unavailable and the spool is full (%llu bytes): keep the record "
            "and send it later with hotfn push",
            (unsigned long long)max_bytes);
    }
    return files_replace(path, bytes->data, bytes->used)
               ? HOTFN_OK
               : push_fail(err, HOTFN_E_IO, "%.256s cannot be written: %s", path, strerror(errno));
}

bool spool_read(const char *folder, const char *name, byte_buffer *out)
{
    char path[MAX_PATH_BYTES];

    snprintf(path, sizeof path, "%s/spool/%s", folder, name);
    return files_read(path, out);
}

void spool_remove(const char *folder, const char *name)
{
    char path[MAX_PATH_BYTES];

    snprintf(path, sizeof path, "%s/spool/%s", folder, name);
    files_remove(path);
}

typedef struct record_search {
    bool (*each)(void *user, const char *name);
    void *user;
} record_search;

static bool report_record(void *user, const char *name, uint64_t bytes)
{
    record_search *search = user;
    const char *dot = strrchr(name, '.');

    (void)bytes;
    return !dot || strcmp(dot, ".run") != 0 || search->each(search->user, name);
}

void spool_for_each(const char *folder, bool (*each)(void *user, const char *name), void *user)
{
    char path[MAX_PATH_BYTES];
    record_search search = { each, user };

    snprintf(path, sizeof path, "%s/spool", folder);
    files_for_each(path, report_record, &search);
}
