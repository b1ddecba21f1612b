/* SPDX-License-Identifier: MIT */
/* HOT PATH (write and restore): no libc, see patch.c.  A site is one instruction, so no thread is
 * inside it, and the caller has stopped all other threads.  The original value of a field is not
 * stored, because it can be computed: it is the distance to the function. */
#include "hooks/sites.h"

#include "base/compiler.h"
#include "base/memory.h"
#include "hooks/trampoline.h"

bool hfn_sites_wanted(const hotfn_hooks *hooks, const hfn_batch *batch)
{
    const hotfn_plan *plan = hfn_batch_module(hooks, batch)->plan;

    return (batch->kind == HOTFN_ACTION_COUNT || batch->kind == HOTFN_ACTION_TIME ||
            batch->kind == HOTFN_ACTION_SAMPLE || batch->kind == HFN_ACTION_COUNT_SHARED) &&
           plan->site_count > 0 && !(hooks->options.flags & HOTFN_HOOKS_KEEP_CALLS);
}

bool hfn_sites_begin(hotfn_hooks *hooks, hfn_batch *batch)
{
    uint32_t entries = hfn_batch_module(hooks, batch)->plan->entry_count;

    if (!hfn_sites_wanted(hooks, batch)) {
        return true;
    }
    batch->targets = hfn_allocate_zeroed(&hooks->env, entries * sizeof *batch->targets);
    return batch->targets;
}

void hfn_sites_set_target(const hotfn_hooks *hooks, hfn_batch *batch, uint32_t index, uint32_t rva,
                          uint64_t entry_address)
{
    int64_t stub = (int64_t)(entry_address - hfn_batch_module(hooks, batch)->base);

    if (batch->targets && stub == (int32_t)stub) {
        batch->targets[batch->hooks[index] & HFN_HOOK_ENTRY] =
            (hfn_site_target){ rva, (int32_t)stub };
    }
}

bool hfn_sites_prepare(hotfn_hooks *hooks, hfn_batch *batch, uint32_t mask, uint32_t wanted)
{
    hfn_stub_walk walk = hfn_stub_walk_begin(hooks, batch);

    if (batch->targets) {
        return true;
    }
    if (!hfn_sites_begin(hooks, batch)) {
        return false;
    }
    while (batch->targets && hfn_stub_walk_next(&walk)) {
        if ((batch->hooks[walk.index] & mask) == wanted && walk.address != 0) {
            hfn_sites_set_target(hooks, batch, walk.index, walk.hook.rva, walk.entry);
        }
    }
    return true;
}

void hfn_sites_finish(hotfn_hooks *hooks, hfn_batch *batch)
{
    if (!batch->targets) {
        return;
    }
    hfn_free_memory(&hooks->env, batch->targets,
                    hfn_batch_module(hooks, batch)->plan->entry_count * sizeof *batch->targets);
    batch->targets = NULL;
}

/* ---- One site. */

/* A site in this process, and the two expected values of its field. */
typedef struct site {
    uint64_t field;
    uint32_t to_function, to_stub;
    hfn_os_writable_text *text;
    uint32_t read_only_count; /* sites that were skipped because they cannot be written */
} site;

/* The table of targets and the copied code are too large for the caches, so a second iterator
 * runs ahead and prefetches both. */
typedef struct walks {
    hfn_site_walk here, ahead;
} walks;

enum { SITES_AHEAD = 16 };

static walks walks_begin(const hotfn_plan *plan)
{
    walks w = { hfn_site_walk_begin(plan), hfn_site_walk_begin(plan) };

    for (uint32_t i = 0; i < SITES_AHEAD && hfn_site_walk_next(&w.ahead); i++) {
    }
    return w;
}

static inline bool walks_next(walks *w, const hfn_batch *batch, uint64_t base)
{
    if (hfn_site_walk_next(&w->ahead)) {
        hfn_prefetch_line((uint64_t)(uintptr_t)&batch->targets[w->ahead.entry]);
        hfn_prefetch_line(base + w->ahead.field_rva);
    }
    return hfn_site_walk_next(&w->here);
}

/* Advance to the next site that is writable and can reach its stub.  On entry, out->text is the
 * text of the previous site. */
static inline bool next_site(const hfn_batch *batch, uint64_t base, const hfn_patch_spans *spans,
                             walks *w, site *out)
{
    const hfn_site_walk *walk = &w->here;

    while (walks_next(w, batch, base)) {
        const hfn_site_target *target = &batch->targets[walk->entry];
        int64_t distance = target->stub - (int64_t)walk->next_rva;
        uint64_t from = base + walk->field_rva - 2, behind = base + walk->next_rva;
        if (target->stub == 0) {
            continue;
        }
        if (!out->text || from < out->text->begin || behind > out->text->end) {
            out->text = hfn_patch_spans_find(spans, from);
        }
        if (distance != (int32_t)distance) {
            continue;
        }
        if (!out->text || behind > out->text->end) {
            out->read_only_count++;
            continue;
        }
        out->field = base + walk->field_rva;
        out->to_function = target->rva - walk->next_rva;
        out->to_stub = (uint32_t)distance;
        return true;
    }
    return false;
}

