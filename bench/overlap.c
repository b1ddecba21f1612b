/* SPDX-License-Identifier: MIT */
/* Measures the cost that a timed hook adds to functions with a known amount of work, as the minimum
 * of the rounds.  During a chain of dependent instructions (chain) the processor can execute the
 * hook in parallel, during independent instructions (wide) it cannot.  Prints: name, number of
 * instructions, nanoseconds without a hook (bare_*), nanoseconds with one (timed_*). */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define OWN __attribute__((noinline, noclone))

enum { CALLS = 1000, ROUNDS = 400 };

typedef uint64_t (*work_fn)(uint64_t);

#define CHAIN(name, n)                                                                             \
    OWN uint64_t name(uint64_t x)                                                                  \
    {                                                                                              \
        __asm__ volatile(".rept " #n "\n imulq $3, %0, %0\n .endr" : "+r"(x));                     \
        return x;                                                                                  \
    }
#define WIDE(name, n)                                                                              \
    OWN uint64_t name(uint64_t x)                                                                  \
    {                                                                                              \
        uint64_t a = 0, b = 0, c = 0;                                                              \
        __asm__ volatile(".rept " #n "\n inc %0\n inc %1\n inc %2\n inc %3\n .endr"                \
                         : "+r"(x), "+r"(a), "+r"(b), "+r"(c));                                    \
        return x;                                                                                  \
    }
#define BOTH(kind, name, n) kind(timed_##name##_##n, n) kind(bare_##name##_##n, n)
#define ROW(name, n)                                                                               \
    {                                                                                              \
#name, n, bare_##name##_##n, timed_##name##_##n                                            \
    }

BOTH(CHAIN, chain, 1)
BOTH(CHAIN, chain, 16)
BOTH(CHAIN, chain, 64)
BOTH(CHAIN, chain, 256)
BOTH(WIDE, wide, 1)
BOTH(WIDE, wide, 16)
BOTH(WIDE, wide, 64)
BOTH(WIDE, wide, 256)

static const struct {
    const char *name;
    int n;
    work_fn bare, timed;
} rows[] = { ROW(chain, 1), ROW(chain, 16), ROW(chain, 64), ROW(chain, 256),
             ROW(wide, 1),  ROW(wide, 16),  ROW(wide, 64),  ROW(wide, 256) };

static double min_ns_per_call(double before, work_fn work)
{
    struct timespec from, to;
    uint64_t x = 1;
    double ns;

    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < CALLS; i++) {
        x = work(x);
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
    return ns / CALLS < before ? ns / CALLS : before;
}

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double bare = 1e9, timed = 1e9;

        for (int round = 0; round < ROUNDS; round++) {
            bare = min_ns_per_call(bare, rows[i].bare);
            timed = min_ns_per_call(timed, rows[i].timed);
        }
        printf("%s %d %.2f %.2f\n", rows[i].name, rows[i].n, bare, timed);
    }
    return 0;
}
