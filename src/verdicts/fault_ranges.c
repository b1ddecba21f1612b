/* SPDX-License-Identifier: MIT */
/*
 * Finds code of which a signal handler may know the addresses: it compares the address of a fault
 * with them, and would not recognise an instruction that was moved into a stub.  Evidence is an
 * address that no call or jump needs (docs/design/fault-ranges.md):
 *
 *   inside or end   an address inside a function, or behind its last byte, is computed by code, or
 *                   is in data outside of jump tables; also relative to its own place, in a
 *                   section of the program's own
 *   neighbours      the entries of a function and of the next one are computed by one function, or
 *                   are in adjacent words of data
 *   numbers         code compares an entry by order or computes with it; if it does so with
 *                   several, all code between them
 *   equality        code compares an entry for equality: only the first instruction
 */
#include "verdicts/analysis.h"

#include "base/search.h"
#include "base/sort.h"

#include <stdlib.h>
#include <string.h>

#define NEIGHBOUR_BYTES 16u /* between words of data that may be a range */

/* A word of data with an address of code. */
typedef struct word {
    uint64_t place, target;
} word;

typedef struct search {
    hfn_analysis *analysis;
    word first, last; /* of a run of adjacent words */
    uint32_t run_words;
    word *got; /* sorted by place */
    size_t got_count, got_capacity;
} search;

static void add_range(hfn_analysis *a, uint64_t rva, uint64_t end)
{
    const hfn_known_range range = { .rva = rva, .end = end };

    if (end > rva) {
        hfn_analysis_append(a, (void **)&a->known, &a->known_count, &a->known_capacity, &range,
                            sizeof range);
    }
}

static void add_body(hfn_analysis *a, uint32_t index)
{
    add_range(a, a->bodies[index].rva, a->bodies[index].end);
}

/* A section of the program's own: the linker defines symbols for its first and last byte. */
static bool is_own_section(const hotfn_section *s)
{
    return s->name && s->name[0] != '.' && s->name[0] != '\0' && (s->flags & HOTFN_SECTION_LOADED);
}

/* If the address is the end of a section of code that is the program's own, all its code. */
static void add_section_end(hfn_analysis *a, uint64_t end)
{
    const hfn_region *region = hfn_code_region(&a->code, end - 1);
    hotfn_section s = HOTFN_SECTION_INIT;

    if (region && region->end == end &&
        hotfn_image_get_section(a->image, hfn_image_section_of(a->image, region->rva), &s) ==
            HOTFN_OK &&
        is_own_section(&s)) {
        add_range(a, region->rva, region->end);
    }
}

/* The kinds of addresses. */
typedef enum address_kind {
    OTHER = 0,
    ENTRY,  /* of a function */
    LABEL,  /* a symbol without a type */
    END,    /* behind the last byte of a function, up to NEIGHBOUR_BYTES */
    INSIDE, /* of a function */
} address_kind;

/* The kind, and the function that it is about. */
static address_kind get_kind(const hfn_analysis *a, uint64_t target, uint32_t *index)
{
    uint32_t next = hfn_analysis_find_body(a, target);

    *index = next;
    if (next < a->count && a->bodies[next].rva == target) {
        return a->bodies[next].flags & HOTFN_FUNCTION_UNTYPED ? LABEL : ENTRY;
    }
    if (next == 0 || a->bodies[next - 1].region != hfn_code_region(&a->code, target - 1) ||
        !a->bodies[next - 1].region || a->bodies[next - 1].end + NEIGHBOUR_BYTES <= target) {
        return OTHER;
    }
    *index = next - 1;
    return target < a->bodies[next - 1].end ? INSIDE : END;
}

/* Whether no call or jump needs the address.  Adds the functions about which it is. */
static bool add_inside(hfn_analysis *a, uint64_t target)
{
    uint32_t index;
    address_kind kind = get_kind(a, target, &index);

    add_section_end(a, target);
    if (kind == OTHER || kind == ENTRY) {
        return false;
    }
    add_body(a, index);
    if (kind == LABEL && index > 0 && a->bodies[index - 1].end + NEIGHBOUR_BYTES > target &&
        a->bodies[index - 1].region == a->bodies[index].region) {
        add_body(a, index - 1);
    }
    return true;
}

/* Whether two entries are those of a function and of the next one.  Adds the first. */
static bool add_neighbours(hfn_analysis *a, uint64_t first, uint64_t second)
{
    uint32_t index = hfn_analysis_find_body(a, first);

    if (index + 1 >= a->count || a->bodies[index].rva != first ||
        a->bodies[index + 1].rva != second) {
        return false;
    }
    add_body(a, index);
    return true;
}

