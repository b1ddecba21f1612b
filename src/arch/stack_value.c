/* SPDX-License-Identifier: MIT */
/* The operations of the abstract domain (stack_value.h). */
#include "arch/stack_value.h"

#include "arch/arch.h"

#include <string.h>

typedef enum value_kind { EXACT, AT_MOST, MAYBE } value_kind;

static value_kind get_kind(int32_t value)
{
    return hfn_stack_is_exact(value) ? EXACT : hfn_stack_is_at_most(value) ? AT_MOST : MAYBE;
}

static int32_t make_value(value_kind kind, int64_t bound)
{
    if (bound >= HFN_STACK_LIMIT) {
        bound = HFN_STACK_UNBOUNDED;
        kind = kind == EXACT ? AT_MOST : kind;
    }
    if (bound <= -HFN_STACK_LIMIT) {
        bound = 1 - HFN_STACK_LIMIT;
        kind = kind == EXACT ? AT_MOST : kind;
    }
    return kind == EXACT     ? (int32_t)bound
           : kind == AT_MOST ? HFN_STACK_AT_MOST(bound)
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
    return hfn_stack_is_maybe(value) ? value - HFN_STACK_MAYBE(0) : HFN_STACK_UNBOUNDED;
}

int32_t hfn_stack_weaken(int32_t value)
{
    return value != HFN_STACK_ANY && hfn_stack_is_related(value)
               ? make_value(MAYBE, hfn_stack_get_bound(value))
               : value;
}

/* Values that arrived in the link and the frame register remain recognised beside unrelated ones,
 * and become ANY beside all others. */
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
    if (a == HFN_STACK_ANY || b == HFN_STACK_ANY || !hfn_stack_is_related(a) ||
        !hfn_stack_is_related(b)) {
        return HFN_STACK_ANY;
    }
    if (get_kind(a) == MAYBE || get_kind(b) == MAYBE) {
        kind = MAYBE;
    }
    low = hfn_stack_get_bound(a);
    high = hfn_stack_get_bound(b);
    return make_value(kind, low > high ? low : high);
}

int32_t hfn_stack_add(int32_t value, int64_t constant)
{
    int32_t bound = hfn_stack_get_bound(value);

    if (!hfn_stack_is_related(value) || value == HFN_STACK_ANY || bound == HFN_STACK_UNBOUNDED) {
        return value;
    }
    /* A large constant wraps around an address space or is no distance in a stack. */
    if (constant >= HFN_STACK_LIMIT || constant <= -HFN_STACK_LIMIT) {
        return HFN_STACK_ANY;
    }
    return make_value(get_kind(value), bound + constant);
}

int32_t hfn_stack_clear_bits(int32_t value)
{
    return hfn_stack_is_exact(value) ? make_value(AT_MOST, value) : value;
}

/* The distance between two addresses of the stack is a number that does not depend on where the
 * stack is. */
int32_t hfn_stack_subtract(int32_t a, int32_t b)
{
    if (!hfn_stack_is_related(a) && !hfn_stack_is_related(b)) {
        return HFN_STACK_UNRELATED;
    }
    return hfn_stack_is_address(a) && hfn_stack_is_address(b) ? HFN_STACK_UNRELATED : HFN_STACK_ANY;
}

/* ---- Words of the frame. */

static void remove_cell(hfn_stack_state *s, uint32_t index)
{
    s->cells[index] = s->cells[--s->cell_count];
}

/* Cells are sorted by nothing; equal states may hold them in different orders. */
static hfn_stack_cell *find_cell(hfn_stack_state *s, int32_t at)
{
    for (uint32_t i = 0; i < s->cell_count; i++) {
        if (s->cells[i].at == at) {
            return &s->cells[i];
        }
    }
    return NULL;
}

static void put_cell(hfn_stack_state *s, int32_t at, int32_t value)
{
    hfn_stack_cell *cell = find_cell(s, at);

    if (cell) {
        cell->value = value;
    } else if (s->cell_count < HFN_STACK_CELLS) {
        s->cells[s->cell_count++] = (hfn_stack_cell){ at, value };
    } else {
        s->elsewhere = hfn_stack_join(s->elsewhere, hfn_stack_weaken(value));
    }
}

