/* SPDX-License-Identifier: MIT */
/*
 * Commit and removal: the protocol for changing the text of a running process.
 *
 *   PENDING -- commit --> PATCHED or refused -- remove --> RETIRED (its stubs stay mapped)
 *
 *   commit  1 build    write stubs and unwind data; make them executable
 *           2 open     make the text writable (patch_spans.c)
 *           3 prepare  refuse hooks that are not writable; copy the pages
 *           4 quiesce  stop all other threads; move their PCs out of the bytes (quiesce.c)
 *           5 write    compare with the plan, then patch: tail exits, entries (an island before its
 *                      short jump), call sites
 *           6 account  each hook becomes PATCHED or gets a reason
 *   remove  remove.c: 2, 4, then restore call sites, entries and islands, in this order
 *
 * While threads are stopped, no memory is allocated and no lock is taken, because a stopped thread
 * may hold the lock.  libc is not called either, because its own code may be half patched.
 */
#include "base/compiler.h"
#include "base/memory.h"
#include "base/status.h"
#include "hooks/hookset.h"
#include "hooks/near_pages.h"
#include "hooks/pages.h"
#include "hooks/patch.h"
#include "hooks/patch_spans.h"
#include "hooks/quiesce.h"
#include "hooks/sites.h"
#include "hooks/trampoline.h"

/* The state of one commit. */
typedef struct change {
    hotfn_hooks *hooks;
    hfn_patch_spans spans;
    uint32_t done;         /* hooks patched                   */
    uint32_t sites;        /* calls redirected to stubs       */
    uint64_t copied_bytes; /* pages copied for the process    */
} change;

static hfn_batch *get_batch_in_state(hotfn_hooks *hooks, size_t index, hfn_batch_state state)
{
    return hooks->batches[index].state == state ? &hooks->batches[index] : NULL;
}

/* ---- Build and open. */

static bool build_stubs(hotfn_hooks *hooks)
{
    hfn_region_list added = { NULL, 0, 0 };
    bool ok = true;

    for (size_t i = 0; i < hooks->batch_count; i++) {
        if (get_batch_in_state(hooks, i, HFN_BATCH_PENDING) && !hooks->batches[i].placed) {
            hfn_near_pages_reuse(hooks, &hooks->batches[i]);
        }
    }
    for (size_t i = 0; ok && i < hooks->batch_count; i++) {
        if (get_batch_in_state(hooks, i, HFN_BATCH_PENDING) && !hooks->batches[i].placed) {
            ok = hfn_near_pages_build(hooks, hooks->batches[i].module, &added);
        }
    }
    ok = hfn_regions_add(&hooks->regions, &hooks->env, added.regions, (uint32_t)added.count) && ok;
    hfn_free_memory(&hooks->env, added.regions, added.capacity * sizeof *added.regions);
    return ok;
}

/* The first patch may already run a replacement, which may call its original. */
static void store_originals(hotfn_hooks *hooks)
{
    for (size_t i = 0; i < hooks->batch_count; i++) {
        const hfn_batch *batch = get_batch_in_state(hooks, i, HFN_BATCH_PENDING);
        hfn_stub_walk walk;

        if (!batch || batch->kind != HOTFN_ACTION_REPLACE) {
            continue;
        }
        walk = hfn_stub_walk_begin(hooks, batch);
        while (hfn_stub_walk_next(&walk)) {
            uint64_t at = walk.address + hfn_stub_get_original_at(hfn_trampoline_flags(&walk.hook));
            hotfn_code *original = batch->actions[walk.index].original;

            if (original && !(batch->hooks[walk.index] & HFN_HOOK_REFUSED)) {
                __atomic_store_n(original, (hotfn_code)(uintptr_t)at, __ATOMIC_RELEASE);
            }
        }
    }
}

/* ---- Prepare. */

static void refuse_unwritable(change *c, hfn_batch *batch)
{
    uint64_t base = hfn_batch_module(c->hooks, batch)->base;

    if (hfn_patch_spans_are_open(&c->spans)) {
        return;
    }
    for (uint32_t i = 0; i < batch->hook_count; i++) {
        hfn_plan_hook hook;
        if (batch->hooks[i] & HFN_HOOK_REFUSED) {
            continue;
        }
        hfn_batch_hook(c->hooks, batch, i, &hook);
        if (!hfn_patch_spans_find(&c->spans, base + hook.site_rva)) {
            hfn_hooks_refuse(c->hooks, batch, i, HOTFN_REASON_NOT_WRITABLE, 0);
        }
    }
}

