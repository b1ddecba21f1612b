/* SPDX-License-Identifier: MIT */
/* Blocks of calls of a made-up allocator: each belongs to one place of the tree, with the bytes
 * that the allocator reports; failed calls, and calls by an allocator, add nothing. */
#include "counters/timed_row.h"

#include "check.h"
#include "counters/rows.h"
#include "counters/timing/alloc.h"

enum { WORK = 1, MALLOC, FREE, REALLOC, MEMALIGN, NEW, OTHER }; /* slots */
enum { STACK_WORDS = 1 << 12 };

static uint64_t stack[STACK_WORDS];
static uint32_t tree = HOTFN_TIMING_TREE;
static uint32_t asked;           /* how often the allocator was asked for a block's bytes  */
static uint32_t asked_uncounted; /* how many of these calls ran while counting was paused */

static hfn_time_frame *frame_at(uint32_t words_down)
{
    return (hfn_time_frame *)(void *)&stack[STACK_WORDS - words_down];
}

static uintptr_t usable(const uint64_t *block)
{
    asked++;
    asked_uncounted += hfn_thread_row == hfn_rows.discard;
    return (uintptr_t)*block;
}

static void enter(hfn_time_frame *f, uint32_t slot, const void *first, uintptr_t second)
{
    memset(f, 0xA5, sizeof *f);
    f->slot = slot;
    hfn_alloc_enter(f, (uintptr_t)first, second);
}

static void leave(hfn_time_frame *f, const void *result)
{
    hfn_alloc_exit(f, (uintptr_t)result);
}

static hfn_time_state *start(void)
{
    static const uint32_t kinds[] = { [MALLOC] = HFN_ALLOC_RETURNS,
                                      [FREE] = HFN_ALLOC_FREES,
                                      [REALLOC] = HFN_ALLOC_MOVES,
                                      [MEMALIGN] = HFN_ALLOC_STORES,
                                      [NEW] = HFN_ALLOC_RETURNS };
    static bool added;

    for (uint32_t slot = MALLOC; slot <= NEW && !added; slot++) {
        hfn_allocator a = { slot, kinds[slot], (uintptr_t)usable };
        CHECK(hfn_alloc_add(&a));
    }
    added = true;
    hfn_rows.discard = timed.rows[TIMED_THREADS - 1].counts;
    asked = asked_uncounted = 0;
    timed_start(tree | HOTFN_TIMING_ALLOC);
    return timed_use(0);
}

/* The sum of the cells of the slot's places. */
static hotfn_alloc_cell sum_of(uint32_t slot)
{
    hotfn_alloc_cell sum = { 0, 0, 0, 0 };

    for (uint32_t i = 0; i < timed.header.nodes_used; i++) {
        const hfn_time_node *n = &timed.nodes[i];
        if (!(n->flags & HFN_NODE_USED) || n->parent == i || n->slot != slot) {
            continue;
        }
        sum.allocated_bytes += timed.allocs[i].allocated_bytes;
        sum.allocated_blocks += timed.allocs[i].allocated_blocks;
        sum.freed_bytes += timed.allocs[i].freed_bytes;
        sum.freed_blocks += timed.allocs[i].freed_blocks;
    }
    return sum;
}

#define CHECK_CELL(slot, bytes, blocks, freed_bytes_, freed_blocks_)                               \
    do {                                                                                           \
        hotfn_alloc_cell s_ = sum_of(slot);                                                        \
        CHECK_EQ_U64(s_.allocated_bytes, bytes);                                                   \
        CHECK_EQ_U64(s_.allocated_blocks, blocks);                                                 \
        CHECK_EQ_U64(s_.freed_bytes, freed_bytes_);                                                \
        CHECK_EQ_U64(s_.freed_blocks, freed_blocks_);                                              \
    } while (0)

static void call(uint32_t words_down, uint32_t slot, const void *first, uintptr_t second,
                 const void *result)
{
    enter(frame_at(words_down), slot, first, second);
    leave(frame_at(words_down), result);
}

static void finish(hfn_time_state *t)
{
    CHECK_EQ_U64(t->alloc_frame, 0);
    CHECK(hfn_thread_row == timed.rows[0].counts);
    CHECK_EQ_U64(asked, asked_uncounted);
    timed_forget();
}

/* ---- */

