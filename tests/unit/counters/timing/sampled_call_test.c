/* SPDX-License-Identifier: MIT */
/* What a sample's timed call leaves in its function's histogram: all but the thread's latest, which its row has. */
#include "counters/timed_row.h"

#include "check.h"

typedef struct sampled_call {
    hfn_time_frame frame;
    uintptr_t back;
} sampled_call;

static void make_call(uint32_t slot)
{
    sampled_call call = { .frame = { .slot = slot } };

    hfn_time_enter_sampled(&call.frame);
    hfn_time_exit_sampled(&call.frame);
}

static uint64_t in_histogram_of(hfn_time_state *t, uint32_t slot)
{
    uint32_t histogram = timed_cell(t, slot)->histogram;
    uint64_t sum = 0;

    for (uint32_t i = 0; histogram != 0 && i < HOTFN_HISTOGRAM_BUCKETS; i++) {
        sum += timed.histograms[histogram - 1][i];
    }
    return sum;
}

/* The histogram that the latest call is due to, as a slot. */
static uint32_t slot_due(hfn_time_state *t)
{
    for (uint32_t slot = 0; slot < TIMED_SLOTS; slot++) {
        if (timed_cell(t, slot)->histogram == (t->due_bucket - 1) / HOTFN_HISTOGRAM_BUCKETS + 1) {
            return slot;
        }
    }
    return UINT32_MAX;
}

static void each_call_but_the_latest_is_in_its_histogram(void)
{
    uint64_t calls[TIMED_SLOTS] = { 0 };

    timed_start(HOTFN_TIMING_SAMPLED | HOTFN_TIMING_HISTOGRAMS);
    hfn_time_state *t = timed_use(0);
    CHECK_EQ_U64(t->due_bucket, 0);
    for (uint32_t i = 0; i < 200; i++) {
        uint32_t slot = i * i % TIMED_SLOTS;

        make_call(slot);
        calls[slot]++;
        CHECK_EQ_U64(slot_due(t), slot);
        CHECK_EQ_U64(t->due_calls, 1);
        for (uint32_t k = 0; k < TIMED_SLOTS; k++) {
            CHECK_EQ_U64(in_histogram_of(t, k), calls[k] - (k == slot));
        }
    }
    timed_forget();
}

static void a_call_stands_for_as_many_as_it_did(void)
{
    const uint32_t means[] = { 5, UINT32_MAX, 1000 };

    timed_start(HOTFN_TIMING_SAMPLED | HOTFN_TIMING_HISTOGRAMS);
    hfn_time_state *t = timed_use(0);
    for (uint32_t i = 0; i < 3; i++) {
        hfn_time_gap_of(t, i)->mean = means[i];
        make_call(i);
        CHECK_EQ_U64(t->due_calls, means[i]);
    }
    make_call(3);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_EQ_U64(in_histogram_of(t, i), means[i]);
    }
    timed_forget();
}

static void a_row_that_is_added_hands_on_its_latest_call(void)
{
    timed_start(HOTFN_TIMING_SAMPLED | HOTFN_TIMING_HISTOGRAMS);
    hfn_time_state *from = timed_use(1);
    make_call(4);
    CHECK_EQ_U64(in_histogram_of(from, 4), 0);
    timed_use(0);
    hfn_time_add_row(timed.rows[0].counts, timed.rows[1].counts, TIMED_SLOTS);
    CHECK_EQ_U64(in_histogram_of(from, 4), 1);
    timed_forget();
}

static void no_histogram_leaves_nothing_due(void)
{
    timed.header.histogram_capacity = 1;
    timed_start(HOTFN_TIMING_SAMPLED | HOTFN_TIMING_HISTOGRAMS);
    hfn_time_state *t = timed_use(0);
    make_call(1);
    make_call(2); /* the pool is used up */
    CHECK_EQ_U64(slot_due(t), 1);
    CHECK_EQ_U64(timed_cell(t, 2)->histogram, UINT32_MAX);
    timed_forget();
}

static const check_test tests[] = {
    CHECK_TEST(each_call_but_the_latest_is_in_its_histogram),
    CHECK_TEST(a_call_stands_for_as_many_as_it_did),
    CHECK_TEST(a_row_that_is_added_hands_on_its_latest_call),
    CHECK_TEST(no_histogram_leaves_nothing_due),
};
CHECK_MAIN(tests)
