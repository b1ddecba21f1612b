/* SPDX-License-Identifier: MIT */
/* Computes the addresses of stubs, and looks up stubs by address.  The stubs of a batch are in the
 * order of its hooks, so only the address of the first stub and those of outlying stubs (of the
 * strategy `pun`) are stored. */
#include "base/status.h"
#include "hooks/hookset.h"
#include "hooks/trampoline.h"
#include "hooks/unwind.h"

hfn_stub_walk hfn_stub_walk_begin(const hotfn_hooks *hooks, const hfn_batch *batch)
{
    hfn_stub_walk walk;

    memset(&walk, 0, sizeof walk);
    walk.hooks = hooks;
    walk.batch = batch;
    walk.next = batch->stubs;
    return walk;
}

static uint64_t get_outlying_address(const hfn_batch *batch, uint32_t index)
{
    for (size_t i = 0; i < batch->outlying_count; i++) {
        if (batch->outlying[i].hook == index) {
            return batch->outlying[i].address;
        }
    }
    return 0; /* refused: it has no stub */
}

bool hfn_stub_walk_next(hfn_stub_walk *walk)
{
    const hfn_batch *batch = walk->batch;

    if (walk->next_index == batch->hook_count) {
        return false;
    }
    walk->index = walk->next_index++;
    hfn_batch_hook(walk->hooks, batch, walk->index, &walk->hook);
    walk->shape = hfn_trampoline_shape(batch->kind, &walk->hook, &walk->shape_room);
    walk->byte_count = walk->shape->head_bytes + walk->hook.moved_bytes;
    if (walk->hook.strategy == HOTFN_STRATEGY_PUN) {
        walk->address = get_outlying_address(batch, walk->index);
    } else {
        walk->address = walk->next;
        walk->next += walk->byte_count;
    }
    walk->entry = walk->address + walk->shape->entry_at;
    return true;
}

uint64_t hotfn_hooked_call_get_argument(const hotfn_hooked_call *call, uint32_t index)
{
    return call ? hfn_stub_get_argument(call, index) : 0;
}

void hotfn_hooked_call_set_result(hotfn_hooked_call *call, uint64_t value)
{
    if (call) {
        hfn_stub_set_result(call, value);
    }
}

int32_t hotfn_hooks_find_region(const hotfn_hooks *hooks, uint64_t pc, hotfn_stub_region *out)
{
    if (!hooks) {
        return 0;
    }

    const hotfn_stub_region *found = hfn_regions_find(&hooks->regions, pc);

    return found && hfn_copy_out(out, found, sizeof *found);
}

const void *hotfn_hooks_find_fde(const hotfn_hooks *hooks, uint64_t pc, uint64_t *begin)
{
    if (!hooks || !begin) {
        return NULL;
    }

    const hotfn_stub_region *found = hfn_regions_find(&hooks->regions, pc);

    return found ? hfn_unwind_find(found, pc, begin) : NULL;
}

uint32_t hotfn_hooks_get_region_count(const hotfn_hooks *hooks)
{
    return hooks ? hfn_regions_count(&hooks->regions) : 0;
}

hotfn_status hotfn_hooks_get_region(const hotfn_hooks *hooks, uint32_t index,
                                    hotfn_stub_region *out)
{
    if (!hooks) {
        return HOTFN_E_OPTION;
    }

    const hotfn_stub_region *found = hfn_regions_at(&hooks->regions, index);

    if (!found) {
        return HOTFN_E_NOT_FOUND;
    }
    return hfn_copy_result(out, found, sizeof *found);
}

void hotfn_hooks_each_stub(const hotfn_hooks *hooks, hotfn_stub_fn visit, void *user)
{
    if (!hooks || !visit) {
        return;
    }
    for (size_t i = 0; i < hooks->batch_count; i++) {
        const hfn_batch *batch = &hooks->batches[i];
        hfn_stub_walk walk = hfn_stub_walk_begin(hooks, batch);
        if (batch->state != HFN_BATCH_PATCHED) {
            continue;
        }
        while (hfn_stub_walk_next(&walk)) {
            if (batch->hooks[walk.index] & HFN_HOOK_PATCHED) {
                visit(user, walk.address, walk.byte_count, batch->module, walk.hook.function_index);
            }
        }
    }
}
