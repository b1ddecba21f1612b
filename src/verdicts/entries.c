/* SPDX-License-Identifier: MIT */
/*
 * Finds functions that have neither a symbol nor unwind data (ELF, and PE of x86).  An entry is
 * accepted if
 *   - a direct call in code that is known to run targets it: code of a function with a known size,
 *     or of an entry that was accepted before; or
 *   - a relocated pointer in data refers to it, and a trap that fills the space between functions
 *     precedes it.  Without the trap, it may be a label of which a function keeps the address.
 * In addition, it is outside of all functions of known size, the sweep over all code decodes an
 * instruction there, the instruction before it does not continue there (or is a call, which may not
 * return), and all bytes from it to the end of its code are instructions of the same sweep.
 *
 * The code of an entry ends at the first instruction that ends a path and that no jump from before
 * it passes.  Code whose jumps go through a table ends at the next trap, or at the next entry.
 * Compilers for Windows x86 put such tables behind the code: there a word that the loader relocates
 * is data, unless it is part of an instruction.
 */
#include "arch/arch.h"
#include "base/search.h"
#include "base/status.h"
#include "functions/found.h"
#include "image/image.h"
#include "image/pe.h"
#include "verdicts/code.h"
#include "verdicts/relocated.h"
#include "verdicts/verdicts.h"
#include "verdicts/workers.h"

#include <stddef.h>
#include <string.h>

#define ITEM_BYTES 0x40000u /* of code, about what a thread decodes at a time           */
#define BATCH 256u          /* candidates that a thread follows at a time               */
#define MAX_SEEDS 8
#define MIN_UNKNOWN_SHARE                                                                          \
    100u /* nothing is searched for if less than one in 100 bytes of code
                                * is unknown                                               */

/* Here the marks of a byte have other meanings than in flow.c. */
#define MARK_CALLED 1u  /* target of an apparent call                            */
#define MARK_POINTED 2u /* target of a relocated pointer                         */
#define MARK_BEGINS 4u  /* an instruction that the one before does not continue to */
#define MARK_BAD 8u     /* not an instruction                                    */

typedef struct direct_call {
    uint32_t at, target;
} direct_call;

typedef struct work_item {
    const hfn_region *region;
    uint64_t from, to;
    direct_call *calls; /* sorted */
    size_t count, capacity;
    bool no_memory;
} work_item;

/* A place that may be an entry, or a function whose size is a guess. */
typedef struct candidate {
    uint64_t rva, end;
    bool is_function, is_accepted, is_consistent, by_pointer;
} candidate;

typedef struct search {
    hotfn_env env;
    const hotfn_image *image;
    const hotfn_functions *functions;
    const hfn_arch *arch;
    uint64_t link_base;
    hfn_code code;
    work_item *items;
    size_t item_count, item_capacity;
    direct_call *calls; /* sorted */
    size_t call_count, call_capacity;
    candidate *candidates; /* sorted */
    size_t candidate_count, candidate_capacity;
    uint64_t seeds[MAX_SEEDS]; /* called by the loader and the C library */
    size_t seed_count;
    bool fixed_place, no_memory;
    hfn_relocated relocated; /* PE */
    uint32_t *queue;         /* accepted candidates whose calls were not followed yet */
    size_t queue_count, queue_capacity;
} search;

static bool has_known_size(const hfn_function *f)
{
    return !(f->flags & HOTFN_FUNCTION_SIZE_GUESSED) || f->kind == HOTFN_FUNCTION_PLT;
}

/* The end of the function of known size that contains rva; 0: none does. */
static uint64_t find_known_end(const search *s, uint64_t rva)
{
    uint32_t i = hotfn_functions_find(s->functions, rva);
    const hfn_function *f = i == UINT32_MAX ? NULL : hfn_functions_at(s->functions, i);

    return f && has_known_size(f) ? f->rva + f->byte_count : 0;
}

/* ---- The sweep. */

static void add_call(const search *s, work_item *item, uint64_t at, uint64_t target)
{
    const direct_call call = { (uint32_t)at, (uint32_t)target };

    if (!hfn_code_region(&s->code, target) || (at | target) > UINT32_MAX) {
        return;
    }
    hfn_code_mark(&s->code, target, MARK_CALLED);
    if (hfn_grow_array(&s->env, (void **)&item->calls, &item->capacity, item->count + 1,
                       sizeof call)) {
        item->calls[item->count++] = call;
    } else {
        item->no_memory = true;
    }
}

