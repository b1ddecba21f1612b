/* SPDX-License-Identifier: MIT */
/* The times of a merge.  Each record's are corrected by its own hooks' cost first, so the new
 * record holds nanoseconds and no cost.  A sum keeps trees, histograms and slow calls too; a mean,
 * smallest and largest are of the functions' numbers alone. */
#include "profile/merge.h"

#define NS_PER_SECOND UINT64_C(1000000000)

static uint32_t slot_of(const hotfn_record *r, uint32_t function)
{
    return hfn_read_le32(hfn_record_get_element(r, HFN_SECTION_SLOTS, function));
}

static bool all_timed(const hfn_merge *m)
{
    for (uint32_t i = 0; i < m->record_count; i++) {
        if (!m->records[i]->times.present) {
            return false;
        }
    }
    return true;
}

/* What was sampled is scaled up here: from now on as if all calls had been timed. */
static hotfn_record_timing timing_of(const hotfn_record *r, uint32_t function)
{
    hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;

    hotfn_record_get_timing(r, function, &t);
    if (t.timing == HOTFN_TIMING_SAMPLE && t.timed_calls > 0) {
        hotfn_record_get_function(r, function, &f);
        t.timed_calls = f.calls;
    }
    return t;
}

/* ---- Functions. */

/* Which functions of a run are one in the new record: a run that mapped an image twice has each of
 * its functions twice. */
typedef struct sharers {
    const hfn_merge *m;
    uint32_t slot_count;
    uint64_t bytes;
    uint64_t *before; /* [run]: functions of the runs before it          */
    uint32_t *first;  /* [run][slot]: a function + 1, 0: the run has none */
    uint32_t *next;   /* [before + function]: likewise                    */
} sharers;

static bool sharers_find(sharers *s, const hfn_merge *m, const hotfn_record *out)
{
    uint64_t slots = (uint64_t)out->slot_count * m->record_count;
    uint64_t functions = 0;

    *s = (sharers){ .m = m, .slot_count = out->slot_count };
    for (uint32_t run = 0; run < m->record_count; run++) {
        functions += m->records[run]->function_count;
    }
    s->bytes = m->record_count * sizeof(uint64_t) + (slots + functions) * sizeof(uint32_t);
    s->before = s->bytes <= SIZE_MAX ? hfn_allocate_zeroed(&m->env, (size_t)s->bytes) : NULL;
    if (!s->before) {
        return false;
    }
    s->first = (uint32_t *)(s->before + m->record_count);
    s->next = s->first + slots;
    functions = 0;
    for (uint32_t run = 0; run < m->record_count; run++) {
        uint32_t *first = s->first + (uint64_t)run * out->slot_count;
        uint32_t *next = s->next + functions;

        s->before[run] = functions;
        functions += m->records[run]->function_count;
        for (uint32_t i = m->records[run]->function_count; i-- > 0;) {
            uint32_t slot = slot_of(out, m->places[run][i]);

            if (slot >= out->slot_count) {
                continue;
            }
            next[i] = first[slot];
            first[slot] = i + 1;
        }
    }
    return true;
}

static void sharers_finish(sharers *s)
{
    hfn_free_memory(&s->m->env, s->before, (size_t)s->bytes);
}

static uint64_t root_of_squares(uint64_t a, uint64_t b)
{
    if (a == HOTFN_ERROR_UNKNOWN || b == HOTFN_ERROR_UNKNOWN) {
        return HOTFN_ERROR_UNKNOWN;
    }
    return (uint64_t)hfn_times_root((double)a * (double)a + (double)b * (double)b);
}

static void add_timing(hotfn_record_timing *sum, const hotfn_record_timing *t)
{
    sum->timed_calls += t->timed_calls;
    sum->total_ns += t->total_ns;
    sum->self_ns += t->self_ns;
    sum->open_calls += t->open_calls;
    sum->max_ns = t->max_ns > sum->max_ns ? t->max_ns : sum->max_ns;
    sum->total_error_ns = root_of_squares(sum->total_error_ns, t->total_error_ns);
    sum->self_error_ns = root_of_squares(sum->self_error_ns, t->self_error_ns);
}

