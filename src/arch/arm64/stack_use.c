/* SPDX-License-Identifier: MIT */
/*
 * Follows the stack through an instruction: how far below the CFA (sp at the entry) each register
 * points, as far as known; where the return address is, which arrives in x30; and whether the
 * instruction accesses bytes at or above the CFA or reads the return address.  Only loads and
 * stores at known places may access bytes above the CFA; they are arguments, whose size is noted.
 * The return address may be saved in the function's frame, signed, authenticated, loaded back and
 * returned to, nothing else.
 *
 * Control flow is handled first, then each class of encodings (Arm ARM, C4.1): immediates,
 * registers, vectors, system; stack_access.c handles loads and stores.  Each class checks the
 * values that the instruction uses and sets its target register, mostly to unknown.
 */
#include "arch/arm64/stack_use.h"

#include "arch/arm64/stack_step.h"

#define CALL_CHANGES 0x4007FFFFu /* x0 to x18 and x30: AAPCS64, 6.1.1 */

void hfn_arm64_begin_stack(hfn_stack_state *state)
{
    *state = (hfn_stack_state){ .elsewhere = HFN_STACK_UNRELATED };
    for (int i = 0; i < HFN_STACK_REGISTERS; i++) {
        state->at[i] = HFN_STACK_UNRELATED;
    }
    state->at[HFN_ARM64_SP] = 0;
    state->at[HFN_ARM64_LINK] = HFN_STACK_RETURN_ADDRESS;
    state->at[HFN_ARM64_FRAME] = HFN_STACK_CALLER_FRAME;
}

/* ---- Arithmetic. */

/* May the instruction compute with this source register, where 31 means zero? */
static hfn_stack_outcome check_operand(const hfn_arm64_step *p, uint32_t reg)
{
    return hfn_arm64_check_value(hfn_arm64_get_operand(p, reg));
}

static hfn_stack_outcome move_stack(hfn_arm64_step *p, int32_t to)
{
    if (!hfn_stack_is_address(to) || hfn_stack_get_bound(to) > 0) {
        return HFN_STACK_LOST;
    }
    p->s->at[HFN_ARM64_SP] = to;
    return HFN_STACK_OK;
}

hfn_stack_outcome hfn_arm64_set_address(hfn_arm64_step *p, uint32_t rd, int32_t value)
{
    if (rd == HFN_ARM64_SP) {
        return move_stack(p, value);
    }
    if (hfn_stack_is_exact(value) && value >= 0) {
        return HFN_STACK_TOUCHES_CALLER;
    }
    p->s->at[rd] = value;
    return HFN_STACK_OK;
}

static hfn_stack_outcome add_immediate(hfn_arm64_step *p)
{
    uint32_t word = p->word, rn = hfn_arm64_get_rn(word), rd = hfn_arm64_get_rd(word);
    int64_t constant = (int64_t)hfn_arm64_get_bits(word, 21, 10) << (word >> 22 & 1 ? 12 : 0);
    bool sets_flags = word >> 29 & 1, is_64 = word >> 31, subtracts = word >> 30 & 1;
    int32_t value = p->s->at[rn];
    hfn_stack_outcome outcome = hfn_arm64_check_value(value);

    if (outcome != HFN_STACK_OK) {
        return outcome;
    }
    if (sets_flags && rd == HFN_ARM64_SP) {
        return HFN_STACK_OK;
    }
    value = is_64 ? hfn_stack_add(value, subtracts ? -constant : constant)
                  : hfn_arm64_compute(hfn_stack_is_related(value));
    return hfn_arm64_set_address(p, rd, value);
}

/* Clearing bits leaves an address at or below itself. */
static hfn_stack_outcome logical_immediate(hfn_arm64_step *p)
{
    uint32_t rd = hfn_arm64_get_rd(p->word);
    int32_t value = hfn_arm64_get_operand(p, hfn_arm64_get_rn(p->word));
    bool sets_flags = (p->word >> 29 & 3) == 3, is_64 = p->word >> 31;
    bool clears = sets_flags || (p->word >> 29 & 3) == 0;
    hfn_stack_outcome outcome = hfn_arm64_check_value(value);

    if (outcome != HFN_STACK_OK || (sets_flags && rd == 31)) {
        return outcome;
    }
    return hfn_arm64_set_address(p, rd,
                                 is_64 && clears ? hfn_stack_clear_bits(value)
                                                 : hfn_arm64_compute(hfn_stack_is_related(value)));
}

