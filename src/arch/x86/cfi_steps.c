/* SPDX-License-Identifier: MIT */
/*
 * Derives DWARF call frame instructions from a moved prologue.  cfa_delta is the growth of the
 * stack by each instruction.  The few instructions that begin prologues are recognised by their
 * bytes: a callee-saved register is described as saved before its value may change, and `mov rbp,
 * rsp` makes rbp the base of the CFA.  Encodings: DWARF 5, 6.4.2 and 7.24; register numbers: x86-64
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

/* The differences between the two modes. */
typedef struct numbers {
    int32_t word;
    uint8_t frame_pointer; /* its DWARF number                                      */
    uint8_t saved[16];     /* DWARF numbers of callee-saved registers, by number */
} numbers;

static const numbers numbers_of[2] = {
    [HFN_X86_64] = { 8,
                     6,
                     { NOT_SAVED, NOT_SAVED, NOT_SAVED, 3, NOT_SAVED, 6, NOT_SAVED, NOT_SAVED,
                       NOT_SAVED, NOT_SAVED, NOT_SAVED, NOT_SAVED, 12, 13, 14, 15 } },
    [HFN_X86_32] = { 4, 5, { NOT_SAVED, NOT_SAVED, NOT_SAVED, 3, NOT_SAVED, 5, 6, 7 } },
};

typedef struct cfi_writer {
    uint8_t *out;
    uint32_t used, room;
    uint32_t at; /* offset in the moved code at which the last row begins */
} cfi_writer;

static void put_byte(cfi_writer *w, uint8_t byte)
{
    if (w->used < w->room) {
        w->out[w->used] = byte;
    }
    w->used++;
}

static void put_uleb(cfi_writer *w, uint32_t value)
{
    for (; value >= 0x80; value >>= 7) {
        put_byte(w, (uint8_t)(value | 0x80));
    }
    put_byte(w, (uint8_t)value);
}

static void advance_to(cfi_writer *w, uint32_t at)
{
    uint32_t delta = at - w->at;

    if (delta == 0) {
        return;
    }
    if (delta < 0x40) {
        put_byte(w, (uint8_t)(ADVANCE | delta));
    } else {
        put_byte(w, ADVANCE_1);
        put_byte(w, (uint8_t)delta);
    }
    w->at = at;
}

typedef enum prologue_kind { OTHER = 0, PUSH, POP, SUBTRACT, SET_FRAME_POINTER } prologue_kind;

/* An instruction of a prologue, recognised by its first bytes. */
typedef struct prologue_instruction {
    prologue_kind kind;
    uint32_t length; /* 0 for OTHER                                       */
    uint8_t saves;   /* PUSH or POP of a callee-saved register: its DWARF number */
} prologue_instruction;

/* push r (50 + r) and pop r (58 + r) */
static prologue_instruction push_or_pop(hfn_x86_mode mode, uint32_t length, uint8_t opcode,
                                        uint32_t number)
{
    return (prologue_instruction){ opcode & 8 ? POP : PUSH, length,
                                   numbers_of[mode].saved[number] };
}

static prologue_instruction recognise_instruction(hfn_x86_mode mode, const uint8_t *code,
                                                  uint32_t room)
{
    const uint32_t wide = mode == HFN_X86_64; /* REX.W goes before */

    if (room >= 1 && (code[0] & 0xf0) == 0x50) {
        return push_or_pop(mode, 1, code[0], code[0] & 7u);
    }
    if (wide && room >= 2 && code[0] == 0x41 && (code[1] & 0xf0) == 0x50) { /* r8..r15 */
        return push_or_pop(mode, 2, code[1], 8 + (code[1] & 7u));
    }
    if (wide && (room < 1 || code[0] != 0x48)) {
        return (prologue_instruction){ OTHER, 0, NOT_SAVED };
    }
    code += wide;
    room -= wide;
    if (room >= 3 && code[0] == 0x83 && code[1] == 0xec) { /* sub rsp, imm8 */
        return (prologue_instruction){ SUBTRACT, wide + 3, NOT_SAVED };
    }
    if (room >= 6 && code[0] == 0x81 && code[1] == 0xec) { /* sub rsp, imm32 */
        return (prologue_instruction){ SUBTRACT, wide + 6, NOT_SAVED };
    }
    if (room >= 2 && /* mov rbp, rsp */
        ((code[0] == 0x89 && code[1] == 0xe5) || (code[0] == 0x8b && code[1] == 0xec))) {
        return (prologue_instruction){ SET_FRAME_POINTER, wide + 2, NOT_SAVED };
    }
    return (prologue_instruction){ OTHER, 0, NOT_SAVED };
}

