/* SPDX-License-Identifier: MIT */
/* Claims about the sort: order, and the order of equals. */
#include "base/sort.h"

#include "check.h"

typedef struct item {
    uint32_t key, place;
} item;

static bool key_before(const void *a, const void *b)
{
    return ((const item *)a)->key < ((const item *)b)->key;
}

static void check_sorted(item *items, size_t count, item *room)
{
    item *sorted = hfn_sort(items, room, count, sizeof *items, key_before);

    for (size_t i = 1; i < count; i++) {
        bool in_order =
            sorted[i - 1].key < sorted[i].key ||
            (sorted[i - 1].key == sorted[i].key && sorted[i - 1].place < sorted[i].place);
        if (!CHECK(in_order))
            return;
    }
}

static void any_length_is_sorted_and_stable(void)
{
    item items[300], room[300];
    uint32_t seed = 1;

    for (size_t count = 0; count < 300; count++) {
        for (uint32_t i = 0; i < count; i++) {
            seed = seed * 1664525u + 1013904223u;
            items[i] = (item){ (seed >> 16) % 50, i };
        }
        check_sorted(items, count, room);
    }
}

static void sorted_and_reversed_runs_are_fine(void)
{
    item items[256], room[256];

    for (uint32_t i = 0; i < 256; i++)
        items[i] = (item){ i, i };
    check_sorted(items, 256, room);
    for (uint32_t i = 0; i < 256; i++)
        items[i] = (item){ 256 - i, i };
    check_sorted(items, 256, room);
}

static const check_test tests[] = {
    CHECK_TEST(any_length_is_sorted_and_stable),
    CHECK_TEST(sorted_and_reversed_runs_are_fine),
};
CHECK_MAIN(tests)
