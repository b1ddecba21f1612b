/* SPDX-License-Identifier: MIT */
/* The parts of the server that its files share. */
#ifndef HOTFN_COLLECTOR_SERVER_INSIDE_H
#define HOTFN_COLLECTOR_SERVER_INSIDE_H

#include "delivery.h"
#include "fold_cache.h"
#include "rate.h"
#include "server.h"

#include <microhttpd.h>

enum { QUEUE_LENGTH = 4096, BATCH_LENGTH = 256, MAX_WORKERS = 16 };

struct server {
    server_options options;
    server_counters counters;
    uint32_t max_connections;
    atomic_int open_requests; /* begun, and their reply is not sent yet */
    atomic_bool stopping;     /* no new connection is accepted          */
    struct MHD_Daemon *daemon;
    store *writer_store, *worker_stores[MAX_WORKERS];
    pthread_t writer, workers[MAX_WORKERS];
    uint32_t worker_count;
    bool has_writer;
    work_queue for_workers, for_writer;
    rate_table rates;
    fold_cache folds;
    delivery *delivery;      /* NULL without ClickHouse */
    pthread_rwlock_t moving; /* see delivery.h          */
    char *certificate, *key; /* contents                */
};

/* connection.c: the callbacks of the HTTP library. */
enum MHD_Result handle_connection(void *user, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *byte_count, void **state);
void end_request(void *user, struct MHD_Connection *connection, void **state,
                 enum MHD_RequestTerminationCode code);
enum MHD_Result accept_connection(void *user, const struct sockaddr *address, socklen_t bytes);
void count_connection(void *user, struct MHD_Connection *connection, void **state,
                      enum MHD_ConnectionNotificationCode code);

/* Give a request back to its connection, which sends the reply. */
void finish_request(request *r);

#endif
