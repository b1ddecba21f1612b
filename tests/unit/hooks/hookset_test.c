/* SPDX-License-Identifier: MIT */
/* A hook set on functions of this process.  With every strategy the hooked functions return correct
 * results, are counted, and get their bytes back; a function that cannot be patched is refused with
 * its reason. */
#include "strategies.h"

/* ---- Claims. */

static void every_strategy_counts_and_restores(void)
{
    fixture f = make_fixture();
    uint32_t module;

    check_answers(&f);
    make_hooks(&f, 0);
    CHECK_EQ_I64(add_all(&f, &module), HOTFN_OK);
    CHECK_EQ_U64(commit(&f).hooked, FUNCTIONS);
    for (int i = 0; i < 100; i++) {
        check_answers(&f);
    }
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        if (!CHECK_EQ_U64(slots[SLOT_BASE + i], 100)) {
            printf("# function %u\n", i);
        }
    }
    CHECK_EQ_I64(hotfn_hooks_remove(f.hooks, NULL), HOTFN_OK);
    CHECK_MEM(f.code.bytes, f.before, sizeof f.before);
    check_answers(&f);
    CHECK_EQ_U64(slots[SLOT_BASE], 100);
    finish_fixture(&f);
}

static void add_one(fixture *f, uint32_t index, uint32_t kind, void (*callback)(void *), void *user)
{
    hotfn_hook_action action = HOTFN_HOOK_ACTION_INIT;
    uint32_t module;

    action.kind = kind;
    action.slot = SLOT_BASE + index;
    action.callback = callback;
    action.user = user;
    CHECK_EQ_I64(hotfn_hooks_add(f->hooks, f->plan, base_of(f), index, &action, &module, NULL),
                 HOTFN_OK);
}

static void increment(void *user)
{
    ++*(uint64_t *)user;
}

static void every_action_works_with_every_strategy(void)
{
    fixture f = make_fixture();
    uint64_t called[FUNCTIONS] = { 0 };

    make_hooks(&f, HOTFN_HOOKS_NO_UNWIND);
    for (uint32_t i = FUNCTIONS; i-- > 0;) { /* in any order */
        add_one(&f, i, HOTFN_ACTION_CALL, increment, &called[i]);
    }
    CHECK_EQ_U64(commit(&f).hooked, FUNCTIONS);
    check_answers(&f);
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        CHECK_EQ_U64(called[i], 1);
    }
    CHECK_EQ_I64(hotfn_hooks_remove(f.hooks, NULL), HOTFN_OK);
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        add_one(&f, i, i & 1 ? HOTFN_ACTION_FLOOR : HOTFN_ACTION_COUNT, NULL, NULL);
    }
    CHECK_EQ_U64(commit(&f).hooked, FUNCTIONS);
    check_answers(&f);
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        CHECK_EQ_U64(slots[SLOT_BASE + i], !(i & 1));
    }
    finish_fixture(&f);
}

/* The hooks are added one by one, so that the batch grows.  Slots are near the start of the row and
 * far from it, because these have different stubs. */
static void every_slot_of_the_row_counts_its_function(void)
{
    static const uint32_t slot_of[FUNCTIONS] = { 0, 511, 15, 16, 17, 255, 14, 256 };
    fixture f = make_fixture();
    hotfn_hook_action action = HOTFN_HOOK_ACTION_INIT;
    uint64_t all = 0;
    uint32_t module;

    make_hooks(&f, 0);
    action.kind = HOTFN_ACTION_COUNT;
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        action.slot = slot_of[i];
        CHECK_EQ_I64(hotfn_hooks_add(f.hooks, f.plan, base_of(&f), i, &action, &module, NULL),
                     HOTFN_OK);
    }
    CHECK_EQ_U64(commit(&f).hooked, FUNCTIONS);
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        for (uint32_t n = 0; n <= i; n++) {
            call(&f, i, 1, 2);
        }
        if (!CHECK_EQ_U64(slots[slot_of[i]], i + 1)) {
            printf("# function %u\n", i);
        }
    }
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
        all += slots[i];
    }
    CHECK_EQ_U64(all, FUNCTIONS * (FUNCTIONS + 1) / 2);
    finish_fixture(&f);
}

