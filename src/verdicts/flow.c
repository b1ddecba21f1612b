/* SPDX-License-Identifier: MIT */
/*
 * Reads all code of the image once, straight through, in threads, and marks every byte that a call,
 * a jump or a taken address leads to.  Functions are read from their entries, and so is what lies
 * between them: a jump into somebody's patch may come from anywhere.  Jump tables come after it
 * (tables.c): they need all marks.
 *
 * Bytes that are no instruction are skipped one by one (or word by word, where code is aligned); data
 * among code can only add marks, and so refusals.
 */
#include "verdicts/judging.h"
#include "verdicts/workers.h"

#include <string.h>

#define ITEM_BYTES 0x10000u /* of code, that a thread takes at a time */

/* What one thread reads in one go: [from, to), both at entries or the ends of a region. */
typedef struct work_item {
    const hfn_region *region;
    uint64_t from, to;
    uint32_t first_subject;
    hfn_branch *branches; /* found in it */
    size_t branch_count, branch_capacity;
} work_item;

typedef struct scan {
    hfn_judging *judging;
    work_item *items;
    size_t item_count, item_capacity;
} scan;

/* The stretch that is read now, and whose code it is. */
typedef struct stretch {
    hfn_judging *judging;
    const hfn_region *region;
    uint64_t from, to;
    uint32_t subject;
    uint32_t jump_marks;
    bool dispatches;
    work_item *item;
    size_t branches_before; /* in the item */
} stretch;

static void mark(const stretch *s, uint64_t target, uint32_t marks)
{
    if (hfn_region_has(s->region, target)) {
        hfn_region_mark(s->region, target, marks);
    } else {
        hfn_code_mark(&s->judging->code, target, marks);
    }
}

static void note_jump(const stretch *s, uint64_t target, uint64_t landing_pad_end)
{
    mark(s, target, s->jump_marks);
    if (s->subject != HFN_NO_SUBJECT && (target == s->from || target == landing_pad_end)) {
        s->judging->subjects[s->subject].notes |= HFN_NOTE_LOOPS;
    }
}

/* Remember a branch that leaves the function, or comes back to its entry. */
static void add_branch(const stretch *s, uint64_t at, const hfn_instruction *in)
{
    hfn_judging *j = s->judging;
    work_item *item = s->item;
    uint64_t field = at + in->relative_at;

    if (s->subject == HFN_NO_SUBJECT || in->relative_bytes != 4 || field + 4 > UINT32_MAX ||
        in->target > UINT32_MAX || (in->target > s->from && in->target < s->to) ||
        !j->arch->is_retargetable ||
        !j->arch->is_retargetable(s->region->bytes + (at - s->region->rva), in)) {
        return;
    }
    if (item->branch_count == item->branch_capacity) {
        hfn_os_lock_mutex(&j->lock);
        bool fits = hfn_grow(&j->env, (void **)&item->branches, &item->branch_capacity,
                             item->branch_count + 1, sizeof *item->branches);
        j->no_memory |= !fits;
        hfn_os_unlock_mutex(&j->lock);
        if (!fits) {
            return;
        }
    }
    item->branches[item->branch_count++] = (hfn_branch){ (uint32_t)field, (uint32_t)in->target };
}

/* Bytes of code that an instruction reads or writes. */
static void note_read(const stretch *s, uint64_t at, const hfn_instruction *in)
{
    hfn_judging *j = s->judging;

    hfn_references_add(&j->references, in->target);
    /* Most data lies behind all code. */
    if (in->target < j->code.regions[j->code.count - 1].end && !in->is_padding &&
        hfn_code_region(&j->code, in->target)) {
        hfn_fixed_add_read(
            j, in->target,
            j->arch->touched_bytes(s->region->bytes + (at - s->region->rva), in->length));
    }
}

static void note_instruction(stretch *s, uint64_t at, const hfn_instruction *in,
                             uint64_t landing_pad_end)
{
    uint64_t taken;

    switch (in->flow) {
    case HFN_FLOW_CALL:
        mark(s, in->target, HFN_MARK_CALLED);
        add_branch(s, at, in);
        hfn_flags_note_call(s->judging, in->target, at + in->length);
        break;
    case HFN_FLOW_JUMP:
    case HFN_FLOW_JUMP_IF:
        note_jump(s, in->target, landing_pad_end);
        add_branch(s, at, in);
        break;
    case HFN_FLOW_JUMP_INDIRECT: s->dispatches |= in->through_table; break;
    default: break;
    }
    if (in->reads_memory_relative) {
        note_read(s, at, in);
    }
    if (hfn_judging_takes(s->judging, in, &taken)) {
        hfn_references_add(&s->judging->references, taken);
        mark(s, taken, HFN_MARK_TAKEN);
    }
}

