/* SPDX-License-Identifier: MIT */
/* While the target runs, a module of methods has a function for each method that may still be
 * recorded, and space for their names (live/methods.c).  When the record is read, the functions
 * without a method and the unused space are removed. */
#include "records/methods.h"

#include "base/hash.h"
#include "base/search.h"
#include "base/status.h"

/* Below the bits by which exporters distinguish modules; the highest bit separates it from the RVAs
 * of functions. */
#define METHOD_RVA_BITS 39

typedef struct reduction {
    hotfn_record *r;
    uint32_t *kept; /* the functions that stay; owned */
    uint32_t count, before;
} reduction;

static uint32_t get_word(const uint8_t *at)
{
    return hfn_read_le32(at);
}

static bool has_methods(const uint8_t *module)
{
    return (get_word(module + HFN_MODULE_FLAGS) & HOTFN_MODULE_METHODS) != 0 &&
           get_word(module + HFN_MODULE_NAMES_END) != 0;
}

uint64_t hfn_method_get_rva(const char *name)
{
    uint64_t hash = hfn_hash_bytes(HFN_HASH_BEGIN, name, strlen(name));

    hash ^= hash >> METHOD_RVA_BITS;
    return (hash & ((UINT64_C(1) << METHOD_RVA_BITS) - 1)) | UINT64_C(1) << METHOD_RVA_BITS;
}

/* ---- Functions. */

static uint8_t *get_module(const hotfn_record *r, uint32_t index)
{
    return r->parts[HFN_SECTION_MODULES].bytes + (uint64_t)index * HFN_MODULE_BYTES;
}

static bool is_kept(const hotfn_record *r, bool is_method, uint32_t function)
{
    uint8_t *at = r->parts[HFN_SECTION_FUNCTIONS].bytes + (uint64_t)function * HFN_FUNCTION_BYTES;
    const char *name = hfn_record_get_text(r, get_word(at + HFN_FUNCTION_NAME));

    if (!is_method) {
        return true;
    }
    if (name[0] == 0) {
        return false;
    }
    hfn_write_le64(at + HFN_FUNCTION_RVA, hfn_method_get_rva(name));
    hfn_write_le64(at + HFN_FUNCTION_SIZE, 0);
    return true;
}

static void choose_functions(reduction *s)
{
    for (uint32_t i = 0; i < s->r->module_count; i++) {
        uint8_t *module = get_module(s->r, i);
        uint32_t first = get_word(module + HFN_MODULE_FIRST_FUNCTION);
        uint32_t end = first + get_word(module + HFN_MODULE_FUNCTIONS), begin = s->count;

        for (uint32_t f = first; f < end; f++) {
            if (is_kept(s->r, has_methods(module), f)) {
                s->kept[s->count++] = f;
            }
        }
        hfn_write_le32(module + HFN_MODULE_FIRST_FUNCTION, begin);
        hfn_write_le32(module + HFN_MODULE_FUNCTIONS, s->count - begin);
    }
}

/* Move the elements of the kept functions to the front.  The part keeps its size, because the
 * record may have as many slots as the part has elements. */
static void compact_elements(const reduction *s, uint32_t type)
{
    hfn_part *part = &s->r->parts[type];
    uint32_t bytes = hfn_section_element_bytes(type);

    for (uint32_t i = 0; i < s->count && part->bytes; i++) {
        uint64_t from = (uint64_t)s->kept[i] * bytes;

        if (from + bytes <= part->byte_count) {
            memmove(part->bytes + (uint64_t)i * bytes, part->bytes + from, bytes);
        }
    }
}

/* The new index of a function. */
static uint32_t find_kept(const reduction *s, uint32_t function)
{
    size_t index = hfn_count_below_u32(s->kept, s->count, sizeof *s->kept, 0, function);

    return index < s->count && s->kept[index] == function ? (uint32_t)index : HOTFN_NO_FUNCTION;
}

static void renumber_functions(const reduction *s)
{
    hfn_part *budget = &s->r->parts[HFN_SECTION_BUDGET];
    uint64_t used = budget->bytes ? hfn_budget_used_bytes(budget->bytes, budget->byte_count) : 0;

    for (uint64_t at = sizeof(hfn_budget_header); at + sizeof(hfn_budget_change) <= used;
         at += sizeof(hfn_budget_change)) {
        uint8_t *word = budget->bytes + at + offsetof(hfn_budget_change, function);

        hfn_write_le32(word, find_kept(s, get_word(word)));
    }
    for (uint32_t i = 0; s->r->slot_functions && i < s->r->slot_count; i++) {
        s->r->slot_functions[i] = find_kept(s, s->r->slot_functions[i]);
    }
}

