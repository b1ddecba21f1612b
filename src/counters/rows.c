/* SPDX-License-Identifier: MIT */
/* Creates, sums, pauses and destroys the process's set of rows.  The memory of the rows belongs to
 * the caller or is mapped here.  thread_row.c handles a thread's first hooked call, around_fork.c
 * the fork handlers. */
#include "counters/rows.h"

#include "base/memory.h"
#include "base/status.h"
#include "counters/thread_row.h"
#include "counters/timing/timing.h"
#include "os/hot_path.h"
#include "os/os.h"

#include <string.h>

#define DEFAULT_THREADS 4096u
#define MIN_THREADS 16u
#define GENERATION_MASK 4095u /* the low bits of a row pointer, which are 0 */

struct hotfn_counters {
    hotfn_env env;
    hfn_row_memory memory;
    void *own; /* the mapping that holds `memory`; NULL if the caller owns the memory */
    uint64_t own_bytes;
};

static hotfn_counters *active; /* changed only by create and destroy */

/* ---- Memory. */

static uint64_t page_round(uint64_t bytes)
{
    uint64_t page = hfn_os_page_bytes();
    return (bytes + page - 1) & ~(page - 1);
}

/* Map header, cells and rows together.  If the address space does not suffice, the number of rows
 * is halved until the mapping succeeds. */
static bool map_memory(hotfn_counters *c, uint32_t slot_capacity, uint32_t thread_capacity)
{
    uint64_t row_bytes = page_round((uint64_t)slot_capacity * sizeof(uint64_t));
    uint32_t threads = thread_capacity ? thread_capacity : DEFAULT_THREADS;

    if (slot_capacity == 0 || row_bytes > UINT32_MAX) {
        return false;
    }
    for (; !c->own && threads; threads = threads > MIN_THREADS ? threads / 2 : 0) {
        uint64_t cells =
            page_round(sizeof *c->memory.header + (uint64_t)threads * sizeof *c->memory.cells);

        c->own_bytes = cells + threads * row_bytes;
        c->own = hfn_rows_reserve(c->own_bytes);
        if (c->own && !hfn_rows_commit(c->own, cells)) {
            hfn_rows_unmap(c->own, c->own_bytes);
            c->own = NULL;
        }
        if (c->own) {
            c->memory = (hfn_row_memory){
                .thread_capacity = threads,
                .slot_capacity = slot_capacity,
                .row_bytes = (uint32_t)row_bytes,
                .header = c->own,
                .cells = (void *)((hfn_cell_header *)c->own + 1),
                .rows = (uint8_t *)c->own + cells,
            };
        }
    }
    return c->own != NULL;
}

static bool is_memory_valid(const hfn_row_memory *m)
{
    return m->header && m->cells && m->rows && m->thread_capacity > 0 && m->slot_capacity > 0 &&
           m->row_bytes % hfn_os_page_bytes() == 0 &&
           m->row_bytes / sizeof(uint64_t) >= m->slot_capacity &&
           (uintptr_t)m->rows % hfn_os_page_bytes() == 0;
}

/* A discard row is never unmapped, because a thread may still count into it.  A set with longer
 * rows gets a new discard row. */
static bool ensure_discard_row(uint64_t byte_count)
{
    uint8_t *fresh;

    if (hfn_rows.discard_bytes >= byte_count) {
        return true;
    }
    fresh = hfn_rows_map(byte_count);
    if (!fresh) {
        return false;
    }
    hfn_rows.discard = fresh;
    hfn_rows.discard_bytes = byte_count;
    return true;
}

/* ---- The set. */

static void activate_counters(hotfn_counters *c)
{
    const hfn_row_memory *m = &c->memory;

    active = c;
    hfn_rows.cells = m->cells;
    hfn_rows.rows = m->rows;
    hfn_rows.row_bytes = m->row_bytes;
    hfn_rows.thread_capacity = m->thread_capacity;
    hfn_rows.slot_capacity = m->slot_capacity;
    hfn_rows.generation++;
    hfn_rows.shared = NULL;
    hfn_rows_identify_process(false);
    /* A thread that made its first call while an earlier set was destroyed may hold a row of that
     * set. */
    hfn_os_hot_clear_row_words();
    /* pairs with the acquire load in hfn_thread_row_claim */
    __atomic_store_n(&hfn_rows.header, m->header, __ATOMIC_RELEASE);
}

static hotfn_status choose_memory(hotfn_counters *c, const hfn_row_memory *memory,
                                  uint32_t slot_capacity, uint32_t thread_capacity,
                                  hotfn_error *err)
{
    if (memory && !is_memory_valid(memory)) {
        return hfn_report_error(
            err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
            "this memory cannot hold rows: each row needs slot_capacity words and must "
            "begin at a page boundary");
    }
    if (memory) {
        c->memory = *memory;
    } else if (slot_capacity == 0) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                "counters need at least one slot");
    } else if (!map_memory(c, slot_capacity, thread_capacity)) {
        return hfn_report_error(err, HOTFN_E_NO_MEMORY, NULL, HOTFN_NO_OFFSET,
                                "no address space for rows of %u slots", slot_capacity);
    }
    if (!ensure_discard_row(c->memory.row_bytes)) {
        return hfn_report_no_memory(err, NULL);
    }
    return HOTFN_OK;
}