static void a_block_belongs_to_the_caller_of_the_allocator(void)
{
    hfn_time_state *t = start();
    uint64_t block = 48;

    for (int i = 0; i < 3; i++) {
        enter(frame_at(100), WORK, NULL, 0);
        call(200, MALLOC, NULL, 0, &block);
        leave(frame_at(100), NULL);
    }
    enter(frame_at(100), OTHER, NULL, 0);
    call(200, FREE, &block, 0, NULL);
    leave(frame_at(100), NULL);
    CHECK_CELL(WORK, 144, 3, 0, 0);
    CHECK_CELL(OTHER, 0, 0, 48, 1);
    CHECK_CELL(MALLOC, 0, 0, 0, 0);
    CHECK_CELL(FREE, 0, 0, 0, 0);
    finish(t);
}

static void a_block_without_a_caller_belongs_to_the_allocator(void)
{
    hfn_time_state *t = start();
    uint64_t block = 48;

    call(100, MALLOC, NULL, 0, &block);
    call(100, FREE, &block, 0, NULL);
    CHECK_CELL(MALLOC, 48, 1, 0, 0);
    CHECK_CELL(FREE, 0, 0, 48, 1);
    finish(t);
}

static void failed_calls_add_nothing(void)
{
    hfn_time_state *t = start();
    uint64_t block = 48;

    enter(frame_at(100), WORK, NULL, 0);
    call(200, MALLOC, NULL, 0, NULL);
    call(200, FREE, NULL, 0, NULL);
    call(200, REALLOC, &block, 1000, NULL);
    call(200, MEMALIGN, &block, 0, (const void *)(uintptr_t)12); /* ENOMEM */
    leave(frame_at(100), NULL);
    CHECK_CELL(WORK, 0, 0, 0, 0);
    finish(t);
}

static void realloc_frees_one_block_and_allocates_one(void)
{
    hfn_time_state *t = start();
    uint64_t small = 48, large = 1008;

    enter(frame_at(100), WORK, NULL, 0);
    call(200, REALLOC, NULL, 40, &small);
    CHECK_CELL(WORK, 48, 1, 0, 0);
    call(200, REALLOC, &small, 1000, &large);
    CHECK_CELL(WORK, 1056, 2, 48, 1);
    call(200, REALLOC, &large, 1001, &large); /* in place */
    CHECK_CELL(WORK, 2064, 3, 1056, 2);
    call(200, REALLOC, &large, 0, NULL); /* frees it */
    CHECK_CELL(WORK, 2064, 3, 2064, 3);
    leave(frame_at(100), NULL);
    finish(t);
}

static void a_block_whose_address_is_stored_counts(void)
{
    hfn_time_state *t = start();
    uint64_t block = 4096;
    const uint64_t *at = NULL;

    enter(frame_at(100), WORK, NULL, 0);
    enter(frame_at(200), MEMALIGN, &at, 64);
    at = &block;
    leave(frame_at(200), (const void *)(uintptr_t)(UINT64_C(1) << 32)); /* an int: 0 */
    leave(frame_at(100), NULL);
    CHECK_CELL(WORK, 4096, 1, 0, 0);
    finish(t);
}

static void only_the_outermost_call_counts(void)
{
    hfn_time_state *t = start();
    uint64_t block = 48, other = 64;

    enter(frame_at(100), WORK, NULL, 0);
    enter(frame_at(200), NEW, NULL, 0);
    call(300, MALLOC, NULL, 0, &other); /* operator new calls the allocator itself */
    call(300, FREE, &other, 0, NULL);
    leave(frame_at(200), &block);
    leave(frame_at(100), NULL);
    CHECK_CELL(WORK, 48, 1, 0, 0);
    CHECK_CELL(NEW, 0, 0, 0, 0);
    CHECK_CELL(MALLOC, 0, 0, 0, 0);
    finish(t);
}

/* operator new throws, and its caller catches: the next call is not an allocator's. */
static void a_call_that_an_exception_left_hides_nothing(void)
{
    hfn_time_state *t = start();
    uint64_t block = 48;

    enter(frame_at(100), WORK, NULL, 0);
    enter(frame_at(200), NEW, NULL, 0);
    hfn_time_leave((uint64_t)(uintptr_t)frame_at(200));
    call(300, MALLOC, NULL, 0, &block);
    leave(frame_at(100), NULL);
    CHECK_CELL(WORK, 48, 1, 0, 0);
    finish(t);
}

static void a_call_that_longjmp_left_hides_nothing(void)
{
    hfn_time_state *t = start();
    uint64_t block = 48;

    enter(frame_at(100), WORK, NULL, 0);
    enter(frame_at(200), NEW, NULL, 0); /* a signal handler jumps out of it */
    call(150, OTHER, NULL, 0, NULL);
    call(300, MALLOC, NULL, 0, &block);
    leave(frame_at(100), NULL);
    CHECK_CELL(WORK, 48, 1, 0, 0);
    finish(t);
}

