/* SPDX-License-Identifier: MIT */
/* A bounded queue between threads. */
#include "queue.h"

#include <stdlib.h>

bool queue_init(work_queue *q, uint32_t room)
{
    *q = (work_queue){ .room = room, .items = calloc(room, sizeof(void *)) };
    return q->items && pthread_mutex_init(&q->lock, NULL) == 0 &&
           pthread_cond_init(&q->changed, NULL) == 0;
}

void queue_finish(work_queue *q)
{
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    free(q->items);
}

bool queue_push(work_queue *q, void *item)
{
    pthread_mutex_lock(&q->lock);
    bool ok = !q->closed && q->count < q->room;
    if (ok) {
        q->items[(q->first + q->count++) % q->room] = item;
        pthread_cond_signal(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    return ok;
}

uint32_t queue_take(work_queue *q, void **out, uint32_t most)
{
    uint32_t count = 0;

    pthread_mutex_lock(&q->lock);
    while (q->count == 0 && !q->closed) {
        pthread_cond_wait(&q->changed, &q->lock);
    }
    while (q->count > 0 && count < most) {
        out[count++] = q->items[q->first];
        q->first = (q->first + 1) % q->room;
        q->count--;
    }
    pthread_mutex_unlock(&q->lock);
    return count;
}

void queue_close(work_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

uint32_t queue_get_length(work_queue *q)
{
    pthread_mutex_lock(&q->lock);
    uint32_t count = q->count;
    pthread_mutex_unlock(&q->lock);
    return count;
}
