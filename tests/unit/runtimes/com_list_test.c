/* SPDX-License-Identifier: MIT */
/* Lists of COM interfaces, as in the file that HOTFN_COM_INTERFACES names. */
#include "runtimes/com_list.h"

#include "check.h"

static const hfn_guid sum = { 0x5D1B6F20, 0x1234, 0x4321, { 1, 2, 3, 4, 5, 6, 7, 8 } };
static const hfn_guid scale = { 0x5D1B6F21, 0x1234, 0x4321, { 1, 2, 3, 4, 5, 6, 7, 8 } };

static const char text[] = "# interfaces of the sums\r\n"
                           "\n"
                           "{5d1b6f20-1234-4321-0102-030405060708}  ISum Add\tGet # a comment\r\n"
                           "{5D1B6F21-1234-4321-0102-030405060708} IScale";

static void a_listed_interface_has_its_names(void)
{
    hfn_com_interface found;

    memset(&found, 0, sizeof found);
    CHECK(hfn_com_find_in_list(&found, &sum, text, sizeof text - 1));
    CHECK_STR(found.name, "ISum");
    CHECK_EQ_U64(found.count, 5);
    CHECK_STR(found.methods[3].name, "Add");
    CHECK_STR(found.methods[4].name, "Get");
    CHECK_EQ_U64(found.methods[3].arguments, 0);
    memset(&found, 0, sizeof found);
    CHECK(hfn_com_find_in_list(&found, &scale, text, sizeof text - 1));
    CHECK_STR(found.name, "IScale");
    CHECK_EQ_U64(found.count, 0);
    CHECK(!hfn_com_find_in_list(&found, &hfn_iid_unknown, text, sizeof text - 1));
    CHECK_EQ_U64(hfn_com_check_list(text, sizeof text - 1), 0);
}

static void the_first_malformed_line_is_found(void)
{
    static const char *const bad[] = {
        "# good\n{5D1B6F21-1234-4321-0102-030405060708}\n", /* no name */
        "\n{5D1B6F21-1234-4321-0102-03040506070} IScale\n", /* a short IID */
        "{5D1B6F21-1234-4321-0102-030405060708} IScale\nIScale Scale\n",
        "\n{5D1B6F21-1234-4321-0102-03040506070G} IScale",
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_EQ_U64(hfn_com_check_list(bad[i], strlen(bad[i])), 2);
    }
    CHECK_EQ_U64(hfn_com_check_list("", 0), 0);
}

static const check_test tests[] = {
    CHECK_TEST(a_listed_interface_has_its_names),
    CHECK_TEST(the_first_malformed_line_is_found),
};
CHECK_MAIN(tests)
