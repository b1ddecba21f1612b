/* SPDX-License-Identifier: MIT */
/* One function for each strategy, in memory that only the test uses, and a plan of them. */
#ifndef HFN_TESTS_HOOKS_STRATEGIES_H
#define HFN_TESTS_HOOKS_STRATEGIES_H

#include "row.h"
#include "targets.h"

#include "arch/stub.h"
#include "arch/x86/relocate.h"

#include <hotfn/lowlevel/hooks.h>

enum { CODE_BYTES = 8192, ROOM_BYTES = 64 << 20, SLOT_BASE = 10 };

/* Each adds its two arguments (and perhaps a constant). */
/* lea eax, [rdi + 1]; add eax, esi; ret */
static const uint8_t plain[] =
    TARGET_BYTES((0x8d, 0x47, 0x01, 0x01, 0xf0, 0xc3), (0x8d, 0x41, 0x01, 0x01, 0xd0, 0xc3));
/* endbr64; push rbp; mov rbp, rsp; lea eax, [rdi + rsi]; pop rbp; ret */
static const uint8_t landing_pad[] =
    TARGET_BYTES((0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x8d, 0x04, 0x37, 0x5d, 0xc3),
                 (0xf3, 0x0f, 0x1e, 0xfb, 0x55, 0x89, 0xe5, 0x8d, 0x04, 0x11, 0x5d, 0xc3));
/* call +3 (the lea behind the ret); nop; nop; ret; lea eax, [rdi + rsi]; ret */
static const uint8_t call_first[] =
    TARGET_BYTES((0xe8, 0x03, 0, 0, 0, 0x90, 0x90, 0xc3, 0x8d, 0x04, 0x37, 0xc3),
                 (0xe8, 0x03, 0, 0, 0, 0x90, 0x90, 0xc3, 0x8d, 0x04, 0x11, 0xc3));
/* lea eax, [rdi + rsi]; ret; then padding */
static const uint8_t short_function[] =
    TARGET_BYTES((0x8d, 0x04, 0x37, 0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc),
                 (0x8d, 0x04, 0x11, 0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc));
/* lea eax, [rdi + rsi]; ret; 0: a jump over its first 3 bytes goes 0xc30000..0xc3ffff further */
static const uint8_t pun[] =
    TARGET_BYTES((0x8d, 0x04, 0x37, 0xc3, 0x00), (0x8d, 0x04, 0x11, 0xc3, 0x00));
/* lea rax, [rip + 16]; ret; or: call +3; ret; int3; int3; mov eax, [esp]; ret */
static const uint8_t address_of[] =
    TARGET_BYTES((0x48, 0x8d, 0x05, 0x10, 0, 0, 0, 0xc3),
                 (0xe8, 0x03, 0, 0, 0, 0xc3, 0xcc, 0xcc, 0x8b, 0x04, 0x24, 0xc3));
static const uint8_t answer_at[] = TARGET_BYTES((7 + 16), (5));
/* jc +3; lea eax, [rdi + rsi]; ret: reads the flags at its entry */
static const uint8_t reads_flags[] =
    TARGET_BYTES((0x72, 0x03, 0x8d, 0x04, 0x37, 0xc3), (0x72, 0x03, 0x8d, 0x04, 0x11, 0xc3));

enum { PLAIN, LANDING_PAD, RETARGET, JUMP_PAD, ISLAND, PUN, ADDRESS_OF, READS_FLAGS, FUNCTIONS };

typedef struct fixture {
    target_code code;
    uint32_t rva[FUNCTIONS];
    hotfn_plan *plan;
    hotfn_hooks *hooks;
    uint8_t before[CODE_BYTES];
} fixture;

static inline uint64_t base_of(const fixture *f)
{
    return (uint64_t)(uintptr_t)f->code.bytes;
}

/* How a function is patched. */
typedef struct manner {
    uint32_t strategy, flags, patch_offset, patch_bytes, moved_bytes;
    uint32_t scratch; /* a register that is dead, plus 1 */
} manner;

static const manner manners[FUNCTIONS] = {
    [PLAIN] = { HOTFN_STRATEGY_JUMP, 0, 0, 5, 5, 0 + 1 },
    [LANDING_PAD] = { HOTFN_STRATEGY_JUMP, HOTFN_VERDICT_LANDING_PAD, 4, 5, 5, 0 },
    [JUMP_PAD] = { HOTFN_STRATEGY_JUMP_PAD, 0, 0, 5, 4, 0 },
    [ISLAND] = { HOTFN_STRATEGY_ISLAND, 0, 0, 2, 2, 0 },
    [PUN] = { HOTFN_STRATEGY_PUN, 0, 0, 3, 3, 0 },
    [ADDRESS_OF] = { HOTFN_STRATEGY_JUMP, 0, 0, 5, 5, 0 },
    [READS_FLAGS] = { HOTFN_STRATEGY_JUMP, HOTFN_VERDICT_FLAGS_LIVE, 0, 5, 5, 0 },
};