typedef struct refusals {
    uint32_t count, function_index, reason, offset;
} refusals;

static void note_refusal(void *user, uint32_t module, uint32_t function_index, uint32_t reason,
                         uint32_t offset)
{
    refusals *r = user;

    (void)module;
    *r = (refusals){ r->count + 1, function_index, reason, offset };
}

static void poke(const fixture *f, uint32_t rva, uint8_t byte)
{
    mprotect(f->code.bytes, CODE_BYTES, PROT_READ | PROT_WRITE);
    f->code.bytes[rva] = byte;
    target_code_finish(&f->code);
}

static void check_breakpoint(uint32_t function, uint32_t offset)
{
    fixture f = make_fixture();
    refusals r = { 0, 0, 0, 0 };
    uint32_t module, at = f.rva[function] + offset;
    uint8_t before = f.code.bytes[at];
    hotfn_commit_stats stats;

    poke(&f, at, 0xcd);
    make_hooks(&f, 0);
    add_all(&f, &module);
    stats = commit(&f);
    CHECK_EQ_U64(stats.hooked, FUNCTIONS - 1);
    CHECK_EQ_U64(stats.refused, 1);
    CHECK_EQ_U64(f.code.bytes[at], 0xcd);
    hotfn_hooks_each_refused(f.hooks, note_refusal, &r);
    CHECK_EQ_U64(r.count, 1);
    CHECK_EQ_U64(r.function_index, function);
    CHECK_EQ_U64(r.reason, HOTFN_REASON_BYTES_DIFFER);
    CHECK_EQ_U64(r.offset, offset);
    CHECK_EQ_I64(hotfn_hooks_remove(f.hooks, NULL), HOTFN_OK);
    poke(&f, at, before);
    finish_fixture(&f);
}

static void a_breakpoint_in_the_bytes_is_refused(void)
{
    /* The other functions are hooked and restored all the same, even after the first is refused. */
    check_breakpoint(PLAIN, 0);
    check_breakpoint(LANDING_PAD, 8);
    check_breakpoint(ISLAND, 1);
    check_breakpoint(ISLAND, 6 + 2); /* in the place of its island */
    check_breakpoint(PUN, 4);        /* a byte that is not changed, but is part of the jump */
}

static void a_function_is_hooked_once(void)
{
    fixture f = make_fixture();
    uint32_t module, again;

    make_hooks(&f, 0);
    add_all(&f, &module);
    CHECK_EQ_U64(commit(&f).hooked, FUNCTIONS);
    add_all(&f, &again);
    CHECK_EQ_U64(again, module);
    CHECK_EQ_U64(commit(&f).refused, FUNCTIONS);
    check_answers(&f);
    CHECK_EQ_U64(slots[SLOT_BASE], 1);
    finish_fixture(&f);
}

static void check_left_alone(uint32_t function, uint32_t offset)
{
    fixture f = make_fixture();
    uint32_t module, at = f.rva[function] + offset, hooked = 0;

    make_hooks(&f, 0);
    add_all(&f, &module);
    commit(&f);
    poke(&f, at, 0xcd);
    CHECK_EQ_I64(hotfn_hooks_remove(f.hooks, NULL), HOTFN_E_MISMATCH);
    CHECK_EQ_U64(f.code.bytes[at], 0xcd);
    for (uint32_t i = 0; i < FUNCTIONS; i++) { /* only the changed function is still hooked */
        hooked += memcmp(f.code.bytes + f.rva[i], f.before + f.rva[i], 4) != 0;
    }
    CHECK(hooked <= 1);
    mprotect(f.code.bytes, CODE_BYTES, PROT_READ | PROT_WRITE);
    memcpy(f.code.bytes, f.before, CODE_BYTES);
    target_code_finish(&f.code);
    finish_fixture(&f);
}

