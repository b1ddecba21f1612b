/* SPDX-License-Identifier: MIT */
/* The database: one SQLite file in WAL mode.  One connection writes, and each query has a
 * connection of its own.  The counts of a run are one packed row (pack.h), so that storing a run
 * is one insertion and reading a build is one pass. */
#ifndef HOTFN_COLLECTOR_STORE_H
#define HOTFN_COLLECTOR_STORE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_SCHEMA 2 /* PRAGMA user_version */
#define STORE_MAX_STATEMENTS 64

/* The answer to a request that is refused: an HTTP status, and one sentence that says what to
 * do. */
typedef struct refusal {
    int status;
    char text[400];
} refusal;

typedef struct store {
    sqlite3 *db;
    struct {
        const char *sql;
        sqlite3_stmt *statement;
    } statements[STORE_MAX_STATEMENTS];
    int statement_count;
    uint8_t writer[16];            /* of the writer: random, see forget_changed_builds */
    struct build_map *maps;        /* of the writer: functions of the builds in use */
    struct clickhouse *clickhouse; /* kept; NULL: counts are in SQLite             */
    uint32_t shard_count;          /* servers of ClickHouse                        */
} store;

/* Returns false, always, so that a function can return it. */
bool refuse_request(refusal *why, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The refusal for a failed call of SQLite. */
bool refuse_for_database(refusal *why, const store *s);

/* Open DIR/hotfn.db; the writer creates it, and refuses the schema of a newer version. */
bool store_open(store **out, const char *folder, bool writer, refusal *why);
void store_close(store *s);
/* Read a text of the table of settings, "" if it is not set. */
bool store_get_setting(store *s, const char *key, char *out, size_t out_bytes);
bool store_set_setting(store *s, const char *key, const char *value);

/* The prepared statement of a string literal, reset and without values; NULL on failure. */
sqlite3_stmt *store_get_statement(store *s, const char *sql);
bool store_execute(store *s, const char *sql);

/* Bind values by the letters of types: i (int64_t), t (const char *, NULL is null), b (const
 * void *, size_t). */
bool store_bind(sqlite3_stmt *statement, const char *types, ...);
/* Run a statement that returns no row; false if it is NULL or fails. */
bool store_run(sqlite3_stmt *statement);
/* The first column of the first row, or `otherwise` if there is none; -1 on failure. */
int64_t store_read_integer(sqlite3_stmt *statement, int64_t otherwise);

#endif
