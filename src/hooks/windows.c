/* SPDX-License-Identifier: MIT */
/* One window a range of the plan that has hooks to write, in pages; windows that share a page are
 * joined, because the protection that the second one finds would be the first one's. */
#include "hooks/windows.h"

#include "base/memory.h"
#include "base/search.h"
#include "hooks/sites.h"

#include <stdlib.h>

void hfn_windows_init(hfn_windows *windows, const hotfn_env *env)
{
    memset(windows, 0, sizeof *windows);
    windows->env = env;
}

static bool add_window(hfn_windows *windows, uint64_t begin, uint64_t end)
{
    uint64_t page = hfn_os_page_bytes();
    hfn_window *window;

    if (!hfn_grow(windows->env, (void **)&windows->list, &windows->capacity, windows->count + 1,
                  sizeof *windows->list)) {
        return false;
    }
    window = &windows->list[windows->count++];
    memset(window, 0, sizeof *window);
    window->begin = begin & ~(page - 1);
    window->end = (end + page - 1) & ~(page - 1);
    return true;
}

/* [begin, end) of what a hook writes. */
static void hook_extent(const hfn_plan_hook *hook, uint64_t *begin, uint64_t *end)
{
    *begin = hook->site_rva;
    *end = *begin + hook->original_bytes;
    if (hook->island_rva == 0) {
        return;
    }
    if (hook->island_rva < *begin) {
        *begin = hook->island_rva;
    }
    if (hook->island_rva + (uint64_t)PLAN_ISLAND_BYTES > *end) {
        *end = hook->island_rva + (uint64_t)PLAN_ISLAND_BYTES;
    }
}

static uint32_t range_of(const hotfn_plan *plan, uint32_t entry, uint32_t from)
{
    for (;; from++) {
        hfn_plan_range range = hfn_plan_range_at(plan, from);
        if (entry < range.first_entry + range.entry_count) {
            return from;
        }
    }
}

/* All that the plan may write, sites too. */
static bool cover_ranges(hfn_windows *windows, const hfn_module *module)
{
    for (uint32_t i = 0; i < module->plan->range_count; i++) {
        hfn_plan_range range = hfn_plan_range_at(module->plan, i);
        if (!add_window(windows, module->base + range.begin_rva, module->base + range.end_rva)) {
            return false;
        }
    }
    return true;
}

bool hfn_windows_cover(hfn_windows *windows, const hotfn_hooks *hooks, const hfn_batch *batch,
                       uint32_t mask, uint32_t wanted)
{
    const hfn_module *module = hfn_batch_module(hooks, batch);
    uint64_t begin = 0, end = 0; /* of the window that grows; end 0: none */
    uint32_t range = 0;

    if (hfn_sites_wanted(hooks, batch)) {
        return cover_ranges(windows, module);
    }
    for (uint32_t i = 0; i < batch->hook_count; i++) {
        uint64_t hook_begin, hook_end;
        uint32_t entry = batch->hooks[i] & HFN_HOOK_ENTRY, hook_range;
        hfn_plan_hook hook;
        if ((batch->hooks[i] & mask) != wanted) {
            continue;
        }
        hfn_batch_hook(hooks, batch, i, &hook);
        hook_extent(&hook, &hook_begin, &hook_end);
        hook_range = range_of(module->plan, entry, range);
        if (end != 0 && hook_range != range) {
            if (!add_window(windows, module->base + begin, module->base + end)) {
                return false;
            }
            end = 0;
        }
        range = hook_range;
        begin = end == 0 || hook_begin < begin ? hook_begin : begin;
        end = hook_end > end ? hook_end : end;
    }
    return end == 0 || add_window(windows, module->base + begin, module->base + end);
}

static int compare_windows(const void *a, const void *b)
{
    const hfn_window *x = a, *y = b;

    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static void join_windows(hfn_windows *windows)
{
    size_t kept = 0;

    qsort(windows->list, windows->count, sizeof *windows->list, compare_windows);
    for (size_t i = 0; i < windows->count; i++) {
        hfn_window *last = kept > 0 ? &windows->list[kept - 1] : NULL;
        if (!last || windows->list[i].begin >= last->end) {
            windows->list[kept++] = windows->list[i];
        } else if (windows->list[i].end > last->end) {
            last->end = windows->list[i].end;
        }
    }
    windows->count = kept;
}

void hfn_windows_open(hfn_windows *windows)
{
    if (windows->count > 0) {
        join_windows(windows);
    }
    for (size_t i = 0; i < windows->count; i++) {
        windows->list[i].is_open =
            hfn_os_open_text(&windows->list[i].text, windows->list[i].begin, windows->list[i].end);
    }
}

bool hfn_windows_are_open(const hfn_windows *windows)
{
    for (size_t i = 0; i < windows->count; i++) {
        if (!windows->list[i].is_open) {
            return false;
        }
    }
    return true;
}

static hfn_window *find_window(const hfn_windows *windows, uint64_t address)
{
    size_t low = hfn_count_up_to(windows->list, windows->count, sizeof *windows->list,
                                 offsetof(hfn_window, end), address);

    if (low == windows->count || address < windows->list[low].begin ||
        !windows->list[low].is_open) {
        return NULL;
    }
    return &windows->list[low];
}

hfn_os_writable_text *hfn_windows_at(const hfn_windows *windows, uint64_t address)
{
    hfn_window *window = find_window(windows, address);

    return window ? &window->text : NULL;
}

static size_t bitmap_bytes(const hfn_window *window)
{
    return (window->end - window->begin) / hfn_os_page_bytes() / 8 + 1;
}

uint64_t hfn_windows_note_private(hfn_windows *windows, uint64_t begin, uint64_t end)
{
    hfn_window *window = find_window(windows, begin);
    uint64_t page = hfn_os_page_bytes(), byte_count = 0;

    if (window && !window->is_private) {
        window->is_private = hfn_alloc(windows->env, bitmap_bytes(window));
    }
    if (!window || !window->is_private) {
        return end - begin;
    }
    for (uint64_t at = begin; at < end && at < window->end; at += page) {
        uint64_t number = (at - window->begin) / page;
        uint8_t bit = (uint8_t)(1u << number % 8);
        byte_count += window->is_private[number / 8] & bit ? 0 : page;
        window->is_private[number / 8] |= bit;
    }
    return byte_count;
}

void hfn_windows_finish(hfn_windows *windows)
{
    for (size_t i = 0; i < windows->count; i++) {
        if (windows->list[i].is_open) {
            hfn_os_close_text(&windows->list[i].text);
        }
        if (windows->list[i].is_private) {
            hfn_free(windows->env, windows->list[i].is_private, bitmap_bytes(&windows->list[i]));
        }
    }
    hfn_free(windows->env, windows->list, windows->capacity * sizeof *windows->list);
    memset(windows, 0, sizeof *windows);
}
