/* SPDX-License-Identifier: MIT */
/* HOT PATH: like counter_mode.c, around the calls of malloc, free and similar functions.  The size
 * of a block is that which malloc_usable_size reports, both when the block is allocated and when it
 * is freed, so that the sizes agree.  That function belongs to the allocator, and its calls are not
 * counted.  Of nested calls only the outermost is recorded: calloc may call malloc, and operator
 * new does.
 *
 * The amounts go to the place that the allocator was called from, or to the allocator's own place
 * if no place called it. */
#include "counters/timing/alloc.h"

#include "counters/thread_row.h"
#include "counters/timing/counter_mode.h"
#include "counters/timing/places.h"

/* In a frame's `room`, for a call of realloc: */
#define HAD_BLOCK (UINT64_C(1) << 63) /* it was called with a block */
#define IS_FREE (UINT64_C(1) << 62)   /* the new size is 0, so it may free the block */
#define OLD_BYTES (IS_FREE - 1)

static hfn_allocator allocators[HFN_ALLOCATORS_MAX];
static uint32_t allocator_count; /* grows; those below it never change */
static uint32_t lowest = UINT32_MAX, highest;

bool hfn_alloc_add(const hfn_allocator *allocator)
{
    uint32_t count = allocator_count;

    if (count == HFN_ALLOCATORS_MAX) {
        return false;
    }
    allocators[count] = *allocator;
    if (allocator->slot < lowest) {
        lowest = allocator->slot;
    }
    if (allocator->slot > highest) {
        highest = allocator->slot;
    }
    __atomic_store_n(&allocator_count, count + 1, __ATOMIC_RELEASE); /* pairs with find_allocator */
    return true;
}

static HFN_NOINLINE HFN_KEEPS_REGISTERS const hfn_allocator *find_allocator(uint32_t slot)
{
    uint32_t count = __atomic_load_n(&allocator_count, __ATOMIC_ACQUIRE);

    for (uint32_t i = 0; i < count; i++) {
        if (allocators[i].slot == slot) {
            return &allocators[i];
        }
    }
    return NULL;
}

static HFN_KEEPS_REGISTERS uint64_t get_usable_bytes(const hfn_allocator *a, uintptr_t block)
{
    uint8_t *row = hfn_thread_row;
    uint64_t bytes;

    hfn_thread_row = hfn_rows.discard;
    bytes = hfn_alloc_call(a->usable, block);
    hfn_thread_row = row;
    return bytes;
}

/* ---- The amounts of a place. */

static hotfn_alloc_cell *get_cell_for(const hfn_time_frame *f)
{
    uint32_t node = hfn_call_node(f->call_word), caller = f->caller;

    if (caller != 0 && hfn_place_of_caller(caller) != caller) { /* not a root */
        node = caller;
    }
    return node != 0 && hfn_time.allocs ? &hfn_time.allocs[node - 1] : NULL;
}

static void record_allocated(const hfn_time_frame *f, const hfn_allocator *a, uintptr_t block)
{
    hotfn_alloc_cell *cell = block ? get_cell_for(f) : NULL;

    if (!cell) {
        return;
    }
    cell->allocated_bytes += get_usable_bytes(a, block);
    cell->allocated_blocks++;
}

static void record_freed(const hfn_time_frame *f, uint64_t bytes)
{
    hotfn_alloc_cell *cell = get_cell_for(f);

    if (!cell) {
        return;
    }
    cell->freed_bytes += bytes;
    cell->freed_blocks++;
}

/* ---- Entry and exit. */

/* Whether the call is inside another allocator's call that is still open.  An exception may have
 * ended that call without an exit, for example that of operator new. */
static bool is_inner(hfn_time_state *t, uint64_t frame)
{
    return t->alloc_frame != 0 && frame < t->alloc_frame &&
           (t->alloc_depth >= HFN_LOG_CAPACITY ||
            hfn_open_calls_of(t)[t->alloc_depth].frame == t->alloc_frame);
}

static HFN_NOINLINE HFN_KEEPS_REGISTERS void begin_call(hfn_time_frame *f, const hfn_allocator *a,
                                                        uintptr_t block, uintptr_t wanted)
{
    hfn_time_state *t = hfn_time_state_of(hfn_thread_row);
    uint64_t frame = (uint64_t)(uintptr_t)f;

    if (is_inner(t, frame)) {
        return;
    }
    t->alloc_frame = frame;
    t->alloc_depth = f->depth;
    f->room = block;
    if (a->kind == HFN_ALLOC_FREES && block) {
        record_freed(f, get_usable_bytes(a, block));
    }
    if (a->kind == HFN_ALLOC_MOVES && block) {
        f->room =
            (get_usable_bytes(a, block) & OLD_BYTES) | HAD_BLOCK | (wanted == 0 ? IS_FREE : 0);
    }
}

static HFN_NOINLINE HFN_KEEPS_REGISTERS void end_call(hfn_time_frame *f, const hfn_allocator *a,
                                                      uintptr_t result)
{
    hfn_time_state *t = hfn_time_state_of(hfn_thread_row);

    if (t->alloc_frame != (uint64_t)(uintptr_t)f) {
        return;
    }
    if (a->kind == HFN_ALLOC_RETURNS || a->kind == HFN_ALLOC_MOVES) {
        record_allocated(f, a, result);
    }
    if (a->kind == HFN_ALLOC_MOVES && (f->room & HAD_BLOCK) && (result || (f->room & IS_FREE))) {
        record_freed(f, f->room & OLD_BYTES);
    }
    if (a->kind == HFN_ALLOC_STORES && (uint32_t)result == 0) {
        record_allocated(f, a, *(const uintptr_t *)(uintptr_t)f->room);
    }
    t->alloc_frame = 0;
}

static bool may_be_allocator(const hfn_time_frame *f)
{
    uint32_t slot = (uint32_t)f->slot;

    return slot >= lowest && slot <= highest && hfn_thread_row &&
           !(f->call_word & HFN_CALL_UNTIMED) &&
           (uint64_t)f->slot >> 32 == 0; /* after a tail exit the result is not known yet */
}

HFN_KEEPS_REGISTERS void hfn_alloc_enter(hfn_time_frame *f, uintptr_t first, uintptr_t second)
{
    const hfn_allocator *a;

    hfn_counter_enter(HFN_PASS(f));
    a = HFN_UNLIKELY(may_be_allocator(f)) ? find_allocator((uint32_t)f->slot) : NULL;
    if (HFN_UNLIKELY(a != NULL)) {
        begin_call(HFN_PASS(f), HFN_PASS(a), HFN_PASS(first), HFN_PASS(second));
    }
}

HFN_KEEPS_REGISTERS void hfn_alloc_exit(hfn_time_frame *f, uintptr_t result)
{
    const hfn_allocator *a =
        HFN_UNLIKELY(may_be_allocator(f)) ? find_allocator((uint32_t)f->slot) : NULL;

    if (HFN_UNLIKELY(a != NULL)) {
        end_call(HFN_PASS(f), HFN_PASS(a), HFN_PASS(result));
    }
    hfn_counter_exit(f);
}
