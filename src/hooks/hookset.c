/* SPDX-License-Identifier: MIT */
/* The tables of a hook set: requests, batches and refusals.  This file changes only the tables;
 * commit.c changes the code of the process. */
#include "hooks/hookset.h"

#include "base/memory.h"
#include "base/status.h"

#define NEAR_MARGIN_BYTES (UINT64_C(64) << 10)
#define QUIESCE_NS UINT64_C(50000000)
#define KNOWN_FLAGS                                                                                \
    (HOTFN_HOOKS_SINGLE_THREADED | HOTFN_HOOKS_NO_UNWIND | HOTFN_HOOKS_REGISTER_UNWIND |           \
     HOTFN_HOOKS_KEEP_CALLS)

static hotfn_status no_memory(hotfn_error *err)
{
    return hfn_report_no_memory(err, NULL);
}

/* ---- Create. */

static uint64_t near_range(void)
{
    return hfn_stub_get_patching()->jump_reach_bytes - NEAR_MARGIN_BYTES;
}

hotfn_status hotfn_hooks_create(hotfn_hooks **out, const hotfn_hook_options *options,
                                const hotfn_row_access *access, const hotfn_env *env,
                                hotfn_error *err)
{
    if (!out) {
        return hfn_report_null(err, __func__);
    }

    hotfn_env filled = hfn_env_fill(env);
    hotfn_hook_options taken;
    hotfn_row_access row;
    hotfn_hooks *hooks;

    if (!hfn_copy_options(&taken, sizeof taken, options) ||
        !hfn_copy_options(&row, sizeof row, access) || (taken.flags & ~KNOWN_FLAGS) != 0 ||
        taken.near_range_bytes > near_range()) {
        return hfn_report_error(
            err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
            "unknown hook option, or near_range_bytes is above the reach of a jump");
    }
    hooks = hfn_allocate_zeroed(&filled, sizeof *hooks);
    if (!hooks) {
        return no_memory(err);
    }
    hooks->env = filled;
    hooks->options = taken;
    hooks->access = row;
    if (hooks->options.near_range_bytes == 0) {
        hooks->options.near_range_bytes = near_range();
    }
    if (hooks->options.quiesce_ns == 0) {
        hooks->options.quiesce_ns = QUIESCE_NS;
    }
    *out = hooks;
    return HOTFN_OK;
}

uint32_t hfn_hooks_count_patched(const hotfn_hooks *hooks)
{
    uint32_t count = 0;

    for (size_t i = 0; i < hooks->batch_count; i++) {
        const hfn_batch *batch = &hooks->batches[i];

        for (uint32_t n = 0; batch->state == HFN_BATCH_PATCHED && n < batch->hook_count; n++) {
            count += (batch->hooks[n] & HFN_HOOK_PATCHED) != 0;
        }
    }
    return count;
}

void hotfn_hooks_destroy(hotfn_hooks *hooks)
{
    if (!hooks) {
        return;
    }
    hotfn_hooks_remove(hooks, NULL);
    for (size_t i = 0; i < hooks->batch_count; i++) {
        hfn_batch_finish(hooks, &hooks->batches[i]);
    }
    hfn_regions_finish(&hooks->regions, &hooks->env);
    for (size_t i = hooks->kept_count; i-- > 0;) {
        hooks->kept[i].release(hooks->kept[i].object);
    }
    hfn_free_memory(&hooks->env, hooks->kept, hooks->kept_capacity * sizeof *hooks->kept);
    hfn_free_memory(&hooks->env, hooks->modules, hooks->module_capacity * sizeof *hooks->modules);
    hfn_free_memory(&hooks->env, hooks->batches, hooks->batch_capacity * sizeof *hooks->batches);
    hfn_free_memory(&hooks->env, hooks->refusals,
                    hooks->refusal_capacity * sizeof *hooks->refusals);
    hfn_free_memory(&hooks->env, hooks, sizeof *hooks);
}

bool hfn_hooks_keep(hotfn_hooks *hooks, void *object, void (*release)(void *object))
{
    if (!hfn_grow_array(&hooks->env, (void **)&hooks->kept, &hooks->kept_capacity,
                        hooks->kept_count + 1, sizeof *hooks->kept)) {
        return false;
    }
    hooks->kept[hooks->kept_count++] = (hfn_kept){ object, release };
    return true;
}

/* ---- Batches. */

