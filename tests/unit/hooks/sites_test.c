/* SPDX-License-Identifier: MIT */
/* Direct calls and jumps in hooked code are redirected to the stub of their target, count once, and
 * get their bytes back.  A site that differs from the plan is not changed. */
#include "row.h"
#include "targets.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { CODE_BYTES = 8192, SLOT_BASE = 10, CHANGES = 100, ROUNDS = 20 };
enum { SUM, CALLS, JUMPS, BRANCHES, FUNCTIONS };
enum { CALL_AT = 8, JUMP_AT = 5, BRANCH_AT = 5 };

/* lea eax, [rdi + rsi]; nop; nop; ret */
static const uint8_t sum[] =
    TARGET_BYTES((0x8d, 0x04, 0x37, 0x90, 0x90, 0xc3), (0x8d, 0x04, 0x11, 0x90, 0x90, 0xc3));
/* sub rsp, 8; nop; nop; nop; nop; call sum; add rsp, 8; ret */
static const uint8_t calls[] = TARGET_BYTES(
    (0x48, 0x83, 0xec, 0x08, 0x90, 0x90, 0x90, 0x90, 0xe8, 0, 0, 0, 0, 0x48, 0x83, 0xc4, 0x08,
     0xc3),
    (0x83, 0xec, 0x08, 0x90, 0x90, 0x90, 0x90, 0x90, 0xe8, 0, 0, 0, 0, 0x83, 0xc4, 0x08, 0xc3));
/* nop x 5; jmp sum */
static const uint8_t jumps[] = { 0x90, 0x90, 0x90, 0x90, 0x90, 0xe9, 0, 0, 0, 0 };
/* test edi, edi; nop x 3; jne sum; ret */
static const uint8_t branches[] =
    TARGET_BYTES((0x85, 0xff, 0x90, 0x90, 0x90, 0x0f, 0x85, 0, 0, 0, 0, 0xc3),
                 (0x85, 0xc9, 0x90, 0x90, 0x90, 0x0f, 0x85, 0, 0, 0, 0, 0xc3));

typedef struct fixture {
    target_code code;
    uint32_t rva[FUNCTIONS], field[FUNCTIONS];
    hotfn_plan *plan;
    hotfn_hooks *hooks;
    uint8_t before[CODE_BYTES];
} fixture;

static uint64_t base_of(const fixture *f)
{
    return (uint64_t)(uintptr_t)f->code.bytes;
}

/* Add a function whose 32-bit displacement at field_at has sum as its target. */
static void add_caller(fixture *f, uint32_t index, const uint8_t *bytes, size_t byte_count,
                       uint32_t field_at)
{
    f->rva[index] = target_add(&f->code, bytes, byte_count);
    f->field[index] = f->rva[index] + field_at;
    hfn_write_le32(f->code.bytes + f->field[index], f->rva[SUM] - (f->field[index] + 4));
}

/* Called at the entry and exit of a timed function; no test calls a timed function. */
static void on_time(void)
{
    abort();
}