/* Of all of a run's functions that have the slot; timed_calls 0: none was timed. */
static hotfn_record_timing timing_in(const sharers *s, uint32_t run, uint32_t slot)
{
    const hotfn_record *r = s->m->records[run];
    const uint32_t *next = s->next + s->before[run];
    hotfn_record_timing sum = HOTFN_RECORD_TIMING_INIT;

    for (uint32_t f = s->first[(uint64_t)run * s->slot_count + slot]; f; f = next[f - 1]) {
        hotfn_record_timing t = timing_of(r, f - 1);

        if (t.timed_calls > 0 && sum.timed_calls > 0) {
            add_timing(&sum, &t);
        } else if (t.timed_calls > 0) {
            sum = t;
        }
    }
    return sum;
}

static hfn_time_entry entry_of(const hotfn_record_timing *t, uint32_t slot, uint32_t thread)
{
    return (hfn_time_entry){ .cell = { .total_ticks = t->total_ns,
                                       .self_ticks = t->self_ns,
                                       .timed_calls = t->timed_calls,
                                       .max_ticks = t->max_ns,
                                       .open = (uint32_t)t->open_calls,
                                       .errors = { t->total_error_ns, t->self_error_ns } },
                             .slot = slot,
                             .thread = thread };
}

/* By thread, then by slot, as entries stand. */
static bool add_runs(const sharers *s, hotfn_record *out)
{
    for (uint32_t run = 0; run < s->m->record_count; run++) {
        for (uint32_t slot = 0; slot < out->slot_count; slot++) {
            hotfn_record_timing t = timing_in(s, run, slot);
            hfn_time_entry e = entry_of(&t, slot, run);

            e.cell.histogram = slot + 1;
            if (t.timed_calls > 0 && !hfn_times_add_entry(&out->times, &e)) {
                return false;
            }
        }
    }
    return true;
}

/* Some numbers of each function and run side by side, then one out of each of these rows. */
enum { TOTAL, SELF, TIMED, MOST, TOTAL_ERROR, SELF_ERROR, NUMBERS };

static void take_numbers(const sharers *s, uint64_t *values, uint32_t *counts)
{
    uint32_t runs = s->m->record_count;

    for (uint32_t run = 0; run < runs; run++) {
        for (uint32_t slot = 0; slot < s->slot_count; slot++) {
            hotfn_record_timing t = timing_in(s, run, slot);
            const uint64_t numbers[NUMBERS] = { t.total_ns, t.self_ns,        t.timed_calls,
                                                t.max_ns,   t.total_error_ns, t.self_error_ns };

            if (t.timed_calls == 0) {
                continue;
            }
            for (uint32_t k = 0; k < NUMBERS; k++) {
                values[((size_t)slot * NUMBERS + k) * runs + counts[slot]] = numbers[k];
            }
            counts[slot]++;
        }
    }
}

/* The standard error of the merged value: of a mean, the root of the sum of the squares over their
 * number; of the minimum or the maximum, that of the run that has it. */
static uint64_t error_of(const hfn_merge *m, const uint64_t *values, const uint64_t *errors,
                         uint32_t count, uint64_t value)
{
    double squares = 0;

    for (uint32_t i = 0; i < count; i++) {
        if ((m->mode != HOTFN_MERGE_MEAN && values[i] == value) ||
            errors[i] == HOTFN_ERROR_UNKNOWN) {
            return errors[i];
        }
        squares += (double)errors[i] * (double)errors[i];
    }
    return (uint64_t)(hfn_times_root(squares) / m->record_count);
}

