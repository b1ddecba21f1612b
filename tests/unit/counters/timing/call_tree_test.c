/* SPDX-License-Identifier: MIT */
/* Where a sampled call finds its callers that are counted only: by return addresses, from one to the next. */
#include "check.h"

#include "counters/timed_row.h"

#include <sys/mman.h>

enum { WORDS = 64, CALLEE = 5, OTHER = 6, RANGES = 5 };
enum { TIMED = 1, FIRST = 2, SECOND = 3 }; /* slots of callers */

/* A stack: the frame of the call that begins, its return address, and what lies above that. */
typedef struct stack {
    hfn_time_frame frame;
    uintptr_t words[WORDS];
} stack;

typedef struct room {
    uint64_t words[(sizeof(hfn_code_map) + RANGES * sizeof(hfn_code_range)) / sizeof(uint64_t)];
} room;

static hfn_code_map *map_in(room *r)
{
    return (hfn_code_map *)(void *)r->words;
}

/* A function is 100 bytes of code; the counted-only ones have their return address so many words up. */
static void make_map(room *r, uint32_t first_words, uint32_t second_words)
{
    const uint32_t word = sizeof(uintptr_t);
    const hfn_code_range ranges[RANGES] = {
        { 100, 200, TIMED, 0 },
        { 200, 300, FIRST, first_words * word },
        { 300, 400, SECOND, second_words * word },
        { 400, 450, FIRST, 0 }, /* where it cannot be told */
        { 500, 600, UINT32_MAX, 4 * word },
    };

    map_in(r)->count = RANGES;
    memcpy(map_in(r)->ranges, ranges, sizeof ranges);
}

static uint32_t parent_of(uint32_t node)
{
    return timed.nodes[node - 1].parent + 1;
}

static uint32_t slot_of(uint32_t node)
{
    return timed.nodes[node - 1].slot;
}

/* The slots above the call's node, from the inside out, end at the root. */
static void check_way(uint32_t node, const uint32_t *slots, uint32_t count)
{
    for (uint32_t i = 0; i < count && CHECK(parent_of(node) != node); i++) {
        node = parent_of(node);
        CHECK_EQ_U64(slot_of(node), slots[i]);
    }
    CHECK_EQ_U64(slot_of(parent_of(node)), UINT32_MAX);
}

static hfn_time_state *begin(room *r, uint32_t first_words, uint32_t second_words)
{
    timed_start(HOTFN_TIMING_SAMPLED);
    make_map(r, first_words, second_words);
    hfn_timing_set_code(map_in(r));
    return timed_use(0);
}

static void finish(void)
{
    hfn_timing_set_code(NULL);
    timed_forget();
}

static void callers_are_followed_through_what_is_counted_only(void)
{
    static room r;
    stack s = { .words = { [0] = 250, [3] = 310, [3 + 7] = 150 } };
    hfn_time_state *t = begin(&r, 3, 7);
    uint32_t node = hfn_tree_called_from(t, &s.frame, CALLEE), used = timed.header.nodes_used;

    check_way(node, (const uint32_t[]){ FIRST, SECOND, TIMED }, 3);
    CHECK_EQ_U64(hfn_tree_called_from(t, &s.frame, CALLEE), node); /* by its hint */
    CHECK_EQ_U64(timed.header.nodes_used, used);
    check_way(hfn_tree_called_from(t, &s.frame, OTHER), (const uint32_t[]){ FIRST, SECOND, TIMED },
              3);
    s.words[3 + 7] = 990; /* the same ones, called from elsewhere */
    check_way(hfn_tree_called_from(t, &s.frame, CALLEE), (const uint32_t[]){ FIRST, SECOND }, 2);
    s.words[3] = 110;
    check_way(hfn_tree_called_from(t, &s.frame, CALLEE), (const uint32_t[]){ FIRST, TIMED }, 2);
    s.words[0] = 110;
    check_way(hfn_tree_called_from(t, &s.frame, CALLEE), (const uint32_t[]){ TIMED }, 1);
    finish();
}

static void a_way_ends_where_it_cannot_be_told(void)
{
    static room r;
    stack s = { .words = { [0] = 420, [3] = 110 } };
    hfn_time_state *t = begin(&r, 3, 7);

    check_way(hfn_tree_called_from(t, &s.frame, CALLEE), (const uint32_t[]){ FIRST }, 1);
    s.words[0] = 480; /* nobody's code */
    check_way(hfn_tree_called_from(t, &s.frame, CALLEE), NULL, 0);
    finish();
}

static void what_is_not_hooked_is_passed_over(void)
{
    static room r;
    stack s = { .words = { [0] = 550, [4] = 210, [4 + 3] = 110 } };
    hfn_time_state *t = begin(&r, 3, 7);

    check_way(hfn_tree_called_from(t, &s.frame, CALLEE), (const uint32_t[]){ FIRST, TIMED }, 2);
    finish();
}

