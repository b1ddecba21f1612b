/* SPDX-License-Identifier: MIT */
#include "runtimes/com_names.h"

#include "check.h"

static const hfn_guid dispatch = { 0x20400, 0, 0, { 0xC0, 0, 0, 0, 0, 0, 0, 0x46 } };
static const hfn_guid other = { 0x5D1B6F20, 0xAB, 0xFEDC, { 0x01, 0x0F, 3, 4, 5, 6, 7, 0xE8 } };

static void check_method(const hfn_guid *iid, uint32_t number, const char *wanted)
{
    char out[160];

    hfn_com_write_method(out, sizeof out, iid, number);
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
        hfn_guid iid = { first[i], 0, 0, { 0xC0, 0, 0, 0, 0, 0, 0, 0x46 } };
        uint32_t count = hfn_com_count_methods(&iid);
        char out[160];

        CHECK(count > 3);
        hfn_com_write_method(out, sizeof out, &iid, count - 1);
        CHECK(strstr(out, "::method ") == NULL);
        hfn_com_write_method(out, sizeof out, &iid, count);
        CHECK(strstr(out, "::method ") != NULL);
    }
    CHECK_EQ_U64(hfn_com_count_methods(&other), 0);
}

static const check_test tests[] = {
    CHECK_TEST(guids_are_written_as_the_registry_has_them),
    CHECK_TEST(methods_have_names_where_the_interface_is_known),
    CHECK_TEST(the_lists_of_methods_have_as_many_names_as_methods),
};

CHECK_MAIN(tests)
