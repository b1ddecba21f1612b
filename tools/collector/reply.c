/* SPDX-License-Identifier: MIT */
/* Write replies in JSON. */
#include "reply.h"

#include <math.h>

hotfn_json_writer *begin_reply(request *r)
{
    hotfn_json_writer *out = NULL;

    if (hotfn_json_writer_create(&out, 0, buffer_write, &r->reply) != HOTFN_OK) {
        r->reply.failed = true;
        return NULL;
    }
    hotfn_json_begin_object(out, NULL);
    return out;
}

void end_reply(request *r, hotfn_json_writer *out, const store *s, int step)
{
    if (out) {
        hotfn_json_end(out);
        r->reply.failed |= hotfn_json_writer_destroy(out) != HOTFN_OK;
    }
    if (step != SQLITE_DONE && !r->refused.status) {
        refuse_for_database(&r->refused, s);
    }
}

void write_column_text(hotfn_json_writer *out, const char *key, sqlite3_stmt *q, int column)
{
    const char *text = (const char *)sqlite3_column_text(q, column);
    hotfn_json_write(out, key, hotfn_json_create_text(text));
}

void write_column_number(hotfn_json_writer *out, const char *key, sqlite3_stmt *q, int column)
{
    hotfn_json_write(out, key,
                     sqlite3_column_type(q, column) == SQLITE_NULL
                         ? hotfn_json_create_text(NULL)
                         : hotfn_json_create_signed(sqlite3_column_int64(q, column)));
}

void write_number(hotfn_json_writer *out, const char *key, uint64_t value)
{
    hotfn_json_write(out, key, hotfn_json_create_number(value));
}

void write_text(hotfn_json_writer *out, const char *key, const char *value)
{
    hotfn_json_write(out, key, hotfn_json_create_text(value));
}

void write_decimal(hotfn_json_writer *out, const char *key, double value)
{
    hotfn_json_write(out, key,
                     isfinite(value) ? hotfn_json_create_decimal(value, 3)
                                     : hotfn_json_create_text(NULL));
}
