/* SPDX-License-Identifier: MIT */
/* Open the database, and run its statements. */
#include "store.h"

#include "build_map.h"
#include "clickhouse.h"
#include "tokens.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Columns that queries read often come before the packed rows, which have a table of their own: a
 * list of runs then reads no overflow pages.  `seen` outlives the runs that retention deletes, so
 * that a run that is sent again is still recognised.  With ClickHouse, counts has only the runs
 * that wait to be sent there, in batches; a build, client or run never gets the number of a deleted
 * one. */
static const char schema[] =
    "CREATE TABLE app(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);"
    "CREATE TABLE setting(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE build(id INTEGER PRIMARY KEY AUTOINCREMENT, app INTEGER NOT NULL, image TEXT NOT NULL,"
    "  version TEXT NOT NULL DEFAULT '', file TEXT NOT NULL, created_ns INTEGER NOT NULL,"
    "  registered INTEGER NOT NULL DEFAULT 0, function_count INTEGER NOT NULL DEFAULT 0,"
    "  UNIQUE(app, image));"
    "CREATE TABLE module(build INTEGER, number INTEGER, image TEXT NOT NULL, file TEXT NOT NULL,"
    "  PRIMARY KEY(build, number)) WITHOUT ROWID;"
    "CREATE TABLE name(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);"
    "CREATE TABLE function(build INTEGER, number INTEGER, module INTEGER NOT NULL,"
    "  rva INTEGER NOT NULL, byte_count INTEGER NOT NULL DEFAULT 0, name INTEGER,"
    "  PRIMARY KEY(build, number)) WITHOUT ROWID;"
    "CREATE TABLE client(id INTEGER PRIMARY KEY AUTOINCREMENT, app INTEGER NOT NULL, key BLOB NOT NULL,"
    "  UNIQUE(app, key));"
    "CREATE TABLE run(id INTEGER PRIMARY KEY AUTOINCREMENT, uuid BLOB NOT NULL, sequence INTEGER NOT NULL,"
    "  app INTEGER NOT NULL, build INTEGER NOT NULL, client INTEGER NOT NULL,"
    "  start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, received_ns INTEGER NOT NULL,"
    "  state INTEGER NOT NULL, timed INTEGER NOT NULL, hooked INTEGER NOT NULL,"
    "  unhooked INTEGER NOT NULL, row_count INTEGER NOT NULL, every_s INTEGER NOT NULL,"
    "  shard INTEGER, batch INTEGER);"
    "CREATE INDEX run_build ON run(build, client, id);"
    "CREATE INDEX run_received ON run(received_ns);"
    "CREATE INDEX run_waiting ON run(shard, id) WHERE batch IS NULL;"
    "CREATE INDEX run_batch ON run(batch) WHERE batch IS NOT NULL;"
    "CREATE TABLE batch(id INTEGER PRIMARY KEY AUTOINCREMENT, shard INTEGER NOT NULL,"
    "  day INTEGER NOT NULL, delivered INTEGER NOT NULL DEFAULT 0);"
    "CREATE TABLE counts(run INTEGER PRIMARY KEY, rows BLOB NOT NULL, callers BLOB NOT NULL);"
    "CREATE TABLE label(run INTEGER, key TEXT, value TEXT NOT NULL, PRIMARY KEY(run, key))"
    "  WITHOUT ROWID;"
    "CREATE TABLE seen(uuid BLOB, sequence INTEGER, checksum BLOB NOT NULL,"
    "  PRIMARY KEY(uuid, sequence)) WITHOUT ROWID;"
    "CREATE TABLE kit(build INTEGER PRIMARY KEY, archive BLOB NOT NULL);"
    "CREATE TABLE token(hash BLOB PRIMARY KEY, app TEXT NOT NULL, role TEXT NOT NULL,"
    "  created_ns INTEGER NOT NULL, note TEXT NOT NULL) WITHOUT ROWID;";

bool refuse_request(refusal *why, int status, const char *format, ...)
{
    va_list arguments;

    why->status = status;
    va_start(arguments, format);
    vsnprintf(why->text, sizeof why->text, format, arguments);
    va_end(arguments);
    return false;
}

bool refuse_for_database(refusal *why, const store *s)
{
    switch (sqlite3_errcode(s->db) & 255) {
    case SQLITE_FULL:
    case SQLITE_IOERR:
        return refuse_request(why, 507,
                              "the collector cannot write to its disk (%s): free space on "
                              "it, then send again",
                              sqlite3_errmsg(s->db));
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        return refuse_request(why, 507,
                              "the collector may not write to its folder (%s): correct its "
                              "permissions, then send again",
                              sqlite3_errmsg(s->db));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return refuse_request(why, 503, "another program uses the database: send again later");
    default: return refuse_request(why, 500, "the database reports: %s", sqlite3_errmsg(s->db));
    }
}

bool store_execute(store *s, const char *sql)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

static bool create_schema(store *s)
{
    char version[64];

    snprintf(version, sizeof version, "PRAGMA user_version=%d", STORE_SCHEMA);
    return store_execute(s, "BEGIN IMMEDIATE") && store_execute(s, schema) &&
           store_execute(s, version) && store_execute(s, "COMMIT");
}

