/* SPDX-License-Identifier: MIT */
/*
 * Jump tables.  Each piece of code with an indirect jump is read again, now that all direct jumps are
 * marked: the straight line before the jump shows its table and, mostly, how many entries it has.
 * Where it shows no bound, entries are read up to the next object that the code names or the first
 * that leads to no code; where it shows no table, every address that the piece takes is read as one.  Both can only find
 * too many targets.  A jump that is computed without a table makes its function UNBOUNDED.
 */
#include "verdicts/judging.h"
#include "verdicts/workers.h"

#include <stdlib.h>

#define LINE_MAX 64u       /* instructions of a straight line that are kept */
#define ENTRIES_MAX 65536u /* a larger bound is treated as none */
#define PAIRS_MAX 4096u    /* of taken addresses, as table and base; beyond: unbounded */
#define ROUNDS_MAX                                                                                 \
    4 /* of "a table's target lies in another one's proof"; then no proof is believed */

/* A table to read. */
typedef struct table {
    uint64_t rva, base;
    uint64_t proof_from, proof_to;     /* nothing may lead in between; equal: no proof */
    uint32_t entry_bytes, entry_count; /* count 0: unknown */
    uint8_t entry_shift;
    bool entry_is_signed;
    uint32_t subject;
} table;

typedef struct table_scan {
    hfn_judging *judging;
    table *tables;
    size_t count, capacity;
} table_scan;

/* One piece of code being read. */
typedef struct piece {
    table_scan *scan;
    const hfn_dispatcher *dispatcher;
    const hfn_region *region;
    uint32_t starts[LINE_MAX];
    uint32_t start_count;
    uint64_t *addresses; /* that it takes */
    size_t address_count, address_capacity;
    bool wants_addresses; /* as tables, because a line showed none   */
    bool wants_bases;     /* and taken labels as their bases         */
    uint64_t unshown_at;  /* the jump that wants them                */
} piece;

static void add_table(piece *p, const table *t)
{
    table_scan *s = p->scan;

    hfn_judging_append(s->judging, (void **)&s->tables, &s->count, &s->capacity, t, sizeof *t);
}

/* The jump may land anywhere in its function; that of a fragment, in any function that leads to it. */
static void note_unbounded(const piece *p, uint64_t jump_rva)
{
    hfn_judging *j = p->scan->judging;
    uint32_t subject = p->dispatcher->subject;

    if (subject == HFN_NO_SUBJECT || (j->subjects[subject].notes & HFN_NOTE_MAYBE_PART)) {
        hfn_judging_append(j, (void **)&j->orphans, &j->orphan_count, &j->orphan_capacity,
                           p->dispatcher, sizeof *p->dispatcher);
        return;
    }
    j->subjects[subject].notes |= HFN_NOTE_UNBOUNDED;
    j->subjects[subject].unbounded_at = (uint32_t)(jump_rva - p->dispatcher->from);
}

static bool read_entry(const hfn_judging *j, hfn_span bytes, const table *t, uint64_t k,
                       uint64_t *target);

/* A table whose base was guessed is one only if its first entry leads to code. */
static void note_table(piece *p, uint64_t jump_rva, const hfn_dispatch *d)
{
    const hfn_judging *j = p->scan->judging;
    const table t = { .rva = d->table_rva,
                      .base = d->base_rva,
                      .proof_from = p->dispatcher->from + d->proof_from,
                      .proof_to = jump_rva,
                      .entry_bytes = d->entry_bytes,
                      .entry_shift = d->entry_shift,
                      .entry_is_signed = d->entry_is_signed,
                      .entry_count = d->entry_count <= ENTRIES_MAX ? d->entry_count : 0,
                      .subject = p->dispatcher->subject };
    uint64_t target;

    if (d->base_is_guessed && (!read_entry(j, hfn_image_span(j->image, t.rva), &t, 0, &target) ||
                               !hfn_code_region(&j->code, target))) {
        note_unbounded(p, jump_rva);
    } else {
        add_table(p, &t);
    }
}

static void note_dispatch(piece *p, uint64_t jump_rva)
{
    const hfn_straight_line line = { .bytes =
                                         p->region->bytes + (p->dispatcher->from - p->region->rva),
                                     .size = p->region->end - p->dispatcher->from,
                                     .rva = p->dispatcher->from,
                                     .link_base = p->scan->judging->info.link_base,
                                     .starts = p->starts,
                                     .count = p->start_count,
                                     .image_base = p->scan->judging->image_base,
                                     .pic_base = p->scan->judging->pic_base };
    hfn_dispatch d;

    p->scan->judging->arch->dispatch(&line, &d);
    switch (d.kind) {
    case HFN_DISPATCH_TABLE: note_table(p, jump_rva, &d); break;
    case HFN_DISPATCH_OFFSET:
        if (line.image_base) { /* tables are named by numbers there, which nothing tells from others */
            note_unbounded(p, jump_rva);
        }
        p->wants_bases = true;
        p->wants_addresses = true;
        p->unshown_at = jump_rva;
        break;
    case HFN_DISPATCH_VALUE: p->wants_addresses = true; break;
    case HFN_DISPATCH_COMPUTED: note_unbounded(p, jump_rva); break;
    default: break;
    }
}