/* mov x8, #220 or #435: clone and clone3 (Linux, asm-generic/unistd.h).  The child of vfork
 * changes the stack of its parent. */
static bool is_clone_number(uint32_t word)
{
    uint32_t number = hfn_arm64_get_bits(word, 20, 5);

    return (word & 0x7FE0001F) == 0x52800008 && (number == 220 || number == 435);
}

static hfn_stack_outcome step_immediate(hfn_arm64_step *p)
{
    enum { ADD_SUB = 0x22, ADD_SUB_TAGS, LOGICAL, MOVE_WIDE, BIT_FIELD, EXTRACT };
    uint32_t kind = hfn_arm64_get_bits(p->word, 28, 23), rd = hfn_arm64_get_rd(p->word);
    uint32_t opc = p->word >> 29 & 3;
    hfn_stack_outcome outcome = HFN_STACK_OK;
    bool related = hfn_arm64_is_related(p, hfn_arm64_get_rn(p->word));

    if ((p->word & 0x1F000000) == 0x10000000) { /* adr, adrp */
        hfn_arm64_set_register(p, rd, HFN_STACK_UNRELATED);
        return HFN_STACK_OK;
    }
    if (kind == ADD_SUB) {
        return add_immediate(p);
    }
    if (kind == LOGICAL) {
        return logical_immediate(p);
    }
    if (kind == ADD_SUB_TAGS) {
        if (hfn_arm64_get_rd(p->word) == HFN_ARM64_SP) {
            return HFN_STACK_LOST;
        }
        outcome = hfn_arm64_check_value(p->s->at[hfn_arm64_get_rn(p->word)]);
        related = hfn_stack_is_related(p->s->at[hfn_arm64_get_rn(p->word)]);
    } else if (kind == MOVE_WIDE) {
        related = opc == 3 && hfn_arm64_is_related(p, rd); /* movk */
        if (is_clone_number(p->word)) {
            return HFN_STACK_LOST;
        }
    } else { /* BIT_FIELD, EXTRACT */
        outcome = check_operand(p, hfn_arm64_get_rn(p->word));
        if (outcome == HFN_STACK_OK && kind == EXTRACT) {
            outcome = check_operand(p, hfn_arm64_get_rm(p->word));
            related = related || hfn_arm64_is_related(p, hfn_arm64_get_rm(p->word));
        }
        related = related || (opc == 1 && hfn_arm64_is_related(p, rd)); /* bfm */
    }
    hfn_arm64_set_register(p, rd, hfn_arm64_compute(related));
    return outcome;
}

/* An address plus a number.  A pointer that was in memory is indexed within its object; the sum of
 * an address of the frame and a number may point anywhere. */
static int32_t sum_values(hfn_arm64_step *p, int32_t n, int32_t m)
{
    int32_t pointer = hfn_stack_is_related(n) ? n : m;

    if (hfn_stack_is_related(n) && hfn_stack_is_related(m)) {
        return HFN_STACK_COMPUTED;
    }
    return hfn_stack_is_maybe(pointer) ? hfn_stack_index(p->s, n, m) : hfn_stack_any_of(n, m);
}

/* add and sub of registers; register 31 is sp in extended forms and zero in shifted ones.  An
 * address in the frame plus an unknown number may point anywhere: compilers fold constants, so
 * the base of an array of the caller's may be in the frame.  A subtraction of an unknown number
 * from sp allocates that many bytes. */
