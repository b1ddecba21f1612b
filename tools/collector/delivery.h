/* SPDX-License-Identifier: MIT */
/* Move the counts of runs from the database to ClickHouse, each exactly once.
 *
 *   stored in SQLite --> batch (one server, one day) --> sent --> delivered: deleted from SQLite
 *                                    |                    |
 *                                    +---- no answer -----+--> asked: has the server this batch?
 *
 * A batch and its runs are committed before it is sent, as one block, which ClickHouse stores in
 * whole or not at all.  Where the outcome is unknown, because the server or the collector was
 * killed or the connection broke, the server is asked for the rows of the batch before anything is
 * sent again, and the materialised sums of its day are made again if they differ from the rows. */
#ifndef HOTFN_COLLECTOR_DELIVERY_H
#define HOTFN_COLLECTOR_DELIVERY_H

#include "clickhouse.h"

#include <pthread.h>

typedef struct delivery delivery;

/* lock: held for reading while a query is answered; the delivery holds it for writing from a
 * sending to the commit after it, so that each query sees a batch in one place.  keep_days: delete
 * days that are older; 0: delete none. */
bool delivery_start(delivery **out, const char *folder, const clickhouse_options *options,
                    pthread_rwlock_t *lock, uint32_t keep_days, refusal *why);
/* Finish the batch that is being sent; what waits stays in the database. */
void delivery_stop(delivery *d);

/* Prepare the database for a number of servers; refuses fewer servers than have batches, and a
 * folder whose counts are in ClickHouse if options is NULL. */
bool delivery_check_folder(store *s, const clickhouse_options *options, char owner[33],
                           refusal *why);

/* Delete whole days that end before a time, or a build, on every server.  No delivery may run. */
bool delivery_delete_days(clickhouse *c, int64_t before_ns, refusal *why);
bool delivery_delete_build(clickhouse *c, int64_t build, refusal *why);

#endif