/* One that calls itself has one node, and no more are looked at than there is room for. */
static void a_long_way_is_cut_short(void)
{
    static room r;
    stack s = { .words = { 0 } };
    hfn_time_state *t = begin(&r, 3, 1);

    for (uint32_t i = 0; i < WORDS; i++) {
        s.words[i] = 210;
    }
    check_way(hfn_tree_called_from(t, &s.frame, CALLEE), (const uint32_t[]){ FIRST }, 1);
    for (uint32_t i = 1; i < 4; i++) {
        s.words[3 * i] = 100 + i; /* from behind the call on: the first byte is another's */
    }
    check_way(hfn_tree_called_from(t, &s.frame, OTHER), (const uint32_t[]){ FIRST, TIMED }, 2);
    finish();
}

/* Another map is looked at from the next call on, though the old one's answers are at hand. */
static void other_code_in_the_place_is_seen(void)
{
    static room one, two;
    stack s = { .words = { [0] = 250, [3] = 150, [8] = 310, [8 + 2] = 150 } };
    hfn_time_state *t = begin(&one, 3, 7);

    check_way(hfn_tree_called_from(t, &s.frame, CALLEE), (const uint32_t[]){ FIRST, TIMED }, 2);
    make_map(&two, 8, 2);
    hfn_timing_set_code(map_in(&two));
    check_way(hfn_tree_called_from(t, &s.frame, CALLEE), (const uint32_t[]){ FIRST, SECOND, TIMED },
              3);
    finish();
}

/* The caller's own code is what changes: a call that goes back to the same place is another's now. */
static void another_caller_in_the_place_is_seen(void)
{
    static room one, two;
    stack s = { .words = { [0] = 150 } };
    hfn_time_state *t = begin(&one, 0, 0);
    uint32_t node = hfn_tree_called_from(t, &s.frame, CALLEE);

    check_way(node, (const uint32_t[]){ TIMED }, 1);
    CHECK_EQ_U64(hfn_tree_called_from(t, &s.frame, CALLEE), node);
    make_map(&two, 0, 0);
    map_in(&two)->ranges[0].slot = SECOND;
    hfn_timing_set_code(map_in(&two));
    check_way(hfn_tree_called_from(t, &s.frame, CALLEE), (const uint32_t[]){ SECOND }, 1);
    hfn_timing_set_code(map_in(&one)); /* and back: the node is there, and found again */
    CHECK_EQ_U64(hfn_tree_called_from(t, &s.frame, CALLEE), node);
    finish();
}

/* A timed call jumped to the counted-only function: that goes back to the stub of the call, whose frame lies above. */
static void a_counted_only_function_that_was_jumped_to_has_who_jumped_as_caller(void)
{
    static room r;
    struct {
        hfn_time_frame inner;
        uintptr_t words[4];
        hfn_time_frame outer;
    } s = { .words = { [0] = 250, [3] = 990 } };
    hfn_time_state *t = begin(&r, 3, 7);

    s.outer.slot = 9;
    hfn_time_enter(&s.outer);
    check_way(hfn_tree_called_from(t, &s.inner, CALLEE), (const uint32_t[]){ FIRST, 9 }, 2);
    hfn_time_exit(&s.outer);
    finish();
}

/* Wrong unwind data, or a stack that ends there: nothing is read on a page that may not be. */
static void what_may_not_be_readable_is_not_read(void)
{
    enum { PAGE = 4096, ABOVE = 7 }; /* words between the return address and the page's end */
    static room r, shorter;
    uint8_t *pages = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack other = { .words = { [0] = 250, [ABOVE] = 150 } };
    hfn_time_state *t = begin(&r, ABOVE, 7);
    stack *top =
        (stack *)(void *)(pages + PAGE - offsetof(stack, words) - ABOVE * sizeof(uintptr_t));

    mprotect(pages, PAGE, PROT_READ | PROT_WRITE);
    top->words[0] = 250;
    check_way(hfn_tree_called_from(t, &top->frame, CALLEE), (const uint32_t[]){ FIRST }, 1);
    check_way(hfn_tree_called_from(t, &other.frame, CALLEE), (const uint32_t[]){ FIRST, TIMED }, 2);
    /* nor with that one's hint, which stays */
    check_way(hfn_tree_called_from(t, &top->frame, CALLEE), (const uint32_t[]){ FIRST }, 1);
    check_way(hfn_tree_called_from(t, &other.frame, CALLEE), (const uint32_t[]){ FIRST, TIMED }, 2);
    make_map(&shorter, ABOVE - 1, 7); /* and what is, is */
    hfn_timing_set_code(map_in(&shorter));
    top->words[ABOVE - 1] = 150;
    check_way(hfn_tree_called_from(t, &top->frame, CALLEE), (const uint32_t[]){ FIRST, TIMED }, 2);
    munmap(pages, 2 * PAGE);
    finish();
}

static const check_test tests[] = {
    CHECK_TEST(what_may_not_be_readable_is_not_read),
    CHECK_TEST(callers_are_followed_through_what_is_counted_only),
    CHECK_TEST(a_way_ends_where_it_cannot_be_told),
    CHECK_TEST(what_is_not_hooked_is_passed_over),
    CHECK_TEST(a_long_way_is_cut_short),
    CHECK_TEST(other_code_in_the_place_is_seen),
    CHECK_TEST(another_caller_in_the_place_is_seen),
    CHECK_TEST(a_counted_only_function_that_was_jumped_to_has_who_jumped_as_caller),
};
CHECK_MAIN(tests)