static hfn_stack_outcome add_register(hfn_arm64_step *p)
{
    uint32_t word = p->word, rd = hfn_arm64_get_rd(word);
    bool is_extended = word >> 21 & 1, sets_flags = word >> 29 & 1, subtracts = word >> 30 & 1;
    int32_t n = is_extended ? p->s->at[hfn_arm64_get_rn(word)]
                            : hfn_arm64_get_operand(p, hfn_arm64_get_rn(word));
    int32_t m = hfn_arm64_get_operand(p, hfn_arm64_get_rm(word));
    bool related = hfn_stack_is_related(n) || hfn_stack_is_related(m);
    bool allocates = rd == HFN_ARM64_SP && is_extended && word >> 31 && subtracts &&
                     !hfn_stack_is_related(m) && !sets_flags;
    hfn_stack_outcome outcome = hfn_arm64_check_value(n);

    if (outcome == HFN_STACK_OK) {
        outcome = hfn_arm64_check_value(m);
    }
    if (outcome != HFN_STACK_OK) {
        return outcome;
    }
    if (rd == 31 && sets_flags && subtracts && word >> 31 &&
        hfn_stack_is_address(n) != hfn_stack_is_address(m)) {
        p->s->frame_address |= HFN_FRAME_ADDRESS_COMPARED;
    }
    if (rd == 31 && (sets_flags || !is_extended)) {
        return HFN_STACK_OK;
    }
    if (allocates) {
        return hfn_arm64_set_address(p, rd, hfn_stack_clear_bits(n));
    }
    if (subtracts && word >> 31 && !is_extended && hfn_arm64_get_bits(word, 15, 10) == 0) {
        return hfn_arm64_set_address(p, rd, hfn_stack_subtract(n, m));
    }
    if (!subtracts && related && word >> 31) {
        return hfn_arm64_set_address(p, rd, sum_values(p, n, m));
    }
    return hfn_arm64_set_address(p, rd, hfn_arm64_compute(related));
}

static hfn_stack_outcome move_register(hfn_arm64_step *p)
{
    int32_t value = hfn_arm64_get_operand(p, hfn_arm64_get_rm(p->word));
    hfn_stack_outcome outcome = hfn_arm64_check_value(value);

    if (outcome == HFN_STACK_OK) {
        hfn_arm64_set_register(p, hfn_arm64_get_rd(p->word), value);
    }
    return outcome;
}

static bool is_signature(uint32_t word) /* pac*, aut*, xpac* */
{
    return (word & 0xFFFF0000) == 0xDAC10000;
}

static bool is_move(uint32_t word) /* orr xd, xzr, xm */
{
    return (word & 0xFFE0FFE0) == 0xAA0003E0;
}

static bool is_add_sub(uint32_t word)
{
    return (word & 0x1F000000) == 0x0B000000;
}

static bool has_third_source(uint32_t word) /* madd and its like */
{
    return (word & 0x1F000000) == 0x1B000000;
}

static bool is_tag_insert(uint32_t word) /* irg */
{
    return (word & 0xFFE0FC00) == 0x9AC01000;
}

static bool is_select(uint32_t word) /* csel of 64 bits */
{
    return (word & 0xFFE00C00) == 0x9A800000;
}

static hfn_stack_outcome step_register(hfn_arm64_step *p)
{
    uint32_t word = p->word;
    int32_t n = hfn_arm64_get_operand(p, hfn_arm64_get_rn(word)),
            m = hfn_arm64_get_operand(p, hfn_arm64_get_rm(word)), result;
    bool related = hfn_stack_is_related(n) || hfn_stack_is_related(m);
    hfn_stack_outcome outcome;

    if (is_signature(word)) { /* x30 stays what it is */
        if (hfn_arm64_get_rd(word) != HFN_ARM64_LINK) {
            hfn_arm64_set_register(
                p, hfn_arm64_get_rd(word),
                hfn_arm64_compute(related || hfn_arm64_is_related(p, hfn_arm64_get_rd(word))));
        }
        return HFN_STACK_OK;
    }
    if (is_move(word)) {
        return move_register(p);
    }
    if (is_add_sub(word)) {
        return add_register(p);
    }
    outcome = check_operand(p, hfn_arm64_get_rn(word));
    if (outcome == HFN_STACK_OK) {
        outcome = check_operand(p, hfn_arm64_get_rm(word));
    }
    if (outcome == HFN_STACK_OK && has_third_source(word)) {
        outcome = check_operand(p, hfn_arm64_get_bits(word, 14, 10));
        related = related || hfn_arm64_is_related(p, hfn_arm64_get_bits(word, 14, 10));
    }
    if (is_tag_insert(word) && hfn_arm64_get_rd(word) == HFN_ARM64_SP) {
        return HFN_STACK_LOST;
    }
    result = is_select(word) ? hfn_stack_join(n, m) : hfn_arm64_compute(related);
    if (outcome == HFN_STACK_OK &&
        (hfn_arm64_get_written_registers(word) >> hfn_arm64_get_rd(word) & 1)) {
        hfn_arm64_set_register(p, hfn_arm64_get_rd(word), result);
    }
    return outcome;
}

