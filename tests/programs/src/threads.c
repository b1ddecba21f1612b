/* SPDX-License-Identifier: MIT */
/* Threads of every kind, with totals known from the source: many at once in one function,
 * thousands of short ones, and threads that end by pthread_exit, are cancelled, or have a TLS
 * destructor. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "totals.h"

enum { WORKERS = 4, SHARED_CALLS = 250000, SHORT_THREADS = 3000, AT_ONCE = 8, EXITS = 200,
       CANCELS = 100, CALLS_BEFORE_CANCEL = 57 };

static pthread_key_t key;

COUNTED void hammer(void)
{
    KEEP();
}

COUNTED void *hammer_loop(void *unused)
{
    for (int i = 0; i < SHARED_CALLS; i++)
        hammer();
    return unused;
}

COUNTED void *short_life(void *unused)
{
    KEEP();
    return unused;
}

COUNTED void leave(int depth)
{
    if (depth == 0)
        pthread_exit(NULL);
    leave(depth - 1);
    KEEP();
}

COUNTED void *leaver(void *unused)
{
    leave(9);
    return unused;
}

COUNTED void on_key_end(void *unused)
{
    (void)unused;
    KEEP();
}

COUNTED void on_cancel(void *unused)
{
    (void)unused;
    KEEP();
}

COUNTED void step_before_cancel(void)
{
    KEEP();
}

COUNTED void *wait_to_be_cancelled(void *barrier)
{
    pthread_setspecific(key, &key);
    pthread_cleanup_push(on_cancel, NULL);
    for (int i = 0; i < CALLS_BEFORE_CANCEL; i++)
        step_before_cancel();
    pthread_barrier_wait(barrier);
    for (;;)
        pause();
    pthread_cleanup_pop(0);
    return NULL;
}

static void run_all(void *(*start)(void *), int count)
{
    pthread_t threads[AT_ONCE];
    for (int done = 0; done < count; done += AT_ONCE) {
        int now = count - done < AT_ONCE ? count - done : AT_ONCE;
        for (int i = 0; i < now; i++)
            if (pthread_create(&threads[i], NULL, start, NULL) != 0)
                abort();
        for (int i = 0; i < now; i++)
            pthread_join(threads[i], NULL);
    }
}

static void cancel_one(void)
{
    pthread_t thread;
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    if (pthread_create(&thread, NULL, wait_to_be_cancelled, &barrier) != 0)
        abort();
    pthread_barrier_wait(&barrier);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
}

int main(void)
{
    if (pthread_key_create(&key, on_key_end) != 0)
        abort();
    run_all(hammer_loop, WORKERS);
    run_all(short_life, SHORT_THREADS);
    run_all(leaver, EXITS);
    for (int i = 0; i < CANCELS; i++)
        cancel_one();
    say_total("hammer", (unsigned long long)WORKERS * SHARED_CALLS);
    say_total("hammer_loop", WORKERS);
    say_total("short_life", SHORT_THREADS);
    say_total("leave", 10 * EXITS);
    say_total("leaver", EXITS);
    say_total("on_key_end", CANCELS);
    say_total("on_cancel", CANCELS);
    say_total("step_before_cancel", CANCELS * CALLS_BEFORE_CANCEL);
    say_total("wait_to_be_cancelled", CANCELS);
    return 0;
}
