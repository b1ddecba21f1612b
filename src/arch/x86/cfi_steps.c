/* SPDX-License-Identifier: MIT */
/*
 * From a moved prologue to DWARF call frame instructions.  cfa_delta says how far each instruction
 * has grown the stack; the few instructions that prologues begin with are known by their bytes, so
 * that a callee-saved register is described as saved once something may have changed it, and CFA goes
 * over to rbp with `mov rbp, rsp`.  Encodings: DWARF 5, 6.4.2 and 7.24; register numbers: x86-64
 * psABI, figure 3.36, and i386 psABI, table 2.14.
 */
#include "arch/x86/cfi_steps.h"

enum {
    ADVANCE = 0x40,
    OFFSET = 0x80,
    RESTORE = 0xc0,
    ADVANCE_1 = 0x02,
    DEF_CFA_REGISTER = 0x0d,
    DEF_CFA_OFFSET = 0x0e,
    STEPS_MAX = sizeof((hfn_moved){ 0 }.original_at),
    JUMP_BACK_BYTES = 5,
    NOT_SAVED = 0xff,
};

/* What the two modes differ in. */
typedef struct numbers {
    int32_t word;
    uint8_t frame_pointer; /* its DWARF number                                      */
    uint8_t saved[16];     /* of the registers that a function keeps, by their number */
} numbers;

static const numbers numbers_of[2] = {
    [HFN_X86_64] = { 8,
                     6,
                     { NOT_SAVED, NOT_SAVED, NOT_SAVED, 3, NOT_SAVED, 6, NOT_SAVED, NOT_SAVED,
                       NOT_SAVED, NOT_SAVED, NOT_SAVED, NOT_SAVED, 12, 13, 14, 15 } },
    [HFN_X86_32] = { 4, 5, { NOT_SAVED, NOT_SAVED, NOT_SAVED, 3, NOT_SAVED, 5, 6, 7 } },
};

typedef struct writer {
    uint8_t *out;
    uint32_t used, room;
    uint32_t at; /* where in the moved code the last row begins */
} writer;

static void put(writer *w, uint8_t byte)
{
    if (w->used < w->room) {
        w->out[w->used] = byte;
    }
    w->used++;
}

static void put_uleb(writer *w, uint32_t value)
{
    for (; value >= 0x80; value >>= 7) {
        put(w, (uint8_t)(value | 0x80));
    }
    put(w, (uint8_t)value);
}

static void advance_to(writer *w, uint32_t at)
{
    uint32_t delta = at - w->at;

    if (delta == 0) {
        return;
    }
    if (delta < 0x40) {
        put(w, (uint8_t)(ADVANCE | delta));
    } else {
        put(w, ADVANCE_1);
        put(w, (uint8_t)delta);
    }
    w->at = at;
}

typedef enum known_kind { OTHER = 0, PUSH, POP, SUBTRACT, SET_FRAME_POINTER } known_kind;

/* An instruction that prologues begin with, known by its first bytes, which mean nothing else. */
typedef struct known {
    known_kind kind;
    uint32_t length; /* 0 for OTHER                                       */
    uint8_t saves;   /* PUSH or POP of a callee-saved register: its DWARF number */
} known;

/* push r (50 + r) and pop r (58 + r) */
static known push_or_pop(hfn_x86_mode mode, uint32_t length, uint8_t opcode, uint32_t number)
{
    return (known){ opcode & 8 ? POP : PUSH, length, numbers_of[mode].saved[number] };
}

static known recognise(hfn_x86_mode mode, const uint8_t *code, uint32_t room)
{
    const uint32_t wide = mode == HFN_X86_64; /* REX.W goes before */

    if (room >= 1 && (code[0] & 0xf0) == 0x50) {
        return push_or_pop(mode, 1, code[0], code[0] & 7u);
    }
    if (wide && room >= 2 && code[0] == 0x41 && (code[1] & 0xf0) == 0x50) { /* r8..r15 */
        return push_or_pop(mode, 2, code[1], 8 + (code[1] & 7u));
    }
    if (wide && (room < 1 || code[0] != 0x48)) {
        return (known){ OTHER, 0, NOT_SAVED };
    }
    code += wide;
    room -= wide;
    if (room >= 3 && code[0] == 0x83 && code[1] == 0xec) { /* sub rsp, imm8 */
        return (known){ SUBTRACT, wide + 3, NOT_SAVED };
    }
    if (room >= 6 && code[0] == 0x81 && code[1] == 0xec) { /* sub rsp, imm32 */
        return (known){ SUBTRACT, wide + 6, NOT_SAVED };
    }
    if (room >= 2 && /* mov rbp, rsp */
        ((code[0] == 0x89 && code[1] == 0xe5) || (code[0] == 0x8b && code[1] == 0xec))) {
        return (known){ SET_FRAME_POINTER, wide + 2, NOT_SAVED };
    }
    return (known){ OTHER, 0, NOT_SAVED };
}

