/* SPDX-License-Identifier: MIT */
/*
 * From a moved prologue to DWARF call frame instructions.  cfa_delta says how far each instruction
 * has grown the stack; the few instructions that prologues begin with are known by their bytes, so
 * that a callee-saved register is described as saved once something may have changed it, and CFA goes
 * over to rbp with `mov rbp, rsp`.  Encodings: DWARF 5, 6.4.2 and 7.24; register numbers: x86-64
 * psABI, figure 3.36.
 */
#include "hooks/cfi_steps.h"

#include "hooks/plan.h"

enum {
    ADVANCE = 0x40,
    OFFSET = 0x80,
    ADVANCE_1 = 0x02,
    DEF_CFA_REGISTER = 0x0d,
    DEF_CFA_OFFSET = 0x0e,
    DWARF_RBX = 3,
    DWARF_RBP = 6,
    WORD = 8,
    JUMP_BACK_BYTES = 5,
    NOT_SAVED = 0xff,
};

typedef struct writer {
    uint8_t *out;
    uint32_t used, room;
    uint32_t at; /* where in the moved code the last row begins */
} writer;

static void put(writer *w, uint8_t byte)
{
    if (w->used < w->room)
        w->out[w->used] = byte;
    w->used++;
}

static void put_uleb(writer *w, uint32_t value)
{
    for (; value >= 0x80; value >>= 7)
        put(w, (uint8_t)(value | 0x80));
    put(w, (uint8_t)value);
}

static void advance_to(writer *w, uint32_t at)
{
    uint32_t delta = at - w->at;

    if (delta == 0)
        return;
    if (delta < 0x40) {
        put(w, (uint8_t)(ADVANCE | delta));
    } else {
        put(w, ADVANCE_1);
        put(w, (uint8_t)delta);
    }
    w->at = at;
}

typedef enum known_kind { OTHER = 0, PUSH, SUBTRACT, SET_FRAME_POINTER } known_kind;

/* An instruction that prologues begin with, known by its first bytes, which mean nothing else. */
typedef struct known {
    known_kind kind;
    uint32_t length; /* 0 for OTHER                                       */
    uint8_t saves;   /* PUSH of a callee-saved register: its DWARF number */
} known;

static known push_of(uint32_t length, uint32_t number)
{
    static const uint8_t dwarf[16] = { NOT_SAVED, NOT_SAVED, NOT_SAVED, DWARF_RBX,
                                       NOT_SAVED, DWARF_RBP, NOT_SAVED, NOT_SAVED,
                                       NOT_SAVED, NOT_SAVED, NOT_SAVED, NOT_SAVED,
                                       12,        13,        14,        15 };

    return (known){ PUSH, length, dwarf[number] };
}

static known recognise(const uint8_t *code, uint32_t room)
{
    if (room >= 1 && (code[0] & 0xf8) == 0x50) /* push r */
        return push_of(1, code[0] & 7u);
    if (room >= 2 && code[0] == 0x41 && (code[1] & 0xf8) == 0x50) /* push r8..r15 */
        return push_of(2, 8 + (code[1] & 7u));
    if (room >= 4 && code[0] == 0x48 && code[1] == 0x83 && code[2] == 0xec) /* sub rsp, imm8 */
        return (known){ SUBTRACT, 4, NOT_SAVED };
    if (room >= 7 && code[0] == 0x48 && code[1] == 0x81 && code[2] == 0xec) /* sub rsp, imm32 */
        return (known){ SUBTRACT, 7, NOT_SAVED };
    if (room >= 3 && code[0] == 0x48 && /* mov rbp, rsp */
        ((code[1] == 0x89 && code[2] == 0xe5) || (code[1] == 0x8b && code[2] == 0xec)))
        return (known){ SET_FRAME_POINTER, 3, NOT_SAVED };
    return (known){ OTHER, 0, NOT_SAVED };
}

