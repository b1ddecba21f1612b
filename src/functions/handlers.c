/* SPDX-License-Identifier: MIT */
/*
 * The data of language handlers.  Their form shows the kind of the handler, whose name is seldom
 * known:
 *   - a scope table: __try blocks of C (Microsoft, 'x64 exception handling', C_SCOPE_TABLE);
 *   - the RVA of a FuncInfo with its magic number: C++ (ehdata.h of Microsoft's C++ library);
 *   - any other RVA of data may be that of a compressed FuncInfo: unless a flag in that excludes
 *     it, a fault in any instruction behind the prologue may be caught.
 * C++ compiled with /EHs (nearly all) catches only exceptions that a call throws, and the engine
 * never moves a call.  Only where faults may be caught as well must instructions stay at their
 * addresses.
 */
#include "functions/handlers.h"

#include "functions/handlers_compressed.h"
#include "functions/pdata_read.h"

enum {
    SCOPE_BYTES = 16,
    UNWIND_BYTES = 8,
    TRY_BYTES = 20,
    STATE_BYTES = 8,
    FLAG_CALLS_ONLY = 1,       /* FuncInfo.EHFlags: compiled with /EHs           */
    COMPRESSED_CALLS_ONLY = 32 /* the same flag in the first byte of a compressed FuncInfo */
};

/* The bound steps_left is for files with thousands of tables that share the same bytes. */
typedef struct walk {
    const hotfn_image *image;
    const hfn_handler_visitor *visitor;
    hfn_pdata_entry entry;
    uint64_t steps_left; /* table entries that may still be read */
    uint32_t catch_bytes;
} walk;

static bool spend_step(walk *w)
{
    if (w->steps_left == 0) {
        return false;
    }
    w->steps_left--;
    return true;
}

static bool is_code(const walk *w, uint64_t rva)
{
    return hfn_image_is_code(w->image, rva);
}

typedef struct scope {
    uint32_t begin, end, handler, target;
} scope;

static bool read_scope(hfn_span s, uint64_t index, scope *out)
{
    uint64_t at = 4 + index * SCOPE_BYTES;

    return hfn_span_u32(s, at, &out->begin) && hfn_span_u32(s, at + 4, &out->end) &&
           hfn_span_u32(s, at + 8, &out->handler) && hfn_span_u32(s, at + 12, &out->target);
}

/* True if all numbers are plausible: ranges of code, a filter (or 1: always), a target (or 0:
 * finally). */
static bool is_scope_table(walk *w, hfn_span s, uint32_t count)
{
    scope c;

    if (count == 0 || count > s.size / SCOPE_BYTES) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!spend_step(w) || !read_scope(s, i, &c) || c.begin >= c.end || !is_code(w, c.begin) ||
            !is_code(w, c.end - 1) || (c.handler != 1 && !is_code(w, c.handler)) ||
            (c.target != 0 && !is_code(w, c.target))) {
            return false;
        }
    }
    return true;
}

static void visit_scopes(const walk *w, hfn_span s, uint32_t count)
{
    const hfn_handler_visitor *v = w->visitor;
    scope c;

    for (uint32_t i = 0; i < count && read_scope(s, i, &c); i++) {
        v->guards(v->user, c.begin, c.end);
        if (c.handler != 1) {
            v->calls(v->user, c.handler);
        }
        if (c.target != 0) {
            v->jumps(v->user, c.target);
        }
    }
}

/* Reports the RVA at this offset as called if it is code. */
static void visit_call(const walk *w, hfn_span s, uint64_t at)
{
    uint32_t rva = 0;

    if (hfn_span_u32(s, at, &rva) && is_code(w, rva)) {
        w->visitor->calls(w->visitor->user, rva);
    }
}

/* Reads a pair of a count and an RVA, and returns a view of the table at that RVA. */
static hfn_span table_at(const walk *w, hfn_span info, uint64_t at, uint32_t *count)
{
    uint32_t rva = 0;

    *count = 0;
    hfn_span_u32(info, at, count);
    hfn_span_u32(info, at + 4, &rva);
    return hfn_image_span(w->image, rva);
}

static void visit_tries(walk *w, hfn_span info)
{
    uint32_t try_count, catch_count;
    hfn_span tries = table_at(w, info, 12, &try_count);

    for (uint64_t i = 0; i < try_count && hfn_span_has(tries, i * TRY_BYTES, TRY_BYTES); i++) {
        hfn_span catches = table_at(w, tries, i * TRY_BYTES + 12, &catch_count);
        for (uint64_t k = 0;
             k < catch_count && hfn_span_has(catches, k * w->catch_bytes, w->catch_bytes); k++) {
            if (!spend_step(w)) {
                return;
            }
            visit_call(w, catches, k * w->catch_bytes + 12);
        }
    }
}

/* Each entry has an address and the state from there on; state -1 is outside of all try blocks. */
static void visit_states(walk *w, hfn_span info)
{
    uint32_t count, begin, state, end;
    hfn_span states = table_at(w, info, 20, &count);

    for (uint64_t i = 0; i < count && spend_step(w); i++) {
        if (!hfn_span_u32(states, i * STATE_BYTES, &begin) ||
            !hfn_span_u32(states, i * STATE_BYTES + 4, &state)) {
            return;
        }
        if (i + 1 == count || !hfn_span_u32(states, (i + 1) * STATE_BYTES, &end)) {
            end = (uint32_t)(w->entry.rva + w->entry.byte_count);
        }
        if (state != UINT32_MAX && begin < end && is_code(w, begin)) {
            w->visitor->guards(w->visitor->user, begin, end);
        }
    }
}

