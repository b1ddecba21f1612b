/* SPDX-License-Identifier: MIT */
/* One span for each range of the plan with hooks to write, extended to whole pages.  Spans that
 * share a page are joined: otherwise the second one would save the page protection that the first
 * one set. */
#include "hooks/patch_spans.h"

#include "base/memory.h"
#include "base/search.h"
#include "hooks/sites.h"

#include <stdlib.h>

void hfn_patch_spans_init(hfn_patch_spans *spans, const hotfn_env *env)
{
    memset(spans, 0, sizeof *spans);
    spans->env = env;
}

static bool add_span(hfn_patch_spans *spans, uint64_t begin, uint64_t end)
{
    uint64_t page = hfn_os_page_bytes();
    hfn_patch_span *span;

    if (!hfn_grow_array(spans->env, (void **)&spans->list, &spans->capacity, spans->count + 1,
                        sizeof *spans->list)) {
        return false;
    }
    span = &spans->list[spans->count++];
    memset(span, 0, sizeof *span);
    span->begin = begin & ~(page - 1);
    span->end = (end + page - 1) & ~(page - 1);
    return true;
}

/* The range of bytes that a hook writes. */
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

/* Add spans for everything that the plan may write, sites included. */
static bool cover_ranges(hfn_patch_spans *spans, const hfn_module *module)
{
    for (uint32_t i = 0; i < module->plan->range_count; i++) {
        hfn_plan_range range = hfn_plan_range_at(module->plan, i);
        if (!add_span(spans, module->base + range.begin_rva, module->base + range.end_rva)) {
            return false;
        }
    }
    return true;
}

/* Add spans for the hooks of the batch with (flags & mask) == wanted.  False if there is no
 * memory. */
static bool cover_batch(hfn_patch_spans *spans, const hotfn_hooks *hooks, const hfn_batch *batch,
                        uint32_t mask, uint32_t wanted)
{
    const hfn_module *module = hfn_batch_module(hooks, batch);
    uint64_t begin = 0, end = 0; /* of the span being extended; end 0: none */
    uint32_t range = 0;

    if (hfn_sites_wanted(hooks, batch)) {
        return cover_ranges(spans, module);
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
            if (!add_span(spans, module->base + begin, module->base + end)) {
                return false;
            }
            end = 0;
        }
        range = hook_range;
        begin = end == 0 || hook_begin < begin ? hook_begin : begin;
        end = hook_end > end ? hook_end : end;
    }
    return end == 0 || add_span(spans, module->base + begin, module->base + end);
}

static int compare_spans(const void *a, const void *b)
{
    const hfn_patch_span *x = a, *y = b;

    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static void join_spans(hfn_patch_spans *spans)
{
    size_t kept = 0;

    qsort(spans->list, spans->count, sizeof *spans->list, compare_spans);
    for (size_t i = 0; i < spans->count; i++) {
        hfn_patch_span *last = kept > 0 ? &spans->list[kept - 1] : NULL;
        if (!last || spans->list[i].begin >= last->end) {
            spans->list[kept++] = spans->list[i];
        } else if (spans->list[i].end > last->end) {
            last->end = spans->list[i].end;
        }
    }
    spans->count = kept;
}

bool hfn_patch_spans_open(hfn_patch_spans *spans, const hotfn_hooks *hooks, hfn_batch_state state,
                          uint32_t mask, uint32_t wanted)
{
    for (size_t i = 0; i < hooks->batch_count; i++) {
        if (hooks->batches[i].state == state &&
            !cover_batch(spans, hooks, &hooks->batches[i], mask, wanted)) {
            return false;
        }
    }
    if (spans->count > 0) {
        join_spans(spans);
    }
    for (size_t i = 0; i < spans->count; i++) {
        spans->list[i].is_open =
            hfn_os_open_text(&spans->list[i].text, spans->list[i].begin, spans->list[i].end);
    }
    return true;
}

bool hfn_patch_spans_are_open(const hfn_patch_spans *spans)
{
    for (size_t i = 0; i < spans->count; i++) {
        if (!spans->list[i].is_open) {
            return false;
        }
    }
    return true;
}

static hfn_patch_span *find_span(const hfn_patch_spans *spans, uint64_t address)
{
    size_t low = hfn_count_up_to(spans->list, spans->count, sizeof *spans->list,
                                 offsetof(hfn_patch_span, end), address);

    if (low == spans->count || address < spans->list[low].begin || !spans->list[low].is_open) {
        return NULL;
    }
    return &spans->list[low];
}

hfn_os_writable_text *hfn_patch_spans_find(const hfn_patch_spans *spans, uint64_t address)
{
    hfn_patch_span *span = find_span(spans, address);

    return span ? &span->text : NULL;
}

static size_t bitmap_bytes(const hfn_patch_span *span)
{
    return (span->end - span->begin) / hfn_os_page_bytes() / 8 + 1;
}

uint64_t hfn_patch_spans_mark_private(hfn_patch_spans *spans, uint64_t begin, uint64_t end)
{
    hfn_patch_span *span = find_span(spans, begin);
    uint64_t page = hfn_os_page_bytes(), byte_count = 0;

    if (span && !span->is_private) {
        span->is_private = hfn_allocate_zeroed(spans->env, bitmap_bytes(span));
    }
    if (!span || !span->is_private) {
        return end - begin;
    }
    for (uint64_t at = begin; at < end && at < span->end; at += page) {
        uint64_t number = (at - span->begin) / page;
        uint8_t bit = (uint8_t)(1u << number % 8);
        byte_count += span->is_private[number / 8] & bit ? 0 : page;
        span->is_private[number / 8] |= bit;
    }
    return byte_count;
}

void hfn_patch_spans_finish(hfn_patch_spans *spans)
{
    for (size_t i = 0; i < spans->count; i++) {
        if (spans->list[i].is_open) {
            hfn_os_close_text(&spans->list[i].text);
        }
        if (spans->list[i].is_private) {
            hfn_free_memory(spans->env, spans->list[i].is_private, bitmap_bytes(&spans->list[i]));
        }
    }
    hfn_free_memory(spans->env, spans->list, spans->capacity * sizeof *spans->list);
    memset(spans, 0, sizeof *spans);
}
