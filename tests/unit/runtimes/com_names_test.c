/* SPDX-License-Identifier: MIT */
/* Names of COM interfaces and of their methods. */
#include "runtimes/com_names.h"

#include "check.h"

static const hfn_guid dispatch = { 0x20400, 0, 0, { 0xC0, 0, 0, 0, 0, 0, 0, 0x46 } };
static const hfn_guid other = { 0x5D1B6F20, 0xAB, 0xFEDC, { 0x01, 0x0F, 3, 4, 5, 6, 7, 0xE8 } };

static void check_method(const hfn_guid *iid, uint32_t number, const char *wanted)
{
    hfn_com_interface found;
    char out[200];

    hfn_com_describe(&found, iid, 0, 0);
    hfn_com_write_method(out, sizeof out, &found, number);
    CHECK_STR(out, wanted);
}

static void guids_are_written_as_the_registry_has_them(void)
{
    char out[HFN_GUID_BYTES];

    hfn_guid_write(out, &other);
    CHECK_STR(out, "{5D1B6F20-00AB-FEDC-010F-0304050607E8}");
    hfn_guid_write(out, &hfn_iid_unknown);
    CHECK_STR(out, "{00000000-0000-0000-C000-000000000046}");
}

static void methods_have_names_where_the_interface_is_known(void)
{
    check_method(&hfn_iid_unknown, 2, "IUnknown::Release");
    check_method(&hfn_iid_class_factory, 3, "IClassFactory::CreateInstance");
    check_method(&hfn_iid_class_factory, 4, "IClassFactory::LockServer");
    check_method(&dispatch, 6, "IDispatch::Invoke");
    check_method(&dispatch, 7, "IDispatch::method 7");
    check_method(&other, 0, "{5D1B6F20-00AB-FEDC-010F-0304050607E8}::QueryInterface");
    check_method(&other, 3, "{5D1B6F20-00AB-FEDC-010F-0304050607E8}::method 3");
}

static void the_lists_of_methods_have_as_many_names_as_methods(void)
{
    static const uint32_t first[] = { 0x0C, 0x03, 0x10B, 0x10C, 0x20400, 0x214F9 };

    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        hfn_guid iid = HFN_STANDARD_GUID(first[i]);
        hfn_com_interface found;

        hfn_com_describe(&found, &iid, 0, 0);
        CHECK(found.count > 3);
        for (uint32_t method = 0; method < found.count; method++) {
            CHECK(found.methods[method].name[0] != 0 && found.methods[method].arguments > 0);
        }
        CHECK(found.methods[found.count].name[0] == 0);
    }
}

static void nothing_is_assumed_of_unknown_interfaces(void)
{
    hfn_com_interface found;

    hfn_com_describe(&found, &other, 0, 0);
    CHECK_EQ_U64(found.count, 0);
    CHECK_EQ_U64(found.methods[0].arguments, 3);
    CHECK(found.methods[1].result == HFN_COM_OTHER_RESULT);
    CHECK_EQ_U64(found.methods[3].arguments, 0);
    CHECK(found.methods[3].result == HFN_COM_UNKNOWN_RESULT);
}

static const check_test tests[] = {
    CHECK_TEST(guids_are_written_as_the_registry_has_them),
    CHECK_TEST(methods_have_names_where_the_interface_is_known),
    CHECK_TEST(the_lists_of_methods_have_as_many_names_as_methods),
    CHECK_TEST(nothing_is_assumed_of_unknown_interfaces),
};

CHECK_MAIN(tests)