/* Remove cells that a store covers; what remains of a partly covered one can be anything. */
static void overwrite_cells(hfn_stack_state *s, int32_t at, uint32_t bytes, uint32_t word_bytes)
{
    int64_t end = (int64_t)at + bytes, word = word_bytes;

    for (uint32_t i = s->cell_count; i-- > 0;) {
        int64_t cell = s->cells[i].at;
        if (cell >= at && cell + word <= end) {
            remove_cell(s, i);
        } else if (cell < end && at < cell + word && hfn_stack_is_related(s->cells[i].value)) {
            s->cells[i].value = HFN_STACK_ANY;
        }
    }
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
    if (!hfn_stack_is_exact(place)) {
        s->elsewhere = hfn_stack_join(s->elsewhere, hfn_stack_weaken(value));
        return;
    }
    overwrite_cells(s, place, bytes, word_bytes);
    if (value == HFN_STACK_UNRELATED) {
        return;
    }
    if (bytes < word_bytes || bytes % word_bytes != 0) {
        value = hfn_stack_is_related(value) ? HFN_STACK_ANY : value;
    }
    for (uint32_t at = 0; at < bytes; at += word_bytes) {
        put_cell(s, place + (int32_t)at, value);
    }
}

int32_t hfn_stack_load(const hfn_stack_state *s, int32_t place, uint32_t bytes, uint32_t word_bytes)
{
    int32_t value = s->elsewhere;

    if (!hfn_stack_is_related(place)) {
        return HFN_STACK_UNRELATED;
    }
    for (uint32_t i = 0; i < s->cell_count; i++) {
        int64_t from = (int64_t)s->cells[i].at - place, to = from + word_bytes;
        int32_t loaded = s->cells[i].value;
        bool whole = from >= 0 && to <= bytes && from % word_bytes == 0;
        if (!hfn_stack_is_exact(place)) {
            loaded = hfn_stack_is_related(loaded) ? loaded : HFN_STACK_UNRELATED;
        } else if (to <= 0 || from >= (int64_t)bytes) {
            continue;
        } else if (!whole || (bytes != word_bytes && !hfn_stack_is_related(loaded))) {
            loaded = hfn_stack_is_related(loaded) && bytes >= word_bytes ? HFN_STACK_ANY
                                                                         : HFN_STACK_UNRELATED;
        }
        value = value == HFN_STACK_UNRELATED ? hfn_stack_weaken(loaded)
                                             : hfn_stack_join(value, hfn_stack_weaken(loaded));
    }
    return value;
}

void hfn_stack_share(hfn_stack_state *s, int32_t value)
{
    for (uint32_t i = s->cell_count; i-- > 0 && hfn_stack_is_exact(value);) {
        if (s->cells[i].at >= value && hfn_stack_is_related(s->cells[i].value)) {
            remove_cell(s, i);
        }
    }
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

/* ---- Paths that meet. */

static bool merge_value(int32_t *known, int32_t value, bool widens)
{
    int32_t joined = hfn_stack_join(*known, value);

    if (joined == *known) {
        return false;
    }
    if (widens && joined != HFN_STACK_ANY && hfn_stack_is_related(joined) &&
        hfn_stack_is_related(*known) && hfn_stack_get_bound(joined) > hfn_stack_get_bound(*known)) {
        joined =
            make_value(get_kind(joined) == EXACT ? AT_MOST : get_kind(joined), HFN_STACK_UNBOUNDED);
    }
    *known = joined;
    return true;
}

/* A word that holds an address on one path only is unrelated on the other, which a cell's value
 * allows for. */
static bool merge_cells(hfn_stack_state *known, const hfn_stack_state *state, bool widens)
{
    bool changed = false;

    for (uint32_t i = 0; i < state->cell_count; i++) {
        const hfn_stack_cell *from = &state->cells[i];
        hfn_stack_cell *to = find_cell(known, from->at);
        int32_t before = known->elsewhere;
        if (to) {
            changed |= merge_value(&to->value, from->value, widens);
            continue;
        }
        changed |= known->cell_count < HFN_STACK_CELLS;
        put_cell(known, from->at, from->value);
        changed |= known->elsewhere != before;
    }
    return changed;
}

bool hfn_stack_merge(hfn_stack_state *known, const hfn_stack_state *state, bool widens)
{
    bool changed = merge_cells(known, state, widens);

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
