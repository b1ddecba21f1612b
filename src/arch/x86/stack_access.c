/* SPDX-License-Identifier: MIT */
/*
 * Memory accesses for stack_use.c: which place of the stack an instruction accesses, whether that
 * is allowed, and which addresses may leave the function's registers.
 */
#include "arch/x86/stack_step.h"

static bool overlaps_return(const hfn_x86_step *p, int64_t at, uint32_t bytes)
{
    return at < 0 && at + (bytes ? bytes : 1) > p->return_at;
}

/* Is the value an address in the home space, if it is an address? */
static bool is_home_address(const hfn_x86_step *p, int32_t value)
{
    int32_t bound = hfn_stack_get_bound(value);

    return (hfn_stack_is_exact(value) || hfn_stack_is_maybe_exact(value)) && bound >= 0 &&
           bound < p->s->home_bytes;
}

bool hfn_x86_note_home_address(const hfn_x86_step *p, int32_t value)
{
    if (!is_home_address(p, value)) {
        return false;
    }
    p->s->home_addresses |= (uint8_t)(1u << value / p->word);
    if (p->s->argument_bytes < p->s->home_bytes) {
        p->s->argument_bytes = p->s->home_bytes; /* a callee may access the rest */
    }
    return true;
}

hfn_stack_outcome hfn_x86_check_object(const hfn_x86_step *p, int64_t at, uint32_t bytes)
{
    if (overlaps_return(p, at, bytes)) {
        return HFN_STACK_TOUCHES_RETURN;
    }
    return at >= 0 ? HFN_STACK_TOUCHES_CALLER : HFN_STACK_OK;
}

/* i386: note an access by the stack pointer that could reach the return address if callees popped
 * arguments. */
static void note_uncertain_access(const hfn_x86_step *p, int64_t end)
{
    if (p->s->uncertain_calls && p->e.base != HFN_X86_RBP &&
        end > p->return_at - HFN_X86_NEAR_BYTES * p->s->uncertain_calls) {
        p->s->depends_on_calls = true;
    }
}

/* i386: compilers use argument words as variables.  Their copies are written back when the call
 * returns, because the caller may read them. */
static void note_stored_words(const hfn_x86_step *p, int64_t at, int64_t end)
{
    for (int64_t word = at / p->word; p->mode == HFN_X86_32 && word * p->word < end; word++) {
        p->s->stored_arguments |= 1u << word;
    }
}

static void note_home_words(const hfn_x86_step *p, int64_t at, int64_t end)
{
    for (int64_t word = at / p->word; word * p->word < end && end <= p->s->home_bytes; word++) {
        p->s->home_stores |= (uint8_t)(1u << word);
    }
}

/* Check an access at an exact place.  Arguments there can be copied below a timing stub's frame;
 * not those by `pop [mem]`, whose operand is relative to the changed stack pointer. */
static hfn_stack_outcome check_exact(const hfn_x86_step *p, int64_t at)
{
    int64_t end = at + p->e.memory_bytes;
    int64_t max_end = p->mode == HFN_X86_32 ? HFN_ARGUMENTS_MAX : HFN_ARGUMENTS_MAX_64;
    hfn_stack_outcome outcome = hfn_x86_check_object(p, at, p->e.memory_bytes);

    note_uncertain_access(p, end);
    if (outcome != HFN_STACK_TOUCHES_CALLER || end > max_end || p->opcode[0] == 0x8F) {
        return outcome;
    }
    if (p->e.data.stores && p->mode == HFN_X86_64 && end > p->s->home_bytes) {
        return HFN_STACK_TOUCHES_CALLER; /* the caller may read it when the function has returned */
    }
    if (p->e.data.stores) {
        note_home_words(p, at, end);
        note_stored_words(p, at, end);
    }
    if (p->s->argument_bytes < end) {
        p->s->argument_bytes = (uint16_t)end;
    }
    return HFN_STACK_OK;
}

static hfn_stack_outcome check_bound(const hfn_x86_step *p, int64_t bound)
{
    note_uncertain_access(p, bound + p->e.memory_bytes);
    return bound + p->e.memory_bytes > p->return_at ? HFN_STACK_TOUCHES_CALLER : HFN_STACK_OK;
}

