/* SPDX-License-Identifier: MIT */
/*
 * HOT PATH: marks the rows of a process that executes another program, also in a signal handler or
 * in a child of vfork.  Its threads and their open calls end then; without the mark, these calls
 * would seem to last until the new program ends.
 */
#include "counters/rows.h"
#include "counters/thread_row.h"
#include "counters/timing/engine.h"
#include "os/hot_path.h"

static void mark_cell(hfn_thread_cell *cell, uint8_t *row, bool begins, uint64_t now)
{
    uint64_t variable = cell->row_variable & ~(uint64_t)HFN_ROW_EXECUTES;

    __atomic_store_n(&cell->row_variable, begins ? variable | HFN_ROW_EXECUTES : variable,
                     __ATOMIC_RELAXED);
    if (hfn_time_is_on()) {
        hfn_time_state_of(row)->exec_tick = now;
    }
}

void hfn_rows_mark_exec(bool begins)
{
    uint32_t used =
        hfn_rows.header ? __atomic_load_n(&hfn_rows.header->cells_used, __ATOMIC_RELAXED) : 0;
    uint64_t now = begins && hfn_time_is_on() ? hfn_time_now() : 0;

    if (!hfn_rows_may_call(HFN_CALLS_FORK) || hfn_os_hot_process_id() != hfn_rows.pid) {
        return; /* it may be the child of vfork */
    }
    for (uint32_t i = 0; i < used && i < hfn_rows.thread_capacity; i++) {
        hfn_thread_cell *cell = &hfn_rows.cells[i];
        if (cell->process == hfn_rows.process && cell->pid == hfn_rows.pid) {
            mark_cell(cell, hfn_rows.rows + (uint64_t)i * hfn_rows.row_bytes, begins, now);
        }
    }
}
