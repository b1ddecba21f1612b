/* SPDX-License-Identifier: MIT */
/* GET /api/v1/export: the table of hot functions as CSV, or its sums as pprof or callgrind
 * profile. */
#include "hot_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- CSV (RFC 4180). */

static void append_quoted(byte_buffer *out, const char *text)
{
    buffer_append_text(out, "\"");
    for (; *text; text++) {
        buffer_append(out, text, 1);
        if (*text == '"') {
            buffer_append_text(out, "\"");
        }
    }
    buffer_append_text(out, "\"");
}

static void append_sum(byte_buffer *out, const hot_table *t, uint32_t number, int metric)
{
    const folded_function *f = &t->now.functions[number];

    if (is_unresolved(f, (enum fold_metric)metric)) {
        buffer_append_text(out, ",");
    } else if (f->overflow & 1u << metric) {
        buffer_append_text(out, ",does not fit");
    } else {
        buffer_append_format(out, ",%" PRIu64, f->sums[metric]);
    }
}

static void write_csv(request *r, const hot_table *t)
{
    byte_buffer *out = &r->reply;
    char buffer[256];

    buffer_append_format(out,
                         "rank,function,module,rva,calls,total_ns,self_ns,max_ns,clients,"
                         "of_clients,%s_%s\r\n",
                         aggregate_names[t->sel.aggregate], metric_names[t->sel.metric]);
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t number = t->order[i];
        const folded_function *f = &t->now.functions[number];
        buffer_append_format(out, "%u,", t->ranks[number]);
        append_quoted(out, get_function_name(&t->list, number, buffer, sizeof buffer));
        buffer_append_text(out, ",");
        append_quoted(out, get_function_file(&t->list, number));
        buffer_append_format(out, ",0x%" PRIx64, t->list.rvas[number]);
        for (int k = 0; k < METRIC_COUNT; k++) {
            append_sum(out, t, number, k);
        }
        buffer_append_text(out, ",");
        if (f->max_ns > 0) {
            buffer_append_format(out, "%" PRIu64, f->max_ns);
        }
        buffer_append_format(out, ",%u,%u,", f->clients, t->now.client_count);
        if (isfinite(f->value) && !is_unresolved(f, t->sel.metric)) {
            buffer_append_format(out, "%.15g", f->value);
        }
        buffer_append_text(out, "\r\n");
    }
}

/* ---- Callgrind (Valgrind manual, "Callgrind Format Specification"). */

/* A line break in a name would begin another line of the format. */
static void append_line_text(byte_buffer *out, const char *text)
{
    for (; *text; text++) {
        buffer_append(out, (unsigned char)*text < 32 ? " " : text, 1);
    }
}

static void write_callgrind(request *r, const hot_table *t)
{
    byte_buffer *out = &r->reply;
    bool timed = t->now.timed_runs > 0;
    char buffer[256];

    buffer_append_text(
        out, "# callgrind format\nversion: 1\ncreator: hotfn-collector\npositions: line\n");
    buffer_append_text(out, timed ? "events: calls self_ns\n" : "events: calls\n");
    for (uint32_t i = 0; i < t->count; i++) {
        const folded_function *f = &t->now.functions[t->order[i]];
        buffer_append_text(out, "ob=");
        append_line_text(out, get_function_file(&t->list, t->order[i]));
        buffer_append_text(out, "\nfl=???\nfn=");
        append_line_text(out, get_function_name(&t->list, t->order[i], buffer, sizeof buffer));
        buffer_append_format(out, "\n0 %" PRIu64, f->sums[METRIC_CALLS]);
        if (timed) {
            buffer_append_format(out, " %" PRIu64, f->sums[METRIC_SELF]);
        }
        buffer_append_text(out, "\n");
    }
}

/* ---- pprof (profile.proto), with one sample for each function. */

enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

static void append_field(byte_buffer *out, unsigned field, uint64_t value)
{
    buffer_append_number(out, field << 3 | WIRE_VARINT);
    buffer_append_number(out, value);
}

static void append_message(byte_buffer *out, unsigned field, const void *bytes, size_t byte_count)
{
    buffer_append_number(out, field << 3 | WIRE_BYTES);
    buffer_append_number(out, byte_count);
    buffer_append(out, bytes, byte_count);
}

/* Append the message in part and empty it. */
static void append_part(byte_buffer *out, unsigned field, byte_buffer *part)
{
    append_message(out, field, part->data, part->used);
    out->failed |= part->failed;
    part->used = 0;
}

static void append_value_type(byte_buffer *out, byte_buffer *part, uint64_t type, uint64_t unit)
{
    append_field(part, 1, type);
    append_field(part, 2, unit);
    append_part(out, 1, part); /* Profile.sample_type */
}

