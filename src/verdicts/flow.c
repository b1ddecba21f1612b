/* SPDX-License-Identifier: MIT */
/*
 * Decodes all code of the image once, linearly and in parallel, and marks every byte that a call,
 * a jump or a taken address refers to.  Code between functions is decoded too, because a jump
 * into a patch may come from there. Jump tables follow later (tables.c), since they need all
 * marks.
 *
 * Undecodable bytes are skipped one unit at a time.  Data among code, or an instruction that
 * continues behind an entry, can hide the instructions after it.  So code is also decoded from
 * each marked byte at which the sweep decoded no instruction, until there are none
 * (hfn_flow_scan_hidden).  Where two decodings of the same bytes differ, the marks of both count.
 */
#include "base/search.h"
#include "base/sort.h"
#include "verdicts/analysis.h"
#include "verdicts/workers.h"

#include <stdlib.h>
#include <string.h>

#define ITEM_BYTES 0x10000u /* of code, about what a thread decodes at a time */

/* The code that one thread decodes at a time: [from, to), both entries or ends of a region. */
typedef struct work_item {
    const hfn_region *region;
    uint64_t from, to;
    uint32_t first_function;
    hfn_branch *branches; /* found in it */
    size_t branch_count, branch_capacity;
    hfn_exit *exits; /* found in it, sorted */
    size_t exit_count, exit_capacity;
    hfn_taken *taken; /* found in it, sorted */
    size_t taken_count, taken_capacity;
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
    uint64_t path_from; /* behind the last instruction that does not continue */
    uint32_t function;
    uint32_t jump_marks;
    bool dispatches;
    work_item *item;                 /* NULL: its branches are not kept */
    size_t branches_before;          /* in the item */
    uint64_t start_word, start_bits; /* starts of instructions that are not recorded yet */
} stretch;

/* Record the start of an instruction; a word of them is written at a time. */
static void add_start(stretch *s, uint64_t at)
{
    uint64_t offset = at - s->region->rva;

    if (offset / 64 != s->start_word) {
        hfn_region_add_starts(s->region, s->start_word * 64, s->start_bits);
        s->start_word = offset / 64;
        s->start_bits = 0;
    }
    s->start_bits |= 1ull << offset % 64;
}

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

/* Append to an array of an item, which only one thread uses. */
static void append_own(hfn_analysis *a, void **items, size_t *count, size_t *capacity,
                       const void *added, size_t item_bytes)
{
    if (*count == *capacity) {
        hfn_os_lock_mutex(&a->lock);
        bool fits = hfn_grow_array(&a->env, items, capacity, *count + 1, item_bytes);
        a->no_memory |= !fits;
        hfn_os_unlock_mutex(&a->lock);
        if (!fits) {
            return;
        }
    }
    memcpy((char *)*items + (*count)++ * item_bytes, added, item_bytes);
}

static void add_exit(const stretch *s, uint64_t at, uint64_t target, hfn_exit_kind kind)
{
    hfn_analysis *a = s->analysis;
    work_item *item = s->item;
    const hfn_exit added = { .at = at, .target = target, .kind = kind };

    if (!a->arch->stubs_change_flags && !a->arch->uses_red_zone) {
        return;
    }
    if (item) {
        append_own(a, (void **)&item->exits, &item->exit_count, &item->exit_capacity, &added,
                   sizeof added);
    } else {
        hfn_analysis_append(a, (void **)&a->exits, &a->exit_count, &a->exit_capacity, &added,
                            sizeof added);
    }
}

/* Store a branch that leaves the function or targets its entry. */
static void add_branch(const stretch *s, uint64_t at, const hfn_instruction *in)
{
    hfn_analysis *a = s->analysis;
    work_item *item = s->item;
    uint64_t field = at + in->relative_at;

    if (!item || s->function == HFN_NO_FUNCTION || in->relative_bytes != 4 ||
        field + 4 > UINT32_MAX || in->target > UINT32_MAX ||
        (in->target > s->from && in->target < s->to) || !a->arch->is_retargetable ||
        !a->arch->is_retargetable(s->region->bytes + (at - s->region->rva), in)) {
        return;
    }
    const hfn_branch added = { (uint32_t)field, (uint32_t)in->target, (uint32_t)s->path_from };
    append_own(a, (void **)&item->branches, &item->branch_count, &item->branch_capacity, &added,
               sizeof added);
}

/* Record that the instruction computes, or loads from the GOT, an address of code or of the end of
 * code. */
