/* SPDX-License-Identifier: MIT */
/* Merges the times of records.  The times of each record are first corrected by the cost of its
 * hooks, so the new record has nanoseconds and no hook cost.  A sum also merges call trees,
 * histograms and slow calls; a mean, minimum or maximum has only the numbers of functions. */
#include "profile/merge.h"

#define NS_PER_SECOND UINT64_C(1000000000)

static uint32_t get_slot(const hotfn_record *r, uint32_t function)
{
    return hfn_read_le32(hfn_record_get_element(r, HFN_SECTION_SLOTS, function));
}

static bool are_all_timed(const hfn_merge *m)
{
    for (uint32_t i = 0; i < m->record_count; i++) {
        if (!m->records[i]->times.present) {
            return false;
        }
    }
    return true;
}

/* The times of a function in one run.  Those of a sampled function are estimates for all of its
 * calls, so timed_calls becomes the number of all calls.  With a tick clock the errors are only the
 * random ones: time that hooks shift between functions is the same in each run. */
static hotfn_record_timing get_timing(const hotfn_record *r, uint32_t function)
{
    hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;

    hotfn_record_get_timing(r, function, &t);
    if (t.timing == HOTFN_TIMING_SAMPLE && t.timed_calls > 0) {
        hotfn_record_get_function(r, function, &f);
        t.timed_calls = f.calls;
    } else if (r->times.header.tick_ticks && t.timed_calls > 0) {
        t.total_error_ns = hfn_times_random_error_ns(r, t.total_ns);
        t.self_error_ns = hfn_times_random_error_ns(r, t.self_ns);
    }
    return t;
}

/* ---- Functions. */

/* The functions of each run that become one function of the new record.  A run that mapped an image
 * twice has each of its functions twice. */
typedef struct function_groups {
    const hfn_merge *m;
    uint32_t slot_count;
    uint64_t bytes;
    uint64_t *before; /* [run]: number of functions of the runs before it         */
    uint32_t *first;  /* [run][slot]: first function of the group + 1; 0: none    */
    uint32_t *next;   /* [before + function]: next function of the group + 1; 0: none */
} function_groups;

static bool create_groups(function_groups *s, const hfn_merge *m, const hotfn_record *out)
{
    uint64_t slots = (uint64_t)out->slot_count * m->record_count;
    uint64_t functions = 0;

    *s = (function_groups){ .m = m, .slot_count = out->slot_count };
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
            uint32_t slot = get_slot(out, m->places[run][i]);

            if (slot >= out->slot_count) {
                continue;
            }
            next[i] = first[slot];
            first[slot] = i + 1;
        }
    }
    return true;
}

static void free_groups(function_groups *s)
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
    sum->waited_ns += t->waited_ns;
    sum->total_waited_ns += t->total_waited_ns;
    sum->open_calls += t->open_calls;
    sum->max_ns = t->max_ns > sum->max_ns ? t->max_ns : sum->max_ns;
    sum->total_error_ns = root_of_squares(sum->total_error_ns, t->total_error_ns);
    sum->self_error_ns = root_of_squares(sum->self_error_ns, t->self_error_ns);
}

/* The sum over the functions of a run that share the slot; timed_calls is 0 if none was timed. */
static hotfn_record_timing sum_group(const function_groups *s, uint32_t run, uint32_t slot)
{
    const hotfn_record *r = s->m->records[run];
    const uint32_t *next = s->next + s->before[run];
    hotfn_record_timing sum = HOTFN_RECORD_TIMING_INIT;

    for (uint32_t f = s->first[(uint64_t)run * s->slot_count + slot]; f; f = next[f - 1]) {
        hotfn_record_timing t = get_timing(r, f - 1);

        if (t.timed_calls > 0 && sum.timed_calls > 0) {
            add_timing(&sum, &t);
        } else if (t.timed_calls > 0) {
            sum = t;
        }
    }
    return sum;
}

static hfn_time_entry make_entry(const hotfn_record_timing *t, uint32_t slot, uint32_t thread)
{
    return (hfn_time_entry){ .cell = { .total_ticks = t->total_ns,
                                       .self_ticks = t->self_ns,
                                       .timed_calls = t->timed_calls,
                                       .max_ticks = t->max_ns,
                                       .waited_ticks = t->waited_ns,
                                       .open = (uint32_t)t->open_calls,
                                       .errors = { t->total_error_ns, t->self_error_ns } },
                             .slot = slot,
                             .thread = thread,
                             .total_waited_ticks = t->total_waited_ns };
}