static void push_start(piece *p, uint32_t offset)
{
    if (p->start_count == LINE_MAX) {
        p->start_count = LINE_MAX / 2;
        for (uint32_t i = 0; i < LINE_MAX / 2; i++) {
            p->starts[i] = p->starts[i + LINE_MAX / 2];
        }
    }
    p->starts[p->start_count++] = offset;
}

static void read_instruction(piece *p, uint64_t at, const hfn_instruction *in)
{
    uint64_t taken;

    if (hfn_region_marks(p->region, at)) {
        p->start_count = 0;
    }
    push_start(p, (uint32_t)(at - p->dispatcher->from));
    if (hfn_judging_takes(p->scan->judging, in, &taken)) {
        hfn_judging_append(p->scan->judging, (void **)&p->addresses, &p->address_count,
                           &p->address_capacity, &taken, sizeof taken);
    }
    if (in->flow == HFN_FLOW_JUMP_INDIRECT && in->through_table) {
        note_dispatch(p, at);
    }
    if (in->flow == HFN_FLOW_JUMP || in->flow == HFN_FLOW_JUMP_INDIRECT ||
        in->flow == HFN_FLOW_RETURN || in->flow == HFN_FLOW_STOP) {
        p->start_count = 0;
    }
}

static void read_piece(piece *p)
{
    const hfn_judging *j = p->scan->judging;
    hfn_instruction in;
    hfn_partial_addresses pages = { .known = 0 };
    uint64_t at = p->dispatcher->from;

    while (at < p->dispatcher->to) {
        const uint8_t *bytes = p->region->bytes + (at - p->region->rva);
        if (!j->arch->decode(bytes, p->region->end - at, at, j->info.link_base, &in)) {
            at = hfn_judging_skip(j, at);
            p->start_count = 0;
            continue;
        }
        if (j->arch->complete) {
            j->arch->complete(bytes, &pages, &in);
        }
        read_instruction(p, at, &in);
        at += in.length;
    }
}

/* Constants lie in read-only data; a table that the program may change could not be read here. */
static bool is_constant_data(const hfn_judging *j, uint64_t rva)
{
    hotfn_section section = HOTFN_SECTION_INIT;
    uint32_t index = hfn_image_section_of(j->image, rva);

    return hotfn_image_get_section(j->image, index, &section) == HOTFN_OK &&
           !(section.flags & HOTFN_SECTION_WRITE);
}

/* Any address taken here may be the table that a line did not show. */
static void add_unshown_tables(piece *p)
{
    if (p->wants_bases &&
        (p->address_count == 0 || p->address_count > PAIRS_MAX / p->address_count)) {
        note_unbounded(p, p->unshown_at);
    }
    p->wants_bases = p->wants_bases && p->address_count <= PAIRS_MAX / (p->address_count + 1);
    for (size_t i = 0; i < p->address_count; i++) {
        table t = { .rva = p->addresses[i],
                    .base = p->addresses[i],
                    .entry_bytes = 4,
                    .entry_is_signed = true,
                    .subject = p->dispatcher->subject };
        if (!is_constant_data(p->scan->judging, t.rva)) {
            continue;
        }
        add_table(p, &t);
        if (p->scan->judging->pic_base) {
            t.base = p->scan->judging->pic_base;
            add_table(p, &t);
        }
        for (size_t k = 0; p->wants_bases && k < p->address_count; k++) {
            t.base = p->addresses[k];
            if (k != i && t.base - p->dispatcher->from < p->dispatcher->to - p->dispatcher->from) {
                add_table(p, &t);
            }
        }
    }
}

static void scan_piece(void *user, uint32_t item)
{
    table_scan *s = user;
    piece p = { .scan = s, .dispatcher = &s->judging->dispatchers[item] };

    p.region = hfn_code_region(&s->judging->code, p.dispatcher->from);
    read_piece(&p);
    if (p.wants_addresses) {
        add_unshown_tables(&p);
    }
    hfn_os_lock_mutex(&s->judging->lock);
    if (p.addresses) {
        hfn_free(&s->judging->env, p.addresses, p.address_capacity * sizeof *p.addresses);
    }
    hfn_os_unlock_mutex(&s->judging->lock);
}

static int compare_tables(const void *a, const void *b)
{
    const table *left = a, *right = b;

    if (left->rva != right->rva) {
        return left->rva > right->rva ? 1 : -1;
    }
    if (left->base != right->base) {
        return left->base > right->base ? 1 : -1;
    }
    return (left->entry_count > right->entry_count) - (left->entry_count < right->entry_count);
}

