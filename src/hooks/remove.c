/* SPDX-License-Identifier: MIT */
/* Restores the original bytes: of all hooks, or of those that are switched off.  commit.c describes
 * the steps, and what may be done while threads are stopped. */
#include "base/status.h"
#include "hooks/hookset.h"
#include "hooks/patch.h"
#include "hooks/patch_spans.h"
#include "hooks/quiesce.h"
#include "hooks/sites.h"

/* The state of one removal. */
typedef struct removal {
    hotfn_hooks *hooks;
    hfn_patch_spans spans;
    uint32_t flags;            /* HFN_HOOK_*: hooks that have all of them are removed */
    uint32_t foreign;          /* sites changed by other code                  */
    uint32_t unwritable;       /* hooks in code that is not writable           */
    uint32_t unwritable_sites; /* redirected calls in such code                */
} removal;

static hfn_batch *get_patched(hotfn_hooks *hooks, size_t index)
{
    return hooks->batches[index].state == HFN_BATCH_PATCHED ? &hooks->batches[index] : NULL;
}

static bool is_partial(const removal *r)
{
    return r->flags != HFN_HOOK_PATCHED;
}

/* HOT PATH: other threads are stopped, signals are blocked. */
static void restore_batch(removal *r, hfn_batch *batch)
{
    uint64_t base = hfn_batch_module(r->hooks, batch)->base;
    hfn_stub_walk walk = hfn_stub_walk_begin(r->hooks, batch);

    r->unwritable_sites += is_partial(r)
                               ? hfn_sites_restore_some(r->hooks, batch, &r->spans)
                               : hfn_sites_restore(r->hooks, batch, &r->spans, &r->foreign);
    while (hfn_stub_walk_next(&walk)) {
        hfn_os_writable_text *text = hfn_patch_spans_find(&r->spans, base + walk.hook.site_rva);
        if ((batch->hooks[walk.index] & r->flags) != r->flags) {
            continue;
        }
        if (!text) {
            r->unwritable++;
            continue;
        }
        r->foreign += !hfn_patch_restore(&walk.hook, base, walk.entry, text);
        batch->hooks[walk.index] &= ~HFN_HOOK_PATCHED;
    }
}

static void restore_all(void *user)
{
    removal *r = user;

    for (size_t i = 0; i < r->hooks->batch_count; i++) {
        if (get_patched(r->hooks, i)) {
            restore_batch(r, &r->hooks->batches[i]);
        }
    }
}

/* The stubs of a batch without any hook in place may be reused. */
static void retire_batch(hfn_batch *batch)
{
    bool in_place = batch->sites_written > 0;

    for (uint32_t n = 0; n < batch->hook_count; n++) {
        in_place |= (batch->hooks[n] & HFN_HOOK_PATCHED) != 0;
    }
    if (!in_place) {
        batch->state = HFN_BATCH_RETIRED;
    }
}

static void finish_batches(removal *r)
{
    for (size_t i = 0; i < r->hooks->batch_count; i++) {
        hfn_batch *batch = get_patched(r->hooks, i);

        if (batch && !is_partial(r)) {
            retire_batch(batch);
        }
        if (batch) {
            hfn_sites_finish(r->hooks, batch);
        }
    }
}

/* Compute the targets of the call sites that are redirected; false if there is no memory. */
static bool prepare_removal(removal *r)
{
    uint32_t mask = is_partial(r) ? r->flags : HFN_HOOK_REFUSED;
    bool ok = true;

    for (size_t i = 0; ok && i < r->hooks->batch_count; i++) {
        hfn_batch *batch = get_patched(r->hooks, i);
        ok = !batch || batch->sites_written == 0 ||
             hfn_sites_prepare(r->hooks, batch, mask, is_partial(r) ? mask : 0);
    }
    return ok;
}

static hotfn_status get_removal_status(const removal *r, hotfn_error *err)
{
    if (r->unwritable > 0 || r->unwritable_sites > 0) {
        return hfn_report_error(
            err, HOTFN_E_DENIED, NULL, HOTFN_NO_OFFSET,
            "%u hooks and %u redirected calls are in code that is no longer writable",
            r->unwritable, r->unwritable_sites);
    }
    if (r->foreign > 0) {
        return hfn_report_error(err, HOTFN_E_MISMATCH, NULL, HOTFN_NO_OFFSET,
                                "%u patched places were changed by other code and were left alone",
                                r->foreign);
    }
    return HOTFN_OK;
}

static hotfn_status remove_hooks(hotfn_hooks *hooks, uint32_t flags, hotfn_error *err)
{
    removal r = { .hooks = hooks, .flags = flags };
    bool opened, written;

    hfn_patch_spans_init(&r.spans, &hooks->env);
    opened = prepare_removal(&r) &&
             hfn_patch_spans_open(&r.spans, hooks, HFN_BATCH_PATCHED, flags, flags);
    written = opened && (r.spans.count == 0 || hfn_run_quiesced(hooks, true, restore_all, &r));
    hfn_patch_spans_finish(&r.spans);
    finish_batches(&r);
    if (!opened) {
        return hfn_report_no_memory(err, NULL);
    }
    if (!written) {
        return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                "a thread could not be stopped: no hook was removed, try again");
    }
    return get_removal_status(&r, err);
}

hotfn_status hotfn_hooks_remove(hotfn_hooks *hooks, hotfn_error *err)
{
    return hooks ? remove_hooks(hooks, HFN_HOOK_PATCHED, err) : hfn_report_null(err, __func__);
}

hotfn_status hfn_hooks_restore_off(hotfn_hooks *hooks, hotfn_error *err)
{
    return remove_hooks(hooks, HFN_HOOK_PATCHED | HFN_HOOK_OFF, err);
}