static void add_entry(hfn_analysis *a, uint64_t target)
{
    uint32_t index = hfn_analysis_find_body(a, target);

    if (index < a->count && a->bodies[index].rva == target) {
        add_body(a, index);
    }
}

/* Whether a range of addresses is that of all code, which the Go runtime has in its moduledata.  It
 * takes a fault elsewhere for a call of a wrong address, and finds the caller by the word at the
 * stack pointer (Go, runtime/signal_amd64.go, preparePanic), as at an entry. */
static bool is_go_text(const hfn_analysis *a, uint64_t first, uint64_t second)
{
    const hfn_region *region = hfn_code_region(&a->code, first);

    return (a->runtimes & HFN_RUNTIME_GO) && region &&
           hfn_analysis_find_body(a, first) == hfn_analysis_find_body(a, region->rva) &&
           hfn_analysis_find_body(a, second) == hfn_analysis_find_body(a, region->end);
}

/* Two addresses that belong together, at least one of them inside a function or behind its end:
 * a range, or an instruction and the address at which to continue. */
static void add_row(hfn_analysis *a, uint64_t first, uint64_t second)
{
    bool is_inside = add_inside(a, first);

    if (add_inside(a, second)) {
        add_entry(a, first);
        if (first < second && !a->fixed_place && !is_go_text(a, first, second)) {
            add_range(a, first, second);
        }
    } else if (is_inside) {
        add_entry(a, second);
    }
}

static bool is_in_table(const hfn_analysis *a, uint64_t place)
{
    size_t low = hfn_count_up_to(a->tables, a->table_count, sizeof *a->tables,
                                 offsetof(hfn_known_range, end), place);

    return low < a->table_count && a->tables[low].rva <= place;
}

/* Whether the words of a run follow the head of a C++ vtable (Itanium C++ ABI, 2.5.2): the entries
 * of a class are neighbours in the code too.  With relocations the file does not show it. */
static bool is_vtable(const search *s)
{
    uint32_t bytes = s->analysis->arch->pointer_bytes;
    uint64_t top = 1;

    return s->analysis->fixed_place &&
           hfn_span_word(hfn_image_span(s->analysis->image, s->first.place - 2ull * bytes), 0,
                         bytes, &top) &&
           top == 0;
}

/* Two words alone may be a range. */
static void end_run(search *s)
{
    if (s->run_words == 2 && !is_vtable(s)) {
        add_neighbours(s->analysis, s->first.target, s->last.target);
    }
    s->run_words = 0;
}

/* Whether an instruction was decoded there before any address said that one may be. */
static bool is_instruction(const hfn_analysis *a, uint64_t target)
{
    const hfn_region *region = hfn_code_region(&a->code, target);
    size_t index = hfn_count_below(a->hidden, a->hidden_count, sizeof *a->hidden, 0, target);

    return region && hfn_region_is_start(region, target) &&
           (index == a->hidden_count || a->hidden[index] != target);
}

/* Without relocations any number may look like an address, but two in a row rarely do. */
static bool is_address_word(const hfn_analysis *a, uint64_t target)
{
    uint32_t index;
    address_kind kind = get_kind(a, target, &index);

    return !a->fixed_place || kind == ENTRY || kind == LABEL ||
           (kind == END && target == a->bodies[index].end) ||
           (kind == INSIDE && is_instruction(a, target));
}

/* Whether the word may belong to the same object as the last one.  Objects end with their section:
 * an array of functions that the loader calls is no row with a table behind it. */
static bool continues_run(const search *s, uint64_t place)
{
    const hfn_analysis *a = s->analysis;

    return s->run_words > 0 && place - s->last.place == a->arch->pointer_bytes &&
           hfn_image_section_of(a->image, place) == hfn_image_section_of(a->image, s->last.place);
}

static void visit_word(void *user, uint64_t place, uint64_t target)
{
    search *s = user;
    hfn_analysis *a = s->analysis;
    bool continues = continues_run(s, place);

    if (!hfn_code_region(&a->code, target - 1) && !hfn_code_region(&a->code, target)) {
        return;
    }
    if (place - a->got_rva < a->got_bytes) {
        const word added = { place, target };
        hfn_analysis_append(a, (void **)&s->got, &s->got_count, &s->got_capacity, &added,
                            sizeof added);
        return;
    }
    if (is_in_table(a, place) || !is_address_word(a, target)) {
        return;
    }
    if (!continues) {
        end_run(s);
        s->first = (word){ place, target };
    }
    if (continues && s->run_words == 1) {
        add_inside(a, s->first.target);
    }
    if (continues || !a->fixed_place) {
        add_inside(a, target);
    }
    if (continues) {
        add_row(a, s->last.target, target);
    }
    s->last = (word){ place, target };
    s->run_words++;
}

