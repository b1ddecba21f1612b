/* SPDX-License-Identifier: MIT */
/* The server.  Threads of the HTTP library receive requests and send replies; workers decode bodies
 * and answer queries, each with a connection to the database of its own; one writer stores what was
 * pushed, many runs in one transaction.
 *
 *   connection --> worker --> (a push) writer --> connection
 *
 * While a request is with a worker or the writer its connection is suspended, so that a slow query
 * delays no other request. */
#ifndef HOTFN_COLLECTOR_SERVER_H
#define HOTFN_COLLECTOR_SERVER_H

#include "clickhouse.h"
#include "queue.h"
#include "request.h"

#include <stdatomic.h>

typedef struct server_options {
    const char *folder, *address, *certificate, *key;
    uint16_t port;
    uint32_t workers, max_connections, timeout_seconds, rate, /* requests a second and token */
        keep_days;                                            /* 0: for ever */
    const clickhouse_options *clickhouse;                     /* NULL: counts stay in SQLite */
    bool anonymous_read, known_builds_only, quiet;
    body_limits limits, build_limits; /* build_limits: of images, symbol files and kits */
} server_options;

typedef struct server_counters {
    atomic_ullong requests, received_bytes, stored, repeated, refused, failed, rows, batches, folds;
    atomic_ullong by_class[6]; /* replies 1xx to 5xx */
    atomic_int connections;
} server_counters;

typedef struct server server;

/* Start all threads; the address is that of the socket, also if port 0 was asked for. */
bool server_start(server **out, const server_options *options, refusal *why);
uint16_t server_get_port(const server *s);
/* Accept no more requests, store what was received, answer, and free the server. */
void server_stop(server *s);

const server_options *server_get_options(const server *s);
server_counters *server_get_counters(server *s);
uint32_t server_get_queue_length(server *s);

int64_t get_wall_ns(void);
int64_t get_monotonic_ns(void);

/* log.c: one line of JSON on stderr for each event. */
void log_event(const char *level, const char *event, const char *text);
void log_request(const request *r);

#endif
