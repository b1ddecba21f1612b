/* SPDX-License-Identifier: MIT */
/* GET /api/v1/function: one function: its value for each client, its callers and callees, and its
 * trend over the builds of the app. */
#include "functions.h"
#include "selection.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TREND = 30, MAX_LISTED_CLIENTS = 200 };

typedef struct call_edge {
    uint32_t other; /* UINT32_MAX: code that is not timed */
    uint64_t calls;
} call_edge;

/* ---- Callers and callees. */

static int compare_edges(const void *left, const void *right)
{
    const call_edge *a = left, *b = right;
    return a->calls != b->calls ? (a->calls < b->calls ? 1 : -1)
                                : (a->other > b->other) - (a->other < b->other);
}

static void write_edges(hotfn_json_writer *out, const char *key, const uint64_t *calls,
                        uint32_t count, const function_list *list)
{
    call_edge *edges = calloc((size_t)count + 1, sizeof *edges);
    uint32_t used = 0;
    char buffer[256];

    for (uint32_t i = 0; edges && i <= count; i++) {
        if (calls[i] > 0) {
            edges[used++] = (call_edge){ i ? i - 1 : UINT32_MAX, calls[i] };
        }
    }
    if (edges) {
        qsort(edges, used, sizeof *edges, compare_edges);
    }
    hotfn_json_begin_array(out, key);
    for (uint32_t i = 0; i < used && i < 100; i++) {
        bool known = edges[i].other != UINT32_MAX;
        hotfn_json_begin_object(out, NULL);
        hotfn_json_write(out, "function",
                         known ? hotfn_json_create_number(edges[i].other)
                               : hotfn_json_create_text(NULL));
        write_text(out, "name",
                   known ? get_function_name(list, edges[i].other, buffer, sizeof buffer)
                         : "(code that is not timed)");
        write_number(out, "calls", edges[i].calls);
        hotfn_json_end(out);
    }
    hotfn_json_end(out);
    free(edges);
}

static bool write_neighbours(request *r, store *s, hotfn_json_writer *out, const selection *sel,
                             uint32_t number, const function_list *list)
{
    fold_edges e = { .function = number, .function_count = list->count };

    e.from = calloc((size_t)list->count + 2, sizeof *e.from);
    e.to = calloc((size_t)list->count + 2, sizeof *e.to);
    bool ok = e.from && e.to && fold_callers(s, &sel->filter, &e, &r->refused);
    if (ok) {
        write_edges(out, "callers", e.from, list->count, list);
        write_edges(out, "callees", e.to, list->count, list);
    }
    free(e.from);
    free(e.to);
    return ok || r->refused.status ||
           request_refuse(r, 503, "the collector has not enough memory: ask again later");
}

/* ---- Clients. */

static int compare_client_values(const void *left, const void *right)
{
    const client_value *a = left, *b = right;
    return a->value != b->value ? (a->value < b->value ? 1 : -1)
                                : (a->client > b->client) - (a->client < b->client);
}

static void write_client(hotfn_json_writer *out, store *s, const client_value *value)
{
    sqlite3_stmt *q = store_get_statement(s, "SELECT lower(hex(key)) FROM client WHERE id = ?1");
    bool found = store_bind(q, "i", value->client) && sqlite3_step(q) == SQLITE_ROW;

    hotfn_json_begin_object(out, NULL);
    write_text(out, "client", found ? (const char *)sqlite3_column_text(q, 0) : "");
    write_number(out, "value", value->value);
    hotfn_json_end(out);
    if (q) {
        sqlite3_reset(q);
    }
}

/* Write the clients that called the function, largest value first, and all values for a histogram:
 * with the clients that did not call it there are about->client_count. */
static void write_clients(hotfn_json_writer *out, store *s, client_value *values, uint32_t count,
                          const folded *about)
{
    if (count > 0) { /* else values is NULL, which qsort must not be given */
        qsort(values, count, sizeof *values, compare_client_values);
    }
    write_number(out, "of_clients", about->client_count);
    write_number(out, "called_by", count);
    hotfn_json_begin_array(out, "values");
    for (uint32_t i = 0; i < count && i < 20000; i++) {
        hotfn_json_write(out, NULL, hotfn_json_create_number(values[i].value));
    }
    hotfn_json_end(out);
    hotfn_json_begin_array(out, "clients");
    for (uint32_t i = 0; i < count && i < MAX_LISTED_CLIENTS; i++) {
        write_client(out, s, &values[i]);
    }
    hotfn_json_end(out);
}

/* ---- Trend. */

/* The number of the function with this file and name in another build; -1 if there is none. */
static int64_t find_in_build(store *s, int64_t build, const char *file, const char *name)
{
    sqlite3_stmt *q = store_get_statement(
        s,
        "SELECT function.number FROM function JOIN module ON module.build = function.build AND "
        "module.number = function.module WHERE function.build = ?1 AND module.file = ?2 AND "
        "function.name = (SELECT id FROM name WHERE text = ?3) ORDER BY function.number LIMIT 1");
    return store_bind(q, "itt", build, file, name) ? store_read_integer(q, -1) : -1;
}