/* ---- Addresses that code computes. */

static bool is_taken_before(const void *a, const void *b)
{
    return ((const hfn_taken *)a)->at < ((const hfn_taken *)b)->at;
}

static int compare_targets(const void *a, const void *b)
{
    const hfn_taken *left = a, *right = b;

    return (left->target > right->target) - (left->target < right->target);
}

static hfn_address_use get_use(const hfn_analysis *a, const hfn_taken *taken)
{
    const hfn_region *region = hfn_code_region(&a->code, taken->at);

    return region ? a->arch->get_address_use(region->bytes + (taken->at - region->rva),
                                             region->end - taken->at, taken->at)
                  : HFN_ADDRESS_PASSED;
}

/* Whether a constant in an instruction is an address rather than a number: of an entry or an end,
 * or of a place in the same function. */
static bool is_address(const hfn_analysis *a, const hfn_taken *taken, address_kind kind,
                       uint32_t index)
{
    return kind == ENTRY || kind == LABEL ||
           (kind == END && taken->target == a->bodies[index].end) ||
           (kind == INSIDE && hfn_analysis_find_around(a, taken->at) == index);
}

/* Whether the function reads the PC of a signal context, so that it may compare it. */
static bool reads_context(const hfn_analysis *a, uint32_t function)
{
    const hfn_body *body = function == HFN_NO_FUNCTION ? NULL : &a->bodies[function];

    return body && a->arch->reads_context(body->region->bytes + (body->rva - body->region->rva),
                                          body->end - body->rva);
}

/* The addresses that one function computes, sorted. */
static void add_group(hfn_analysis *a, const hfn_taken *taken, size_t count)
{
    bool handles = reads_context(a, hfn_analysis_find_around(a, taken->at));
    uint64_t low = UINT64_MAX, high = 0, stored = UINT64_MAX;

    for (size_t i = 0; i < count; i++) {
        uint32_t index;
        uint64_t target = taken[i].target;
        address_kind kind = get_kind(a, target, &index);
        if (a->fixed_place && !is_address(a, &taken[i], kind, index)) {
            continue;
        }
        hfn_address_use use = get_use(a, &taken[i]);
        add_inside(a, target);
        if (kind == ENTRY && (handles || use == HFN_ADDRESS_STORED)) {
            add_neighbours(a, stored, target);
            stored = target;
        }
        if (kind == ENTRY &&
            (use == HFN_ADDRESS_ORDERED || (use == HFN_ADDRESS_EQUATED && handles))) {
            add_body(a, index);
        }
        if (use == HFN_ADDRESS_ORDERED && kind != OTHER) {
            low = target < low ? target : low;
            high = target;
        }
    }
    add_range(a, low, high);
}

static bool is_word_before(const void *a, const void *b)
{
    return ((const word *)a)->place < ((const word *)b)->place;
}

/* Replace words of the GOT by what they hold. */
static void resolve_got(search *s)
{
    hfn_analysis *a = s->analysis;
    size_t kept = 0;

    if (!hfn_sort_array(&a->env, (void **)&s->got, s->got_capacity, s->got_count, sizeof *s->got,
                        is_word_before)) {
        a->no_memory = true;
        s->got_count = 0;
    }
    for (size_t i = 0; i < a->taken_count; i++) {
        hfn_taken taken = a->taken[i];
        if (taken.target - a->got_rva < a->got_bytes) {
            size_t index = hfn_count_below(s->got, s->got_count, sizeof *s->got,
                                           offsetof(word, place), taken.target);
            if (index == s->got_count || s->got[index].place != taken.target) {
                continue;
            }
            taken.target = s->got[index].target;
        }
        a->taken[kept++] = taken;
    }
    a->taken_count = kept;
    if (s->got) {
        hfn_free_memory(&a->env, s->got, s->got_capacity * sizeof *s->got);
    }
}

