/* SPDX-License-Identifier: MIT */
/* A timed live record: where its times lie, and that a process that joins it finds them. */
#include "live/live.h"
#include "records/sample.h"
#include "records/times.h"

static hfn_live *timed_live(void)
{
    hfn_live_options o = { 0 };
    hfn_live *live = NULL;

    o.slot_capacity = 1000;
    o.thread_capacity = 8;
    o.string_bytes = 1 << 16;
    o.timing = HOTFN_TIMING_TIMES | HOTFN_TIMING_TREE | HOTFN_TIMING_EVENTS | HOTFN_TIMING_ALLOC;
    o.node_capacity = 100;
    o.event_capacity = 100;
    o.slow_ns = 1000000;
    CHECK_EQ_I64(hfn_live_create(&live, &o, NULL, NULL), HOTFN_OK);
    return live;
}

static void times_of_a_thread_follow_its_counts(void)
{
    hfn_live *live = timed_live();
    const hfn_section *s = live->layout.sections;
    hfn_row_memory m;
    hfn_time_memory t;

    m = hfn_live_activate_rows(live);
    CHECK(hfn_live_time_memory(live, &t));
    CHECK(t.thread_at >= 1000 * sizeof(uint64_t));
    CHECK(t.thread_at + hfn_time_row_bytes(1000) <= m.row_bytes);
    CHECK_EQ_U64(t.header->row_bytes, m.row_bytes);
    CHECK_EQ_U64(s[HFN_SECTION_TIME_ROWS].offset - s[HFN_SECTION_ROWS].offset, t.thread_at);
    CHECK(s[HFN_SECTION_TIME_ROWS].offset + s[HFN_SECTION_TIME_ROWS].bytes <=
          s[HFN_SECTION_FUNCTIONS].offset);
    m.rows[7 * (uint64_t)m.row_bytes + m.row_bytes - 1] = 1;
    t.nodes[99].calls = 1;
    t.allocs[99].freed_bytes = 1;
    t.events[8 * 128 - 1].kind = 1; /* a power of two */
    hfn_live_close(live);
}

static void a_process_that_joins_finds_the_times(void)
{
    hfn_live *live = timed_live(), *joined = NULL;
    hfn_time_memory own, other;
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", hfn_live_get_fd(live));
    if (!CHECK_EQ_I64(hfn_live_join(&joined, path, NULL, NULL), HOTFN_OK)) {
        return;
    }
    CHECK(hfn_live_time_memory(live, &own) && hfn_live_time_memory(joined, &other));
    CHECK_EQ_U64(own.thread_at, other.thread_at);
    own.nodes[5].calls = 77;
    CHECK_EQ_U64(other.nodes[5].calls, 77);
    CHECK_EQ_U64(other.header->ticks_per_second, own.header->ticks_per_second);
    hfn_live_close(joined);
    hfn_live_close(live);
}

static hotfn_record_time_info times_read_from(hfn_live *live)
{
    hotfn_record_time_info info = HOTFN_RECORD_TIME_INFO_INIT;
    hotfn_record *r = NULL;
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", hfn_live_get_fd(live));
    if (CHECK_EQ_I64(hotfn_record_open(&r, path, NULL, NULL), HOTFN_OK)) {
        CHECK_EQ_I64(hotfn_record_get_time_info(r, &info), HOTFN_OK);
    }
    hotfn_record_close(r);
    return info;
}

static void the_costs_of_a_call_are_those_of_the_start(void)
{
    hfn_live *live = timed_live();
    hfn_time_header *h = hfn_live_time_header(live);
    hotfn_record_time_info info;
    double ns = 1e9 / (double)h->ticks_per_second;

    h->cost_inside_ticks = 10 * 256;
    h->cost_outside_ticks = 8 * 256;
    info = times_read_from(live);
    CHECK(info.cost_inside_ns > 9.9 * ns && info.cost_inside_ns < 10.1 * ns);
    CHECK(info.cost_outside_ns > 7.9 * ns && info.cost_outside_ns < 8.1 * ns);
    hfn_live_close(live);
}

static void the_clock_is_in_the_header(void)
{
    hfn_live *live = timed_live();
    const hfn_time_header *h = hfn_live_time_header(live);

    CHECK(h->clock == HOTFN_CLOCK_TSC || h->clock == HOTFN_CLOCK_MONOTONIC ||
          h->clock == HOTFN_CLOCK_ARM);
    CHECK(h->ticks_per_second >= 1000000 && h->start_ticks > 0);
    CHECK(h->slow_ticks >= h->ticks_per_second / 1000 - 1 &&
          h->slow_ticks <= h->ticks_per_second / 1000 + 1);
    hfn_live_close(live);
}

/* A thread took a chunk of 32 nodes.  The first three are its root, a place that was called, and a
 * place that the thread has not finished writing. */
static void nodes_that_no_call_has_begun_are_no_places(void)
{
    hfn_live *live = timed_live();
    hfn_time_memory t;
    hfn_times times;

    CHECK(hfn_live_time_memory(live, &t));
    t.header->nodes_used = 32;
    t.nodes[0] = (hfn_time_node){ .slot = HOTFN_NO_SLOT, .flags = HFN_NODE_USED };
    t.nodes[1] = (hfn_time_node){ .slot = 5, .flags = HFN_NODE_USED, .calls = 7 };
    t.nodes[2] = (hfn_time_node){ .slot = 6, .calls = 8 };
    hfn_times_init(&times, &live->env);
    CHECK_EQ_I64(hfn_times_read_live(&times, live->file, &live->layout, live->layout.file_bytes, 1,
                                     10, 0, "", NULL),
                 HOTFN_OK);
    CHECK(hfn_times_validate(&times, 10, 1));
    CHECK_EQ_U64(times.node_count, 1);
    CHECK_EQ_U64(times.nodes[0].slot, 5);
    CHECK_EQ_U64(times.nodes[0].calls, 7);
    hfn_times_finish(&times);
    hfn_live_close(live);
}

static void a_record_without_timing_has_no_room_for_it(void)
{
    hfn_live *live = sample_live(NULL);
    hfn_time_memory t;

    CHECK(!hfn_live_time_memory(live, &t));
    CHECK_EQ_U64(live->layout.sections[HFN_SECTION_TIME_ROWS].type, 0);
    CHECK(live->layout.row_bytes <= 4096);
    hfn_live_close(live);
}

static const check_test tests[] = {
    CHECK_TEST(times_of_a_thread_follow_its_counts),
    CHECK_TEST(a_process_that_joins_finds_the_times),
    CHECK_TEST(the_costs_of_a_call_are_those_of_the_start),
    CHECK_TEST(the_clock_is_in_the_header),
    CHECK_TEST(nodes_that_no_call_has_begun_are_no_places),
    CHECK_TEST(a_record_without_timing_has_no_room_for_it),
};
CHECK_MAIN(tests)
