/* SPDX-License-Identifier: MIT */
/* A queue between threads, bounded so that a slow disk makes clients wait or retry instead of
 * filling the memory. */
#ifndef HOTFN_COLLECTOR_QUEUE_H
#define HOTFN_COLLECTOR_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct work_queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void **items; /* a ring */
    uint32_t room, first, count;
    bool closed;
} work_queue;

bool queue_init(work_queue *q, uint32_t room);
void queue_finish(work_queue *q);
/* False if the queue is full or closed. */
bool queue_push(work_queue *q, void *item);
/* Wait for items and take at most `most`; 0 when the queue is closed and empty. */
uint32_t queue_take(work_queue *q, void **out, uint32_t most);
/* What was pushed before is still taken. */
void queue_close(work_queue *q);
uint32_t queue_get_length(work_queue *q);

#endif
