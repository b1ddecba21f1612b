/* SPDX-License-Identifier: MIT */
/* Allocates pages for stubs and fills them.  They are never unmapped, because a thread may be
 * executing a stub at any time.  A batch reuses the stubs of an equal batch that was removed, so
 * that hooking again and again does not fill the address space. */
#include "hooks/near_pages.h"

#include "base/memory.h"
#include "hooks/region_writer.h"
#include "hooks/sites.h"
#include "os/os.h"

enum { MAX_GAPS = 4096 };

static bool is_new(const hfn_batch *batch, uint32_t module)
{
    return batch->state == HFN_BATCH_PENDING && batch->module == module && !batch->placed;
}

/* Reserve room in the tables before a region is created.  Creation cannot be undone, because it may
 * register unwind tables. */
static bool make_room(hotfn_hooks *hooks, hfn_region_list *list, uint32_t region_count)
{
    return hfn_grow_array(&hooks->env, (void **)&list->regions, &list->capacity,
                          list->count + region_count, sizeof *list->regions);
}

static void add_region(hotfn_hooks *hooks, hfn_region_list *list, const hotfn_stub_region *region,
                       uint64_t unwind_bytes)
{
    hooks->stub_bytes += region->end - region->begin;
    hooks->unwind_bytes += unwind_bytes;
    list->regions[list->count++] = *region;
}

static void refuse_no_memory(hotfn_hooks *hooks, hfn_batch *batch, uint32_t index)
{
    hfn_hooks_refuse(hooks, batch, index, HOTFN_REASON_NO_NEAR_MEMORY, 0);
}

/* ---- Punned jumps. */

/* The addresses, from *first to *last, at which the stub of a pun may be entered. */
static void pun_range(const hfn_plan_hook *hook, uint64_t base, uint64_t *first, uint64_t *last)
{
    uint64_t behind_jump = base + hook->site_rva + 5;
    int32_t lowest = (int32_t)hfn_plan_pun_fixed(hook);

    *first = (uintptr_t)(behind_jump + (uint64_t)(int64_t)lowest); /* 32 bits wrap around */
    *last = *first + (uint32_t)~hfn_plan_pun_mask(hook);
}

/* Free address ranges around a module. */
typedef struct gap_table {
    hfn_os_gap *gaps;
    uint32_t count;
} gap_table;

static uint64_t page_up(uint64_t address)
{
    uint64_t page = hfn_os_page_bytes();

    return (address + page - 1) & ~(page - 1);
}

/* An address in [first, last] at which byte_count bytes fit into the gap; 0 if there is none.
 * The start of a page is preferred, because the bytes then span fewer pages. */
static uint64_t fit_gap(const hfn_os_gap *gap, uint64_t first, uint64_t last, uint64_t byte_count)
{
    uint64_t begin = first > gap->begin ? first : gap->begin;

    if (page_up(begin) <= last) {
        begin = page_up(begin);
    }
    return begin <= last && begin < gap->end && page_up(begin + byte_count) <= gap->end ? begin : 0;
}

/* Remove [begin, end) from a gap; the part after it becomes another gap if there is room. */
static void take_from_gap(gap_table *table, hfn_os_gap *gap, uint64_t begin, uint64_t end)
{
    if (table->count < MAX_GAPS && end < gap->end) {
        table->gaps[table->count++] = (hfn_os_gap){ end, gap->end };
    }
    gap->end = begin;
}

/* Map pages for byte_count bytes that begin in [first, last].  Returns their address, or 0. */
static uint64_t map_between(const hotfn_hooks *hooks, gap_table *table, uint64_t first,
                            uint64_t last, uint64_t byte_count, uint64_t *pages_end)
{
    for (uint32_t i = 0; i < table->count; i++) {
        uint64_t begin = fit_gap(&table->gaps[i], first, last, byte_count);
        uint64_t pages = begin & ~(hfn_os_page_bytes() - 1);
        if (begin == 0) {
            continue;
        }
        *pages_end = page_up(begin + byte_count);
        if (hfn_space_map_at(hooks, pages, *pages_end - pages)) {
            take_from_gap(table, &table->gaps[i], pages, *pages_end);
            return begin;
        }
    }
    return 0;
}