/* Calls of a function that is switched off are not redirected. */
static void forget_off_targets(hfn_batch *batch)
{
    for (uint32_t i = 0; batch->targets && i < batch->hook_count; i++) {
        if (batch->hooks[i] & HFN_HOOK_OFF) {
            batch->targets[batch->hooks[i] & HFN_HOOK_ENTRY].stub = 0;
        }
    }
}

static bool prepare_batches(change *c)
{
    for (size_t i = 0; i < c->hooks->batch_count; i++) {
        hfn_batch *batch = get_batch_in_state(c->hooks, i, HFN_BATCH_PENDING);
        if (!batch) {
            continue;
        }
        refuse_unwritable(c, batch);
        if (!hfn_sites_prepare(c->hooks, batch, HFN_HOOK_REFUSED | HFN_HOOK_PATCHED, 0)) {
            return false;
        }
        forget_off_targets(batch);
        c->copied_bytes += hfn_pages_populate(c->hooks, batch, &c->spans);
    }
    return true;
}

/* ---- Write.  HOT PATH: other threads are stopped, signals are blocked. */

/* Entries are prefetched this many hooks ahead: they are too far apart for the hardware
 * prefetcher. */
enum { HOOKS_AHEAD = 16 };

static void prefetch_entry(const hotfn_hooks *hooks, const hfn_batch *batch, uint32_t index)
{
    const hfn_module *module = hfn_batch_module(hooks, batch);

    if (index + HOOKS_AHEAD < batch->hook_count) {
        hfn_prefetch_line(
            module->base +
            hfn_plan_rva_at(module->plan, batch->hooks[index + HOOKS_AHEAD] & HFN_HOOK_ENTRY));
    }
}

static void write_batch(change *c, hfn_batch *batch)
{
    uint64_t base = hfn_batch_module(c->hooks, batch)->base;
    hfn_stub_walk walk = hfn_stub_walk_begin(c->hooks, batch);

    while (hfn_stub_walk_next(&walk)) {
        prefetch_entry(c->hooks, batch, walk.index);
        if (batch->hooks[walk.index] & (HFN_HOOK_REFUSED | HFN_HOOK_OFF | HFN_HOOK_PATCHED)) {
            continue;
        }
        if (!(batch->hooks[walk.index] & HFN_HOOK_BLOCKED) &&
            hfn_patch_compare(&walk.hook, base) == HFN_PATCH_SAME &&
            hfn_patch_write(&walk.hook, base, walk.entry,
                            hfn_patch_spans_find(&c->spans, base + walk.hook.site_rva))) {
            batch->hooks[walk.index] |= HFN_HOOK_PATCHED;
            c->done++;
        } else if (batch->targets) {
            batch->targets[batch->hooks[walk.index] & HFN_HOOK_ENTRY].stub = 0;
        }
    }
    hfn_sites_write(c->hooks, batch, &c->spans);
    c->sites += batch->sites_written;
}

static void write_all(void *user)
{
    change *c = user;

    for (size_t i = 0; i < c->hooks->batch_count; i++) {
        if (get_batch_in_state(c->hooks, i, HFN_BATCH_PENDING)) {
            hfn_sites_write_tail_exits(c->hooks, &c->hooks->batches[i], &c->spans);
        }
    }
    for (size_t i = 0; i < c->hooks->batch_count; i++) {
        if (get_batch_in_state(c->hooks, i, HFN_BATCH_PENDING)) {
            write_batch(c, &c->hooks->batches[i]);
        }
    }
}

/* ---- Account: each hook that is not patched gets a reason. */

static void account_batch(hotfn_hooks *hooks, hfn_batch *batch, bool busy)
{
    uint64_t base = hfn_batch_module(hooks, batch)->base;
    uint32_t kept_count = 0;

    for (uint32_t i = 0; i < batch->hook_count; i++) {
        hfn_plan_hook hook;
        uint32_t offset;
        kept_count += (batch->hooks[i] & (HFN_HOOK_PATCHED | HFN_HOOK_OFF)) != 0;
        if (batch->hooks[i] & (HFN_HOOK_PATCHED | HFN_HOOK_REFUSED | HFN_HOOK_OFF)) {
            continue;
        }
        hfn_batch_hook(hooks, batch, i, &hook);
        offset = hfn_patch_compare(&hook, base);
        if (busy) {
            hfn_hooks_refuse(hooks, batch, i, HOTFN_REASON_BUSY, 0);
        } else if (offset != HFN_PATCH_SAME) {
            hfn_hooks_refuse(hooks, batch, i, HOTFN_REASON_BYTES_DIFFER, offset);
        } else {
            hfn_hooks_refuse(hooks, batch, i, HOTFN_REASON_NOT_WRITABLE, 0);
        }
    }
    hfn_sites_finish(hooks, batch);
    hfn_batch_free_requests(hooks, batch);
    batch->state = kept_count > 0 ? HFN_BATCH_PATCHED : HFN_BATCH_RETIRED;
}