/* Where the table ends at the latest: something else is named there. */
static uint64_t latest_end(const hfn_judging *j, const table *t)
{
    const hfn_region *region = hfn_code_region(&j->code, t->rva);
    uint64_t at = t->rva + 1;

    if (!region) {
        return hfn_references_next(&j->references, t->rva);
    }
    while (at < region->end && !(hfn_region_marks(region, at) & HFN_MARK_TAKEN)) {
        at++;
    }
    return at;
}

static bool read_entry(const hfn_judging *j, hfn_span bytes, const table *t, uint64_t k,
                       uint64_t *target)
{
    uint64_t value = 0;

    if (!hfn_span_word(bytes, k * t->entry_bytes, t->entry_bytes, &value)) {
        return false;
    }
    uint32_t unused = 64 - 8 * t->entry_bytes;
    if (t->entry_is_signed) {
        value = (uint64_t)((int64_t)(value << unused) >> unused);
    }
    *target = t->base + (value << t->entry_shift);
    if (j->arch->pointer_bytes == 4) {
        *target = (uint32_t)*target;
    }
    return true;
}

bool hfn_tables_entry(const hfn_judging *j, const hfn_dispatch *d, uint64_t k, uint64_t *target)
{
    const table t = { .base = d->base_rva,
                      .entry_bytes = d->entry_bytes,
                      .entry_shift = d->entry_shift,
                      .entry_is_signed = d->entry_is_signed };

    return read_entry(j, hfn_image_span(j->image, d->table_rva), &t, k, target) &&
           hfn_code_region(&j->code, *target);
}

static void keep_far_case(hfn_judging *j, uint32_t subject, uint64_t target)
{
    const hfn_subject *s = &j->subjects[subject];
    const hfn_far_case c = { subject, target };

    if ((j->flags & HOTFN_VERDICTS_TIMING) && (target < s->rva || target >= s->end)) {
        hfn_judging_append(j, (void **)&j->far_cases, &j->far_case_count, &j->far_case_capacity, &c,
                           sizeof c);
    }
}

static int compare_far_cases(const void *a, const void *b)
{
    const hfn_far_case *left = a, *right = b;

    if (left->subject != right->subject) {
        return left->subject > right->subject ? 1 : -1;
    }
    return (left->target > right->target) - (left->target < right->target);
}

static void read_table(hfn_judging *j, const table *t)
{
    hfn_span bytes = hfn_image_span(j->image, t->rva);
    uint64_t limit = t->entry_count ? t->entry_count : (latest_end(j, t) - t->rva) / t->entry_bytes;
    hfn_subject *subject = t->subject == HFN_NO_SUBJECT ? NULL : &j->subjects[t->subject];
    uint32_t marks = HFN_MARK_JUMPED;
    uint64_t target;

    if (!subject || (subject->notes & HFN_NOTE_MAYBE_PART)) {
        marks |= HFN_MARK_FROM_PART;
    }
    for (uint64_t k = 0; k < limit && read_entry(j, bytes, t, k, &target); k++) {
        const hfn_region *region = hfn_code_region(&j->code, target);
        if (!region) {
            break;
        }
        hfn_region_mark(region, target, marks);
        if (subject && target == subject->rva) {
            subject->notes |= HFN_NOTE_LOOPS;
        }
        if (subject) {
            keep_far_case(j, t->subject, target);
        }
    }
}

/* Does something lead into the instructions that the bound rests on? */
static bool proof_broken(const hfn_judging *j, const table *t)
{
    const hfn_region *region = hfn_code_region(&j->code, t->proof_from);

    for (uint64_t at = t->proof_from + 1; region && at <= t->proof_to; at++) {
        if (hfn_region_marks(region, at)) {
            return true;
        }
    }
    return false;
}

/* Tables found without their bound: read them again, as far as they may reach. */
static bool drop_broken_proofs(table_scan *s, bool all)
{
    bool dropped = false;

    for (size_t i = 0; i < s->count; i++) {
        table *t = &s->tables[i];
        if (t->entry_count == 0 || !(all || proof_broken(s->judging, t))) {
            continue;
        }
        t->entry_count = 0;
        read_table(s->judging, t);
        dropped = true;
    }
    return dropped;
}

void hfn_tables_scan(hfn_judging *j)
{
    table_scan s = { .judging = j };

    hfn_workers_run(j->threads, (uint32_t)j->dispatcher_count, scan_piece, &s);
    if (s.count > 0) {
        qsort(s.tables, s.count, sizeof *s.tables, compare_tables);
    }
    for (size_t i = 0; i < s.count; i++) {
        if (i == 0 || compare_tables(&s.tables[i], &s.tables[i - 1]) != 0) {
            read_table(j, &s.tables[i]);
        }
    }
    for (int round = 0; round < ROUNDS_MAX && drop_broken_proofs(&s, false); round++) {
        ;
    }
    if (drop_broken_proofs(&s, false)) {
        drop_broken_proofs(&s, true);
    }
    if (j->far_case_count > 0) {
        qsort(j->far_cases, j->far_case_count, sizeof *j->far_cases, compare_far_cases);
    }
    if (s.tables) {
        hfn_free(&j->env, s.tables, s.capacity * sizeof *s.tables);
    }
}
