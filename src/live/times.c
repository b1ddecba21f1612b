/* SPDX-License-Identifier: MIT */
/* What timing adds to a live record: how much room, and the header that says what is kept, where,
 * and by which clock.  The clock is measured by who makes the record, never inside of the target.
 */
#include "live/live.h"

#include "os/memory.h"

#define READY_HISTOGRAMS 512u /* of 10 KiB */
#define DEFAULT_NODES (1u << 20)
#define DEFAULT_HISTOGRAMS (1u << 14)
/* Pools are sparse, so their defaults follow the memory: at most such a part of it. */
#define NODES_SHARE 16u
#define HISTOGRAMS_SHARE 64u
#define MIN_NODES (1u << 16)
#define MIN_HISTOGRAMS (1u << 11)
#define MAX_HISTOGRAMS (1u << 17)
#define DEFAULT_SLOW_CALLS 4096u
#define DEFAULT_EVENTS (1u << 16)
/* A durable record's pools stand on disk from the start; and where addresses are few they are small
 * too. */
#define SMALL_SHIFT_NODES 4
#define SMALL_SHIFT_HISTOGRAMS 3
#define SMALL_SHARE_BYTES (UINT64_C(1) << 30)
#define MOST_OF_A_POOL (UINT32_C(1) << 26)
#define MEASURED_NS UINT64_C(20000000) /* a shorter run says nothing new of the clock */

static uint64_t choose_capacity(uint32_t asked, uint32_t usual)
{
    uint64_t wanted = asked ? asked : usual;

    return wanted < MOST_OF_A_POOL ? wanted : MOST_OF_A_POOL;
}

/* The number of elements that a part of the memory holds. */
static uint32_t get_share(uint32_t parts, uint64_t element_bytes, uint32_t min, uint32_t max)
{
    uint64_t count = hfn_os_get_memory_limit() / parts / element_bytes;

    return count < min ? min : count > max ? max : (uint32_t)count;
}

static uint64_t power_of_two(uint64_t value)
{
    uint64_t power = 1;

    while (power < value) {
        power *= 2;
    }
    return power;
}

hfn_time_sizes hfn_time_sizes_wanted(const hfn_live_options *o)
{
    bool small = o->durable_path || hfn_live_get_address_share() < SMALL_SHARE_BYTES;
    hfn_time_sizes sizes = { 0 };

    if (!o->timing) {
        return sizes;
    }
    sizes.is_timed = true;
    sizes.has_ticks = o->with_ticks;
    sizes.nodes =
        choose_capacity(o->node_capacity, small ? DEFAULT_NODES >> SMALL_SHIFT_NODES
                                                : get_share(NODES_SHARE, sizeof(hfn_time_node),
                                                            MIN_NODES, MOST_OF_A_POOL));
    sizes.histograms = choose_capacity(
        o->histogram_capacity,
        small ? DEFAULT_HISTOGRAMS >> SMALL_SHIFT_HISTOGRAMS
              : get_share(HISTOGRAMS_SHARE, HFN_HISTOGRAM_BYTES, MIN_HISTOGRAMS, MAX_HISTOGRAMS));
    sizes.slow_calls = choose_capacity(o->slow_capacity, DEFAULT_SLOW_CALLS);
    sizes.allocs = o->timing & HOTFN_TIMING_ALLOC ? sizes.nodes : 0;
    sizes.events = o->timing & HOTFN_TIMING_EVENTS
                       ? power_of_two(choose_capacity(o->event_capacity, DEFAULT_EVENTS))
                       : 0;
    return sizes;
}

hfn_time_sizes hfn_time_sizes_found(const hfn_layout *layout)
{
    const hfn_section *s = layout->sections;
    uint64_t ring = s[HFN_SECTION_CELLS].elements * sizeof(hfn_time_event);
    hfn_time_sizes sizes = { 0 };

    if (s[HFN_SECTION_TIME_HEADER].type == 0) {
        return sizes;
    }
    sizes.is_timed = true;
    sizes.has_ticks = s[HFN_SECTION_TICKS].type != 0;
    sizes.nodes = s[HFN_SECTION_NODES].elements & (2 * MOST_OF_A_POOL - 1);
    sizes.allocs = s[HFN_SECTION_NODE_ALLOCS].elements & (2 * MOST_OF_A_POOL - 1);
    sizes.slow_calls = s[HFN_SECTION_SLOW_CALLS].elements & (2 * MOST_OF_A_POOL - 1);
    sizes.histograms = s[HFN_SECTION_HISTOGRAMS].bytes / HFN_HISTOGRAM_BYTES;
    sizes.events = ring > 0 ? s[HFN_SECTION_EVENTS].bytes / ring : 0;
    return sizes;
}

static void *get_pool(const hfn_live *live, uint32_t type)
{
    return live->layout.sections[type].type ? hfn_live_section(live, type) : NULL;
}

hfn_time_header *hfn_live_time_header(const hfn_live *live)
{
    return get_pool(live, HFN_SECTION_TIME_HEADER);
}

uint64_t *hfn_live_tick(const hfn_live *live)
{
    return get_pool(live, HFN_SECTION_TICKS);
}

