/* SPDX-License-Identifier: MIT */
/* Patches and sites are both sorted by address: one walk over the two finds runs of pages. */
#include "hooks/pages.h"

#include "hooks/sites.h"

/* Pages next to each other, in one window. */
typedef struct page_run {
    hfn_windows *windows;
    const hfn_text_window *window;
    uint64_t begin, end;
    uint64_t byte_count; /* of all runs before */
} page_run;

static void flush(page_run *run)
{
    if (!run->window)
        return;
    hfn_os_text_populate(run->window, run->begin, run->end);
    run->byte_count += hfn_windows_note_private(run->windows, run->begin, run->end);
}

static void add(page_run *run, uint64_t begin, uint64_t end)
{
    uint64_t page = hfn_os_page_bytes();
    const hfn_text_window *window;

    if (begin >= run->begin && end <= run->end)
        return;
    window = hfn_windows_at(run->windows, begin);
    if (!window)
        return;
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

uint64_t hfn_pages_populate(const hotfn_hooks *hooks, const hfn_batch *batch, hfn_windows *windows)
{
    const hfn_module *module = hfn_batch_module(hooks, batch);
    hfn_site_walk site = hfn_site_walk_begin(module->plan);
    bool more = batch->targets && hfn_sites_next(batch, &site);
    page_run run = { .windows = windows };

    for (uint32_t i = 0; i < batch->hook_count; i++) {
        hfn_plan_hook hook;
        if (batch->hooks[i] & HFN_HOOK_REFUSED)
            continue;
        hfn_batch_hook(hooks, batch, i, &hook);
        for (; more && site.field_rva < hook.site_rva; more = hfn_sites_next(batch, &site))
            add(&run, module->base + site.field_rva, module->base + site.next_rva);
        add(&run, module->base + hook.site_rva, module->base + hook.site_rva + hook.patch_bytes);
    }
    for (; more; more = hfn_sites_next(batch, &site))
        add(&run, module->base + site.field_rva, module->base + site.next_rva);
    flush(&run);
    return run.byte_count;
}