/* A thread inside a stub may still count, so used rows are emptied and stay mapped. */
static void release_memory(const hotfn_counters *c)
{
    const hfn_row_memory *m = &c->memory;
    uint32_t used =
        m->header->cells_used < m->thread_capacity ? m->header->cells_used : m->thread_capacity;
    uint64_t kept = (uint64_t)used * m->row_bytes;
    uint64_t before = (uint64_t)(m->rows - (uint8_t *)c->own);

    if (kept > 0) {
        hfn_rows_empty(m->rows, kept);
    }
    if (c->own_bytes > before + kept) {
        hfn_rows_unmap(m->rows + kept, c->own_bytes - before - kept);
    }
    hfn_rows_unmap(c->own, before);
}

static void free_counters(hotfn_counters *c)
{
    hotfn_env env = c->env;

    if (c->own) {
        release_memory(c);
    }
    hfn_free_memory(&env, c, sizeof *c);
}

static hotfn_status create_counters(hotfn_counters **out, const hfn_row_memory *memory,
                                    uint32_t slot_capacity, uint32_t thread_capacity,
                                    const hotfn_env *env, hotfn_error *err)
{
    hotfn_env filled = hfn_env_fill(env);
    hotfn_status status;
    hotfn_counters *c;

    if (active) {
        return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                "this process has counters already: destroy them first");
    }
    if (!hfn_os_reserve_row_word()) {
        return hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                                "no slot of thread-local storage that stubs can reach is free");
    }
    if (hfn_thread_row_displacement() != (int32_t)hfn_thread_row_displacement()) {
        return hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                                "thread-local storage is out of the reach of stubs");
    }
    c = hfn_allocate_zeroed(&filled, sizeof *c);
    if (!c) {
        return hfn_report_no_memory(err, NULL);
    }
    c->env = filled;
    status = choose_memory(c, memory, slot_capacity, thread_capacity, err);
    if (status != HOTFN_OK) {
        free_counters(c);
        return status;
    }
    activate_counters(c);
    *out = c;
    return HOTFN_OK;
}

hotfn_status hotfn_counters_create(hotfn_counters **out, uint32_t slot_capacity,
                                   uint32_t thread_capacity, const hotfn_env *env, hotfn_error *err)
{
    if (!out) {
        return hfn_report_null(err, __func__);
    }
    return create_counters(out, NULL, slot_capacity, thread_capacity, env, err);
}

hotfn_status hfn_counters_create_in(hotfn_counters **out, const hfn_row_memory *memory,
                                    const hotfn_env *env, hotfn_error *err)
{
    return create_counters(out, memory, 0, 0, env, err);
}

void hotfn_counters_destroy(hotfn_counters *c)
{
    if (!c) {
        return;
    }
    hfn_timing_stop();
    hfn_rows_forget_threads();
    __atomic_store_n(&hfn_rows.header, NULL, __ATOMIC_RELEASE);
    hfn_rows.generation++;
    active = NULL;
    free_counters(c);
}

hotfn_status hotfn_counters_get_access(const hotfn_counters *c, hotfn_row_access *out)
{
    if (!c) {
        return HOTFN_E_OPTION;
    }

    hotfn_row_access access = HOTFN_ROW_ACCESS_INIT;
    hfn_timing_calls timing = hfn_timing_get_calls();

    access.displacement = (int32_t)hfn_thread_row_displacement();
    access.slow_path = hfn_thread_row_entry;
    access.time_enter = timing.enter;
    access.time_exit = timing.exit;
    access.personality = timing.personality;
    access.skip_base_bytes = timing.skips_at;
    return hfn_copy_result(out, &access, sizeof access);
}

hfn_row_memory hfn_counters_get_memory(const hotfn_counters *c)
{
    return c->memory;
}

void hfn_rows_sum(const hfn_row_memory *m, uint32_t first, uint32_t count, uint64_t *sums)
{
    uint32_t used = __atomic_load_n(&m->header->cells_used, __ATOMIC_RELAXED);

    memset(sums, 0, count * sizeof *sums);
    for (uint32_t r = 0; r < used && r < m->thread_capacity; r++) {
        const uint64_t *slots = (const void *)(m->rows + (uint64_t)r * m->row_bytes);

        /* pairs with the release store in sign_cell: a row without an owner has no memory */
        if (__atomic_load_n(&m->cells[r].thread_count, __ATOMIC_ACQUIRE) == 0) {
            continue;
        }
        for (uint32_t i = 0; i < count; i++) {
            sums[i] += __atomic_load_n(&slots[first + i], __ATOMIC_RELAXED);
        }
    }
}

hotfn_status hotfn_counters_sum(const hotfn_counters *c, uint32_t first_slot, uint32_t slot_count,
                                uint64_t *totals)
{
    if (!c || (!totals && slot_count > 0)) {
        return HOTFN_E_OPTION;
    }

    const hfn_row_memory *m = &c->memory;

    if (first_slot > m->slot_capacity || slot_count > m->slot_capacity - first_slot) {
        return HOTFN_E_OPTION;
    }
    hfn_rows_sum(m, first_slot, slot_count, totals);
    return HOTFN_OK;
}

/* ---- Pause and resume.  The token is the thread's row pointer with the generation of the set in
 * its low bits: a thread that pauses under one set and resumes under another must not get its old
 * row back. */

void *hotfn_counters_pause(void)
{
    uint8_t *row = hfn_thread_row;

    if (hfn_rows.discard) {
        hfn_thread_row = hfn_rows.discard;
    }
    return (void *)((uintptr_t)row | (hfn_rows.generation & GENERATION_MASK));
}

void hotfn_counters_resume(void *token)
{
    uintptr_t word = (uintptr_t)token;
    bool same_set = (word & GENERATION_MASK) == (hfn_rows.generation & GENERATION_MASK);

    hfn_thread_row = same_set ? (uint8_t *)(word & ~(uintptr_t)GENERATION_MASK) : NULL;
}
