/* SPDX-License-Identifier: MIT */
/* The system calls for rows: mappings, the process's identity, and other threads' row pointers.
 * Some run inside fork() of a program whose libc may be hooked, so this file uses only
 * os/hot_path.h. */
#include "counters/rows.h"
#include "counters/thread_row.h"
#include "os/hot_path.h"

uint8_t *hfn_rows_reserve(uint64_t byte_count)
{
    return hfn_os_hot_reserve_pages(byte_count);
}

bool hfn_rows_commit(void *memory, uint64_t byte_count)
{
    return hfn_os_hot_commit_pages(memory, byte_count);
}

uint8_t *hfn_rows_map(uint64_t byte_count)
{
    return hfn_os_hot_map_pages(byte_count);
}

void hfn_rows_unmap(void *memory, uint64_t byte_count)
{
    hfn_os_hot_unmap_pages(memory, byte_count);
}

void hfn_rows_empty(void *memory, uint64_t byte_count)
{
    hfn_os_hot_clear_pages(memory, byte_count);
}

bool hfn_rows_wipe_on_fork(uint8_t *memory, uint64_t byte_count)
{
    return hfn_os_hot_clear_on_fork(memory, byte_count);
}

/* ---- The identity of this process. */

/* A hash of the pid and the time, never 0: earlier and later processes with this pid have other
 * numbers. */
static uint32_t make_process_number(uint32_t pid)
{
    uint64_t mixed = hfn_os_hot_monotonic_ns() + ((uint64_t)pid << 40);

    mixed *= UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(mixed >> 32) | 1u;
}

/* In the parent's pid namespace getppid returns the pid under which the parent registered; in a new
 * namespace it returns 0. */
static bool is_in_parents_namespace(void)
{
    return hfn_rows.pid_namespace != 0 && hfn_os_hot_parent_id() == hfn_rows.pid;
}

void hfn_rows_identify_process(bool is_new)
{
    uint32_t pid = hfn_os_hot_process_id();

    if (!is_new && hfn_rows.process != 0 && hfn_rows.pid == pid) {
        return; /* a later set of the same process: its threads find their rows again */
    }
    if (!is_new || !is_in_parents_namespace()) {
        hfn_rows.pid_namespace = hfn_os_hot_process_namespace();
    }
    hfn_rows.process = make_process_number(pid);
    hfn_rows.pid = pid;
}

/* ---- Other threads' row pointers.  The memory of a thread that has ended may be unmapped or
 * reused, so a word is cleared only if it can be read and holds the address of the thread's row. */

void hfn_rows_forget_threads(void)
{
    uint32_t used = __atomic_load_n(&hfn_rows.header->cells_used, __ATOMIC_RELAXED);

    hfn_thread_row = NULL;
    if (hfn_os_hot_clear_row_words()) {
        return;
    }
    for (uint32_t i = 0; i < used && i < hfn_rows.thread_capacity; i++) {
        const hfn_thread_cell *cell = &hfn_rows.cells[i];
        uintptr_t row = (uintptr_t)(hfn_rows.rows + (uint64_t)i * hfn_rows.row_bytes), seen = 0;
        uint64_t variable = cell->row_variable & ~(uint64_t)HFN_ROW_EXECUTES;

        if (cell->process == hfn_rows.process && cell->pid == hfn_rows.pid &&
            hfn_os_hot_read_word(variable, &seen) && seen == row) {
            hfn_os_hot_write_word(variable, 0);
        }
    }
}