/* Whether the bytes are an instruction as far as relocations show. */
static bool fits_relocations(const search *s, uint64_t at, uint32_t length)
{
    uint64_t end = at + length;

    return !hfn_relocated_begins(&s->relocated, at, at + 1) &&
           !hfn_relocated_begins(&s->relocated, end > at + 3 ? end - 3 : at, end);
}

static void read_item(void *user, uint32_t index)
{
    const search *s = user;
    work_item *item = &s->items[index];
    const hfn_region *region = item->region;
    uint64_t at = item->from;
    hfn_instruction in = { .length = 0 };
    bool begins = true;

    while (at < item->to) {
        uint64_t offset = at - region->rva;
        if (!s->arch->decode(region->bytes + offset, region->end - at, at, s->link_base, &in) ||
            !fits_relocations(s, at, in.length)) {
            hfn_region_mark(region, at, MARK_BAD);
            at = (at | (s->arch->patching->unit_bytes - 1)) + 1;
            begins = false;
            continue;
        }
        hfn_region_add_starts(region, offset, 1ull << offset % 64);
        if (begins) {
            hfn_region_mark(region, at, MARK_BEGINS);
        }
        begins = hfn_ends_path(&in) || (begins && in.is_padding) ||
                 (in.flow == HFN_FLOW_STOP && in.is_padding) ||
                 ((in.flow == HFN_FLOW_CALL || in.flow == HFN_FLOW_CALL_INDIRECT) &&
                  in.target != at + in.length);
        if (in.flow == HFN_FLOW_CALL) {
            add_call(s, item, at, in.target);
        }
        at += in.length;
    }
}

/* The first place at or after rva at which the decoding can begin: the entry of a function, or the
 * end of padding; `end` if there is none. */
static uint64_t find_cut(const search *s, const hfn_region *region, uint64_t rva)
{
    uint64_t at = (rva + 15) & ~15ull;
    uint64_t known_end;

    while (at < region->end) {
        const uint8_t *before = region->bytes + (at - region->rva) - 2;
        if ((known_end = find_known_end(s, at)) != 0) {
            return known_end < region->end ? known_end : region->end;
        }
        if (before[0] == before[1] && (before[1] == 0xcc || before[1] == 0x90)) {
            return at;
        }
        at += 16;
    }
    return region->end;
}

static bool cut_region(search *s, const hfn_region *region)
{
    uint64_t from = region->rva;

    while (from < region->end) {
        uint64_t to =
            region->end - from > ITEM_BYTES ? find_cut(s, region, from + ITEM_BYTES) : region->end;
        const work_item item = { .region = region, .from = from, .to = to };
        if (!hfn_grow_array(&s->env, (void **)&s->items, &s->item_capacity, s->item_count + 1,
                            sizeof item)) {
            return false;
        }
        s->items[s->item_count++] = item;
        from = to;
    }
    return true;
}

static bool join_calls(search *s)
{
    for (size_t i = 0; i < s->item_count; i++) {
        work_item *item = &s->items[i];
        if (item->no_memory ||
            (item->count > 0 && !hfn_grow_array(&s->env, (void **)&s->calls, &s->call_capacity,
                                                s->call_count + item->count, sizeof *s->calls))) {
            return false;
        }
        if (item->count > 0) {
            memcpy(s->calls + s->call_count, item->calls, item->count * sizeof *s->calls);
            s->call_count += item->count;
        }
    }
    return true;
}

static void mark_pointed(void *user, uint64_t rva)
{
    const search *s = user;

    hfn_code_mark(&s->code, rva, MARK_POINTED);
}

static void add_relocated(void *user, uint64_t rva, uint32_t byte_count)
{
    search *s = user;
    hfn_relocated *r = &s->relocated;

    if (byte_count != 4 || s->no_memory || !hfn_code_region(&s->code, rva)) {
        return;
    }
    s->no_memory = !hfn_grow_array(&s->env, (void **)&r->fields, &r->capacity, r->count + 1,
                                   sizeof *r->fields);
    if (!s->no_memory) {
        r->fields[r->count++] = rva;
    }
}

static void add_seed(search *s, uint64_t rva)
{
    if (s->seed_count < MAX_SEEDS && hfn_code_region(&s->code, rva)) {
        hfn_code_mark(&s->code, rva, MARK_CALLED);
        s->seeds[s->seed_count++] = rva;
    }
}

/* The loader calls the entry point, which passes the addresses of main and others to the C library
 * (System V psABI, 'Process Initialization').  That of a Windows program ends with a jump to the
 * start code of the C library. */
