/* SPDX-License-Identifier: MIT */
/* Batches: choose the runs of one, encode it, send it, ask for it, and mark it as delivered. */
#ifndef HOTFN_COLLECTOR_DELIVERY_BATCH_H
#define HOTFN_COLLECTOR_DELIVERY_BATCH_H

#include "clickhouse.h"
#include "clickhouse_block.h"

enum { BATCH_ROWS = 250000, BATCH_RUNS = 1000 };
#define DAY_NS INT64_C(86400000000000)

typedef struct delivery_batch {
    int64_t id, day; /* id 0: there is none */
    uint32_t shard;
} delivery_batch;

/* The batch of a shard that is not delivered yet; *is_new if it was never sent. */
bool batch_find(store *s, uint32_t shard, delivery_batch *out, bool *is_new, refusal *why);
/* Send it, and mark it as delivered.  The memory is used again by the next batch: new pages would
 * cost more than encoding the rows. */
typedef struct batch_memory {
    count_block block;
    byte_buffer body;
} batch_memory;

bool batch_send(store *s, clickhouse *c, const delivery_batch *b, const char *owner,
                batch_memory *memory, refusal *why);
void batch_free_memory(batch_memory *memory);
/* Ask the server whether it has the batch; *found if it has, and its sums are right. */
bool batch_ask(clickhouse *c, const delivery_batch *b, const char *owner, bool *found,
               refusal *why);
bool batch_mark_delivered(store *s, const delivery_batch *b, refusal *why);

#endif
