/* SPDX-License-Identifier: MIT */
/*
 * Changing the process: stubs first, complete, executable and known to unwinders; then, with no thread
 * on the bytes, every site is compared and patched.  Removing puts the bytes back the same way.  The
 * passes over hooks (place, prepare, write, settle) are ordered so that nothing is allocated while
 * other threads are stopped: one of them may hold the allocator's lock.
 */
#include "base/compiler.h"
#include "base/memory.h"
#include "base/status.h"
#include "hooks/hookset.h"
#include "hooks/near_pages.h"
#include "hooks/pages.h"
#include "hooks/patch.h"
#include "hooks/quiesce.h"
#include "hooks/sites.h"
#include "hooks/windows.h"

/* What one commit or removal carries along. */
typedef struct change {
    hotfn_hooks *hooks;
    hfn_windows windows;
    uint32_t done;         /* patched, or put back                         */
    uint32_t sites;        /* commit: calls sent to stubs                  */
    uint64_t copied_bytes; /* commit: pages that are private now      */
    uint32_t foreign;      /* removal: sites that somebody else changed    */
    uint32_t closed;       /* removal: hooks that could not be written     */
    uint32_t closed_sites; /* and calls that lead to their stubs           */
} change;

static hfn_batch *batch_in(hotfn_hooks *hooks, size_t index, hfn_batch_state state)
{
    return hooks->batches[index].state == state ? &hooks->batches[index] : NULL;
}

/* ---- Place: every pending hook gets a stub. */

static bool build_stubs(hotfn_hooks *hooks)
{
    hfn_region_list added = { NULL, 0, 0 };
    bool ok = true;

    for (size_t i = 0; i < hooks->batch_count; i++) {
        if (batch_in(hooks, i, HFN_BATCH_PENDING) && !hooks->batches[i].placed) {
            hfn_near_pages_reuse(hooks, &hooks->batches[i]);
        }
    }
    for (size_t i = 0; ok && i < hooks->batch_count; i++) {
        if (batch_in(hooks, i, HFN_BATCH_PENDING) && !hooks->batches[i].placed) {
            ok = hfn_near_pages_build(hooks, hooks->batches[i].module, &added);
        }
    }
    ok = hfn_regions_add(&hooks->regions, &hooks->env, added.regions, (uint32_t)added.count) && ok;
    hfn_free(&hooks->env, added.regions, added.capacity * sizeof *added.regions);
    return ok;
}

static bool cover(change *c, hfn_batch_state state, uint32_t mask, uint32_t wanted)
{
    for (size_t i = 0; i < c->hooks->batch_count; i++) {
        const hfn_batch *batch = batch_in(c->hooks, i, state);
        if (batch && !hfn_windows_cover(&c->windows, c->hooks, batch, mask, wanted)) {
            return false;
        }
    }
    hfn_windows_open(&c->windows);
    return true;
}

/* ---- Prepare: refuse what has no window, note where callers go, make private copies of the pages. */

static void refuse_unwritable(change *c, hfn_batch *batch)
{
    uint64_t base = hfn_batch_module(c->hooks, batch)->base;

    if (hfn_windows_are_open(&c->windows)) {
        return;
    }
    for (uint32_t i = 0; i < batch->hook_count; i++) {
        hfn_plan_hook hook;
        if (batch->hooks[i] & HFN_HOOK_REFUSED) {
            continue;
        }
        hfn_batch_hook(c->hooks, batch, i, &hook);
        if (!hfn_windows_at(&c->windows, base + hook.site_rva)) {
            hfn_hooks_refuse(c->hooks, batch, i, HOTFN_REASON_NOT_WRITABLE, 0);
        }
    }
}

static bool prepare(change *c)
{
    for (size_t i = 0; i < c->hooks->batch_count; i++) {
        hfn_batch *batch = batch_in(c->hooks, i, HFN_BATCH_PENDING);
        if (!batch) {
            continue;
        }
        refuse_unwritable(c, batch);
        if (!hfn_sites_prepare(c->hooks, batch, HFN_HOOK_REFUSED, 0)) {
            return false;
        }
        c->copied_bytes += hfn_pages_populate(c->hooks, batch, &c->windows);
    }
    return true;
}

/* ---- Write.  HOT PATH: other threads are stopped, signals are blocked. */

/* Entries are too far apart for the processor to see where the next one is. */
enum { HOOKS_AHEAD = 16 };

static void fetch_ahead(const hotfn_hooks *hooks, const hfn_batch *batch, uint32_t index)
{
    const hfn_module *module = hfn_batch_module(hooks, batch);

    if (index + HOOKS_AHEAD < batch->hook_count) {
        hfn_prefetch(
            module->base +
            hfn_plan_rva_at(module->plan, batch->hooks[index + HOOKS_AHEAD] & HFN_HOOK_ENTRY));
    }
}

