/* SPDX-License-Identifier: MIT */
/*
 * Two threads keep the tick clock.  The spinner copies the counter every few microseconds, but runs
 * only on a processor that would be idle, so it takes no time from the target.  The sleeper serves
 * while the spinner has no processor; it wakes less often, because it interrupts another thread
 * each time.  If no processor can be idle, or a quota limits processor time, there is no spinner.
 *
 * The intervals are random, between half and one and a half of their mean: a loop of the program
 * could run in step with a fixed interval, so that all its ticks would fall into the same function.
 *
 * Each of the two threads sums up the intervals that it ended, and adds the sums to the record's
 * header at intervals.  From them a reader computes the error of a time (profile/).
 */
#include "counters/timing/ticker.h"

#include "base/compiler.h"
#include "counters/thread_row.h"
#include "os/process.h"

#include <hotfn/lowlevel/timing.h>

enum {
    SLEEP_US = 35,       /* pause of the sleeper while the spinner has no processor      */
    IDLE_SLEEP_US = 400, /* pause of the sleeper while the spinner has one               */
    LATE_US = 40,        /* if the latest tick is older, the spinner has no processor    */
    COARSE_US = 16,      /* an interval of at least this length is coarse                */
    MISSING_US = 10000,  /* an interval of at least this length has missing ticks        */
    PAUSES = 8,          /* pauses of the spinner between two readings of the counter    */
    TICKS_PER_REPORT = 256,
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

/* ---- The statistics. */

typedef struct tick_sums {
    uint64_t ticks, squares, coarse, missing;
} tick_sums;

static void add_interval(const hfn_ticker *t, tick_sums *sums, uint64_t ticks)
{
    uint64_t micros = ticks / t->ticks_per_us;

    sums->ticks += ticks;
    if (micros >= MISSING_US) {
        sums->missing += ticks;
        return;
    }
    sums->squares += ticks * ticks >> HFN_TICK_SQUARE_SHIFT;
    sums->coarse += micros >= COARSE_US ? ticks : 0;
}

static void add_to_header(uint64_t *word, uint64_t *sum)
{
    __atomic_fetch_add(word, *sum, __ATOMIC_RELAXED);
    *sum = 0;
}

static void report_sums(hfn_time_header *h, tick_sums *sums, uint64_t *cpu_ns)
{
    uint64_t now = hfn_os_own_cpu_ns(), used = now - *cpu_ns;

    *cpu_ns = now;
    add_to_header(&h->tick_sum, &sums->ticks);
    add_to_header(&h->tick_squares, &sums->squares);
    add_to_header(&h->coarse_ticks, &sums->coarse);
    add_to_header(&h->missing_ticks, &sums->missing);
    add_to_header(&h->ticker_cpu_ns, &used);
}

/* ---- The two threads. */

/* The word never goes back, although a thread may be interrupted just before it stores.  Returns
 * the interval that ended, or 0. */
static uint64_t store_tick(uint64_t *tick, uint64_t now)
{
    uint64_t before = __atomic_load_n(tick, __ATOMIC_RELAXED);

    while ((int64_t)(now - before) > 0) {
        if (__atomic_compare_exchange_n(tick, &before, now, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            return now - before;
        }
    }
    return 0;
}

static bool is_stopped(hfn_ticker *t)
{
    /* Pairs with the release store in hfn_ticker_stop. */
    return atomic_load_explicit(&t->is_stopped, memory_order_acquire);
}

/* In a process with hooks, these threads count nothing.  From here to hfn_os_end_unstopped they
 * execute only code of this file, system calls, and the processor's counter, so they need not be
 * stopped when hooks are written: on a busy machine the spinner may have no processor for
 * seconds. */
static void begin_ticking(const hfn_ticker *t)
{
    hfn_thread_row = hfn_rows.discard;
    if (t->clock != HOTFN_CLOCK_MONOTONIC) { /* which is read by the C library */
        hfn_os_begin_unstopped();
    }
}

static void run_spinner(void *user)
{
    hfn_ticker *t = user;
    uint64_t state = hfn_clock_read(t->clock) | 1, next = 0, now, cpu_ns = 0;
    uint32_t ticks = 0;
    tick_sums sums = { 0 };

    hfn_os_run_when_idle();
    begin_ticking(t);
    while (!is_stopped(t)) {
        now = hfn_clock_read(t->clock);
        if ((int64_t)(now - next) >= 0) {
            add_interval(t, &sums, store_tick(t->tick, now));
            next = now + choose_interval(&state, HFN_TICK_US * t->ticks_per_us);
            if (++ticks % TICKS_PER_REPORT == 0) {
                report_sums(t->header, &sums, &cpu_ns);
            }
        }
        for (int i = 0; i < PAUSES; i++) {
            hfn_cpu_pause();
        }
    }
    report_sums(t->header, &sums, &cpu_ns);
    hfn_os_end_unstopped();
}

static void sleep_and_tick(void *user)
{
    hfn_ticker *t = user;
    uint64_t state = hfn_clock_read(t->clock) | 1, late = LATE_US * t->ticks_per_us, cpu_ns = 0;
    tick_sums sums = { 0 };

    hfn_os_wake_on_time();
    begin_ticking(t);
    while (!is_stopped(t)) {
        uint64_t now = hfn_clock_read(t->clock);
        bool is_late = !t->has_spinner || now - __atomic_load_n(t->tick, __ATOMIC_RELAXED) >= late;
        if (is_late) {
            add_interval(t, &sums, store_tick(t->tick, now));
        }
        report_sums(t->header, &sums, &cpu_ns);
        hfn_os_wait_word(&t->is_stopped, 0,
                         choose_interval(&state, is_late ? SLEEP_US : IDLE_SLEEP_US) * 1000);
    }
    add_interval(t, &sums, store_tick(t->tick, hfn_clock_read(t->clock)));
    report_sums(t->header, &sums, &cpu_ns);
    hfn_os_end_unstopped();
}

/* ---- Start and stop. */

uint32_t hfn_ticker_choose(void)
{
    return hfn_os_count_allowed_processors() < 2 ? HOTFN_TICKER_ONE_PROCESSOR
           : hfn_os_has_processor_quota()        ? HOTFN_TICKER_QUOTA
                                                 : HOTFN_TICKER_SPINS;
}

bool hfn_ticker_start(hfn_ticker *t, uint64_t *tick, const hfn_clock *clock,
                      hfn_time_header *header)
{
    uint32_t kind = hfn_ticker_choose();

    *t = (hfn_ticker){ .tick = tick,
                       .header = header,
                       .clock = clock->kind,
                       .ticks_per_us = clock->ticks_per_second / 1000000 };
    __atomic_store_n(tick, hfn_clock_read(clock->kind), __ATOMIC_RELAXED);
    t->has_spinner = kind == HOTFN_TICKER_SPINS && hfn_os_start_thread(&t->spinner, run_spinner, t);
    t->has_sleeper = hfn_os_start_thread(&t->sleeper, sleep_and_tick, t);
    header->ticker = t->has_spinner || t->has_sleeper ? kind : HOTFN_TICKER_NONE;
    return header->ticker != HOTFN_TICKER_NONE;
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
