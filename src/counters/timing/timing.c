/* SPDX-License-Identifier: MIT */
/* Starts and stops timing: sets up the engine's memory, and selects the probes that stubs call. */
#include "counters/timing/timing.h"

#include "base/compiler.h"
#include "counters/rows.h"
#include "counters/thread_row.h"
#include "counters/timing/alloc.h"
#include "counters/timing/counter_mode.h"
#include "counters/timing/hook_cost.h"
#include "counters/timing/sample_mode.h"
#include "counters/timing/tick_mode.h"
#include "counters/timing/waiting.h"
#include "os/hot_path.h"

#define COST_UNIT 256u /* costs in the header are given in 1/256 ticks */
/* A reading of a thread's processor time takes 0.2 to 2 us. */
#define WAITING_US 200u

typedef void (*probe)(void);

static hfn_timing_calls make_calls(probe enter, probe exit, uint32_t skips_at)
{
    return (hfn_timing_calls){ enter, exit, (probe)hfn_time_personality, skips_at };
}

hfn_timing_calls hfn_timing_get_calls(void)
{
    static const hfn_timing_calls none;

    if (!hfn_time_is_on() || !HFN_CAN_TIME) {
        return none;
    }
    if (hfn_time.flags & HOTFN_TIMING_SAMPLED) {
        return make_calls(hfn_time_enter_sampled_entry, hfn_time_exit_sampled_entry,
                          hfn_time.thread_at + hfn_time.skips_at);
    }
    if (hfn_time.tick) {
        return make_calls(hfn_tick_enter_entry, hfn_tick_exit_entry, 0);
    }
    return hfn_time.allocs ? make_calls(hfn_alloc_enter_entry, hfn_alloc_exit_entry, 0)
                           : make_calls(hfn_counter_enter_entry, hfn_counter_exit_entry, 0);
}

/* Mark the discard row as closed, so that no timed call begins in it. */
static void close_discard_row(uint32_t thread_at)
{
    if (hfn_rows.discard_bytes < thread_at + sizeof(hfn_time_state)) {
        return;
    }
    hfn_rows_empty(hfn_rows.discard, hfn_rows.discard_bytes);
    hfn_time_state_of(hfn_rows.discard)->depth = HFN_DEPTH_CLOSED;
}

/* All processes of a record subtract the costs that the first one measured. */
static void measure_costs(const hfn_time_memory *m, uint32_t slot_capacity)
{
    if (m->header->count_cost_ticks == 0 && HFN_CAN_TIME) {
        hfn_timing_calls calls = hfn_timing_get_calls();
        hfn_hook_cost_measure(&calls, m->thread_at + hfn_time_row_bytes(slot_capacity));
    }
}

/* By the tick clock, waiting is known where the system gives threads their processor time. */
void hfn_timing_start_waiting(hfn_time_engine *engine, hfn_time_header *h)
{
    uint64_t rate = h->ticks_per_second;

    if (!engine->tick || (h->flags & HOTFN_TIMING_SAMPLED) || hfn_os_hot_cpu_ns() == 0) {
        return;
    }
    engine->waiting_ticks = (uint32_t)(rate / (1000000 / WAITING_US));
    engine->cpu_rate = (uint64_t)((double)rate * (double)HFN_CPU_RATE_NS / 1e9);
    __atomic_fetch_or(&h->flags, HOTFN_TIMING_WAITING, __ATOMIC_RELAXED);
}

