/* SPDX-License-Identifier: MIT */
/* Only functions that are called most get one: each costs its bytes once more. */
#include "hooks/sole.h"

#include "base/memory.h"
#include "hooks/region_writer.h"
#include "os/os.h"

static uint64_t page_up(uint64_t address)
{
    uint64_t page = hfn_os_page_bytes();

    return (address + page - 1) & ~(page - 1);
}

/* ---- Making. */

static bool is_wanted(const hotfn_hooks *hooks, const hfn_batch *batch)
{
    return batch->often && batch->kind == HOTFN_ACTION_COUNT && hooks->access.sole_row &&
           hfn_batch_module(hooks, batch)->may_count_alone &&
           !(hooks->options.flags & HOTFN_HOOKS_KEEP_CALLS);
}

/* Can callers be sent to it, and can it count so? */
static bool can_have_one(const hfn_batch *batch, const hfn_stub_walk *walk)
{
    return walk->address != 0 && !(batch->hooks[walk->index] & HFN_HOOK_REFUSED) &&
           hfn_trampoline_shape(HFN_ACTION_SOLE, &walk->hook).head_bytes > 0;
}

/* What the stubs need, and the part of the row that they count in. */
static void measure(const hotfn_hooks *hooks, const hfn_batch *batch, hfn_region_needs *needs,
                    uint64_t *row_begin, uint64_t *row_end)
{
    hfn_stub_walk walk = hfn_stub_walk_begin(hooks, batch);
    uint64_t low = UINT64_MAX, high = 0;

    while (hfn_stub_walk_next(&walk)) {
        uint64_t at = hooks->access.slot_base_bytes + UINT64_C(8) * batch->slots[walk.index];
        if (!can_have_one(batch, &walk))
            continue;
        hfn_region_need(needs, &walk.hook);
        needs->stub_bytes += hfn_trampoline_bytes(HFN_ACTION_SOLE, &walk.hook);
        low = at < low ? at : low;
        high = at + 8 > high ? at + 8 : high;
    }
    *row_begin = low & ~(hfn_os_page_bytes() - 1);
    *row_end = page_up(high);
}

/* Where they go: code in whole pages, and behind it the pages of the row that they count in. */
typedef struct place {
    uint64_t code, code_bytes;
    uint64_t row_begin, row_end; /* from the row's first byte */
} place;

static bool find_place(const hotfn_hooks *hooks, const hfn_batch *batch, place *p)
{
    const hfn_module *m = hfn_batch_module(hooks, batch);
    uint64_t row = (uint64_t)(uintptr_t)hooks->access.sole_row + p->row_begin;
    uint64_t row_bytes = p->row_end - p->row_begin;

    p->code = hfn_os_map_near(m->base, m->base + (uint64_t)m->plan->reach_end,
                              p->code_bytes + row_bytes, hooks->options.near_range_bytes);
    if (p->code != 0 &&
        !(hfn_os_can_exchange() && hfn_os_map_again(row, row_bytes, p->code + p->code_bytes))) {
        hfn_os_unmap(p->code, p->code_bytes + row_bytes);
        p->code = 0;
    }
    return p->code != 0;
}

/* Writes the stubs, and notes what each begins with once there are more threads: a jump to the first stub. */
static void write_stubs(hotfn_hooks *hooks, hfn_batch *batch, hfn_region_writer *writer,
                        hotfn_turn_change *change)
{
    uint64_t base = hfn_batch_module(hooks, batch)->base;
    hfn_stub_walk walk = hfn_stub_walk_begin(hooks, batch);

    while (hfn_stub_walk_next(&walk)) {
        hotfn_hook_action action = hfn_batch_action(batch, walk.index);
        hfn_stub_shape shape = hfn_trampoline_shape(HFN_ACTION_SOLE, &walk.hook);
        uint64_t at = writer->at;
        int64_t rva = (int64_t)(at - base);
        if (!can_have_one(batch, &walk))
            continue;
        action.kind = HFN_ACTION_SOLE;
        if (hfn_region_stub(writer, &walk.hook, &shape, base, &action) && rva == (int32_t)rva)
            batch->soles[walk.index] = (int32_t)rva;
        change->at = (uint32_t)(at - writer->code);
        change->byte_count = (uint8_t)hfn_stub_emit_patch(change->bytes, NULL, at, walk.entry);
        change++;
    }
}