hotfn_hook_action hfn_batch_action(const hfn_batch *batch, uint32_t index)
{
    hotfn_hook_action action = HOTFN_HOOK_ACTION_INIT;

    if (batch->actions) {
        return batch->actions[index];
    }
    action.kind = batch->kind;
    action.slot = batch->slots ? batch->slots[index] : 0;
    return action;
}

void hfn_batch_free_requests(hotfn_hooks *hooks, hfn_batch *batch)
{
    size_t room = batch->hook_capacity;

    hfn_free_memory(&hooks->env, batch->slots, room * sizeof *batch->slots);
    hfn_free_memory(&hooks->env, batch->actions, room * sizeof *batch->actions);
    batch->slots = NULL;
    batch->actions = NULL;
}

void hfn_batch_finish(hotfn_hooks *hooks, hfn_batch *batch)
{
    hfn_batch_free_requests(hooks, batch);
    hfn_free_memory(&hooks->env, batch->hooks, batch->hook_capacity * sizeof *batch->hooks);
    hfn_free_memory(&hooks->env, batch->outlying,
                    batch->outlying_capacity * sizeof *batch->outlying);
    memset(batch, 0, sizeof *batch);
}

static bool is_timing(uint32_t kind)
{
    return kind == HOTFN_ACTION_TIME || kind == HOTFN_ACTION_SAMPLE;
}

/* Whether the action is kept until the commit, because the stub contains addresses from it. */
static bool keeps_action(uint32_t kind)
{
    return kind == HOTFN_ACTION_CALL || kind == HOTFN_ACTION_REPLACE || kind == HOTFN_ACTION_FILTER;
}

static bool counts_calls(uint32_t kind)
{
    return kind == HOTFN_ACTION_COUNT || is_timing(kind);
}

/* Make room for `capacity` hooks.  If there is no memory, the batch is unchanged and the result is
 * false. */
static bool resize_batch(hotfn_hooks *hooks, hfn_batch *batch, uint32_t capacity)
{
    hfn_batch larger = *batch;
    uint32_t used = batch->hook_count;
    bool counts = counts_calls(batch->kind), acts = keeps_action(batch->kind);

    larger.hook_capacity = capacity;
    larger.outlying = NULL;
    larger.outlying_capacity = 0;
    larger.hooks = hfn_allocate_zeroed(&hooks->env, capacity * sizeof *larger.hooks);
    larger.slots =
        counts ? hfn_allocate_zeroed(&hooks->env, capacity * sizeof *larger.slots) : NULL;
    larger.actions =
        acts ? hfn_allocate_zeroed(&hooks->env, capacity * sizeof *larger.actions) : NULL;
    if (!larger.hooks || (counts && !larger.slots) || (acts && !larger.actions)) {
        hfn_batch_finish(hooks, &larger);
        return false;
    }
    if (used > 0) {
        memcpy(larger.hooks, batch->hooks, used * sizeof *larger.hooks);
        if (counts) {
            memcpy(larger.slots, batch->slots, used * sizeof *larger.slots);
        }
        if (acts) {
            memcpy(larger.actions, batch->actions, used * sizeof *larger.actions);
        }
    }
    hfn_batch_finish(hooks, batch);
    *batch = larger;
    return true;
}

/* Add a pending batch to the table; NULL if there is no memory. */
static hfn_batch *new_batch(hotfn_hooks *hooks, uint32_t module, uint32_t kind)
{
    size_t at = 0;
    hfn_batch *batch;

    while (at < hooks->batch_count && hooks->batches[at].state != HFN_BATCH_EMPTY) {
        at++;
    }
    if (at == hooks->batch_count) {
        if (!hfn_grow_array(&hooks->env, (void **)&hooks->batches, &hooks->batch_capacity, at + 1,
                            sizeof *hooks->batches)) {
            return NULL;
        }
        hooks->batch_count++;
    }
    batch = &hooks->batches[at];
    memset(batch, 0, sizeof *batch);
    batch->state = HFN_BATCH_PENDING;
    batch->module = module;
    batch->kind = kind;
    return batch;
}

/* Find or add a pending batch of the module and kind whose last entry is below `entry`, and make
 * room for one more hook.  NULL if there is no memory. */
