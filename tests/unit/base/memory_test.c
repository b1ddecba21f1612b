/* SPDX-License-Identifier: MIT */
/* Memory: every request is made through the env with its true size, and a failed request is
 * reported. */
#include "base/memory.h"

#include "base/counting_env.h"
#include "check.h"

static void a_missing_env_gets_defaults(void)
{
    hotfn_env env = hfn_env_fill(NULL);
    void *memory = hfn_allocate_zeroed(&env, 100);

    CHECK(env.realloc_fn != NULL);
    CHECK(env.log_fn == NULL);
    CHECK(memory != NULL);
    hfn_free_memory(&env, memory, 100);
}

static void a_shorter_env_of_an_older_caller_is_fine(void)
{
    counting c;
    hotfn_env env = counting_env(&c), filled;

    env.size = offsetof(hotfn_env, log_fn);
    filled = hfn_env_fill(&env);
    CHECK(filled.realloc_fn == counting_realloc);
    CHECK(filled.log_fn == NULL);
    CHECK_EQ_U64(filled.size, sizeof filled);
}

static void memory_is_zeroed_and_freed_with_its_size(void)
{
    counting c;
    hotfn_env env = counting_env(&c);
    uint8_t *memory = hfn_allocate_zeroed(&env, 64), zero[64] = { 0 };
    void *nothing = hfn_allocate_zeroed(&env, 0);

    CHECK_MEM(memory, zero, 64);
    CHECK(nothing != NULL);
    hfn_free_memory(&env, memory, 64);
    hfn_free_memory(&env, nothing, 0);
    hfn_free_memory(&env, NULL, 5);
    CHECK_EQ_U64(c.live_bytes, 0);
    CHECK_EQ_I64(c.size_mismatches, 0);
}

static void a_growing_array_keeps_its_items(void)
{
    counting c;
    hotfn_env env = counting_env(&c);
    uint32_t *items = NULL;
    size_t capacity = 0;

    for (uint32_t i = 0; i < 1000; i++) {
        if (!CHECK(hfn_grow_array(&env, (void **)&items, &capacity, i + 1u, sizeof *items))) {
            return;
        }
        items[i] = i;
    }
    for (uint32_t i = 0; i < 1000; i++) {
        CHECK_EQ_U64(items[i], i);
    }
    hfn_free_memory(&env, items, capacity * sizeof *items);
    CHECK_EQ_U64(c.live_bytes, 0);
    CHECK_EQ_I64(c.size_mismatches, 0);
}

static void growth_that_fails_changes_nothing(void)
{
    counting c;
    hotfn_env env = counting_env(&c);
    uint32_t *items = NULL, *before;
    size_t capacity = 0, capacity_before;

    CHECK(hfn_grow_array(&env, (void **)&items, &capacity, 1, sizeof *items));
    before = items;
    capacity_before = capacity;
    CHECK(!hfn_grow_array(&env, (void **)&items, &capacity, SIZE_MAX / 2, sizeof *items));
    c.fail_at = c.requests + 1;
    CHECK(!hfn_grow_array(&env, (void **)&items, &capacity, capacity + 1, sizeof *items));
    CHECK(items == before && capacity == capacity_before);
    hfn_free_memory(&env, items, capacity * sizeof *items);
}

static void an_arena_gives_aligned_zeroed_memory(void)
{
    counting c;
    hotfn_env env = counting_env(&c);
    hfn_arena arena;

    hfn_arena_init(&arena, &env);
    for (size_t i = 0; i < 5000; i++) {
        uint8_t *memory = hfn_arena_alloc(&arena, i % 97);
        if (!CHECK(memory && (uintptr_t)memory % (2 * sizeof(void *)) == 0)) {
            break;
        }
        for (size_t k = 0; k < i % 97; k++) {
            if (!CHECK(memory[k] == 0)) {
                break;
            }
        }
        memset(memory, 0xaa, i % 97);
    }
    CHECK_STR(hfn_arena_copy(&arena, "names", 4), "name");
    CHECK(hfn_arena_alloc(&arena, 1 << 20) != NULL);
    CHECK(hfn_arena_alloc(&arena, SIZE_MAX) == NULL);
    hfn_arena_finish(&arena);
    CHECK_EQ_U64(c.live_bytes, 0);
    CHECK_EQ_I64(c.size_mismatches, 0);
}

static const check_test tests[] = {
    CHECK_TEST(a_missing_env_gets_defaults),
    CHECK_TEST(a_shorter_env_of_an_older_caller_is_fine),
    CHECK_TEST(memory_is_zeroed_and_freed_with_its_size),
    CHECK_TEST(a_growing_array_keeps_its_items),
    CHECK_TEST(growth_that_fails_changes_nothing),
    CHECK_TEST(an_arena_gives_aligned_zeroed_memory),
};
CHECK_MAIN(tests)