static void add_seeds(search *s, uint64_t rva)
{
    const hfn_region *region = rva ? hfn_code_region(&s->code, rva) : NULL;
    hfn_instruction in = { .flow = HFN_FLOW_NEXT };

    if (region) {
        add_seed(s, rva);
    }
    while (region && hfn_region_has(region, rva) && !hfn_ends_path(&in) &&
           s->arch->decode(region->bytes + (rva - region->rva), region->end - rva, rva,
                           s->link_base, &in)) {
        if (in.takes_address && (in.relative_bytes > 0 || s->fixed_place)) {
            add_seed(s, in.target);
        }
        if (in.flow == HFN_FLOW_JUMP) {
            add_seed(s, in.target);
        }
        rva += in.length;
    }
}

static bool sweep_code(search *s, uint32_t threads)
{
    if (hfn_image_is_pe(s->image)) {
        hfn_pe_each_relocated(s->image, add_relocated, s);
        hfn_relocated_sort(&s->relocated);
    }
    if (s->no_memory) {
        return false;
    }
    for (uint32_t i = 0; i < s->code.count; i++) {
        if (!cut_region(s, &s->code.regions[i])) {
            return false;
        }
    }
    hfn_workers_run(threads, (uint32_t)s->item_count, read_item, s,
                    hfn_progress_begin(&s->env, "finding functions of", hfn_image_path(s->image),
                                       s->item_count * ITEM_BYTES));
    hfn_image_each_pointer(s->image, mark_pointed, s);
    return join_calls(s);
}

/* ---- The candidates. */

static bool follows_trap(const search *s, const hfn_region *region, uint64_t rva)
{
    uint64_t before = rva - s->arch->patching->unit_bytes;
    hfn_instruction in;

    return rva % 16 == 0 && rva > region->rva && hfn_region_is_start(region, before) &&
           s->arch->decode(region->bytes + (before - region->rva), region->end - before, before, 0,
                           &in) &&
           in.is_padding && in.flow == HFN_FLOW_STOP && before + in.length == rva;
}

/* A linker stub has no other instruction than its jump, possibly behind a landing pad; on ARM64 it
 * loads the address by up to three instructions. */
static bool is_stub(const search *s, const hfn_region *region, uint64_t rva)
{
    bool is_fixed_width = s->arch->patching->unit_bytes > 1;
    hfn_instruction in = { .flow = HFN_FLOW_NEXT };

    for (int left = is_fixed_width ? 4 : 1; left > 0 && in.flow == HFN_FLOW_NEXT;) {
        if (!hfn_region_has(region, rva) ||
            !s->arch->decode(region->bytes + (rva - region->rva), region->end - rva, rva, 0, &in) ||
            in.is_padding) {
            return true;
        }
        rva += in.length;
        left -= !in.is_landing_pad;
    }
    return in.flow == HFN_FLOW_JUMP_INDIRECT && (is_fixed_width || !in.through_table);
}

static bool is_candidate(const search *s, const hfn_region *region, uint64_t rva)
{
    uint32_t marks = hfn_region_marks(region, rva);

    return (marks & MARK_BEGINS) && hfn_region_is_start(region, rva) &&
           ((marks & MARK_CALLED) || follows_trap(s, region, rva)) && find_known_end(s, rva) == 0 &&
           !is_stub(s, region, rva);
}

static bool add_candidate(search *s, const candidate *c)
{
    if (!hfn_grow_array(&s->env, (void **)&s->candidates, &s->candidate_capacity,
                        s->candidate_count + 1, sizeof *c)) {
        return false;
    }
    s->candidates[s->candidate_count++] = *c;
    return true;
}

/* Add what is called or pointed to in the region, and its functions of guessed size. */
static bool add_candidates(search *s, const hfn_region *region)
{
    for (uint64_t rva = hfn_region_next_marked(region, region->rva); rva < region->end;
         rva = hfn_region_next_marked(region, rva + 1)) {
        uint32_t marks = hfn_region_marks(region, rva), i;
        candidate c = { .rva = rva };
        if (!(marks & (MARK_CALLED | MARK_POINTED))) {
            continue;
        }
        i = hotfn_functions_find(s->functions, rva);
        c.is_function = i != UINT32_MAX && hfn_functions_at(s->functions, i)->rva == rva;
        if (c.is_function ? find_known_end(s, rva) != 0 : !is_candidate(s, region, rva)) {
            continue;
        }
        c.by_pointer = !c.is_function && (marks & MARK_POINTED) && follows_trap(s, region, rva);
        if (!add_candidate(s, &c)) {
            return false;
        }
    }
    return true;
}

