/* SPDX-License-Identifier: MIT */
/* Lists: apps, builds, clients, runs that go on, labels. */
#include "reply.h"
#include "selection.h"
#include "server.h"

/* The columns of a query in the order of its results; the last one has no key. */
typedef struct list_column {
    const char *key;
    enum { LIST_TEXT, LIST_NUMBER, LIST_BOOL } kind;
} list_column;

static void write_row(hotfn_json_writer *out, sqlite3_stmt *q, const list_column *columns)
{
    hotfn_json_begin_object(out, NULL);
    for (int i = 0; columns[i].key; i++) {
        switch (columns[i].kind) {
        case LIST_TEXT: write_column_text(out, columns[i].key, q, i); break;
        case LIST_NUMBER: write_column_number(out, columns[i].key, q, i); break;
        case LIST_BOOL:
            hotfn_json_write(out, columns[i].key, hotfn_json_create_bool(sqlite3_column_int(q, i)));
            break;
        }
    }
    hotfn_json_end(out);
}

/* Write the rows of the query as an array, and end the reply. */
static void reply_list(request *r, store *s, hotfn_json_writer *out, sqlite3_stmt *q,
                       const char *name, const list_column *columns)
{
    int step;

    hotfn_json_begin_array(out, name);
    while ((step = sqlite3_step(q)) == SQLITE_ROW) {
        write_row(out, q, columns);
    }
    hotfn_json_end(out);
    sqlite3_reset(q);
    end_reply(r, out, s, step);
}

static const list_column apps_columns[] = {
    { "name", LIST_TEXT },
    { "builds", LIST_NUMBER },
    { "clients", LIST_NUMBER },
    { NULL, LIST_TEXT },
};

void read_apps(request *r, store *s)
{
    sqlite3_stmt *q = store_get_statement(
        s, "SELECT app.name, (SELECT count(*) FROM build WHERE build.app = app.id), "
           "(SELECT count(*) FROM client WHERE client.app = app.id) FROM app "
           "WHERE ?1 = '' OR app.name = ?1 ORDER BY app.name");
    hotfn_json_writer *out = begin_reply(r);

    if (!out || !store_bind(q, "t", r->access.app)) {
        end_reply(r, out, s, SQLITE_ERROR);
        return;
    }
    reply_list(r, s, out, q, "apps", apps_columns);
}

static const list_column builds_columns[] = {
    { "build", LIST_TEXT },      { "version", LIST_TEXT },     { "file", LIST_TEXT },
    { "registered", LIST_BOOL }, { "functions", LIST_NUMBER }, { "records", LIST_NUMBER },
    { "clients", LIST_NUMBER },  { "first_ns", LIST_NUMBER },  { "last_ns", LIST_NUMBER },
    { "runs", LIST_NUMBER },     { "kit", LIST_BOOL },         { NULL, LIST_TEXT },
};

void read_builds(request *r, store *s)
{
    sqlite3_stmt *q = store_get_statement(
        s,
        "SELECT build.image, build.version, build.file, build.registered, build.function_count, "
        "count(run.id), count(DISTINCT run.client), min(run.start_ns), max(run.start_ns), "
        "count(DISTINCT run.uuid), EXISTS(SELECT 1 FROM kit WHERE kit.build = build.id) "
        "FROM build LEFT JOIN run ON run.build = build.id WHERE build.app = ?1 GROUP BY build.id "
        "ORDER BY coalesce(max(run.start_ns), build.created_ns) DESC, build.id DESC");
    int64_t app;

    if (!find_app(r, s, &app)) {
        return;
    }
    hotfn_json_writer *out = begin_reply(r);
    if (!out || !store_bind(q, "i", app)) {
        end_reply(r, out, s, SQLITE_ERROR);
        return;
    }
    reply_list(r, s, out, q, "builds", builds_columns);
}

/* Bind the build and the page of the request, and reply with the rows of the query. */
static void reply_list_of_build(request *r, store *s, sqlite3_stmt *q, const char *name,
                                const list_column *columns)
{
    selection sel;

    if (!read_selection(r, s, &sel)) {
        return;
    }
    hotfn_json_writer *out = begin_reply(r);
    if (!out || !store_bind(q, "iii", sel.filter.build, sel.limit, sel.offset)) {
        end_reply(r, out, s, SQLITE_ERROR);
        return;
    }
    write_build(out, &sel);
    reply_list(r, s, out, q, name, columns);
}

