/* SPDX-License-Identifier: MIT */
/* Finds the pages of code that a batch changes.  Patches and call sites are both sorted by address,
 * so one pass over both finds runs of pages in ascending order. */
#include "hooks/pages.h"

#include "hooks/sites.h"

/* Consecutive pages of one patch span. */
typedef struct page_run {
    hfn_patch_spans *spans;
    const hfn_os_writable_text *text;
    uint64_t begin, end;
    uint64_t copied_bytes; /* size of the pages that the previous runs made private */
} page_run;

static void populate_run(page_run *run)
{
    if (!run->text) {
        return;
    }
    hfn_os_populate_text(run->text, run->begin, run->end);
    run->copied_bytes += hfn_patch_spans_mark_private(run->spans, run->begin, run->end);
}

static void add_range(page_run *run, uint64_t begin, uint64_t end)
{
    uint64_t page = hfn_os_page_bytes();
    const hfn_os_writable_text *text;

    if (begin >= run->begin && end <= run->end) {
        return;
    }
    text = hfn_patch_spans_find(run->spans, begin);
    if (!text) {
        return;
    }
    begin &= ~(page - 1);
    end = (end + page - 1) & ~(page - 1);
    if (run->text == text && begin >= run->begin && begin <= run->end) {
        run->end = end > run->end ? end : run->end;
        return;
    }
    populate_run(run);
    run->text = text;
    run->begin = begin;
    run->end = end;
}

/* Advance to the next site of the batch that is not in the current run of pages. */
static bool next_site(const page_run *run, const hfn_batch *batch, uint64_t base,
                      hfn_site_walk *site)
{
    while (hfn_site_walk_next(site)) {
        if (base + site->next_rva > run->end && batch->targets[site->entry].stub != 0) {
            return true;
        }
    }
    return false;
}

uint64_t hfn_pages_populate(const hotfn_hooks *hooks, const hfn_batch *batch,
                            hfn_patch_spans *spans)
{
    const hfn_module *module = hfn_batch_module(hooks, batch);
    hfn_site_walk site = hfn_site_walk_begin(module->plan);
    page_run run = { .spans = spans };
    bool more = batch->targets && next_site(&run, batch, module->base, &site);

    for (uint32_t i = 0; i < batch->hook_count; i++) {
        uint64_t begin, end;
        if (batch->hooks[i] & (HFN_HOOK_REFUSED | HFN_HOOK_OFF)) {
            continue;
        }
        hfn_plan_patch_at(module->plan, batch->hooks[i] & HFN_HOOK_ENTRY, &begin, &end);
        for (; more && site.field_rva < begin; more = next_site(&run, batch, module->base, &site)) {
            add_range(&run, module->base + site.field_rva, module->base + site.next_rva);
        }
        add_range(&run, module->base + begin, module->base + end);
    }
    for (; more; more = next_site(&run, batch, module->base, &site)) {
        add_range(&run, module->base + site.field_rva, module->base + site.next_rva);
    }
    populate_run(&run);
    return run.copied_bytes;
}