/* timed: JUMPS is a timed function with a tail exit to sum. */
static fixture make_timed_or_counted(uint32_t hook_flags, bool timed)
{
    fixture f = { .plan = NULL };
    hfn_plan_writer *writer = hfn_plan_writer_create(NULL, TARGET_MACHINE, FUNCTIONS);
    hotfn_hook_options options = HOTFN_HOOK_OPTIONS_INIT;
    hotfn_row_access access = row_access();

    f.code = target_code_make(CODE_BYTES);
    f.code.used = 32; /* rva 0 means no tail target */
    f.rva[SUM] = target_add(&f.code, sum, sizeof sum);
    add_caller(&f, CALLS, calls, sizeof calls, CALL_AT + 1);
    f.code.used += 5000; /* farther than one step of the plan's site list can encode */
    add_caller(&f, JUMPS, jumps, sizeof jumps, JUMP_AT + 1);
    add_caller(&f, BRANCHES, branches, sizeof branches, BRANCH_AT + 2);
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        hfn_moved moved;
        hfn_plan_new_entry source = target_source(&f.code, i, f.rva[i], &moved, 5);
        source.end_rva = f.rva[i] + 32;
        source.section = i < JUMPS ? 1 : 2;
        if (timed && i == JUMPS) {
            source.flags = HOTFN_VERDICT_TIMED;
            source.tail_target_rva = f.rva[SUM];
            source.tail_exits = &f.field[JUMPS];
            source.tail_exit_count = 1;
        }
        CHECK_EQ_I64(hfn_plan_writer_add(writer, &source), HOTFN_OK);
    }
    for (uint32_t i = CALLS; i < FUNCTIONS; i++) {
        CHECK(hfn_plan_writer_add_site(writer, f.field[i], SUM));
    }
    CHECK(hfn_plan_writer_add_site(writer, CODE_BYTES - 8, SUM)); /* in no range: ignored */
    CHECK_EQ_I64(hfn_plan_writer_finish(writer, &f.plan, NULL), HOTFN_OK);
    hfn_plan_writer_destroy(writer);
    target_code_finish(&f.code);
    memcpy(f.before, f.code.bytes, sizeof f.before);
    options.flags = hook_flags;
    options.quiesce_ns = UINT64_C(5000000000); /* the machine may be busy with other tests */
    memset(slots, 0, sizeof slots);
    access.time_enter = access.time_exit = timed ? on_time : NULL;
    CHECK_EQ_I64(hotfn_hooks_create(&f.hooks, &options, &access, NULL, NULL), HOTFN_OK);
    return f;
}

static fixture make_fixture(uint32_t hook_flags)
{
    return make_timed_or_counted(hook_flags, false);
}

static void finish_fixture(fixture *f)
{
    hotfn_hooks_destroy(f->hooks);
    CHECK_MEM(f->code.bytes, f->before, sizeof f->before);
    hotfn_plan_destroy(f->plan);
    munmap(f->code.bytes, CODE_BYTES);
}

/* Hook the functions whose bit in the mask is set, and commit. */
static hotfn_commit_stats hook(fixture *f, uint32_t mask)
{
    hotfn_commit_stats stats = HOTFN_COMMIT_STATS_INIT;
    uint32_t slot_of[FUNCTIONS], module;

    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        slot_of[i] = mask >> i & 1 ? SLOT_BASE + i : UINT32_MAX;
    }
    CHECK_EQ_I64(hotfn_hooks_add_module(f->hooks, f->plan, base_of(f), slot_of, &module, NULL),
                 HOTFN_OK);
    CHECK_EQ_I64(hotfn_hooks_commit(f->hooks, &stats, NULL), HOTFN_OK);
    return stats;
}

/* The target of the displacement at rva `field`. */
static uint64_t target_of(const fixture *f, uint32_t field)
{
    int32_t distance = (int32_t)hfn_read_le32(f->code.bytes + field);

    return (uintptr_t)(base_of(f) + field + 4 + (uint64_t)(int64_t)distance);
}

/* The target of the patch at the function. */
static uint64_t stub_of(const fixture *f, uint32_t index)
{
    return target_of(f, f->rva[index] + 1);
}

static bool leads_to_stub(const fixture *f, uint32_t field)
{
    hotfn_stub_region region = HOTFN_STUB_REGION_INIT;

    return hotfn_hooks_find_region(f->hooks, target_of(f, field), &region) == 1;
}

static uint32_t call(const fixture *f, uint32_t index, int x, int y)
{
    uint32_t(TARGET_CALL * function)(int, int);
    void *at = target_at(&f->code, f->rva[index]);

    memcpy(&function, &at, sizeof function);
    return function(x, y);
}

static void call_all(const fixture *f, int times)
{
    for (int n = 0; n < times; n++) {
        for (uint32_t i = 0; i < FUNCTIONS; i++) {
            CHECK_EQ_U64(call(f, i, 30 + n, 4), 34u + (uint32_t)n);
        }
    }
}

static void poke_u32(const fixture *f, uint32_t rva, uint32_t value)
{
    mprotect(f->code.bytes, CODE_BYTES, PROT_READ | PROT_WRITE);
    hfn_write_le32(f->code.bytes + rva, value);
    target_code_finish(&f->code);
}

/* ---- Tests. */

