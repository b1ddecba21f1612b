/* SPDX-License-Identifier: MIT */
/*
 * Decodes all code of the image once, linearly and in parallel, and marks every byte that a call,
 * a jump or a taken address refers to.  Code between functions is decoded too, because a jump
 * into a patch may come from there. Jump tables follow later (tables.c), since they need all
 * marks.
 *
 * Undecodable bytes are skipped one unit at a time; data among code can only add marks, and so
 * refusals.
 */
#include "verdicts/analysis.h"
#include "verdicts/workers.h"

#include <string.h>

#define ITEM_BYTES 0x10000u /* of code, about what a thread decodes at a time */

/* The code that one thread decodes at a time: [from, to), both entries or ends of a region. */
typedef struct work_item {
    const hfn_region *region;
    uint64_t from, to;
    uint32_t first_function;
    hfn_branch *branches; /* found in it */
    size_t branch_count, branch_capacity;
} work_item;

typedef struct scan {
    hfn_analysis *analysis;
    work_item *items;
    size_t item_count, item_capacity;
} scan;

/* The function, or the code between functions, that is being decoded. */
typedef struct stretch {
    hfn_analysis *analysis;
    const hfn_region *region;
    uint64_t from, to;
    uint32_t function;
    uint32_t jump_marks;
    bool dispatches;
    work_item *item;
    size_t branches_before; /* in the item */
} stretch;

static void add_marks(const stretch *s, uint64_t target, uint32_t marks)
{
    if (hfn_region_has(s->region, target)) {
        hfn_region_mark(s->region, target, marks);
    } else {
        hfn_code_mark(&s->analysis->code, target, marks);
    }
}

static void record_jump(const stretch *s, uint64_t target, uint64_t landing_pad_end)
{
    add_marks(s, target, s->jump_marks);
    if (s->function != HFN_NO_FUNCTION && (target == s->from || target == landing_pad_end)) {
        s->analysis->bodies[s->function].traits |= HFN_TRAIT_LOOPS;
    }
}

/* Store a branch that leaves the function or targets its entry. */
static void add_branch(const stretch *s, uint64_t at, const hfn_instruction *in)
{
    hfn_analysis *a = s->analysis;
    work_item *item = s->item;
    uint64_t field = at + in->relative_at;

    if (s->function == HFN_NO_FUNCTION || in->relative_bytes != 4 || field + 4 > UINT32_MAX ||
        in->target > UINT32_MAX || (in->target > s->from && in->target < s->to) ||
        !a->arch->is_retargetable ||
        !a->arch->is_retargetable(s->region->bytes + (at - s->region->rva), in)) {
        return;
    }
    if (item->branch_count == item->branch_capacity) {
        hfn_os_lock_mutex(&a->lock);
        bool fits = hfn_grow_array(&a->env, (void **)&item->branches, &item->branch_capacity,
                                   item->branch_count + 1, sizeof *item->branches);
        a->no_memory |= !fits;
        hfn_os_unlock_mutex(&a->lock);
        if (!fits) {
            return;
        }
    }
    item->branches[item->branch_count++] = (hfn_branch){ (uint32_t)field, (uint32_t)in->target };
}

/* Record the code or data that an instruction accesses. */
static void record_access(const stretch *s, uint64_t at, const hfn_instruction *in)
{
    hfn_analysis *a = s->analysis;

    hfn_references_add(&a->references, in->target);
    /* Most data is after all code. */
    if (in->target < a->code.regions[a->code.count - 1].end && !in->is_padding &&
        hfn_code_region(&a->code, in->target)) {
        hfn_fixed_add_read(
            a, in->target,
            a->arch->touched_bytes(s->region->bytes + (at - s->region->rva), in->length));
    }
}

static void record_instruction(stretch *s, uint64_t at, const hfn_instruction *in,
                               uint64_t landing_pad_end)
{
    uint64_t taken;

    switch (in->flow) {
    case HFN_FLOW_CALL:
        add_marks(s, in->target, HFN_MARK_CALLED);
        add_branch(s, at, in);
        hfn_flags_record_call(s->analysis, in->target, at + in->length);
        break;
    case HFN_FLOW_JUMP:
    case HFN_FLOW_JUMP_IF:
        record_jump(s, in->target, landing_pad_end);
        add_branch(s, at, in);
        break;
    case HFN_FLOW_JUMP_INDIRECT: s->dispatches |= in->through_table; break;
    default: break;
    }
    if (in->reads_memory_relative) {
        record_access(s, at, in);
    }
    if (hfn_analysis_takes_address(s->analysis, in, &taken)) {
        hfn_references_add(&s->analysis->references, taken);
        add_marks(s, taken, HFN_MARK_TAKEN);
    }
}