static bool add_values(const sharers *s, hotfn_record *out)
{
    const hfn_merge *m = s->m;
    size_t numbers = (size_t)out->slot_count * NUMBERS * m->record_count;
    size_t bytes = numbers * sizeof(uint64_t) + out->slot_count * sizeof(uint32_t);
    uint64_t *values = hfn_allocate_zeroed(&m->env, bytes);
    uint32_t *counts = values ? (uint32_t *)(values + numbers) : NULL;
    bool held = counts != NULL;

    if (held) {
        take_numbers(s, values, counts);
    }
    for (uint32_t slot = 0; held && slot < out->slot_count; slot++) {
        const uint64_t *at = values + (size_t)slot * NUMBERS * m->record_count;
        hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;
        hfn_time_entry e;

        if (counts[slot] == 0) {
            continue;
        }
        t.total_ns = hfn_merge_values(m, at + TOTAL * m->record_count, counts[slot]);
        t.self_ns = hfn_merge_values(m, at + SELF * m->record_count, counts[slot]);
        t.timed_calls = hfn_merge_values(m, at + TIMED * m->record_count, counts[slot]);
        t.max_ns = hfn_merge_values(m, at + MOST * m->record_count, counts[slot]);
        t.total_error_ns = error_of(m, at + TOTAL * m->record_count,
                                    at + TOTAL_ERROR * m->record_count, counts[slot], t.total_ns);
        t.self_error_ns = error_of(m, at + SELF * m->record_count,
                                   at + SELF_ERROR * m->record_count, counts[slot], t.self_ns);
        e = entry_of(&t, slot, 0);
        held = hfn_times_add_entry(&out->times, &e);
    }
    hfn_free_memory(&m->env, values, bytes);
    return held;
}

/* ---- Histograms: buckets of one clock's ticks become buckets of nanoseconds. */

static uint32_t bucket_of(uint64_t ticks)
{
    uint32_t exponent = ticks ? 63u - (uint32_t)__builtin_clzll(ticks) : 0;

    if (ticks < 64) {
        return (uint32_t)ticks;
    }
    return exponent > 43 ? HOTFN_HISTOGRAM_BUCKETS - 1
                         : 32 * (exponent - 5) + (uint32_t)(ticks >> (exponent - 5));
}

static void add_histogram(const hotfn_record *r, uint32_t function, uint64_t *counts,
                          uint64_t *from)
{
    hotfn_record_timing t = timing_of(r, function);

    if (t.timed_calls == 0 || hotfn_record_get_histogram(r, function, from) != HOTFN_OK) {
        return;
    }
    for (uint32_t i = 0; i < HOTFN_HISTOGRAM_BUCKETS; i++) {
        double ns = (hotfn_record_get_bucket_ns(r, i) + hotfn_record_get_bucket_ns(r, i + 1)) / 2;

        if (from[i] > 0) {
            counts[bucket_of(ns < 1e18 ? (uint64_t)ns : UINT64_C(1) << 60)] += from[i];
        }
    }
}

/* One a slot, each over all runs. */
static bool add_histograms(const sharers *s, hotfn_record *out)
{
    const hfn_merge *m = s->m;
    const size_t words = HOTFN_HISTOGRAM_BUCKETS;
    size_t bytes = 2 * words * sizeof(uint64_t);
    uint64_t *counts = hfn_allocate_zeroed(&m->env, bytes);
    bool held = counts != NULL;

    for (uint32_t slot = 0; held && slot < out->slot_count; slot++) {
        memset(counts, 0, words * sizeof *counts);
        for (uint32_t run = 0; run < m->record_count; run++) {
            const uint32_t *next = s->next + s->before[run];

            for (uint32_t f = s->first[(uint64_t)run * s->slot_count + slot]; f; f = next[f - 1]) {
                add_histogram(m->records[run], f - 1, counts, counts + words);
            }
        }
        held = hfn_packed_append(&out->times.histograms, counts, words) &&
               hfn_packed_end_row(&out->times.histograms);
    }
    hfn_free_memory(&m->env, counts, bytes);
    out->times.header.histogram_capacity = out->times.header.histograms_used = out->slot_count;
    return held;
}

/* ---- Trees and slow calls: one behind the other, their indices moved. */

static uint64_t node_sum(const hfn_merge *m, bool *with_allocs)
{
    uint64_t nodes = 0;

    *with_allocs = true;
    for (uint32_t i = 0; i < m->record_count; i++) {
        nodes += m->records[i]->times.node_count;
        *with_allocs = *with_allocs && m->records[i]->times.allocs;
    }
    return nodes;
}

