/* SPDX-License-Identifier: MIT */
/* Any bytes as a record, in every format, and merged with itself; what is merged is written out
 * too. The first byte: bit 0 makes the checksums right first, bits 1 and 2 say how it is merged,
 * bits 3 to 5 which options the exporters get. */
#include "records_sums.h"

#include <hotfn/export.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_INPUT = 1 << 20, MOST_OUTPUT = 4 << 20 };

static volatile uint8_t seen;

/* Reads every byte of the output; stops what has no end. */
static int32_t take(void *user, const void *bytes, size_t byte_count)
{
    size_t *left = user;

    for (size_t i = 0; i < byte_count; i++) {
        seen = ((const uint8_t *)bytes)[i];
    }
    *left -= byte_count < *left ? byte_count : *left;
    return *left == 0;
}

static void export_all(const char *path, uint8_t choice)
{
    hotfn_export_options options = HOTFN_EXPORT_OPTIONS_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_record *record = NULL;

    options.flags = choice & 1 ? HOTFN_EXPORT_REFUSED | HOTFN_EXPORT_EDGES : 0;
    options.width = choice & 2 ? 80 : 0;
    options.match = choice & 4 ? "*a*" : NULL;
    options.by = choice % 6;
    if (hotfn_record_open(&record, path, NULL, &err) != HOTFN_OK) {
        return;
    }
    for (uint32_t i = 0; i < hotfn_exporter_get_count(); i++) {
        hotfn_exporter_info info = HOTFN_EXPORTER_INFO_INIT;
        size_t left = MOST_OUTPUT;

        hotfn_exporter_get(i, &info);
        err.text[0] = 0;
        if (hotfn_export(record, info.name, &options, take, &left, NULL, &err) != HOTFN_OK &&
            !err.text[0]) {
            abort();
        }
    }
    hotfn_record_close(record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    char from[64], merged[64];
    const char *twice[] = { from, from };

    if (size < 1 || size > MAX_INPUT) {
        return 0;
    }
    uint8_t *copy = malloc(size);
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (!copy || fd < 0) {
        abort();
    }
    memcpy(copy, data, size);
    if (copy[0] & 1) {
        make_sums_right(copy + 1, size - 1);
    }
    if (write(fd, copy + 1, size - 1) != (ssize_t)(size - 1)) {
        abort();
    }
    snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
    snprintf(merged, sizeof merged, "/tmp/hotfn_fuzz_%ld.hfr", (long)getpid());
    export_all(from, data[0] >> 3);
    if (hotfn_record_merge(twice, 2, merged, data[0] >> 1 & 3, NULL, &err) == HOTFN_OK) {
        export_all(merged, data[0] >> 3);
    }
    unlink(merged);
    close(fd);
    free(copy);
    return 0;
}