static void add_taken(hfn_analysis *a)
{
    size_t first = 0;

    if (!hfn_sort_array(&a->env, (void **)&a->taken, a->taken_capacity, a->taken_count,
                        sizeof *a->taken, is_taken_before)) {
        a->no_memory = true;
        return;
    }
    for (size_t i = 1; i <= a->taken_count; i++) {
        uint32_t function = hfn_analysis_find_around(a, a->taken[first].at);
        if (i < a->taken_count && function != HFN_NO_FUNCTION &&
            a->taken[i].at < a->bodies[function].end) {
            continue;
        }
        qsort(a->taken + first, i - first, sizeof *a->taken, compare_targets);
        add_group(a, a->taken + first, i - first);
        first = i;
    }
}

/* ---- Sections of the program's own. */

/* Sections in which compilers and linkers describe all code. */
static bool is_of_compiler(const char *name)
{
    return strncmp(name, "__llvm_", 7) == 0 || strncmp(name, "xray_", 5) == 0 ||
           strncmp(name, "__sancov_", 9) == 0 || strncmp(name, "__patchable_", 12) == 0;
}

/* Add the functions to which an entry of the program's own table refers. */
static void add_named(hfn_analysis *a, uint64_t target)
{
    const hfn_region *region = hfn_code_region(&a->code, target);
    uint32_t index = hfn_analysis_find_around(a, target);

    if (region && hfn_region_is_start(region, target) && index != HFN_NO_FUNCTION) {
        add_body(a, index);
    }
}

/* Words of 4 bytes that are relative to their own place. */
static void add_relative_words(hfn_analysis *a, const hotfn_section *s)
{
    hfn_span bytes = hfn_span_sub(hfn_image_span(a->image, s->rva), 0, s->file_bytes);
    uint32_t value;

    for (uint64_t at = 0; hfn_span_u32(bytes, at, &value); at += sizeof value) {
        add_named(a, s->rva + at + (uint64_t)(int64_t)(int32_t)value);
    }
}

static void add_own_sections(hfn_analysis *a)
{
    for (uint32_t i = 0; i < hotfn_image_get_section_count(a->image); i++) {
        hotfn_section s = HOTFN_SECTION_INIT;
        if (hotfn_image_get_section(a->image, i, &s) == HOTFN_OK && is_own_section(&s) &&
            !(s.flags & (HOTFN_SECTION_EXECUTE | HOTFN_SECTION_NO_BYTES)) &&
            !is_of_compiler(s.name)) {
            add_relative_words(a, &s);
        }
    }
}

/* ---- The result. */

static bool is_range_before(const void *a, const void *b)
{
    return ((const hfn_known_range *)a)->rva < ((const hfn_known_range *)b)->rva;
}

/* Sort by address and join overlaps. */
static void join_ranges(hfn_analysis *a, hfn_known_range **ranges, size_t *count, size_t capacity)
{
    size_t kept = 0;

    if (!hfn_sort_array(&a->env, (void **)ranges, capacity, *count, sizeof **ranges,
                        is_range_before)) {
        a->no_memory = true;
        return;
    }
    for (size_t i = 0; i < *count; i++) {
        hfn_known_range range = (*ranges)[i];
        if (kept > 0 && range.rva <= (*ranges)[kept - 1].end) {
            hfn_known_range *before = &(*ranges)[kept - 1];
            before->end = range.end > before->end ? range.end : before->end;
        } else {
            (*ranges)[kept++] = range;
        }
    }
    *count = kept;
}

static int compare_words(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

void hfn_fault_ranges_find(hfn_analysis *a)
{
    search s = { .analysis = a };

    if (a->hidden_count > 0) {
        qsort(a->hidden, a->hidden_count, sizeof *a->hidden, compare_words);
    }
    join_ranges(a, &a->tables, &a->table_count, a->table_capacity);
    hfn_image_each_word(a->image, visit_word, &s);
    end_run(&s);
    resolve_got(&s);
    add_taken(a);
    add_own_sections(a);
    join_ranges(a, &a->known, &a->known_count, a->known_capacity);
}

bool hfn_fault_ranges_know(const hfn_analysis *a, const hfn_region *region, uint64_t rva,
                           uint32_t byte_count, uint32_t *offset)
{
    uint32_t fault =
        a->arch->find_fault(region->bytes + (rva - region->rva), region->end - rva, byte_count);
    size_t low = fault == UINT32_MAX ? 0
                                     : hfn_count_up_to(a->known, a->known_count, sizeof *a->known,
                                                       offsetof(hfn_known_range, end), rva + fault);

    *offset = fault;
    return fault != UINT32_MAX && low < a->known_count && a->known[low].rva < rva + byte_count;
}
