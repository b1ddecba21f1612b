/* SPDX-License-Identifier: MIT */
/* Times as the sections of a finished record, and the reverse.  Every number is read through a
 * span, and damage is reported with its section. */
#include "base/status.h"
#include "records/times.h"

#define CELL_NUMBERS 11u /* of a cell, with its slot */
#define ULEB_BYTES 10u   /* of a u64, at most    */

/* ---- Writing. */

typedef struct out_bytes {
    hotfn_env env;
    uint8_t *bytes;
    size_t count, capacity;
} out_bytes;

static bool put_bytes(out_bytes *o, const void *bytes, size_t count)
{
    if (!hfn_grow_array(&o->env, (void **)&o->bytes, &o->capacity, o->count + count, 1)) {
        return false;
    }
    if (count > 0) {
        memcpy(o->bytes + o->count, bytes, count);
    }
    o->count += count;
    return true;
}

static bool put_numbers(out_bytes *o, const uint64_t *numbers, size_t count)
{
    uint8_t packed[CELL_NUMBERS * ULEB_BYTES];
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t value = numbers[i];

        do {
            packed[used++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
            value >>= 7;
        } while (value);
    }
    return put_bytes(o, packed, used);
}

/* The bytes become the section's, in memory of just their size. */
static bool give_section(hfn_times_sections *out, uint32_t type, out_bytes *o)
{
    uint8_t *bytes = hfn_allocate_zeroed(&out->env, o->count);

    if (bytes) {
        if (o->count > 0) {
            memcpy(bytes, o->bytes, o->count);
        }
        out->bytes[type] = bytes;
        out->byte_counts[type] = o->count;
    }
    hfn_free_memory(&o->env, o->bytes, o->capacity);
    return bytes != NULL;
}

static bool copy_section(hfn_times_sections *out, uint32_t type, const void *bytes,
                         uint64_t byte_count)
{
    out_bytes o = { .env = out->env };

    return put_bytes(&o, bytes, (size_t)byte_count) && give_section(out, type, &o);
}

static bool put_thread(out_bytes *o, const hfn_times *t, uint32_t thread, size_t *entry)
{
    const hfn_time_thread *head = &t->threads[thread];
    const uint64_t facts[] = { head->busy_ticks, head->events, head->first_tick, head->last_tick };
    bool held = put_numbers(o, facts, HFN_COUNT_OF(facts));
    uint32_t next = 0;

    for (; held && *entry < t->entry_count && t->entries[*entry].thread == thread; ++*entry) {
        const hfn_time_cell *c = &t->entries[*entry].cell;
        uint32_t slot = t->entries[*entry].slot;
        const uint64_t cell[CELL_NUMBERS] = {
            slot - next,
            c->timed_calls,
            c->total_ticks,
            c->self_ticks,
            c->max_ticks,
            c->histogram,
            c->open,
            c->callee_timed,
            c->within_timed,
            c->waited_ticks,
            t->entries[*entry].total_waited_ticks,
        };

        held = put_numbers(o, cell, CELL_NUMBERS);
        next = slot + 1;
    }
    return held;
}

static bool pack_threads(hfn_times_sections *out, const hfn_times *t)
{
    size_t ends_bytes = t->thread_count * sizeof(uint64_t), entry = 0;
    uint64_t *ends = hfn_allocate_zeroed(&out->env, ends_bytes);
    out_bytes o = { .env = out->env }, whole = { .env = out->env };
    bool held = ends != NULL;

    for (uint32_t i = 0; held && i < t->thread_count; i++) {
        held = put_thread(&o, t, i, &entry);
        ends[i] = o.count;
    }
    held = held && put_bytes(&whole, ends, ends_bytes) && put_bytes(&whole, o.bytes, o.count);
    hfn_free_memory(&o.env, o.bytes, o.capacity);
    hfn_free_memory(&out->env, ends, ends_bytes);
    if (held) {
        return give_section(out, HFN_SECTION_PACKED_TIMES, &whole);
    }
    hfn_free_memory(&out->env, whole.bytes, whole.capacity);
    return false;
}

static bool pack_two(hfn_times_sections *out, uint32_t type, const void *first, size_t first_bytes,
                     const void *second, size_t second_bytes)
{
    out_bytes o = { .env = out->env };

    if (put_bytes(&o, first, first_bytes) && put_bytes(&o, second, second_bytes)) {
        return give_section(out, type, &o);
    }
    hfn_free_memory(&o.env, o.bytes, o.capacity);
    return false;
}

