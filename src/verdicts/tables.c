/* SPDX-License-Identifier: MIT */
/*
 * Jump tables.  Each function with an indirect jump is decoded again, now that all direct jumps
 * are marked: the straight line before the jump shows the table and usually its size.  Without a
 * size, entries are read up to the next referenced object or the first entry that does not lead
 * to code.  Without a table, every address that the function takes is tried as one.  Both methods
 * may find too many targets, never too few.  A jump whose target is computed without a table makes
 * its function UNBOUNDED.
 */
#include "verdicts/analysis.h"
#include "verdicts/workers.h"

#include <stdlib.h>

#define LINE_MAX 64u       /* instructions of a straight line that are kept */
#define ENTRIES_MAX 65536u /* a larger size is treated as unknown */
#define PAIRS_MAX 4096u    /* pairs of taken addresses, as table and base; more: UNBOUNDED */
#define ROUNDS_MAX 4       /* of dropping sizes; if a size is still invalid then, all are dropped */

/* A table to read. */
typedef struct table {
    uint64_t rva, base;
    uint64_t object; /* not before rva: where the entries begin, if their number is not known */
    uint64_t proof_from, proof_to;     /* entry_count is valid if nothing targets this range */
    uint32_t entry_bytes, entry_count; /* entry_count 0: unknown */
    uint8_t entry_shift;
    bool entry_is_signed;
    uint32_t function;
    const hfn_dispatcher *dispatcher; /* NULL: a table that was tried */
} table;

typedef struct table_scan {
    hfn_analysis *analysis;
    table *tables;
    size_t count, capacity;
} table_scan;

/* The code of one dispatcher while it is decoded. */
typedef struct dispatch_code {
    table_scan *scan;
    const hfn_dispatcher *dispatcher;
    const hfn_region *region;
    uint32_t starts[LINE_MAX];
    uint32_t start_count;
    uint64_t *addresses; /* taken by the code */
    size_t address_count, address_capacity;
    bool checks_lines;     /* only marks jumps whose line can be decoded in two ways */
    bool tries_addresses;  /* as tables, because a line shows none     */
    bool tries_bases;      /* and as bases of their entries            */
    uint64_t unshown_jump; /* the jump whose line shows no table       */
} dispatch_code;

static void add_table(dispatch_code *p, const table *t)
{
    table_scan *s = p->scan;

    hfn_analysis_append(s->analysis, (void **)&s->tables, &s->count, &s->capacity, t, sizeof *t);
}

void hfn_tables_mark_unbounded(hfn_analysis *a, const hfn_dispatcher *dispatcher, uint64_t jump_rva)
{
    uint32_t function = dispatcher->function;

    hfn_flags_add_reading_jump(a, jump_rva);
    if (function == HFN_NO_FUNCTION || (a->bodies[function].traits & HFN_TRAIT_MAY_BE_PART)) {
        hfn_analysis_append(a, (void **)&a->unowned, &a->unowned_count, &a->unowned_capacity,
                            dispatcher, sizeof *dispatcher);
        return;
    }
    a->bodies[function].traits |= HFN_TRAIT_UNBOUNDED;
    a->bodies[function].unbounded_at = (uint32_t)(jump_rva - dispatcher->from);
}

static void mark_unbounded(const dispatch_code *p, uint64_t jump_rva)
{
    hfn_tables_mark_unbounded(p->scan->analysis, p->dispatcher, jump_rva);
}

static bool read_entry(const hfn_analysis *a, hfn_span bytes, const table *t, uint64_t k,
                       uint64_t *target);

static void add_table_jump(hfn_analysis *a, uint64_t rva)
{
    hfn_analysis_append(a, (void **)&a->table_jumps, &a->table_jump_count, &a->table_jump_capacity,
                        &rva, sizeof rva);
}

