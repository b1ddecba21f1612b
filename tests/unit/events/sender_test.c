/* SPDX-License-Identifier: MIT */
/* The sender reads events from the rings of a live record and sends them to a listener. */
#include "events/sender.h"

#include "live_events.h"

#include <hotfn/lowlevel/events.h>
#include <unistd.h>

static char folder[] = "/tmp/hotfn-sender-XXXXXX";
static char address[128];
static hfn_live *live;
static hfn_event_sender *sender;
static char names[4096];

static void append_name(void *user, const hotfn_listener_event *e)
{
    size_t used = strlen(names);

    (void)user;
    if (e->kind == HOTFN_EVENTS_ENTRY || e->kind == HOTFN_EVENTS_EXIT) {
        snprintf(names + used, sizeof names - used, "%u:%u:%s%s ", e->thread, e->depth, e->name,
                 e->kind == HOTFN_EVENTS_ENTRY ? "{" : "}");
    } else if (e->kind == HOTFN_EVENTS_ENDED || e->kind == HOTFN_EVENTS_EXECUTED) {
        snprintf(names + used, sizeof names - used, "%s ",
                 e->kind == HOTFN_EVENTS_ENDED ? "end" : "executed");
    }
}

static hotfn_listener *listen_again(void)
{
    hotfn_listener *l = NULL;

    names[0] = 0;
    CHECK_EQ_I64(hotfn_listener_open(&l, address, 0, NULL, NULL), HOTFN_OK);
    return l;
}

static void receive_all(hotfn_listener *l)
{
    CHECK_EQ_I64(hotfn_listener_receive(l, 100000000, append_name, NULL, NULL), HOTFN_OK);
}

static hotfn_listener_stats get_stats(const hotfn_listener *l)
{
    hotfn_listener_stats s = HOTFN_LISTENER_STATS_INIT;

    CHECK_EQ_I64(hotfn_listener_get_stats(l, &s), HOTFN_OK);
    return s;
}

static void begin_test(const char *name)
{
    hotfn_env env = hfn_env_fill(NULL);

    snprintf(address, sizeof address, "unix:%s/%s", folder, name);
    live = make_live_events();
    own_row(live, 0, 100);
    own_row(live, 1, 101);
    CHECK_EQ_I64(hfn_event_sender_create(&sender, address, &env, NULL), HOTFN_OK);
    CHECK(hfn_event_sender_begin(sender, live, 99, "./game"));
}

static void end_test(void)
{
    hfn_event_sender_destroy(sender);
    hfn_live_close(live);
}

static uint64_t tick(uint64_t after)
{
    return live->clock.start_ticks + after;
}

static void poll_twice(void)
{
    hfn_event_sender_poll(sender);
    hfn_event_sender_poll(sender);
}

static void events_arrive_with_names_by_thread(void)
{
    begin_test("arrive");
    hotfn_listener *l = listen_again();

    write_event(live, 0, 1, 3, tick(10));
    write_event(live, 0, 1, 4, tick(20));
    write_event(live, 1, 1, 3, tick(15));
    poll_twice();
    write_event(live, 0, 2, 4, tick(30));
    hfn_event_sender_end(sender, false);
    receive_all(l);
    CHECK_STR(names, "100:0:f3{ 100:1:f4{ 101:0:f3{ 100:1:f4} end ");
    CHECK_EQ_U64(get_stats(l).running_count, 0);
    hotfn_listener_close(l);
    end_test();
}

static void a_listener_that_is_started_again_has_depth_and_names(void)
{
    begin_test("again");
    hotfn_listener *l = listen_again();

    write_event(live, 0, 1, 3, tick(10));
    poll_twice();
    receive_all(l);
    hotfn_listener_close(l);
    write_event(live, 0, 1, 4, tick(20));
    poll_twice(); /* there is no listener: the names are sent again afterwards */
    l = listen_again();
    write_event(live, 0, 2, 4, tick(30));
    poll_twice();
    receive_all(l);
    CHECK_STR(names, "100:1:f4} ");
    CHECK_EQ_U64(get_stats(l).lost_count, 0);
    hotfn_listener_close(l);
    end_test();
}