/* Does the floating point or SIMD instruction write a general register?  Arm ARM, C4.1.96:
 * conversions by opcode [18:16], umov and smov by imm4 [14:11]. */
static bool writes_general_register(uint32_t word)
{
    uint32_t opcode = hfn_arm64_get_bits(word, 18, 16);

    if ((word & 0x9FE08400) == 0x0E000400) {
        uint32_t copy = hfn_arm64_get_bits(word, 14, 11);
        return copy == 5 || copy == 7;
    }
    return opcode != 2 && opcode != 3 && opcode != 7;
}

/* fmov between a general and a vector register of 64 bits. */
static bool is_vector_move(uint32_t word)
{
    return (word & 0xFFFEFC00) == 0x9E660000;
}

static bool sets_constant(uint32_t word) /* movi */
{
    return (word & 0x9FF80400) == 0x0F000400;
}

/* Floating point and SIMD.  Only fmov copies; all others compute. */
static hfn_stack_outcome step_vector(hfn_arm64_step *p)
{
    uint32_t word = p->word, rd = hfn_arm64_get_rd(word), rn = hfn_arm64_get_rn(word);
    const uint32_t read[] = { rd, rn, hfn_arm64_get_rm(word), hfn_arm64_get_bits(word, 14, 10) };
    int32_t *vectors = p->s->at + HFN_ARM64_VECTOR;
    bool general = hfn_arm64_uses_general_register(word), related = false;
    hfn_stack_outcome outcome = HFN_STACK_OK;
    int32_t result;

    for (uint32_t i = 0; i < 4; i++) {
        related = related || (hfn_stack_is_related(vectors[read[i]]) && !is_vector_move(word));
    }
    if (sets_constant(word)) {
        related = hfn_stack_is_related(vectors[rd]);
    }
    if (general && !writes_general_register(word)) {
        outcome = check_operand(p, rn);
        related = related || hfn_arm64_is_related(p, rn);
        result = is_vector_move(word) ? hfn_stack_weaken(hfn_arm64_get_operand(p, rn))
                                      : hfn_arm64_compute(related);
    } else {
        result = is_vector_move(word) ? vectors[rn] : hfn_arm64_compute(related);
    }
    if (general && writes_general_register(word)) {
        hfn_arm64_set_register(p, rd, result);
    } else {
        vectors[rd] = result;
    }
    return outcome;
}

/* ---- Control. */

/* No object of the function begins at its CFA or above it, nor at the frame record: such an address
 * is a link to the whole frame, as Pascal passes it to nested procedures. */
hfn_stack_outcome hfn_arm64_check_passed(const hfn_stack_state *state, int32_t value)
{
    int32_t bound = hfn_stack_get_bound(value);

    if (!hfn_stack_is_related(value)) {
        return HFN_STACK_OK;
    }
    if (hfn_stack_is_any(value)) {
        return HFN_STACK_LOST;
    }
    return bound != HFN_STACK_UNBOUNDED &&
                   (bound >= 0 || hfn_stack_holds_caller_frame(state, bound))
               ? HFN_STACK_TOUCHES_CALLER
               : HFN_STACK_OK;
}

/* COMPUTED is forbidden in each register, because code written by hand may read what it must
 * preserve; so are addresses of arguments. */
hfn_stack_outcome hfn_arm64_leave_stack(const hfn_stack_state *state)
{
    hfn_stack_outcome outcome = HFN_STACK_OK;

    for (uint32_t i = 0; i < 31 && outcome == HFN_STACK_OK; i++) {
        int32_t value = state->at[i];
        bool is_kept = !(CALL_CHANGES >> i & 1);
        if (value == HFN_STACK_COMPUTED ||
            (!hfn_stack_is_any(value) && (!is_kept || hfn_stack_get_bound(value) >= 0))) {
            outcome = hfn_arm64_check_passed(state, value);
        }
    }
    return outcome;
}