static const list_column clients_columns[] = {
    { "client", LIST_TEXT },
    { "runs", LIST_NUMBER },
    { "first_ns", LIST_NUMBER },
    { "last_ns", LIST_NUMBER },
    { "hooked", LIST_NUMBER },
    { "unhooked", LIST_NUMBER },
    { "functions_called", LIST_NUMBER },
    { "killed_runs", LIST_NUMBER },
    { "records", LIST_NUMBER },
    { "lost_increments", LIST_NUMBER },
    { NULL, LIST_TEXT },
};

void read_clients(request *r, store *s)
{
    sqlite3_stmt *q = store_get_statement(
        s,
        "SELECT lower(hex(client.key)), count(*), min(r.start_ns), max(r.end_ns), max(r.hooked), "
        "max(r.unhooked), sum(r.row_count), sum(r.killed), sum(r.records), sum(r.lost) "
        "FROM (SELECT client, min(start_ns) AS start_ns, max(end_ns) AS end_ns, max(hooked) AS hooked, "
        "max(unhooked) AS unhooked, sum(row_count) AS row_count, max(state = 3) AS killed, "
        "count(*) AS records, max(sequence) - sum(sequence > 0) AS lost "
        "FROM run WHERE build = ?1 GROUP BY client, uuid) AS r JOIN client ON client.id = r.client "
        "GROUP BY client.id ORDER BY max(r.end_ns) DESC, client.id LIMIT ?2 OFFSET ?3");
    reply_list_of_build(r, s, q, "clients", clients_columns);
}

static const list_column live_columns[] = {
    { "client", LIST_TEXT },       { "build", LIST_TEXT },
    { "version", LIST_TEXT },      { "file", LIST_TEXT },
    { "labels", LIST_TEXT },       { "start_ns", LIST_NUMBER },
    { "last_ns", LIST_NUMBER },    { "overdue", LIST_BOOL },
    { "increments", LIST_NUMBER }, { "lost_increments", LIST_NUMBER },
    { "hooked", LIST_NUMBER },     { "unhooked", LIST_NUMBER },
    { NULL, LIST_TEXT },
};

/* Programs that run now: the last increment of each says so, and came at most three intervals
 * ago. */
void read_live(request *r, store *s)
{
    sqlite3_stmt *q = store_get_statement(
        s,
        "SELECT lower(hex(client.key)), build.image, build.version, build.file, "
        "coalesce((SELECT group_concat(key || '=' || value, ', ') FROM label WHERE run = run.id), ''), "
        "run.start_ns, run.received_ns, run.received_ns + 1500000000 * run.every_s < ?2, "
        "(SELECT count(*) FROM seen WHERE seen.uuid = run.uuid), "
        "run.sequence - (SELECT count(*) FROM seen WHERE seen.uuid = run.uuid), "
        "run.hooked, run.unhooked "
        "FROM run JOIN client ON client.id = run.client JOIN build ON build.id = run.build "
        "WHERE run.received_ns > ?2 - ?3 AND run.app = ?1 AND run.sequence > 0 AND run.state = 1 "
        "AND run.received_ns + 3000000000 * run.every_s >= ?2 AND NOT EXISTS (SELECT 1 FROM seen "
        "WHERE seen.uuid = run.uuid AND seen.sequence > run.sequence) "
        "ORDER BY run.start_ns DESC, run.id LIMIT 5000");
    int64_t app;

    if (!find_app(r, s, &app)) {
        return;
    }
    hotfn_json_writer *out = begin_reply(r);
    if (!out ||
        !store_bind(q, "iii", app, get_wall_ns(), INT64_C(3000000000) * MAX_EVERY_SECONDS)) {
        end_reply(r, out, s, SQLITE_ERROR);
        return;
    }
    reply_list(r, s, out, q, "live", live_columns);
}

static const list_column labels_columns[] = {
    { "key", LIST_TEXT },    { "value", LIST_TEXT }, { "clients", LIST_NUMBER },
    { "runs", LIST_NUMBER }, { NULL, LIST_TEXT },
};

void read_labels(request *r, store *s)
{
    sqlite3_stmt *q = store_get_statement(
        s,
        "SELECT label.key, label.value, count(DISTINCT run.client), count(DISTINCT run.uuid) FROM run "
        "JOIN label ON label.run = run.id WHERE run.build = ?1 GROUP BY label.key, label.value "
        "ORDER BY label.key, label.value LIMIT ?2 OFFSET ?3");
    reply_list_of_build(r, s, q, "labels", labels_columns);
}