/* A table with a guessed base is accepted only if its first entry leads to code. */
static void record_table(dispatch_code *p, uint64_t jump_rva, const hfn_dispatch *d)
{
    const hfn_analysis *a = p->scan->analysis;
    const table t = { .rva = d->table_rva,
                      .object = d->object_rva > d->table_rva ? d->object_rva : d->table_rva,
                      .dispatcher = p->dispatcher,
                      .base = d->base_rva,
                      .proof_from = p->dispatcher->from + d->proof_from,
                      .proof_to = jump_rva,
                      .entry_bytes = d->entry_bytes,
                      .entry_shift = d->entry_shift,
                      .entry_is_signed = d->entry_is_signed,
                      .entry_count = d->entry_count <= ENTRIES_MAX ? d->entry_count : 0,
                      .function = p->dispatcher->function };
    uint64_t target;

    if (d->base_is_guessed && (!read_entry(a, hfn_image_span(a->image, t.rva), &t, 0, &target) ||
                               !hfn_code_region(&a->code, target))) {
        mark_unbounded(p, jump_rva);
    } else {
        add_table(p, &t);
        add_table_jump(p->scan->analysis, jump_rva);
    }
}

static void record_dispatch(dispatch_code *p, uint64_t jump_rva)
{
    const hfn_straight_line line = { .bytes =
                                         p->region->bytes + (p->dispatcher->from - p->region->rva),
                                     .size = p->region->end - p->dispatcher->from,
                                     .rva = p->dispatcher->from,
                                     .link_base = p->scan->analysis->info.link_base,
                                     .starts = p->starts,
                                     .count = p->start_count,
                                     .image_base = p->scan->analysis->image_base,
                                     .pic_base = p->scan->analysis->pic_base };
    hfn_dispatch d;

    p->scan->analysis->arch->dispatch(&line, &d);
    switch (d.kind) {
    case HFN_DISPATCH_TABLE: record_table(p, jump_rva, &d); break;
    case HFN_DISPATCH_OFFSET:
        if (line.image_base) { /* the table's address may be any constant */
            mark_unbounded(p, jump_rva);
        }
        p->tries_bases = true;
        p->tries_addresses = true;
        p->unshown_jump = jump_rva;
        break;
    case HFN_DISPATCH_VALUE:
        p->tries_addresses = true;
        p->unshown_jump = jump_rva;
        break;
    case HFN_DISPATCH_COMPUTED: mark_unbounded(p, jump_rva); break;
    default: break;
    }
}

static void push_start(dispatch_code *p, uint32_t offset)
{
    if (p->start_count == LINE_MAX) {
        p->start_count = LINE_MAX / 2;
        for (uint32_t i = 0; i < LINE_MAX / 2; i++) {
            p->starts[i] = p->starts[i + LINE_MAX / 2];
        }
    }
    p->starts[p->start_count++] = offset;
}

/* Whether another instruction was decoded that begins inside an instruction of the line. */
static bool is_line_ambiguous(const dispatch_code *p)
{
    for (uint32_t i = 0; i + 1 < p->start_count; i++) {
        for (uint32_t at = p->starts[i] + 1; at < p->starts[i + 1]; at++) {
            if (hfn_region_is_start(p->region, p->dispatcher->from + at)) {
                return true;
            }
        }
    }
    return false;
}

static void read_instruction(dispatch_code *p, uint64_t at, const hfn_instruction *in)
{
    uint64_t taken;

    if (hfn_region_marks(p->region, at)) {
        p->start_count = 0;
    }
    push_start(p, (uint32_t)(at - p->dispatcher->from));
    if (hfn_analysis_takes_address(p->scan->analysis, in, &taken)) {
        hfn_analysis_append(p->scan->analysis, (void **)&p->addresses, &p->address_count,
                            &p->address_capacity, &taken, sizeof taken);
    }
    if (in->flow == HFN_FLOW_JUMP_INDIRECT && in->through_table) {
        if (!p->checks_lines) {
            record_dispatch(p, at);
        } else if (is_line_ambiguous(p)) {
            mark_unbounded(p, at);
        }
    }
    if (in->flow == HFN_FLOW_JUMP || in->flow == HFN_FLOW_JUMP_INDIRECT ||
        in->flow == HFN_FLOW_RETURN || in->flow == HFN_FLOW_STOP) {
        p->start_count = 0;
    }
}