static bool write_pun(hotfn_hooks *hooks, hfn_batch *batch, uint32_t index, gap_table *gaps,
                      hfn_region_list *added)
{
    uint64_t base = hfn_batch_module(hooks, batch)->base;
    hotfn_hook_action action = hfn_batch_action(batch, index);
    hfn_region_needs needs = { .stub_bytes = 0 };
    hfn_region_writer writer;
    hotfn_stub_region region;
    hfn_plan_hook hook;
    uint64_t first, last, code, pages_end, unwind_bytes, stub;
    hfn_stub_shape room;
    const hfn_stub_shape *shape;
    uint32_t entry_at;

    hfn_batch_hook(hooks, batch, index, &hook);
    shape = hfn_trampoline_shape(batch->kind, &hook, &room);
    pun_range(&hook, base, &first, &last);
    hfn_region_add_need(&needs, batch->kind, &hook);
    entry_at = hfn_region_gate_bytes(hooks, &needs) + shape->entry_at;
    code = map_between(hooks, gaps, first - entry_at, last - entry_at,
                       hfn_region_bytes(hooks, &needs), &pages_end);
    if (code == 0) {
        return false;
    }
    hfn_region_begin(&writer, hooks, &needs, code, pages_end);
    stub = writer.at;
    if (!hfn_region_stub(&writer, &hook, shape, base, &action) ||
        !hfn_region_finish(&writer, &region, &unwind_bytes)) {
        code &= ~(hfn_os_page_bytes() - 1);
        hfn_space_unmap(hooks, code, pages_end - code);
        return false;
    }
    add_region(hooks, added, &region, unwind_bytes);
    batch->outlying[batch->outlying_count++] = (hfn_outlying_stub){ index, stub };
    hfn_sites_set_target(hooks, batch, index, hook.rva, stub + shape->entry_at);
    return true;
}

static bool is_pun(const hotfn_hooks *hooks, const hfn_batch *batch, uint32_t index)
{
    return hfn_plan_strategy_at(hfn_batch_module(hooks, batch)->plan,
                                batch->hooks[index] & HFN_HOOK_ENTRY) == HOTFN_STRATEGY_PUN;
}

static uint32_t count_puns(const hotfn_hooks *hooks, const hfn_batch *batch)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < batch->hook_count; i++) {
        count += is_pun(hooks, batch, i);
    }
    return count;
}

static void find_gaps(const hotfn_hooks *hooks, const hfn_batch *batch, gap_table *table)
{
    const hfn_module *module = hfn_batch_module(hooks, batch);
    uint64_t begin = module->base + (uint64_t)module->plan->reach_begin;
    uint64_t reach = hfn_stub_get_patching()->jump_reach_bytes;

    table->count = hfn_space_find_gaps(hooks, begin > reach ? begin - reach : 0,
                                       module->base + (uint64_t)module->plan->reach_end + reach,
                                       table->gaps, MAX_GAPS);
}

static bool place_puns(hotfn_hooks *hooks, hfn_batch *batch, hfn_region_list *added)
{
    gap_table table = { NULL, 0 };
    uint32_t puns = count_puns(hooks, batch);

    if (puns == 0) {
        return true;
    }
    table.gaps = hfn_allocate_zeroed(&hooks->env, MAX_GAPS * sizeof *table.gaps);
    if (!table.gaps || !make_room(hooks, added, puns) ||
        !hfn_grow_array(&hooks->env, (void **)&batch->outlying, &batch->outlying_capacity, puns,
                        sizeof *batch->outlying)) {
        hfn_free_memory(&hooks->env, table.gaps, MAX_GAPS * sizeof *table.gaps);
        return false;
    }
    find_gaps(hooks, batch, &table);
    for (uint32_t i = 0; i < batch->hook_count; i++) {
        if (is_pun(hooks, batch, i) && !write_pun(hooks, batch, i, &table, added)) {
            refuse_no_memory(hooks, batch, i);
        }
    }
    hfn_free_memory(&hooks->env, table.gaps, MAX_GAPS * sizeof *table.gaps);
    return true;
}

/* ---- Regions. */

static void measure_batch(const hotfn_hooks *hooks, const hfn_batch *batch, hfn_region_needs *needs)
{
    for (uint32_t i = 0; i < batch->hook_count; i++) {
        hfn_plan_hook hook;
        hfn_batch_hook(hooks, batch, i, &hook);
        if (hook.strategy != HOTFN_STRATEGY_PUN) {
            hfn_region_add_need(needs, batch->kind, &hook);
        }
    }
}

