/* SPDX-License-Identifier: MIT */
/* HOT PATH: a thread's first hooked call.  It runs on the thread's stack at the entry of any
 * function, also in a signal handler that interrupts this code: no libc, no lock, no vector
 * register (-mgeneral-regs-only), little stack.
 *
 * A thread owns a row once it has stored its tid in the row's cell.  The owner word (tid,
 * thread_count) changes by compare-and-swap:
 *
 *     0 --(begin_new_row)--> tid --(take_over_row)--> HFN_TID_BUSY --(sign_cell)--> tid
 *
 * - A row whose owner has ended is taken over before a new row is begun.
 * - sign_cell stores the owner with release, after the other words of the cell; take_over_row loads
 *   it with acquire before it reads them.
 * - The core (core/core.h), which has no thread-local variable, uses a word of the C library's
 *   thread descriptor.  A new thread may get the descriptor of an ended one, with the row in that
 *   word, and then continues to use this row; so no other thread takes the row over while the word
 *   refers to it.
 * - A thread that must not ask for its tid, because its process filters its system calls (seccomp),
 *   begins a new row with the tid HFN_TID_BUSY.  Such a row is never taken over.
 * - A thread may own two rows, if a signal handler claims one between claim and use.  All rows are
 *   summed, so no call is lost. */
#include "counters/thread_row.h"

#include "base/compiler.h"
#include "counters/timing/engine.h"
#include "os/hot_path.h"

#include <stddef.h>

#define NO_ROW UINT32_MAX

hfn_row_state hfn_rows;

#ifdef HFN_CORE
static uint64_t get_variable_address(void)
{
    return hfn_core_word_address();
}

/* Whether the thread descriptor of the row's owner still leads to the row. */
static bool is_word_set(const hfn_thread_cell *cell)
{
    uintptr_t word = 0, row = (uintptr_t)(hfn_rows.rows +
                                          (uint64_t)(cell - hfn_rows.cells) * hfn_rows.row_bytes);

    if (!hfn_rows_may_call(HFN_CALLS_OTHERS)) {
        return true;
    }
    return cell->row_variable != 0 && hfn_os_hot_read_word(cell->row_variable, &word) &&
           word == row;
}

static void set_row(uint8_t *row)
{
    uint64_t variable = get_variable_address();

    if (variable != 0) {
        *(uint8_t **)(uintptr_t)variable = row;
    } else {
        hfn_core_set_gs_row(row == hfn_rows.discard
                                ? hfn_rows.thread_capacity
                                : (uint64_t)(row - hfn_rows.rows) / hfn_rows.row_bytes);
    }
}
#else

static uint64_t get_variable_address(void)
{
    return hfn_os_get_row_word_address();
}

static void set_row(uint8_t *row)
{
    hfn_thread_row = row;
}

/* The C library has cleared the variable before another thread uses its memory. */
static bool is_word_set(const hfn_thread_cell *cell)
{
    (void)cell;
    return false;
}
#endif

typedef uint64_t __attribute__((may_alias)) owner_word; /* a cell's tid and thread_count in one */

typedef struct claimer {
    uint32_t tid, pid;
    uint32_t process, pid_namespace; /* both 0 in the child of a raw fork or vfork */
    uint64_t variable;               /* address of the thread's row pointer; 0: it has none */
} claimer;

static claimer identify_thread(void)
{
    claimer me = { 0, 0, 0, 0, 0 };

    if (!hfn_rows_may_call(HFN_CALLS_CLAIM)) {
        me = (claimer){ HFN_TID_BUSY, hfn_rows.pid, hfn_rows.process, hfn_rows.pid_namespace, 0 };
        return me;
    }
    me.tid = hfn_os_hot_thread_id();
    me.pid = hfn_os_hot_process_id();
    if (me.pid == hfn_rows.pid) {
        me.process = hfn_rows.process;
        me.pid_namespace = hfn_rows.pid_namespace;
    }
    return me;
}

static owner_word *get_owner_word(hfn_thread_cell *cell)
{
    return (owner_word *)(void *)&cell->tid;
}

static uint64_t make_owner_word(uint32_t tid, uint32_t thread_count)
{
    return tid | (uint64_t)thread_count << 32;
}

/* Whether `me` may take the row.  Only the error "no such thread" proves that the owner of the row
 * has ended. */
static bool has_owner_ended(const hfn_thread_cell *cell, uint32_t tid, const claimer *me,
                            uint32_t cells_used)
{
    if (tid == 0 || tid == HFN_TID_BUSY) {
        return false;
    }
    if (cell->pid == me->pid && cell->process == me->process) {
        return tid == me->tid || (hfn_os_hot_thread_is_gone(me->pid, tid) && !is_word_set(cell));
    }
    return cells_used > HFN_ROWS_BEFORE_REUSE && me->pid_namespace != 0 &&
           cell->pid_namespace == me->pid_namespace && hfn_rows_may_call(HFN_CALLS_OTHERS) &&
           hfn_os_hot_process_is_gone(cell->pid);
}

/* Describe this thread in a cell that it has claimed, then publish it as the owner. */
static void sign_cell(hfn_thread_cell *cell, const claimer *me, uint32_t thread_count)
{
    bool may_call = hfn_rows_may_call(HFN_CALLS_CLAIM);

    if (thread_count == 1 && may_call) {
        cell->start_ns = hfn_os_hot_wall_ns();
    }
    if (cell->pid != me->pid || cell->process != me->process || thread_count == 1) {
        cell->process_count++;
    }
    cell->pid = me->pid;
    cell->process = me->process;
    cell->pid_namespace = me->pid_namespace;
    cell->row_variable = me->variable;
    if (may_call) {
        hfn_os_hot_thread_name(cell->name);
    }
    /* pairs with the acquire load in take_over_row, after which pid and process are those of this
     * owner */
    __atomic_store_n(get_owner_word(cell), make_owner_word(me->tid, thread_count),
                     __ATOMIC_RELEASE);
}