static void set_engine(const hfn_time_memory *m)
{
    hfn_time_header *h = m->header;
    bool keeps_slow = (h->flags & HOTFN_TIMING_SLOW) && h->slow_capacity;

    hfn_time = (hfn_time_engine){
        .thread_at = m->thread_at,
        .log_at = m->log_at,
        .skips_at = m->skips_at,
        .gaps_at = m->gaps_at,
        .hints_at = m->hints_at,
        .flags = h->flags,
        .clock = h->clock,
        .slow_ticks = keeps_slow ? h->slow_ticks : UINT64_MAX,
        .nodes = m->nodes,
        .histograms = m->histograms,
        .slow = m->slow,
        .events = h->event_capacity ? m->events : NULL,
        .means = m->means,
        .sample_interval = h->sample_mean > 1 ? h->sample_mean : 1,
        .tick = m->tick,
        .session = hfn_time.session + (UINT32_C(1) << HFN_CALL_SESSION_SHIFT),
        .allocs = (h->flags & HOTFN_TIMING_ALLOC) && m->nodes ? m->allocs : NULL,
        .event_mask = h->event_capacity - 1,
    };
    if (!m->histograms || h->histogram_capacity == 0) {
        hfn_time.flags &= ~HOTFN_TIMING_HISTOGRAMS;
    }
    hfn_timing_start_waiting(&hfn_time, h);
    hfn_time.header = h;
}

void hfn_timing_measure(const hfn_time_memory *m, uint32_t slot_capacity)
{
    static const hfn_time_engine none;

    if (hfn_rows.generation != 0 || !hfn_os_reserve_row_word()) {
        return;
    }
    set_engine(m);
    measure_costs(m, slot_capacity);
    hfn_time = none;
}

void hfn_timing_start(const hfn_time_memory *m)
{
    set_engine(m);
    close_discard_row(m->thread_at);
    measure_costs(m, hfn_rows.slot_capacity);
    hfn_time.exit_cost = m->header->cost_inside_ticks / COST_UNIT;
    hfn_time.enter_cost = m->header->cost_outside_ticks / COST_UNIT;
}

uint64_t hfn_timing_stop(void)
{
    uint64_t now;

    if (!hfn_time_is_on()) {
        return 0;
    }
    hfn_timing_stop_clock(&now);
    __atomic_store_n(&hfn_time.is_off, 1, __ATOMIC_SEQ_CST);
    return now;
}

/* Precondition: no thread is in a probe; session/process.c has waited for that. */
void hfn_timing_end_rows(uint64_t now)
{
    const hfn_cell_header *cells = hfn_rows.header;
    uint32_t used = cells ? __atomic_load_n(&cells->cells_used, __ATOMIC_RELAXED) : 0;

    for (uint32_t i = 0; i < used && i < hfn_rows.thread_capacity; i++) {
        const hfn_thread_cell *cell = &hfn_rows.cells[i];

        if (cell->process == hfn_rows.process && cell->pid == hfn_rows.pid) {
            hfn_thread_facts facts = { "", 0 };
            if (hfn_time.cpu_rate != 0) {
                hfn_os_hot_read_thread(cell->pid, cell->tid, &facts);
            }
            hfn_time_end_row(hfn_rows.rows + (uint64_t)i * hfn_rows.row_bytes, now, facts.cpu_ns);
        }
    }
}

uint32_t hfn_timing_stop_clock(uint64_t *at)
{
    uint32_t clock = __atomic_load_n(&hfn_time.clock, __ATOMIC_RELAXED);

    *at = hfn_time_is_on() && clock != HFN_CLOCK_STOPPED ? hfn_time_now() : 0;
    return __atomic_exchange_n(&hfn_time.clock, HFN_CLOCK_STOPPED, __ATOMIC_SEQ_CST);
}

/* Store the time of the first process that disables the clock.  Relaxed: it is a single word. */
void hfn_timing_record_stop(uint64_t at)
{
    uint64_t none = 0;

    if (hfn_time_is_on() && at) {
        __atomic_compare_exchange_n(&hfn_time.header->clock_stopped_ticks, &none, at, false,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}

void hfn_timing_stop_waiting(void)
{
    if (hfn_time_is_on() && hfn_time.cpu_rate != 0) {
        hfn_waiting_stop(hfn_time_now());
    }
}

void hfn_timing_restart_clock(uint32_t clock)
{
    __atomic_store_n(&hfn_time.clock, clock, __ATOMIC_SEQ_CST);
}
