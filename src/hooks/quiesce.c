/* SPDX-License-Identifier: MIT */
/*
 * Stops the other threads so that no thread executes bytes that change.
 *
 * A thread whose PC is inside a patch, but not at its first byte, continues in the moved copy of
 * its instruction, in the stub, which is already executable.  A thread at the first byte
 * stays: it will execute the patch.  On removal only a thread at an island's jump is moved: it
 * continues at the function.
 */
#include "hooks/quiesce.h"

#include "hooks/patch.h"
#include "hooks/trampoline.h"

/* On a busy machine a thread may not be scheduled within the time limit.  Then all threads are
 * released and stopped again. */
enum { ATTEMPTS = 10 };

typedef struct quiesced_work {
    const hotfn_hooks *hooks;
    bool to_remove;
    hfn_quiesced_fn work;
    void *user;
} quiesced_work;

/* Index of the last hook whose function begins at or before rva; false if there is none. */
static bool find_hook(const hotfn_hooks *hooks, const hfn_batch *batch, uint64_t rva,
                      uint32_t *index)
{
    const hotfn_plan *plan = hfn_batch_module(hooks, batch)->plan;
    uint32_t low = 0, high = batch->hook_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (hfn_plan_rva_at(plan, batch->hooks[middle] & HFN_HOOK_ENTRY) <= rva) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *index = low - 1;
    return low > 0;
}

static uint64_t find_stub_address(const hotfn_hooks *hooks, const hfn_batch *batch, uint32_t index)
{
    hfn_stub_walk walk = hfn_stub_walk_begin(hooks, batch);

    while (hfn_stub_walk_next(&walk)) {
        if (walk.index == index) {
            return walk.address;
        }
    }
    return 0;
}

/* Is the hook's patch in place, or will it be? */
static bool is_patched(const hfn_batch *batch, uint32_t index, const hfn_plan_hook *hook,
                       uint64_t base)
{
    return batch->state == HFN_BATCH_PATCHED ? (batch->hooks[index] & HFN_HOOK_PATCHED) != 0
                                             : hfn_patch_compare(hook, base) == HFN_PATCH_SAME;
}

static uint64_t adjust_for_patch(const hotfn_hooks *hooks, const hfn_batch *batch, uint64_t pc)
{
    uint64_t base = hfn_batch_module(hooks, batch)->base, site, address;
    hfn_plan_hook hook;
    uint32_t index, moved;

    if (pc < base || !find_hook(hooks, batch, pc - base, &index) ||
        (batch->hooks[index] & (HFN_HOOK_REFUSED | HFN_HOOK_OFF))) {
        return pc;
    }
    hfn_batch_hook(hooks, batch, index, &hook);
    site = base + hook.site_rva;
    if (pc <= site || pc >= site + hook.patch_bytes || !is_patched(batch, index, &hook, base)) {
        return pc;
    }
    moved = hfn_trampoline_moved_pc(batch->kind, &hook, (uint32_t)(pc - site));
    address = find_stub_address(hooks, batch, index);
    return moved == UINT32_MAX || address == 0 ? pc : address + moved;
}

/* An island may be in the padding after any other function, so all islands are compared. */
static uint64_t adjust_for_removal(const hotfn_hooks *hooks, const hfn_batch *batch, uint64_t pc)
{
    uint64_t base = hfn_batch_module(hooks, batch)->base;

    for (uint32_t i = 0; i < batch->hook_count; i++) {
        hfn_plan_hook hook;
        hfn_batch_hook(hooks, batch, i, &hook);
        if (hook.island_rva != 0 && pc == base + hook.island_rva) {
            return base + hook.site_rva;
        }
    }
    return pc;
}

/* HOT PATH: stopped threads may hold any lock. */
static uint64_t adjust_pc(void *user, uint64_t pc)
{
    const quiesced_work *q = user;
    const hotfn_hooks *hooks = q->hooks;

    for (size_t i = 0; i < hooks->batch_count; i++) {
        const hfn_batch *batch = &hooks->batches[i];
        if (q->to_remove && batch->state == HFN_BATCH_PATCHED) {
            pc = adjust_for_removal(hooks, batch, pc);
        } else if (!q->to_remove && batch->state == HFN_BATCH_PENDING) {
            pc = adjust_for_patch(hooks, batch, pc);
        }
    }
    return pc;
}

static void run_work(void *user)
{
    const quiesced_work *q = user;

    q->work(q->user);
}

bool hfn_run_quiesced(hotfn_hooks *hooks, bool to_remove, hfn_quiesced_fn work, void *user)
{
    quiesced_work q = { hooks, to_remove, work, user };
    bool done = false;
    hfn_os_interruptions interruptions;

    if (hooks->space) {
        return hooks->space->run_stopped(hooks->space->user, adjust_pc, run_work, &q);
    }
    if (!(hooks->options.flags & HOTFN_HOOKS_SINGLE_THREADED) && !hfn_os_is_single_threaded()) {
        for (int i = 0; i < ATTEMPTS && !done; i++) {
            done = hfn_os_with_threads_stopped(hooks->options.quiesce_ns, adjust_pc, run_work, &q);
        }
        return done;
    }
    hfn_os_block_interruptions(&interruptions);
    work(user);
    hfn_os_restore_interruptions(&interruptions);
    return true;
}

uint64_t hfn_hooks_move_pc(const hotfn_hooks *hooks, uint64_t pc)
{
    for (size_t i = 0; i < hooks->batch_count; i++) {
        if (hooks->batches[i].state == HFN_BATCH_PATCHED) {
            pc = adjust_for_patch(hooks, &hooks->batches[i], pc);
        }
    }
    return pc;
}

bool hfn_hooks_each_island(const hotfn_hooks *hooks, hfn_island_fn visit, void *user)
{
    bool ok = true;

    for (size_t i = 0; i < hooks->batch_count; i++) {
        const hfn_batch *batch = &hooks->batches[i];
        uint64_t base = hfn_batch_module(hooks, batch)->base;

        for (uint32_t n = 0; batch->state == HFN_BATCH_PATCHED && ok && n < batch->hook_count;
             n++) {
            hfn_plan_hook hook;
            hfn_batch_hook(hooks, batch, n, &hook);
            if (hook.island_rva != 0 && (batch->hooks[n] & HFN_HOOK_PATCHED)) {
                ok = visit(user, base + hook.island_rva, base + hook.site_rva);
            }
        }
    }
    return ok;
}