/* With an index of unknown size the place may be anywhere: compilers fold constants into the
 * displacement, and clang reads argument `a[i - 3]` at [rsp + 8*i - 16], far below the argument.  A
 * pointer to the beginning of an object is indexed within the object. */
static hfn_stack_outcome check_indexed(hfn_x86_step *p, int32_t sum)
{
    if (hfn_stack_is_any(sum)) {
        return p->e.memory_bytes == p->word && hfn_x86_add_base_offset(p)
                   ? HFN_STACK_OK
                   : HFN_STACK_TOUCHES_CALLER;
    }
    p->place = hfn_stack_add(sum, p->e.displacement);
    return hfn_stack_get_bound(sum) == HFN_STACK_UNBOUNDED
               ? HFN_STACK_OK
               : check_bound(p, (int64_t)hfn_stack_get_bound(sum) + p->e.displacement);
}

static hfn_stack_outcome check_place(hfn_x86_step *p)
{
    const hfn_x86_effects *e = &p->e;
    int32_t base = hfn_x86_get_value(p, e->base);
    int64_t bound = (int64_t)hfn_stack_get_bound(base) + e->displacement;

    if (hfn_stack_is_any(base)) {
        return HFN_STACK_LOST;
    }
    if (e->data.searches || e->memory_bytes == 0) {
        return HFN_STACK_TOUCHES_CALLER;
    }
    if (e->index != HFN_X86_NO_REGISTER) {
        return check_indexed(p, hfn_x86_add_index(p, e->base, e->index, e->scale));
    }
    p->place = hfn_stack_add(base, e->displacement);
    if (hfn_stack_is_exact(base)) {
        return check_exact(p, bound);
    }
    if (hfn_stack_get_bound(base) == HFN_STACK_UNBOUNDED) {
        return HFN_STACK_OK;
    }
    return check_bound(p, bound);
}

/* Do hidden operands (xlat, maskmovdqu) or a vector of addresses reach the stack? */
static bool has_hidden_place(const hfn_x86_step *p)
{
    for (uint8_t reg = 0; reg < HFN_X86_REGISTERS; reg++) {
        if ((p->e.data.hidden_bases >> reg & 1) && hfn_stack_is_related(p->s->at[reg])) {
            return true;
        }
    }
    for (uint32_t i = 0; i < HFN_X86_VECTORS && p->e.index == HFN_X86_VECTOR_INDEX; i++) {
        if (hfn_stack_is_related(p->s->at[HFN_X86_VECTOR + i])) {
            return true;
        }
    }
    return false;
}

hfn_stack_outcome hfn_x86_check_memory(hfn_x86_step *p)
{
    const hfn_x86_effects *e = &p->e;

    p->place = HFN_STACK_UNRELATED;
    if (e->data.kind != HFN_X86_REPEATS && has_hidden_place(p)) {
        return HFN_STACK_LOST;
    }
    if (!e->has_memory || e->data.kind == HFN_X86_MOVES_NOTHING) {
        return HFN_STACK_OK;
    }
    if (hfn_stack_is_related(hfn_x86_get_value(p, e->index))) {
        int32_t sum = e->data.searches || e->memory_bytes == 0
                          ? HFN_STACK_ANY
                          : hfn_x86_add_index(p, e->base, e->index, e->scale);
        return hfn_stack_is_any(sum) ? HFN_STACK_LOST : check_indexed(p, sum);
    }
    return hfn_stack_is_related(hfn_x86_get_value(p, e->base)) ? check_place(p) : HFN_STACK_OK;
}

/* No object of the function begins at the return address or above it, except in the home space, nor
 * at the saved frame pointer: such an address is a link to the whole frame, as Pascal passes it to
 * nested procedures. */
hfn_stack_outcome hfn_x86_check_passed(const hfn_x86_step *p, int32_t value)
{
    int32_t bound = hfn_stack_get_bound(value);

    if (!hfn_stack_is_related(value)) {
        return HFN_STACK_OK;
    }
    if (hfn_stack_is_any(value)) {
        return HFN_STACK_LOST;
    }
    if (is_home_address(p, value)) {
        return HFN_STACK_OK;
    }
    return bound != HFN_STACK_UNBOUNDED &&
                   (bound >= p->return_at || hfn_stack_holds_caller_frame(p->s, bound))
               ? HFN_STACK_TOUCHES_RETURN
               : HFN_STACK_OK;
}