/* A register that was pushed and is not yet described as saved. */
typedef struct saved {
    uint8_t number;
    uint32_t words_below_cfa;
} saved;

typedef struct state {
    const numbers *numbers;
    saved waiting[STEPS_MAX];
    uint32_t waiting_count;
    uint32_t described[16]; /* by DWARF number: words below CFA where it is saved, 0: it is not */
    int32_t cfa_offset;     /* CFA minus the stack pointer     */
    bool by_frame_pointer;  /* CFA is rbp plus its offset now  */
} state;

/* From here on their registers may hold something else. */
static void describe_saved(writer *w, state *s)
{
    for (uint32_t i = 0; i < s->waiting_count; i++) {
        put(w, (uint8_t)(OFFSET | s->waiting[i].number));
        put_uleb(w, s->waiting[i].words_below_cfa);
        s->described[s->waiting[i].number] = s->waiting[i].words_below_cfa;
    }
    s->waiting_count = 0;
}

/* What a pop took from where the register was saved is in the register, and below the stack pointer no longer. */
static void describe_popped(writer *w, state *s, const known *one, uint32_t end)
{
    uint32_t words = one->kind == POP && one->saves != NOT_SAVED ? s->described[one->saves] : 0;

    if (words == 0 || words * (uint32_t)s->numbers->word != (uint32_t)s->cfa_offset) {
        return;
    }
    advance_to(w, end);
    put(w, (uint8_t)(RESTORE | one->saves));
    s->described[one->saves] = 0;
}

/* What is known after an instruction that ends at `end`. */
static void after(writer *w, state *s, const known *one, int32_t cfa_offset, uint32_t end)
{
    bool moves = cfa_offset != s->cfa_offset;

    describe_popped(w, s, one, end);
    s->cfa_offset = cfa_offset;
    if (one->kind == PUSH && one->saves != NOT_SAVED) {
        s->waiting[s->waiting_count++] =
            (saved){ one->saves, (uint32_t)(s->cfa_offset / s->numbers->word) };
    }
    if (s->by_frame_pointer || (!moves && one->kind != SET_FRAME_POINTER)) {
        return;
    }
    advance_to(w, end);
    put(w, one->kind == SET_FRAME_POINTER ? DEF_CFA_REGISTER : DEF_CFA_OFFSET);
    put_uleb(w,
             one->kind == SET_FRAME_POINTER ? s->numbers->frame_pointer : (uint32_t)s->cfa_offset);
    s->by_frame_pointer = one->kind == SET_FRAME_POINTER;
}

/* Behind instruction i. */
static uint32_t end_of(const hfn_moved *moved, uint32_t i, const known *one)
{
    if (i + 1u < moved->instruction_count) {
        return moved->moved_at[i + 1];
    }
    return one->length > 0 ? moved->moved_at[i] + one->length
                           : moved->length - (uint32_t)JUMP_BACK_BYTES;
}

uint32_t hfn_x86_write_cfi(hfn_x86_mode mode, const hfn_moved *moved, uint8_t *out,
                           uint32_t out_bytes)
{
    writer w = { out, 0, out_bytes, 0 };
    const int32_t word = numbers_of[mode].word;
    state s = { .numbers = &numbers_of[mode], .cfa_offset = word };
    uint32_t count = moved->instruction_count < STEPS_MAX ? moved->instruction_count : 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t begin = moved->moved_at[i];
        known one = recognise(mode, moved->bytes + begin, moved->length - begin);
        int32_t next = i + 1 < count ? moved->cfa_delta[i + 1] : moved->cfa_delta_end;

        if (one.kind != PUSH && one.kind != SUBTRACT && s.waiting_count > 0) {
            advance_to(&w, begin);
            describe_saved(&w, &s);
        }
        if (next == HFN_CFA_UNKNOWN && s.by_frame_pointer) {
            continue;
        }
        if (next == HFN_CFA_UNKNOWN || next < -word) {
            break; /* nobody can tell */
        }
        after(&w, &s, &one, word + next, end_of(moved, i, &one));
    }
    return w.used <= w.room ? w.used : UINT32_MAX;
}
