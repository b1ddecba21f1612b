/* SPDX-License-Identifier: MIT */
/*
 * HOT PATH: zones in the open-call stack.  The stack compares the addresses of frames to find calls
 * that were left without their exit, but a zone's frame may be in the heap, or above the frame of
 * an outer zone of the same function.  So a zone is entered with a frame of its own on the stack,
 * and its entry then gets an address above all others (ZONE_BIT): no call of a function removes it,
 * only its end or the end of a call further out.
 */
#include "counters/timing/zone.h"

#include "counters/thread_row.h"
#include "counters/timing/counter_mode.h"
#include "counters/timing/open_calls.h"
#include "counters/timing/tick_mode.h"

#define ZONE_BIT (UINT64_C(1) << 63)

static bool is_timed(void)
{
    return hfn_time_is_on() && !(hfn_time.flags & HOTFN_TIMING_SAMPLED);
}

static uint64_t get_address(const hfn_time_frame *f)
{
    return (uint64_t)(uintptr_t)f;
}

/* The frame address in the entry of an open call; NULL if it has no entry in this thread. */
static uint64_t *find_entry(const hfn_time_frame *f, uint64_t address)
{
    hfn_time_state *t = hfn_thread_row ? hfn_time_state_of(hfn_thread_row) : NULL;

    if (!t || f->depth >= t->depth || f->depth >= HFN_LOG_CAPACITY ||
        hfn_open_calls_of(t)[f->depth].frame != address) {
        return NULL;
    }
    return &hfn_open_calls_of(t)[f->depth].frame;
}

void hfn_zone_skip(hfn_time_frame *f)
{
    *f = (hfn_time_frame){ .call_word = HFN_CALL_UNTIMED };
}

static void begin_timed(hfn_time_frame *out, uint32_t slot)
{
    hfn_time_frame own = { .call_word = HFN_CALL_UNTIMED, .slot = slot };
    uint64_t *entry;

    if (hfn_time.tick) {
        hfn_tick_enter(HFN_PASS(&own), 0);
    } else {
        hfn_counter_enter(HFN_PASS(&own));
    }
    *out = own;
    entry = own.call_word & HFN_CALL_UNTIMED ? NULL : find_entry(&own, get_address(&own));
    if (entry) {
        *entry = get_address(out) | ZONE_BIT;
    }
}

void hfn_zone_enter(hfn_time_frame *f, uint32_t slot)
{
    hfn_zone_skip(f);
    if (!hfn_thread_row) {
        hfn_thread_row = hfn_thread_row_claim();
    }
    __atomic_fetch_add((uint64_t *)(void *)hfn_thread_row + slot, 1, __ATOMIC_RELAXED);
    if (is_timed()) {
        begin_timed(f, slot);
    }
}

void hfn_zone_leave(hfn_time_frame *f)
{
    uint64_t *entry;

    if (!(f->call_word & HFN_CALL_UNTIMED) && is_timed()) {
        entry = find_entry(f, get_address(f) | ZONE_BIT);
        if (entry) {
            *entry = get_address(f);
        }
        if (hfn_time.tick) {
            hfn_tick_exit(HFN_PASS(f), 0);
        } else {
            hfn_counter_exit(HFN_PASS(f));
        }
    }
    hfn_zone_skip(f);
}