static void write_batch(hotfn_hooks *hooks, hfn_batch *batch, hfn_region_writer *writer)
{
    uint64_t base = hfn_batch_module(hooks, batch)->base;
    hfn_stub_walk walk;

    batch->stubs = writer->at;
    walk = hfn_stub_walk_begin(hooks, batch);
    while (hfn_stub_walk_next(&walk)) {
        hotfn_hook_action action = hfn_batch_action(batch, walk.index);
        if (walk.hook.strategy == HOTFN_STRATEGY_PUN) {
            continue;
        }
        if (hfn_region_stub(writer, &walk.hook, walk.shape, base, &action)) {
            hfn_sites_set_target(hooks, batch, walk.index, walk.hook.rva, walk.entry);
        } else {
            refuse_no_memory(hooks, batch, walk.index);
        }
    }
}

/* The batches whose stubs share a region: all new ones of a module, or one batch of a wide
 * module. */
typedef struct group {
    uint32_t module;
    size_t first, end;                   /* range of indices of batches     */
    uint64_t begin_address, end_address; /* code that the stubs must reach */
} group;

static void refuse_new(hotfn_hooks *hooks, const group *g)
{
    for (size_t i = g->first; i < g->end; i++) {
        for (uint32_t n = 0;
             is_new(&hooks->batches[i], g->module) && n < hooks->batches[i].hook_count; n++) {
            refuse_no_memory(hooks, &hooks->batches[i], n);
        }
    }
}

static bool build_region(hotfn_hooks *hooks, const group *g, const hfn_region_needs *needs,
                         hfn_region_list *added)
{
    uint64_t byte_count = page_up(hfn_region_bytes(hooks, needs)), unwind_bytes;
    hfn_region_writer writer;
    hotfn_stub_region region;
    uint64_t code;

    if (!make_room(hooks, added, 1)) {
        return false;
    }
    code = hfn_space_map_near(hooks, g->begin_address, g->end_address, byte_count,
                              hooks->options.near_range_bytes);
    if (code == 0) {
        refuse_new(hooks, g);
        return true;
    }
    hfn_region_begin(&writer, hooks, needs, code, code + byte_count);
    for (size_t i = g->first; i < g->end; i++) {
        if (is_new(&hooks->batches[i], g->module)) {
            write_batch(hooks, &hooks->batches[i], &writer);
        }
    }
    if (hfn_region_finish(&writer, &region, &unwind_bytes)) {
        add_region(hooks, added, &region, unwind_bytes);
    } else {
        hfn_space_unmap(hooks, code, byte_count); /* the system forbids executable memory */
        refuse_new(hooks, g);
    }
    return true;
}

static bool build_group(hotfn_hooks *hooks, const group *g, hfn_region_list *added)
{
    hfn_region_needs needs = { .stub_count = 0 };

    for (size_t i = g->first; i < g->end; i++) {
        if (is_new(&hooks->batches[i], g->module)) {
            measure_batch(hooks, &hooks->batches[i], &needs);
        }
    }
    return needs.stub_count == 0 || build_region(hooks, g, &needs, added);
}

static group whole_module(const hotfn_hooks *hooks, uint32_t module)
{
    const hfn_module *m = &hooks->modules[module];
    int64_t begin = m->plan->reach_begin < 0 ? m->plan->reach_begin
                                             : 0; /* the image's headers cannot hold stubs */

    return (group){ module, 0, hooks->batch_count, m->base + (uint64_t)begin,
                    m->base + (uint64_t)m->plan->reach_end };
}

/* Hooks whose moved code jumps farther than the stubs reach are refused later. */
static group single_batch(const hotfn_hooks *hooks, uint32_t module, size_t index)
{
    const hfn_batch *batch = &hooks->batches[index];
    uint64_t base = hooks->modules[module].base;
    hfn_plan_hook first, last;

    hfn_batch_hook(hooks, batch, 0, &first);
    hfn_batch_hook(hooks, batch, batch->hook_count - 1, &last);
    return (group){ module, index, index + 1, base + first.rva,
                    base + last.site_rva + last.original_bytes };
}