static void read_stretch(stretch *s)
{
    const hfn_analysis *a = s->analysis;
    const hfn_region *region = s->region;
    uint64_t at = s->from, landing_pad_end = s->from;
    hfn_instruction in;
    bool is_clean = true;
    hfn_partial_addresses pages = { .known = 0 };

    while (at < s->to) {
        const uint8_t *bytes = region->bytes + (at - region->rva);
        if (!a->arch->decode(bytes, region->end - at, at, a->info.link_base, &in)) {
            at = hfn_analysis_next_start(a, at);
            is_clean = false;
            continue;
        }
        if (a->arch->complete) {
            a->arch->complete(bytes, &pages, &in);
        }
        if (in.is_landing_pad && at == s->from) {
            landing_pad_end = at + in.length;
        } else if (in.flow != HFN_FLOW_NEXT || in.relative_bytes || in.takes_address) {
            record_instruction(s, at, &in, landing_pad_end);
        }
        at += in.length;
    }
    if (!is_clean || at != s->to) { /* data among code: an apparent branch may not be one */
        s->item->branch_count = s->branches_before;
    }
}

static void scan_stretch(hfn_analysis *a, work_item *item, uint64_t from, uint64_t to,
                         uint32_t function)
{
    stretch s = { .analysis = a,
                  .region = item->region,
                  .from = from,
                  .to = to,
                  .function = function,
                  .item = item,
                  .branches_before = item->branch_count };
    bool maybe_part =
        function == HFN_NO_FUNCTION || (a->bodies[function].traits & HFN_TRAIT_MAY_BE_PART);

    s.jump_marks = HFN_MARK_JUMPED | (maybe_part ? HFN_MARK_FROM_PART : 0);
    read_stretch(&s);
    if (s.dispatches) {
        const hfn_dispatcher d = { .from = from, .to = to, .function = function };
        hfn_analysis_append(a, (void **)&a->dispatchers, &a->dispatcher_count,
                            &a->dispatcher_capacity, &d, sizeof d);
    }
}

static void scan_item(void *user, uint32_t index)
{
    const scan *whole = user;
    work_item *item = &whole->items[index];
    hfn_analysis *a = whole->analysis;
    uint64_t at = item->from;
    uint32_t i = item->first_function;

    while (at < item->to) {
        bool at_entry = i < a->count && a->bodies[i].rva == at;
        uint32_t function = at_entry ? i++ : HFN_NO_FUNCTION;
        uint64_t stop = i < a->count && a->bodies[i].rva < item->to ? a->bodies[i].rva : item->to;
        if (at_entry && a->bodies[function].end < stop) {
            stop = a->bodies[function].end;
        }
        scan_stretch(a, item, at, stop, function);
        at = stop;
    }
}

static bool add_item(scan *s, const hfn_region *region, uint64_t from, uint64_t to, uint32_t first)
{
    const work_item item = { .region = region, .from = from, .to = to, .first_function = first };

    return hfn_analysis_append(s->analysis, (void **)&s->items, &s->item_count, &s->item_capacity,
                               &item, sizeof item);
}

/* Split the region at entries into items of about ITEM_BYTES. */
static bool cut_region(scan *s, const hfn_region *region)
{
    const hfn_analysis *a = s->analysis;
    uint64_t from = region->rva;
    uint32_t i = hfn_analysis_find_body(a, region->rva), first = i;

    for (; i < a->count && a->bodies[i].rva < region->end; i++) {
        if (a->bodies[i].rva - from < ITEM_BYTES) {
            continue;
        }
        if (!add_item(s, region, from, a->bodies[i].rva, first)) {
            return false;
        }
        from = a->bodies[i].rva;
        first = i;
    }
    return add_item(s, region, from, region->end, first);
}

static void mark_taken(void *user, uint64_t target_rva)
{
    const hfn_analysis *a = user;

    hfn_code_mark(&a->code, target_rva, HFN_MARK_TAKEN);
}

/* Join the branches of all items, which are sorted, as the items are. */
static void join_branches(scan *s)
{
    hfn_analysis *a = s->analysis;
    size_t count = 0;

    for (size_t i = 0; i < s->item_count; i++) {
        count += s->items[i].branch_count;
    }
    if (count > 0 && !hfn_grow_array(&a->env, (void **)&a->branches, &a->branch_capacity, count,
                                     sizeof *a->branches)) {
        a->no_memory = true;
    }
    for (size_t i = 0; i < s->item_count; i++) {
        work_item *item = &s->items[i];
        if (a->branches && item->branch_count > 0) {
            memcpy(a->branches + a->branch_count, item->branches,
                   item->branch_count * sizeof *a->branches);
        }
        a->branch_count += a->branches ? item->branch_count : 0;
        if (item->branches) {
            hfn_free_memory(&a->env, item->branches,
                            item->branch_capacity * sizeof *item->branches);
        }
    }
}

void hfn_flow_scan(hfn_analysis *a)
{
    scan s = { .analysis = a };
    bool cut = true;

    hfn_image_each_pointer(a->image, mark_taken, a);
    for (uint32_t i = 0; i < a->code.count && cut; i++) {
        cut = cut_region(&s, &a->code.regions[i]);
    }
    if (cut) {
        hfn_workers_run(a->threads, (uint32_t)s.item_count, scan_item, &s);
    }
    join_branches(&s);
    if (s.items) {
        hfn_free_memory(&a->env, s.items, s.item_capacity * sizeof *s.items);
    }
}
