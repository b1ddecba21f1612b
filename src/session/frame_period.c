/* SPDX-License-Identifier: MIT */
/* The times of a period are the difference of two snapshots, computed as for the record of a run
 * with --after and --for.  All steps that can fail precede those that change the period. */
#include "session/frame_period.h"

#include "base/status.h"

#include <string.h>

void hfn_frame_period_init(hfn_frame_period *p, hfn_live *live, bool is_timed, const hotfn_env *env)
{
    *p = (hfn_frame_period){ .env = *env, .live = live, .is_timed = is_timed };
    hfn_times_init(&p->times, &p->env);
}

static void free_sums(const hotfn_env *env, uint64_t *self, uint64_t *total, uint32_t slot_count)
{
    hfn_free_memory(env, self, slot_count * sizeof *self);
    hfn_free_memory(env, total, slot_count * sizeof *total);
}

void hfn_frame_period_finish(hfn_frame_period *p)
{
    hfn_snapshot_destroy(p->from);
    hfn_snapshot_destroy(p->to);
    hfn_times_finish(&p->times);
    free_sums(&p->env, p->self, p->total, p->slot_count);
}

static void sum_entries(const hfn_times *times, uint64_t *self, uint64_t *total,
                        uint32_t slot_count)
{
    for (size_t i = 0; i < times->entry_count; i++) {
        const hfn_time_entry *e = &times->entries[i];

        if (e->slot < slot_count) {
            self[e->slot] += e->cell.self_ticks;
            total[e->slot] += e->cell.total_ticks;
        }
    }
}

/* Compute the times and sums between the snapshots p->to and end. */
static bool measure_period(hfn_frame_period *p, const hfn_snapshot *end, uint32_t slot_count)
{
    hfn_times times;
    uint64_t *self = hfn_allocate_zeroed(&p->env, slot_count * sizeof *self);
    uint64_t *total = hfn_allocate_zeroed(&p->env, slot_count * sizeof *total);

    hfn_times_init(&times, &p->env);
    if (!self || !total || !hfn_snapshot_subtract_times(&times, p->to, end, slot_count)) {
        hfn_times_finish(&times);
        free_sums(&p->env, self, total, slot_count);
        return false;
    }
    sum_entries(&times, self, total, slot_count);
    hfn_times_finish(&p->times);
    free_sums(&p->env, p->self, p->total, p->slot_count);
    p->times = times;
    p->self = self;
    p->total = total;
    p->slot_count = slot_count;
    return true;
}

hotfn_status hfn_frame_period_next(hfn_frame_period *p, uint32_t slot_count, hotfn_error *err)
{
    hfn_snapshot *end = NULL;
    hotfn_status status;

    hfn_live_read_threads(p->live);
    status = hfn_live_snapshot(&end, p->live, err);
    if (status != HOTFN_OK) {
        return status;
    }
    if (p->to && p->is_timed && !measure_period(p, end, slot_count)) {
        hfn_snapshot_destroy(end);
        return hfn_report_no_memory(err, NULL);
    }
    hfn_snapshot_destroy(p->from);
    p->from = p->to;
    p->to = end;
    return HOTFN_OK;
}

static void add_entry(const hfn_frame_period *p, const hfn_time_entry *e, hotfn_frame_times *out)
{
    out->thread_count++;
    out->timed_calls += e->cell.timed_calls;
    out->total_ns += hfn_ticks_to_ns(&p->times.header, e->cell.total_ticks);
    out->self_ns += hfn_ticks_to_ns(&p->times.header, e->cell.self_ticks);
}

void hfn_frame_period_sum(const hfn_frame_period *p, uint32_t slot, hotfn_frame_times *out)
{
    for (size_t i = 0; i < p->times.entry_count; i++) {
        if (p->times.entries[i].slot == slot) {
            add_entry(p, &p->times.entries[i], out);
        }
    }
}

bool hfn_frame_period_get_thread(const hfn_frame_period *p, uint32_t slot, uint32_t position,
                                 hotfn_frame_times *out)
{
    const hfn_thread_cell *cells = hfn_live_cells(p->live);

    for (size_t i = 0; i < p->times.entry_count; i++) {
        const hfn_time_entry *e = &p->times.entries[i];
        if (e->slot == slot && position-- == 0) {
            add_entry(p, e, out);
            out->tid = cells[e->thread].tid;
            memcpy(out->name, cells[e->thread].name, sizeof out->name - 1);
            return true;
        }
    }
    return false;
}
