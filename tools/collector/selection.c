/* SPDX-License-Identifier: MIT */
/* Read the selection of a query. */
#include "selection.h"

#include <string.h>

const char *const metric_names[METRIC_COUNT] = { "calls", "total", "self" };
const char *const aggregate_names[AGGREGATE_COUNT] = { "sum",    "average", "average_called",
                                                       "median", "p95",     "max" };

bool find_app(request *r, store *s, int64_t *out)
{
    const char *name = request_get_app(r);

    if (!name) {
        return false;
    }
    *out = ingest_find_app(s, name);
    if (*out < 0) {
        return refuse_for_database(&r->refused, s);
    }
    return *out > 0 || request_refuse(r, 404, "no record of app %.64s has arrived", name);
}

bool choose_build(request *r, store *s, const char *key, selection *out)
{
    const char *build = request_get(r, key);
    bool latest = !build || !*build || strcmp(build, "latest") == 0;
    sqlite3_stmt *q = store_get_statement(
        s, "SELECT id, image, version FROM build WHERE app = ?1 AND (?2 IS NULL OR image = ?2 OR "
           "version = ?2) ORDER BY image = ?2 DESC, "
           "(SELECT max(start_ns) FROM run WHERE run.build = build.id) DESC, id DESC LIMIT 2");
    int found = 0, step = SQLITE_ERROR;
    bool by_image = false;

    if (!store_bind(q, "it", out->app, latest ? NULL : build)) {
        return refuse_for_database(&r->refused, s);
    }
    while ((step = sqlite3_step(q)) == SQLITE_ROW) {
        if (found++ == 0) {
            out->filter.build = sqlite3_column_int64(q, 0);
            copy_bounded(out->build, sizeof out->build, (const char *)sqlite3_column_text(q, 1));
            copy_bounded(out->version, sizeof out->version,
                         (const char *)sqlite3_column_text(q, 2));
            by_image = latest || strcmp(build, out->build) == 0;
        }
    }
    sqlite3_reset(q);
    if (step != SQLITE_DONE) {
        return refuse_for_database(&r->refused, s);
    }
    if (found == 0) {
        return request_refuse(r, 404, "the app has no build %.80s: see /api/v1/builds",
                              latest ? "yet" : build);
    }
    return found == 1 || by_image ||
           request_refuse(r, 409,
                          "two builds have version %.80s: name one by its image id, see "
                          "/api/v1/builds",
                          build);
}

static bool read_client(request *r, store *s, selection *out)
{
    const char *client = request_get(r, "client");
    uint8_t key[16];
    sqlite3_stmt *q = store_get_statement(s, "SELECT id FROM client WHERE app = ?1 AND key = ?2");

    if (!client || !*client) {
        return true;
    }
    if (!parse_uuid(client, key)) {
        return request_refuse(r, 400, "client is not 32 hexadecimal digits");
    }
    out->filter.client =
        store_bind(q, "ib", out->app, key, sizeof key) ? store_read_integer(q, 0) : -1;
    if (out->filter.client < 0) {
        return refuse_for_database(&r->refused, s);
    }
    return out->filter.client > 0 || request_refuse(r, 404, "the app has no such client");
}

static bool read_label(request *r, selection *out)
{
    const char *label = request_get(r, "label"), *equal = label ? strchr(label, '=') : NULL;

    if (!label || !*label) {
        return true;
    }
    if (!equal || equal - label > MAX_LABEL_KEY) {
        return request_refuse(r, 400, "label is not KEY=VALUE");
    }
    memcpy(out->label_key, label, (size_t)(equal - label));
    out->filter.label_key = out->label_key;
    out->filter.label_value = equal + 1;
    return true;
}

bool read_selection(request *r, store *s, selection *out)
{
    int metric, aggregate;
    int64_t from, to;

    memset(out, 0, sizeof *out);
    if (!find_app(r, s, &out->app) || !choose_build(r, s, "build", out) ||
        !read_client(r, s, out) || !read_label(r, out) ||
        !request_get_word(r, "metric", metric_names, METRIC_COUNT, METRIC_CALLS, &metric) ||
        !request_get_word(r, "agg", aggregate_names, AGGREGATE_COUNT, BY_SUM, &aggregate) ||
        !request_get_number(r, "from", 0, INT64_MAX / 1000000000, 0, &from) ||
        !request_get_number(r, "to", 0, INT64_MAX / 1000000000, 0, &to) ||
        !request_get_number(r, "limit", 1, 100000, 50, &out->limit) ||
        !request_get_number(r, "offset", 0, INT32_MAX, 0, &out->offset)) {
        return false;
    }
    out->snapshot = request_get(r, "snapshot");
    out->metric = (enum fold_metric)metric;
    out->aggregate = (enum fold_aggregate)aggregate;
    out->filter.from_ns = from * 1000000000;
    out->filter.to_ns = to * 1000000000;
    return true;
}

void write_build(hotfn_json_writer *out, const selection *sel)
{
    write_text(out, "build", sel->build);
    write_text(out, "version", sel->version);
}

void write_gap(hotfn_json_writer *out, const fold_gap *gap)
{
    if (!gap->rows && !gap->waiting && !gap->servers[0]) {
        hotfn_json_write(out, "missing", hotfn_json_create_text(NULL));
        return;
    }
    hotfn_json_begin_object(out, "missing");
    write_number(out, "rows", gap->rows);
    write_number(out, "waiting_records", gap->waiting);
    write_text(out, "servers", gap->servers);
    hotfn_json_end(out);
}