/* The next entry behind candidate i, or the end of its code. */
static uint64_t find_limit(const search *s, size_t i, const hfn_region *region)
{
    uint64_t rva = s->candidates[i].rva, limit = region->end;
    const hfn_function *functions = hfn_functions_at(s->functions, 0);
    uint32_t count = hotfn_functions_get_count(s->functions);
    size_t next = count ? hfn_count_up_to(functions, count, sizeof *functions,
                                          offsetof(hfn_function, rva), rva)
                        : 0;

    if (i + 1 < s->candidate_count && s->candidates[i + 1].rva < limit) {
        limit = s->candidates[i + 1].rva;
    }
    return next < count && functions[next].rva < limit ? functions[next].rva : limit;
}

static void follow_candidate(const search *s, size_t i)
{
    candidate *c = &s->candidates[i];
    const hfn_region *region = hfn_code_region(&s->code, c->rva);
    uint64_t limit = find_limit(s, i, region), at = c->rva, reach = at;
    hfn_instruction in;
    bool has_table = false, has_ended = false;

    while (at < limit && hfn_region_is_start(region, at)) {
        if (!s->arch->decode(region->bytes + (at - region->rva), region->end - at, at, s->link_base,
                             &in)) {
            return;
        }
        bool is_jump = in.flow == HFN_FLOW_JUMP || in.flow == HFN_FLOW_JUMP_IF;
        if (is_jump && in.target < limit && in.target > reach) {
            reach = in.target;
        }
        has_ended = hfn_ends_path(&in) || (has_ended && in.is_padding);
        has_table |= in.flow == HFN_FLOW_JUMP_INDIRECT && in.through_table;
        at += in.length;
        bool is_trap = in.flow == HFN_FLOW_STOP && in.is_padding;
        if (at > reach && (is_trap || (hfn_ends_path(&in) && !has_table))) {
            c->end = is_trap ? at - in.length : at;
            c->is_consistent = c->end > c->rva;
            return;
        }
    }
    bool is_table = has_ended && at >= reach && hfn_relocated_begins(&s->relocated, at, at + 1);
    c->end = is_table ? at : limit;
    c->is_consistent = at == c->end;
}

static void follow_batch(void *user, uint32_t number)
{
    const search *s = user;
    size_t from = (size_t)number * BATCH, to = from + BATCH;

    for (size_t i = from; i < to && i < s->candidate_count; i++) {
        follow_candidate(s, i);
    }
}

static bool find_candidates(search *s, uint32_t threads)
{
    for (uint32_t i = 0; i < s->code.count; i++) {
        if (!add_candidates(s, &s->code.regions[i])) {
            return false;
        }
    }
    hfn_workers_run(threads, (uint32_t)((s->candidate_count + BATCH - 1) / BATCH), follow_batch, s,
                    hfn_progress_begin(&s->env, "following functions of", hfn_image_path(s->image),
                                       s->candidate_count));
    return true;
}

/* ---- What is accepted. */

static bool accept_candidate(search *s, size_t i)
{
    candidate *c = &s->candidates[i];

    if (c->is_accepted || !c->is_consistent) {
        return true;
    }
    if (!hfn_grow_array(&s->env, (void **)&s->queue, &s->queue_capacity, s->queue_count + 1,
                        sizeof *s->queue)) {
        return false;
    }
    c->is_accepted = true;
    s->queue[s->queue_count++] = (uint32_t)i;
    return true;
}

static bool accept_at(search *s, uint64_t rva, bool by_pointer)
{
    size_t i = hfn_count_below(s->candidates, s->candidate_count, sizeof *s->candidates,
                               offsetof(candidate, rva), rva);

    if (i == s->candidate_count || s->candidates[i].rva != rva) {
        return true;
    }
    s->candidates[i].by_pointer |= by_pointer;
    return accept_candidate(s, i);
}

/* Accept the targets of the calls of [from, to). */
static bool accept_targets(search *s, uint64_t from, uint64_t to)
{
    size_t i = hfn_count_below_u32(s->calls, s->call_count, sizeof *s->calls,
                                   offsetof(direct_call, at), from);

    for (; i < s->call_count && s->calls[i].at < to; i++) {
        if (!accept_at(s, s->calls[i].target, false)) {
            return false;
        }
    }
    return true;
}

/* Whether the sweep decoded all bytes of a function of known size. */
static bool is_consistent(const search *s, const hfn_function *f)
{
    const hfn_region *region = hfn_code_region(&s->code, f->rva);
    uint64_t end = f->rva + f->byte_count;

    if (!region || end > region->end || !hfn_region_is_start(region, f->rva) ||
        (end < region->end && !hfn_region_is_start(region, end))) {
        return false;
    }
    for (uint64_t rva = hfn_region_next_marked(region, f->rva); rva < end;
         rva = hfn_region_next_marked(region, rva + 1)) {
        if (hfn_region_marks(region, rva) & MARK_BAD) {
            return false;
        }
    }
    return true;
}