bool hfn_times_pack(hfn_times_sections *out, const hfn_times *t)
{
    hfn_time_header header = t->header;
    const hfn_packed *h = &t->histograms;

    out->env = t->env;
    if (!t->present) {
        return true;
    }
    header.row_bytes = header.cells_at = 0; /* what held while live only */
    if (h->row_count < header.histograms_used && h->row_count < header.histogram_capacity) {
        header.histogram_capacity = (uint32_t)h->row_count;
    }
    return copy_section(out, HFN_SECTION_TIME_HEADER, &header, sizeof header) &&
           pack_threads(out, t) &&
           (h->row_count == 0 ||
            pack_two(out, HFN_SECTION_HISTOGRAMS, h->ends, h->row_count * sizeof *h->ends, h->bytes,
                     h->byte_count)) &&
           copy_section(out, HFN_SECTION_NODES, t->nodes,
                        (uint64_t)t->node_count * sizeof *t->nodes) &&
           (!t->allocs || copy_section(out, HFN_SECTION_NODE_ALLOCS, t->allocs,
                                       (uint64_t)t->node_count * sizeof *t->allocs)) &&
           copy_section(out, HFN_SECTION_SLOW_CALLS, t->slow,
                        (uint64_t)t->slow_count * sizeof *t->slow) &&
           (t->event_count == 0 || pack_two(out, HFN_SECTION_EVENTS, t->event_ends,
                                            t->thread_count * sizeof *t->event_ends, t->events,
                                            (size_t)t->event_count * sizeof *t->events));
}

void hfn_times_sections_finish(hfn_times_sections *s)
{
    for (uint32_t type = 0; type < HFN_SECTION_TYPES; type++) {
        hfn_free_memory(&s->env, s->bytes[type], s->byte_counts[type]);
    }
    memset(s->bytes, 0, sizeof s->bytes);
}

/* ---- Reading. */

static bool get_numbers(hfn_span s, uint64_t *offset, uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!hfn_span_uleb(s, offset, &numbers[i])) {
            return false;
        }
    }
    return true;
}

static hotfn_status unpack_thread(hfn_times *t, hfn_span bytes, uint32_t thread)
{
    uint64_t facts[4], n[CELL_NUMBERS], offset = 0, slot = 0;

    if (!get_numbers(bytes, &offset, facts, 4)) {
        return HOTFN_E_FORMAT;
    }
    t->threads[thread] = (hfn_time_thread){
        .busy_ticks = facts[0], .events = facts[1], .first_tick = facts[2], .last_tick = facts[3]
    };
    while (offset < bytes.size) {
        hfn_time_entry e = { .thread = thread };

        if (!get_numbers(bytes, &offset, n, CELL_NUMBERS) || n[0] >= HOTFN_NO_SLOT - slot) {
            return HOTFN_E_FORMAT;
        }
        slot += n[0];
        e.slot = (uint32_t)slot++;
        e.cell = (hfn_time_cell){ .timed_calls = n[1],
                                  .total_ticks = n[2],
                                  .self_ticks = n[3],
                                  .max_ticks = n[4],
                                  .histogram = (uint32_t)n[5],
                                  .open = (uint32_t)n[6],
                                  .callee_timed = n[7],
                                  .within_timed = n[8],
                                  .waited_ticks = n[9] };
        e.total_waited_ticks = n[10];
        if (!hfn_times_add_entry(t, &e)) {
            return HOTFN_E_NO_MEMORY;
        }
    }
    return HOTFN_OK;
}

/* The i-th end of those that a section begins with; never before the one before it. */
static bool get_end(hfn_span section, uint64_t i, uint64_t most, uint64_t *end)
{
    uint64_t value;

    if (!hfn_span_u64(section, i * sizeof value, &value) || value < *end || value > most) {
        return false;
    }
    *end = value;
    return true;
}

static hotfn_status unpack_threads(hfn_times *t, hfn_span s)
{
    hfn_span bytes = hfn_span_from(s, (uint64_t)t->thread_count * sizeof(uint64_t));
    uint64_t begin = 0, end = 0;
    hotfn_status status = HOTFN_OK;

    for (uint32_t i = 0; status == HOTFN_OK && i < t->thread_count; i++) {
        if (!get_end(s, i, bytes.size, &end)) {
            return HOTFN_E_FORMAT;
        }
        status = unpack_thread(t, hfn_span_sub(bytes, begin, end - begin), i);
        begin = end;
    }
    return status;
}