/* call rel32, jmp rel32, jcc rel32 */
static bool is_branch(uint64_t field)
{
    const volatile uint8_t *at = (const volatile uint8_t *)(uintptr_t)field;

    return at[-1] == 0xe8 || at[-1] == 0xe9 || ((at[-1] & 0xf0) == 0x80 && at[-2] == 0x0f);
}

typedef struct unaligned_u32 {
    uint32_t value;
} __attribute__((packed, may_alias)) unaligned_u32;

static uint32_t value_at(uint64_t field)
{
    return ((const volatile unaligned_u32 *)(uintptr_t)field)->value;
}

static void write_field(const site *s, uint32_t value)
{
    uint8_t bytes[PLAN_FIELD_BYTES];

    hfn_write_le32(bytes, value);
    hfn_os_write_text(s->text, s->field, bytes, PLAN_FIELD_BYTES);
}

/* ---- All sites. */

/* Write the tail jumps of a function so that they lead to its stub; false if one cannot be. */
static bool redirect_tail_jumps(const hfn_stub_walk *walk, uint64_t base,
                                const hfn_patch_spans *spans)
{
    const hfn_plan_hook *hook = &walk->hook;

    for (uint32_t i = 0; i < hook->tail_exit_count; i++) {
        uint32_t rva = hfn_read_le32(hook->tail_exits + i * PLAN_FIELD_BYTES);
        uint64_t behind = base + rva + PLAN_FIELD_BYTES;
        site s = { base + rva, hook->tail_target_rva - (rva + PLAN_FIELD_BYTES),
                   (uint32_t)(walk->address - behind), hfn_patch_spans_find(spans, base + rva - 2),
                   0 };
        int64_t distance = (int64_t)(walk->address - behind);
        if (!s.text || behind > s.text->end || distance != (int32_t)distance ||
            !is_branch(s.field) ||
            (value_at(s.field) != s.to_function && value_at(s.field) != s.to_stub)) {
            return false;
        }
        write_field(&s, s.to_stub);
        if (value_at(s.field) != s.to_stub) {
            return false;
        }
    }
    return true;
}

void hfn_sites_write_tail_exits(const hotfn_hooks *hooks, hfn_batch *batch,
                                const hfn_patch_spans *spans)
{
    uint64_t base = hfn_batch_module(hooks, batch)->base;
    hfn_stub_walk walk = hfn_stub_walk_begin(hooks, batch);

    if (batch->kind != HOTFN_ACTION_TIME && batch->kind != HOTFN_ACTION_SAMPLE) {
        return;
    }
    while (hfn_stub_walk_next(&walk)) {
        if (!(batch->hooks[walk.index] & HFN_HOOK_REFUSED) &&
            !redirect_tail_jumps(&walk, base, spans)) {
            batch->hooks[walk.index] |= HFN_HOOK_BLOCKED;
        }
    }
}

void hfn_sites_write(const hotfn_hooks *hooks, hfn_batch *batch, const hfn_patch_spans *spans)
{
    const hfn_module *module = hfn_batch_module(hooks, batch);
    walks w = walks_begin(module->plan);
    site s = { .text = NULL };

    while (batch->targets && next_site(batch, module->base, spans, &w, &s)) {
        if (value_at(s.field) != s.to_function || !is_branch(s.field)) {
            continue;
        }
        write_field(&s, s.to_stub);
        batch->sites_written += value_at(s.field) == s.to_stub;
    }
}

/* Restore the sites that lead to stubs; *other_count receives how many lead elsewhere, but not to
 * their function.  Returns the number of sites that cannot be written. */
static uint32_t restore_sites(const hotfn_hooks *hooks, hfn_batch *batch,
                              const hfn_patch_spans *spans, uint32_t *other_count)
{
    const hfn_module *module = hfn_batch_module(hooks, batch);
    walks w = walks_begin(module->plan);
    site s = { .text = NULL };

    *other_count = 0;
    while (batch->targets && next_site(batch, module->base, spans, &w, &s)) {
        if (value_at(s.field) != s.to_stub) {
            *other_count += value_at(s.field) != s.to_function;
            continue;
        }
        write_field(&s, s.to_function);
        batch->sites_written -= batch->sites_written > 0;
    }
    return s.read_only_count;
}

uint32_t hfn_sites_restore_some(const hotfn_hooks *hooks, hfn_batch *batch,
                                const hfn_patch_spans *spans)
{
    uint32_t other_count;

    return restore_sites(hooks, batch, spans, &other_count);
}

/* Sites that hotfn ctl has restored from outside lead to their function. */
uint32_t hfn_sites_restore(const hotfn_hooks *hooks, hfn_batch *batch, const hfn_patch_spans *spans,
                           uint32_t *foreign)
{
    uint32_t other_count;
    uint32_t read_only_count = restore_sites(hooks, batch, spans, &other_count);
    uint32_t not_restored = batch->sites_written;
    uint32_t changed;

    batch->sites_written = /* still redirected */
        not_restored < read_only_count ? not_restored : read_only_count;
    changed = not_restored - batch->sites_written;
    *foreign += changed < other_count ? changed : other_count;
    return batch->sites_written;
}