/* A register that was pushed and is not yet described as saved. */
typedef struct saved {
    uint8_t number;
    uint32_t words_below_cfa;
} saved;

typedef struct state {
    saved waiting[PLAN_STEPS_MAX];
    uint32_t waiting_count;
    int32_t cfa_offset;    /* CFA minus the stack pointer     */
    bool by_frame_pointer; /* CFA is rbp plus its offset now  */
} state;

/* From here on their registers may hold something else. */
static void describe_saved(writer *w, state *s)
{
    for (uint32_t i = 0; i < s->waiting_count; i++) {
        put(w, (uint8_t)(OFFSET | s->waiting[i].number));
        put_uleb(w, s->waiting[i].words_below_cfa);
    }
    s->waiting_count = 0;
}

/* What is known after an instruction that ends at `end`. */
static void after(writer *w, state *s, const known *one, int32_t cfa_offset, uint32_t end)
{
    bool moves = cfa_offset != s->cfa_offset;

    s->cfa_offset = cfa_offset;
    if (one->saves != NOT_SAVED)
        s->waiting[s->waiting_count++] = (saved){ one->saves, (uint32_t)s->cfa_offset / WORD };
    if (s->by_frame_pointer || (!moves && one->kind != SET_FRAME_POINTER))
        return;
    advance_to(w, end);
    put(w, one->kind == SET_FRAME_POINTER ? DEF_CFA_REGISTER : DEF_CFA_OFFSET);
    put_uleb(w, one->kind == SET_FRAME_POINTER ? DWARF_RBP : (uint32_t)s->cfa_offset);
    s->by_frame_pointer = one->kind == SET_FRAME_POINTER;
}

/* Behind instruction i. */
static uint32_t end_of(const hfn_moved *moved, uint32_t i, const known *one)
{
    if (i + 1u < moved->instruction_count)
        return moved->moved_at[i + 1];
    return one->length > 0 ? moved->moved_at[i] + one->length
                           : moved->length - (uint32_t)JUMP_BACK_BYTES;
}

uint32_t hfn_cfi_steps(const hfn_moved *moved, uint8_t *out, uint32_t out_bytes)
{
    writer w = { out, 0, out_bytes, 0 };
    state s = { { { 0, 0 } }, 0, WORD, false };
    uint32_t count = moved->instruction_count < PLAN_STEPS_MAX ? moved->instruction_count : 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t begin = moved->moved_at[i];
        known one = recognise(moved->bytes + begin, moved->length - begin);
        int32_t next = i + 1 < count ? moved->cfa_delta[i + 1] : moved->cfa_delta_end;

        if ((one.kind == OTHER || one.kind == SET_FRAME_POINTER) && s.waiting_count > 0) {
            advance_to(&w, begin);
            describe_saved(&w, &s);
        }
        if (next == HFN_CFA_UNKNOWN && s.by_frame_pointer)
            continue;
        if (next == HFN_CFA_UNKNOWN || next < -WORD)
            break; /* nobody can tell */
        after(&w, &s, &one, WORD + next, end_of(moved, i, &one));
    }
    return w.used <= w.room ? w.used : UINT32_MAX;
}

bool hfn_cfi_steps_check(const uint8_t *cfi, uint32_t byte_count, uint32_t *advanced)
{
    uint32_t at = 0, sum = 0;

    while (at < byte_count) {
        uint8_t op = cfi[at++];
        if ((op & 0xc0) == ADVANCE) {
            sum += op & 0x3f;
            continue;
        }
        if ((op & 0xc0) != OFFSET && op != ADVANCE_1 && op != DEF_CFA_REGISTER &&
            op != DEF_CFA_OFFSET)
            return false;
        if (at == byte_count)
            return false;
        if (op == ADVANCE_1)
            sum += cfi[at++];
        else
            while (cfi[at++] & 0x80)
                if (at == byte_count)
                    return false;
    }
    *advanced = sum;
    return true;
}
