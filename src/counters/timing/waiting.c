/* SPDX-License-Identifier: MIT */
/* HOT PATH: a thread's processor time, and the places that waited. */
#include "counters/timing/waiting.h"

#include "counters/timing/places.h"
#include "os/hot_path.h"

static uint64_t ticks_of_ns(uint64_t ns)
{
    return (ns >> HFN_CPU_RATE_SHIFT) * hfn_time.cpu_rate +
           ((ns & (HFN_CPU_RATE_NS - 1)) * hfn_time.cpu_rate >> HFN_CPU_RATE_SHIFT);
}

void hfn_waiting_begin(hfn_time_state *t, uint64_t now)
{
    t->cpu_ns = hfn_time.cpu_rate != 0 ? hfn_os_hot_cpu_ns() : 0;
    t->cpu_tick = now;
    t->waited_ticks = 0;
    t->longest_ticks = t->longest_node = 0;
}

/* The latest tick is up to an interval old, so the time since the last reading may come out shorter
 * than the processor time.  That much is due from the next reading. */
void hfn_waiting_charge(hfn_time_state *t, uint64_t cpu_ns)
{
    uint64_t now = hfn_load_tick(&t->last_tick), longest = t->longest_ticks, node = t->longest_node;
    uint64_t used_ns = cpu_ns > t->cpu_ns ? cpu_ns - t->cpu_ns : 0;
    int64_t passed = (int64_t)(now - t->cpu_tick);
    int64_t waited = t->waited_ticks + passed - (int64_t)ticks_of_ns(used_ns);

    t->cpu_ns = cpu_ns;
    t->cpu_tick = now;
    t->longest_ticks = 0;
    if (waited <= 0) {
        t->waited_ticks = -waited < passed ? waited : -passed;
        return;
    }
    t->waited_ticks = 0;
    if (node != 0) {
        hfn_add_tick(&hfn_place_at((uint32_t)node)->waited_ticks,
                     (uint64_t)waited < longest ? (uint64_t)waited : longest);
    }
}

HFN_KEEPS_REGISTERS void hfn_waiting_stop(uint64_t now)
{
    uint64_t none = 0;

    if (__atomic_load_n(&hfn_time.cpu_rate, __ATOMIC_RELAXED) != 0) {
        __atomic_store_n(&hfn_time.cpu_rate, 0, __ATOMIC_RELAXED);
        __atomic_compare_exchange_n(&hfn_time.header->waiting_stopped_ticks, &none, now, false,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}

HFN_KEEPS_REGISTERS void hfn_waiting_read(hfn_time_state *t)
{
    uint64_t cpu_ns = hfn_os_hot_cpu_ns();

    if (cpu_ns == 0) { /* forbidden */
        hfn_waiting_stop(HFN_PASS(hfn_load_tick(&t->last_tick)));
    } else if (cpu_ns >= t->cpu_ns) {
        hfn_waiting_charge(t, cpu_ns);
    } else { /* another thread goes on with the row */
        hfn_waiting_begin(t, hfn_load_tick(&t->last_tick));
    }
}
