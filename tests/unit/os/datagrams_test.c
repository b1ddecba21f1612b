/* SPDX-License-Identifier: MIT */
/* Datagrams arrive whole, a sender never waits, and a receiver may come and go. */
#include "os/datagrams.h"

#include "check.h"

#include <stdlib.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

static char folder[] = "/tmp/hotfn-datagrams-XXXXXX";

static hfn_os_address path_address(const char *name)
{
    hfn_os_address a = { 0 };

    snprintf(a.path, sizeof a.path, "%.64s/%.32s", folder, name);
    return a;
}

static void check_arrives(const hfn_os_socket *sender, const hfn_os_socket *receiver)
{
    char text[16] = "";
    size_t count = 0;

    CHECK_EQ_I64(hfn_os_send_datagram(sender, "hello", 6), HFN_OS_SENT);
    CHECK_EQ_I64(hfn_os_receive_datagram(receiver, 5 * SECOND, text, sizeof text, &count, NULL),
                 HOTFN_OK);
    CHECK_EQ_U64(count, 6);
    CHECK_STR(text, "hello");
}

static void udp_datagrams_arrive_at_the_port_that_was_chosen(void)
{
    hfn_os_address at = { .host = "127.0.0.1" };
    hfn_os_socket receiver, sender;

    CHECK_EQ_I64(hfn_os_open_receiver(&receiver, &at, NULL), HOTFN_OK);
    CHECK(at.port != 0);
    CHECK_EQ_I64(hfn_os_open_sender(&sender, &at, NULL), HOTFN_OK);
    check_arrives(&sender, &receiver);
    hfn_os_close_socket(&sender);
    hfn_os_close_socket(&receiver);
}

static void receiver_without_a_host_receives_by_ipv4(void)
{
    hfn_os_address at = { 0 };
    hfn_os_socket receiver, sender;

    CHECK_EQ_I64(hfn_os_open_receiver(&receiver, &at, NULL), HOTFN_OK);
    CHECK_EQ_I64(hfn_os_open_sender(&sender, &at, NULL), HOTFN_OK);
    check_arrives(&sender, &receiver);
    hfn_os_close_socket(&sender);
    hfn_os_close_socket(&receiver);
}

static void port_in_use_is_reported(void)
{
    hfn_os_address at = { .host = "127.0.0.1" };
    hotfn_error err = HOTFN_ERROR_INIT;
    hfn_os_socket receiver, second;

    CHECK_EQ_I64(hfn_os_open_receiver(&receiver, &at, NULL), HOTFN_OK);
    CHECK_EQ_I64(hfn_os_open_receiver(&second, &at, &err), HOTFN_E_STATE);
    CHECK(strstr(err.text, "listened on"));
    hfn_os_close_socket(&receiver);
}

static void unknown_host_is_reported_by_its_name(void)
{
    hfn_os_address to = { .host = "no-such-host.invalid", .port = 9 };
    hotfn_error err = HOTFN_ERROR_INIT;
    hfn_os_socket sender;

    CHECK_EQ_I64(hfn_os_open_sender(&sender, &to, &err), HOTFN_E_NOT_FOUND);
    CHECK(strstr(err.text, "no-such-host.invalid"));
}

static void receiver_at_a_path_may_be_opened_again(void)
{
    hfn_os_address at = path_address("again");
    hfn_os_socket receiver, sender;

    CHECK_EQ_I64(hfn_os_open_sender(&sender, &at, NULL), HOTFN_OK);
    CHECK_EQ_I64(hfn_os_send_datagram(&sender, "x", 1), HFN_OS_NO_RECEIVER);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ_I64(hfn_os_open_receiver(&receiver, &at, NULL), HOTFN_OK);
        check_arrives(&sender, &receiver);
        hfn_os_close_socket(&receiver);
        CHECK(access(at.path, F_OK) != 0);
        CHECK_EQ_I64(hfn_os_send_datagram(&sender, "x", 1), HFN_OS_NO_RECEIVER);
    }
    hfn_os_close_socket(&sender);
}