static void redirected_calls_and_jumps_count_once(void)
{
    fixture f = make_fixture(0);
    hotfn_commit_stats stats = hook(&f, 15);

    CHECK_EQ_U64(stats.hooked, FUNCTIONS);
    CHECK_EQ_U64(stats.call_sites, 3);
    for (uint32_t i = CALLS; i < FUNCTIONS; i++) {
        CHECK(leads_to_stub(&f, f.field[i]));
    }
    call_all(&f, 100);
    CHECK_EQ_U64(slots[SLOT_BASE + SUM], 400);
    for (uint32_t i = CALLS; i < FUNCTIONS; i++) {
        CHECK_EQ_U64(slots[SLOT_BASE + i], 100);
    }
    CHECK_EQ_I64(hotfn_hooks_remove(f.hooks, NULL), HOTFN_OK);
    CHECK_MEM(f.code.bytes, f.before, sizeof f.before);
    CHECK_EQ_U64(hook(&f, 15).call_sites, 3); /* the second commit reuses the stubs */
    call_all(&f, 1);
    CHECK_EQ_U64(slots[SLOT_BASE + SUM], 404);
    finish_fixture(&f);
}

static void only_calls_of_hooked_functions_are_redirected(void)
{
    fixture f = make_fixture(0);

    CHECK_EQ_U64(hook(&f, 1 << CALLS | 1 << JUMPS).call_sites, 0);
    for (uint32_t i = CALLS; i < FUNCTIONS; i++) {
        CHECK_EQ_U64(target_of(&f, f.field[i]), base_of(&f) + f.rva[SUM]);
    }
    CHECK_EQ_U64(hook(&f, 1 << SUM).call_sites, 3); /* the callers need not be hooked */
    call_all(&f, 1);
    CHECK_EQ_U64(slots[SLOT_BASE + SUM], 4);
    CHECK_EQ_U64(slots[SLOT_BASE + JUMPS], 1);
    CHECK_EQ_U64(slots[SLOT_BASE + BRANCHES], 0);
    finish_fixture(&f);
}

static void calls_are_not_redirected_with_keep_calls_or_to_bare_stubs(void)
{
    fixture f = make_fixture(HOTFN_HOOKS_KEEP_CALLS);
    hotfn_hook_action action = HOTFN_HOOK_ACTION_INIT;
    hotfn_commit_stats stats = HOTFN_COMMIT_STATS_INIT;
    uint32_t module;

    CHECK_EQ_U64(hook(&f, 15).call_sites, 0);
    call_all(&f, 1);
    CHECK_EQ_U64(slots[SLOT_BASE + SUM], 4);
    finish_fixture(&f);
    f = make_fixture(0);
    action.kind = HOTFN_ACTION_FLOOR;
    hotfn_hooks_add(f.hooks, f.plan, base_of(&f), SUM, &action, &module, NULL);
    CHECK_EQ_I64(hotfn_hooks_commit(f.hooks, &stats, NULL), HOTFN_OK);
    CHECK_EQ_U64(stats.hooked, 1);
    CHECK_EQ_U64(stats.call_sites, 0);
    finish_fixture(&f);
}

static void a_call_that_differs_from_the_plan_is_not_redirected(void)
{
    fixture f = make_fixture(0);
    uint32_t own = hfn_read_le32(f.code.bytes + f.field[CALLS]);

    poke_u32(&f, f.field[CALLS], own + 3); /* after the lea */
    CHECK_EQ_U64(hook(&f, 15).call_sites, 2);
    CHECK_EQ_U64(hfn_read_le32(f.code.bytes + f.field[CALLS]), own + 3);
    CHECK_EQ_I64(hotfn_hooks_remove(f.hooks, NULL), HOTFN_OK);
    CHECK_EQ_U64(hfn_read_le32(f.code.bytes + f.field[CALLS]), own + 3);
    poke_u32(&f, f.field[CALLS], own);
    finish_fixture(&f);
}

/* Only the displacement agrees with the plan: the opcode before it is not call, jmp or jcc. */
static void check_no_branch(uint32_t index, uint32_t back, uint8_t byte)
{
    fixture f = make_fixture(0);
    uint32_t at = f.field[index] - back, before = hfn_read_le32(f.code.bytes + at);

    poke_u32(&f, at, (before & ~0xffu) | byte);
    CHECK_EQ_U64(hook(&f, 1 << SUM).call_sites, 2);
    CHECK_EQ_U64(hfn_read_le32(f.code.bytes + at), (before & ~0xffu) | byte);
    CHECK_EQ_I64(hotfn_hooks_remove(f.hooks, NULL), HOTFN_OK);
    poke_u32(&f, at, before);
    finish_fixture(&f);
}

