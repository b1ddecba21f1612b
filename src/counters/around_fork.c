/* SPDX-License-Identifier: MIT */
/* Counting around fork().  After the fork two processes have the same row pointer, but a row must
 * have one writer.  So the forking thread counts in a private row from the prepare handler
 * until the parent or child handler.  The kernel zeroes that row in the child at the moment of the
 * fork (MADV_WIPEONFORK): in the parent the row holds the parent's calls, in the child only the
 * child's. */
#include "base/compiler.h"
#include "counters/rows.h"
#include "counters/thread_row.h"
#include "counters/timing/open_calls.h"

#include <stddef.h>

/* The private mapping is one page that begins with this prefix, followed by the row.  The child
 * inherits the page as it is, and the row zeroed. */
typedef struct row_prefix {
    uint8_t *before; /* the row pointer of the thread before the fork */
    uint64_t row_bytes;
    uint64_t wiped; /* 0: the child's copy of the row is not zeroed and has the parent's counts */
} row_prefix;

#define PREFIX_BYTES 4096u

static bool is_private_row(const uint8_t *row)
{
    const uint8_t *end = hfn_rows.rows + (uint64_t)hfn_rows.thread_capacity * hfn_rows.row_bytes;
    return row && row != hfn_rows.discard && !(row >= hfn_rows.rows && row < end);
}

static row_prefix *get_prefix(uint8_t *row)
{
    return (row_prefix *)(void *)(row - PREFIX_BYTES);
}

static uint32_t get_slots_used(void)
{
    uint32_t used = __atomic_load_n(&hfn_rows.header->slots_used, __ATOMIC_RELAXED);
    return used > 0 && used < hfn_rows.slot_capacity ? used : hfn_rows.slot_capacity;
}

/* A signal handler may count in `to` between any two instructions, so each addition is atomic. */
static void add_row(uint8_t *to, const uint8_t *from)
{
    uint64_t *sums = (uint64_t *)(void *)to;
    const uint64_t *counts = (const uint64_t *)(const void *)from;
    uint32_t count = get_slots_used();

    for (uint32_t i = 0; i < count; i++) {
        if (HFN_UNLIKELY(counts[i] != 0)) {
            __atomic_fetch_add(&sums[i], counts[i], __ATOMIC_RELAXED);
        }
    }
    if (hfn_time_is_on()) {
        hfn_time_add_row(to, from, count);
    }
}

static void unmap_private_row(uint8_t *row)
{
    hfn_rows_unmap(get_prefix(row), PREFIX_BYTES + get_prefix(row)->row_bytes);
}

/* clang would compile an assignment to a call of memcpy, which may be hooked. */
static void copy_state(hfn_time_state *to, const hfn_time_state *from)
{
    volatile uint64_t *words = (volatile uint64_t *)(void *)to;
    const uint64_t *source = (const uint64_t *)(const void *)from;

    for (size_t i = 0; i < sizeof *to / sizeof *words; i++) {
        words[i] = source[i];
    }
}

/* Moves the open calls and their state to another row.  Free tree nodes stay with their row. */
void hfn_time_move(uint8_t *to, const uint8_t *from)
{
    hfn_time_state *t = hfn_time_state_of(to);
    const hfn_time_state *f = (const void *)(from + hfn_time.thread_at);
    const hfn_open_call *calls = (const void *)((const uint8_t *)f + hfn_time.log_at);
    hfn_open_call *log = hfn_open_calls_of(t);
    uint32_t depth = f->depth < HFN_LOG_CAPACITY ? f->depth : HFN_LOG_CAPACITY;
    uint32_t next = t->chunk_next, end = t->chunk_end, single = t->single_nodes;

    for (uint32_t i = 0; i < depth; i++) {
        log[i] = calls[i];
    }
    for (uint32_t i = depth; i < hfn_open_calls_count(t); i++) {
        log[i].frame = 0;
    }
    copy_state(t, f);
    t->chunk_next = next;
    t->chunk_end = end;
    t->single_nodes = single;
}

void hotfn_counters_fork_prepare(hotfn_counters *c)
{
    uint8_t *before = hfn_thread_row, *mapping;
    row_prefix *prefix;

    if (!c || !hfn_rows.header || !hfn_rows_may_call(HFN_CALLS_FORK)) {
        return; /* parent and child share the row and may lose calls made at the same time */
    }
    if (!before) { /* so that no call after the fork has to claim a row */
        before = hfn_thread_row_claim();
    }
    if (before == hfn_rows.discard) {
        return;
    }
    mapping = hfn_rows_map(PREFIX_BYTES + (uint64_t)hfn_rows.row_bytes);
    if (!mapping) {
        return; /* they share the row */
    }
    prefix = (row_prefix *)(void *)mapping;
    prefix->before = before;
    prefix->row_bytes = hfn_rows.row_bytes;
    prefix->wiped = hfn_rows_wipe_on_fork(mapping + PREFIX_BYTES, hfn_rows.row_bytes);
    if (hfn_time_is_on()) {
        hfn_time_move(mapping + PREFIX_BYTES, before);
        /* in a row that is not zeroed, parent and child would use the same free nodes */
        hfn_time_state_of(mapping + PREFIX_BYTES)->single_nodes = 1;
    }
    hfn_thread_row = mapping + PREFIX_BYTES;
}

void hotfn_counters_fork_parent(hotfn_counters *c)
{
    uint8_t *row = hfn_thread_row;

    if (!c || !hfn_rows.header || !is_private_row(row)) {
        return;
    }
    hfn_thread_row = get_prefix(row)->before;
    add_row(hfn_thread_row, row);
    if (hfn_time_is_on()) { /* calls that began before prepare may have ended since */
        hfn_time_move(hfn_thread_row, row);
    }
    unmap_private_row(row);
}

void hotfn_counters_fork_child(hotfn_counters *c)
{
    uint8_t *row = hfn_thread_row;

    if (!c || !hfn_rows.header || !hfn_rows_may_call(HFN_CALLS_FORK)) {
        return;
    }
    hfn_rows_identify_process(true);
    hfn_rows.generation++; /* a resume in the child must not restore the parent's row */
    hfn_rows.shared = NULL;
    if (row == hfn_rows.discard) {
        return;
    }
    if (!is_private_row(row)) {
        hfn_thread_row = NULL;
        return;
    }
    hfn_thread_row = hfn_thread_row_claim();
    if (hfn_time_is_on()) {
        hfn_time_begin_child(hfn_thread_row);
    }
    if (get_prefix(row)->wiped) {
        add_row(hfn_thread_row, row);
    }
    unmap_private_row(row);
}