static bool accept_all(search *s)
{
    uint32_t count = hotfn_functions_get_count(s->functions);

    for (size_t i = 0; i < s->seed_count; i++) {
        if (!accept_at(s, s->seeds[i], true)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const hfn_function *f = hfn_functions_at(s->functions, i);
        if (has_known_size(f) && is_consistent(s, f) &&
            !accept_targets(s, f->rva, f->rva + f->byte_count)) {
            return false;
        }
    }
    for (size_t i = 0; i < s->candidate_count; i++) {
        if ((s->candidates[i].is_function || s->candidates[i].by_pointer) &&
            !accept_candidate(s, i)) {
            return false;
        }
    }
    for (size_t i = 0; i < s->queue_count; i++) { /* the loop adds more */
        const candidate *c = &s->candidates[s->queue[i]];
        if (!accept_targets(s, c->rva, c->end)) {
            return false;
        }
    }
    return true;
}

static bool add_found(const search *s, hotfn_functions *functions)
{
    size_t count = 0;
    hfn_found *found = hfn_allocate_zeroed(&s->env, (s->queue_count + 1) * sizeof *found);
    bool good;

    if (!found) {
        return false;
    }
    for (size_t i = 0; i < s->candidate_count; i++) {
        const candidate *c = &s->candidates[i];
        if (c->is_accepted && !c->is_function) {
            found[count++] = (hfn_found){ c->rva, c->end - c->rva,
                                          c->by_pointer ? HOTFN_FUNCTION_FOUND_POINTER
                                                        : HOTFN_FUNCTION_FOUND_CALL };
        }
    }
    good = count == 0 || hfn_functions_add_found(functions, found, (uint32_t)count);
    hfn_free_memory(&s->env, found, (s->queue_count + 1) * sizeof *found);
    return good;
}

static void finish_search(search *s)
{
    for (size_t i = 0; i < s->item_count; i++) {
        if (s->items[i].calls) {
            hfn_free_memory(&s->env, s->items[i].calls,
                            s->items[i].capacity * sizeof *s->items[i].calls);
        }
    }
    if (s->items) {
        hfn_free_memory(&s->env, s->items, s->item_capacity * sizeof *s->items);
    }
    if (s->calls) {
        hfn_free_memory(&s->env, s->calls, s->call_capacity * sizeof *s->calls);
    }
    if (s->candidates) {
        hfn_free_memory(&s->env, s->candidates, s->candidate_capacity * sizeof *s->candidates);
    }
    if (s->queue) {
        hfn_free_memory(&s->env, s->queue, s->queue_capacity * sizeof *s->queue);
    }
    if (s->relocated.fields) {
        hfn_free_memory(&s->env, s->relocated.fields,
                        s->relocated.capacity * sizeof *s->relocated.fields);
    }
    hfn_code_finish(&s->code, &s->env);
}

static bool lacks_functions(const hotfn_functions *functions)
{
    uint64_t code_bytes, known_bytes;

    hotfn_functions_get_coverage(functions, &code_bytes, &known_bytes);
    return code_bytes - known_bytes > code_bytes / MIN_UNKNOWN_SHARE;
}

hotfn_status hotfn_verdicts_find_functions(hotfn_functions *functions, const hotfn_image *image,
                                           uint32_t threads, const hotfn_env *env, hotfn_error *err)
{
    if (!functions || !image) {
        return hfn_report_null(err, __func__);
    }

    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
    hotfn_image_get_info(image, &info);
    search s = { .env = hfn_env_fill(env),
                 .image = image,
                 .functions = functions,
                 .arch = hfn_arch_find(info.machine),
                 .link_base = info.link_base,
                 .fixed_place = (info.flags & HOTFN_IMAGE_FIXED) != 0 };
    bool good;

    if ((info.format == HOTFN_FORMAT_PE && info.machine != HOTFN_MACHINE_X86) || !s.arch ||
        !lacks_functions(functions)) {
        return HOTFN_OK; /* other PE images have .pdata */
    }
    if (!hfn_code_init(&s.code, image, &s.env)) {
        return hfn_report_no_memory(err, hfn_image_path(image));
    }
    threads = threads ? threads : hfn_workers_default();
    add_seeds(&s, info.entry_rva);
    good = sweep_code(&s, threads) && find_candidates(&s, threads) && accept_all(&s) &&
           add_found(&s, functions);
    finish_search(&s);
    return good ? HOTFN_OK : hfn_report_no_memory(err, hfn_image_path(image));
}
