/* SPDX-License-Identifier: MIT */
/* Limits of the rate of requests: a token bucket for each access token. */
#ifndef HOTFN_COLLECTOR_RATE_H
#define HOTFN_COLLECTOR_RATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { RATE_SLOTS = 256 };

typedef struct rate_slot {
    uint64_t key;
    double allowance;
    int64_t at_ns;
} rate_slot;

typedef struct rate_table {
    pthread_mutex_t lock;
    double per_second; /* 0: no limit */
    rate_slot slots[RATE_SLOTS];
} rate_table;

void rate_init(rate_table *t, double per_second);
/* Count a request at a time; returns 0, or the seconds until the next one is allowed. */
uint32_t rate_count(rate_table *t, uint64_t key, int64_t now_ns);

#endif