static void bytes_that_other_code_changed_are_not_restored(void)
{
    check_left_alone(PLAIN, 0);
    check_left_alone(ISLAND, 0);
    check_left_alone(ISLAND, 6 + 4); /* a byte of its island */
}

static void hooking_again_uses_the_same_stubs(void)
{
    fixture f = make_fixture();
    uint32_t module, regions;

    make_hooks(&f, 0);
    add_all(&f, &module);
    CHECK(commit(&f).stub_bytes > 0);
    regions = hotfn_hooks_get_region_count(f.hooks);
    CHECK_EQ_U64(regions, 2); /* the pun's stub has a separate region */
    for (int i = 0; i < 10; i++) {
        hotfn_commit_stats stats;
        CHECK_EQ_I64(hotfn_hooks_remove(f.hooks, NULL), HOTFN_OK);
        add_all(&f, &module);
        stats = commit(&f);
        CHECK_EQ_U64(stats.hooked, FUNCTIONS);
        CHECK_EQ_U64(stats.stub_bytes, 0);
    }
    CHECK_EQ_U64(hotfn_hooks_get_region_count(f.hooks), regions);
    check_answers(&f);
    finish_fixture(&f);
}

static void a_forgotten_module_is_not_touched(void)
{
    fixture f = make_fixture();
    uint32_t module, again;
    hotfn_plan *plan;

    make_hooks(&f, 0);
    add_all(&f, &module);
    commit(&f);
    hotfn_hooks_forget_module(f.hooks, module);
    CHECK_EQ_I64(hotfn_hooks_remove(f.hooks, NULL), HOTFN_OK);
    CHECK(memcmp(f.code.bytes, f.before, CODE_BYTES) != 0);
    /* It is loaded again at the same address, with another plan. */
    mprotect(f.code.bytes, CODE_BYTES, PROT_READ | PROT_WRITE);
    memcpy(f.code.bytes, f.before, CODE_BYTES);
    target_code_finish(&f.code);
    plan = f.plan;
    CHECK_EQ_I64(hotfn_plan_open(&f.plan, plan->bytes, plan->byte_count, 1, NULL, NULL), HOTFN_OK);
    add_all(&f, &again);
    CHECK_EQ_U64(again, module);
    CHECK_EQ_U64(commit(&f).stub_bytes, 0);
    check_answers(&f);
    finish_fixture(&f);
    hotfn_plan_destroy(plan);
}

typedef struct stub_notes {
    const fixture *f;
    uint32_t count;
    uint64_t bytes;
} stub_notes;

static void note_stub(void *user, uint64_t address, uint32_t byte_count, uint32_t module,
                      uint32_t function_index)
{
    stub_notes *notes = user;
    hotfn_stub_region region = HOTFN_STUB_REGION_INIT;

    (void)module;
    CHECK(function_index < FUNCTIONS);
    CHECK(hotfn_hooks_find_region(notes->f->hooks, address, &region));
    CHECK(region.begin <= address && address + byte_count <= region.end);
    CHECK(hotfn_hooks_find_region(notes->f->hooks, address + byte_count - 1, &region));
    notes->count++;
    notes->bytes += byte_count;
}

static void regions_and_stubs_are_found(void)
{
    fixture f = make_fixture();
    stub_notes notes = { &f, 0, 0 };
    hotfn_stub_region region = HOTFN_STUB_REGION_INIT, next = HOTFN_STUB_REGION_INIT;
    uint32_t module;

    make_hooks(&f, 0);
    CHECK(!hotfn_hooks_find_region(f.hooks, base_of(&f), &region));
    add_all(&f, &module);
    commit(&f);
    hotfn_hooks_each_stub(f.hooks, note_stub, &notes);
    CHECK_EQ_U64(notes.count, FUNCTIONS);
    CHECK(!hotfn_hooks_find_region(f.hooks, base_of(&f), &region));
    CHECK(!hotfn_hooks_find_region(f.hooks, 0, &region));
    CHECK(!hotfn_hooks_find_region(f.hooks, UINT64_MAX, &region));
    for (uint32_t i = 0; i < hotfn_hooks_get_region_count(f.hooks); i++) {
        CHECK_EQ_I64(hotfn_hooks_get_region(f.hooks, i, &region), HOTFN_OK);
        CHECK(region.eh_frame && region.eh_frame_hdr);
        CHECK(!hotfn_hooks_find_region(f.hooks, region.end, &next) || next.begin == region.end);
    }
    CHECK_EQ_I64(hotfn_hooks_get_region(f.hooks, 99, &region), HOTFN_E_NOT_FOUND);
    finish_fixture(&f);
}

