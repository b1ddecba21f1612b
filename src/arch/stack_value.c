/* SPDX-License-Identifier: MIT */
/* The operations of the abstract domain (stack_value.h). */
#include "arch/stack_value.h"

#include "arch/arch.h"

#include <string.h>

typedef enum value_kind { EXACT, AT_MOST, MAYBE_EXACT, MAYBE } value_kind;

static value_kind get_kind(int32_t value)
{
    return hfn_stack_is_exact(value)         ? EXACT
           : hfn_stack_is_at_most(value)     ? AT_MOST
           : hfn_stack_is_maybe_exact(value) ? MAYBE_EXACT
                                             : MAYBE;
}

/* The kind that keeps only the upper bound. */
static value_kind get_bounded_kind(value_kind kind)
{
    return kind == EXACT ? AT_MOST : kind == MAYBE_EXACT ? MAYBE : kind;
}

static int32_t make_value(value_kind kind, int64_t bound)
{
    if (bound >= HFN_STACK_LIMIT) {
        bound = HFN_STACK_UNBOUNDED;
        kind = get_bounded_kind(kind);
    }
    if (bound <= -HFN_STACK_LIMIT) {
        bound = 1 - HFN_STACK_LIMIT;
        kind = get_bounded_kind(kind);
    }
    return kind == EXACT         ? (int32_t)bound
           : kind == AT_MOST     ? HFN_STACK_AT_MOST(bound)
           : kind == MAYBE_EXACT ? HFN_STACK_MAYBE_EXACT(bound)
                                 : HFN_STACK_MAYBE(bound);
}

int32_t hfn_stack_get_bound(int32_t value)
{
    if (hfn_stack_is_exact(value)) {
        return value;
    }
    if (hfn_stack_is_at_most(value)) {
        return value - HFN_STACK_AT_MOST(0);
    }
    if (hfn_stack_is_maybe_exact(value)) {
        return value - HFN_STACK_MAYBE_EXACT(0);
    }
    return hfn_stack_is_maybe(value) ? value - HFN_STACK_MAYBE(0) : HFN_STACK_UNBOUNDED;
}

int32_t hfn_stack_weaken(int32_t value)
{
    return !hfn_stack_is_any(value) && hfn_stack_is_related(value)
               ? make_value(hfn_stack_is_exact(value) || hfn_stack_is_maybe_exact(value)
                                ? MAYBE_EXACT
                                : MAYBE,
                            hfn_stack_get_bound(value))
               : value;
}

/* The initial values of the link and frame registers survive a join with an unrelated value; joined
 * with any other value they become ANY. */
static int32_t join_special(int32_t a, int32_t b)
{
    if (a == HFN_STACK_UNRELATED || b == HFN_STACK_UNRELATED) {
        return a == HFN_STACK_UNRELATED ? b : a;
    }
    return HFN_STACK_ANY;
}

int32_t hfn_stack_join(int32_t a, int32_t b)
{
    value_kind kind = AT_MOST;
    int32_t low, high;

    if (a == b) {
        return a;
    }
    if (!hfn_stack_is_related(a) && !hfn_stack_is_related(b)) {
        return join_special(a, b);
    }
    if (a == HFN_STACK_UNRELATED || b == HFN_STACK_UNRELATED) {
        return hfn_stack_weaken(a == HFN_STACK_UNRELATED ? b : a);
    }
    if (hfn_stack_is_any(a) || hfn_stack_is_any(b) || !hfn_stack_is_related(a) ||
        !hfn_stack_is_related(b)) {
        return hfn_stack_any_of(a, b);
    }
    low = hfn_stack_get_bound(a);
    high = hfn_stack_get_bound(b);
    if (hfn_stack_is_maybe(a) || hfn_stack_is_maybe(b)) {
        kind = low == high && get_kind(a) != AT_MOST && get_kind(b) != AT_MOST &&
                       get_kind(a) != MAYBE && get_kind(b) != MAYBE
                   ? MAYBE_EXACT
                   : MAYBE;
    }
    return make_value(kind, low > high ? low : high);
}