/* A function's number + 1 is the id of its sample's location and function; its name is text 5 +
 * i. */
static void append_function(byte_buffer *out, byte_buffer *part, const hot_table *t, uint32_t i,
                            bool timed)
{
    const folded_function *f = &t->now.functions[t->order[i]];
    byte_buffer list = { 0 };
    uint64_t id = i + UINT64_C(1);

    buffer_append_number(&list, id);
    append_part(part, 1, &list); /* Sample.location_id */
    buffer_append_number(&list, f->sums[METRIC_CALLS]);
    if (timed) {
        buffer_append_number(&list, f->sums[METRIC_SELF]);
    }
    append_part(part, 2, &list); /* Sample.value */
    append_part(out, 2, part);
    append_field(&list, 1, id); /* Line.function_id */
    append_field(part, 1, id);
    append_part(part, 4, &list); /* Location.line */
    append_part(out, 4, part);
    append_field(part, 1, id); /* Function.id, name, system_name */
    append_field(part, 2, 5 + i);
    append_field(part, 3, 5 + i);
    append_part(out, 5, part);
    buffer_free(&list);
}

static void write_pprof(request *r, const hot_table *t)
{
    static const char *const texts[] = { "", "calls", "count", "self", "nanoseconds" };
    byte_buffer *out = &r->reply, part = { 0 };
    bool timed = t->now.timed_runs > 0;
    char buffer[256];

    append_value_type(out, &part, 1, 2);
    if (timed) {
        append_value_type(out, &part, 3, 4);
    }
    for (uint32_t i = 0; i < t->count; i++) {
        append_function(out, &part, t, i, timed);
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        append_message(out, 6, texts[i], strlen(texts[i])); /* Profile.string_table */
    }
    for (uint32_t i = 0; i < t->count; i++) {
        const char *name = get_function_name(&t->list, t->order[i], buffer, sizeof buffer);
        append_message(out, 6, name, strlen(name));
    }
    buffer_free(&part);
}

/* ---- */

/* A profile has no place for "does not fit". */
static bool check_sums(request *r, const hot_table *t)
{
    for (uint32_t i = 0; i < t->count; i++) {
        const folded_function *f = &t->now.functions[t->order[i]];
        if (f->overflow & (1u << METRIC_CALLS | 1u << METRIC_SELF) ||
            f->sums[METRIC_CALLS] > INT64_MAX || f->sums[METRIC_SELF] > INT64_MAX) {
            return request_refuse(r, 422,
                                  "a sum does not fit into this format: select fewer runs, or "
                                  "download CSV");
        }
    }
    return true;
}

void read_export(request *r, store *s)
{
    static const char *const formats[] = { "csv", "pprof", "callgrind" };
    static const char *const types[] = { "text/csv; charset=utf-8", "application/octet-stream",
                                         "text/plain; charset=utf-8" };
    static const char *const files[] = { "hotfn.csv", "hotfn.pb", "callgrind.out.hotfn" };
    static void (*const writers[])(request *, const hot_table *) = { write_csv, write_pprof,
                                                                     write_callgrind };
    hot_table t = { 0 };
    int format;

    if (request_get_word(r, "format", formats, 3, 0, &format) && hot_table_make(r, s, &t) &&
        (format == 0 || check_sums(r, &t))) {
        writers[format](r, &t);
        r->type = types[format];
        snprintf(r->download, sizeof r->download, "%s", files[format]);
    }
    hot_table_free(&t);
}

/* ---- The kit of a build. */

void read_kit(request *r, store *s)
{
    selection sel = { 0 };
    sqlite3_stmt *q = store_get_statement(s, "SELECT archive FROM kit WHERE build = ?1");

    if (!find_app(r, s, &sel.app) || !choose_build(r, s, "build", &sel)) {
        return;
    }
    int step = store_bind(q, "i", sel.filter.build) ? sqlite3_step(q) : SQLITE_ERROR;
    if (step == SQLITE_ROW) {
        r->type = "application/gzip";
        snprintf(r->download, sizeof r->download, "hotfn-kit.tar.gz");
        buffer_append(&r->reply, sqlite3_column_blob(q, 0), (size_t)sqlite3_column_bytes(q, 0));
    } else if (step == SQLITE_DONE) {
        request_refuse(r, 404,
                       "build %.80s has no kit: store one with hotfn push --build FILE --kit "
                       "FOLDER",
                       sel.build);
    } else {
        refuse_for_database(&r->refused, s);
    }
    sqlite3_reset(q);
}
