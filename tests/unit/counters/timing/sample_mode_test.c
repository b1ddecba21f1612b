/* SPDX-License-Identifier: MIT */
/* Samples: of each block of calls of a function, one call that is chosen at random is timed. */
#include "check.h"
#include "counters/timed_row.h"
#include "counters/timing/sample_mode.h"

enum { SLOT = 3, INTERVAL = 7, BLOCKS = 2000, TICKS = 130 };

typedef struct sampled_call {
    hfn_time_frame frame;
    uintptr_t back;
} sampled_call;

static uint64_t tick;

static hfn_time_state *start(uint32_t flags, uint32_t interval)
{
    tick = 1000;
    timed_start_by(HOTFN_TIMING_SAMPLED | flags, &tick);
    hfn_time.sample_interval = interval;
    return timed_use(0);
}

/* As a stub does: count down, and at 0 call the probes.  Returns true if the call was timed. */
static bool make_call(hfn_time_state *t, uint32_t slot, uint64_t ticks)
{
    uint32_t *skip = hfn_time_skip_of(t, slot);
    sampled_call call = { .frame = { .slot = slot } };

    if (*skip > 0) {
        --*skip;
        tick += ticks;
        return false;
    }
    hfn_time_enter_sampled(&call.frame);
    tick += ticks;
    hfn_time_exit_sampled(&call.frame);
    return !(call.frame.call_word & HFN_CALL_UNTIMED);
}

static void one_call_of_each_block_is_timed(void)
{
    hfn_time_state *t = start(0, INTERVAL);
    uint32_t at[INTERVAL] = { 0 };

    for (uint32_t block = 0; block < BLOCKS; block++) {
        uint32_t timed_calls = 0;

        for (uint32_t i = 0; i < INTERVAL; i++) {
            if (make_call(t, SLOT, 1)) {
                timed_calls++;
                at[i]++;
            }
        }
        CHECK_EQ_U64(timed_calls, 1);
    }
    for (uint32_t i = 0; i < INTERVAL; i++) { /* 286 expected, with a standard error of 16 */
        CHECK(at[i] > 286 - 6 * 16 && at[i] < 286 + 6 * 16);
    }
    timed_forget();
}

static void sums_are_weighted_to_represent_all_calls(void)
{
    hfn_time_state *t = start(HOTFN_TIMING_HISTOGRAMS, INTERVAL);
    const hfn_time_cell *c = timed_cell(t, SLOT);
    uint64_t in_histogram = 0;

    for (uint32_t i = 0; i < INTERVAL * BLOCKS; i++) {
        make_call(t, SLOT, TICKS);
    }
    CHECK_EQ_U64(c->timed_calls, BLOCKS);
    CHECK_EQ_U64(t->timed, BLOCKS);
    CHECK_EQ_U64(c->sampled.weight, INTERVAL * BLOCKS);
    CHECK_EQ_U64(c->total_ticks, UINT64_C(1) * TICKS * INTERVAL * BLOCKS);
    CHECK_EQ_U64(c->sampled.squares, (uint64_t)(TICKS >> HFN_SAMPLE_SHIFT) *
                                         (TICKS >> HFN_SAMPLE_SHIFT) * INTERVAL * (INTERVAL - 1) *
                                         BLOCKS);
    CHECK_EQ_U64(c->max_ticks, TICKS);
    for (uint32_t i = 0; i < HOTFN_HISTOGRAM_BUCKETS; i++) {
        in_histogram += timed.histograms[c->histogram - 1][i];
    }
    CHECK_EQ_U64(in_histogram, INTERVAL * BLOCKS);
    CHECK_EQ_U64(t->depth, 0);
    timed_forget();
}

static void an_interval_holds_from_the_next_block_on(void)
{
    static uint32_t means[TIMED_SLOTS];
    hfn_time_state *t = start(0, 1);
    const hfn_time_cell *c = timed_cell(t, SLOT);

    hfn_time.means = means; /* 0: none is chosen yet */
    for (uint32_t i = 0; i < HFN_SAMPLE_BEGIN; i++) {
        make_call(t, SLOT, 1);
    }
    CHECK_EQ_U64(c->timed_calls, 1);
    means[SLOT] = 2;
    for (uint32_t i = 0; i < HFN_SAMPLE_BEGIN; i++) { /* this block had begun */
        make_call(t, SLOT, 1);
    }
    CHECK_EQ_U64(c->timed_calls, 2);
    for (uint32_t i = 0; i < 100; i++) {
        make_call(t, SLOT, 1);
    }
    CHECK_EQ_U64(c->timed_calls, 52);
    CHECK_EQ_U64(c->sampled.weight, 2 * HFN_SAMPLE_BEGIN + 100);
    timed_forget();
}

/* A frame lies above those of the calls within it. */
static void calls_that_were_left_are_removed(void)
{
    hfn_time_state *t = start(0, 1);
    sampled_call calls[3] = { { .frame = { .slot = 1 } },
                              { .frame = { .slot = 2 } },
                              { .frame = { .slot = 3 } } };

    hfn_time_enter_sampled(&calls[2].frame);
    tick += 10;
    hfn_time_enter_sampled(&calls[1].frame);
    tick += 10;
    hfn_time_enter_sampled(&calls[0].frame);
    tick += 10;
    hfn_time_leave((uint64_t)(uintptr_t)&calls[0].frame); /* an exception passes it */
    CHECK_EQ_U64(timed_cell(t, 1)->total_ticks, 10);
    CHECK_EQ_U64(t->depth, 2);
    tick += 10;
    hfn_time_exit_sampled(&calls[2].frame); /* longjmp has left the second */
    CHECK_EQ_U64(timed_cell(t, 3)->total_ticks, 40);
    CHECK_EQ_U64(timed_cell(t, 2)->timed_calls, 0);
    CHECK_EQ_U64(timed.header.abandoned_exits, 1);
    CHECK_EQ_U64(t->depth, 0);
    hfn_time_exit_sampled(&calls[1].frame); /* it waited on another stack after all */
    CHECK_EQ_U64(timed_cell(t, 2)->total_ticks, 30);
    timed_forget();
}

static void open_calls_end_with_their_row(void)
{
    hfn_time_state *t = start(0, 1);
    sampled_call call = { .frame = { .slot = 1 } };

    hfn_time_enter_sampled(&call.frame);
    tick += 25;
    hfn_time_end_row(hfn_thread_row, hfn_timing_stop(), 0);
    CHECK_EQ_U64(timed_cell(t, 1)->total_ticks, 25);
    hfn_time_exit_sampled(&call.frame);
    CHECK_EQ_U64(timed_cell(t, 1)->timed_calls, 1);
    timed_forget();
}

static void rows_are_added(void)
{
    hfn_time_state *from = start(0, 1), *to;

    make_call(from, 4, 5);
    to = timed_use(1);
    make_call(to, 4, 6);
    hfn_time_add_row(timed.rows[1].counts, timed.rows[0].counts, TIMED_SLOTS);
    CHECK_EQ_U64(timed_cell(to, 4)->total_ticks, 11);
    CHECK_EQ_U64(timed_cell(to, 4)->sampled.weight, 2);
    timed_forget();
}

static const check_test tests[] = {
    CHECK_TEST(one_call_of_each_block_is_timed),
    CHECK_TEST(sums_are_weighted_to_represent_all_calls),
    CHECK_TEST(an_interval_holds_from_the_next_block_on),
    CHECK_TEST(calls_that_were_left_are_removed),
    CHECK_TEST(open_calls_end_with_their_row),
    CHECK_TEST(rows_are_added),
};
CHECK_MAIN(tests)
