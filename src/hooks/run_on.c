/* SPDX-License-Identifier: MIT */
/*
 * The code is copied as it stands in memory, which no patch of this set may have changed yet: a copy of a
 * patched branch would outlive its hook.  So only the first hooks of a module run on.
 */
#include "hooks/run_on.h"

#include "base/memory.h"

/* Where some hook's patch begins, or among the bytes that it moves. */
typedef struct barred {
    const hotfn_plan *plan;
    uint64_t base;
} barred;

static bool is_barred(const void *user, uint64_t address)
{
    const barred *b = user;
    uint64_t rva = address - b->base;
    uint32_t low = 0, high = b->plan->entry_count;
    hfn_plan_hook hook;

    while (low < high) { /* the first entry behind rva */
        uint32_t middle = low + (high - low) / 2;
        if (hfn_plan_rva_at(b->plan, middle) <= rva) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0) {
        return false;
    }
    hfn_plan_hook_at(b->plan, low - 1, &hook);
    return rva < (uint64_t)hook.site_rva + hook.original_bytes;
}

/* Its number of bytes, or 0. */
static uint32_t make(uint8_t *out, uint64_t address, const hfn_plan_hook *hook, uint64_t base)
{
    barred b = { hook->plan, base };
    hfn_run run = {
        .moved = hook->moved,
        .moved_bytes = hook->moved_bytes,
        .fixup_count = hook->fixup_count,
        .begin = base + hook->site_rva + hook->original_bytes,
        .end = base + hook->run_end_rva,
        .is_barred = is_barred,
        .user = &b,
    };

    if (!hfn_stub_get_patching()->run_on || hook->strategy != HOTFN_STRATEGY_JUMP ||
        hook->cfi_bytes > 0 || run.begin >= run.end) {
        return 0;
    }
    for (uint32_t i = 0; i < hook->fixup_count; i++) {
        const uint8_t *fixup = hook->fixups + i * PLAN_FIXUP_BYTES;
        run.fixups[i] = (hfn_fixup){
            .at = fixup[0],
            .end = fixup[1],
            .target_rva = base + hook->site_rva + (uint64_t)hfn_read_signed_le32(fixup + 2),
        };
    }
    return hfn_stub_get_patching()->run_on(&run, address, out);
}

static bool is_untouched(const hotfn_hooks *hooks, uint32_t module)
{
    for (size_t i = 0; i < hooks->batch_count; i++) {
        if (hooks->batches[i].module == module && hooks->batches[i].state == HFN_BATCH_STANDING) {
            return false;
        }
    }
    return true;
}

/* A copy of a jump that must come back would not. */
void hfn_run_on_measure(hotfn_hooks *hooks, hfn_batch *batch)
{
    uint64_t base = hfn_batch_module(hooks, batch)->base;
    uint8_t out[HFN_RUN_MAX_BYTES];

    if (!batch->often || batch->runs || (hooks->options.flags & HOTFN_HOOKS_KEEP_CALLS) ||
        !is_untouched(hooks, batch->module)) {
        return;
    }
    batch->runs = hfn_alloc(&hooks->env, batch->hook_count * sizeof *batch->runs);
    for (uint32_t i = 0; batch->runs && i < batch->hook_count; i++) {
        hfn_plan_hook hook;
        hfn_batch_hook(hooks, batch, i, &hook);
        if (batch->kind == HOTFN_ACTION_COUNT || hook.comeback_count == 0) {
            batch->runs[i] = (uint16_t)make(out, base + hook.site_rva, &hook, base);
        }
    }
}

bool hfn_run_on_write(uint8_t *out, uint64_t address, const hfn_plan_hook *hook, uint64_t base)
{
    uint8_t code[HFN_RUN_MAX_BYTES];

    if (make(code, address, hook, base) != hook->run_bytes) {
        return false;
    }
    memcpy(out, code, hook->run_bytes);
    return true;
}
