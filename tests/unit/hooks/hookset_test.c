/* SPDX-License-Identifier: MIT */
/* A hook set on functions of this process: they go on doing what they did, are counted, and get their
 * bytes back. */
#include "row.h"
#include "targets.h"

#include "hooks/hookset.h"

/* lea eax, [rdi + 1]; add eax, esi; ret */
static const uint8_t add_plus_one[] = { 0x8d, 0x47, 0x01, 0x01, 0xf0, 0xc3 };
/* push rbp; mov rbp, rsp; lea eax, [rdi + rsi]; pop rbp; ret */
static const uint8_t add_framed[] = { 0x55, 0x48, 0x89, 0xe5, 0x8d, 0x04, 0x37, 0x5d, 0xc3 };

static int call(const target_code *code, uint32_t rva, int x, int y)
{
    int (*function)(int, int);
    void *at = target_at(code, rva);

    memcpy(&function, &at, sizeof function);
    return function(x, y);
}

static void hooked_functions_work_and_are_counted(void)
{
    target_code code = target_code_make(4096);
    uint32_t a = target_add(&code, add_plus_one, sizeof add_plus_one);
    uint32_t b = target_add(&code, add_framed, sizeof add_framed);
    hfn_plan_writer *writer = hfn_plan_writer_create(NULL, HOTFN_MACHINE_X86_64, 2);
    hotfn_row_access access = row_access();
    hotfn_commit_stats stats = HOTFN_COMMIT_STATS_INIT;
    uint8_t before[4096];
    hfn_moved moved;
    hfn_plan_source source;
    hotfn_plan *plan;
    hotfn_hooks *hooks;
    uint32_t module;

    source = target_source(&code, 0, a, &moved, 5);
    CHECK_EQ_I64(hfn_plan_writer_add(writer, &source), HOTFN_OK);
    source = target_source(&code, 1, b, &moved, 5);
    CHECK_EQ_I64(hfn_plan_writer_add(writer, &source), HOTFN_OK);
    CHECK_EQ_I64(hfn_plan_writer_finish(writer, &plan, NULL), HOTFN_OK);
    hfn_plan_writer_destroy(writer);
    target_code_finish(&code);
    memcpy(before, code.bytes, sizeof before);

    CHECK_EQ_I64(hotfn_hooks_create(&hooks, NULL, &access, NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_hooks_add_module(hooks, plan, (uint64_t)(uintptr_t)code.bytes,
                                        (uint32_t[]){ 3, 5 }, &module, NULL),
                 HOTFN_OK);
    CHECK_EQ_I64(hotfn_hooks_commit(hooks, &stats, NULL), HOTFN_OK);
    CHECK_EQ_U64(stats.hooked, 2);
    CHECK(memcmp(before, code.bytes, sizeof before) != 0);
    for (int i = 0; i < 1000; i++) {
        CHECK(call(&code, a, i, 2) == i + 3);
        if (i & 1)
            CHECK(call(&code, b, i, 2) == i + 2);
    }
    CHECK_EQ_U64(slots[3], 1000);
    CHECK_EQ_U64(slots[5], 500);
    CHECK_EQ_U64(slow_calls, 1);
    CHECK_EQ_I64(hotfn_hooks_remove(hooks, NULL), HOTFN_OK);
    CHECK_MEM(code.bytes, before, sizeof before);
    hotfn_hooks_destroy(hooks);
    hotfn_plan_destroy(plan);
}

static const check_test tests[] = {
    CHECK_TEST(hooked_functions_work_and_are_counted),
};
CHECK_MAIN(tests)