static void move_nodes(const hfn_merge *m, uint32_t run, hotfn_record *out, uint32_t base)
{
    const hotfn_record *r = m->records[run];

    for (uint32_t i = 0; i < r->times.node_count; i++) {
        hotfn_record_node n = HOTFN_RECORD_NODE_INIT;
        hfn_time_node *to = &out->times.nodes[base + i];

        hotfn_record_get_node(r, i, &n);
        *to = (hfn_time_node){ .parent = n.parent == HOTFN_NO_NODE ? UINT32_MAX : base + n.parent,
                               .slot = n.function == HOTFN_NO_FUNCTION
                                           ? HOTFN_NO_SLOT
                                           : slot_of(out, m->places[run][n.function]),
                               .thread = run,
                               .flags = n.flags,
                               .calls = n.calls,
                               .total_ticks = n.total_ns,
                               .timed_calls = n.calls };
        if (out->times.allocs) {
            out->times.allocs[base + i] = n.self_alloc;
        }
    }
}

static uint64_t slow_ns_of(const hotfn_record *r)
{
    return hfn_times_ns(r, r->times.header.slow_ticks);
}

/* The duration from which all runs have their slow calls; 0 if a run has none. */
static uint64_t common_slow_ns(const hfn_merge *m)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < m->record_count; i++) {
        if (slow_ns_of(m->records[i]) == 0) {
            return 0;
        }
        most = slow_ns_of(m->records[i]) > most ? slow_ns_of(m->records[i]) : most;
    }
    return most;
}

/* Only such slow calls are merged: others would seem to be calls of some runs alone. */
static bool is_kept_by_all(const hotfn_record *r, uint64_t common_ns, uint64_t duration_ns)
{
    return common_ns > 0 && (slow_ns_of(r) == common_ns || duration_ns >= common_ns);
}

static void move_slow_calls(const hfn_merge *m, uint32_t run, hotfn_record *out, uint32_t base,
                            uint32_t *place)
{
    uint64_t common_ns = common_slow_ns(m);

    for (uint32_t i = 0; i < m->records[run]->times.slow_count; i++) {
        hotfn_record_slow_call s = HOTFN_RECORD_SLOW_CALL_INIT;

        hotfn_record_get_slow_call(m->records[run], i, &s);
        if (!is_kept_by_all(m->records[run], common_ns, s.duration_ns)) {
            continue;
        }
        out->times.slow[*place] =
            (hfn_slow_call){ .sequence = *place + 1ull,
                             .start_ticks = s.start_ns,
                             .ticks = s.duration_ns,
                             .node = s.node == HOTFN_NO_NODE ? UINT32_MAX : base + s.node,
                             .slot = s.function == HOTFN_NO_FUNCTION
                                         ? HOTFN_NO_SLOT
                                         : slot_of(out, m->places[run][s.function]),
                             .thread = run };
        ++*place;
    }
}

static bool add_trees(const hfn_merge *m, hotfn_record *out)
{
    uint64_t slow = 0, lost = 0, nodes;
    uint32_t base = 0, place = 0;
    bool with_allocs;

    nodes = node_sum(m, &with_allocs);
    for (uint32_t i = 0; i < m->record_count; i++) {
        hotfn_record_time_info info = HOTFN_RECORD_TIME_INFO_INIT;

        hotfn_record_get_time_info(m->records[i], &info);
        slow += info.slow_count;
        lost += info.slow_lost;
    }
    if (nodes >= UINT32_MAX || slow >= UINT32_MAX ||
        !hfn_times_make_nodes(&out->times, (uint32_t)nodes, with_allocs) ||
        !hfn_times_make_slow_calls(&out->times, (uint32_t)slow)) {
        return false;
    }
    for (uint32_t i = 0; i < m->record_count; i++) {
        move_nodes(m, i, out, base);
        move_slow_calls(m, i, out, base, &place);
        base += m->records[i]->times.node_count;
    }
    out->times.header.nodes_used = out->times.header.node_capacity = (uint32_t)nodes;
    out->times.slow_count = out->times.header.slow_capacity = place;
    out->times.header.slow_used = lost < UINT32_MAX - place ? place + (uint32_t)lost : UINT32_MAX;
    return true;
}