static void write_batch(change *c, hfn_batch *batch)
{
    uint64_t base = hfn_batch_module(c->hooks, batch)->base;
    hfn_stub_walk walk = hfn_stub_walk_begin(c->hooks, batch);

    while (hfn_stub_walk_next(&walk)) {
        fetch_ahead(c->hooks, batch, walk.index);
        if (batch->hooks[walk.index] & HFN_HOOK_REFUSED) {
            continue;
        }
        if (!(batch->hooks[walk.index] & HFN_HOOK_STAYS) &&
            hfn_patch_compare(&walk.hook, base) == HFN_PATCH_SAME &&
            hfn_patch_write(&walk.hook, base, walk.entry,
                            hfn_windows_at(&c->windows, base + walk.hook.site_rva))) {
            batch->hooks[walk.index] |= HFN_HOOK_STANDS;
            c->done++;
        } else if (batch->targets) {
            batch->targets[batch->hooks[walk.index] & HFN_HOOK_ENTRY].stub = 0;
        }
    }
    hfn_sites_write(c->hooks, batch, &c->windows);
    c->sites += batch->sites_written;
}

static void write_all(void *user)
{
    change *c = user;

    for (size_t i = 0; i < c->hooks->batch_count; i++) {
        if (batch_in(c->hooks, i, HFN_BATCH_PENDING)) {
            hfn_sites_send_back(c->hooks, &c->hooks->batches[i], &c->windows);
        }
    }
    for (size_t i = 0; i < c->hooks->batch_count; i++) {
        if (batch_in(c->hooks, i, HFN_BATCH_PENDING)) {
            write_batch(c, &c->hooks->batches[i]);
        }
    }
}

/* ---- Settle: account for every hook that does not stand. */