void hfn_live_protect_tick(const hfn_live *live)
{
    uint64_t *tick = hfn_live_tick(live);

    if (tick) {
        hfn_os_forbid_writing(tick, live->layout.sections[HFN_SECTION_TICKS].bytes);
    }
}

bool hfn_live_can_tick(uint32_t timing)
{
    return timing != 0 && !(timing & (HOTFN_TIMING_EVENTS | HOTFN_TIMING_ALLOC));
}

void hfn_live_use_counter(const hfn_live *live)
{
    hfn_time_header *h = hfn_live_time_header(live);

    h->tick_ticks = 0;
    h->ticker = HOTFN_TICKER_NONE;
    h->resolution_ticks = live->clock.resolution_ticks;
}

bool hfn_live_time_memory(const hfn_live *live, hfn_time_memory *out)
{
    const hfn_section *s = live->layout.sections;
    uint64_t slots = hfn_live_slot_capacity(live);

    if (s[HFN_SECTION_TIME_HEADER].type == 0) {
        return false;
    }
    *out = (hfn_time_memory){
        .header = get_pool(live, HFN_SECTION_TIME_HEADER),
        .thread_at = (uint32_t)(s[HFN_SECTION_TIME_ROWS].offset - s[HFN_SECTION_ROWS].offset),
        .log_at = (uint32_t)hfn_time_log_at(slots),
        .skips_at = (uint32_t)hfn_time_skips_at(slots),
        .gaps_at = (uint32_t)hfn_time_gaps_at(slots),
        .hints_at = (uint32_t)hfn_time_hints_at(slots),
        .nodes = get_pool(live, HFN_SECTION_NODES),
        .allocs = get_pool(live, HFN_SECTION_NODE_ALLOCS),
        .histograms = get_pool(live, HFN_SECTION_HISTOGRAMS),
        .slow = get_pool(live, HFN_SECTION_SLOW_CALLS),
        .events = get_pool(live, HFN_SECTION_EVENTS),
        .means = hfn_live_get_means(live),
        .tick = hfn_live_time_header(live)->tick_ticks ? hfn_live_tick(live) : NULL,
    };
    return true;
}

/* Each timed function touches a page or two of its own: those of the first ones are made by who
 * makes the record, and mapped at once by the target, for which a fault each would be most of what
 * first calls cost. */
static uint64_t ready_bytes(const hfn_live *live)
{
    const hfn_section *s = &live->layout.sections[HFN_SECTION_HISTOGRAMS];
    uint32_t slots = hfn_shared_get32(live->base + HFN_AT_SLOTS);
    uint64_t bytes = (slots < READY_HISTOGRAMS ? slots : READY_HISTOGRAMS) * HFN_HISTOGRAM_BYTES;

    return s->type == 0 ? 0 : bytes < s->bytes ? bytes : s->bytes;
}

void hfn_live_allocate_first_histograms(const hfn_live *live)
{
    uint64_t bytes = ready_bytes(live);

    if (bytes > 0) { /* else faults make them */
        hfn_os_allocate_space(live->file, live->layout.sections[HFN_SECTION_HISTOGRAMS].offset,
                              bytes);
    }
}

void hfn_live_map_first_histograms(hfn_live *live)
{
    uint64_t bytes = ready_bytes(live), done = live->mapped_histogram_bytes;

    if (bytes > done) {
        hfn_os_prefault_pages(hfn_live_section(live, HFN_SECTION_HISTOGRAMS) + done, bytes - done);
        live->mapped_histogram_bytes = bytes;
    }
}

void hfn_live_write_time_header(hfn_live *live, const hfn_live_options *o)
{
    hfn_time_sizes sizes = hfn_time_sizes_found(&live->layout);
    hfn_time_header *h;

    if (!sizes.is_timed) {
        return;
    }
    live->clock = hfn_clock_choose();
    h = hfn_live_time_header(live);
    h->clock = live->clock.kind;
    h->ticks_per_second = live->clock.ticks_per_second;
    h->start_ticks = live->clock.start_ticks;
    h->resolution_ticks = live->clock.resolution_ticks;
    h->sample_mean = o->sample_mean;
    h->slow_ticks = (uint64_t)((double)o->slow_ns * (double)h->ticks_per_second / 1e9);
    h->node_capacity = (uint32_t)sizes.nodes;
    h->histogram_capacity = (uint32_t)sizes.histograms;
    h->slow_capacity = (uint32_t)sizes.slow_calls;
    h->event_capacity = (uint32_t)sizes.events;
    h->row_bytes = live->layout.row_bytes;
    h->cells_at = sizeof(hfn_time_thread);
    h->version = HFN_TIMES_VERSION;
    h->flags = o->timing;
    if (hfn_live_tick(live)) {
        *hfn_live_tick(live) = h->start_ticks;
        h->tick_ticks = HFN_TICK_US * h->ticks_per_second / 1000000;
        h->resolution_ticks = h->tick_ticks;
    }
}

void hfn_live_measure_clock(hfn_live *live)
{
    hfn_time_header *h = hfn_live_time_header(live);

    if (h && live->clock.kind != 0 &&
        hfn_clock_read(live->clock.kind) - live->clock.start_ticks >
            (uint64_t)((double)MEASURED_NS * (double)live->clock.ticks_per_second / 1e9)) {
        h->ticks_per_second = hfn_clock_measure(&live->clock);
    }
}
