/* SPDX-License-Identifier: MIT */
/* The objects to which interface pointers belong, from their creation to their release. */
#include "runtimes/com_objects.h"

#include "check.h"

static const hfn_guid one = { 1, 0, 0, { 0 } }, two = { 2, 0, 0, { 0 } };

static bool end_by(uint64_t pointer)
{
    hfn_com_pointer found;

    return hfn_com_find_pointer(&found, pointer) && hfn_com_end_object(&found);
}

static void an_object_is_created_once_until_it_ends(void)
{
    CHECK(hfn_com_open_objects());
    CHECK(hfn_com_add_object(0x1000, &one));
    CHECK(!hfn_com_add_object(0x1000, &one));
    CHECK(end_by(0x1000));
    CHECK(!end_by(0x1000));
    CHECK(hfn_com_add_object(0x1000, &two));
    CHECK(end_by(0x1000));
}

static void each_pointer_ends_its_object(void)
{
    hfn_com_pointer found;

    CHECK(hfn_com_add_object(0x2000, &one));
    hfn_com_add_pointer(0x2000, 0x2010);
    hfn_com_add_pointer(0x2010, 0x2020);
    CHECK(hfn_com_find_pointer(&found, 0x2020) && hfn_guid_equals(&found.class, &one));
    CHECK(end_by(0x2020));
    CHECK(!end_by(0x2000));
}

static void a_pointer_of_an_earlier_object_does_not_end_a_new_one(void)
{
    hfn_com_pointer before;

    CHECK(hfn_com_add_object(0x3000, &one));
    hfn_com_add_pointer(0x3000, 0x3010);
    CHECK(hfn_com_find_pointer(&before, 0x3000));
    CHECK(end_by(0x3000));
    CHECK(hfn_com_add_object(0x3000, &two));
    CHECK(!end_by(0x3010));
    CHECK(!hfn_com_end_object(&before));
    CHECK(end_by(0x3000));
}

static void a_class_object_has_a_class_and_no_end(void)
{
    hfn_com_pointer found;

    hfn_com_add_class_object(0x4000, &two);
    CHECK(hfn_com_find_pointer(&found, 0x4000) && hfn_guid_equals(&found.class, &two));
    CHECK(!hfn_com_end_object(&found));
    CHECK(!hfn_com_find_pointer(&found, 0x4010));
}

static void a_known_pointer_keeps_its_table(void)
{
    hfn_com_pointer found;

    CHECK(hfn_com_add_object(0x5000, &one));
    hfn_com_set_table(0x5000, 0x77);
    hfn_com_set_table(0x5010, 0x78);
    CHECK(hfn_com_find_pointer(&found, 0x5000) && found.table == 0x77);
    CHECK(!hfn_com_find_pointer(&found, 0x5010));
}

static void many_objects_are_distinguished(void)
{
    for (uint64_t i = 0; i < 100000; i++) {
        CHECK(hfn_com_add_object(0x100000 + 48 * i, &one));
    }
    for (uint64_t i = 0; i < 100000; i++) {
        CHECK(end_by(0x100000 + 48 * i));
    }
}

static const check_test tests[] = {
    CHECK_TEST(an_object_is_created_once_until_it_ends),
    CHECK_TEST(each_pointer_ends_its_object),
    CHECK_TEST(a_pointer_of_an_earlier_object_does_not_end_a_new_one),
    CHECK_TEST(a_class_object_has_a_class_and_no_end),
    CHECK_TEST(a_known_pointer_keeps_its_table),
    CHECK_TEST(many_objects_are_distinguished),
};

CHECK_MAIN(tests)