/* A pushed register that is not yet described as saved. */
typedef struct saved {
    uint8_t number;
    uint32_t words_below_cfa;
} saved;

typedef struct state {
    const numbers *numbers;
    saved waiting[STEPS_MAX];
    uint32_t waiting_count;
    uint32_t described[16]; /* by DWARF number: words below CFA where it is saved, 0: it is not */
    int32_t cfa_offset;     /* CFA minus the stack pointer    */
    bool by_frame_pointer;  /* the CFA is relative to rbp now */
} state;

/* Describe pushed registers as saved, before they may change. */
static void describe_saved(cfi_writer *w, state *s)
{
    for (uint32_t i = 0; i < s->waiting_count; i++) {
        put_byte(w, (uint8_t)(OFFSET | s->waiting[i].number));
        put_uleb(w, s->waiting[i].words_below_cfa);
        s->described[s->waiting[i].number] = s->waiting[i].words_below_cfa;
    }
    s->waiting_count = 0;
}

/* After a pop from its save slot, a register has its value back, and signal frames may overwrite
 * the slot. */
static void describe_popped(cfi_writer *w, state *s, const prologue_instruction *in, uint32_t end)
{
    uint32_t words = in->kind == POP && in->saves != NOT_SAVED ? s->described[in->saves] : 0;

    if (words == 0 || words * (uint32_t)s->numbers->word != (uint32_t)s->cfa_offset) {
        return;
    }
    advance_to(w, end);
    put_byte(w, (uint8_t)(RESTORE | in->saves));
    s->described[in->saves] = 0;
}

/* Describe the state after an instruction that ends at `end`. */
static void describe_change(cfi_writer *w, state *s, const prologue_instruction *in,
                            int32_t cfa_offset, uint32_t end)
{
    bool moves = cfa_offset != s->cfa_offset;

    describe_popped(w, s, in, end);
    s->cfa_offset = cfa_offset;
    if (in->kind == PUSH && in->saves != NOT_SAVED) {
        s->waiting[s->waiting_count++] =
            (saved){ in->saves, (uint32_t)(s->cfa_offset / s->numbers->word) };
    }
    if (s->by_frame_pointer || (!moves && in->kind != SET_FRAME_POINTER)) {
        return;
    }
    advance_to(w, end);
    put_byte(w, in->kind == SET_FRAME_POINTER ? DEF_CFA_REGISTER : DEF_CFA_OFFSET);
    put_uleb(w,
             in->kind == SET_FRAME_POINTER ? s->numbers->frame_pointer : (uint32_t)s->cfa_offset);
    s->by_frame_pointer = in->kind == SET_FRAME_POINTER;
}

/* The offset of the end of instruction i. */
static uint32_t get_end(const hfn_moved *moved, uint32_t i, const prologue_instruction *in)
{
    if (i + 1u < moved->instruction_count) {
        return moved->moved_at[i + 1];
    }
    return in->length > 0 ? moved->moved_at[i] + in->length
                          : moved->length - (uint32_t)JUMP_BACK_BYTES;
}

uint32_t hfn_x86_write_cfi(hfn_x86_mode mode, const hfn_moved *moved, uint8_t *out,
                           uint32_t out_bytes)
{
    cfi_writer w = { out, 0, out_bytes, 0 };
    const int32_t word = numbers_of[mode].word;
    state s = { .numbers = &numbers_of[mode], .cfa_offset = word };
    uint32_t count = moved->instruction_count < STEPS_MAX ? moved->instruction_count : 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t begin = moved->moved_at[i];
        prologue_instruction in =
            recognise_instruction(mode, moved->bytes + begin, moved->length - begin);
        int32_t next = i + 1 < count ? moved->cfa_delta[i + 1] : moved->cfa_delta_end;

        if (in.kind != PUSH && in.kind != SUBTRACT && s.waiting_count > 0) {
            advance_to(&w, begin);
            describe_saved(&w, &s);
        }
        if (next == HFN_CFA_UNKNOWN && s.by_frame_pointer) {
            continue;
        }
        if (next == HFN_CFA_UNKNOWN || next < -word) {
            break; /* unknown from here on */
        }
        describe_change(&w, &s, &in, word + next, get_end(moved, i, &in));
    }
    return w.used <= w.room ? w.used : UINT32_MAX;
}
