/* SPDX-License-Identifier: MIT */
/* libdebuginfod is loaded, like libdw, when it is needed first.  It keeps downloaded files in
 * ~/.cache/debuginfod_client.  After a failure, such as a server that does not answer, no server is
 * asked again in this run, because each further module could take as long. */
#include "debuginfod.h"

#include "cli/progress.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_SILENCE_S = 10 }; /* default of $DEBUGINFOD_TIMEOUT */

static struct {
    __typeof__(debuginfod_begin) *begin;
    __typeof__(debuginfod_find_debuginfo) *find_debuginfo;
    __typeof__(debuginfod_set_progressfn) *set_progressfn;
    __typeof__(debuginfod_set_user_data) *set_user_data;
    __typeof__(debuginfod_get_user_data) *get_user_data;
    __typeof__(debuginfod_end) *end; /* NULL: the library cannot be loaded */
} library;

typedef struct download {
    const char *path;
    int64_t changed_ns; /* when bytes arrived last */
    long done, total;
} download;

static atomic_bool has_failed; /* no server is asked any more */

static int get_max_silence(void)
{
    const char *seconds = getenv(DEBUGINFOD_TIMEOUT_ENV_VAR);
    int chosen = seconds ? atoi(seconds) : 0;

    return chosen > 0 ? chosen : MAX_SILENCE_S;
}

static bool is_silent(const download *d)
{
    return progress_read_clock() - d->changed_ns > get_max_silence() * (int64_t)1000000000;
}

static bool load_symbol(void *handle, const char *name, void *pointer)
{
    void *found = dlsym(handle, name);

    memcpy(pointer, &found, sizeof found);
    return found != NULL;
}

static void load_library(void)
{
    void *handle = dlopen(DEBUGINFOD_SONAME, RTLD_NOW);

    if (!handle || !load_symbol(handle, "debuginfod_begin", &library.begin) ||
        !load_symbol(handle, "debuginfod_find_debuginfo", &library.find_debuginfo) ||
        !load_symbol(handle, "debuginfod_set_progressfn", &library.set_progressfn) ||
        !load_symbol(handle, "debuginfod_set_user_data", &library.set_user_data) ||
        !load_symbol(handle, "debuginfod_get_user_data", &library.get_user_data) ||
        !load_symbol(handle, "debuginfod_end", &library.end)) {
        library.end = NULL;
    }
}

static void give_up(const char *why)
{
    if (!atomic_exchange(&has_failed, true)) {
        fprintf(stderr,
                "hotfn: $DEBUGINFOD_URLS: %s; names of stripped files may be missing (unset the "
                "variable, or try again later)\n",
                why);
    }
}

static void show_progress(const download *d, long done)
{
    hotfn_progress p = { .size = sizeof p,
                         .action = "downloading the debug file of",
                         .file = d->path,
                         .done = (uint64_t)done,
                         .total = (uint64_t)d->total };

    if (d->total > 0 && done <= d->total) {
        progress_report(&p);
    }
}

/* libdebuginfod calls this several times a second with the number of bytes so far and, once it is
 * known, their total.  A result other than 0 cancels the download. */
static int handle_progress(debuginfod_client *client, long done, long total)
{
    download *d = library.get_user_data(client);

    if (done != d->done) {
        d->changed_ns = progress_read_clock();
        d->done = done;
    }
    d->total = total;
    if (done < total) {
        show_progress(d, done);
    }
    return is_silent(d);
}

static void report_failure(const download *d, int error)
{
    if (error == -ENOENT) { /* no server has the file: not a failure */
        return;
    }
    give_up(is_silent(d) || error == -ETIME ? "no server answered in time" : strerror(-error));
}

bool debuginfod_find(const char *path, const uint8_t *id, uint32_t id_bytes, char *file,
                     size_t file_bytes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    download d = { .path = path, .changed_ns = progress_read_clock() };
    char *found = NULL;

    if (atomic_load(&has_failed)) {
        return false;
    }
    pthread_once(&once, load_library);
    debuginfod_client *client = library.end ? library.begin() : NULL;
    if (!client) {
        give_up(DEBUGINFOD_SONAME " cannot be loaded");
        return false;
    }
    library.set_user_data(client, &d);
    library.set_progressfn(client, handle_progress);
    int descriptor = library.find_debuginfo(client, id, (int)id_bytes, &found);
    show_progress(&d, d.total);
    if (descriptor < 0) {
        report_failure(&d, descriptor);
    } else {
        close(descriptor);
    }
    bool fits = descriptor >= 0 && found && strlen(found) < file_bytes;
    if (fits) {
        strcpy(file, found);
    }
    free(found);
    library.end(client);
    return fits;
}

static int32_t find_for_env(void *user, const char *path, const uint8_t *id, uint32_t id_bytes,
                            char *file, size_t file_bytes)
{
    (void)user;
    return debuginfod_find(path, id, id_bytes, file, file_bytes);
}

bool debuginfod_is_wanted(void)
{
    const char *urls = getenv(DEBUGINFOD_URLS_ENV_VAR);

    return urls && urls[0];
}

void debuginfod_set_env(hotfn_env *env)
{
    if (debuginfod_is_wanted()) {
        env->debug_file_fn = find_for_env;
    }
}