static bool check_schema(store *s, const char *folder, bool writer, refusal *why)
{
    int64_t version = store_read_integer(store_get_statement(s, "PRAGMA user_version"), -1);

    if (version < 0) {
        return refuse_for_database(why, s);
    }
    if (version == 0 && writer) {
        return create_schema(s) || refuse_for_database(why, s);
    }
    if (version != STORE_SCHEMA) {
        return refuse_request(why, 500,
                              "%s/hotfn.db has schema %lld, and this version reads %d: use the "
                              "version of hotfn-collector that wrote it, or another folder",
                              folder, (long long)version, STORE_SCHEMA);
    }
    return true;
}

bool store_open(store **out, const char *folder, bool writer, refusal *why)
{
    char path[4096];
    store *s = calloc(1, sizeof *s);
    int flags = SQLITE_OPEN_NOMUTEX |
                (writer ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY);

    if (!s || !fill_random(s->writer, sizeof s->writer) ||
        snprintf(path, sizeof path, "%s/hotfn.db", folder) >= (int)sizeof path) {
        free(s);
        return refuse_request(why, 500, "not enough memory, or the path of the folder is too long");
    }
    bool ok = sqlite3_open_v2(path, &s->db, flags, NULL) == SQLITE_OK &&
              sqlite3_busy_timeout(s->db, 10000) == SQLITE_OK &&
              store_execute(s, "PRAGMA cache_size=-8192;PRAGMA temp_store=MEMORY;"
                               "PRAGMA trusted_schema=OFF");
    /* FULL: a commit is on the disk before it is acknowledged. */
    ok = ok && (!writer || store_execute(s, "PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL;"
                                            "PRAGMA journal_size_limit=67108864"));
    if (!ok) {
        refuse_for_database(why, s);
    }
    if (!ok || !check_schema(s, folder, writer, why)) {
        store_close(s);
        return false;
    }
    *out = s;
    return true;
}

void store_close(store *s)
{
    if (!s) {
        return;
    }
    for (int i = 0; i < s->statement_count; i++) {
        sqlite3_finalize(s->statements[i].statement);
    }
    build_map_free_all(s);
    clickhouse_close(s->clickhouse);
    sqlite3_close(s->db);
    free(s);
}

sqlite3_stmt *store_get_statement(store *s, const char *sql)
{
    sqlite3_stmt *statement = NULL;

    for (int i = 0; i < s->statement_count; i++) {
        if (s->statements[i].sql == sql) {
            statement = s->statements[i].statement;
            sqlite3_reset(statement);
            sqlite3_clear_bindings(statement);
            return statement;
        }
    }
    if (s->statement_count == STORE_MAX_STATEMENTS ||
        sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) !=
            SQLITE_OK) {
        return NULL;
    }
    s->statements[s->statement_count].sql = sql;
    s->statements[s->statement_count++].statement = statement;
    return statement;
}

bool store_bind(sqlite3_stmt *statement, const char *types, ...)
{
    va_list values;
    bool ok = statement != NULL;

    va_start(values, types);
    for (int i = 1; ok && *types; i++, types++) {
        if (*types == 'i') {
            ok = sqlite3_bind_int64(statement, i, va_arg(values, int64_t)) == SQLITE_OK;
        } else if (*types == 't') {
            ok = sqlite3_bind_text(statement, i, va_arg(values, const char *), -1, SQLITE_STATIC) ==
                 SQLITE_OK;
        } else {
            const void *bytes = va_arg(values, const void *);
            size_t byte_count = va_arg(values, size_t);
            /* A NULL pointer would be stored as null instead of as no bytes. */
            ok = sqlite3_bind_blob64(statement, i, bytes ? bytes : "", byte_count, SQLITE_STATIC) ==
                 SQLITE_OK;
        }
    }
    va_end(values);
    return ok;
}

bool store_run(sqlite3_stmt *statement)
{
    bool ok = statement && sqlite3_step(statement) == SQLITE_DONE;

    sqlite3_reset(statement);
    return ok;
}

int64_t store_read_integer(sqlite3_stmt *statement, int64_t otherwise)
{
    int step = statement ? sqlite3_step(statement) : SQLITE_ERROR;
    int64_t value = step == SQLITE_ROW    ? sqlite3_column_int64(statement, 0)
                    : step == SQLITE_DONE ? otherwise
                                          : -1;

    sqlite3_reset(statement);
    return value;
}

bool store_get_setting(store *s, const char *key, char *out, size_t out_bytes)
{
    sqlite3_stmt *q = store_get_statement(s, "SELECT value FROM setting WHERE key = ?1");
    int step = store_bind(q, "t", key) ? sqlite3_step(q) : SQLITE_ERROR;
    const char *text = step == SQLITE_ROW ? (const char *)sqlite3_column_text(q, 0) : NULL;

    snprintf(out, out_bytes, "%s", text ? text : "");
    sqlite3_reset(q);
    return step == SQLITE_ROW || step == SQLITE_DONE;
}

bool store_set_setting(store *s, const char *key, const char *value)
{
    sqlite3_stmt *q = store_get_statement(s, "INSERT OR REPLACE INTO setting VALUES(?1, ?2)");
    return store_bind(q, "tt", key, value) && store_run(q);
}
