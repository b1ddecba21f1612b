/* SPDX-License-Identifier: MIT */
/* Random numbers for laws: small, seeded, the same everywhere (xorshift64*, Vigna 2016). */
#ifndef HFN_TESTS_RANDOM_H
#define HFN_TESTS_RANDOM_H

#include <stdint.h>

typedef struct random_source {
    uint64_t state;
} random_source;

static inline random_source random_from(uint64_t seed)
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