static hfn_batch *find_or_add_batch(hotfn_hooks *hooks, uint32_t module, uint32_t kind,
                                    uint32_t entry)
{
    hfn_batch *batch = NULL;

    for (size_t i = hooks->batch_count; i > 0 && !batch; i--) {
        hfn_batch *candidate = &hooks->batches[i - 1];
        if (candidate->state == HFN_BATCH_PENDING && candidate->module == module &&
            candidate->kind == kind &&
            (candidate->hooks[candidate->hook_count - 1] & HFN_HOOK_ENTRY) < entry) {
            batch = candidate;
        }
    }
    if (!batch) {
        batch = new_batch(hooks, module, kind);
    }
    if (batch && batch->hook_count == batch->hook_capacity &&
        !resize_batch(hooks, batch, batch->hook_capacity ? batch->hook_capacity * 2 : 4)) {
        if (batch->hook_count == 0) {
            hfn_batch_finish(hooks, batch);
        }
        return NULL;
    }
    return batch;
}

/* ---- Requests. */

static hotfn_status check_plan(hotfn_hooks *hooks, const hotfn_plan *plan, hotfn_error *err)
{
    if (plan->machine != hfn_stub_get_patching()->machine) {
        return hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                                "the plan is for another machine than this process");
    }
    return hfn_hooks_check_threads(hooks, plan, err);
}

static uint64_t slot_bytes(const hotfn_hooks *hooks, uint32_t slot)
{
    return hooks->access.slot_base_bytes + UINT64_C(8) * slot;
}

static uint32_t far_bit(const hotfn_hooks *hooks, uint32_t slot)
{
    return slot_bytes(hooks, slot) < HFN_STUB_NEAR_SLOT_BYTES ? 0 : HFN_HOOK_FAR_SLOT;
}

static hotfn_status check_slot(const hotfn_hooks *hooks, uint32_t slot, hotfn_error *err)
{
    if (!hooks->access.slow_path) {
        return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                "a counting hook needs the row access of hotfn_hooks_create");
    }
    if (!hfn_stub_can_reach(hooks->access.displacement, slot_bytes(hooks, slot))) {
        return hfn_report_error(err, HOTFN_E_LIMIT, NULL, HOTFN_NO_OFFSET,
                                "slot %u is out of the reach of stubs", slot);
    }
    return HOTFN_OK;
}

/* Find the module or add it, and return its handle; UINT32_MAX if there is no memory. */
static uint32_t find_or_add_module(hotfn_hooks *hooks, const hotfn_plan *plan, uint64_t base)
{
    size_t at;

    for (at = 0; at < hooks->module_count; at++) {
        if (hooks->modules[at].base == base &&
            (hooks->modules[at].plan == plan || !hooks->modules[at].plan)) {
            break;
        }
    }
    if (at == hooks->module_count) {
        if (!hfn_grow_array(&hooks->env, (void **)&hooks->modules, &hooks->module_capacity, at + 1,
                            sizeof *hooks->modules)) {
            return UINT32_MAX;
        }
        hooks->module_count++;
    }
    hooks->modules[at] = (hfn_module){ plan, base };
    return (uint32_t)at;
}

/* Selects the functions of a module for one batch: functions with a slot whose entry lies in
 * [first_rva, end_rva) and whose action is of `kind`. */
typedef struct choice {
    const uint32_t *slots;
    uint32_t kind;
    uint64_t first_rva, end_rva;
} choice;

/* A function with tail exits cannot be timed if no site of the module may be patched. */
static bool can_time(const hotfn_hooks *hooks, const hotfn_plan *plan, uint32_t entry)
{
    return hfn_hooks_can_time(hooks) && hfn_plan_is_timed(plan, entry) &&
           !((hooks->options.flags & HOTFN_HOOKS_KEEP_CALLS) &&
             hfn_plan_has_tail_exit(plan, entry));
}

/* Whether the choice includes the entry; stores the entry's slot. */
static bool is_chosen(const hotfn_hooks *hooks, const hotfn_plan *plan, uint32_t entry,
                      const choice *c, uint32_t *slot)
{
    bool timed = can_time(hooks, plan, entry);
    uint64_t rva = hfn_plan_rva_at(plan, entry);

    *slot = c->slots[hfn_plan_function_at(plan, entry)];
    return *slot != UINT32_MAX && timed == is_timing(c->kind) && rva >= c->first_rva &&
           rva < c->end_rva;
}