static void file_of_a_killed_receiver_is_replaced(void)
{
    hfn_os_address at = path_address("killed");
    hfn_os_socket receiver, sender;

    CHECK_EQ_I64(hfn_os_open_receiver(&receiver, &at, NULL), HOTFN_OK);
    close((int)receiver.handle); /* as a kill does: the file stays */
    CHECK(access(at.path, F_OK) == 0);
    CHECK_EQ_I64(hfn_os_open_receiver(&receiver, &at, NULL), HOTFN_OK);
    CHECK_EQ_I64(hfn_os_open_sender(&sender, &at, NULL), HOTFN_OK);
    check_arrives(&sender, &receiver);
    hfn_os_close_socket(&sender);
    hfn_os_close_socket(&receiver);
}

static void path_in_use_and_other_files_are_not_replaced(void)
{
    hfn_os_address used = path_address("used"), file = path_address("file");
    hotfn_error err = HOTFN_ERROR_INIT;
    hfn_os_socket receiver, second;
    FILE *made = fopen(file.path, "w");

    CHECK(made && fputs("text", made) >= 0 && fclose(made) == 0);
    CHECK_EQ_I64(hfn_os_open_receiver(&receiver, &used, NULL), HOTFN_OK);
    CHECK_EQ_I64(hfn_os_open_receiver(&second, &used, &err), HOTFN_E_STATE);
    CHECK_STR(err.file, used.path);
    CHECK_EQ_I64(hfn_os_open_receiver(&second, &file, &err), HOTFN_E_STATE);
    CHECK(access(file.path, F_OK) == 0);
    hfn_os_close_socket(&receiver);
    unlink(file.path);
}

static void full_queue_is_reported_at_once(void)
{
    static const char bytes[1000];
    hfn_os_address at = path_address("full");
    hfn_os_socket receiver, sender;
    hfn_os_sent sent = HFN_OS_SENT;
    uint32_t count = 0;

    CHECK_EQ_I64(hfn_os_open_receiver(&receiver, &at, NULL), HOTFN_OK);
    CHECK_EQ_I64(hfn_os_open_sender(&sender, &at, NULL), HOTFN_OK);
    while (sent == HFN_OS_SENT && count++ < 1000000) {
        sent = hfn_os_send_datagram(&sender, bytes, sizeof bytes);
    }
    CHECK_EQ_I64(sent, HFN_OS_QUEUE_FULL);
    hfn_os_close_socket(&sender);
    hfn_os_close_socket(&receiver);
}

static void long_datagram_reports_its_whole_size(void)
{
    hfn_os_address at = path_address("long");
    hfn_os_socket receiver, sender;
    char bytes[8];
    size_t count;

    CHECK_EQ_I64(hfn_os_open_receiver(&receiver, &at, NULL), HOTFN_OK);
    CHECK_EQ_I64(hfn_os_open_sender(&sender, &at, NULL), HOTFN_OK);
    CHECK_EQ_I64(hfn_os_send_datagram(&sender, "123456789", 10), HFN_OS_SENT);
    CHECK_EQ_I64(hfn_os_receive_datagram(&receiver, SECOND, bytes, sizeof bytes, &count, NULL),
                 HOTFN_OK);
    CHECK_EQ_U64(count, 10);
    CHECK_EQ_I64(hfn_os_receive_datagram(&receiver, 0, bytes, sizeof bytes, &count, NULL),
                 HOTFN_OK);
    CHECK_EQ_U64(count, 0);
    hfn_os_close_socket(&sender);
    hfn_os_close_socket(&receiver);
}

static void folder_is_empty_at_the_end(void)
{
    CHECK_EQ_I64(rmdir(folder), 0);
}

static const check_test tests[] = {
    CHECK_TEST(udp_datagrams_arrive_at_the_port_that_was_chosen),
    CHECK_TEST(receiver_without_a_host_receives_by_ipv4),
    CHECK_TEST(port_in_use_is_reported),
    CHECK_TEST(unknown_host_is_reported_by_its_name),
    CHECK_TEST(receiver_at_a_path_may_be_opened_again),
    CHECK_TEST(file_of_a_killed_receiver_is_replaced),
    CHECK_TEST(path_in_use_and_other_files_are_not_replaced),
    CHECK_TEST(full_queue_is_reported_at_once),
    CHECK_TEST(long_datagram_reports_its_whole_size),
    CHECK_TEST(folder_is_empty_at_the_end),
};

int main(int argc, char **argv)
{
    return mkdtemp(folder)
               ? check_run(tests, sizeof tests / sizeof tests[0], argc > 1 ? argv[1] : NULL)
               : 1;
}
