/* SPDX-License-Identifier: MIT */
/* The sort: the order of items, and that equal items keep their order. */
#include "base/sort.h"

#include "base/counting_env.h"
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
    item *sorted = hfn_sort_items(items, room, count, sizeof *items, key_before);

    for (size_t i = 1; i < count; i++) {
        bool in_order =
            sorted[i - 1].key < sorted[i].key ||
            (sorted[i - 1].key == sorted[i].key && sorted[i - 1].place < sorted[i].place);
        if (!CHECK(in_order)) {
            return;
        }
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

    for (uint32_t i = 0; i < 256; i++) {
        items[i] = (item){ i, i };
    }
    check_sorted(items, 256, room);
    for (uint32_t i = 0; i < 256; i++) {
        items[i] = (item){ 256 - i, i };
    }
    check_sorted(items, 256, room);
}

static void an_array_of_an_env_is_sorted_in_place(void)
{
    counting c;
    hotfn_env env = counting_env(&c);
    size_t capacity = 0;
    item *items = NULL;

    CHECK(hfn_sort_array(&env, (void **)&items, 0, 0, sizeof *items, key_before));
    CHECK(hfn_grow_array(&env, (void **)&items, &capacity, 3, sizeof *items));
    memcpy(items, (item[]){ { 1, 0 }, { 1, 1 }, { 2, 2 } }, 3 * sizeof *items);
    c.fail_at = c.requests + 1;
    CHECK(hfn_sort_array(&env, (void **)&items, capacity, 3, sizeof *items, key_before));
    items[0].key = 3;
    CHECK(!hfn_sort_array(&env, (void **)&items, capacity, 3, sizeof *items, key_before));
    CHECK_EQ_U64(items[0].key, 3);
    c.fail_at = 0;
    CHECK(hfn_sort_array(&env, (void **)&items, capacity, 3, sizeof *items, key_before));
    CHECK_EQ_U64(items[0].place, 1);
    CHECK_EQ_U64(items[2].place, 0);
    hfn_free_memory(&env, items, capacity * sizeof *items);
    CHECK_EQ_U64(c.live_bytes, 0);
    CHECK_EQ_I64(c.size_mismatches, 0);
}

static const check_test tests[] = {
    CHECK_TEST(an_array_of_an_env_is_sorted_in_place),
    CHECK_TEST(any_length_is_sorted_and_stable),
    CHECK_TEST(sorted_and_reversed_runs_are_fine),
};
CHECK_MAIN(tests)
