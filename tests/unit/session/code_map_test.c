/* SPDX-License-Identifier: MIT */
/* The map from code addresses to slots, by which sampled calls find their callers. */
#include "session/process.h"

#include "counters/timing/timing.h"

#include "check.h"

#define FIRST_BASE UINT64_C(0x7f0000000000)
#define SECOND_BASE UINT64_C(0x550000000000)

static hotfn_record_function function_at(uint64_t rva, uint64_t byte_count, uint32_t state)
{
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;

    f.rva = rva;
    f.byte_count = byte_count;
    f.state = state;
    f.name = "f";
    return f;
}

static hfn_live *make_live(uint32_t timing)
{
    hfn_live_options o = { 0 };
    hfn_live *live = NULL;

    o.slot_capacity = 16;
    o.thread_capacity = 2;
    o.string_bytes = 1 << 12;
    o.timing = timing;
    CHECK_EQ_I64(hfn_live_create(&live, &o, NULL, NULL), HOTFN_OK);
    return live;
}

static uint32_t add_module(hfn_live *live, const char *path, const hotfn_record_function *functions,
                           uint32_t count)
{
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    uint32_t index = UINT32_MAX;

    m.path = path;
    m.function_count = count;
    CHECK_EQ_I64(hfn_live_add_module(live, &m, functions, &index, NULL), HOTFN_OK);
    return index;
}

/* The map of four modules: two with functions, one not recorded, one not selected.  NULL on
 * failure. */
static const hfn_code_map *map_modules(hfn_live *live)
{
    const hotfn_record_function first[] = { function_at(0x100, 0x20, HOTFN_STATE_WAITING),
                                            function_at(0x120, 0x40, HOTFN_STATE_REFUSED),
                                            function_at(0x180, 0x10, HOTFN_STATE_WAITING) };
    const hotfn_record_function second[] = { function_at(0x1000, 0x8, HOTFN_STATE_WAITING) };
    hfn_loaded_module loaded[] = {
        { .base = FIRST_BASE, .live_module = add_module(live, "first", first, 3) },
        { .base = FIRST_BASE + 0x10000, .live_module = UINT32_MAX },
        { .base = FIRST_BASE + 0x20000, .live_module = add_module(live, "not selected", NULL, 0) },
        { .base = SECOND_BASE, .live_module = add_module(live, "second", second, 1) },
    };
    hfn_process p = { .env = hfn_env_fill(NULL),
                      .live = live,
                      .loaded = loaded,
                      .loaded_count = sizeof loaded / sizeof *loaded };

    hfn_timing_set_code(NULL);
    hfn_process_map_code(&p);
    return hfn_time_code;
}

static void check_range(const hfn_code_range *r, uint64_t begin, uint64_t end, uint32_t slot)
{
    CHECK_EQ_U64(r->begin, begin);
    CHECK_EQ_U64(r->end, end);
    CHECK_EQ_U64(r->slot, slot);
}

/* Slots follow the order of modules. */
static void map_lists_functions_with_a_slot_by_address(void)
{
    hfn_live *live = make_live(HOTFN_TIMING_TIMES | HOTFN_TIMING_SAMPLED);
    /* Static, so that leak checkers find it: maps are never freed while threads may read them. */
    static const hfn_code_map *map;

    map = map_modules(live);
    if (CHECK(map != NULL) && CHECK_EQ_U64(map->count, 3)) {
        check_range(&map->ranges[0], SECOND_BASE + 0x1000, SECOND_BASE + 0x1008, 2);
        check_range(&map->ranges[1], FIRST_BASE + 0x100, FIRST_BASE + 0x120, 0);
        check_range(&map->ranges[2], FIRST_BASE + 0x180, FIRST_BASE + 0x190, 1);
    }
    hfn_live_close(live);
}

static void map_exists_only_if_calls_are_sampled(void)
{
    hfn_live *counted = make_live(0), *timed = make_live(HOTFN_TIMING_TIMES);

    CHECK(map_modules(counted) == NULL);
    CHECK(map_modules(timed) == NULL);
    hfn_live_close(counted);
    hfn_live_close(timed);
}

static const check_test tests[] = {
    CHECK_TEST(map_lists_functions_with_a_slot_by_address),
    CHECK_TEST(map_exists_only_if_calls_are_sampled),
};
CHECK_MAIN(tests)