static void account_batches(hotfn_hooks *hooks, bool busy)
{
    for (size_t i = 0; i < hooks->batch_count; i++) {
        if (get_batch_in_state(hooks, i, HFN_BATCH_PENDING)) {
            account_batch(hooks, &hooks->batches[i], busy);
        }
    }
}

/* ---- Statistics. */

static uint64_t count_table_bytes(const hotfn_hooks *hooks)
{
    uint64_t bytes = sizeof *hooks + hfn_regions_table_bytes(&hooks->regions) +
                     hooks->module_capacity * sizeof *hooks->modules +
                     hooks->batch_capacity * sizeof *hooks->batches +
                     hooks->refusal_capacity * sizeof *hooks->refusals;

    for (size_t i = 0; i < hooks->batch_count; i++) {
        bytes += hooks->batches[i].hook_capacity * sizeof *hooks->batches[i].hooks +
                 hooks->batches[i].outlying_capacity * sizeof *hooks->batches[i].outlying;
    }
    return bytes;
}

/* ---- Commit. */

static bool has_pending(hotfn_hooks *hooks)
{
    for (size_t i = 0; i < hooks->batch_count; i++) {
        if (get_batch_in_state(hooks, i, HFN_BATCH_PENDING)) {
            return true;
        }
    }
    return false;
}

static bool commit_pending(change *c)
{
    hotfn_hooks *hooks = c->hooks;
    bool ok = build_stubs(hooks), written = false;

    if (ok) {
        store_originals(hooks);
    }
    ok = ok && hfn_patch_spans_open(&c->spans, hooks, HFN_BATCH_PENDING, HFN_HOOK_REFUSED, 0);
    ok = ok && prepare_batches(c);
    if (ok) {
        written = hfn_run_quiesced(hooks, false, write_all, c);
    }
    hfn_patch_spans_finish(&c->spans);
    account_batches(hooks, !written);
    return ok && !hooks->refusals_lost;
}

static hotfn_status get_commit_status(const change *c, bool ok, hotfn_error *err)
{
    if (!ok) {
        return hfn_report_no_memory(err, NULL);
    }
    for (size_t i = 0; i < c->hooks->refusal_count; i++) {
        if (c->hooks->refusals[i].reason != HOTFN_REASON_NOT_WRITABLE) {
            return HOTFN_OK;
        }
    }
    if (c->done > 0 || c->hooks->refusal_count == 0) {
        return HOTFN_OK;
    }
    return hfn_report_error(err, HOTFN_E_DENIED, NULL, HOTFN_NO_OFFSET,
                            "the system does not allow code to be changed: see hotfn doctor");
}

hotfn_status hotfn_hooks_commit(hotfn_hooks *hooks, hotfn_commit_stats *stats, hotfn_error *err)
{
    if (!hooks) {
        return hfn_report_null(err, __func__);
    }

    uint64_t begin_ns = hfn_os_monotonic_ns();
    hotfn_commit_stats made = HOTFN_COMMIT_STATS_INIT;
    change c = { .hooks = hooks };
    bool ok = true;

    hooks->refusal_count = 0;
    hooks->refusals_lost = false;
    hooks->stub_bytes = 0;
    hooks->unwind_bytes = 0;
    hfn_patch_spans_init(&c.spans, &hooks->env);
    if (has_pending(hooks)) {
        hfn_hooks_share_counts(hooks);
        ok = commit_pending(&c);
    }
    made.hooked = c.done;
    made.refused = (uint32_t)hooks->refusal_count;
    made.call_sites = c.sites;
    made.copied_page_bytes = c.copied_bytes;
    made.stub_bytes = hooks->stub_bytes;
    made.unwind_bytes = hooks->unwind_bytes;
    made.table_bytes = count_table_bytes(hooks);
    made.total_ns = hfn_os_monotonic_ns() - begin_ns;
    if (stats && !hfn_copy_out(stats, &made, sizeof made)) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                "stats of unknown size");
    }
    return get_commit_status(&c, ok, err);
}