/* Count the chosen entries and raise *highest_slot to their highest slot. */
static uint32_t count_chosen(const hotfn_hooks *hooks, const hotfn_plan *plan, const choice *c,
                             uint32_t *highest_slot)
{
    uint32_t count = 0, slot;

    for (uint32_t i = 0; i < plan->entry_count; i++) {
        if (!is_chosen(hooks, plan, i, c, &slot)) {
            continue;
        }
        *highest_slot = slot > *highest_slot ? slot : *highest_slot;
        count++;
    }
    return count;
}

static bool add_batch(hotfn_hooks *hooks, uint32_t module, uint32_t count, const choice *c)
{
    const hotfn_plan *plan = hooks->modules[module].plan;
    hfn_batch *batch = count > 0 ? new_batch(hooks, module, c->kind) : NULL;
    uint32_t slot;

    if (count == 0) {
        return true;
    }
    if (!batch) {
        return false;
    }
    if (!resize_batch(hooks, batch, count)) {
        hfn_batch_finish(hooks, batch);
        return false;
    }
    for (uint32_t i = 0; i < plan->entry_count; i++) {
        if (!is_chosen(hooks, plan, i, c, &slot)) {
            continue;
        }
        batch->hooks[batch->hook_count] = i | far_bit(hooks, slot);
        batch->slots[batch->hook_count++] = slot;
    }
    return true;
}

/* The hooks whose entries lie in one address range of a module: one batch counts, one times. */
typedef struct part {
    choice count, time;
    uint32_t counted, timed; /* functions in each choice */
    uint32_t highest_slot;
} part;

static part collect_part(const hotfn_hooks *hooks, const hotfn_plan *plan, const uint32_t *slots,
                         uint64_t first_rva, uint64_t end_rva)
{
    uint32_t kind = hooks->access.skip_base_bytes ? HOTFN_ACTION_SAMPLE : HOTFN_ACTION_TIME;
    part p = { .count = { slots, HOTFN_ACTION_COUNT, first_rva, end_rva },
               .time = { slots, kind, first_rva, end_rva } };

    p.timed = count_chosen(hooks, plan, &p.time, &p.highest_slot);
    p.counted = count_chosen(hooks, plan, &p.count, &p.highest_slot);
    return p;
}

static bool add_part(hotfn_hooks *hooks, uint32_t module, const part *p)
{
    return add_batch(hooks, module, p->counted, &p->count) &&
           add_batch(hooks, module, p->timed, &p->time);
}

/* A module that is larger than the reach of a jump is divided into address ranges, each with its
 * own stubs. */
hotfn_status hotfn_hooks_add_module(hotfn_hooks *hooks, const hotfn_plan *plan, uint64_t base,
                                    const uint32_t *slots, uint32_t *module, hotfn_error *err)
{
    if (!hooks || !plan || !slots || !module) {
        return hfn_report_null(err, __func__);
    }

    bool is_wide = hfn_hooks_is_wide(hooks, plan);
    uint64_t range_bytes = is_wide ? hooks->options.near_range_bytes / 2 : UINT64_MAX, at = 0;
    hotfn_status status = check_plan(hooks, plan, err);
    part p = { .counted = 0 };
    uint32_t handle;

    if (status == HOTFN_OK) {
        p = collect_part(hooks, plan, slots, 0, UINT64_MAX);
    }
    if (p.counted + p.timed > 0) { /* the whole module is refused if a slot is out of reach */
        status = check_slot(hooks, p.highest_slot, err);
    }
    if (status != HOTFN_OK) {
        return status;
    }
    handle = find_or_add_module(hooks, plan, base);
    if (handle == UINT32_MAX) {
        return no_memory(err);
    }
    do {
        if (is_wide) {
            p = collect_part(hooks, plan, slots, at, at + range_bytes);
        }
        if (!add_part(hooks, handle, &p)) {
            return no_memory(err);
        }
        at += range_bytes;
    } while (is_wide && (int64_t)at < plan->reach_end);
    *module = handle;
    return HOTFN_OK;
}

static hotfn_status check_action(const hotfn_hooks *hooks, const hotfn_hook_action *action,
                                 hotfn_error *err)
{
    if (action->kind == HOTFN_ACTION_COUNT) {
        return check_slot(hooks, action->slot, err);
    }
    if (is_timing(action->kind) &&
        (!hfn_hooks_can_time(hooks) ||
         (action->kind == HOTFN_ACTION_SAMPLE && hooks->access.skip_base_bytes == 0))) {
        return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                "a timing hook needs the timing functions of the row access");
    }
    if (is_timing(action->kind)) {
        return check_slot(hooks, action->slot, err);
    }
    if (action->kind == HOTFN_ACTION_FLOOR ||
        (action->kind == HOTFN_ACTION_CALL && action->callback) ||
        (action->kind == HOTFN_ACTION_REPLACE && action->replacement) ||
        (action->kind == HOTFN_ACTION_FILTER && action->filter)) {
        return HOTFN_OK;
    }
    return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                            "unknown hook action, or an action without its function");
}