/* ---- Names. */

/* Adjust the offset of a string to the removal of the bytes [begin, end) of the strings. */
static void move_offset(uint8_t *at, uint32_t begin, uint32_t end)
{
    uint32_t offset = get_word(at);

    if (offset >= end) {
        hfn_write_le32(at, offset - (end - begin));
    }
}

static void move_offsets(const reduction *s, uint32_t begin, uint32_t end)
{
    hfn_part *parts = s->r->parts;

    for (uint32_t i = 0; i < s->count; i++) {
        uint8_t *at = parts[HFN_SECTION_FUNCTIONS].bytes + (uint64_t)i * HFN_FUNCTION_BYTES;

        move_offset(at + HFN_FUNCTION_NAME, begin, end);
        move_offset(at + HFN_FUNCTION_STRATEGY, begin, end);
    }
    for (uint32_t i = 0; i < s->r->module_count; i++) {
        move_offset(get_module(s->r, i) + HFN_MODULE_PATH, begin, end);
    }
    for (uint64_t at = 0; at + HFN_REASON_BYTES <= parts[HFN_SECTION_REASONS].byte_count;
         at += HFN_REASON_BYTES) {
        move_offset(parts[HFN_SECTION_REASONS].bytes + at + HFN_REASON_NAME, begin, end);
        move_offset(parts[HFN_SECTION_REASONS].bytes + at + HFN_REASON_TEXT, begin, end);
    }
}

/* Remove the unused space for names of the module's methods; without memory, it stays. */
static void remove_name_space(const reduction *s, const uint8_t *module)
{
    hfn_part *strings = &s->r->parts[HFN_SECTION_STRINGS], shorter;
    uint32_t begin = get_word(module + HFN_MODULE_NAMES_NEXT);
    uint32_t end = get_word(module + HFN_MODULE_NAMES_END) + HFN_METHOD_ORDERS_BYTES;

    if (begin < get_word(module + HFN_MODULE_NAMES_BEGIN) || begin > end ||
        end > strings->byte_count) {
        return; /* damaged */
    }
    shorter.byte_count = strings->byte_count - (end - begin);
    /* two NULs follow each part */
    shorter.bytes = hfn_allocate_zeroed(&s->r->env, shorter.byte_count + 2);
    if (shorter.bytes) {
        move_offsets(s, begin, end);
        memcpy(shorter.bytes, strings->bytes, begin);
        memcpy(shorter.bytes + begin, strings->bytes + end, strings->byte_count - end);
        hfn_free_memory(&s->r->env, strings->bytes, strings->byte_count + 2);
        *strings = shorter;
    }
}

/* ---- The record. */

static void reduce_record(reduction *s)
{
    static const uint32_t types[] = { HFN_SECTION_SLOTS, HFN_SECTION_STATES, HFN_SECTION_FUNCTIONS,
                                      HFN_SECTION_TIMING_STATES, HFN_SECTION_BUDGET_STATES };

    choose_functions(s);
    for (size_t i = 0; i < HFN_COUNT_OF(types); i++) {
        compact_elements(s, types[i]);
    }
    renumber_functions(s);
    s->r->function_count = s->count;
    /* from the last module, so that the offsets in earlier ones stay valid */
    for (uint32_t i = s->r->module_count; i-- > 0;) {
        uint8_t *module = get_module(s->r, i);

        if (has_methods(module)) {
            remove_name_space(s, module);
            memset(module + HFN_MODULE_NAMES_BEGIN, 0,
                   HFN_MODULE_METHODS_LOST - HFN_MODULE_NAMES_BEGIN);
            memset(module + HFN_MODULE_ORDERS_BEGIN, 0,
                   HFN_MODULE_LIVE_END - HFN_MODULE_ORDERS_BEGIN);
        }
    }
}

hotfn_status hfn_record_drop_unused_methods(hotfn_record *r, hotfn_error *err)
{
    reduction s = { .r = r, .before = r->function_count };
    bool is_needed = false;

    for (uint32_t i = 0; i < r->module_count; i++) {
        is_needed |= has_methods(get_module(r, i));
    }
    if (!is_needed) {
        return HOTFN_OK;
    }
    s.kept = hfn_allocate_zeroed(&r->env, (uint64_t)s.before * sizeof *s.kept);
    if (!s.kept && s.before > 0) {
        return hfn_report_no_memory(err, r->path);
    }
    reduce_record(&s);
    hfn_free_memory(&r->env, s.kept, (uint64_t)s.before * sizeof *s.kept);
    return HOTFN_OK;
}