int32_t hfn_stack_add(int32_t value, int64_t constant)
{
    int32_t bound = hfn_stack_get_bound(value);

    if (hfn_stack_is_any(value)) {
        return hfn_stack_any_of(value, value);
    }
    if (!hfn_stack_is_related(value) || bound == HFN_STACK_UNBOUNDED) {
        return value;
    }
    /* A constant this large wraps around the address space or is not an offset in a stack. */
    if (constant >= HFN_STACK_LIMIT || constant <= -HFN_STACK_LIMIT) {
        return HFN_STACK_ANY;
    }
    return make_value(get_kind(value), bound + constant);
}

int32_t hfn_stack_clear_bits(int32_t value)
{
    return hfn_stack_is_related(value) && !hfn_stack_is_any(value)
               ? make_value(get_bounded_kind(get_kind(value)), hfn_stack_get_bound(value))
               : value;
}

/* The difference of two stack addresses is a number that does not depend on the stack's address.
 * Compilers fold the difference of two known places, so where code computes it, it may be meant to
 * restore an address; the same holds for an address that is subtracted from a number (neg).
 */
int32_t hfn_stack_subtract(int32_t a, int32_t b)
{
    if (!hfn_stack_is_related(a) && !hfn_stack_is_related(b)) {
        return HFN_STACK_UNRELATED;
    }
    if (!hfn_stack_is_related(a) || (hfn_stack_is_exact(a) && hfn_stack_is_exact(b))) {
        return HFN_STACK_COMPUTED;
    }
    return hfn_stack_is_address(a) && hfn_stack_is_address(b) ? HFN_STACK_UNRELATED
                                                              : hfn_stack_any_of(a, b);
}

/* ---- Cells: words of the frame whose values are known. */

static void remove_cell(hfn_stack_state *s, uint32_t index)
{
    s->cells[index] = s->cells[--s->cell_count];
}

/* Cells are not sorted; equal states may hold them in different orders. */
static hfn_stack_cell *find_cell(hfn_stack_state *s, int32_t at)
{
    for (uint32_t i = 0; i < s->cell_count; i++) {
        if (s->cells[i].at == at) {
            return &s->cells[i];
        }
    }
    return NULL;
}

static uint8_t get_all_bytes(uint32_t word_bytes)
{
    return (uint8_t)((1u << word_bytes) - 1);
}

static void put_cell(hfn_stack_state *s, const hfn_stack_cell *cell)
{
    hfn_stack_cell *known = find_cell(s, cell->at);

    if (known) {
        *known = *cell;
    } else if (s->cell_count < HFN_STACK_CELLS) {
        s->cells[s->cell_count++] = *cell;
    } else {
        s->elsewhere = hfn_stack_join(s->elsewhere, hfn_stack_weaken(cell->value));
    }
}

/* A mask of the cell's bytes that lie in [at, at + bytes). */
static uint8_t get_overlap(const hfn_stack_cell *cell, int64_t at, uint32_t bytes,
                           uint32_t word_bytes)
{
    uint8_t mask = 0;

    for (uint32_t i = 0; i < word_bytes; i++) {
        int64_t byte = (int64_t)cell->at + i;
        mask |= (uint8_t)((byte >= at && byte < at + bytes) << i);
    }
    return mask;
}

static void overwrite_cells(hfn_stack_state *s, int32_t at, uint32_t bytes, uint32_t word_bytes)
{
    for (uint32_t i = s->cell_count; i-- > 0;) {
        s->cells[i].live &= (uint8_t)~get_overlap(&s->cells[i], at, bytes, word_bytes);
        if (s->cells[i].live == 0) {
            remove_cell(s, i);
        }
    }
}

void hfn_stack_note_object(hfn_stack_state *s, int32_t at, bool indexed)
{
    if (s->object_count < HFN_STACK_OBJECTS) {
        s->objects[s->object_count++] = (hfn_stack_object){ at, indexed };
    }
}