static void decode_range(dispatch_code *p)
{
    const hfn_analysis *a = p->scan->analysis;
    hfn_instruction in;
    hfn_partial_addresses pages = { .known = 0 };
    uint64_t at = p->dispatcher->from;

    while (at < p->dispatcher->to) {
        const uint8_t *bytes = p->region->bytes + (at - p->region->rva);
        if (!a->arch->decode(bytes, p->region->end - at, at, a->info.link_base, &in)) {
            at = hfn_analysis_next_start(a, at);
            p->start_count = 0;
            continue;
        }
        if (a->arch->complete) {
            a->arch->complete(bytes, &pages, &in);
        }
        read_instruction(p, at, &in);
        at += in.length;
    }
}

/* Jump tables are in read-only data; a table that the program can change cannot be read here. */
static bool is_constant_data(const hfn_analysis *a, uint64_t rva)
{
    hotfn_section section = HOTFN_SECTION_INIT;
    uint32_t index = hfn_image_section_of(a->image, rva);

    return hotfn_image_get_section(a->image, index, &section) == HOTFN_OK &&
           !(section.flags & HOTFN_SECTION_WRITE);
}

/* Try every address that the code takes as the table. */
static void add_unshown_tables(dispatch_code *p)
{
    if (p->tries_bases &&
        (p->address_count == 0 || p->address_count > PAIRS_MAX / p->address_count)) {
        mark_unbounded(p, p->unshown_jump);
    }
    p->tries_bases = p->tries_bases && p->address_count <= PAIRS_MAX / (p->address_count + 1);
    for (size_t i = 0; i < p->address_count; i++) {
        table t = { .rva = p->addresses[i],
                    .object = p->addresses[i],
                    .base = p->addresses[i],
                    .entry_bytes = 4,
                    .entry_is_signed = true,
                    .proof_to = p->unshown_jump,
                    .function = p->dispatcher->function };
        if (!is_constant_data(p->scan->analysis, t.rva)) {
            continue;
        }
        add_table(p, &t);
        if (p->scan->analysis->pic_base) {
            t.base = p->scan->analysis->pic_base;
            add_table(p, &t);
        }
        for (size_t k = 0; p->tries_bases && k < p->address_count; k++) {
            t.base = p->addresses[k];
            if (k != i && t.base - p->dispatcher->from < p->dispatcher->to - p->dispatcher->from) {
                add_table(p, &t);
            }
        }
    }
}

static void free_addresses(dispatch_code *p)
{
    hfn_analysis *a = p->scan->analysis;

    hfn_os_lock_mutex(&a->lock);
    if (p->addresses) {
        hfn_free_memory(&a->env, p->addresses, p->address_capacity * sizeof *p->addresses);
    }
    hfn_os_unlock_mutex(&a->lock);
}