static void invalid_requests_are_refused(void)
{
    fixture f = make_fixture();
    hotfn_hook_options options = HOTFN_HOOK_OPTIONS_INIT;
    hotfn_hook_action action = HOTFN_HOOK_ACTION_INIT;
    hotfn_hooks *none = NULL;
    uint32_t module;

    options.flags = 1u << 31;
    CHECK_EQ_I64(hotfn_hooks_create(&none, &options, NULL, NULL, NULL), HOTFN_E_OPTION);
    CHECK(none == NULL);
    options.flags = 0;
    options.near_range_bytes = UINT64_C(1) << 40;
    CHECK_EQ_I64(hotfn_hooks_create(&none, &options, NULL, NULL, NULL), HOTFN_E_OPTION);
    CHECK_EQ_I64(hotfn_hooks_create(&f.hooks, NULL, NULL, NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(add_all(&f, &module), HOTFN_E_STATE); /* there is no row to count in */
    action.kind = 77;
    CHECK_EQ_I64(hotfn_hooks_add(f.hooks, f.plan, base_of(&f), 0, &action, &module, NULL),
                 HOTFN_E_OPTION);
    action.kind = HOTFN_ACTION_CALL;
    CHECK_EQ_I64(hotfn_hooks_add(f.hooks, f.plan, base_of(&f), 0, &action, &module, NULL),
                 HOTFN_E_OPTION);
    action.kind = HOTFN_ACTION_FLOOR;
    CHECK_EQ_I64(hotfn_hooks_add(f.hooks, f.plan, base_of(&f), 999, &action, &module, NULL),
                 HOTFN_E_NOT_FOUND);
    hotfn_hooks_destroy(f.hooks);
    make_hooks(&f, 0);
    action.kind = HOTFN_ACTION_COUNT;
    action.slot = 1u << 28; /* 2 GiB after the start of the row */
    CHECK_EQ_I64(hotfn_hooks_add(f.hooks, f.plan, base_of(&f), 0, &action, &module, NULL),
                 HOTFN_E_LIMIT);
    CHECK_EQ_U64(commit(&f).hooked, 0);
    hotfn_hooks_destroy(NULL);
    finish_fixture(&f);
}

static void a_hook_without_near_memory_is_refused(void)
{
    fixture f = make_fixture();
    hotfn_hook_options options = HOTFN_HOOK_OPTIONS_INIT;
    hotfn_row_access access = row_access();
    refusals r = { 0, 0, 0, 0 };
    uint32_t module;

    options.near_range_bytes = 4096; /* less than the code itself, so no near page is free */
    CHECK_EQ_I64(hotfn_hooks_create(&f.hooks, &options, &access, NULL, NULL), HOTFN_OK);
    add_all(&f, &module);
    CHECK_EQ_U64(commit(&f).hooked, 0);
    hotfn_hooks_each_refused(f.hooks, note_refusal, &r);
    CHECK_EQ_U64(r.count, FUNCTIONS);
    CHECK_EQ_U64(r.reason, HOTFN_REASON_NO_NEAR_MEMORY);
    finish_fixture(&f);
}

/* The module is divided into address ranges, because it is larger than the near range. */
static void one_slot_out_of_reach_refuses_the_whole_module(void)
{
    fixture f = make_fixture();
    hotfn_hook_options options = HOTFN_HOOK_OPTIONS_INIT;
    hotfn_row_access access = row_access();
    refusals r = { 0, 0, 0, 0 };
    uint32_t module, slot_of[FUNCTIONS];

    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        slot_of[i] = i;
    }
    slot_of[FUNCTIONS - 1] = 1u << 28;
    options.near_range_bytes = 64; /* less than the size of the code */
    CHECK_EQ_I64(hotfn_hooks_create(&f.hooks, &options, &access, NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_hooks_add_module(f.hooks, f.plan, base_of(&f), slot_of, &module, NULL),
                 HOTFN_E_LIMIT);
    CHECK_EQ_U64(commit(&f).hooked, 0);
    hotfn_hooks_each_refused(f.hooks, note_refusal, &r);
    CHECK_EQ_U64(r.count, 0); /* no hook was requested */
    finish_fixture(&f);
}

static void unmapped_code_is_not_writable(void)
{
    fixture f = make_fixture();
    hotfn_commit_stats stats = HOTFN_COMMIT_STATS_INIT;
    refusals r = { 0, 0, 0, 0 };
    uint32_t module;

    make_hooks(&f, 0);
    add_all(&f, &module);
    munmap(f.code.bytes, CODE_BYTES);
    CHECK_EQ_I64(hotfn_hooks_commit(f.hooks, &stats, NULL), HOTFN_E_DENIED);
    hotfn_hooks_each_refused(f.hooks, note_refusal, &r);
    CHECK_EQ_U64(r.count, FUNCTIONS);
    CHECK_EQ_U64(r.reason, HOTFN_REASON_NOT_WRITABLE);
    hotfn_hooks_destroy(f.hooks);
    hotfn_plan_destroy(f.plan);
}

/* A commit succeeds if at least one hook could be written; removal reports hooks in unmapped
 * code. */
static void removal_from_unmapped_code_is_denied(void)
{
    fixture f = make_fixture(), gone = make_fixture();
    hotfn_commit_stats stats;
    hotfn_error err = HOTFN_ERROR_INIT;

    make_hooks(&f, 0);
    gone.hooks = f.hooks;
    add_one(&f, PLAIN, HOTFN_ACTION_COUNT, NULL, NULL);
    add_one(&gone, PLAIN, HOTFN_ACTION_COUNT, NULL, NULL);
    munmap(gone.code.bytes, CODE_BYTES);
    stats = commit(&f);
    CHECK_EQ_U64(stats.hooked, 1);
    CHECK_EQ_U64(stats.refused, 1);
    munmap(f.code.bytes, CODE_BYTES);
    CHECK_EQ_I64(hotfn_hooks_remove(f.hooks, &err), HOTFN_E_DENIED);
    CHECK(strstr(err.text, "1 hooks and 0 redirected calls are in code") != NULL);
    hotfn_hooks_destroy(f.hooks);
    hotfn_plan_destroy(f.plan);
    hotfn_plan_destroy(gone.plan);
}

static const check_test tests[] = {
    CHECK_TEST(every_strategy_counts_and_restores),
    CHECK_TEST(every_action_works_with_every_strategy),
    CHECK_TEST(every_slot_of_the_row_counts_its_function),
    CHECK_TEST(a_breakpoint_in_the_bytes_is_refused),
    CHECK_TEST(a_function_is_hooked_once),
    CHECK_TEST(bytes_that_other_code_changed_are_not_restored),
    CHECK_TEST(hooking_again_uses_the_same_stubs),
    CHECK_TEST(a_forgotten_module_is_not_touched),
    CHECK_TEST(regions_and_stubs_are_found),
    CHECK_TEST(invalid_requests_are_refused),
    CHECK_TEST(a_hook_without_near_memory_is_refused),
    CHECK_TEST(one_slot_out_of_reach_refuses_the_whole_module),
    CHECK_TEST(unmapped_code_is_not_writable),
    CHECK_TEST(removal_from_unmapped_code_is_denied),
};
CHECK_MAIN(tests)
