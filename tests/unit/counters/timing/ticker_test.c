/* SPDX-License-Identifier: MIT */
#include "counters/timing/ticker.h"

#include "check.h"
#include "os/clock.h"

#include <hotfn/lowlevel/timing.h>

enum { TICKS = 200 };
#define LONGEST_WAIT_NS UINT64_C(20000000000)

/* This holds also while all processors are busy: the sleeping thread of the ticker then makes the
 * ticks (ticker.c). */
static void the_clock_goes_on_at_random_intervals(void)
{
    hfn_clock clock = hfn_clock_choose();
    uint64_t tick = clock.start_ticks, last = 0, first, lengths[TICKS];
    uint64_t end = hfn_os_monotonic_ns() + LONGEST_WAIT_NS;
    uint32_t count = 0, different = 0;
    hfn_time_header header = { 0 };
    hfn_ticker ticker;

    CHECK(hfn_ticker_start(&ticker, &tick, &clock, &header));
    first = last = __atomic_load_n(&tick, __ATOMIC_RELAXED);
    /* a system may count processor time in units of many milliseconds */
    while ((count < TICKS || __atomic_load_n(&header.ticker_cpu_ns, __ATOMIC_RELAXED) == 0) &&
           hfn_os_monotonic_ns() < end) {
        uint64_t now = __atomic_load_n(&tick, __ATOMIC_RELAXED);
        CHECK((int64_t)(now - last) >= 0);
        if (now != last && count < TICKS) {
            lengths[count++] = now - last;
        }
        last = now;
    }
    hfn_ticker_stop(&ticker);
    CHECK_EQ_U64(count, TICKS);
    for (uint32_t i = 1; i < count; i++) {
        different += lengths[i] != lengths[i - 1];
    }
    CHECK(different > TICKS / 2);
    CHECK(hfn_clock_read(clock.kind) >= tick);
    CHECK(header.ticker != HOTFN_TICKER_NONE);
    CHECK_EQ_U64(header.ticker, hfn_ticker_choose());
    CHECK(header.tick_sum >= tick - first);
    CHECK(header.ticker_cpu_ns > 0);
    CHECK(header.tick_squares > 0 || header.missing_ticks == header.tick_sum);
    CHECK(header.coarse_ticks <= header.tick_sum && header.missing_ticks <= header.tick_sum);
    last = tick;
    hfn_ticker_stop(&ticker); /* again: nothing to do */
    CHECK_EQ_U64(tick, last);
}

static const check_test tests[] = { CHECK_TEST(the_clock_goes_on_at_random_intervals) };
CHECK_MAIN(tests)