static void calls_deeper_than_the_log_are_nested_by_their_frames(void)
{
    static uint64_t deep[(HFN_LOG_CAPACITY + 8) * 16];
    enum { LAST = sizeof deep / sizeof *deep };
    hfn_time_state *t = start();
    uint64_t block = 48;
    uint32_t down = 0;

    for (uint32_t i = 0; i < HFN_LOG_CAPACITY + 1; i++) {
        enter((hfn_time_frame *)(void *)&deep[LAST - (down += 16)], WORK, NULL, 0);
    }
    hfn_time_frame *outer = (hfn_time_frame *)(void *)&deep[LAST - down - 16];
    hfn_time_frame *inner = (hfn_time_frame *)(void *)&deep[LAST - down - 32];
    enter(outer, NEW, NULL, 0);
    enter(inner, MALLOC, NULL, 0);
    leave(inner, &block);
    leave(outer, &block);
    for (; down > 0; down -= 16) {
        leave((hfn_time_frame *)(void *)&deep[LAST - down], NULL);
    }
    CHECK_CELL(WORK, 48, 1, 0, 0);
    CHECK_EQ_U64(t->depth, 0);
    finish(t);
}

/* New calls of the allocator get no place below their caller then, but the caller is known. */
static void in_a_full_tree_a_block_belongs_to_the_caller(void)
{
    hfn_time_state *t;
    uint64_t block = 48;

    timed.header.node_capacity = 64; /* one chunk */
    t = start();
    call(100, MALLOC, NULL, 0, NULL); /* it has a place */
    enter(frame_at(100), WORK, NULL, 0);
    for (uint32_t i = 0; i < 100; i++) {
        enter(frame_at(120 + 16 * i), i % 2 ? WORK : OTHER, NULL, 0);
    }
    call(3000, MALLOC, NULL, 0, &block);
    for (uint32_t i = 100; i-- > 0;) {
        leave(frame_at(120 + 16 * i), NULL);
    }
    leave(frame_at(100), NULL);
    hotfn_alloc_cell a = sum_of(WORK), b = sum_of(OTHER);
    CHECK(timed.header.nodes_merged > 0);
    CHECK_EQ_U64(a.allocated_blocks + b.allocated_blocks, 1);
    CHECK_EQ_U64(a.allocated_bytes + b.allocated_bytes, 48);
    finish(t);
}

/* --flat */
static void the_same_holds_for_a_flat_run(void)
{
    tree = 0;
    a_block_belongs_to_the_caller_of_the_allocator();
    a_block_without_a_caller_belongs_to_the_allocator();
    failed_calls_add_nothing();
    realloc_frees_one_block_and_allocates_one();
    a_block_whose_address_is_stored_counts();
    only_the_outermost_call_counts();
    a_call_that_an_exception_left_hides_nothing();
    a_call_that_longjmp_left_hides_nothing();
    calls_deeper_than_the_log_are_nested_by_their_frames();
    tree = HOTFN_TIMING_TREE;
}

static void further_allocators_are_refused(void)
{
    hfn_allocator more = { 15, HFN_ALLOC_RETURNS, (uintptr_t)usable };
    uint32_t count = NEW - MALLOC + 1;

    while (count <= HFN_ALLOCATORS_MAX && hfn_alloc_add(&more)) {
        count++;
    }
    CHECK_EQ_U64(count, HFN_ALLOCATORS_MAX);
}

static const check_test tests[] = {
    CHECK_TEST(a_block_belongs_to_the_caller_of_the_allocator),
    CHECK_TEST(a_block_without_a_caller_belongs_to_the_allocator),
    CHECK_TEST(failed_calls_add_nothing),
    CHECK_TEST(realloc_frees_one_block_and_allocates_one),
    CHECK_TEST(a_block_whose_address_is_stored_counts),
    CHECK_TEST(only_the_outermost_call_counts),
    CHECK_TEST(a_call_that_an_exception_left_hides_nothing),
    CHECK_TEST(a_call_that_longjmp_left_hides_nothing),
    CHECK_TEST(calls_deeper_than_the_log_are_nested_by_their_frames),
    CHECK_TEST(in_a_full_tree_a_block_belongs_to_the_caller),
    CHECK_TEST(the_same_holds_for_a_flat_run),
    CHECK_TEST(further_allocators_are_refused),
};
CHECK_MAIN(tests)
