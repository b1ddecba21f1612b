/* SPDX-License-Identifier: MIT */
/* Opening a record for queries: load it, then compute its time sums.  Choosing a process or a
 * thread computes the counts and the time sums of its rows again. */
#include "profile/profile.h"

#include "base/status.h"

hotfn_status hfn_profile_sum_times(hotfn_record *r)
{
    hfn_sum_input in = { &r->times, r->totals, r->slot_functions, NULL, r->slot_count };
    hfn_time_sums sums = { 0 };
    uint8_t *chosen;
    bool ok;

    if (!r->times.present) {
        return HOTFN_OK;
    }
    chosen = hfn_allocate_zeroed(&r->env, r->times.thread_count);
    if (!chosen) {
        return HOTFN_E_NO_MEMORY;
    }
    for (uint32_t i = 0; i < r->times.thread_count && i < r->thread_count; i++) {
        chosen[i] = hfn_record_row_is_shown(r, i);
    }
    in.chosen = chosen;
    ok = hfn_time_sums_make(&sums, &in, &r->env);
    hfn_free_memory(&r->env, chosen, r->times.thread_count);
    if (!ok || !hfn_callers_make(r, &sums)) {
        hfn_time_sums_finish(&sums);
        return HOTFN_E_NO_MEMORY;
    }
    hfn_time_sums_finish(r->sums);
    *r->sums = sums;
    return HOTFN_OK;
}

hotfn_status hotfn_record_open(hotfn_record **out, const char *path, const hotfn_env *env,
                               hotfn_error *err)
{
    if (!out || !path) {
        return hfn_report_null(err, __func__);
    }

    hotfn_record *r;
    hotfn_status status = hfn_record_load(&r, path, NULL, 0, env, err);

    if (status != HOTFN_OK) {
        return status;
    }
    r->sums = hfn_allocate_zeroed(&r->env, sizeof *r->sums);
    if (!r->sums || hfn_profile_sum_times(r) != HOTFN_OK) {
        hotfn_record_close(r);
        return hfn_report_no_memory(err, path);
    }
    *out = r;
    return HOTFN_OK;
}

void hotfn_record_close(hotfn_record *r)
{
    if (!r) {
        return;
    }
    if (r->sums) {
        hfn_callers_free(r);
        hfn_time_sums_finish(r->sums);
        hfn_free_memory(&r->env, r->sums, sizeof *r->sums);
    }
    hfn_record_free(r);
}

hotfn_status hotfn_record_get_thread(const hotfn_record *r, uint32_t index,
                                     hotfn_record_thread *out)
{
    if (!r) {
        return HOTFN_E_OPTION;
    }

    hotfn_record_thread t = HOTFN_RECORD_THREAD_INIT;
    hfn_thread_cell cell;
    uint32_t row = hfn_record_shown_row(r, index);

    if (row >= r->thread_count) {
        return HOTFN_E_NOT_FOUND;
    }
    cell = hfn_record_get_cell(r, row);
    t.tid = cell.tid == UINT32_MAX ? 0 : cell.tid;
    t.pid = cell.pid;
    t.thread_count = cell.thread_count;
    t.start_ns = cell.start_ns;
    t.calls = hfn_unpack_add(hfn_packed_row(&r->rows, row), NULL, r->slot_count);
    memcpy(t.name, cell.name, sizeof t.name - 1);
    t.busy_ns = hfn_record_busy_ns(r, row);
    t.cpu_ns = cell.cpu_ns;
    t.waited_ns = hfn_record_waited_ns(r, row);
    return hfn_copy_result(out, &t, sizeof t);
}

/* Show only the rows of process pid and thread tid (0: all).  If there are none, keep the
 * former choice. */
static hotfn_status choose_rows(hotfn_record *r, uint32_t pid, uint32_t tid)
{
    uint32_t former_process = r->process, former_thread = r->thread;

    r->process = pid;
    r->thread = tid;
    if (!hfn_record_shows_all(r) && hfn_record_shown_count(r) == 0) {
        r->process = former_process;
        r->thread = former_thread;
        return HOTFN_E_NOT_FOUND;
    }
    hfn_record_sum_rows(r);
    return hfn_profile_sum_times(r);
}

hotfn_status hotfn_record_choose_process(hotfn_record *r, uint32_t pid)
{
    return r ? choose_rows(r, pid, r->thread) : HOTFN_E_OPTION;
}

hotfn_status hotfn_record_choose_thread(hotfn_record *r, uint32_t tid)
{
    return r ? choose_rows(r, r->process, tid) : HOTFN_E_OPTION;
}