static void read_stretch(stretch *s)
{
    const hfn_judging *j = s->judging;
    const hfn_region *region = s->region;
    uint64_t at = s->from, landing_pad_end = s->from;
    hfn_instruction in;
    bool is_clean = true;
    hfn_partial_addresses pages = { .known = 0 };

    while (at < s->to) {
        const uint8_t *bytes = region->bytes + (at - region->rva);
        if (!j->arch->decode(bytes, region->end - at, at, j->info.link_base, &in)) {
            at = hfn_judging_skip(j, at);
            is_clean = false;
            continue;
        }
        if (j->arch->complete) {
            j->arch->complete(bytes, &pages, &in);
        }
        if (in.is_landing_pad && at == s->from) {
            landing_pad_end = at + in.length;
        } else if (in.flow != HFN_FLOW_NEXT || in.relative_bytes || in.takes_address) {
            note_instruction(s, at, &in, landing_pad_end);
        }
        at += in.length;
    }
    if (!is_clean || at != s->to) { /* data among code: what looks like a branch may be none */
        s->item->branch_count = s->branches_before;
    }
}

static void scan_stretch(hfn_judging *j, work_item *item, uint64_t from, uint64_t to,
                         uint32_t subject)
{
    stretch s = { .judging = j,
                  .region = item->region,
                  .from = from,
                  .to = to,
                  .subject = subject,
                  .item = item,
                  .branches_before = item->branch_count };
    bool maybe_part =
        subject == HFN_NO_SUBJECT || (j->subjects[subject].notes & HFN_NOTE_MAYBE_PART);

    s.jump_marks = HFN_MARK_JUMPED | (maybe_part ? HFN_MARK_FROM_PART : 0);
    read_stretch(&s);
    if (s.dispatches) {
        const hfn_dispatcher d = { .from = from, .to = to, .subject = subject };
        hfn_judging_append(j, (void **)&j->dispatchers, &j->dispatcher_count,
                           &j->dispatcher_capacity, &d, sizeof d);
    }
}

static void scan_item(void *user, uint32_t index)
{
    const scan *whole = user;
    work_item *item = &whole->items[index];
    hfn_judging *j = whole->judging;
    uint64_t at = item->from;
    uint32_t i = item->first_subject;

    while (at < item->to) {
        bool at_entry = i < j->count && j->subjects[i].rva == at;
        uint32_t subject = at_entry ? i++ : HFN_NO_SUBJECT;
        uint64_t stop =
            i < j->count && j->subjects[i].rva < item->to ? j->subjects[i].rva : item->to;
        if (at_entry && j->subjects[subject].end < stop) {
            stop = j->subjects[subject].end;
        }
        scan_stretch(j, item, at, stop, subject);
        at = stop;
    }
}

static bool add_item(scan *s, const hfn_region *region, uint64_t from, uint64_t to, uint32_t first)
{
    const work_item item = { .region = region, .from = from, .to = to, .first_subject = first };

    return hfn_judging_append(s->judging, (void **)&s->items, &s->item_count, &s->item_capacity,
                              &item, sizeof item);
}

/* Cut the region at entries into items of about ITEM_BYTES. */
static bool cut_region(scan *s, const hfn_region *region)
{
    const hfn_judging *j = s->judging;
    uint64_t from = region->rva;
    uint32_t i = hfn_judging_lower(j, region->rva), first = i;

    for (; i < j->count && j->subjects[i].rva < region->end; i++) {
        if (j->subjects[i].rva - from < ITEM_BYTES) {
            continue;
        }
        if (!add_item(s, region, from, j->subjects[i].rva, first)) {
            return false;
        }
        from = j->subjects[i].rva;
        first = i;
    }
    return add_item(s, region, from, region->end, first);
}

static void take_pointer(void *user, uint64_t target_rva)
{
    const hfn_judging *j = user;

    hfn_code_mark(&j->code, target_rva, HFN_MARK_TAKEN);
}

/* The items' branches in one array, which is sorted, as items are. */
static void join_branches(scan *s)
{
    hfn_judging *j = s->judging;
    size_t count = 0;

    for (size_t i = 0; i < s->item_count; i++) {
        count += s->items[i].branch_count;
    }
    if (count > 0 && !hfn_grow(&j->env, (void **)&j->branches, &j->branch_capacity, count,
                               sizeof *j->branches)) {
        j->no_memory = true;
    }
    for (size_t i = 0; i < s->item_count; i++) {
        work_item *item = &s->items[i];
        if (j->branches && item->branch_count > 0) {
            memcpy(j->branches + j->branch_count, item->branches,
                   item->branch_count * sizeof *j->branches);
        }
        j->branch_count += j->branches ? item->branch_count : 0;
        if (item->branches) {
            hfn_free(&j->env, item->branches, item->branch_capacity * sizeof *item->branches);
        }
    }
}

void hfn_flow_scan(hfn_judging *j)
{
    scan s = { .judging = j };
    bool cut = true;

    hfn_image_each_pointer(j->image, take_pointer, j);
    for (uint32_t i = 0; i < j->code.count && cut; i++) {
        cut = cut_region(&s, &j->code.regions[i]);
    }
    if (cut) {
        hfn_workers_run(j->threads, (uint32_t)s.item_count, scan_item, &s);
    }
    join_branches(&s);
    if (s.items) {
        hfn_free(&j->env, s.items, s.item_capacity * sizeof *s.items);
    }
}
