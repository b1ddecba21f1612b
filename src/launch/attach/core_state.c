/* SPDX-License-Identifier: MIT */
/* The core in the target: its bytes, and the variables that it reads (counters/core).  Pointers are
 * addresses in the target. */
#include "launch/attach/attachment.h"
#include "launch/attach/replaced.h"
#include "launch/attach/timing.h"

#include "arch/stub.h"
#include "counters/core/core.h"
#include "counters/thread_row.h"
#include "counters/timing/timing.h"
#include "os/core_unwind.h"
#include "os/hot_path.h"

#include <string.h>

static void *in_target(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

/* The state of the rows, as thread_row.c reads it. */
static hfn_row_state make_rows(const hfn_attachment *a)
{
    const hfn_journal_header *header = a->journal.header;
    const hfn_live *live = a->launch->live;
    hfn_row_state state = {
        .header = in_target(header->cells),
        .cells = in_target(header->cells + sizeof(hfn_cell_header)),
        .rows = in_target(header->rows),
        .discard = in_target(a->pages.spare_row),
        .discard_bytes = live->layout.row_bytes,
        .row_bytes = live->layout.row_bytes,
        .thread_capacity = (uint32_t)((header->rows_end - header->rows) / live->layout.row_bytes),
        .slot_capacity = hfn_live_slot_capacity(live),
        .process = header->process,
    };

    hfn_os_remote_get_identity(a->remote.pid, &state.pid, &state.pid_namespace);
    return state;
}

/* A section of the record; NULL: it has none. */
static void *get_section(const hfn_attachment *a, uint32_t type)
{
    const hfn_section *section = &a->launch->live->layout.sections[type];

    return section->type ? in_target(a->pages.record + section->offset) : NULL;
}

/* The state of the timing engine, as counters/timing reads it.  The clock is the launcher's tick,
 * so nothing in the target reads the processor's counter. */
static hfn_time_engine make_engine(const hfn_attachment *a, const hfn_time_memory *m)
{
    hfn_time_header *h = m->header;
    bool keeps_slow = (h->flags & HOTFN_TIMING_SLOW) && h->slow_capacity;
    bool has_histograms = m->histograms && h->histogram_capacity > 0;

    hfn_time_engine engine = {
        .thread_at = m->thread_at,
        .log_at = m->log_at,
        .skips_at = m->skips_at,
        .gaps_at = m->gaps_at,
        .hints_at = m->hints_at,
        .flags = has_histograms ? h->flags : h->flags & ~HOTFN_TIMING_HISTOGRAMS,
        .clock = h->clock,
        .slow_ticks = keeps_slow ? h->slow_ticks : UINT64_MAX,
        .header = get_section(a, HFN_SECTION_TIME_HEADER),
        .nodes = get_section(a, HFN_SECTION_NODES),
        .histograms = get_section(a, HFN_SECTION_HISTOGRAMS),
        .slow = get_section(a, HFN_SECTION_SLOW_CALLS),
        .tick = get_section(a, HFN_SECTION_TICKS),
        .sample_interval = h->sample_mean > 1 ? h->sample_mean : 1,
        .session = UINT32_C(1) << HFN_CALL_SESSION_SHIFT,
        .event_mask = h->event_capacity - 1,
        .discard = in_target(a->pages.spare_row),
    };

    h->call_stack_bytes = hfn_stub_get_call_stack_bytes();
    if (hfn_replaced_sees_filters(a)) {
        hfn_timing_start_waiting(&engine, h);
    }
    engine.flags |= h->flags & HOTFN_TIMING_WAITING;
    return engine;
}

static bool write_variable(const hfn_attachment *a, uint32_t at, const void *bytes, uint32_t count)
{
    return hfn_os_remote_write(&a->remote, a->pages.core + at, bytes, count);
}

/* No timed call begins in the spare row, which several threads may use at once. */
static bool write_time(const hfn_attachment *a)
{
    const uint32_t closed = HFN_DEPTH_CLOSED;
    hfn_time_memory memory;
    hfn_time_engine engine;

    if (!hfn_live_time_memory(a->launch->live, &memory)) {
        return true;
    }
    engine = make_engine(a, &memory);
    return write_variable(a, hfn_core.time_at, &engine, sizeof engine) &&
           hfn_os_remote_write(
               &a->remote, a->pages.spare_row + memory.thread_at + offsetof(hfn_time_state, depth),
               &closed, sizeof closed) &&
           hfn_timed_write_tables(a);
}

/* The words to which gs bases lead: the address of each row, then that of the spare row. */
static bool write_words(const hfn_attachment *a, const hfn_row_state *rows)
{
    uint64_t *words = (uint64_t *)(void *)a->buffer;
    uint64_t gs_rows = a->journal.header->gs_begin;

    if (!a->uses_gs) {
        return true;
    }
    for (uint32_t i = 0; i < rows->thread_capacity; i++) {
        words[i] = a->journal.header->rows + (uint64_t)i * rows->row_bytes;
    }
    words[rows->thread_capacity] = a->pages.spare_row;
    return write_variable(a, hfn_core.gs_rows_at, &gs_rows, sizeof gs_rows) &&
           hfn_os_remote_write(&a->remote, a->pages.words, words,
                               (uint32_t)sizeof *words * (rows->thread_capacity + 1));
}

bool hfn_core_write(const hfn_attachment *a)
{
    hfn_row_state rows = make_rows(a);

    return write_variable(a, 0, hfn_core.bytes, hfn_core.byte_count) &&
           write_variable(a, hfn_core.rows_at, &rows, sizeof rows) &&
           write_variable(a, hfn_core.word_at_at, &a->word_at, sizeof a->word_at) &&
           write_words(a, &rows) && hfn_replaced_write_originals(a) && write_time(a);
}

/* As thread_row.c describes a row that a thread begins. */
static bool assign_row(hfn_attachment *a, uint32_t thread, const hfn_row_state *state)
{
    hfn_row_memory rows = hfn_live_get_rows(a->launch->live);
    uint32_t index = rows.header->cells_used;
    hfn_thread_cell *cell = &rows.cells[index];
    hfn_thread_facts facts = { { 0 }, 0 };

    if (index >= rows.thread_capacity || a->remote.threads[thread].tid == 0 ||
        !hfn_os_hot_commit_pages(rows.rows + (uint64_t)index * rows.row_bytes, rows.row_bytes)) {
        return true; /* its first counted call finds no row either, and says so */
    }
    hfn_os_hot_read_thread(a->remote.pid, a->remote.threads[thread].tid, &facts);
    *cell = (hfn_thread_cell){ .tid = a->remote.threads[thread].tid,
                               .thread_count = 1,
                               .pid = state->pid,
                               .process = state->process,
                               .pid_namespace = state->pid_namespace,
                               .process_count = 1,
                               .start_ns = hfn_os_hot_wall_ns() };
    memcpy(cell->name, facts.name, sizeof cell->name);
    rows.header->cells_used = index + 1;
    return hfn_os_remote_set_gs_base(&a->remote, thread,
                                     a->journal.header->gs_begin + UINT64_C(8) * index);
}

bool hfn_core_assign_rows(hfn_attachment *a)
{
    hfn_row_state state = make_rows(a);
    uint64_t base;

    for (uint32_t i = 0; a->uses_gs && i < a->remote.thread_count; i++) {
        if (hfn_os_remote_get_gs_base(&a->remote, i, &base) && !assign_row(a, i, &state)) {
            return false;
        }
    }
    return true;
}

void hfn_core_describe(hfn_attachment *a)
{
    const hfn_live *live = a->launch->live;
    const hfn_section *rows = &live->layout.sections[HFN_SECTION_ROWS];
    hfn_journal_header *header = a->journal.header;
    hfn_time_memory memory;
    uint32_t number = 0;

    hfn_os_get_random(&number, sizeof number);
    header->process = number | 1;
    header->record = a->pages.record;
    header->cells = header->record + live->layout.sections[HFN_SECTION_CELLS].offset;
    header->rows = header->record + rows->offset;
    header->rows_end = header->rows + rows->bytes;
    header->spare_row = a->pages.spare_row;
    header->row_bytes = live->layout.row_bytes;
    header->gs_begin = a->uses_gs ? a->pages.words - a->pages.zeros : 0;
    header->gs_end = a->uses_gs ? a->pages.spare_row - a->pages.zeros : 0;
    if (hfn_live_time_memory(live, &memory)) {
        header->frames_at = memory.thread_at + (uint32_t)offsetof(hfn_time_state, open_frames);
    }
}

hotfn_row_access hfn_core_get_access(const hfn_attachment *a)
{
    hotfn_row_access access = HOTFN_ROW_ACCESS_INIT;
    uint64_t core = a->pages.core;
    hfn_time_memory memory;
    bool is_sampled;

    access.slow_path = (void (*)(void))(uintptr_t)(core + hfn_core.slow_path_at);
    access.displacement = (int32_t)(a->uses_gs ? (int64_t)a->pages.zeros : a->word_at);
    if (!hfn_live_time_memory(a->launch->live, &memory)) {
        return access;
    }
    is_sampled = (memory.header->flags & HOTFN_TIMING_SAMPLED) != 0;
    access.time_enter = (void (*)(void))(
        uintptr_t)(core + (is_sampled ? hfn_core.sample_enter_at : hfn_core.tick_enter_at));
    access.time_exit = (void (*)(void))(
        uintptr_t)(core + (is_sampled ? hfn_core.sample_exit_at : hfn_core.tick_exit_at));
    access.personality = (void (*)(void))(uintptr_t)(core + hfn_core.personality_at);
    access.skip_base_bytes = is_sampled ? memory.thread_at + memory.skips_at : 0;
    return access;
}
