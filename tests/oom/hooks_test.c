/* SPDX-License-Identifier: MIT */
/* Hooks are installed and removed while the n-th allocation fails: the functions still return
 * correct results, their code is restored if the removal succeeded, and no freed unwind table stays
 * registered. */
#include "each_failure.h"
#include "hooks/row.h"
#include "hooks/targets.h"

#include <unwind.h>

enum { CODE_BYTES = 8192, ROOM_BYTES = 64 << 20 };
enum { SUM, PUN, CALLS, FUNCTIONS };

/* lea eax, [rdi + rsi]; nop; nop; ret */
static const uint8_t sum[] =
    TARGET_BYTES((0x8d, 0x04, 0x37, 0x90, 0x90, 0xc3), (0x8d, 0x04, 0x11, 0x90, 0x90, 0xc3));
/* lea eax, [rdi + rsi]; ret; 0: a jump over its first 3 bytes reaches 0xc30000..0xc3ffff further */
static const uint8_t pun[] =
    TARGET_BYTES((0x8d, 0x04, 0x37, 0xc3, 0x00), (0x8d, 0x04, 0x11, 0xc3, 0x00));
/* nop x 5; jmp sum */
static const uint8_t calls[] = { 0x90, 0x90, 0x90, 0x90, 0x90, 0xe9, 0, 0, 0, 0 };
enum { FIELD_AT = 6 };

typedef struct fixture {
    target_code code;
    uint32_t rva[FUNCTIONS];
    hotfn_plan *plan;
    uint8_t before[CODE_BYTES];
} fixture;

static fixture make_fixture(void)
{
    fixture f = { .plan = NULL };
    hfn_plan_writer *writer = hfn_plan_writer_create(NULL, TARGET_MACHINE, FUNCTIONS);

    f.code = target_code_make_apart(CODE_BYTES, ROOM_BYTES);
    f.rva[SUM] = target_add(&f.code, sum, sizeof sum);
    f.rva[PUN] = target_add(&f.code, pun, sizeof pun);
    f.rva[CALLS] = target_add(&f.code, calls, sizeof calls);
    hfn_write_le32(f.code.bytes + f.rva[CALLS] + FIELD_AT,
                   f.rva[SUM] - (f.rva[CALLS] + FIELD_AT + 4));
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        hfn_moved moved;
        hfn_plan_new_entry source = target_source(&f.code, i, f.rva[i], &moved, i == PUN ? 3 : 5);
        source.strategy = i == PUN ? HOTFN_STRATEGY_PUN : HOTFN_STRATEGY_JUMP;
        source.end_rva = f.rva[i] + 32;
        CHECK_EQ_I64(hfn_plan_writer_add(writer, &source), HOTFN_OK);
    }
    CHECK(hfn_plan_writer_add_site(writer, f.rva[CALLS] + FIELD_AT, SUM));
    CHECK_EQ_I64(hfn_plan_writer_finish(writer, &f.plan, NULL), HOTFN_OK);
    hfn_plan_writer_destroy(writer);
    target_code_finish(&f.code);
    memcpy(f.before, f.code.bytes, sizeof f.before);
    return f;
}

static void check_answers(const fixture *f)
{
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        uint32_t(TARGET_CALL * function)(int, int);
        void *at = target_at(&f->code, f->rva[i]);
        memcpy(&function, &at, sizeof function);
        CHECK_EQ_U64(function(30, 4), 34);
    }
}

static _Unwind_Reason_Code count_frame(struct _Unwind_Context *context, void *frames)
{
    (void)context;
    ++*(uint32_t *)frames;
    return _URC_NO_REASON;
}

/* Unwind the stack: libgcc then reads all registered tables, including any that was freed. */
static void check_unwinding(void)
{
    uint32_t frames = 0;

    _Unwind_Backtrace(count_frame, &frames);
    CHECK(frames > 0);
}

/* Round 1 hooks only the pun; round 2 hooks all functions, with slots in a different order than the
 * functions (two batches); round 3 hooks them again with the same stubs. */
enum { ROUNDS = 3 };
static const uint32_t slots_of[ROUNDS][FUNCTIONS] = { { UINT32_MAX, 1, UINT32_MAX },
                                                      { 300, 1, 0 },
                                                      { 300, 1, 0 } };

static hotfn_status hook(hotfn_hooks *hooks, const fixture *f, int round, hotfn_error *err)
{
    uint64_t base = (uint64_t)(uintptr_t)f->code.bytes;
    uint32_t module;
    hotfn_status status =
        hotfn_hooks_add_module(hooks, f->plan, base, slots_of[round], &module, err);

    check_answers(f);
    if (status == HOTFN_OK) {
        status = hotfn_hooks_commit(hooks, NULL, err);
    }
    check_answers(f);
    check_unwinding();
    return status;
}

static hotfn_status work(const void *user, const hotfn_env *env, hotfn_error *err)
{
    fixture f = make_fixture();
    hotfn_hook_options options = HOTFN_HOOK_OPTIONS_INIT;
    hotfn_row_access access = row_access();
    hotfn_hooks *hooks = NULL;
    hotfn_status status, removed;

    options.flags = HOTFN_HOOKS_REGISTER_UNWIND;
    status = hotfn_hooks_create(&hooks, &options, &access, env, err);
    (void)user;
    for (int round = 0; status == HOTFN_OK && round < ROUNDS; round++) {
        status = hook(hooks, &f, round, err);
        removed = hotfn_hooks_remove(hooks, status == HOTFN_OK ? err : NULL);
        if (removed == HOTFN_OK) {
            CHECK_MEM(f.code.bytes, f.before, sizeof f.before);
        }
        status = status == HOTFN_OK ? removed : status;
        check_answers(&f);
    }
    hotfn_hooks_destroy(hooks);
    check_answers(&f); /* if there was no memory to remove hooks, stubs stay */
    hotfn_plan_destroy(f.plan);
    munmap(f.code.bytes, CODE_BYTES);
    return status;
}

static void hooks_survive_every_failure(void)
{
    fail_each_request(work, NULL, 10);
}

static const check_test tests[] = {
    CHECK_TEST(hooks_survive_every_failure),
};
CHECK_MAIN(tests)