static void bytes_that_are_not_a_branch_are_not_redirected(void)
{
    check_no_branch(CALLS, 1, 0xb8);
    check_no_branch(JUMPS, 1, 0xb9);
    check_no_branch(BRANCHES, 1, 0x94);
    check_no_branch(BRANCHES, 2, 0x0e);
}

static void a_call_that_other_code_changed_is_left_alone_and_reported(void)
{
    fixture f = make_fixture(0);
    uint32_t own = hfn_read_le32(f.code.bytes + f.field[JUMPS]);

    hook(&f, 15);
    poke_u32(&f, f.field[JUMPS], own + 1);
    CHECK_EQ_I64(hotfn_hooks_remove(f.hooks, NULL), HOTFN_E_MISMATCH);
    CHECK_EQ_U64(hfn_read_le32(f.code.bytes + f.field[JUMPS]), own + 1);
    poke_u32(&f, f.field[JUMPS], own);
    finish_fixture(&f);
}

/* Move the second page of the code away, or back to its place. */
static void move_page(const fixture *f, uint8_t *elsewhere, bool away)
{
    uint8_t *page = f->code.bytes + CODE_BYTES / 2, *to = away ? elsewhere : page;

    CHECK(mremap(away ? page : elsewhere, CODE_BYTES / 2, CODE_BYTES / 2,
                 MREMAP_MAYMOVE | MREMAP_FIXED, to) == (void *)to);
}

