/* SPDX-License-Identifier: MIT */
/* Patches and sites are both sorted by address: one walk over the two finds runs of pages. */
#include "hooks/pages.h"

#include "hooks/sites.h"

/* Pages next to each other, in one window. */
typedef struct page_run {
    hfn_windows *windows;
    const hfn_os_writable_text *window;
    uint64_t begin, end;
    uint64_t byte_count; /* of all runs before */
} page_run;

static void flush(page_run *run)
{
    if (!run->window) {
        return;
    }
    hfn_os_populate_text(run->window, run->begin, run->end);
    run->byte_count += hfn_windows_note_private(run->windows, run->begin, run->end);
}

static void add(page_run *run, uint64_t begin, uint64_t end)
{
    uint64_t page = hfn_os_page_bytes();
    const hfn_os_writable_text *window;

    if (begin >= run->begin && end <= run->end) {
        return;
    }
    window = hfn_windows_at(run->windows, begin);
    if (!window) {
        return;
    }
    begin &= ~(page - 1);
    end = (end + page - 1) & ~(page - 1);
    if (run->window == window && begin >= run->begin && begin <= run->end) {
        run->end = end > run->end ? end : run->end;
        return;
    }
    flush(run);
    run->window = window;
    run->begin = begin;
    run->end = end;
}

/* The next site of the batch beyond the run; what lies in it is passed over unseen, as most are. */
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

uint64_t hfn_pages_populate(const hotfn_hooks *hooks, const hfn_batch *batch, hfn_windows *windows)
{
    const hfn_module *module = hfn_batch_module(hooks, batch);
    hfn_site_walk site = hfn_site_walk_begin(module->plan);
    page_run run = { .windows = windows };
    bool more = batch->targets && next_site(&run, batch, module->base, &site);

    for (uint32_t i = 0; i < batch->hook_count; i++) {
        uint64_t begin, end;
        if (batch->hooks[i] & HFN_HOOK_REFUSED) {
            continue;
        }
        hfn_plan_patch_at(module->plan, batch->hooks[i] & HFN_HOOK_ENTRY, &begin, &end);
        for (; more && site.field_rva < begin; more = next_site(&run, batch, module->base, &site)) {
            add(&run, module->base + site.field_rva, module->base + site.next_rva);
        }
        add(&run, module->base + begin, module->base + end);
    }
    for (; more; more = next_site(&run, batch, module->base, &site)) {
        add(&run, module->base + site.field_rva, module->base + site.next_rva);
    }
    flush(&run);
    return run.byte_count;
}