/* Never freed: any thread may exchange the code at any time. */
static hotfn_turn *make_turn(const hotfn_env *env, const place *p, uint32_t count)
{
    hotfn_turn *turn = hfn_alloc(env, sizeof *turn + count * sizeof(hotfn_turn_change));

    if (turn)
        *turn = (hotfn_turn){ .begin = p->code,
                              .changes = (hotfn_turn_change *)(turn + 1),
                              .change_count = count };
    return turn;
}

static bool build(hotfn_hooks *hooks, hfn_batch *batch, const hfn_region_needs *needs,
                  const place *p, hfn_region_list *added)
{
    hotfn_turn *turn = make_turn(&hooks->env, p, (uint32_t)needs->stub_count);
    hfn_region_writer writer;
    hotfn_stub_region region;
    uint64_t unwind_bytes;

    batch->soles = hfn_alloc(&hooks->env, batch->hook_count * sizeof *batch->soles);
    if (!turn || !batch->soles)
        return false;
    hfn_region_begin(&writer, hooks, needs, p->code, p->code + p->code_bytes);
    writer.gates.sole_row = p->code + p->code_bytes - p->row_begin;
    write_stubs(hooks, batch, &writer, (hotfn_turn_change *)(turn + 1));
    if (!hfn_region_finish(&writer, &region, &unwind_bytes)) { /* then nobody is sent there */
        memset(batch->soles, 0, batch->hook_count * sizeof *batch->soles);
        return true;
    }
    turn->byte_count =
        page_up(writer.tables != 0 ? writer.tables + unwind_bytes : writer.at) - p->code;
    hooks->access.sole_keep(turn);
    return hfn_near_pages_add(hooks, added, &region, unwind_bytes);
}

bool hfn_sole_build(hotfn_hooks *hooks, hfn_batch *batch, hfn_region_list *added)
{
    hfn_region_needs needs = { .stub_count = 0 };
    place p;

    if (!is_wanted(hooks, batch))
        return true;
    measure(hooks, batch, &needs, &p.row_begin, &p.row_end);
    if (needs.stub_count == 0)
        return true;
    p.code_bytes = page_up(hfn_region_bytes(hooks, &needs));
    return !find_place(hooks, batch, &p) || build(hooks, batch, &needs, &p, added);
}

/* ---- Callers. */

bool hfn_sole_prepare_callers(hotfn_hooks *hooks, hfn_batch *batch)
{
    if (batch->soles)
        batch->callers = hfn_alloc(&hooks->env, hfn_batch_module(hooks, batch)->plan->entry_count);
    return !batch->soles || batch->callers;
}

void hfn_sole_find_callers(const hotfn_hooks *hooks, hfn_batch *batch)
{
    for (size_t i = 0; batch->callers && i < hooks->batch_count; i++) {
        const hfn_batch *one = &hooks->batches[i];
        if (one->state != HFN_BATCH_PENDING || one->module != batch->module ||
            one->kind != HOTFN_ACTION_COUNT)
            continue;
        for (uint32_t n = 0; n < one->hook_count; n++)
            if (one->hooks[n] & HFN_HOOK_STANDS)
                batch->callers[one->hooks[n] & HFN_HOOK_ENTRY] = 1;
    }
}

bool hfn_sole_may_call(const hotfn_hooks *hooks, const hfn_batch *batch, uint32_t rva,
                       uint32_t *own)
{
    const hotfn_plan *plan = hfn_batch_module(hooks, batch)->plan;
    hfn_plan_hook hook;

    if (!batch->callers)
        return false;
    while (*own + 1 < plan->entry_count && hfn_plan_rva_at(plan, *own + 1) <= rva)
        ++*own;
    if (!batch->callers[*own])
        return false;
    hfn_plan_hook_at(plan, *own, &hook);
    return rva >= hook.site_rva && rva < hook.run_end_rva;
}