static void visit_func_info(walk *w, hfn_span info)
{
    uint32_t count, flags = 0;
    hfn_span unwinds = table_at(w, info, 4, &count);

    for (uint64_t i = 0; i < count && hfn_span_has(unwinds, i * UNWIND_BYTES, UNWIND_BYTES); i++) {
        if (!spend_step(w)) {
            return;
        }
        visit_call(w, unwinds, i * UNWIND_BYTES + 4);
    }
    visit_tries(w, info);
    hfn_span_u32(info, 36, &flags);
    if (!(flags & FLAG_CALLS_ONLY)) {
        visit_states(w, info);
    }
}

/* Accepts only the third magic number, from which on there are EHFlags; the other two do not occur
 * on 64-bit machines. */
static bool is_func_info(hfn_span info)
{
    uint32_t magic;

    return hfn_span_u32(info, 0, &magic) && (magic & 0x1fffffff) == 0x19930522 &&
           hfn_span_has(info, 0, 40);
}

/* Visits data of unknown form.  The data of a handler that only checks the stack is a small number,
 * which is not an RVA of data. */
static void visit_unknown(walk *w, uint32_t rva)
{
    hfn_span info = hfn_image_span(w->image, rva);
    uint8_t head = 0;

    if (hfn_image_section_of(w->image, rva) == UINT32_MAX || is_code(w, rva) ||
        !hfn_span_u8(info, 0, &head)) {
        return;
    }
    hfn_handlers_compressed(w->image, rva, w->entry.parent, &w->steps_left, w->visitor);
    if (head & COMPRESSED_CALLS_ONLY) {
        return;
    }
    w->visitor->guards(w->visitor->user, w->entry.rva + w->entry.prologue_bytes,
                       w->entry.rva + w->entry.byte_count);
}

static void visit_entry(walk *w)
{
    hfn_span data = hfn_image_span(w->image, w->entry.language_data);
    uint32_t first = 0;

    if (is_code(w, w->entry.handler)) {
        w->visitor->calls(w->visitor->user, w->entry.handler);
    }
    if (!hfn_span_u32(data, 0, &first)) {
        return;
    }
    if (is_scope_table(w, data, first)) {
        visit_scopes(w, data, first);
    } else if (is_func_info(hfn_image_span(w->image, first))) {
        visit_func_info(w, hfn_image_span(w->image, first));
    } else {
        visit_unknown(w, first);
    }
}

void hfn_each_handler(const hotfn_image *image, const hfn_handler_visitor *visitor)
{
    walk w = { .image = image, .visitor = visitor, .steps_left = hfn_image_file(image).size };
    hfn_pdata pdata;
    uint64_t ignored;

    hfn_pdata_open(&pdata, image);
    w.catch_bytes = 20; /* HandlerType of 64-bit machines */
    for (uint32_t i = 0; i < pdata.count; i++) {
        if (hfn_pdata_read(&pdata, i, &w.entry, &ignored) && w.entry.handler) {
            visit_entry(&w);
        }
    }
}

static bool find_entry(const hfn_pdata *pdata, uint64_t rva, hfn_pdata_entry *out)
{
    uint32_t low = 0, high = pdata->count;
    uint64_t ignored;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (!hfn_pdata_read(pdata, middle, out, &ignored)) {
            return false;
        }
        if (out->rva == rva) {
            return true;
        }
        *(out->rva < rva ? &low : &high) = out->rva < rva ? middle + 1 : middle;
    }
    return false;
}

/* Older compilers wrote the first two magic numbers, without the fields behind the tables. */
static bool is_old_func_info(hfn_span info)
{
    uint32_t magic;

    return hfn_span_u32(info, 0, &magic) && (magic == 0x19930520 || magic == 0x19930521) &&
           hfn_span_has(info, 0, 32);
}

/* A catch block of C++ returns the place where execution continues; cleanups continue nowhere. */
bool hfn_each_continuation(const hotfn_image *image, uint64_t rva, hfn_continuation_fn visit,
                           void *user)
{
    walk w = { .image = image, .steps_left = hfn_image_file(image).size };
    uint32_t first = 0, try_count;
    hfn_span data, info;
    hfn_pdata pdata;
    scope c;

    hfn_pdata_open(&pdata, image);
    if (!find_entry(&pdata, rva, &w.entry)) {
        return false;
    }
    data = hfn_image_span(image, w.entry.language_data);
    if (!hfn_span_u32(data, 0, &first)) {
        return false;
    }
    if (is_scope_table(&w, data, first)) {
        for (uint32_t i = 0; i < first && read_scope(data, i, &c); i++) {
            if (c.target != 0) {
                visit(user, c.begin, c.end, c.target);
            }
        }
        return true;
    }
    info = hfn_image_span(image, first);
    table_at(&w, info, 12, &try_count);
    return (is_func_info(info) || is_old_func_info(info)) && try_count == 0;
}