/* A register that the callee may change can also keep its value: gcc's -fipa-ra relies on that for
 * callees that it knows. */
static hfn_stack_outcome step_call(hfn_arm64_step *p)
{
    hfn_stack_outcome outcome = hfn_arm64_leave_stack(p->s);

    for (uint32_t i = 0; i < 31; i++) {
        if (i < 8 && hfn_stack_has_bound(p->s->at[i])) {
            hfn_stack_note_object(p->s, hfn_stack_get_bound(p->s->at[i]), false);
        }
    }
    for (uint32_t i = 0; i < 31; i++) {
        if (CALL_CHANGES >> i & 1) {
            p->s->at[i] =
                i <= 1 || i == HFN_ARM64_LINK ? HFN_STACK_UNRELATED : hfn_stack_weaken(p->s->at[i]);
        }
    }
    return outcome;
}

/* br, blr, ret and their signed forms. */
static hfn_stack_outcome step_branch(hfn_arm64_step *p)
{
    enum { BR, BLR, RET };
    uint32_t opc = hfn_arm64_get_bits(p->word, 24, 21) & 7, rn = hfn_arm64_get_rn(p->word);
    bool checks = hfn_arm64_get_bits(p->word, 15, 10) != 0; /* retaa: x30 */

    if (opc == BR) {
        return rn == HFN_ARM64_LINK ? HFN_STACK_LOST : HFN_STACK_OK;
    }
    if (opc == BLR) {
        return step_call(p);
    }
    if (opc != RET || (!checks && rn != HFN_ARM64_LINK) ||
        p->s->at[HFN_ARM64_LINK] != HFN_STACK_RETURN_ADDRESS || p->s->at[HFN_ARM64_SP] != 0) {
        return HFN_STACK_LOST;
    }
    return HFN_STACK_OK;
}

static hfn_stack_outcome step_system(hfn_arm64_step *p)
{
    uint32_t rt = p->word & 31;

    if (p->word >> 24 != 0xD5) {
        return HFN_STACK_OK; /* svc, brk */
    }
    if (p->word >> 21 & 1) {
        hfn_arm64_set_register(p, rt, HFN_STACK_UNRELATED); /* mrs */
        return HFN_STACK_OK;
    }
    return check_operand(p, rt);
}

hfn_stack_outcome hfn_arm64_step_stack(const uint8_t *bytes, uint64_t size, uint64_t rva,
                                       hfn_stack_state *state)
{
    hfn_arm64_step p = { .s = state };

    (void)rva;
    if (size < HFN_ARM64_BYTES || !hfn_stack_is_address(state->at[HFN_ARM64_SP])) {
        return HFN_STACK_LOST;
    }
    p.word = hfn_read_le32(bytes);
    switch (hfn_arm64_get_form(p.word)) {
    case HFN_ARM64_B:
    case HFN_ARM64_B_COND: return HFN_STACK_OK;
    case HFN_ARM64_BL: return step_call(&p);
    case HFN_ARM64_CBZ:
    case HFN_ARM64_TBZ: return check_operand(&p, p.word & 31);
    case HFN_ARM64_BRANCH: return step_branch(&p);
    case HFN_ARM64_BOUND:
    case HFN_ARM64_NONE: return HFN_STACK_LOST;
    default: break;
    }
    switch (hfn_arm64_get_bits(p.word, 28, 25)) { /* C4.1, op0 */
    case 0x8:
    case 0x9: return step_immediate(&p);
    case 0x5:
    case 0xD: return step_register(&p);
    case 0x4:
    case 0x6:
    case 0xC:
    case 0xE: return hfn_arm64_step_memory(&p);
    case 0x7:
    case 0xF: return step_vector(&p);
    case 0xA:
    case 0xB: return step_system(&p);
    default: return HFN_STACK_OK; /* udf */
    }
}

bool hfn_arm64_saves_link(const uint8_t *bytes, uint64_t size)
{
    (void)size;
    uint32_t word = hfn_read_le32(bytes);

    return (word & 0xFE000000) == 0xA8000000 &&
           (hfn_arm64_get_rd(word) == HFN_ARM64_LINK ||
            hfn_arm64_get_bits(word, 14, 10) == HFN_ARM64_LINK);
}
