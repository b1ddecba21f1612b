/* SPDX-License-Identifier: MIT */
/* Token buckets.  A bucket holds four seconds of requests, so that a burst passes. */
#include "rate.h"

#define BURST_SECONDS 4.0

void rate_init(rate_table *t, double per_second)
{
    *t = (rate_table){ .per_second = per_second };
    pthread_mutex_init(&t->lock, NULL);
}

/* The slot of a key, or the slot whose latest use is oldest. */
static rate_slot *find_slot(rate_table *t, uint64_t key, int64_t now_ns)
{
    rate_slot *oldest = &t->slots[0];

    for (int i = 0; i < RATE_SLOTS; i++) {
        if (t->slots[i].key == key && t->slots[i].at_ns) {
            return &t->slots[i];
        }
        oldest = t->slots[i].at_ns < oldest->at_ns ? &t->slots[i] : oldest;
    }
    *oldest = (rate_slot){ key, t->per_second * BURST_SECONDS, now_ns };
    return oldest;
}

uint32_t rate_count(rate_table *t, uint64_t key, int64_t now_ns)
{
    uint32_t wait = 0;

    if (t->per_second <= 0) {
        return 0;
    }
    pthread_mutex_lock(&t->lock);
    rate_slot *slot = find_slot(t, key, now_ns);
    double room = t->per_second * BURST_SECONDS;
    slot->allowance += (double)(now_ns - slot->at_ns) / 1e9 * t->per_second;
    slot->allowance = slot->allowance > room ? room : slot->allowance;
    slot->at_ns = now_ns;
    if (slot->allowance >= 1) {
        slot->allowance -= 1;
    } else {
        wait = (uint32_t)((1 - slot->allowance) / t->per_second) + 1;
    }
    pthread_mutex_unlock(&t->lock);
    return wait;
}
