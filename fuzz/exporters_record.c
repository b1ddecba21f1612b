/* SPDX-License-Identifier: MIT */
/* Opens any bytes as a record, exports it in every format, merges it with itself, and exports the
 * result.  Bits of the first byte: 0 corrects the checksums first, 1 and 2 select the kind of
 * merge, 3 to 5 the options of the exporters. */
#include "records_sums.h"

#include <hotfn/export.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_INPUT = 1 << 20, MAX_OUTPUT = 4 << 20 };

static volatile uint8_t seen;

/* Read every byte of the output, and stop an export that exceeds MAX_OUTPUT. */
static int32_t read_output(void *user, const void *bytes, size_t byte_count)
{
    size_t *remaining = user;

    for (size_t i = 0; i < byte_count; i++) {
        seen = ((const uint8_t *)bytes)[i];
    }
    *remaining -= byte_count < *remaining ? byte_count : *remaining;
    return *remaining == 0;
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
        size_t remaining = MAX_OUTPUT;

        hotfn_exporter_get(i, &info);
        err.text[0] = 0;
        if (hotfn_export(record, info.name, &options, read_output, &remaining, NULL, &err) !=
                HOTFN_OK &&
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