static bool write_point(request *r, store *s, hotfn_json_writer *out, const selection *sel,
                        int64_t build, uint32_t number)
{
    fold_filter filter = { .build = build };
    client_value *values = NULL;
    uint32_t count = 0;
    folded about;
    double sum = 0;

    if (!fold_one_function(s, &filter, sel->metric, number, &values, &count, &about, &r->refused)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        sum += (double)values[i].value;
    }
    write_number(out, "clients", about.client_count);
    write_decimal(out, "average", about.client_count ? sum / about.client_count : 0);
    free(values);
    return true;
}

static bool write_trend(request *r, store *s, hotfn_json_writer *out, const selection *sel,
                        const char *file, const char *name)
{
    struct {
        int64_t id;
        char image[80], version[MAX_TEXT + 1];
    } builds[MAX_TREND];
    int count = 0, step = SQLITE_ERROR;
    sqlite3_stmt *q = store_get_statement(
        s, "SELECT id, image, version FROM (SELECT id, image, version FROM build WHERE app = ?1 "
           "ORDER BY id DESC LIMIT ?2) ORDER BY id");

    if (!store_bind(q, "ii", sel->app, (int64_t)MAX_TREND)) {
        return refuse_for_database(&r->refused, s);
    }
    while (count < MAX_TREND && (step = sqlite3_step(q)) == SQLITE_ROW) {
        memset(&builds[count], 0, sizeof builds[count]);
        builds[count].id = sqlite3_column_int64(q, 0);
        copy_bounded(builds[count].image, sizeof builds[0].image,
                     (const char *)sqlite3_column_text(q, 1));
        copy_bounded(builds[count++].version, sizeof builds[0].version,
                     (const char *)sqlite3_column_text(q, 2));
    }
    sqlite3_reset(q);
    bool ok = true;
    hotfn_json_begin_array(out, "trend");
    for (int i = 0; i < count && ok; i++) {
        int64_t number = find_in_build(s, builds[i].id, file, name);
        if (number < 0) {
            continue;
        }
        hotfn_json_begin_object(out, NULL);
        write_text(out, "build", builds[i].image);
        write_text(out, "version", builds[i].version);
        write_number(out, "function", (uint64_t)number);
        ok = write_point(r, s, out, sel, builds[i].id, (uint32_t)number);
        hotfn_json_end(out);
    }
    hotfn_json_end(out);
    return ok;
}

/* ---- */

static void write_function(request *r, store *s, const selection *sel, const function_list *list,
                           uint32_t number)
{
    client_value *values = NULL;
    uint32_t count = 0;
    folded about;
    char buffer[256];
    const char *name = get_function_name(list, number, buffer, sizeof buffer);

    if (!fold_one_function(s, &sel->filter, sel->metric, number, &values, &count, &about,
                           &r->refused)) {
        return;
    }
    hotfn_json_writer *out = begin_reply(r);
    if (out) {
        write_build(out, sel);
        write_number(out, "function", number);
        write_text(out, "name", name);
        write_text(out, "module", get_function_file(list, number));
        write_number(out, "rva", list->rvas[number]);
        write_number(out, "bytes", list->byte_counts[number]);
        write_text(out, "metric", metric_names[sel->metric]);
        write_number(out, "timed_records", about.timed_runs);
        write_gap(out, &about.gap);
        write_clients(out, s, values, count, &about);
        bool ok = write_neighbours(r, s, out, sel, number, list) &&
                  write_trend(r, s, out, sel, get_function_file(list, number), name);
        end_reply(r, out, s, ok || r->refused.status ? SQLITE_DONE : SQLITE_ERROR);
    }
    free(values);
}

void read_function(request *r, store *s)
{
    selection sel;
    function_list list = { 0 };
    int64_t number;

    if (!read_selection(r, s, &sel) ||
        !request_get_number(r, "function", 0, UINT32_MAX - 1, -1, &number)) {
        return;
    }
    sqlite3_stmt *q = store_get_statement(s, "SELECT function_count FROM build WHERE id = ?1");
    int64_t count = store_bind(q, "i", sel.filter.build) ? store_read_integer(q, 0) : -1;
    if (count < 0) {
        refuse_for_database(&r->refused, s);
    } else if (number < 0 || number >= count) {
        request_refuse(r, 404, "the build has no such function: take its number from /api/v1/hot");
    } else if (load_functions(s, sel.filter.build, (uint32_t)count, &list, &r->refused)) {
        write_function(r, s, &sel, &list, (uint32_t)number);
    }
    free_functions(&list);
}
