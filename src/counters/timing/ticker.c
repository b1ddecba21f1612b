/* SPDX-License-Identifier: MIT */
/*
 * Two threads keep the tick clock.  The spinner copies the counter every few microseconds, but runs
 * only on a processor that would be idle, so it takes no time from the target.  The sleeper serves
 * while the spinner has no processor: it wakes more seldom, since each time it interrupts others.
 *
 * The intervals are random, between half and one and a half of their mean: a loop of the program
 * would lock on to a fixed interval, and all its ticks would fall into the same function.
 */
#include "counters/timing/ticker.h"

#include "base/compiler.h"

enum {
    SLEEP_US = 50, /* of the sleeper while the spinner has no processor       */
    LOOK_US = 400, /* and while it has one                                    */
    LATE_US = 40,  /* the spinner has no processor: the latest tick is older  */
    PAUSES = 8,    /* between two looks of the spinner at the counter          */
};

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* From half of the mean to one and a half of it. */
static uint64_t choose_interval(uint64_t *state, uint64_t mean)
{
    return mean / 2 + next_random(state) % (mean + 1);
}

/* The word never goes back, although a thread may be interrupted just before it stores. */
static void store_tick(uint64_t *tick, uint64_t now)
{
    uint64_t before = __atomic_load_n(tick, __ATOMIC_RELAXED);

    while ((int64_t)(now - before) > 0 &&
           !__atomic_compare_exchange_n(tick, &before, now, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
}

static bool is_stopped(hfn_ticker *t)
{
    /* Pairs with the release store in hfn_ticker_stop. */
    return atomic_load_explicit(&t->is_stopped, memory_order_acquire);
}

static void spin(void *user)
{
    hfn_ticker *t = user;
    uint64_t state = hfn_clock_read(t->clock) | 1, next = 0, now;

    hfn_os_run_when_idle();
    while (!is_stopped(t)) {
        now = hfn_clock_read(t->clock);
        if ((int64_t)(now - next) >= 0) {
            store_tick(t->tick, now);
            next = now + choose_interval(&state, HFN_TICK_US * t->ticks_per_us);
        }
        for (int i = 0; i < PAUSES; i++) {
            hfn_cpu_pause();
        }
    }
    t->cpu_ns[0] = hfn_os_own_cpu_ns();
}

static void sleep_and_tick(void *user)
{
    hfn_ticker *t = user;
    uint64_t state = hfn_clock_read(t->clock) | 1, mean_us = SLEEP_US;

    hfn_os_wake_on_time();
    while (!is_stopped(t)) {
        uint64_t now = hfn_clock_read(t->clock);
        bool is_late =
            now - __atomic_load_n(t->tick, __ATOMIC_RELAXED) >= LATE_US * t->ticks_per_us;
        if (is_late) {
            store_tick(t->tick, now);
        }
        mean_us = is_late ? SLEEP_US : LOOK_US;
        hfn_os_wait_word(&t->is_stopped, 0, choose_interval(&state, mean_us * 1000));
    }
    t->cpu_ns[1] = hfn_os_own_cpu_ns();
}

bool hfn_ticker_start(hfn_ticker *t, uint64_t *tick, const hfn_clock *clock)
{
    *t = (hfn_ticker){ .tick = tick,
                       .clock = clock->kind,
                       .ticks_per_us = clock->ticks_per_second / 1000000 };
    t->has_spinner = hfn_os_start_thread(&t->spinner, spin, t);
    t->has_sleeper = hfn_os_start_thread(&t->sleeper, sleep_and_tick, t);
    return t->has_spinner || t->has_sleeper;
}

void hfn_ticker_stop(hfn_ticker *t)
{
    /* Pairs with the acquire load in is_stopped. */
    atomic_store_explicit(&t->is_stopped, 1, memory_order_release);
    hfn_os_wake_waiters(&t->is_stopped);
    if (t->has_spinner) {
        hfn_os_join_thread(&t->spinner);
    }
    if (t->has_sleeper) {
        hfn_os_join_thread(&t->sleeper);
    }
    t->has_spinner = t->has_sleeper = false;
}