/* Entries are sorted by thread, then by slot; each run becomes a thread. */
static bool add_run_entries(const function_groups *s, hotfn_record *out)
{
    for (uint32_t run = 0; run < s->m->record_count; run++) {
        for (uint32_t slot = 0; slot < out->slot_count; slot++) {
            hotfn_record_timing t = sum_group(s, run, slot);
            hfn_time_entry e = make_entry(&t, slot, run);

            e.cell.histogram = slot + 1;
            if (t.timed_calls > 0 && !hfn_times_add_entry(&out->times, &e)) {
                return false;
            }
        }
    }
    return true;
}

/* ---- Mean, minimum and maximum.  The values of one number of a function over all runs are
 * adjacent, so hfn_merge_values can reduce them to one. */
enum { TOTAL, SELF, TIMED, MAX, TOTAL_ERROR, SELF_ERROR, WAITED, TOTAL_WAITED, NUMBERS };

static void collect_numbers(const function_groups *s, uint64_t *values, uint32_t *counts)
{
    uint32_t runs = s->m->record_count;

    for (uint32_t run = 0; run < runs; run++) {
        for (uint32_t slot = 0; slot < s->slot_count; slot++) {
            hotfn_record_timing t = sum_group(s, run, slot);
            const uint64_t numbers[NUMBERS] = { t.total_ns,  t.self_ns,        t.timed_calls,
                                                t.max_ns,    t.total_error_ns, t.self_error_ns,
                                                t.waited_ns, t.total_waited_ns };

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

/* The root of the sum of the squares; unknown if one error is. */
static uint64_t combine_errors(const uint64_t *errors, uint32_t count, uint32_t divisor)
{
    double squares = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (errors[i] == HOTFN_ERROR_UNKNOWN) {
            return HOTFN_ERROR_UNKNOWN;
        }
        squares += (double)errors[i] * (double)errors[i];
    }
    return (uint64_t)(hfn_times_root(squares) / divisor);
}

/* The error of the run that has the value; 0 if none has, since the value is then the 0 of a run
 * that did not call the function. */
static uint64_t find_error(const uint64_t *values, const uint64_t *errors, uint32_t count,
                           uint64_t value)
{
    for (uint32_t i = 0; i < count; i++) {
        if (values[i] == value) {
            return errors[i];
        }
    }
    return 0;
}

/* The standard error of the merged value: that of the mean of independent values, or that of the
 * run which has the value. */
static uint64_t merge_errors(const hfn_merge *m, const uint64_t *values, const uint64_t *errors,
                             uint32_t count, uint64_t value)
{
    uint64_t middle[2], of_middle[2];

    switch (m->mode) {
    case HOTFN_MERGE_MEAN: return combine_errors(errors, count, m->record_count);
    case HOTFN_MERGE_MEAN_CALLED: return combine_errors(errors, count, count);
    case HOTFN_MERGE_MEDIAN:
        hfn_merge_find_ranked(m, values, count, &middle[0], &middle[1]);
        of_middle[0] = find_error(values, errors, count, middle[0]);
        of_middle[1] = find_error(values, errors, count, middle[1]);
        return middle[0] == middle[1] ? of_middle[0] : combine_errors(of_middle, 2, 2);
    default: return find_error(values, errors, count, value);
    }
}

static bool add_merged_entries(const function_groups *s, hotfn_record *out)
{
    const hfn_merge *m = s->m;
    size_t numbers = (size_t)out->slot_count * NUMBERS * m->record_count;
    size_t bytes = numbers * sizeof(uint64_t) + out->slot_count * sizeof(uint32_t);
    uint64_t *values = hfn_allocate_zeroed(&m->env, bytes);
    uint32_t *counts = values ? (uint32_t *)(values + numbers) : NULL;
    bool ok = counts != NULL;

    if (ok) {
        collect_numbers(s, values, counts);
    }
    for (uint32_t slot = 0; ok && slot < out->slot_count; slot++) {
        const uint64_t *at = values + (size_t)slot * NUMBERS * m->record_count;
        hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;
        hfn_time_entry e;

        if (counts[slot] == 0) {
            continue;
        }
        t.total_ns = hfn_merge_values(m, at + TOTAL * m->record_count, counts[slot]);
        t.self_ns = hfn_merge_values(m, at + SELF * m->record_count, counts[slot]);
        t.timed_calls = hfn_merge_values(m, at + TIMED * m->record_count, counts[slot]);
        t.max_ns = hfn_merge_values(m, at + MAX * m->record_count, counts[slot]);
        t.waited_ns = hfn_merge_values(m, at + WAITED * m->record_count, counts[slot]);
        t.total_waited_ns = hfn_merge_values(m, at + TOTAL_WAITED * m->record_count, counts[slot]);
        t.total_error_ns =
            merge_errors(m, at + TOTAL * m->record_count, at + TOTAL_ERROR * m->record_count,
                         counts[slot], t.total_ns);
        t.self_error_ns = merge_errors(m, at + SELF * m->record_count,
                                       at + SELF_ERROR * m->record_count, counts[slot], t.self_ns);
        e = make_entry(&t, slot, 0);
        ok = hfn_times_add_entry(&out->times, &e);
    }
    hfn_free_memory(&m->env, values, bytes);
    return ok;
}

/* ---- Histograms: the buckets of each record's ticks are converted to buckets of nanoseconds. */

static uint32_t find_bucket(uint64_t ticks)
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
    hotfn_record_timing t = get_timing(r, function);

    if (t.timed_calls == 0 || hotfn_record_get_histogram(r, function, from) != HOTFN_OK) {
        return;
    }
    for (uint32_t i = 0; i < HOTFN_HISTOGRAM_BUCKETS; i++) {
        double ns = (hotfn_record_get_bucket_ns(r, i) + hotfn_record_get_bucket_ns(r, i + 1)) / 2;

        if (from[i] > 0) {
            counts[find_bucket(ns < 1e18 ? (uint64_t)ns : UINT64_C(1) << 60)] += from[i];
        }
    }
}

/* Adds one histogram for each slot, summed over all runs. */
static bool add_histograms(const function_groups *s, hotfn_record *out)
{
    const hfn_merge *m = s->m;
    const size_t words = HOTFN_HISTOGRAM_BUCKETS;
    size_t bytes = 2 * words * sizeof(uint64_t);
    uint64_t *counts = hfn_allocate_zeroed(&m->env, bytes);
    bool ok = counts != NULL;

    for (uint32_t slot = 0; ok && slot < out->slot_count; slot++) {
        memset(counts, 0, words * sizeof *counts);
        for (uint32_t run = 0; run < m->record_count; run++) {
            const uint32_t *next = s->next + s->before[run];

            for (uint32_t f = s->first[(uint64_t)run * s->slot_count + slot]; f; f = next[f - 1]) {
                add_histogram(m->records[run], f - 1, counts, counts + words);
            }
        }
        ok = hfn_packed_append(&out->times.histograms, counts, words) &&
             hfn_packed_end_row(&out->times.histograms);
    }
    hfn_free_memory(&m->env, counts, bytes);
    out->times.header.histogram_capacity = out->times.header.histograms_used = out->slot_count;
    return ok;
}

/* ---- Trees and slow calls are concatenated, with their indices adjusted. */

static uint64_t count_nodes(const hfn_merge *m, bool *with_allocs)
{
    uint64_t nodes = 0;

    *with_allocs = true;
    for (uint32_t i = 0; i < m->record_count; i++) {
        nodes += m->records[i]->times.node_count;
        *with_allocs = *with_allocs && m->records[i]->times.allocs;
    }
    return nodes;
}

static void copy_nodes(const hfn_merge *m, uint32_t run, hotfn_record *out, uint32_t base)
{
    const hotfn_record *r = m->records[run];

    for (uint32_t i = 0; i < r->times.node_count; i++) {
        hotfn_record_node n = HOTFN_RECORD_NODE_INIT;
        hfn_time_node *to = &out->times.nodes[base + i];

        hotfn_record_get_node(r, i, &n);
        *to = (hfn_time_node){ .parent = n.parent == HOTFN_NO_NODE ? UINT32_MAX : base + n.parent,
                               .slot = n.function == HOTFN_NO_FUNCTION
                                           ? HOTFN_NO_SLOT
                                           : get_slot(out, m->places[run][n.function]),
                               .thread = run,
                               .flags = n.flags,
                               .calls = n.calls,
                               .total_ticks = n.total_ns,
                               .waited_ticks = n.waited_ns,
                               .timed_calls = n.calls };
        if (out->times.allocs) {
            out->times.allocs[base + i] = n.self_alloc;
        }
    }
}

static uint64_t get_slow_ns(const hotfn_record *r)
{
    return hfn_times_ns(r, r->times.header.slow_ticks);
}

/* The highest of the runs' thresholds for slow calls; 0 if a run recorded none. */
static uint64_t get_common_slow_ns(const hfn_merge *m)
{
    uint64_t max = 0;

    for (uint32_t i = 0; i < m->record_count; i++) {
        if (get_slow_ns(m->records[i]) == 0) {
            return 0;
        }
        max = get_slow_ns(m->records[i]) > max ? get_slow_ns(m->records[i]) : max;
    }
    return max;
}

/* A call below the common threshold is dropped, because only some of the runs recorded such
 * calls. */
static bool is_recorded_by_all(const hotfn_record *r, uint64_t common_ns, uint64_t duration_ns)
{
    return common_ns > 0 && (get_slow_ns(r) == common_ns || duration_ns >= common_ns);
}

static void copy_slow_calls(const hfn_merge *m, uint32_t run, hotfn_record *out, uint32_t base,
                            uint32_t *place)
{
    uint64_t common_ns = get_common_slow_ns(m);

    for (uint32_t i = 0; i < m->records[run]->times.slow_count; i++) {
        hotfn_record_slow_call s = HOTFN_RECORD_SLOW_CALL_INIT;

        hotfn_record_get_slow_call(m->records[run], i, &s);
        if (!is_recorded_by_all(m->records[run], common_ns, s.duration_ns)) {
            continue;
        }
        out->times.slow[*place] =
            (hfn_slow_call){ .sequence = *place + 1ull,
                             .start_ticks = s.start_ns,
                             .ticks = s.duration_ns,
                             .node = s.node == HOTFN_NO_NODE ? UINT32_MAX : base + s.node,
                             .slot = s.function == HOTFN_NO_FUNCTION
                                         ? HOTFN_NO_SLOT
                                         : get_slot(out, m->places[run][s.function]),
                             .thread = run };
        ++*place;
    }
}

static bool add_trees(const hfn_merge *m, hotfn_record *out)
{
    uint64_t slow = 0, lost = 0, nodes;
    uint32_t base = 0, place = 0;
    bool with_allocs;

    nodes = count_nodes(m, &with_allocs);
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
        copy_nodes(m, i, out, base);
        copy_slow_calls(m, i, out, base, &place);
        base += m->records[i]->times.node_count;
    }
    out->times.header.nodes_used = out->times.header.node_capacity = (uint32_t)nodes;
    out->times.slow_count = out->times.header.slow_capacity = place;
    out->times.header.slow_used = lost < UINT32_MAX - place ? place + (uint32_t)lost : UINT32_MAX;
    return true;
}