/* As many as the header says: their count stands nowhere else. */
static hotfn_status unpack_histograms(hfn_times *t, hfn_span s)
{
    hfn_packed *h = &t->histograms;
    uint64_t used = t->header.histograms_used < t->header.histogram_capacity
                        ? t->header.histograms_used
                        : t->header.histogram_capacity;
    hfn_span bytes = hfn_span_from(s, used * sizeof(uint64_t));
    uint64_t end = 0;

    if (s.size == 0) {
        return HOTFN_OK;
    }
    if (used > s.size / sizeof(uint64_t)) {
        return HOTFN_E_FORMAT;
    }
    h->ends = hfn_allocate_zeroed(&h->env, used * sizeof *h->ends);
    h->row_capacity = used;
    h->bytes = hfn_allocate_zeroed(&h->env, bytes.size);
    h->byte_count = h->byte_capacity = bytes.size;
    if (!h->ends || !h->bytes) {
        return HOTFN_E_NO_MEMORY;
    }
    if (bytes.size > 0) {
        memcpy(h->bytes, bytes.data, bytes.size);
    }
    for (; h->row_count < used; h->row_count++) {
        if (!get_end(s, h->row_count, bytes.size, &end)) {
            return HOTFN_E_FORMAT;
        }
        h->ends[h->row_count] = end;
    }
    return HOTFN_OK;
}

static hotfn_status unpack_nodes(hfn_times *t, hfn_span nodes, hfn_span allocs)
{
    uint64_t count = nodes.size / sizeof(hfn_time_node);

    if (count >= UINT32_MAX || (allocs.size && allocs.size / sizeof(hotfn_alloc_cell) != count)) {
        return HOTFN_E_FORMAT;
    }
    if (!hfn_times_make_nodes(t, (uint32_t)count, allocs.size > 0)) {
        return HOTFN_E_NO_MEMORY;
    }
    if (count > 0) {
        memcpy(t->nodes, nodes.data, count * sizeof *t->nodes);
    }
    if (count > 0 && allocs.size > 0) {
        memcpy(t->allocs, allocs.data, count * sizeof *t->allocs);
    }
    return HOTFN_OK;
}

static hotfn_status unpack_slow_calls(hfn_times *t, hfn_span s)
{
    uint64_t count = s.size / sizeof(hfn_slow_call);

    if (count >= UINT32_MAX) {
        return HOTFN_E_FORMAT;
    }
    if (!hfn_times_make_slow_calls(t, (uint32_t)count)) {
        return HOTFN_E_NO_MEMORY;
    }
    if (count > 0) {
        memcpy(t->slow, s.data, count * sizeof *t->slow);
    }
    return HOTFN_OK;
}

static hotfn_status unpack_events(hfn_times *t, hfn_span s)
{
    hfn_span rest = hfn_span_from(s, (uint64_t)t->thread_count * sizeof(uint64_t));
    uint64_t count = rest.size / sizeof(hfn_time_event), end = 0;

    if (s.size == 0) {
        return HOTFN_OK;
    }
    for (uint32_t i = 0; i < t->thread_count; i++) {
        if (!get_end(s, i, count, &end)) {
            return HOTFN_E_FORMAT;
        }
        t->event_ends[i] = end;
    }
    if (end == 0) {
        return HOTFN_OK;
    }
    t->events = hfn_allocate_zeroed(&t->env, (size_t)end * sizeof *t->events);
    if (!t->events) {
        return HOTFN_E_NO_MEMORY;
    }
    memcpy(t->events, rest.data, (size_t)end * sizeof *t->events);
    t->event_count = t->event_capacity = end;
    return HOTFN_OK;
}

static hotfn_status unpack_header(hfn_times *t, hfn_span s)
{
    if (s.size < sizeof t->header) {
        return HOTFN_E_FORMAT;
    }
    memcpy(&t->header, s.data, sizeof t->header);
    return t->header.ticks_per_second ? HOTFN_OK : HOTFN_E_FORMAT;
}

hotfn_status hfn_times_unpack(hfn_times *t, const hfn_span sections[HFN_SECTION_TYPES],
                              uint32_t thread_count, uint32_t *damaged)
{
    hotfn_status status = unpack_header(t, sections[ *damaged = HFN_SECTION_TIME_HEADER]);

    if (status != HOTFN_OK) {
        return status;
    }
    if (!hfn_times_make_threads(t, thread_count)) {
        return HOTFN_E_NO_MEMORY;
    }
    status = unpack_threads(t, sections[ *damaged = HFN_SECTION_PACKED_TIMES]);
    if (status == HOTFN_OK) {
        status = unpack_histograms(t, sections[ *damaged = HFN_SECTION_HISTOGRAMS]);
    }
    if (status == HOTFN_OK) {
        status = unpack_nodes(t, sections[ *damaged = HFN_SECTION_NODES],
                              sections[HFN_SECTION_NODE_ALLOCS]);
    }
    if (status == HOTFN_OK) {
        status = unpack_slow_calls(t, sections[ *damaged = HFN_SECTION_SLOW_CALLS]);
    }
    if (status == HOTFN_OK) {
        status = unpack_events(t, sections[ *damaged = HFN_SECTION_EVENTS]);
    }
    t->present = status == HOTFN_OK;
    return status;
}
