/* SPDX-License-Identifier: MIT */
/*
 * The abstract domain of the proofs of timing: what is known about the value of a register or of a
 * word of the stack frame (docs/design/timing-proof.md).  Values are ordered by how little is
 * known:
 *
 *   UNRELATED       not computed from the stack pointer of this call
 *   k               CFA + k, where the CFA (DWARF 5, 6.4) is the stack pointer before the call
 *   AT_MOST(k)      an address of the stack, not above CFA + k
 *   MAYBE_EXACT(k)  UNRELATED, or CFA + k
 *   MAYBE(k)        UNRELATED, or an address of the stack not above CFA + k
 *   ANY_ABOVE_BYTE  a low byte that is UNRELATED; the other bytes can be anything
 *   ANY             anything, for example an address plus an unknown number, or a part of one
 *   COMPUTED        anything, from arithmetic on the bits of an address, which may restore it
 *
 * Only the upper bound matters, because the proof forbids accesses above the function's frame.
 */
#ifndef HFN_ARCH_STACK_VALUE_H
#define HFN_ARCH_STACK_VALUE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hfn_stack_state hfn_stack_state;

/* Values without an offset.  RETURN_ADDRESS and CALLER_FRAME are the values of the link register
 * and of the frame register when the function is entered. */
#define HFN_STACK_UNRELATED INT32_MIN
#define HFN_STACK_ANY (INT32_MIN + 1)
#define HFN_STACK_RETURN_ADDRESS (INT32_MIN + 2)
#define HFN_STACK_CALLER_FRAME (INT32_MIN + 3)
#define HFN_STACK_ANY_ABOVE_BYTE (INT32_MIN + 4)
#define HFN_STACK_COMPUTED (INT32_MIN + 5)

/* Offsets are in (-LIMIT, LIMIT).  An address that a loop moves has the bound UNBOUNDED. */
#define HFN_STACK_LIMIT (INT32_C(1) << 27)
#define HFN_STACK_UNBOUNDED HFN_STACK_LIMIT

/* An exact value is its offset; the other kinds add a constant to their bound. */
#define HFN_STACK_AT_MOST(k) ((int32_t)(k) - (INT32_C(1) << 29))
#define HFN_STACK_MAYBE_EXACT(k) ((int32_t)(k) - (INT32_C(3) << 29))
#define HFN_STACK_MAYBE(k) ((int32_t)(k) - (INT32_C(1) << 30))

static inline bool hfn_stack_is_exact(int32_t value)
{
    return value > -HFN_STACK_LIMIT;
}

static inline bool hfn_stack_is_at_most(int32_t value)
{
    return value >= HFN_STACK_AT_MOST(-HFN_STACK_LIMIT) &&
           value <= HFN_STACK_AT_MOST(HFN_STACK_LIMIT);
}

static inline bool hfn_stack_is_maybe(int32_t value)
{
    return value >= HFN_STACK_MAYBE_EXACT(-HFN_STACK_LIMIT) &&
           value <= HFN_STACK_MAYBE(HFN_STACK_LIMIT);
}

static inline bool hfn_stack_is_maybe_exact(int32_t value)
{
    return value >= HFN_STACK_MAYBE_EXACT(-HFN_STACK_LIMIT) &&
           value <= HFN_STACK_MAYBE_EXACT(HFN_STACK_LIMIT);
}

/* Is it certainly an address of the stack? */
static inline bool hfn_stack_is_address(int32_t value)
{
    return hfn_stack_is_exact(value) || hfn_stack_is_at_most(value);
}

/* Is it one of the values without a bound? */
static inline bool hfn_stack_is_any(int32_t value)
{
    return value == HFN_STACK_ANY || value == HFN_STACK_ANY_ABOVE_BYTE ||
           value == HFN_STACK_COMPUTED;
}

/* May it be computed from the stack pointer of this call? */
static inline bool hfn_stack_is_related(int32_t value)
{
    return hfn_stack_is_any(value) || value >= HFN_STACK_MAYBE_EXACT(-HFN_STACK_LIMIT);
}

/* The upper bound of a related value; ANY has none and returns UNBOUNDED. */
int32_t hfn_stack_get_bound(int32_t value);

/* COMPUTED if one of the values is, otherwise ANY. */
static inline int32_t hfn_stack_any_of(int32_t a, int32_t b)
{
    return a == HFN_STACK_COMPUTED || b == HFN_STACK_COMPUTED ? HFN_STACK_COMPUTED : HFN_STACK_ANY;
}

/* The lowest value of the order that covers both, for a place that two paths reach. */
int32_t hfn_stack_join(int32_t a, int32_t b);
/* The value after a path on which it may have been replaced by an unrelated one. */
int32_t hfn_stack_weaken(int32_t value);
/* The value plus a constant; the value after bits were cleared; of a minus b. */
int32_t hfn_stack_add(int32_t value, int64_t constant);
int32_t hfn_stack_clear_bits(int32_t value);
int32_t hfn_stack_subtract(int32_t a, int32_t b);

/* ---- Words of the frame. */

/* A word of the frame to which an address, or the caller's frame pointer, was stored.  Its value
 * may have been replaced by an unrelated one since, for example by a callee. */
typedef struct hfn_stack_cell {
    int32_t at; /* offset from the CFA */
    int32_t value;
    uint8_t live; /* bit n: no later store has overwritten byte n */
} hfn_stack_cell;

/* May it be an address that is not above a known place? */
static inline bool hfn_stack_has_bound(int32_t value)
{
    return hfn_stack_is_related(value) && hfn_stack_get_bound(value) != HFN_STACK_UNBOUNDED;
}

/* What an instruction shows about an object of the frame. */
typedef struct hfn_stack_object {
    int32_t at;   /* where it begins */
    bool indexed; /* a pointer to it that was in memory is indexed; otherwise the function passes
                   * its address to a callee, or copies or clears it as a whole */
} hfn_stack_object;

void hfn_stack_note_object(hfn_stack_state *state, int32_t at, bool indexed);
/* The sum of two values, one of which may be a pointer to an object that is indexed by the
 * other. */
int32_t hfn_stack_index(hfn_stack_state *state, int32_t a, int32_t b);

/* Store a value of `bytes` bytes to the offset `place` from the CFA. */
void hfn_stack_store(hfn_stack_state *state, int32_t place, uint32_t bytes, int32_t value,
                     uint32_t word_bytes);
/* The value of a load of `bytes` bytes from a place.  A load through an indexed pointer, or through
 * a pointer that a loop moves, is treated like a load from memory outside the frame. */
int32_t hfn_stack_load(const hfn_stack_state *state, int32_t place, uint32_t bytes,
                       uint32_t word_bytes);
/* Does the word at this offset hold the caller's frame pointer? */
bool hfn_stack_holds_caller_frame(const hfn_stack_state *state, int32_t at);

/* Join the state of another path; true if that changed `known`.  `widens`: a bound that grows
 * becomes UNBOUNDED. */
bool hfn_stack_merge(hfn_stack_state *known, const hfn_stack_state *state, bool widens);

#endif