/* ---- The header, the runs' busy times, and the timing state of each function. */

static void merge_headers(const hfn_merge *m, hfn_time_header *h)
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
    h->slow_ticks = get_common_slow_ns(m);
    h->flags &= ~dropped;
    h->flags |= HOTFN_TIMING_ERRORS;
    h->flags |=
        any & (HOTFN_TIMING_SAMPLED | HOTFN_TIMING_SOME_SAMPLED) ? HOTFN_TIMING_SOME_SAMPLED : 0;
}

static void add_busy_times(const hfn_merge *m, hotfn_record *out)
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

/* A function has the state `sampled` if it was sampled in any run.  Its numbers are already
 * estimates for all calls. */
static bool merge_states(const hfn_merge *m, hotfn_record *out)
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
            uint32_t timing = get_timing(m->records[run], i).timing;

            hfn_write_le32(at, timing > hfn_read_le32(at) ? timing : hfn_read_le32(at));
        }
    }
    return true;
}

/* Merges the times of functions and, for a sum, histograms and call trees. */
static bool merge_all(const hfn_merge *m, hotfn_record *out)
{
    function_groups s;
    bool ok = create_groups(&s, m, out);

    if (ok) {
        ok = m->mode == HOTFN_MERGE_SUM
                 ? add_run_entries(&s, out) && add_histograms(&s, out) && add_trees(m, out)
                 : add_merged_entries(&s, out);
    }
    free_groups(&s);
    return ok;
}

bool hfn_merge_times(const hfn_merge *m, hotfn_record *out)
{
    hfn_times *t = &out->times;

    if (!are_all_timed(m)) {
        return true;
    }
    merge_headers(m, &t->header);
    if (!hfn_times_make_threads(t, out->thread_count) || !merge_states(m, out) ||
        !merge_all(m, out)) {
        return false;
    }
    add_busy_times(m, out);
    t->present = true;
    return hfn_times_validate(t, out->slot_count, out->thread_count);
}
