/* SPDX-License-Identifier: MIT */
/*
 * The names and the processor times of the threads that own rows, as the system reports them.  The
 * creator of the record reads them at intervals, at queries of the record, and at the end, so what
 * a thread does after its last reading is not seen.  Rows of processes in other pid namespaces
 * keep the name that their thread had at its first hooked call, and an unknown time.
 */
#include "base/memory.h"
#include "live/live.h"
#include "live/rows.h"
#include "os/hot_path.h"

#include <string.h>

typedef uint64_t __attribute__((may_alias)) owner_word; /* a cell's tid and thread_count in one */

static uint64_t get_owner(hfn_thread_cell *cell)
{
    /* pairs with the release store in counters/thread_row.c (sign_cell) */
    return __atomic_load_n((owner_word *)(void *)&cell->tid, __ATOMIC_ACQUIRE);
}

/* An owner's time only grows; a smaller one is that of another thread with its id. */
static uint64_t add_owner_time(hfn_owner_time *t, const hfn_thread_cell *cell, uint64_t cpu_ns)
{
    if (t->process != cell->process || t->thread_count != cell->thread_count) {
        t->earlier_ns += t->latest_ns;
        t->latest_ns = 0;
        t->process = cell->process;
        t->thread_count = cell->thread_count;
    }
    t->latest_ns = cpu_ns > t->latest_ns ? cpu_ns : t->latest_ns;
    return t->earlier_ns + t->latest_ns;
}

static void read_thread(hfn_thread_cell *cell, hfn_owner_time *t, uint32_t pid_namespace)
{
    uint64_t owner = get_owner(cell), cpu_ns;
    uint32_t tid = (uint32_t)owner;
    hfn_thread_facts facts;

    if (tid == 0 || tid == UINT32_MAX || (cell->row_variable & HFN_ROW_EXECUTES) ||
        cell->pid_namespace != pid_namespace || !hfn_os_hot_read_thread(cell->pid, tid, &facts)) {
        return;
    }
    cpu_ns = add_owner_time(t, cell, facts.cpu_ns);
    if (get_owner(cell) == owner) {
        memcpy(cell->name, facts.name, sizeof cell->name);
        hfn_shared_put64((uint8_t *)&cell->cpu_ns, cpu_ns);
    }
}

static uint64_t get_table_bytes(const hfn_live *live)
{
    return (hfn_live_section_bytes(live, HFN_SECTION_CELLS) / sizeof(hfn_thread_cell) + 1) *
           sizeof(hfn_owner_time);
}

void hfn_live_read_threads(hfn_live *live)
{
    hfn_thread_cell *cells = hfn_live_cells(live);
    uint32_t used = hfn_live_rows_used(live);
    uint32_t pid_namespace = hfn_os_hot_process_namespace();

    if (__atomic_exchange_n(&live->reads_threads, true, __ATOMIC_ACQUIRE)) {
        return;
    }
    if (!live->owner_times) {
        live->owner_times = hfn_allocate_zeroed(&live->env, get_table_bytes(live));
    }
    for (uint32_t i = 0; i < used && live->owner_times && pid_namespace != 0; i++) {
        read_thread(&cells[i], &live->owner_times[i], pid_namespace);
    }
    __atomic_store_n(&live->reads_threads, false, __ATOMIC_RELEASE);
}

void hfn_live_forget_owner_times(hfn_live *live)
{
    if (live->owner_times) {
        hfn_free_memory(&live->env, live->owner_times, get_table_bytes(live));
        live->owner_times = NULL;
    }
}
