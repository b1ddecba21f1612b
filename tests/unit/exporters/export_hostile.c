/* SPDX-License-Identifier: MIT */
/* Writes the hostile record and its exports to a folder, for check_formats.py. */
#include "exporters/hostile.h"

#include <hotfn/export.h>

static int32_t write_out(void *user, const void *bytes, size_t byte_count)
{
    return fwrite(bytes, 1, byte_count, user) == byte_count ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const char *const formats[] = { "json", "csv" };
    hotfn_record *record = NULL;
    char path[512];

    if (argc != 2) {
        return 2;
    }
    snprintf(path, sizeof path, "%s/hostile.hfr", argv[1]);
    hostile_write(path);
    if (hotfn_record_open(&record, path, NULL, NULL) != HOTFN_OK) {
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        FILE *out;

        snprintf(path, sizeof path, "%s/hostile.%s", argv[1], formats[i]);
        out = fopen(path, "wb");
        if (!out ||
            hotfn_export(record, formats[i], NULL, write_out, out, NULL, NULL) != HOTFN_OK) {
            return 1;
        }
        fclose(out);
    }
    hotfn_record_close(record);
    return 0;
}
