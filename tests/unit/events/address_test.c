/* SPDX-License-Identifier: MIT */
/* Addresses as users write them. */
#include "events/address.h"

#include "check.h"

static void check_round_trip(const char *text, const char *host, uint16_t port, const char *path)
{
    hfn_os_address a = { 0 };
    char again[512];

    printf("# %s\n", text);
    CHECK_EQ_I64(hfn_address_parse(&a, text, NULL), HOTFN_OK);
    CHECK_STR(a.host, host);
    CHECK_EQ_U64(a.port, port);
    CHECK_STR(a.path, path);
    hfn_address_format(again, sizeof again, &a);
    CHECK_STR(again, text);
}

static void all_forms_are_read_and_written(void)
{
    check_round_trip("udp:9000", "", 9000, "");
    check_round_trip("udp:0", "", 0, "");
    check_round_trip("udp:worker-7.example:65535", "worker-7.example", 65535, "");
    check_round_trip("udp:[::1]:80", "::1", 80, "");
    check_round_trip("unix:/run/events", "", 0, "/run/events");
    check_round_trip("unix:relative:with:colons", "", 0, "relative:with:colons");
}

static void other_texts_are_refused_by_name(void)
{
    static const char *const wrong[] = { "",       "udp:",    "udp:x",          "udp:65536",
                                         "udp::9", "udp:a:b", "udp:::1:9",      "tcp:a:9",
                                         "unix:",  "9000",    "udp:4294967296", "udp:-1" };
    char longest[160] = "unix:";

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        hotfn_error err = HOTFN_ERROR_INIT;
        hfn_os_address a = { .port = 77 };

        printf("# '%s'\n", wrong[i]);
        CHECK_EQ_I64(hfn_address_parse(&a, wrong[i], &err), HOTFN_E_OPTION);
        CHECK(strstr(err.text, "udp:HOST:PORT") && strstr(err.text, wrong[i]));
        CHECK_EQ_U64(a.port, 77);
    }
    memset(longest + 5, 'x', 108);
    hfn_os_address a;
    CHECK_EQ_I64(hfn_address_parse(&a, longest, NULL), HOTFN_E_OPTION);
    longest[5 + 107] = 0;
    CHECK_EQ_I64(hfn_address_parse(&a, longest, NULL), HOTFN_OK);
}

static const check_test tests[] = {
    CHECK_TEST(all_forms_are_read_and_written),
    CHECK_TEST(other_texts_are_refused_by_name),
};
CHECK_MAIN(tests)
