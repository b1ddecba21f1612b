/* SPDX-License-Identifier: MIT */
/* Rings are read while threads write to them: no event twice, none half written, all lost ones
 * counted. */
#include "events/rings.h"

#include "live_events.h"

static hfn_live *live;
static hfn_ring ring;
static hfn_time_event out[LIVE_RING];

static void begin_test(void)
{
    live = make_live_events();
    ring = (hfn_ring){ 0 };
    own_row(live, 0, 100);
}

/* A poll with `room`; *skipped is that of the poll. */
static uint32_t poll_ring(uint32_t room, uint64_t *skipped)
{
    *skipped = 0;
    hfn_ring_begin(&ring, live, 0, false);
    return hfn_ring_read(&ring, live, 0, out, room, skipped);
}

static void an_event_is_read_at_the_second_poll(void)
{
    uint64_t skipped;

    begin_test();
    write_event(live, 0, 1, 5, 10);
    CHECK_EQ_U64(poll_ring(LIVE_RING, &skipped), 0);
    write_event(live, 0, 2, 5, 20);
    CHECK_EQ_U64(poll_ring(LIVE_RING, &skipped), 1);
    CHECK(out[0].kind == 1 && out[0].slot == 5 && out[0].ticks == 10);
    CHECK_EQ_U64(ring.thread_id, 100);
    CHECK_EQ_U64(poll_ring(LIVE_RING, &skipped), 1);
    CHECK(out[0].kind == 2 && out[0].ticks == 20);
    CHECK_EQ_U64(poll_ring(LIVE_RING, &skipped), 0);
    hfn_live_close(live);
}

static void the_final_poll_reads_everything(void)
{
    uint64_t skipped = 0;

    begin_test();
    write_event(live, 0, 1, 5, 10);
    write_event(live, 0, 2, 5, 20);
    hfn_ring_begin(&ring, live, 0, true);
    CHECK_EQ_U64(hfn_ring_read(&ring, live, 0, out, 1, &skipped), 1);
    CHECK_EQ_U64(hfn_ring_read(&ring, live, 0, out, 1, &skipped), 1);
    CHECK_EQ_U64(hfn_ring_read(&ring, live, 0, out, 1, &skipped), 0);
    CHECK_EQ_U64(ring.thread_id, 100);
    hfn_live_close(live);
}

static void an_event_that_is_being_written_is_waited_for(void)
{
    uint64_t skipped;
    hfn_time_event *late;

    begin_test();
    write_event(live, 0, 1, 5, 10);
    late = begin_event(live, 0); /* its kind is 0 */
    write_event(live, 0, 1, 7, 30);
    CHECK_EQ_U64(poll_ring(LIVE_RING, &skipped), 0);
    CHECK_EQ_U64(poll_ring(LIVE_RING, &skipped), 1);
    CHECK_EQ_U64(poll_ring(LIVE_RING, &skipped), 0);
    *late = (hfn_time_event){ 20, 6, 1 };
    CHECK_EQ_U64(poll_ring(LIVE_RING, &skipped), 2);
    CHECK(out[0].slot == 6 && out[1].slot == 7 && skipped == 0);
    hfn_live_close(live);
}

static void an_entry_of_the_lap_before_is_not_read_again(void)
{
    uint64_t skipped;

    begin_test();
    for (uint32_t i = 0; i < LIVE_RING; i++) {
        write_event(live, 0, 1, 5, 10 + i);
    }
    poll_ring(LIVE_RING, &skipped);
    CHECK_EQ_U64(poll_ring(LIVE_RING, &skipped), LIVE_RING);
    begin_event(live, 0); /* interrupted before its kind was cleared */
    CHECK_EQ_U64(poll_ring(LIVE_RING, &skipped), 0);
    CHECK_EQ_U64(poll_ring(LIVE_RING, &skipped), 0);
    CHECK_EQ_U64(skipped, 0);
    hfn_live_close(live);
}

static void an_entry_that_stays_incomplete_is_skipped(void)
{
    uint64_t skipped = 0, all = 0;

    begin_test();
    *begin_event(live, 0) = (hfn_time_event){ 0 };
    for (uint32_t i = 0; i < LIVE_RING / 2; i++) {
        write_event(live, 0, 1, 5, 10 + i);
    }
    poll_ring(LIVE_RING, &skipped);
    CHECK_EQ_U64(poll_ring(LIVE_RING, &all), LIVE_RING / 2);
    CHECK_EQ_U64(all, 1);
    hfn_live_close(live);
}

static void overwritten_events_are_counted(void)
{
    uint64_t skipped;

    begin_test();
    for (uint32_t i = 0; i < 10; i++) {
        write_event(live, 0, 1, 5, 10 + i);
    }
    poll_ring(LIVE_RING, &skipped);
    for (uint32_t i = 0; i < LIVE_RING; i++) {
        write_event(live, 0, 1, 6, 100 + i);
    }
    CHECK_EQ_U64(poll_ring(LIVE_RING, &skipped), 0); /* all 10 were overwritten */
    CHECK_EQ_U64(skipped, 10);
    CHECK_EQ_U64(poll_ring(LIVE_RING, &skipped), LIVE_RING);
    CHECK(out[0].slot == 6 && out[0].ticks == 100 && skipped == 0);
    hfn_live_close(live);
}

static void a_new_owner_of_the_row_has_its_own_events(void)
{
    uint64_t skipped;

    begin_test();
    write_event(live, 0, 1, 5, 10);
    poll_ring(LIVE_RING, &skipped);
    own_row(live, 0, 101);
    write_event(live, 0, 1, 6, 20);
    CHECK_EQ_U64(poll_ring(LIVE_RING, &skipped), 1);
    CHECK(out[0].slot == 5 && ring.thread_id == 100);
    CHECK_EQ_U64(poll_ring(LIVE_RING, &skipped), 1);
    CHECK(out[0].slot == 6 && ring.thread_id == 101);
    hfn_live_close(live);
}

static const check_test tests[] = {
    CHECK_TEST(an_event_is_read_at_the_second_poll),
    CHECK_TEST(the_final_poll_reads_everything),
    CHECK_TEST(an_event_that_is_being_written_is_waited_for),
    CHECK_TEST(an_entry_of_the_lap_before_is_not_read_again),
    CHECK_TEST(an_entry_that_stays_incomplete_is_skipped),
    CHECK_TEST(overwritten_events_are_counted),
    CHECK_TEST(a_new_owner_of_the_row_has_its_own_events),
};
CHECK_MAIN(tests)
