/* SPDX-License-Identifier: MIT */
/* The names of interfaces and methods in a type library. */
#include "runtimes/com_typelib.h"

#include "base/byte_order.h"
#include "check.h"

/* A type library: types 0 (IUnknown's child with Get and put_Get), 1 (its child, dual, with Run),
 * and 2 (a child of an imported IDispatch, without methods of its own). */
enum {
    TYPES = 0x200,
    TYPE_BYTES = 0x64,
    IMPORTS = 0x400,
    GUIDS = 0x500,
    NAMES = 0x600,
    FUNCTIONS = 0x700,
    BYTES = 0x900,
};

static uint8_t bytes[BYTES];
static const hfn_guid iids[] = { { 10, 1, 2, { 3 } }, { 11, 1, 2, { 3 } }, { 12, 1, 2, { 3 } } };
static const hfn_guid dispatch = HFN_STANDARD_GUID(0x20400);
static const hfn_guid missing = { 13, 1, 2, { 3 } };

static void put(uint32_t at, uint32_t value)
{
    hfn_write_le32(bytes + at, value);
}

static void put_segment(uint32_t index, uint32_t at, uint32_t byte_count)
{
    put(0x54 + 4 * 3 + 16 * index, at);
    put(0x54 + 4 * 3 + 16 * index + 4, byte_count);
}

static uint32_t names_used;

static uint32_t put_name(const char *name)
{
    uint32_t at = names_used;

    put(NAMES + at + 8, (uint32_t)strlen(name) | 0xABCD0000);
    memcpy(bytes + NAMES + at + 12, name, strlen(name));
    names_used += 12 + ((uint32_t)strlen(name) + 3) / 4 * 4;
    return at;
}

static void put_type(uint32_t index, uint32_t kind, uint32_t flags, uint32_t base)
{
    uint32_t at = TYPES + TYPE_BYTES * index;

    put(at, kind | 0x100);
    put(at + 0x04, FUNCTIONS + 0x80 * index);
    put(at + 0x2C, 24 * index);
    put(at + 0x30, flags);
    put(at + 0x34, put_name(index == 0 ? "IFirst" : index == 1 ? "ISecond" : "IThird"));
    put(at + 0x54, base);
    memcpy(bytes + GUIDS + 24 * index, &iids[index], sizeof iids[index]);
}

/* Functions of a type have consecutive slots from `slot` on. */
static void put_functions(uint32_t index, uint32_t slot, uint32_t count, const uint32_t *names,
                          const uint32_t *kinds)
{
    uint32_t at = FUNCTIONS + 0x80 * index, record = at + 4;

    put(TYPES + TYPE_BYTES * index + 0x18, count);
    put(at, 24 * count);
    for (uint32_t i = 0; i < count; i++, record += 24) {
        put(record, 24);
        put(record + 4, index == 0 ? 0x80190019 : 0x80050005); /* HRESULT, double */
        put(record + 0x0C, 8 * (slot + i));
        put(record + 0x10, kinds[i] << 3 | 1);
        put(record + 0x14, 4 + i);
        put(at + 4 + 24 * count + 4 * count + 4 * i, names[i]);
    }
}

static hfn_span make_library(void)
{
    memset(bytes, 0, sizeof bytes);
    names_used = 0;
    put(0, 0x5446534D);
    put(0x14, 0x43); /* win64 */
    put(0x20, 3);
    put_segment(0, TYPES, 3 * TYPE_BYTES);
    put_segment(1, IMPORTS, 12);
    put_segment(5, GUIDS, 4 * 24);
    put_segment(7, NAMES, 0x100);
    put_type(0, 3, 0, UINT32_MAX);
    put_type(1, 4, 0x40, 0);
    put_type(2, 3, 0, 1); /* import 0 */
    put_functions(0, 3, 2, (uint32_t[]){ put_name("Get"), put_name("Get") }, (uint32_t[]){ 2, 4 });
    put_functions(1, 7, 1, (uint32_t[]){ put_name("R\1n") }, (uint32_t[]){ 1 });
    put(IMPORTS, 0x10000);
    put(IMPORTS + 8, 3 * 24);
    memcpy(bytes + GUIDS + 3 * 24, &dispatch, sizeof dispatch);
    return (hfn_span){ bytes, sizeof bytes, false };
}

static hfn_com_interface find(const hfn_guid *iid)
{
    hfn_com_interface found = { .name = "" };

    CHECK(hfn_typelib_find(&found, make_library(), iid));
    return found;
}

static void methods_have_slots_names_arguments_and_results(void)
{
    hfn_com_interface found = find(&iids[0]);

    CHECK_STR(found.name, "IFirst");
    CHECK_EQ_U64(found.count, 5);
    CHECK_STR(found.methods[3].name, "get_Get");
    CHECK_STR(found.methods[4].name, "put_Get");
    CHECK_EQ_U64(found.methods[3].arguments, 5);
    CHECK_EQ_U64(found.methods[4].arguments, 6);
    CHECK(found.methods[3].result == HFN_COM_HRESULT);
}