static void events_for_which_there_is_no_listener_are_skipped(void)
{
    char moved[160];

    begin_test("absent");
    hotfn_listener *l = listen_again();
    const char *path = strchr(address, '/');

    write_event(live, 0, 1, 3, tick(10));
    poll_twice();
    snprintf(moved, sizeof moved, "%s.moved", path);
    CHECK_EQ_I64(rename(path, moved), 0);
    for (uint32_t i = 0; i < 5; i++) {
        write_event(live, 0, 1, 4, tick(20 + i));
    }
    poll_twice();
    CHECK_EQ_I64(rename(moved, path), 0);
    write_event(live, 0, 2, 4, tick(30));
    poll_twice();
    receive_all(l);
    CHECK_STR(names, "100:0:f3{ 100:5:f4} ");
    CHECK_EQ_U64(get_stats(l).skipped_count, 5);
    hotfn_listener_close(l);
    end_test();
}

/* The listener does not read, so its queue becomes full; the sender skips events instead of waiting
 * for each datagram. */
static void a_full_queue_does_not_stop_the_sender(void)
{
    begin_test("full");
    hotfn_listener *l = listen_again();
    uint64_t count = 0;

    for (uint32_t i = 0; i < 4000; i++) {
        write_event(live, 0, 1 + i % 2, 3, tick(10 + i));
        hfn_event_sender_poll(sender);
        count++;
    }
    receive_all(l);
    receive_all(l);
    receive_all(l);
    receive_all(l);
    for (uint32_t i = 0; i < 3; i++) { /* the next datagram has the number of skipped events */
        write_event(live, 0, 1, 4, tick(10000 + i));
        hfn_event_sender_poll(sender);
        count++;
    }
    hfn_event_sender_poll(sender);
    receive_all(l);
    hotfn_listener_stats s = get_stats(l);
    CHECK(s.skipped_count > 0 && s.lost_count == 0);
    CHECK_EQ_U64(s.event_count + s.skipped_count, count);
    hotfn_listener_close(l);
    end_test();
}

static void overwritten_events_are_reported_to_the_listener(void)
{
    begin_test("overwritten");
    hotfn_listener *l = listen_again();

    write_event(live, 0, 1, 3, tick(10));
    poll_twice();
    for (uint32_t i = 0; i < LIVE_RING + 6; i++) {
        write_event(live, 0, 1 + i % 2, 4, tick(20 + i));
    }
    poll_twice();
    receive_all(l);
    CHECK_EQ_U64(get_stats(l).skipped_count, 6);
    CHECK_EQ_U64(get_stats(l).event_count, 1 + LIVE_RING);
    hotfn_listener_close(l);
    end_test();
}

static void a_replaced_program_ends_its_stream_only(void)
{
    begin_test("replaced");
    hotfn_listener *l = listen_again();

    write_event(live, 0, 1, 3, tick(10));
    hfn_event_sender_end(sender, true);
    CHECK(hfn_event_sender_begin(sender, live, 99, "./next"));
    hfn_event_sender_poll(sender);
    receive_all(l);
    CHECK_STR(names, "100:0:f3{ executed ");
    CHECK_EQ_U64(get_stats(l).stream_count, 2);
    CHECK_EQ_U64(get_stats(l).running_count, 1);
    hotfn_listener_close(l);
    end_test();
}

static void wrong_addresses_are_refused(void)
{
    hotfn_env env = hfn_env_fill(NULL);
    hotfn_error err = HOTFN_ERROR_INIT;

    sender = NULL;
    CHECK_EQ_I64(hfn_event_sender_create(&sender, "udp:0", &env, &err), HOTFN_E_OPTION);
    CHECK(strstr(err.text, "above 0"));
    CHECK_EQ_I64(hfn_event_sender_create(&sender, "udp", &env, &err), HOTFN_E_OPTION);
    CHECK(sender == NULL);
}

static void folder_is_empty_at_the_end(void)
{
    CHECK_EQ_I64(rmdir(folder), 0);
}

static const check_test tests[] = {
    CHECK_TEST(events_arrive_with_names_by_thread),
    CHECK_TEST(a_listener_that_is_started_again_has_depth_and_names),
    CHECK_TEST(events_for_which_there_is_no_listener_are_skipped),
    CHECK_TEST(a_full_queue_does_not_stop_the_sender),
    CHECK_TEST(overwritten_events_are_reported_to_the_listener),
    CHECK_TEST(a_replaced_program_ends_its_stream_only),
    CHECK_TEST(wrong_addresses_are_refused),
    CHECK_TEST(folder_is_empty_at_the_end),
};

int main(int argc, char **argv)
{
    return mkdtemp(folder)
               ? check_run(tests, sizeof tests / sizeof tests[0], argc > 1 ? argv[1] : NULL)
               : 1;
}
