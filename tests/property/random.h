/* SPDX-License-Identifier: MIT */
/* Random numbers for properties: small, seeded, the same on every host (xorshift64*, Vigna
 * 2016). */
#ifndef HFN_TESTS_RANDOM_H
#define HFN_TESTS_RANDOM_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The size of a test run: `test [SEED [COUNT]]`. */
typedef struct random_run {
    uint64_t seed, count;
} random_run;

/* Parse the arguments of a test.  Without a seed the numbers are always the same, so that
 * failures are reproducible; seed 0 takes one from the clock, for long runs.  The seed is
 * printed. */
static inline random_run random_parse_run(int argc, char **argv, uint64_t count)
{
    random_run run = { argc > 1 ? strtoull(argv[1], NULL, 0) : 1,
                       argc > 2 ? strtoull(argv[2], NULL, 0) : count };

    run.seed = run.seed ? run.seed : (uint64_t)time(NULL);
    printf("# seed %" PRIu64 "\n", run.seed);
    return run;
}

typedef struct random_source {
    uint64_t state;
} random_source;

static inline random_source random_seed(uint64_t seed)
{
    return (random_source){ seed * 0x9E3779B97F4A7C15u + 0x2545F4914F6CDD1Du };
}

static inline uint64_t random_u64(random_source *r)
{
    r->state ^= r->state >> 12;
    r->state ^= r->state << 25;
    r->state ^= r->state >> 27;
    return r->state * 0x2545F4914F6CDD1Du;
}

static inline uint32_t random_below(random_source *r, uint32_t limit)
{
    return (uint32_t)((random_u64(r) >> 32) * limit >> 32);
}

#endif
