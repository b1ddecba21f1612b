/* SPDX-License-Identifier: MIT */
/* Functions whose shares of the time are known by construction: each executes the same step so many
 * times per call.  In a chain each step needs the result of the one before, also from call to call,
 * so the calls add no time of their own; in wide work, four chains run at the same time.
 *
 *     truth ROUNDS   call them, as often as their shares need
 *     truth list     print name, calls a round, and steps a call of each function */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWN __attribute__((noinline, noclone))
#define STEPS_A_ROUND 66000u /* of each function */

#define STEP(x) __asm__ volatile("imul $0x5bd1e995, %0, %0" : "+r"(x))

static inline __attribute__((always_inline)) uint64_t run_chain(uint64_t x, uint32_t steps)
{
    for (uint32_t i = 0; i < steps; i++) {
        STEP(x);
    }
    return x;
}

static inline __attribute__((always_inline)) uint64_t run_wide(uint64_t x, uint32_t steps)
{
    uint64_t a = x, b = x, c = x;

    for (uint32_t i = 0; i < steps; i++) {
        STEP(x);
        __asm__ volatile("lea 1(%0), %0; lea 1(%1), %1; lea 1(%2), %2" : "+r"(a), "+r"(b), "+r"(c));
    }
    return x + (a & b & c & 1);
}

#define CHAIN(steps)                                                                               \
    OWN uint64_t chain_##steps(uint64_t x)                                                         \
    {                                                                                              \
        return run_chain(x, steps);                                                                \
    }
#define WIDE(steps)                                                                                \
    OWN uint64_t wide_##steps(uint64_t x)                                                          \
    {                                                                                              \
        return run_wide(x, steps);                                                                 \
    }
/* A step takes three cycles, so these calls take about 2, 6, 20 and 100 ns, and 10 us. */
CHAIN(2)
CHAIN(6)
CHAIN(20)
CHAIN(100)
CHAIN(10000)
WIDE(2)
WIDE(6)
WIDE(20)
WIDE(100)
WIDE(10000)

#define FUNCTION(kind, steps)                                                                      \
    {                                                                                              \
        kind##_##steps, #kind "_" #steps, steps                                                    \
    }
static const struct {
    uint64_t (*call)(uint64_t);
    const char *name;
    uint32_t steps;
} functions[] = {
    FUNCTION(chain, 2),     FUNCTION(chain, 6),  FUNCTION(chain, 20),  FUNCTION(chain, 100),
    FUNCTION(chain, 10000), FUNCTION(wide, 2),   FUNCTION(wide, 6),    FUNCTION(wide, 20),
    FUNCTION(wide, 100),    FUNCTION(wide, 10000),
};
enum { COUNT = sizeof functions / sizeof *functions };

static uint32_t calls_of(int i)
{
    return STEPS_A_ROUND / functions[i].steps;
}

OWN uint64_t run_round(uint64_t x)
{
    for (int i = 0; i < COUNT; i++) {
        for (uint32_t k = calls_of(i); k > 0; k--) {
            x = functions[i].call(x);
        }
    }
    return x;
}

int main(int argc, char **argv)
{
    uint64_t x = 1;

    if (argc > 1 && strcmp(argv[1], "list") == 0) {
        for (int i = 0; i < COUNT; i++) {
            printf("%s %u %u\n", functions[i].name, calls_of(i), functions[i].steps);
        }
        return 0;
    }
    for (int rounds = argc > 1 ? atoi(argv[1]) : 1; rounds > 0; rounds--) {
        x = run_round(x);
    }
    return x == 0;
}