static void methods_of_base_interfaces_come_first(void)
{
    hfn_com_interface found = find(&iids[1]);

    CHECK_STR(found.name, "ISecond");
    CHECK_EQ_U64(found.count, 8);
    CHECK_STR(found.methods[4].name, "put_Get");
    CHECK_STR(found.methods[7].name, "R?n");
    CHECK(found.methods[7].result == HFN_COM_OTHER_RESULT);
    found = find(&iids[2]);
    CHECK_STR(found.name, "IThird");
    CHECK_EQ_U64(found.count, 7);
    CHECK_STR(found.methods[6].name, "Invoke");
}

/* Descriptions of types: IUnknown **, IThird **, a pointer to an imported type, and long *. */
enum { DESCRIPTIONS = 0x380, TO_UNKNOWN = 0, TO_THIRD = 24, TO_IMPORTED = 48, TO_LONG = 56 };

static void put_description(uint32_t at, uint32_t type, uint32_t value)
{
    put(DESCRIPTIONS + at, type);
    put(DESCRIPTIONS + at + 4, value);
}

/* Run gets three parameters. */
static hfn_span make_outputs(const uint32_t types[3], const uint32_t flags[3])
{
    enum { POINTER = 0x1A, REFERENCE = 0x1D, RECORD = FUNCTIONS + 0x80 + 4, RECORD_BYTES = 60 };
    hfn_span library = make_library();

    put_segment(9, DESCRIPTIONS, 64);
    put_description(TO_UNKNOWN, POINTER, 0x8000000D);
    put_description(8, REFERENCE, 2 * TYPE_BYTES);
    put_description(16, POINTER, 8);
    put_description(TO_THIRD, POINTER, 16);
    put_description(32, REFERENCE, 1);
    put_description(40, POINTER, 32);
    put_description(TO_IMPORTED, POINTER, 40);
    put_description(TO_LONG, POINTER, 0x80000003);
    put(IMPORTS, 0x04010000);
    put(RECORD - 4, RECORD_BYTES);
    put(RECORD, RECORD_BYTES);
    put(RECORD + 0x14, 3);
    for (uint32_t i = 0; i < 3; i++) {
        put(RECORD + 24 + 12 * i, types[i]);
        put(RECORD + 24 + 12 * i + 8, flags[i]);
    }
    return library;
}

static void check_output(const hfn_com_output *output, uint32_t argument, const hfn_guid *iid)
{
    CHECK_EQ_U64(output->argument, argument);
    CHECK(argument == 0 || hfn_guid_equals(&output->iid, iid));
}

static void interfaces_that_are_returned_are_known(void)
{
    static const uint32_t types[][3] = { { TO_UNKNOWN, TO_LONG, TO_THIRD },
                                         { 0x80000003, TO_IMPORTED, TO_UNKNOWN },
                                         { 16, 0x7FFFFFFF, 8 } };
    static const uint32_t out[3] = { 2, 2, 10 }, in[3] = { 1, 2, 1 };
    hfn_com_interface found = { .name = "" };

    CHECK(hfn_typelib_find(&found, make_outputs(types[0], out), &iids[1]));
    check_output(&found.methods[7].outputs[0], 1, &hfn_iid_unknown);
    check_output(&found.methods[7].outputs[1], 3, &iids[2]);
    found = (hfn_com_interface){ .name = "" };
    CHECK(hfn_typelib_find(&found, make_outputs(types[1], in), &iids[1]));
    check_output(&found.methods[7].outputs[0], 2, &dispatch);
    check_output(&found.methods[7].outputs[1], 0, NULL);
    found = (hfn_com_interface){ .name = "" };
    CHECK(hfn_typelib_find(&found, make_outputs(types[2], out), &iids[1]));
    check_output(&found.methods[7].outputs[0], 0, NULL);
}

static void other_interfaces_and_other_files_are_not_found(void)
{
    hfn_com_interface found = { .name = "" };
    hfn_span library = make_library();

    CHECK(!hfn_typelib_find(&found, library, &missing));
    CHECK(!hfn_typelib_find(&found, (hfn_span){ NULL, 0, false }, &iids[0]));
    bytes[0] = 'S';
    CHECK(!hfn_typelib_find(&found, library, &iids[0]));
    CHECK(found.name[0] == 0 && found.count == 0);
}

static void a_library_that_was_cut_off_is_read_as_far_as_it_goes(void)
{
    for (uint64_t size = 0; size < BYTES; size++) {
        hfn_com_interface found = { .name = "" };
        hfn_span library = make_library();

        hfn_typelib_find(&found, hfn_span_sub(library, 0, size), &iids[1]);
        CHECK(found.count <= 8);
    }
}

static const check_test tests[] = {
    CHECK_TEST(methods_have_slots_names_arguments_and_results),
    CHECK_TEST(methods_of_base_interfaces_come_first),
    CHECK_TEST(interfaces_that_are_returned_are_known),
    CHECK_TEST(other_interfaces_and_other_files_are_not_found),
    CHECK_TEST(a_library_that_was_cut_off_is_read_as_far_as_it_goes),
};

CHECK_MAIN(tests)
