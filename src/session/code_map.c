/* SPDX-License-Identifier: MIT */
/* A map from code addresses to slots.  A sampled call finds its caller by its return address,
 * because the caller's own call may be skipped.  For functions that are only counted, the map also
 * has the place of their return address on the stack, so that their callers are found too. */
#include "counters/timing/timing.h"
#include "functions/eh_frame_find.h"
#include "live/live.h"
#include "session/process.h"

#include <stdlib.h>
#include <string.h>

static uint32_t get_function_count(const hfn_process *p, const hfn_loaded_module *m)
{
    hotfn_record_module known = HOTFN_RECORD_MODULE_INIT;

    if (m->live_module == UINT32_MAX ||
        hfn_live_get_module(p->live, m->live_module, &known) != HOTFN_OK) {
        return 0;
    }
    return known.function_count;
}

typedef struct map_builder {
    const hfn_process *process;
    hfn_code_range *ranges;
    size_t count, capacity;
    bool no_memory;
    hfn_eh_table table; /* unwind data of the current module */
    bool has_table;
    hfn_code_range whole; /* the current function              */
} map_builder;

/* return_distance: from the place of the callee's return address up to the function's own; 0: not
 * known. */
static void add_range(map_builder *m, uint64_t begin, uint64_t end, uint32_t return_distance)
{
    hfn_code_range *last = m->count > 0 ? &m->ranges[m->count - 1] : NULL;

    if (last && last->end == begin && last->slot == m->whole.slot &&
        last->behind == return_distance) {
        last->end = end;
        return;
    }
    m->no_memory |= !hfn_grow_array(&m->process->env, (void **)&m->ranges, &m->capacity,
                                    m->count + 1, sizeof *m->ranges);
    if (!m->no_memory) {
        m->ranges[m->count++] = (hfn_code_range){ begin, end, m->whole.slot, return_distance };
    }
}

/* ---- The place of a function's return address, by its unwind data.  Only the plain case is used:
 * the address is where the call stored it, at a constant distance from the stack pointer. */

enum { WORD = sizeof(uintptr_t), MAX_DISTANCE = 1 << 16, MIN_CALL_BYTES = 2 };

/* DWARF numbers of return address and stack pointer: x86-64 psABI, figure 3.36; i386 psABI,
 * table 2.14.  On other CPUs a call stores the return address in a register, and the function saves
 * it anywhere. */
static uint64_t get_stack_register(const hfn_cie *cie)
{
    if (WORD == 8 && cie->return_register == 16) {
        return 7;
    }
    return WORD == 4 && cie->return_register == 8 ? 4 : UINT64_MAX;
}

typedef struct row_sink {
    map_builder *builder;
    uint64_t stack_register;
} row_sink;

static void add_row(void *user, uint64_t begin, uint64_t end, const hfn_frame *f)
{
    const row_sink *sink = user;
    const hfn_code_range *whole = &sink->builder->whole;
    bool plain = !f->by_expression && f->cfa_set && f->cfa_register == sink->stack_register &&
                 f->return_at == -WORD && f->cfa_offset >= WORD && f->cfa_offset < MAX_DISTANCE &&
                 f->cfa_offset % WORD == 0;

    begin += whole->begin;
    end = end < whole->end - whole->begin ? end + whole->begin : whole->end;
    if (begin < end && end - begin >= MIN_CALL_BYTES) {
        add_range(sink->builder, begin, end, plain ? (uint32_t)f->cfa_offset : 0);
    }
}

static bool add_rows(map_builder *m)
{
    size_t before = m->count;
    hfn_eh_function f;
    row_sink sink = { .builder = m };

    if (!m->has_table || !hfn_eh_table_find(&m->table, m->whole.begin, &f) || f.cie.signal_frame) {
        return false;
    }
    sink.stack_register = get_stack_register(&f.cie);
    if (sink.stack_register != UINT64_MAX &&
        hfn_eh_frame_rows(&f.cie, f.instructions, f.byte_count, add_row, &sink)) {
        return true;
    }
    m->count = before;
    return false;
}

static bool open_table(const hfn_loaded_module *m, hfn_eh_table *out)
{
    hfn_os_unwind u;
    hfn_eh_bytes bytes = { .word_bytes = WORD };

    if (!hfn_os_find_unwind(m->base, &u)) {
        return false;
    }
    bytes.address = u.begin;
    bytes.bytes = (hfn_span){ (const uint8_t *)(uintptr_t)u.begin, u.end - u.begin, false };
    return hfn_eh_table_open(out, bytes, u.header);
}