static void scan_dispatcher(void *user, uint32_t item)
{
    table_scan *s = user;
    dispatch_code p = { .scan = s, .dispatcher = &s->analysis->dispatchers[item] };

    p.region = hfn_code_region(&s->analysis->code, p.dispatcher->from);
    decode_range(&p);
    if (p.tries_addresses) {
        add_unshown_tables(&p);
    }
    free_addresses(&p);
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

/* The latest possible end of the table: the next referenced object. */
static uint64_t find_latest_end(const hfn_analysis *a, const table *t)
{
    const hfn_region *region = hfn_code_region(&a->code, t->object);
    uint64_t at = t->object + 1;

    if (!region) {
        return hfn_references_next(&a->references, t->object);
    }
    while (at < region->end && !(hfn_region_marks(region, at) & HFN_MARK_TAKEN)) {
        at++;
    }
    return at;
}

static bool read_entry(const hfn_analysis *a, hfn_span bytes, const table *t, uint64_t k,
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
    if (a->arch->pointer_bytes == 4) {
        *target = (uint32_t)*target;
    }
    return true;
}

bool hfn_tables_read_entry(const hfn_analysis *a, const hfn_dispatch *d, uint64_t k,
                           uint64_t *target)
{
    const table t = { .base = d->base_rva,
                      .entry_bytes = d->entry_bytes,
                      .entry_shift = d->entry_shift,
                      .entry_is_signed = d->entry_is_signed };

    return read_entry(a, hfn_image_span(a->image, d->table_rva), &t, k, target) &&
           hfn_code_region(&a->code, *target);
}

static void add_cross_jump(hfn_analysis *a, uint32_t function, uint64_t target)
{
    const hfn_body *body = &a->bodies[function];
    const hfn_cross_jump c = { function, target };

    if ((a->flags & HOTFN_VERDICTS_TIMING) && (target < body->rva || target >= body->end)) {
        hfn_analysis_append(a, (void **)&a->cross_jumps, &a->cross_jump_count,
                            &a->cross_jump_capacity, &c, sizeof c);
    }
}

static int compare_cross_jumps(const void *a, const void *b)
{
    const hfn_cross_jump *left = a, *right = b;

    if (left->function != right->function) {
        return left->function > right->function ? 1 : -1;
    }
    return (left->target > right->target) - (left->target < right->target);
}

/* Whether the target is the entry of the function, or behind the landing pad there. */
static bool is_entry(const hfn_analysis *a, const hfn_body *function, uint64_t target)
{
    const hfn_region *region = function->region;
    hfn_instruction in = { .is_landing_pad = false };

    return target == function->rva ||
           (region &&
            a->arch->decode(region->bytes + (function->rva - region->rva),
                            region->end - function->rva, function->rva, 0, &in) &&
            in.is_landing_pad && target == function->rva + in.length);
}

/* Whether the table may begin where code refers to it.  If it does not, and its size is not known,
 * neither are its entries. */
static bool has_first_entry(const hfn_analysis *a, const table *t)
{
    uint64_t first = (t->object - t->rva) / t->entry_bytes, target;

    return read_entry(a, hfn_image_span(a->image, t->rva), t, first, &target) &&
           hfn_code_region(&a->code, target);
}

static void read_table(hfn_analysis *a, const table *t)
{
    hfn_span bytes = hfn_image_span(a->image, t->rva);
    uint64_t limit =
        t->entry_count ? t->entry_count : (find_latest_end(a, t) - t->rva) / t->entry_bytes;
    hfn_body *function = t->function == HFN_NO_FUNCTION ? NULL : &a->bodies[t->function];
    uint32_t marks = HFN_MARK_JUMPED;
    uint64_t target;

    if (!function || (function->traits & HFN_TRAIT_MAY_BE_PART)) {
        marks |= HFN_MARK_FROM_PART;
    }
    uint64_t k = 0;
    for (; k < limit && read_entry(a, bytes, t, k, &target); k++) {
        const hfn_region *region = hfn_code_region(&a->code, target);
        if (!region && t->entry_count == 0 && t->rva + k * t->entry_bytes >= t->object) {
            break;
        }
        if (!region) { /* the smallest index is not 0: the table does not begin at its address */
            continue;
        }
        hfn_region_mark(region, target, marks);
        if (function && is_entry(a, function, target)) {
            function->traits |= HFN_TRAIT_LOOPS;
        }
        if (function) {
            add_cross_jump(a, t->function, target);
        }
    }
    const hfn_known_range read = { .rva = t->rva, .end = t->rva + k * t->entry_bytes };
    hfn_analysis_append(a, (void **)&a->tables, &a->table_count, &a->table_capacity, &read,
                        sizeof read);
}

/* Whether a jump targets the instructions that establish the size. */
static bool is_proof_broken(const hfn_analysis *a, const table *t)
{
    const hfn_region *region = hfn_code_region(&a->code, t->proof_from);

    for (uint64_t at = t->proof_from + 1; region && at <= t->proof_to; at++) {
        if (hfn_region_marks(region, at)) {
            return true;
        }
    }
    return false;
}

/* Where no entry of a table is known, its jump may lead anywhere. */
static void mark_unknown_tables(table_scan *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const table *t = &s->tables[i];
        if (t->dispatcher && t->entry_count == 0 && !has_first_entry(s->analysis, t)) {
            hfn_tables_mark_unbounded(s->analysis, t->dispatcher, t->proof_to);
        }
    }
}

/* Read again, up to their latest possible end, the tables whose proof of the size is broken, or all
 * tables with a known size. */