static void add_taken(const stretch *s, uint64_t at, uint64_t target)
{
    hfn_analysis *a = s->analysis;
    work_item *item = s->item;
    const hfn_taken added = { .at = at, .target = target };

    if (!hfn_code_region(&a->code, target) && !hfn_code_region(&a->code, target - 1) &&
        target - a->got_rva >= a->got_bytes) {
        return;
    }
    if (item) {
        append_own(a, (void **)&item->taken, &item->taken_count, &item->taken_capacity, &added,
                   sizeof added);
    } else {
        hfn_analysis_append(a, (void **)&a->taken, &a->taken_count, &a->taken_capacity, &added,
                            sizeof added);
    }
}

/* Record an address that an instruction computes.  Arithmetic with a constant may subtract it. */
static void record_taken(const stretch *s, uint64_t at, const hfn_instruction *in, uint64_t taken)
{
    uint64_t link_base = s->analysis->info.link_base;

    hfn_references_add(&s->analysis->references, taken);
    add_marks(s, taken, HFN_MARK_TAKEN);
    add_taken(s, at, taken);
    if (in->relative_bytes == 0 && s->analysis->fixed_place) {
        add_taken(s, at, 0 - (taken + link_base) - link_base);
    }
}

/* Record an access of a word that may be in the GOT. */
static void record_slot(const stretch *s, uint64_t at, uint64_t rva)
{
    if (rva - s->analysis->got_rva < s->analysis->got_bytes) {
        add_taken(s, at, rva);
    }
}

/* Record the code or data that an instruction accesses. */
static void record_access(const stretch *s, uint64_t at, const hfn_instruction *in, uint64_t rva)
{
    hfn_analysis *a = s->analysis;

    hfn_references_add(&a->references, rva);
    if (in->flow == HFN_FLOW_NEXT) {
        record_slot(s, at, rva);
    }
    /* Most data is after all code. */
    if (rva < a->code.regions[a->code.count - 1].end && !in->is_padding &&
        hfn_code_region(&a->code, rva)) {
        hfn_fixed_add_read(
            a, rva, a->arch->touched_bytes(s->region->bytes + (at - s->region->rva), in->length));
    }
}

static void record_instruction(stretch *s, uint64_t at, const hfn_instruction *in,
                               uint64_t landing_pad_end)
{
    uint64_t taken, accessed;

    switch (in->flow) {
    case HFN_FLOW_CALL:
        add_marks(s, in->target, HFN_MARK_CALLED);
        add_branch(s, at, in);
        if (hfn_flags_record_call(s->analysis, in->target, at + in->length)) {
            add_exit(s, at, in->target, HFN_EXIT_CALL);
        }
        break;
    case HFN_FLOW_CALL_INDIRECT:
        if (hfn_flags_record_call(s->analysis, HFN_UNKNOWN_TARGET, at + in->length)) {
            add_exit(s, at, HFN_UNKNOWN_TARGET, HFN_EXIT_CALL);
        }
        break;
    case HFN_FLOW_JUMP:
    case HFN_FLOW_JUMP_IF:
        if (in->target - s->from >= s->to - s->from) {
            add_exit(s, at, in->target, HFN_EXIT_JUMP);
        }
        record_jump(s, in->target, landing_pad_end);
        add_branch(s, at, in);
        break;
    case HFN_FLOW_JUMP_INDIRECT:
        s->dispatches |= in->through_table;
        add_exit(s, at, HFN_UNKNOWN_TARGET, HFN_EXIT_JUMP);
        break;
    default: break;
    }
    if (hfn_analysis_accesses(s->analysis, in, s->region->bytes + (at - s->region->rva),
                              &accessed)) {
        record_access(s, at, in, accessed);
    }
    if (hfn_analysis_takes_address(s->analysis, in, &taken)) {
        record_taken(s, at, in, taken);
    } else if (in->from_register && in->flow == HFN_FLOW_NEXT && !in->takes_address &&
               s->analysis->pic_base) {
        record_slot(s, at, (uint32_t)(s->analysis->pic_base + in->target));
    }
}

/* Record that code of a function, whose last instruction is `in`, may continue behind it. */
static void record_end(const stretch *s, uint64_t at, const hfn_instruction *in, bool has_ended,
                       uint64_t next)
{
    bool is_call = in->flow == HFN_FLOW_CALL || in->flow == HFN_FLOW_CALL_INDIRECT;

    if (at == next || s->function == HFN_NO_FUNCTION || next >= s->region->end) {
        return;
    }
    add_exit(s, at, next, has_ended ? HFN_EXIT_PADDING : is_call ? HFN_EXIT_BEHIND : HFN_EXIT_JUMP);
}

static void add_hidden(hfn_analysis *a, uint64_t rva)
{
    hfn_analysis_append(a, (void **)&a->hidden, &a->hidden_count, &a->hidden_capacity, &rva,
                        sizeof rva);
}