/* ---- All functions that have a slot, and their outlined parts. */

/* The owner of function `index` of the module: the function from which it was split off if it is an
 * outlined part (gcc's .cold), otherwise itself.  UINT32_MAX if the owner is not known. */
static uint32_t find_owner(const hfn_process *p, uint32_t first, uint32_t count, uint32_t index)
{
    const uint8_t *state =
        hfn_live_section(p->live, HFN_SECTION_STATES) + (uint64_t)(first + index) * HFN_STATE_BYTES;
    uint32_t word = hfn_shared_get32(state + HFN_STATE_WORD);
    uint32_t owner = index;

    if (HFN_STATE_OF(word) == HOTFN_STATE_FRAGMENT) {
        owner = hfn_read_le32(state + HFN_STATE_OFFSET) - 1;
    }
    return owner < count ? owner : UINT32_MAX;
}

static void add_ranges(map_builder *map, const hfn_loaded_module *m)
{
    const hfn_process *p = map->process;
    const uint32_t *slots = hfn_live_get_slots(p->live, m->live_module);
    uint32_t first, count;
    uint8_t *module;

    if (!hfn_live_find_module(p->live, m->live_module, &module, &first, &count)) {
        return;
    }
    map->has_table = open_table(m, &map->table);
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *at = hfn_live_section(p->live, HFN_SECTION_FUNCTIONS) +
                            (uint64_t)(first + i) * HFN_FUNCTION_BYTES;
        uint64_t begin = m->base + hfn_read_le64(at + HFN_FUNCTION_RVA);
        uint64_t end = begin + hfn_read_le64(at + HFN_FUNCTION_SIZE);
        uint32_t owner = find_owner(p, first, count, i);
        if (owner == UINT32_MAX || slots[owner] == HOTFN_NO_SLOT) {
            continue;
        }
        map->whole = (hfn_code_range){ begin, end, slots[owner], 0 };
        if (hfn_live_is_timed(p->live, first + owner) || !add_rows(map)) {
            add_range(map, begin, end, 0);
        }
    }
}

static int compare_begin(const void *a, const void *b)
{
    const hfn_code_range *x = a, *y = b;

    return (x->begin > y->begin) - (x->begin < y->begin);
}

static hfn_code_map *build_map(const map_builder *m)
{
    hfn_code_map *map =
        m->no_memory
            ? NULL
            : hfn_allocate_zeroed(&m->process->env, sizeof *map + m->count * sizeof *map->ranges);

    if (!map) {
        return NULL;
    }
    map->older = hfn_time_code;
    map->count = m->count;
    if (m->count > 0) {
        memcpy(map->ranges, m->ranges, m->count * sizeof *map->ranges);
    }
    for (size_t i = 1; i < m->count; i++) { /* usually they are sorted */
        if (compare_begin(&map->ranges[i - 1], &map->ranges[i]) > 0) {
            qsort(map->ranges, map->count, sizeof *map->ranges, compare_begin);
            break;
        }
    }
    return map;
}

void hfn_process_map_code(const hfn_process *p)
{
    const hfn_time_header *h = hfn_live_time_header(p->live);
    map_builder m = { .process = p };
    hfn_code_map *map;

    if (!h || !(h->flags & HOTFN_TIMING_SAMPLED)) {
        return;
    }
    for (size_t i = 0; i < p->loaded_count; i++) {
        if (get_function_count(p, &p->loaded[i]) > 0) {
            add_ranges(&m, &p->loaded[i]);
        }
    }
    map = build_map(&m);
    hfn_free_memory(&p->env, m.ranges, m.capacity * sizeof *m.ranges);
    if (map) { /* without memory, callers in new modules are not found */
        hfn_timing_set_code(map);
    }
}

void hfn_process_forget_code(const hfn_process *p)
{
    const hfn_code_map *map = hfn_time_code, *older;

    hfn_timing_set_code(NULL);
    for (; map; map = older) {
        older = map->older;
        hfn_free_memory(&p->env, (void *)(uintptr_t)map,
                        sizeof *map + map->count * sizeof *map->ranges);
    }
}