static void settle_batch(hotfn_hooks *hooks, hfn_batch *batch, bool busy)
{
    uint64_t base = hfn_batch_module(hooks, batch)->base;
    uint32_t standing = 0;

    for (uint32_t i = 0; i < batch->hook_count; i++) {
        hfn_plan_hook hook;
        uint32_t offset;
        standing += (batch->hooks[i] & HFN_HOOK_STANDS) != 0;
        if (batch->hooks[i] & (HFN_HOOK_STANDS | HFN_HOOK_REFUSED)) {
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
    hfn_batch_settle(hooks, batch);
    batch->state = standing > 0 ? HFN_BATCH_STANDING : HFN_BATCH_RETIRED;
}

static void settle(hotfn_hooks *hooks, bool busy)
{
    for (size_t i = 0; i < hooks->batch_count; i++) {
        if (batch_in(hooks, i, HFN_BATCH_PENDING)) {
            settle_batch(hooks, &hooks->batches[i], busy);
        }
    }
}

/* ---- Figures. */

static uint64_t table_bytes(const hotfn_hooks *hooks)
{
    uint64_t bytes = sizeof *hooks + hfn_regions_table_bytes(&hooks->regions) +
                     hooks->module_capacity * sizeof *hooks->modules +
                     hooks->batch_capacity * sizeof *hooks->batches +
                     hooks->refusal_capacity * sizeof *hooks->refusals;

    for (size_t i = 0; i < hooks->batch_count; i++) {
        bytes += hooks->batches[i].hook_capacity * sizeof *hooks->batches[i].hooks +
                 hooks->batches[i].aside_capacity * sizeof *hooks->batches[i].asides;
    }
    return bytes;
}

/* ---- Commit. */

static bool any_pending(hotfn_hooks *hooks)
{
    for (size_t i = 0; i < hooks->batch_count; i++) {
        if (batch_in(hooks, i, HFN_BATCH_PENDING)) {
            return true;
        }
    }
    return false;
}

static bool commit_pending(change *c)
{
    hotfn_hooks *hooks = c->hooks;
    bool ok = build_stubs(hooks), written = false;

    ok = ok && cover(c, HFN_BATCH_PENDING, HFN_HOOK_REFUSED, 0);
    ok = ok && prepare(c);
    if (ok) {
        written = hfn_quiesce(hooks, false, write_all, c);
    }
    hfn_windows_finish(&c->windows);
    settle(hooks, !written);
    return ok && !hooks->refusals_lost;
}

static hotfn_status commit_status(const change *c, bool ok, hotfn_error *err)
{
    if (!ok) {
        return hfn_fail(err, HOTFN_E_NO_MEMORY, NULL, HOTFN_NO_OFFSET, "no memory for hooks");
    }
    for (size_t i = 0; i < c->hooks->refusal_count; i++) {
        if (c->hooks->refusals[i].reason != HOTFN_REASON_NOT_WRITABLE) {
            return HOTFN_OK;
        }
    }
    if (c->done > 0 || c->hooks->refusal_count == 0) {
        return HOTFN_OK;
    }
    return hfn_fail(err, HOTFN_E_DENIED, NULL, HOTFN_NO_OFFSET,
                    "the system does not allow to change code: see hotfn doctor");
}

hotfn_status hotfn_hooks_commit(hotfn_hooks *hooks, hotfn_commit_stats *stats, hotfn_error *err)
{
    if (!hooks) {
        return hfn_fail_null(err, __func__);
    }

    uint64_t begin_ns = hfn_os_monotonic_ns();
    hotfn_commit_stats made = HOTFN_COMMIT_STATS_INIT;
    change c = { .hooks = hooks };
    bool ok = true;

    hooks->refusal_count = 0;
    hooks->refusals_lost = false;
    hooks->stub_bytes = 0;
    hooks->unwind_bytes = 0;
    hfn_windows_init(&c.windows, &hooks->env);
    if (any_pending(hooks)) {
        ok = commit_pending(&c);
    }
    made.hooked = c.done;
    made.refused = (uint32_t)hooks->refusal_count;
    made.call_sites = c.sites;
    made.copied_page_bytes = c.copied_bytes;
    made.stub_bytes = hooks->stub_bytes;
    made.unwind_bytes = hooks->unwind_bytes;
    made.table_bytes = table_bytes(hooks);
    made.total_ns = hfn_os_monotonic_ns() - begin_ns;
    if (stats && !hfn_give(stats, &made, sizeof made)) {
        return hfn_fail(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET, "stats of unknown size");
    }
    return commit_status(&c, ok, err);
}

/* ---- Remove. */

static void restore_batch(change *c, hfn_batch *batch)
{
    uint64_t base = hfn_batch_module(c->hooks, batch)->base;
    hfn_stub_walk walk = hfn_stub_walk_begin(c->hooks, batch);

    c->closed_sites += hfn_sites_restore(c->hooks, batch, &c->windows, &c->foreign);
    while (hfn_stub_walk_next(&walk)) {
        hfn_os_writable_text *window = hfn_windows_at(&c->windows, base + walk.hook.site_rva);
        if (!(batch->hooks[walk.index] & HFN_HOOK_STANDS)) {
            continue;
        }
        if (!window) {
            c->closed++;
            continue;
        }
        if (hfn_patch_restore(&walk.hook, base, walk.entry, window)) {
            c->done++;
        } else {
            c->foreign++;
        }
        batch->hooks[walk.index] &= ~HFN_HOOK_STANDS;
    }
}

/* HOT PATH: as write_all. */
static void restore_all(void *user)
{
    change *c = user;

    for (size_t i = 0; i < c->hooks->batch_count; i++) {
        if (batch_in(c->hooks, i, HFN_BATCH_STANDING)) {
            restore_batch(c, &c->hooks->batches[i]);
        }
    }
}

static void retire_all(hotfn_hooks *hooks)
{
    for (size_t i = 0; i < hooks->batch_count; i++) {
        hfn_batch *batch = batch_in(hooks, i, HFN_BATCH_STANDING);
        bool stands = batch && batch->sites_written > 0;
        for (uint32_t n = 0; batch && n < batch->hook_count; n++) {
            stands |= (batch->hooks[n] & HFN_HOOK_STANDS) != 0;
        }
        if (batch && !stands) {
            batch->state = HFN_BATCH_RETIRED;
        }
        if (batch) {
            hfn_sites_finish(hooks, batch);
        }
    }
}

/* What the sites of hooks that stand, or stood when a call to them could not be put back, must be compared with;
 * false if there is no memory. */
static bool prepare_removal(hotfn_hooks *hooks)
{
    bool ok = true;

    for (size_t i = 0; ok && i < hooks->batch_count; i++) {
        hfn_batch *batch = batch_in(hooks, i, HFN_BATCH_STANDING);
        ok = !batch || batch->sites_written == 0 ||
             hfn_sites_prepare(hooks, batch, HFN_HOOK_REFUSED, 0);
    }
    return ok;
}

hotfn_status hotfn_hooks_remove(hotfn_hooks *hooks, hotfn_error *err)
{
    if (!hooks) {
        return hfn_fail_null(err, __func__);
    }

    change c = { .hooks = hooks };
    bool covered, written;

    hfn_windows_init(&c.windows, &hooks->env);
    covered =
        prepare_removal(hooks) && cover(&c, HFN_BATCH_STANDING, HFN_HOOK_STANDS, HFN_HOOK_STANDS);
    written = covered && (c.windows.count == 0 || hfn_quiesce(hooks, true, restore_all, &c));
    hfn_windows_finish(&c.windows);
    retire_all(hooks);
    if (!covered) {
        return hfn_fail(err, HOTFN_E_NO_MEMORY, NULL, HOTFN_NO_OFFSET, "no memory to remove hooks");
    }
    if (!written) {
        return hfn_fail(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                        "a thread could not be stopped: nothing was removed, try again");
    }
    if (c.closed > 0 || c.closed_sites > 0) {
        return hfn_fail(
            err, HOTFN_E_DENIED, NULL, HOTFN_NO_OFFSET,
            "%u hooks and %u calls that lead to stubs stand in code that cannot be written any more",
            c.closed, c.closed_sites);
    }
    if (c.foreign > 0) {
        return hfn_fail(err, HOTFN_E_MISMATCH, NULL, HOTFN_NO_OFFSET,
                        "%u sites were changed by somebody else and are left as they are",
                        c.foreign);
    }
    return HOTFN_OK;
}
