/* SPDX-License-Identifier: MIT */
/* The processor's counter is used if the system itself trusts it.  Its rate is measured against
 * CLOCK_MONOTONIC_RAW, which is not adjusted.  That clock is read between two readings of the
 * counter; of several tries, the one with the shortest time between these readings is used. */
#include "live/clock.h"

#include "base/compiler.h"
#include "os/os.h"

#include <hotfn/lowlevel/timing.h>

#define FIRST_MEASURE_NS UINT64_C(5000000)
#define TRIES 20

uint64_t hfn_clock_read(uint32_t kind)
{
    return kind == HOTFN_CLOCK_MONOTONIC ? hfn_os_monotonic_ns() : hfn_cpu_ticks();
}

/* Read both clocks at the same moment. */
static void read_both(uint32_t kind, uint64_t *ticks, uint64_t *raw_ns)
{
    uint64_t best = UINT64_MAX;

    for (int i = 0; i < TRIES; i++) {
        uint64_t before = hfn_clock_read(kind), raw = hfn_os_raw_ns();
        uint64_t after = hfn_clock_read(kind);

        if (after - before < best) {
            best = after - before;
            *ticks = before + best / 2;
            *raw_ns = raw;
        }
    }
}

uint64_t hfn_clock_measure(const hfn_clock *clock)
{
    uint64_t ticks = clock->start_ticks, raw_ns = clock->start_raw_ns;

    if (clock->kind == HOTFN_CLOCK_MONOTONIC) {
        return 1000000000;
    }
    read_both(clock->kind, &ticks, &raw_ns);
    if (raw_ns <= clock->start_raw_ns || ticks <= clock->start_ticks) {
        return clock->ticks_per_second;
    }
    return (uint64_t)((double)(ticks - clock->start_ticks) * 1e9 /
                      (double)(raw_ns - clock->start_raw_ns));
}

static uint64_t resolution_of(uint32_t kind)
{
    uint64_t min = UINT64_MAX;

    for (int i = 0; i < 200; i++) {
        uint64_t before = hfn_clock_read(kind), after = hfn_clock_read(kind);

        if (after > before && after - before < min) {
            min = after - before;
        }
    }
    return min == UINT64_MAX ? 1 : min;
}

hfn_clock hfn_clock_choose(void)
{
    hfn_clock clock = { .kind = hfn_os_ticks_are_steady() ? hfn_cpu_clock_kind()
                                                          : HOTFN_CLOCK_MONOTONIC };
    uint64_t end = hfn_os_monotonic_ns() + FIRST_MEASURE_NS;

    read_both(clock.kind, &clock.start_ticks, &clock.start_raw_ns);
    clock.resolution_ticks = resolution_of(clock.kind);
    while (clock.kind != HOTFN_CLOCK_MONOTONIC && hfn_os_monotonic_ns() < end) {
    }
    clock.ticks_per_second = hfn_clock_measure(&clock);
    if (clock.ticks_per_second < 1000000) { /* the counter does not advance */
        clock.kind = HOTFN_CLOCK_MONOTONIC;
        clock.ticks_per_second = 1000000000;
        read_both(clock.kind, &clock.start_ticks, &clock.start_raw_ns);
    }
    return clock;
}