static inline hfn_plan_new_entry source_for(const fixture *f, uint32_t index, hfn_moved *moved)
{
    const manner *m = &manners[index];
    uint32_t site = f->rva[index] + m->patch_offset;
    hfn_plan_new_entry source = target_source(&f->code, index, site, moved, m->moved_bytes);

    source.rva = f->rva[index];
    source.strategy = m->strategy;
    source.flags = m->flags;
    source.patch_offset = m->patch_offset;
    source.patch_bytes = m->patch_bytes;
    source.scratch = m->scratch;
    if (m->strategy == HOTFN_STRATEGY_ISLAND) {
        source.original_bytes = moved->original_bytes;
        source.island_rva = site + 6;
        source.island_original = f->code.bytes + source.island_rva;
    }
    return source;
}

static inline void add_functions(fixture *f)
{
    f->rva[PLAIN] = target_add(&f->code, plain, sizeof plain);
    f->rva[LANDING_PAD] = target_add(&f->code, landing_pad, sizeof landing_pad);
    f->rva[RETARGET] = target_add(&f->code, call_first, sizeof call_first);
    f->rva[JUMP_PAD] = target_add(&f->code, short_function, sizeof short_function);
    f->rva[ISLAND] = target_add(&f->code, short_function, sizeof short_function);
    f->rva[PUN] = target_add(&f->code, pun, sizeof pun);
    f->rva[ADDRESS_OF] = target_add(&f->code, address_of, sizeof address_of);
    f->rva[READS_FLAGS] = target_add(&f->code, reads_flags, sizeof reads_flags);
}

/* arch refuses to move a call; a retarget does not need it. */
static inline hfn_plan_new_entry retarget_source(const fixture *f, hfn_moved *moved)
{
    uint32_t rva = f->rva[RETARGET];
    hfn_plan_new_entry source = { .function_index = RETARGET,
                                  .rva = rva,
                                  .patch_bytes = 5,
                                  .strategy = HOTFN_STRATEGY_RETARGET,
                                  .original_bytes = 5,
                                  .original = f->code.bytes + rva,
                                  .moved = moved };

    CHECK(hfn_x86_make_retarget(TARGET_MODE, f->code.bytes + rva, 64, rva, moved));
    return source;
}

static inline fixture make_fixture(void)
{
    fixture f = { .plan = NULL };
    hfn_plan_writer *writer = hfn_plan_writer_create(NULL, TARGET_MACHINE, FUNCTIONS);

    f.code = target_code_make_apart(CODE_BYTES, ROOM_BYTES);
    add_functions(&f);
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        hfn_moved moved;
        hfn_plan_new_entry source =
            i == RETARGET ? retarget_source(&f, &moved) : source_for(&f, i, &moved);
        CHECK_EQ_I64(hfn_plan_writer_add(writer, &source), HOTFN_OK);
    }
    CHECK_EQ_I64(hfn_plan_writer_finish(writer, &f.plan, NULL), HOTFN_OK);
    hfn_plan_writer_destroy(writer);
    target_code_finish(&f.code);
    memcpy(f.before, f.code.bytes, sizeof f.before);
    return f;
}

static inline void finish_fixture(fixture *f)
{
    hotfn_hooks_destroy(f->hooks);
    CHECK_MEM(f->code.bytes, f->before, sizeof f->before);
    hotfn_plan_destroy(f->plan);
    munmap(f->code.bytes, CODE_BYTES);
}

static inline void make_hooks(fixture *f, uint32_t flags)
{
    hotfn_hook_options options = HOTFN_HOOK_OPTIONS_INIT;
    hotfn_row_access access = row_access();

    options.flags = flags;
    memset(slots, 0, sizeof slots);
    CHECK_EQ_I64(hotfn_hooks_create(&f->hooks, &options, &access, NULL, NULL), HOTFN_OK);
}

static inline hotfn_status add_all(fixture *f, uint32_t *module)
{
    uint32_t slot_of[FUNCTIONS];

    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        slot_of[i] = SLOT_BASE + i;
    }
    return hotfn_hooks_add_module(f->hooks, f->plan, base_of(f), slot_of, module, NULL);
}

static inline hotfn_commit_stats commit(fixture *f)
{
    hotfn_commit_stats stats = HOTFN_COMMIT_STATS_INIT;

    CHECK_EQ_I64(hotfn_hooks_commit(f->hooks, &stats, NULL), HOTFN_OK);
    return stats;
}

static inline uint32_t call(const fixture *f, uint32_t index, int x, int y)
{
    uint32_t(TARGET_CALL * function)(int, int);
    void *at = target_at(&f->code, f->rva[index]);

    memcpy(&function, &at, sizeof function);
    return function(x, y);
}

/* Every function still returns the correct result. */
static inline void check_answers(const fixture *f)
{
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        uint32_t got = call(f, i, 1000 + (int)i, 20);
        uint64_t address = base_of(f) + f->rva[ADDRESS_OF] + answer_at[0];
        CHECK_EQ_U64(got, i == ADDRESS_OF ? (uint32_t)address : 1020 + i + (i == PLAIN));
    }
}

#endif