/* Install the hooks of the mask and move a page away: removal must report what was on that page. */
static void check_unwritable_page(uint32_t mask, const char *message)
{
    fixture f = make_fixture(0);
    uint8_t *elsewhere = mmap(NULL, CODE_BYTES / 2, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    hotfn_error err = HOTFN_ERROR_INIT;

    CHECK_EQ_U64(hook(&f, mask).call_sites, 3);
    move_page(&f, elsewhere, true);
    for (int again = 0; again < 2; again++) {
        CHECK_EQ_I64(hotfn_hooks_remove(f.hooks, &err), HOTFN_E_DENIED);
        CHECK(strstr(err.text, message) != NULL);
    }
    CHECK_EQ_U64(target_of(&f, f.field[CALLS]), base_of(&f) + f.rva[SUM]);
    move_page(&f, elsewhere, false);
    CHECK(leads_to_stub(&f, f.field[JUMPS]) && leads_to_stub(&f, f.field[BRANCHES]));
    call_all(&f, 1);
    CHECK_EQ_I64(hotfn_hooks_remove(f.hooks, NULL), HOTFN_OK);
    finish_fixture(&f);
}

static void unwritable_calls_are_reported_and_restored_later(void)
{
    check_unwritable_page(15, "2 hooks and 2 redirected calls");
    check_unwritable_page(1 << SUM, "0 hooks and 2 redirected calls");
}

static void a_call_of_a_refused_function_is_not_redirected(void)
{
    fixture f = make_fixture(0);
    uint32_t nops = hfn_read_le32(f.code.bytes + f.rva[SUM] + 2);
    hotfn_commit_stats stats;

    poke_u32(&f, f.rva[SUM] + 2, nops ^ 0x010000); /* 90 becomes 91 */
    stats = hook(&f, 15);
    CHECK_EQ_U64(stats.hooked, FUNCTIONS - 1);
    CHECK_EQ_U64(stats.call_sites, 0);
    CHECK_EQ_I64(hotfn_hooks_remove(f.hooks, NULL), HOTFN_OK);
    poke_u32(&f, f.rva[SUM] + 2, nops);
    finish_fixture(&f);
}

/* Functions that are added out of order become two batches, which are patched in one commit. */
static void calls_count_in_two_batches_of_one_commit(void)
{
    static const uint32_t order[FUNCTIONS] = { 1, 2, 0, 3 };
    fixture f = make_fixture(0);
    hotfn_commit_stats stats = HOTFN_COMMIT_STATS_INIT;
    hotfn_hook_action action = HOTFN_HOOK_ACTION_INIT;
    uint32_t module;

    action.kind = HOTFN_ACTION_COUNT;
    for (int again = 0; again < 2; again++) {
        memset(slots, 0, sizeof slots);
        for (uint32_t i = 0; i < FUNCTIONS; i++) {
            action.slot = SLOT_BASE + order[i];
            CHECK_EQ_I64(
                hotfn_hooks_add(f.hooks, f.plan, base_of(&f), order[i], &action, &module, NULL),
                HOTFN_OK);
        }
        CHECK_EQ_I64(hotfn_hooks_commit(f.hooks, &stats, NULL), HOTFN_OK);
        CHECK_EQ_U64(stats.hooked, FUNCTIONS);
        CHECK_EQ_U64(stats.call_sites, 3);
        CHECK_EQ_U64(stats.copied_page_bytes, 2 * hfn_os_page_bytes());
        call_all(&f, 10);
        CHECK_EQ_U64(slots[SLOT_BASE + SUM], 40);
        CHECK_EQ_I64(hotfn_hooks_remove(f.hooks, NULL), HOTFN_OK);
        CHECK_MEM(f.code.bytes, f.before, sizeof f.before);
    }
    finish_fixture(&f);
}

/* ---- A timed function whose tail jump returns through its stub, on x86-64
 * (docs/design/timing.md). */
#if defined(__x86_64__)

static void finish_timed(fixture *f, uint32_t at, uint32_t before)
{
    hotfn_hooks_destroy(f->hooks);
    f->hooks = NULL;
    poke_u32(f, at, before);
    finish_fixture(f);
}

typedef struct stub_search {
    uint32_t function;
    uint64_t begin; /* found */
} stub_search;

static void find_stub(void *user, uint64_t address, uint32_t byte_count, uint32_t module,
                      uint32_t function_index)
{
    stub_search *search = user;

    (void)byte_count, (void)module;
    if (function_index == search->function) {
        search->begin = address;
    }
}

/* A call may be open while hooks are removed, so the tail exit stays redirected.  The next commit
 * accepts it. */
static void a_tail_exit_stays_after_removal(void)
{
    fixture f = make_timed_or_counted(0, true);
    uint32_t at = f.field[JUMPS], before = hfn_read_le32(f.code.bytes + at);
    stub_search stub = { JUMPS, 0 };
    uint64_t to;

    CHECK_EQ_U64(hook(&f, 15).hooked, FUNCTIONS);
    to = target_of(&f, at);
    hotfn_hooks_each_stub(f.hooks, find_stub, &stub);
    CHECK_EQ_U64(to, stub.begin); /* the front of the stub, which ends the call */
    CHECK(to != stub_of(&f, JUMPS));
    CHECK_EQ_U64(target_of(&f, f.field[CALLS]), stub_of(&f, SUM));
    CHECK_EQ_I64(hotfn_hooks_remove(f.hooks, NULL), HOTFN_OK);
    CHECK_EQ_U64(target_of(&f, at), to);
    CHECK_MEM(f.code.bytes, f.before, at);
    CHECK_MEM(f.code.bytes + at + 4, f.before + at + 4, CODE_BYTES - at - 4);
    CHECK_EQ_U64(hook(&f, 15).hooked, FUNCTIONS);
    CHECK_EQ_U64(target_of(&f, at), to);
    finish_timed(&f, at, before);
}

/* A function that is only counted has no open call at its jump. */
static void a_counted_function_has_no_tail_exit(void)
{
    fixture f = make_timed_or_counted(0, true);
    hotfn_hook_action action = HOTFN_HOOK_ACTION_INIT;
    hotfn_commit_stats stats = HOTFN_COMMIT_STATS_INIT;
    uint32_t module;

    action.kind = HOTFN_ACTION_COUNT;
    CHECK_EQ_I64(hotfn_hooks_add(f.hooks, f.plan, base_of(&f), JUMPS, &action, &module, NULL),
                 HOTFN_OK);
    CHECK_EQ_I64(hotfn_hooks_commit(f.hooks, &stats, NULL), HOTFN_OK);
    CHECK_EQ_U64(stats.hooked, 1);
    CHECK_EQ_U64(target_of(&f, f.field[JUMPS]), base_of(&f) + f.rva[SUM]);
    finish_fixture(&f);
}

/* A function whose jump cannot return to the stub is not hooked: its open call would never end. */
static void check_stays_unhooked(uint32_t back, uint32_t add)
{
    fixture f = make_timed_or_counted(0, true);
    uint32_t at = f.field[JUMPS] - back, before = hfn_read_le32(f.code.bytes + at);
    hotfn_commit_stats stats;

    poke_u32(&f, at, before + add);
    stats = hook(&f, 15);
    CHECK_EQ_U64(stats.hooked, FUNCTIONS - 1);
    CHECK_EQ_U64(stats.refused, 1);
    CHECK_EQ_U64(hfn_read_le32(f.code.bytes + at), before + add);
    CHECK_MEM(f.code.bytes + f.rva[JUMPS], f.before + f.rva[JUMPS], 5);
    finish_timed(&f, at, before);
}

static void a_changed_tail_jump_keeps_its_function_unhooked(void)
{
    check_stays_unhooked(0, 3); /* its target is after the lea of sum */
    check_stays_unhooked(1, 2); /* e9 becomes eb, a jump of 2 bytes */
}
#endif

/* ---- While another thread runs the callers. */

typedef struct runner {
    const fixture *f;
    _Atomic uint64_t rounds; /* completed; each round calls all functions once */
    _Atomic bool stopping, was_wrong;
} runner;

static void *run_callers(void *user)
{
    runner *r = user;

    for (int n = 0; !r->stopping; n = (n + 1) % 100) {
        for (uint32_t i = 0; i < FUNCTIONS; i++) {
            r->was_wrong = r->was_wrong || call(r->f, i, 30 + n, 4) != 34u + (uint32_t)n;
        }
        r->rounds++;
    }
    return NULL;
}

static void wait_for_rounds(runner *r)
{
    uint64_t until = r->rounds + ROUNDS;

    while (r->rounds < until) {
        sched_yield();
    }
}

static void calls_are_redirected_while_another_thread_executes_them(void)
{
    fixture f = make_fixture(0);
    runner r = { &f, 0, false, false };
    pthread_t thread;

    CHECK_EQ_I64(pthread_create(&thread, NULL, run_callers, &r), 0);
    for (int n = 0; n < CHANGES; n++) {
        hotfn_commit_stats stats = hook(&f, 15);
        uint64_t counted = slots[SLOT_BASE + SUM];
        CHECK_EQ_U64(stats.hooked, FUNCTIONS);
        CHECK_EQ_U64(stats.call_sites, 3);
        wait_for_rounds(&r); /* the first round may have begun before the commit */
        CHECK(slots[SLOT_BASE + SUM] - counted >= 4 * (ROUNDS - 1));
        CHECK_EQ_I64(hotfn_hooks_remove(f.hooks, NULL), HOTFN_OK);
        CHECK_MEM(f.code.bytes, f.before, sizeof f.before);
        wait_for_rounds(&r);
    }
    r.stopping = true;
    pthread_join(thread, NULL);
    CHECK(!r.was_wrong);
    finish_fixture(&f);
}

static const check_test tests[] = {
    CHECK_TEST(redirected_calls_and_jumps_count_once),
    CHECK_TEST(only_calls_of_hooked_functions_are_redirected),
    CHECK_TEST(calls_are_not_redirected_with_keep_calls_or_to_bare_stubs),
    CHECK_TEST(a_call_that_differs_from_the_plan_is_not_redirected),
    CHECK_TEST(bytes_that_are_not_a_branch_are_not_redirected),
    CHECK_TEST(a_call_that_other_code_changed_is_left_alone_and_reported),
    CHECK_TEST(unwritable_calls_are_reported_and_restored_later),
    CHECK_TEST(a_call_of_a_refused_function_is_not_redirected),
    CHECK_TEST(calls_count_in_two_batches_of_one_commit),
#if defined(__x86_64__)
    CHECK_TEST(a_tail_exit_stays_after_removal),
    CHECK_TEST(a_counted_function_has_no_tail_exit),
    CHECK_TEST(a_changed_tail_jump_keeps_its_function_unhooked),
#endif
    CHECK_TEST(calls_are_redirected_while_another_thread_executes_them),
};
CHECK_MAIN(tests)