/* ---- The header, the runs' busy times, and how each function was timed. */

static void add_up_header(const hfn_merge *m, hfn_time_header *h)
{
    uint32_t dropped = HOTFN_TIMING_EVENTS | HOTFN_TIMING_SOME_SAMPLED, any = 0;

    *h = (hfn_time_header){ .flags = UINT32_MAX,
                            .clock = HOTFN_CLOCK_MERGED,
                            .ticks_per_second = NS_PER_SECOND,
                            .version = HFN_TIMES_VERSION };
    if (m->mode != HOTFN_MERGE_SUM) {
        dropped |=
            HOTFN_TIMING_TREE | HOTFN_TIMING_HISTOGRAMS | HOTFN_TIMING_ALLOC | HOTFN_TIMING_SLOW;
    }
    for (uint32_t i = 0; i < m->record_count; i++) {
        const hfn_time_header *from = &m->records[i]->times.header;

        h->flags &= from->flags;
        any |= from->flags;
        h->nodes_merged += from->nodes_merged;
        h->abandoned_exits += from->abandoned_exits;
        h->clock_went_back += from->clock_went_back;
        h->sample_mean = from->sample_mean > h->sample_mean ? from->sample_mean : h->sample_mean;
    }
    h->slow_ticks = common_slow_ns(m);
    h->flags &= ~dropped;
    h->flags |= HOTFN_TIMING_ERRORS;
    h->flags |=
        any & (HOTFN_TIMING_SAMPLED | HOTFN_TIMING_SOME_SAMPLED) ? HOTFN_TIMING_SOME_SAMPLED : 0;
}

static void add_up_threads(const hfn_merge *m, hotfn_record *out)
{
    for (uint32_t i = 0; i < m->record_count; i++) {
        hotfn_record_time_info info = HOTFN_RECORD_TIME_INFO_INIT;

        hotfn_record_get_time_info(m->records[i], &info);
        if (m->mode == HOTFN_MERGE_SUM) {
            out->times.threads[i].busy_ticks = info.busy_ns;
        }
    }
    for (size_t i = 0; m->mode != HOTFN_MERGE_SUM && i < out->times.entry_count; i++) {
        out->times.threads[0].busy_ticks += out->times.entries[i].cell.self_ticks;
    }
}

/* A function's estimates are in its numbers already: sampled only says so where a run was. */
static bool put_states(const hfn_merge *m, hotfn_record *out)
{
    hfn_part *part = &out->parts[HFN_SECTION_TIMING_STATES];

    part->byte_count = (uint64_t)out->function_count * sizeof(uint32_t);
    part->bytes = hfn_allocate_zeroed(&out->env, part->byte_count + 2);
    if (!part->bytes) {
        return false;
    }
    for (uint32_t run = 0; run < m->record_count; run++) {
        for (uint32_t i = 0; i < m->records[run]->function_count; i++) {
            uint8_t *at = part->bytes + (uint64_t)m->places[run][i] * sizeof(uint32_t);
            uint32_t timing = timing_of(m->records[run], i).timing;

            hfn_write_le32(at, timing > hfn_read_le32(at) ? timing : hfn_read_le32(at));
        }
    }
    return true;
}

/* What each function took, and where it was called. */
static bool add_all(const hfn_merge *m, hotfn_record *out)
{
    sharers s;
    bool held = sharers_find(&s, m, out);

    if (held) {
        held = m->mode == HOTFN_MERGE_SUM
                   ? add_runs(&s, out) && add_histograms(&s, out) && add_trees(m, out)
                   : add_values(&s, out);
    }
    sharers_finish(&s);
    return held;
}

bool hfn_merge_times(const hfn_merge *m, hotfn_record *out)
{
    hfn_times *t = &out->times;

    if (!all_timed(m)) {
        return true;
    }
    add_up_header(m, &t->header);
    if (!hfn_times_make_threads(t, out->thread_count) || !put_states(m, out) || !add_all(m, out)) {
        return false;
    }
    add_up_threads(m, out);
    t->present = true;
    return hfn_times_validate(t, out->slot_count, out->thread_count);
}
