/* SPDX-License-Identifier: MIT */
/* The tick clock: a word in shared memory to which two threads copy the processor's counter, so
 * that the target reads the time by a load. */
#ifndef HFN_COUNTERS_TICKER_H
#define HFN_COUNTERS_TICKER_H

#include "live/clock.h"
#include "live/time_memory.h"
#include "os/threads.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hfn_ticker {
    uint64_t *tick;              /* the word; other processes only read it         */
    hfn_time_header *header;     /* receives the statistics                        */
    uint32_t clock;              /* HOTFN_CLOCK_*: what is copied                  */
    uint64_t ticks_per_us;       /* of that clock                                  */
    _Atomic uint32_t is_stopped; /* 0 or 1; the sleeping thread waits on this word */
    hfn_os_thread spinner, sleeper;
    bool has_spinner, has_sleeper;
} hfn_ticker;

/* The HOTFN_TICKER_* that this process would get now. */
uint32_t hfn_ticker_choose(void);
/* Start the threads.  False if none can be started. */
bool hfn_ticker_start(hfn_ticker *ticker, uint64_t *tick, const hfn_clock *clock,
                      hfn_time_header *header);
/* Wait until they have ended.  Does nothing if the ticker was never started. */
void hfn_ticker_stop(hfn_ticker *ticker);

#endif