static bool drop_broken_proofs(table_scan *s, bool all)
{
    bool dropped = false;

    for (size_t i = 0; i < s->count; i++) {
        table *t = &s->tables[i];
        if (t->entry_count == 0 || !(all || is_proof_broken(s->analysis, t))) {
            continue;
        }
        t->entry_count = 0;
        read_table(s->analysis, t);
        dropped = true;
    }
    return dropped;
}

/* Whether code to which the table leads reads what stubs change. */
static bool leads_to_reader(const hfn_analysis *a, const table *t)
{
    const hfn_flag_reads nowhere = { .jump_count = 0 };
    hfn_span bytes = hfn_image_span(a->image, t->rva);
    uint64_t limit =
        t->entry_count ? t->entry_count : (find_latest_end(a, t) - t->rva) / t->entry_bytes;
    uint64_t target, before = UINT64_MAX;

    for (uint64_t k = 0;
         k < limit && read_entry(a, bytes, t, k, &target) && hfn_code_region(&a->code, target);
         k++) {
        if (target != before && hfn_flags_live(a, target, &nowhere)) {
            return true;
        }
        before = target;
    }
    return false;
}

/* Code that establishes the size of a table writes all flags, so the targets of such a table cannot
 * read flags that a stub changed. */
static void find_reading_jump(void *user, uint32_t item)
{
    const table_scan *s = user;
    const table *t = &s->tables[item];

    if ((t->entry_count == 0 || !s->analysis->arch->stubs_change_flags) &&
        leads_to_reader(s->analysis, t)) {
        hfn_flags_add_reading_jump(s->analysis, t->proof_to);
    }
}

/* Whether any hidden path begins in the dispatcher's code. */
static bool has_hidden(const hfn_analysis *a, const hfn_dispatcher *d)
{
    for (size_t i = 0; i < a->hidden_count; i++) {
        if (a->hidden[i] - d->from < d->to - d->from) {
            return true;
        }
    }
    return false;
}

/* Where the lines of indirect jumps can be decoded in two ways, their tables prove nothing. */
static void drop_ambiguous(table_scan *s)
{
    hfn_analysis *a = s->analysis;

    for (size_t i = 0; a->hidden_count > 0 && i < a->dispatcher_count; i++) {
        if (has_hidden(a, &a->dispatchers[i])) {
            dispatch_code p = { .scan = s,
                                .dispatcher = &a->dispatchers[i],
                                .region = hfn_code_region(&a->code, a->dispatchers[i].from),
                                .checks_lines = true };
            decode_range(&p);
            free_addresses(&p);
        }
    }
}

void hfn_tables_scan(hfn_analysis *a)
{
    table_scan s = { .analysis = a };

    hfn_workers_run(a->threads, (uint32_t)a->dispatcher_count, scan_dispatcher, &s,
                    hfn_progress_begin(&a->env, "reading jump tables of", hfn_image_path(a->image),
                                       a->dispatcher_count));
    if (s.count > 0) {
        qsort(s.tables, s.count, sizeof *s.tables, compare_tables);
    }
    for (size_t i = 0; i < s.count; i++) {
        if (i == 0 || compare_tables(&s.tables[i], &s.tables[i - 1]) != 0) {
            read_table(a, &s.tables[i]);
        }
    }
    hfn_flow_scan_hidden(a);
    for (int round = 0; round < ROUNDS_MAX && drop_broken_proofs(&s, false); round++) {
        hfn_flow_scan_hidden(a);
    }
    if (drop_broken_proofs(&s, false)) {
        drop_broken_proofs(&s, true);
        hfn_flow_scan_hidden(a);
    }
    drop_ambiguous(&s);
    mark_unknown_tables(&s);
    hfn_workers_run(a->threads, (uint32_t)s.count, find_reading_jump, &s, (hfn_progress){ 0 });
    if (a->cross_jump_count > 0) {
        qsort(a->cross_jumps, a->cross_jump_count, sizeof *a->cross_jumps, compare_cross_jumps);
    }
    if (s.tables) {
        hfn_free_memory(&a->env, s.tables, s.capacity * sizeof *s.tables);
    }
}
