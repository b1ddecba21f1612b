/* SPDX-License-Identifier: MIT */
/* ClickHouse over HTTP: its servers, and queries to them.  A handle belongs to one thread.
 *
 * Each server has the tables of clickhouse.c in one database.  Where there are several servers,
 * a Distributed table in front of each joins them; the rows of a client are on one server. */
#ifndef HOTFN_COLLECTOR_CLICKHOUSE_H
#define HOTFN_COLLECTOR_CLICKHOUSE_H

#include "buffer.h"
#include "store.h"

enum { CLICKHOUSE_MAX_SERVERS = 64, CLICKHOUSE_URL_BYTES = 256, CLICKHOUSE_NAME_BYTES = 64 };

typedef struct clickhouse_options {
    uint32_t server_count; /* 0: counts stay in SQLite */
    char servers[CLICKHOUSE_MAX_SERVERS][CLICKHOUSE_URL_BYTES];
    char database[CLICKHOUSE_NAME_BYTES], cluster[CLICKHOUSE_NAME_BYTES];
} clickhouse_options;

typedef struct clickhouse clickhouse;

/* Read "URL[,URL...]"; false if one is not valid. */
bool clickhouse_parse_servers(clickhouse_options *out, const char *text);
bool clickhouse_parse_name(char out[CLICKHOUSE_NAME_BYTES], const char *text);

/* The caller initialises the HTTP library once, before it starts threads. */
bool clickhouse_open(clickhouse **out, const clickhouse_options *options, refusal *why);
void clickhouse_close(clickhouse *c);
const clickhouse_options *clickhouse_get_options(const clickhouse *c);

/* Ask a server.  body: rows for an INSERT, or NULL.  query_id: names the query on the server, or
 * NULL.  The answer is appended.  False after a refusal: 503 if the server does not answer, 502 if
 * it reports an error. */
bool clickhouse_ask(clickhouse *c, uint32_t server, const char *sql, const byte_buffer *body,
                    const char *query_id, byte_buffer *answer, refusal *why);
/* Ask for one number. */
bool clickhouse_ask_number(clickhouse *c, uint32_t server, const char *sql, uint64_t *out,
                           refusal *why);
bool clickhouse_answers(clickhouse *c, uint32_t server);

/* Check the version of a server, create its tables, and mark them as those of an owner: the ids in
 * the tables are valid only together with the SQLite database of this owner. */
bool clickhouse_prepare(clickhouse *c, uint32_t server, const char *owner, refusal *why);

/* The address of a server without user and password. */
const char *clickhouse_get_name(const clickhouse *c, uint32_t server, char *buffer, size_t bytes);

#endif