/* Try to take over one of `tries` rows; returns its index, or NO_ROW. */
static uint32_t take_over_row(const claimer *me, uint32_t cells_used, uint32_t tries)
{
    uint32_t first = __atomic_fetch_add(&hfn_rows.next_try, tries, __ATOMIC_RELAXED);

    for (uint32_t i = 0; i < tries; i++) {
        uint32_t index = (first + i) % cells_used;
        hfn_thread_cell *cell = &hfn_rows.cells[index];
        uint64_t owner = __atomic_load_n(get_owner_word(cell), __ATOMIC_ACQUIRE);
        uint32_t count = (uint32_t)(owner >> 32);

        /* The count makes each owner word differ from all earlier ones, so a row that another
         * thread has taken over since the load is not taken from its new owner. */
        if (has_owner_ended(cell, (uint32_t)owner, me, cells_used) &&
            __atomic_compare_exchange_n(get_owner_word(cell), &owner,
                                        make_owner_word(HFN_TID_BUSY, count + 1), false,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            sign_cell(cell, me, count + 1);
            return index;
        }
    }
    return NO_ROW;
}

static uint32_t begin_new_row(const claimer *me)
{
    uint32_t used = __atomic_load_n(&hfn_rows.header->cells_used, __ATOMIC_RELAXED);

    do {
        if (used >= hfn_rows.thread_capacity) {
            return NO_ROW;
        }
    } while (!__atomic_compare_exchange_n(&hfn_rows.header->cells_used, &used, used + 1, true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    if (!hfn_os_hot_commit_pages(hfn_rows.rows + (uint64_t)used * hfn_rows.row_bytes,
                                 hfn_rows.row_bytes)) {
        return NO_ROW; /* the cell stays without an owner */
    }
    sign_cell(&hfn_rows.cells[used], me, 1);
    return used;
}

static uint32_t get_cells_used(void)
{
    uint32_t used = __atomic_load_n(&hfn_rows.header->cells_used, __ATOMIC_RELAXED);
    return used < hfn_rows.thread_capacity ? used : hfn_rows.thread_capacity;
}

static uint8_t *get_row(uint32_t index)
{
    return hfn_rows.rows + (uint64_t)index * hfn_rows.row_bytes;
}

uint8_t *hfn_thread_row_claim(void)
{
    uint8_t *row;
    claimer me;
    uint32_t index = NO_ROW, used;

    if (!__atomic_load_n(&hfn_rows.header, __ATOMIC_ACQUIRE)) { /* pairs with activate_counters */
        return hfn_rows.discard;
    }
    me = identify_thread();
    me.variable = get_variable_address();
    used = get_cells_used();
    if (used > 0 && me.process != 0 && me.tid != HFN_TID_BUSY) {
        index = take_over_row(&me, used, used < HFN_ROWS_TRIED ? used : HFN_ROWS_TRIED);
    }
    if (index == NO_ROW) {
        index = begin_new_row(&me);
    }
    if (index == NO_ROW && me.process != 0 && me.tid != HFN_TID_BUSY) {
        index = take_over_row(&me, get_cells_used(), hfn_rows.thread_capacity);
    }
    if (index == NO_ROW) {
        __atomic_fetch_add(&hfn_rows.header->threads_lost, 1, __ATOMIC_RELAXED);
        return hfn_rows.discard;
    }
    row = get_row(index);
    if (hfn_time_is_on()) {
        hfn_time_begin_row(row, index + 1);
    }
    return row;
}

/* Called by the assembly entry, which has saved every register.  On a system where claiming a row
 * calls a library that may be hooked, the calls of this library are not counted. */
HFN_SYSTEM_V void hfn_thread_row_first_call(void);
HFN_SYSTEM_V void hfn_thread_row_first_call(void)
{
    if (HFN_CLAIM_CALLS_LIBRARY) {
        __atomic_fetch_add(&hfn_rows.claimers, 1, __ATOMIC_SEQ_CST);
        set_row(hfn_rows.discard);
    }
    set_row(hfn_thread_row_claim());
    if (HFN_CLAIM_CALLS_LIBRARY) {
        __atomic_fetch_sub(&hfn_rows.claimers, 1, __ATOMIC_SEQ_CST);
    }
}

/* ---- The row of all threads. */

/* Two threads may begin a row each; both are summed. */
static uint8_t *begin_shared_row(void)
{
    claimer me = identify_thread();
    uint32_t index = begin_new_row(&me);

    if (index == NO_ROW) {
        __atomic_fetch_add(&hfn_rows.header->threads_lost, 1, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&hfn_rows.shared, index == NO_ROW ? hfn_rows.discard : get_row(index),
                     __ATOMIC_RELEASE); /* pairs with the acquire load in the next function */
    return hfn_rows.shared;
}

void hfn_thread_row_count_shared(void *slot_bytes)
{
    uint8_t *row;

    if (!__atomic_load_n(&hfn_rows.header, __ATOMIC_ACQUIRE)) { /* pairs with activate_counters */
        return;
    }
    row = __atomic_load_n(&hfn_rows.shared, __ATOMIC_ACQUIRE);
    if (!row) {
        row = begin_shared_row();
    }
    __atomic_fetch_add((uint64_t *)(void *)(row + (uintptr_t)slot_bytes), 1, __ATOMIC_RELAXED);
}
