/* SPDX-License-Identifier: MIT */
/* A file a build of an image, named by its id: a head and indices of functions, the most called first.  It
 * is read like any file that somebody may have changed; without it slots are dealt in the functions' order. */
#include "heat.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC UINT32_C(0x31544548) /* "HET1" */
#define MOST_FUNCTIONS 4096u
#define LEAST_CALLS 100000u    /* of a module: a shorter run tells little           */
#define LEAST_SHARE 100000u    /* of the module's calls, as one in so many          */
#define MOST_LISTED (1u << 18) /* functions; a larger record is not read for this   */

typedef struct heat_file {
    uint32_t magic, function_count, count;
    uint32_t functions[MOST_FUNCTIONS];
} heat_file;

enum { HEAD_BYTES = 12 };

static bool file_name(char *out, size_t bytes, const char *folder, const uint8_t *id,
                      uint32_t id_bytes, const char *tail)
{
    char hex[65] = "";

    if (folder[0] == 0 || id_bytes == 0 || id_bytes > 32) {
        return false;
    }
    for (uint32_t i = 0; i < id_bytes; i++) {
        snprintf(hex + 2 * i, 3, "%02x", id[i]);
    }
    int n = snprintf(out, bytes, "%s/%s.heat%s", folder, hex, tail);
    return n > 0 && (size_t)n < bytes;
}

void heat_apply(const char *cache_folder, const hotfn_scan *scan, hotfn_live *live, uint32_t module)
{
    hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;
    heat_file *heat = malloc(sizeof *heat);
    char name[1200];
    hotfn_scan_get_info(scan, &info);
    int fd = heat && file_name(name, sizeof name, cache_folder, info.id, info.id_bytes, "")
                 ? open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
                 : -1;
    ssize_t got = fd >= 0 ? read(fd, heat, sizeof *heat) : 0;
    if (got >= HEAD_BYTES && heat->magic == MAGIC && heat->function_count == info.function_count &&
        heat->count <= MOST_FUNCTIONS && (size_t)got == HEAD_BYTES + heat->count * 4u) {
        hotfn_live_order_slots(live, module, heat->functions, heat->count);
    }
    if (fd >= 0) {
        close(fd);
    }
    free(heat);
}

/* ---- Keeping. */

typedef struct called {
    uint64_t calls;
    uint32_t index;
} called;

static int by_calls(const void *a, const void *b)
{
    const called *x = a, *y = b;
    if (x->calls != y->calls) {
        return x->calls < y->calls ? 1 : -1;
    }
    return x->index < y->index ? -1 : x->index > y->index;
}

static void store(const char *folder, const hotfn_record_module *m, const heat_file *heat)
{
    char name[1200], beside[1200], tail[32];
    size_t bytes = HEAD_BYTES + heat->count * 4u;
    snprintf(tail, sizeof tail, ".%ld", (long)getpid());
    if (!file_name(name, sizeof name, folder, m->id, m->id_bytes, "") ||
        !file_name(beside, sizeof beside, folder, m->id, m->id_bytes, tail)) {
        return;
    }
    int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return; /* no cache: no loss */
    }
    bool whole = write(fd, heat, bytes) == (ssize_t)bytes;
    close(fd);
    if (!whole || rename(beside, name) != 0) {
        unlink(beside);
    }
}

static void keep_module(const char *folder, const hotfn_record *record,
                        const hotfn_record_module *m, called *list, heat_file *heat)
{
    uint64_t total = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->function_count; i++) {
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
        hotfn_record_get_function(record, m->first_function + i, &f);
        total += f.calls;
        if (f.calls > 0) {
            list[count++] = (called){ f.calls, i };
        }
    }
    if (total < LEAST_CALLS) {
        return;
    }
    qsort(list, count, sizeof *list, by_calls);
    *heat = (heat_file){ .magic = MAGIC, .function_count = m->function_count };
    while (heat->count < count && heat->count < MOST_FUNCTIONS &&
           list[heat->count].calls >= total / LEAST_SHARE) {
        heat->functions[heat->count] = list[heat->count].index;
        heat->count++;
    }
    store(folder, m, heat);
}

void heat_keep(const char *cache_folder, const hotfn_record *record)
{
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    if (cache_folder[0] == 0) {
        return;
    }
    hotfn_record_get_info(record, &info);
    bool fits = info.function_count > 0 && info.function_count <= MOST_LISTED;
    called *list = fits ? malloc(info.function_count * sizeof *list) : NULL;
    heat_file *heat = malloc(sizeof *heat);
    for (uint32_t i = 0; list && heat && i < info.module_count; i++) {
        hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
        hotfn_record_get_module(record, i, &m);
        keep_module(cache_folder, record, &m, list, heat);
    }
    free(heat);
    free(list);
}