static bool build_groups(hotfn_hooks *hooks, uint32_t module, hfn_region_list *added)
{
    group g = whole_module(hooks, module);

    if (!hfn_hooks_is_wide(hooks, hooks->modules[module].plan)) {
        return build_group(hooks, &g, added);
    }
    for (size_t i = 0; i < hooks->batch_count; i++) {
        if (!is_new(&hooks->batches[i], module) || hooks->batches[i].hook_count == 0) {
            continue;
        }
        g = single_batch(hooks, module, i);
        if (!build_group(hooks, &g, added)) {
            return false;
        }
    }
    return true;
}

bool hfn_near_pages_build(hotfn_hooks *hooks, uint32_t module, hfn_region_list *added)
{
    for (size_t i = 0; i < hooks->batch_count; i++) {
        if (is_new(&hooks->batches[i], module) && !hfn_sites_begin(hooks, &hooks->batches[i])) {
            return false;
        }
    }
    if (!build_groups(hooks, module, added)) {
        return false;
    }
    for (size_t i = 0; i < hooks->batch_count; i++) {
        if (!is_new(&hooks->batches[i], module)) {
            continue;
        }
        if (!place_puns(hooks, &hooks->batches[i], added)) {
            return false;
        }
        hooks->batches[i].placed = true;
    }
    return true;
}

/* ---- Reuse. */

static bool same_hooks(const hfn_batch *a, const hfn_batch *b)
{
    if (a->module != b->module || a->kind != b->kind || a->hook_count != b->hook_count) {
        return false;
    }
    for (uint32_t i = 0; i < a->hook_count; i++) {
        if ((a->hooks[i] & (HFN_HOOK_ENTRY | HFN_HOOK_FAR_SLOT)) !=
            (b->hooks[i] & (HFN_HOOK_ENTRY | HFN_HOOK_FAR_SLOT))) {
            return false;
        }
    }
    return true;
}

/* Whether the pending hook's stub would have the same bytes as the existing one. */
static bool same_stub(const hotfn_hooks *hooks, const hfn_batch *pending, const hfn_stub_walk *walk)
{
    uint8_t bytes[HFN_STUB_MAX_BYTES];
    const hotfn_stub_region *region = hfn_regions_find(&hooks->regions, walk->address);
    hotfn_hook_action action = hfn_batch_action(pending, walk->index);
    hfn_gates gates;

    if (walk->address == 0) { /* a pun that got no stub: it is refused again */
        return true;
    }
    if (!region || walk->address + walk->byte_count > region->end) {
        return false;
    }
    gates = hfn_region_gates(hooks, region);
    return hfn_trampoline_write(bytes, walk->address, &walk->hook, walk->shape,
                                hfn_batch_module(hooks, pending)->base, &action, &hooks->access,
                                &gates) &&
           memcmp(bytes, (const void *)(uintptr_t)walk->address, walk->byte_count) == 0;
}

static bool can_take_over(const hotfn_hooks *hooks, hfn_batch *pending, const hfn_batch *retired)
{
    hfn_stub_walk walk;
    bool same = true;

    if (retired->state != HFN_BATCH_RETIRED || !retired->placed || !same_hooks(pending, retired)) {
        return false;
    }
    walk = hfn_stub_walk_begin(hooks, retired);
    while (same && hfn_stub_walk_next(&walk)) {
        same = same_stub(hooks, pending, &walk);
    }
    return same;
}

static void refuse_unplaced(hotfn_hooks *hooks, hfn_batch *batch)
{
    hfn_stub_walk walk = hfn_stub_walk_begin(hooks, batch);

    while (hfn_stub_walk_next(&walk)) {
        if (walk.address == 0) {
            refuse_no_memory(hooks, batch, walk.index);
        }
    }
}

bool hfn_near_pages_reuse(hotfn_hooks *hooks, hfn_batch *batch)
{
    for (size_t i = 0; i < hooks->batch_count; i++) {
        hfn_batch *retired = &hooks->batches[i];
        if (!can_take_over(hooks, batch, retired)) {
            continue;
        }
        batch->stubs = retired->stubs;
        batch->outlying = retired->outlying;
        batch->outlying_count = retired->outlying_count;
        batch->outlying_capacity = retired->outlying_capacity;
        batch->placed = true;
        retired->outlying = NULL;
        retired->outlying_count = 0;
        retired->outlying_capacity = 0;
        hfn_batch_finish(hooks, retired);
        refuse_unplaced(hooks, batch);
        return true;
    }
    return false;
}
