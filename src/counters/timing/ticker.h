/* SPDX-License-Identifier: MIT */
/* The tick clock: a word in shared memory to which two threads copy the processor's counter, so that
 * the target reads the time by a load. */
#ifndef HFN_COUNTERS_TICKER_H
#define HFN_COUNTERS_TICKER_H

#include "live/clock.h"
#include "os/threads.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hfn_ticker {
    uint64_t *tick;              /* the word; other processes only read it         */
    uint32_t clock;              /* HOTFN_CLOCK_*: what is copied                  */
    uint64_t ticks_per_us;       /* of that clock                                  */
    _Atomic uint32_t is_stopped; /* 0 or 1; the sleeping thread waits on this word */
    hfn_os_thread spinner, sleeper;
    bool has_spinner, has_sleeper;
    uint64_t cpu_ns[2]; /* processor time of spinner and sleeper, set when they end */
} hfn_ticker;

/* Start both threads.  False if neither can be started. */
bool hfn_ticker_start(hfn_ticker *ticker, uint64_t *tick, const hfn_clock *clock);
/* Wait until both have ended.  Does nothing if the ticker was never started. */
void hfn_ticker_stop(hfn_ticker *ticker);

#endif
