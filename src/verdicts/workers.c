/* SPDX-License-Identifier: MIT */
/* A parallel loop.  Its threads block every signal, so that they are no business of the program
 * which called us. */
#include "verdicts/workers.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#define THREADS_MAX 64u

typedef struct loop {
    hfn_work_fn work;
    void *user;
    uint32_t item_count;
    uint32_t next; /* atomic */
} loop;

static void *take_items(void *argument)
{
    loop *l = argument;

    for (;;) {
        /* Relaxed: items are independent; pthread_join orders what they wrote. */
        uint32_t item = __atomic_fetch_add(&l->next, 1, __ATOMIC_RELAXED);
        if (item >= l->item_count) {
            return NULL;
        }
        l->work(l->user, item);
    }
}

static uint32_t start_threads(loop *l, pthread_t *threads, uint32_t wanted)
{
    sigset_t all, before;
    uint32_t count = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (count < wanted && pthread_create(&threads[count], NULL, take_items, l) == 0) {
        count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return count;
}

void hfn_workers_run(uint32_t threads, uint32_t item_count, hfn_work_fn work, void *user)
{
    loop l = { .work = work, .user = user, .item_count = item_count };
    pthread_t helpers[THREADS_MAX];
    uint32_t wanted = threads < THREADS_MAX ? threads : THREADS_MAX;
    uint32_t started = 0;

    if (wanted > item_count) {
        wanted = item_count;
    }
    if (wanted > 1) {
        started = start_threads(&l, helpers, wanted - 1);
    }
    take_items(&l);
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(helpers[i], NULL);
    }
}

uint32_t hfn_workers_default(void)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);

    return online > 0 && online < (long)THREADS_MAX ? (uint32_t)online : 1u;
}
