/* SPDX-License-Identifier: MIT */
#include "events/rings.h"

static const hfn_time_state *get_state(const hfn_live *live, uint32_t row)
{
    const hfn_section *s = live->layout.sections;

    return (const void *)(live->rows + (uint64_t)row * live->layout.row_bytes +
                          (s[HFN_SECTION_TIME_ROWS].offset - s[HFN_SECTION_ROWS].offset));
}

static uint64_t load_written(const hfn_live *live, uint32_t row)
{
    return __atomic_load_n(&get_state(live, row)->events, __ATOMIC_ACQUIRE);
}

static uint64_t get_capacity(const hfn_live *live)
{
    return hfn_time_sizes_found(&live->layout).events;
}

uint32_t hfn_rings_count(const hfn_live *live)
{
    uint64_t mapped = live->rows_bytes / live->layout.row_bytes;
    uint32_t used = hfn_live_rows_used(live);

    if (get_capacity(live) == 0) {
        return 0;
    }
    return used < mapped ? used : (uint32_t)mapped;
}

void hfn_ring_begin(hfn_ring *r, const hfn_live *live, uint32_t row, bool is_final)
{
    uint64_t before = r->counted;

    r->thread_id = r->owner_id;
    r->counted = load_written(live, row);
    r->owner_id = __atomic_load_n(&hfn_live_cells(live)[row].tid, __ATOMIC_ACQUIRE);
    r->end = is_final ? r->counted : before;
    if (is_final || r->thread_id == 0 || r->thread_id == UINT32_MAX) {
        r->thread_id = r->owner_id;
    }
}

/* Skip the unread events below a number, which are lost; return how many there were. */
static uint64_t skip_before(hfn_ring *r, uint64_t number)
{
    uint64_t count = number > r->next ? number - r->next : 0;

    r->next += count;
    return count;
}

static void copy_events(const hfn_live *live, uint32_t row, uint64_t first, uint32_t count,
                        hfn_time_event *out)
{
    uint64_t capacity = get_capacity(live);
    const hfn_time_event *ring = (const void *)(hfn_live_section(live, HFN_SECTION_EVENTS) +
                                                (uint64_t)row * capacity * sizeof *ring);

    for (uint32_t i = 0; i < count; i++) {
        const hfn_time_event *e = &ring[(first + i) & (capacity - 1)];

        out[i].kind = __atomic_load_n(&e->kind, __ATOMIC_ACQUIRE);
        out[i].ticks = __atomic_load_n(&e->ticks, __ATOMIC_RELAXED);
        out[i].slot = __atomic_load_n(&e->slot, __ATOMIC_RELAXED);
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
}

static bool is_complete(const hfn_ring *r, const hfn_time_event *e)
{
    return (e->kind == 1 || e->kind == 2) && e->ticks >= r->ticks;
}

uint32_t hfn_ring_read(hfn_ring *r, const hfn_live *live, uint32_t row, hfn_time_event *out,
                       uint32_t room, uint64_t *skipped)
{
    uint64_t capacity = get_capacity(live), written = load_written(live, row), first;
    uint32_t count, at, kept = 0;

    *skipped += skip_before(r, written > capacity ? written - capacity : 0);
    first = r->next;
    if (first >= r->end) {
        return 0;
    }
    count = r->end - first < room ? (uint32_t)(r->end - first) : room;
    copy_events(live, row, first, count, out);
    written = load_written(live, row);
    *skipped += skip_before(r, written > capacity ? written - capacity : 0);
    at = r->next - first < count ? (uint32_t)(r->next - first) : count;
    for (; at < count && !is_complete(r, &out[at]) && written - r->next > capacity / 2; at++) {
        *skipped += skip_before(r, r->next + 1);
        r->ticks = 0;
    }
    for (; at < count && is_complete(r, &out[at]); at++) {
        r->ticks = out[at].ticks;
        out[kept++] = out[at];
    }
    r->next += kept;
    return kept;
}