int32_t hfn_stack_index(hfn_stack_state *s, int32_t a, int32_t b)
{
    int32_t pointer = hfn_stack_is_related(a) ? a : b;

    if (!hfn_stack_is_related(pointer)) {
        return HFN_STACK_UNRELATED;
    }
    if ((hfn_stack_is_related(a) && hfn_stack_is_related(b)) ||
        !(hfn_stack_is_maybe(pointer) || hfn_stack_is_exact(pointer))) {
        return hfn_stack_any_of(a, b);
    }
    if (hfn_stack_has_bound(pointer)) {
        hfn_stack_note_object(s, hfn_stack_get_bound(pointer), true);
    }
    return HFN_STACK_MAYBE(HFN_STACK_UNBOUNDED);
}

/* A store that writes an address either to the word at `at` or outside the stack. */
static void store_maybe(hfn_stack_state *s, int32_t at, int32_t value, uint32_t word_bytes)
{
    hfn_stack_cell cell = { at, hfn_stack_weaken(value), get_all_bytes(word_bytes) };
    const hfn_stack_cell *known = find_cell(s, at);

    if (known) {
        cell.value = known->live == cell.live ? hfn_stack_join(known->value, cell.value)
                                              : hfn_stack_any_of(known->value, cell.value);
    }
    put_cell(s, &cell);
}

void hfn_stack_store(hfn_stack_state *s, int32_t place, uint32_t bytes, int32_t value,
                     uint32_t word_bytes)
{
    if (!hfn_stack_is_related(place)) {
        return;
    }
    if (!hfn_stack_is_exact(place) && !hfn_stack_is_related(value)) {
        return;
    }
    if (hfn_stack_is_maybe_exact(place) && bytes == word_bytes) {
        store_maybe(s, hfn_stack_get_bound(place), value, word_bytes);
        return;
    }
    if (!hfn_stack_is_exact(place)) {
        s->elsewhere = hfn_stack_join(s->elsewhere, hfn_stack_weaken(value));
        return;
    }
    overwrite_cells(s, place, bytes, word_bytes);
    if (value == HFN_STACK_UNRELATED) {
        return;
    }
    if (bytes < word_bytes || bytes % word_bytes != 0) {
        value = hfn_stack_is_related(value) ? hfn_stack_any_of(value, value) : value;
    }
    for (uint32_t at = 0; at < bytes; at += word_bytes) {
        hfn_stack_cell cell = { place + (int32_t)at, value, 0 };
        cell.live = get_overlap(&cell, place, bytes, word_bytes);
        put_cell(s, &cell);
    }
}

/* The value that a load at `place` reads from a cell.  If the place is not exact, part of an
 * address is assumed to be a number, because compilers do not load parts of pointers in an
 * object. */
static int32_t load_cell(const hfn_stack_cell *cell, int32_t place, uint32_t bytes,
                         uint32_t word_bytes)
{
    int64_t from = (int64_t)cell->at - place;
    bool intact = cell->live == get_all_bytes(word_bytes);

    if (!hfn_stack_is_exact(place)) {
        return bytes < word_bytes || cell->at >= (int64_t)hfn_stack_get_bound(place) + bytes ||
                       !hfn_stack_is_related(cell->value)
                   ? HFN_STACK_UNRELATED
               : intact ? cell->value
                        : hfn_stack_any_of(cell->value, cell->value);
    }
    if (!(cell->live & get_overlap(cell, place, bytes, word_bytes))) {
        return HFN_STACK_UNRELATED;
    }
    if (!hfn_stack_is_related(cell->value)) {
        return from == 0 && bytes == word_bytes && intact ? cell->value : HFN_STACK_UNRELATED;
    }
    return intact && from >= 0 && from % word_bytes == 0 && from + word_bytes <= bytes
               ? cell->value
               : hfn_stack_any_of(cell->value, cell->value);
}