hotfn_status hotfn_hooks_add(hotfn_hooks *hooks, const hotfn_plan *plan, uint64_t base,
                             uint32_t function_index, const hotfn_hook_action *action,
                             uint32_t *module, hotfn_error *err)
{
    if (!hooks || !plan || !module) {
        return hfn_report_null(err, __func__);
    }

    uint32_t entry = hfn_plan_find_function(plan, function_index), handle;
    hotfn_status status = check_plan(hooks, plan, err);
    hotfn_hook_action taken;
    hfn_batch *batch;

    if (status != HOTFN_OK) {
        return status;
    }
    if (!action || !hfn_copy_options(&taken, sizeof taken, action)) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET, "unknown hook action");
    }
    if (entry == UINT32_MAX) {
        return hfn_report_error(err, HOTFN_E_NOT_FOUND, NULL, HOTFN_NO_OFFSET,
                                "function %u is not in the plan", function_index);
    }
    if (is_timing(taken.kind) && !hfn_plan_is_timed(plan, entry)) {
        return hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                                "function %u may not be timed", function_index);
    }
    status = check_action(hooks, &taken, err);
    if (status == HOTFN_OK && !hooks->knows_entries &&
        (taken.kind == HOTFN_ACTION_REPLACE || taken.kind == HOTFN_ACTION_FILTER)) {
        status = hfn_hooks_check_replaceable(plan, entry, taken.kind, err);
    }
    if (status != HOTFN_OK) {
        return status;
    }
    handle = find_or_add_module(hooks, plan, base);
    batch = handle == UINT32_MAX ? NULL : find_or_add_batch(hooks, handle, taken.kind, entry);
    if (!batch) {
        return no_memory(err);
    }
    if (batch->slots) {
        batch->slots[batch->hook_count] = taken.slot;
    }
    if (batch->actions) {
        batch->actions[batch->hook_count] = taken;
    }
    batch->hooks[batch->hook_count++] = entry | (batch->slots ? far_bit(hooks, taken.slot) : 0);
    *module = handle;
    return HOTFN_OK;
}

void hotfn_hooks_forget_module(hotfn_hooks *hooks, uint32_t module)
{
    if (!hooks) {
        return;
    }
    if (module >= hooks->module_count) {
        return;
    }
    for (size_t i = 0; i < hooks->batch_count; i++) {
        hfn_batch *batch = &hooks->batches[i];
        if (batch->module != module) {
            continue;
        }
        if (batch->state == HFN_BATCH_PENDING) {
            hfn_batch_finish(hooks, batch);
        } else if (batch->state == HFN_BATCH_PATCHED) {
            batch->state = HFN_BATCH_RETIRED;
        }
    }
    hooks->modules[module].plan = NULL;
}

/* ---- Refusals. */

void hfn_hooks_refuse(hotfn_hooks *hooks, hfn_batch *batch, uint32_t index, uint32_t reason,
                      uint32_t offset)
{
    hfn_plan_hook hook;

    hfn_batch_hook(hooks, batch, index, &hook);
    batch->hooks[index] |= HFN_HOOK_REFUSED;
    if (batch->targets) {
        batch->targets[batch->hooks[index] & HFN_HOOK_ENTRY].stub = 0;
    }
    if (!hfn_grow_array(&hooks->env, (void **)&hooks->refusals, &hooks->refusal_capacity,
                        hooks->refusal_count + 1, sizeof *hooks->refusals)) {
        hooks->refusals_lost = true;
        return;
    }
    hooks->refusals[hooks->refusal_count++] =
        (hfn_refusal){ batch->module, hook.function_index, reason, offset };
}

void hotfn_hooks_each_refused(const hotfn_hooks *hooks, hotfn_refused_fn visit, void *user)
{
    if (!hooks || !visit) {
        return;
    }
    for (size_t i = 0; i < hooks->refusal_count; i++) {
        const hfn_refusal *r = &hooks->refusals[i];
        visit(user, r->module, r->function_index, r->reason, r->offset);
    }
}