/* A word of the frame may keep any value, except an address that callees must not see. */
hfn_stack_outcome hfn_x86_check_stored(const hfn_x86_step *p, int32_t place, int32_t value)
{
    if (hfn_stack_is_any(value) && hfn_stack_is_related(place)) {
        return HFN_STACK_OK;
    }
    if (!hfn_stack_is_related(place) && hfn_stack_is_address(value)) {
        p->s->frame_address |= HFN_FRAME_ADDRESS_STORED;
    }
    return hfn_x86_check_passed(p, value);
}

/* ---- Instructions that access a number of elements. */

static hfn_stack_outcome check_elements(const hfn_x86_step *p, int32_t value, int64_t bytes)
{
    int32_t bound = hfn_stack_get_bound(value);

    if (!hfn_stack_is_related(value)) {
        return HFN_STACK_OK;
    }
    if (hfn_stack_is_any(value)) {
        return HFN_STACK_LOST;
    }
    if (bytes < 0) {
        return HFN_STACK_TOUCHES_CALLER;
    }
    return bound == HFN_STACK_UNBOUNDED || bound + bytes <= p->return_at ? HFN_STACK_OK
                                                                         : HFN_STACK_TOUCHES_CALLER;
}

/* The number of accessed bytes; -1: unknown. */
static int64_t get_element_bytes(const hfn_x86_step *p)
{
    int32_t count = p->s->at[HFN_X86_COUNT];

    if (!p->e.data.counted) {
        return p->e.data.element_bytes;
    }
    return hfn_stack_is_exact(count) && count >= 0 ? (int64_t)count * p->e.data.element_bytes : -1;
}

hfn_stack_outcome hfn_x86_step_repeated(hfn_x86_step *p)
{
    enum { RAX = 0, RSI = 6, RDI = 7 };
    hfn_stack_state *s = p->s;
    uint32_t bases = p->e.data.hidden_bases, element = p->e.data.element_bytes;
    int64_t bytes = get_element_bytes(p);
    bool stores = bases >> RDI & 1, whole = element == (uint32_t)p->word;
    int32_t value = bases >> RSI & 1      ? HFN_STACK_UNRELATED
                    : p->e.data.reads & 1 ? s->at[RAX]
                                          : HFN_STACK_UNRELATED;
    hfn_stack_outcome outcome = HFN_STACK_OK;

    if (bases >> RSI & 1) {
        outcome = check_elements(p, s->at[RSI], bytes);
        value = bytes < 0 ? HFN_STACK_UNRELATED
                          : hfn_stack_load(s, s->at[RSI], (uint32_t)bytes, (uint32_t)p->word);
        value = whole || !hfn_stack_is_related(value) ? value : HFN_STACK_ANY;
    }
    if (outcome == HFN_STACK_OK && stores) {
        outcome = check_elements(p, s->at[RDI], bytes);
    }
    if (outcome == HFN_STACK_OK && stores) {
        outcome = hfn_x86_check_stored(p, s->at[RDI], value);
    }
    if (outcome != HFN_STACK_OK) {
        return outcome;
    }
    for (uint32_t reg = RSI; reg <= RDI && p->e.data.counted; reg++) {
        if ((bases >> reg & 1) && bytes >= p->word && hfn_stack_is_exact(s->at[reg])) {
            hfn_stack_note_object(s, s->at[reg], false);
        }
    }
    if (stores && hfn_stack_is_related(s->at[RDI])) {
        hfn_stack_store(s, s->at[RDI], (uint32_t)bytes, HFN_STACK_UNRELATED, (uint32_t)p->word);
        s->elsewhere = hfn_stack_join(s->elsewhere, hfn_stack_weaken(value));
    }
    for (uint32_t reg = RSI; reg <= RDI; reg++) {
        s->at[reg] = bases >> reg & 1 ? hfn_stack_add(s->at[reg], bytes) : s->at[reg];
    }
    if (p->e.data.counted) {
        s->at[1] = s->at[HFN_X86_COUNT] = HFN_STACK_UNRELATED;
    }
    if (p->e.writes & 1) {
        s->at[RAX] = whole ? value : hfn_stack_is_related(value) ? HFN_STACK_ANY : value;
    }
    return HFN_STACK_OK;
}
