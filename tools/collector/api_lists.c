/* SPDX-License-Identifier: MIT */
/* Lists: apps, builds, clients, labels. */
#include "reply.h"
#include "selection.h"

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
    int step;
    hotfn_json_begin_array(out, "apps");
    while ((step = sqlite3_step(q)) == SQLITE_ROW) {
        hotfn_json_begin_object(out, NULL);
        write_column_text(out, "name", q, 0);
        write_column_number(out, "builds", q, 1);
        write_column_number(out, "clients", q, 2);
        hotfn_json_end(out);
    }
    hotfn_json_end(out);
    sqlite3_reset(q);
    end_reply(r, out, s, step);
}

void read_builds(request *r, store *s)
{
    sqlite3_stmt *q = store_get_statement(
        s,
        "SELECT build.image, build.version, build.file, build.registered, build.function_count, "
        "count(run.id), count(DISTINCT run.client), min(run.start_ns), max(run.start_ns), "
        "count(DISTINCT run.uuid) "
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
    int step;
    hotfn_json_begin_array(out, "builds");
    while ((step = sqlite3_step(q)) == SQLITE_ROW) {
        hotfn_json_begin_object(out, NULL);
        write_column_text(out, "build", q, 0);
        write_column_text(out, "version", q, 1);
        write_column_text(out, "file", q, 2);
        hotfn_json_write(out, "registered", hotfn_json_create_bool(sqlite3_column_int(q, 3)));
        write_column_number(out, "functions", q, 4);
        write_column_number(out, "records", q, 5);
        write_column_number(out, "clients", q, 6);
        write_column_number(out, "first_ns", q, 7);
        write_column_number(out, "last_ns", q, 8);
        write_column_number(out, "runs", q, 9);
        hotfn_json_end(out);
    }
    hotfn_json_end(out);
    sqlite3_reset(q);
    end_reply(r, out, s, step);
}

void read_clients(request *r, store *s)
{
    sqlite3_stmt *q = store_get_statement(
        s,
        "SELECT lower(hex(client.key)), count(DISTINCT run.uuid), min(run.start_ns), max(run.end_ns), "
        "max(run.hooked), max(run.unhooked), sum(run.row_count), sum(run.state = 3), count(*) "
        "FROM run JOIN client ON client.id = run.client WHERE run.build = ?1 "
        "GROUP BY client.id ORDER BY max(run.end_ns) DESC, client.id LIMIT ?2 OFFSET ?3");
    selection sel;

    if (!read_selection(r, s, &sel)) {
        return;
    }
    hotfn_json_writer *out = begin_reply(r);
    if (!out || !store_bind(q, "iii", sel.filter.build, sel.limit, sel.offset)) {
        end_reply(r, out, s, SQLITE_ERROR);
        return;
    }
    int step;
    write_build(out, &sel);
    hotfn_json_begin_array(out, "clients");
    while ((step = sqlite3_step(q)) == SQLITE_ROW) {
        hotfn_json_begin_object(out, NULL);
        write_column_text(out, "client", q, 0);
        write_column_number(out, "runs", q, 1);
        write_column_number(out, "first_ns", q, 2);
        write_column_number(out, "last_ns", q, 3);
        write_column_number(out, "hooked", q, 4);
        write_column_number(out, "unhooked", q, 5);
        write_column_number(out, "functions_called", q, 6);
        write_column_number(out, "killed_runs", q, 7);
        write_column_number(out, "records", q, 8);
        hotfn_json_end(out);
    }
    hotfn_json_end(out);
    sqlite3_reset(q);
    end_reply(r, out, s, step);
}

void read_labels(request *r, store *s)
{
    sqlite3_stmt *q = store_get_statement(
        s,
        "SELECT label.key, label.value, count(DISTINCT run.client), count(DISTINCT run.uuid) FROM run "
        "JOIN label ON label.run = run.id WHERE run.build = ?1 GROUP BY label.key, label.value "
        "ORDER BY label.key, label.value LIMIT ?2 OFFSET ?3");
    selection sel;

    if (!read_selection(r, s, &sel)) {
        return;
    }
    hotfn_json_writer *out = begin_reply(r);
    if (!out || !store_bind(q, "iii", sel.filter.build, sel.limit, sel.offset)) {
        end_reply(r, out, s, SQLITE_ERROR);
        return;
    }
    int step;
    write_build(out, &sel);
    hotfn_json_begin_array(out, "labels");
    while ((step = sqlite3_step(q)) == SQLITE_ROW) {
        hotfn_json_begin_object(out, NULL);
        write_column_text(out, "key", q, 0);
        write_column_text(out, "value", q, 1);
        write_column_number(out, "clients", q, 2);
        write_column_number(out, "runs", q, 3);
        hotfn_json_end(out);
    }
    hotfn_json_end(out);
    sqlite3_reset(q);
    end_reply(r, out, s, step);
}
