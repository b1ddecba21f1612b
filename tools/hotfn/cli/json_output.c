/* SPDX-License-Identifier: MIT */
/* Writes JSON with the library's writer, one small value at a time, because a file may have a
 * million symbols. */
#include "json_output.h"

#include <stdlib.h>

static int32_t write_to_file(void *user, const void *bytes, size_t byte_count)
{
    return fwrite(bytes, 1, byte_count, user) == byte_count ? 0 : 1;
}

static void report_no_memory(void)
{
    fputs("hotfn: not enough memory for the JSON output\n", stderr);
}

hotfn_json_writer *json_open(FILE *out)
{
    hotfn_json_writer *writer;
    if (hotfn_json_writer_create(&writer, 0, write_to_file, out) != HOTFN_OK) {
        report_no_memory();
        exit(1);
    }
    return writer;
}

bool json_close(hotfn_json_writer *writer)
{
    bool ok = hotfn_json_writer_destroy(writer) != HOTFN_E_NO_MEMORY;
    if (!ok) {
        report_no_memory();
    }
    return ok;
}

void json_add_text(hotfn_json *object, const char *key, const char *text)
{
    hotfn_json_add(object, key, hotfn_json_create_text(text));
}

void json_add_number(hotfn_json *object, const char *key, uint64_t value)
{
    hotfn_json_add(object, key, hotfn_json_create_number(value));
}

void json_add_decimal(hotfn_json *object, const char *key, double value, uint32_t digits)
{
    hotfn_json_add(object, key, hotfn_json_create_decimal(value, digits));
}

void json_add_bool(hotfn_json *object, const char *key, bool value)
{
    hotfn_json_add(object, key, hotfn_json_create_bool(value));
}

void json_write_text(hotfn_json_writer *writer, const char *key, const char *text)
{
    hotfn_json_write(writer, key, hotfn_json_create_text(text));
}

void json_write_number(hotfn_json_writer *writer, const char *key, uint64_t value)
{
    hotfn_json_write(writer, key, hotfn_json_create_number(value));
}

void json_write_bool(hotfn_json_writer *writer, const char *key, bool value)
{
    hotfn_json_write(writer, key, hotfn_json_create_bool(value));
}