int32_t hfn_stack_load(const hfn_stack_state *s, int32_t place, uint32_t bytes, uint32_t word_bytes)
{
    int32_t value = s->elsewhere;

    if (!hfn_stack_has_bound(place)) {
        return HFN_STACK_UNRELATED;
    }
    if (hfn_stack_is_maybe_exact(place)) {
        place = hfn_stack_get_bound(place);
    }
    for (uint32_t i = 0; i < s->cell_count; i++) {
        int32_t loaded = hfn_stack_weaken(load_cell(&s->cells[i], place, bytes, word_bytes));
        value = value == HFN_STACK_UNRELATED ? loaded : hfn_stack_join(value, loaded);
    }
    return value;
}

bool hfn_stack_holds_caller_frame(const hfn_stack_state *s, int32_t at)
{
    for (uint32_t i = 0; i < s->cell_count; i++) {
        if (s->cells[i].at == at && s->cells[i].value == HFN_STACK_CALLER_FRAME) {
            return true;
        }
    }
    return false;
}

/* ---- Merging the states of paths that meet. */

static bool merge_value(int32_t *known, int32_t value, bool widens)
{
    int32_t joined = hfn_stack_join(*known, value);

    if (joined == *known) {
        return false;
    }
    if (widens && !hfn_stack_is_any(joined) && hfn_stack_is_related(joined) &&
        hfn_stack_is_related(*known) && hfn_stack_get_bound(joined) > hfn_stack_get_bound(*known)) {
        joined = make_value(get_bounded_kind(get_kind(joined)), HFN_STACK_UNBOUNDED);
    }
    *known = joined;
    return true;
}

/* If the two states hold an address in different bytes of the word, its value can be anything. */
static bool merge_cell(hfn_stack_cell *known, const hfn_stack_cell *from, bool widens)
{
    uint8_t live = known->live | from->live;
    bool differs = known->live != from->live;
    bool changed = merge_value(
        &known->value, differs ? hfn_stack_any_of(known->value, from->value) : from->value, widens);

    changed |= live != known->live;
    known->live = live;
    return changed;
}

/* A word that holds an address on one path only keeps its cell: loads weaken the value of a cell,
 * so that it covers an unrelated value too. */
static bool merge_cells(hfn_stack_state *known, const hfn_stack_state *state, bool widens)
{
    bool changed = false;

    for (uint32_t i = 0; i < state->cell_count; i++) {
        hfn_stack_cell *to = find_cell(known, state->cells[i].at);
        int32_t before = known->elsewhere;
        if (to) {
            changed |= merge_cell(to, &state->cells[i], widens);
            continue;
        }
        changed |= known->cell_count < HFN_STACK_CELLS;
        put_cell(known, &state->cells[i]);
        changed |= known->elsewhere != before;
    }
    return changed;
}

/* When widening, a limit that still grows becomes unknown. */
static bool merge_numbers(hfn_stack_state *known, const hfn_stack_state *state, bool widens)
{
    bool changed = false;

    for (uint32_t i = 0; i < HFN_STACK_NUMBERS; i++) {
        uint64_t below = state->below[i];
        if (known->below[i] != 0 && (below == 0 || below > known->below[i])) {
            known->below[i] = widens ? 0 : below;
            changed = true;
        }
    }
    changed |= (known->base_offsets & ~state->base_offsets) != 0;
    known->base_offsets &= state->base_offsets;
    if (known->compared.is_known &&
        (!state->compared.is_known || known->compared.reg != state->compared.reg ||
         known->compared.width != state->compared.width ||
         known->compared.constant != state->compared.constant)) {
        known->compared.is_known = false;
        changed = true;
    }
    return changed;
}

bool hfn_stack_merge(hfn_stack_state *known, const hfn_stack_state *state, bool widens)
{
    bool changed = merge_cells(known, state, widens);

    changed |= merge_numbers(known, state, widens);
    for (uint32_t i = 0; i < HFN_STACK_REGISTERS; i++) {
        changed |= merge_value(&known->at[i], state->at[i], widens);
    }
    changed |= merge_value(&known->elsewhere, state->elsewhere, widens);
    if (state->uncertain_calls > known->uncertain_calls) {
        known->uncertain_calls = state->uncertain_calls;
        changed = true;
    }
    return changed;
}
