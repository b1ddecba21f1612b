/* SPDX-License-Identifier: MIT */
/* A program that measures its own functions.  Each waits for a number of ticks of the processor's
 * counter and records the ticks that really passed, so load on the machine does not matter.  Output
 * lines: name calls total self. */
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __clang__
#define OWN __attribute__((noinline))
#else
#define OWN __attribute__((noinline, noclone))
#endif

/* The processor's counter.  A wait takes some ten thousand ticks of a TSC, and fewer of a slower
 * counter (WAIT_SHIFT). */
static inline uint64_t counter(void)
{
#if defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return __builtin_ia32_rdtsc();
#endif
}
#if defined(__aarch64__)
#define WAIT_SHIFT 1
#else
#define WAIT_SHIFT 0
#endif

typedef struct tally {
    const char *name;
    uint64_t calls, total, self;
} tally;

static __thread uint64_t below; /* ticks of the calls that the current function has made */

#define BEGIN() uint64_t saved_ = below, begin_ = counter(); below = 0
#define END(t)                                                                                     \
    do {                                                                                           \
        uint64_t passed_ = counter() - begin_;                                                     \
        __atomic_fetch_add(&(t)->calls, 1, __ATOMIC_RELAXED);                                      \
        __atomic_fetch_add(&(t)->total, passed_, __ATOMIC_RELAXED);                                \
        __atomic_fetch_add(&(t)->self, passed_ - below, __ATOMIC_RELAXED);                         \
        below = saved_ + passed_;                                                                  \
    } while (0)

static tally t_leaf = { "leaf", 0, 0, 0 }, t_middle = { "middle", 0, 0, 0 },
             t_top = { "top", 0, 0, 0 }, t_climb = { "climb", 0, 0, 0 },
             t_work = { "work", 0, 0, 0 };

static inline __attribute__((always_inline)) void wait_for(uint64_t ticks)
{
    uint64_t end = counter() + (ticks >> WAIT_SHIFT);

    while (counter() < end) {
    }
}

OWN void leaf(uint64_t ticks)
{
    BEGIN();
    wait_for(ticks);
    END(&t_leaf);
}

OWN void middle(int calls)
{
    BEGIN();
    for (int i = 0; i < calls; i++)
        leaf(30000);
    wait_for(50000);
    END(&t_middle);
}

OWN void top(int rounds)
{
    BEGIN();
    for (int i = 0; i < rounds; i++)
        middle(3);
    END(&t_top);
}

/* Recursion: the total counts only the outermost call. */
OWN void climb(int depth)
{
    BEGIN();
    wait_for(40000);
    if (depth > 0)
        climb(depth - 1);
    END(&t_climb);
    if (depth > 0)
        return;
}

OWN void *work(void *user)
{
    BEGIN();
    for (int i = 0; i < 50; i++) {
        leaf(20000);
        wait_for(20000);
    }
    END(&t_work);
    return user;
}

static void say(const tally *t)
{
    printf("%s %llu %llu %llu\n", t->name, (unsigned long long)t->calls,
           (unsigned long long)t->total, (unsigned long long)t->self);
}

int main(void)
{
    pthread_t threads[2];
    uint64_t climbed = 0, before;

    top(60);
    for (int i = 0; i < 20; i++) {
        before = counter();
        climb(9);
        climbed += counter() - before;
    }
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    t_climb.total = climbed;
    say(&t_leaf);
    say(&t_middle);
    say(&t_top);
    say(&t_climb);
    say(&t_work);
    return 0;
}