static void read_stretch(stretch *s)
{
    const hfn_analysis *a = s->analysis;
    const hfn_region *region = s->region;
    uint64_t at = s->from, last = s->from, padding = s->from, landing_pad_end = s->from;
    hfn_instruction in = { .length = 0 };
    bool is_clean = true, has_ended = true;
    hfn_partial_addresses pages = { .known = 0 };

    while (at < s->to) {
        const uint8_t *bytes = region->bytes + (at - region->rva);
        last = at;
        if (!a->arch->decode(bytes, region->end - at, at, a->info.link_base, &in)) {
            at = hfn_analysis_next_start(a, at);
            is_clean = has_ended = false;
            continue;
        }
        add_start(s, at);
        if (in.is_system || (in.takes_address && in.relative_bytes == 0)) {
            hfn_own_threads_record(s->analysis, region, at, &in);
        }
        if (a->arch->complete) {
            a->arch->complete(bytes, &pages, &in);
        }
        if (in.is_landing_pad && at == s->from) {
            landing_pad_end = at + in.length;
        } else if (in.flow != HFN_FLOW_NEXT || in.relative_bytes || in.takes_address ||
                   in.from_register || in.absolute_at) {
            record_instruction(s, at, &in, landing_pad_end);
        }
        at += in.length;
        if (!has_ended || !in.is_padding) {
            has_ended = hfn_ends_path(&in);
            padding = at; /* if more follows */
            s->path_from = has_ended ? at : s->path_from;
        }
    }
    record_end(s, has_ended ? padding : last, &in, has_ended, at);
    hfn_region_add_starts(region, s->start_word * 64, s->start_bits);
    if (at > s->to) { /* an instruction continues behind the next entry */
        add_hidden(s->analysis, at);
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
                  .path_from = from,
                  .function = function,
                  .item = item,
                  .start_word = (from - item->region->rva) / 64,
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

static void add_hidden_target(hfn_analysis *a, uint64_t target)
{
    const hfn_region *region = hfn_code_region(&a->code, target);

    if (region && !hfn_region_is_start(region, target)) {
        add_hidden(a, target);
    }
}

/* Record an instruction that the sweep missed, and what it refers to. */
static void record_hidden(hfn_analysis *a, const hfn_region *region, uint64_t at,
                          const hfn_instruction *in)
{
    const hfn_dispatcher d = hfn_analysis_find_surroundings(a, region, at);
    bool maybe_part =
        d.function == HFN_NO_FUNCTION || (a->bodies[d.function].traits & HFN_TRAIT_MAY_BE_PART);
    stretch s = { .analysis = a,
                  .region = region,
                  .from = d.from,
                  .to = d.to,
                  .function = d.function,
                  .jump_marks = HFN_MARK_JUMPED | (maybe_part ? HFN_MARK_FROM_PART : 0) };
    uint64_t offset = at - region->rva, taken;

    hfn_region_add_starts(region, offset, 1ull << offset % 64);
    record_instruction(&s, at, in, d.from);
    if (!hfn_ends_path(in) && at + in->length >= d.to) {
        record_end(&s, at, in, false, at + in->length);
    }
    if (in->flow == HFN_FLOW_JUMP || in->flow == HFN_FLOW_JUMP_IF || in->flow == HFN_FLOW_CALL) {
        add_hidden_target(a, in->target);
    }
    if (hfn_analysis_takes_address(a, in, &taken)) {
        add_hidden_target(a, taken);
    }
    if (d.function != HFN_NO_FUNCTION) {
        a->bodies[d.function].traits |= HFN_TRAIT_AMBIGUOUS;
    }
    if (in->flow == HFN_FLOW_JUMP_INDIRECT) {
        hfn_tables_mark_unbounded(a, &d, at);
    }
}

/* Decode from rva until the path ends, or continues with instructions that are known; false if no
 * new instruction is at rva. */
static bool read_hidden(hfn_analysis *a, uint64_t rva)
{
    const hfn_region *region = hfn_code_region(&a->code, rva);
    hfn_partial_addresses pages = { .known = 0 };
    hfn_instruction in = { .flow = HFN_FLOW_NEXT };
    bool found = false;

    while (region && hfn_region_has(region, rva) && !hfn_region_is_start(region, rva) &&
           !hfn_ends_path(&in)) {
        const uint8_t *bytes = region->bytes + (rva - region->rva);
        if (!a->arch->decode(bytes, region->end - rva, rva, a->info.link_base, &in)) {
            break;
        }
        if (a->arch->complete) {
            a->arch->complete(bytes, &pages, &in);
        }
        record_hidden(a, region, rva, &in);
        rva += in.length;
        found = true;
    }
    return found;
}

/* Queue the marked bytes of a region at which no instruction was decoded. */
static void find_hidden(hfn_analysis *a, const hfn_region *region)
{
    for (uint64_t rva = hfn_region_next_marked(region, region->rva); rva < region->end;
         rva = hfn_region_next_marked(region, rva + 1)) {
        if (!hfn_region_is_start(region, rva)) {
            add_hidden(a, rva);
        }
    }
}

void hfn_flow_scan_hidden(hfn_analysis *a)
{
    for (uint32_t i = 0; i < a->code.count; i++) {
        find_hidden(a, &a->code.regions[i]);
    }
    for (; a->hidden_done < a->hidden_count; a->hidden_done++) { /* the loop adds more */
        if (!read_hidden(a, a->hidden[a->hidden_done])) {
            a->hidden[a->hidden_done] = UINT64_MAX;
        }
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

/* Move an array of an item to the end of the analysis' array. */
static void join_own(hfn_analysis *a, void **joined, size_t *count, size_t *capacity, void **own,
                     size_t own_count, size_t own_capacity, size_t item_bytes)
{
    if (own_count > 0 &&
        hfn_grow_array(&a->env, joined, capacity, *count + own_count, item_bytes)) {
        memcpy((char *)*joined + *count * item_bytes, *own, own_count * item_bytes);
        *count += own_count;
    } else {
        a->no_memory |= own_count > 0;
    }
    if (*own) {
        hfn_free_memory(&a->env, *own, own_capacity * item_bytes);
    }
}

/* Join what was found in all items.  It is sorted, as the items are. */
static void join_items(scan *s)
{
    hfn_analysis *a = s->analysis;

    for (size_t i = 0; i < s->item_count; i++) {
        work_item *item = &s->items[i];
        join_own(a, (void **)&a->branches, &a->branch_count, &a->branch_capacity,
                 (void **)&item->branches, item->branch_count, item->branch_capacity,
                 sizeof *item->branches);
        join_own(a, (void **)&a->exits, &a->exit_count, &a->exit_capacity, (void **)&item->exits,
                 item->exit_count, item->exit_capacity, sizeof *item->exits);
        join_own(a, (void **)&a->taken, &a->taken_count, &a->taken_capacity, (void **)&item->taken,
                 item->taken_count, item->taken_capacity, sizeof *item->taken);
    }
}

static bool is_exit_before(const void *a, const void *b)
{
    return ((const hfn_exit *)a)->at < ((const hfn_exit *)b)->at;
}

static bool is_reached(const hfn_analysis *a, const hfn_exit *e)
{
    uint64_t at = e->at;

    if (e->kind == HFN_EXIT_JUMP && e->target == HFN_UNKNOWN_TARGET) {
        size_t i =
            hfn_count_below(a->table_jumps, a->table_jump_count, sizeof *a->table_jumps, 0, at);
        return i == a->table_jump_count || a->table_jumps[i] != at;
    }
    while (e->kind == HFN_EXIT_PADDING && at < e->target && !hfn_code_marks(&a->code, at)) {
        at++;
    }
    return at < e->target || e->kind != HFN_EXIT_PADDING;
}

void hfn_flow_finish_exits(hfn_analysis *a)
{
    size_t kept = 0;

    if (a->table_jump_count > 0) {
        qsort(a->table_jumps, a->table_jump_count, sizeof *a->table_jumps,
              hfn_analysis_compare_addresses);
    }
    for (size_t i = 0; i < a->exit_count; i++) {
        if (is_reached(a, &a->exits[i])) {
            a->exits[kept++] = a->exits[i];
        }
    }
    a->exit_count = kept;
    if (!hfn_sort_array(&a->env, (void **)&a->exits, a->exit_capacity, a->exit_count,
                        sizeof *a->exits, is_exit_before)) {
        a->no_memory = true;
    }
}

const hfn_exit *hfn_flow_exits(const hfn_analysis *a, const hfn_body *body, size_t *count)
{
    size_t first = hfn_count_below(a->exits, a->exit_count, sizeof *a->exits,
                                   offsetof(hfn_exit, at), body->rva);

    *count = hfn_count_below(a->exits, a->exit_count, sizeof *a->exits, offsetof(hfn_exit, at),
                             body->end) -
             first;
    return a->exits ? a->exits + first : NULL;
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
        hfn_workers_run(a->threads, (uint32_t)s.item_count, scan_item, &s,
                        hfn_progress_begin(&a->env, "reading code of", hfn_image_path(a->image),
                                           s.item_count * ITEM_BYTES));
    }
    join_items(&s);
    if (s.items) {
        hfn_free_memory(&a->env, s.items, s.item_capacity * sizeof *s.items);
    }
    hfn_flow_scan_hidden(a);
}
