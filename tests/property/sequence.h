/* SPDX-License-Identifier: MIT */
/*
 * Makes random sequences of x86-64 instructions that are safe to run.  Registers other than rbx (a
 * data page) and rsp (a stack page) have any value, memory is accessed around rbx and relative to
 * rip only, and branches go forward, except `loop` with a small rcx.  Shares no code with the code
 * under test.
 */
#ifndef HFN_TESTS_SEQUENCE_H
#define HFN_TESTS_SEQUENCE_H

#include "random.h"

#include <stdbool.h>
#include <string.h>

#define SEQUENCE_MAX 12
#define DATA_BYTES 256 /* around rbx: [rbx-128, rbx+128) */

typedef struct sequence {
    uint8_t bytes[256];
    uint32_t size;
    uint32_t count;
    uint32_t starts[SEQUENCE_MAX + 1]; /* the last one is the end */
    bool keep_rcx;                     /* used as a loop counter */
    bool looped;                       /* has a loop           */
    /* Branches to fill in when all starts are known. */
    struct {
        uint32_t at, bytes, from;
        bool backward;
    } branches[SEQUENCE_MAX];
    uint32_t branch_count;
    uint64_t code, data; /* addresses of bytes[0] and of rbx */
} sequence;

static inline void print_bytes(const sequence *s)
{
    for (uint32_t i = 0; i < s->size; i++) {
        printf(" %02x", s->bytes[i]);
    }
    printf("\n");
}

static inline void seq_u8(sequence *s, uint32_t value)
{
    s->bytes[s->size++] = (uint8_t)value;
}

static inline void seq_u32(sequence *s, uint64_t value)
{
    for (int i = 0; i < 4; i++) {
        seq_u8(s, (uint32_t)(value >> (8 * i)) & 0xFF);
    }
}

/* Any register but rsp, rbx and a loop's rcx. */
static inline uint32_t seq_reg(const sequence *s, random_source *r)
{
    for (;;) {
        uint32_t reg = random_below(r, 16);
        if (reg != 4 && reg != 3 && !(reg == 1 && s->keep_rcx)) {
            return reg;
        }
    }
}

/* A register to read, including rbx. */
static inline uint32_t seq_any(random_source *r)
{
    uint32_t reg = random_below(r, 16);

    return reg == 4 ? 3 : reg;
}

static inline void seq_rex(sequence *s, bool wide, uint32_t reg, uint32_t rm)
{
    seq_u8(s, 0x40 | (wide ? 8 : 0) | (reg & 8) >> 1 | (rm & 8) >> 3);
}

static inline void seq_registers(sequence *s, uint32_t reg, uint32_t rm)
{
    seq_u8(s, 0xC0 | (reg & 7) << 3 | (rm & 7));
}

/* ModRM [rip+x] of an instruction that ends tail_bytes after the field. */
static inline void seq_rip(sequence *s, random_source *r, uint32_t reg, uint32_t tail_bytes)
{
    uint64_t target = s->data - DATA_BYTES / 2 + random_below(r, DATA_BYTES - 16);

    seq_u8(s, 5 | (reg & 7) << 3);
    seq_u32(s, target - (s->code + s->size + 4 + tail_bytes));
}

/* ModRM [rbx+disp8] */
static inline void seq_data(sequence *s, random_source *r, uint32_t reg)
{
    seq_u8(s, 0x43 | (reg & 7) << 3);
    seq_u8(s, random_below(r, 2) ? random_below(r, 112) : 256 - random_below(r, 128));
}

static inline void seq_alu_registers(sequence *s, random_source *r)
{
    static const uint8_t opcodes[] = { 0x01, 0x09, 0x11, 0x19, 0x21, 0x29,
                                       0x31, 0x39, 0x85, 0x89, 0x38, 0x84 };
    uint32_t reg = seq_any(r), rm = seq_reg(s, r);

    seq_rex(s, random_below(r, 2), reg, rm);
    seq_u8(s, opcodes[random_below(r, sizeof opcodes)]);
    seq_registers(s, reg, rm);
}

static inline void seq_alu_constant(sequence *s, random_source *r)
{
    uint32_t rm = seq_reg(s, r);
    bool is_short = random_below(r, 2);

    seq_rex(s, random_below(r, 2), 0, rm);
    seq_u8(s, is_short ? 0x83 : 0x81);
    seq_registers(s, random_below(r, 8), rm);
    if (is_short) {
        seq_u8(s, random_below(r, 256));
    } else {
        seq_u32(s, random_u64(r));
    }
}

static inline void seq_move_constant(sequence *s, random_source *r)
{
    uint32_t rm = seq_reg(s, r);
    bool wide = random_below(r, 4) == 0;

    seq_rex(s, wide, 0, rm);
    seq_u8(s, 0xB8 | (rm & 7));
    seq_u32(s, random_u64(r));
    if (wide) {
        seq_u32(s, random_u64(r));
    }
}

static inline void seq_lea(sequence *s, random_source *r)
{
    uint32_t reg = seq_reg(s, r), base = seq_any(r) & 7;

    seq_rex(s, true, reg, 0);
    seq_u8(s, 0x8D);
    if (random_below(r, 2)) {
        seq_u8(s, 0x44 | (reg & 7) << 3); /* [base + index*scale + disp8] */
        seq_u8(s, random_below(r, 4) << 6 | 0 << 3 | base);
        seq_u8(s, random_below(r, 256));
    } else {
        seq_rip(s, r, reg, 0);
    }
}

/* Loads, stores and arithmetic relative to rip, with and without an immediate after the field. */
static inline void seq_rip_memory(sequence *s, random_source *r)
{
    static const uint8_t opcodes[] = { 0x8B, 0x89, 0x03, 0x01, 0x3B, 0x39, 0x33, 0x31, 0x23 };
    uint32_t reg = seq_reg(s, r);

    switch (random_below(r, 5)) {
    case 0: /* cmp byte [rip+x], imm8 */
        seq_u8(s, 0x80), seq_rip(s, r, 7, 1), seq_u8(s, random_below(r, 256));
        break;
    case 1: /* mov dword [rip+x], imm32 */
        seq_u8(s, 0xC7), seq_rip(s, r, 0, 4), seq_u32(s, random_u64(r));
        break;
    case 2: /* movsd xmm0, [rip+x]; movsd [rip+x], xmm0 */
        seq_u8(s, 0xF2), seq_u8(s, 0x0F), seq_u8(s, 0x10 + random_below(r, 2)), seq_rip(s, r, 0, 0);
        break;
    case 3: /* imul reg, [rip+x], imm8 */
        seq_rex(s, true, reg, 0), seq_u8(s, 0x6B), seq_rip(s, r, reg, 1), seq_u8(s, 77);
        break;
    default:
        seq_rex(s, random_below(r, 2), reg, 0);
        seq_u8(s, opcodes[random_below(r, sizeof opcodes)]);
        seq_rip(s, r, reg, 0);
    }
}

static inline void seq_memory(sequence *s, random_source *r)
{
    static const uint8_t opcodes[] = { 0x8B, 0x89, 0x03, 0x01, 0x3B, 0x39, 0x88, 0x8A, 0x63 };
    uint32_t reg = seq_reg(s, r);

    seq_rex(s, random_below(r, 2), reg, 0);
    seq_u8(s, opcodes[random_below(r, sizeof opcodes)]);
    seq_data(s, r, reg);
}

static inline void seq_two_byte(sequence *s, random_source *r)
{
    static const uint8_t opcodes[] = { 0xB6, 0xB7, 0xBE, 0xBF, 0xAF, 0xA3, 0xBC, 0xBD };
    uint32_t reg = seq_reg(s, r), rm = seq_reg(s, r), kind = random_below(r, 4);

    seq_rex(s, random_below(r, 2), kind == 3 ? 0 : reg, rm);
    if (kind == 3) { /* bswap */
        seq_u8(s, 0x0F), seq_u8(s, 0xC8 | (rm & 7));
        return;
    }
    seq_u8(s, 0x0F);
    if (kind == 0) {
        seq_u8(s, 0x40 | random_below(r, 16)); /* cmovcc */
    } else if (kind == 1) {
        seq_u8(s, 0x90 | random_below(r, 16)); /* setcc */
    } else {
        seq_u8(s, opcodes[random_below(r, sizeof opcodes)]);
    }
    seq_registers(s, reg, rm);
}

static inline void seq_shift(sequence *s, random_source *r)
{
    static const uint8_t kinds[] = { 0, 1, 2, 3, 4, 5, 7 };
    uint32_t rm = seq_reg(s, r), kind = random_below(r, 3);

    seq_rex(s, random_below(r, 2), 0, rm);
    seq_u8(s, kind == 0 ? 0xC1 : kind == 1 ? 0xD3 : 0xD1);
    seq_registers(s, kinds[random_below(r, sizeof kinds)], rm);
    if (kind == 0) {
        seq_u8(s, random_below(r, 64));
    }
}

static inline void seq_unary(sequence *s, random_source *r)
{
    uint32_t rm = seq_reg(s, r), kind = random_below(r, 4);

    seq_rex(s, random_below(r, 2), 0, rm);
    seq_u8(s, kind < 2 ? 0xFF : 0xF7);
    seq_registers(s, kind, rm); /* inc, dec; not, neg */
}

static inline void seq_stack(sequence *s, random_source *r)
{
    switch (random_below(r, 6)) {
    case 0: seq_u8(s, 0x50 | (seq_any(r) & 7)); break;
    case 1: seq_u8(s, 0x41), seq_u8(s, 0x50 | random_below(r, 8)); break;
    case 2: seq_u8(s, 0x41), seq_u8(s, 0x58 | random_below(r, 8)); break;
    case 3: /* sub or add rsp, imm8 */
        seq_u8(s, 0x48), seq_u8(s, 0x83), seq_u8(s, random_below(r, 2) ? 0xEC : 0xC4);
        seq_u8(s, 8 * random_below(r, 4));
        break;
    case 4: seq_u8(s, 0x68), seq_u32(s, random_u64(r)); break;
    default: seq_u8(s, 0x9C); break; /* pushfq */
    }
}

static inline void seq_nop(sequence *s, random_source *r)
{
    static const uint8_t nops[][6] = { { 1, 0x90 },
                                       { 2, 0x66, 0x90 },
                                       { 3, 0x0F, 0x1F, 0x00 },
                                       { 4, 0x0F, 0x1F, 0x40, 0x00 },
                                       { 4, 0xF3, 0x0F, 0x1E, 0xFA } };
    const uint8_t *nop = nops[random_below(r, 5)];

    memcpy(s->bytes + s->size, nop + 1, nop[0]);
    s->size += nop[0];
}

static inline void seq_branch(sequence *s, random_source *r, uint32_t index)
{
    uint32_t kind = random_below(r, 12), bytes = 1;
    bool backward = false;

    if (kind < 5) {
        seq_u8(s, 0x70 | random_below(r, 16));
    } else if (kind < 8) {
        seq_u8(s, 0x0F), seq_u8(s, 0x80 | random_below(r, 16));
        bytes = 4;
    } else if (kind == 8) {
        seq_u8(s, 0xEB);
    } else if (kind == 9) {
        seq_u8(s, 0xE9);
        bytes = 4;
    } else {
        if (random_below(r, 4) == 0) {
            seq_u8(s, 0x67); /* count in ecx */
        }
        /* Two loops with one counter could pass 0: use only one, else jrcxz. */
        bool loop = !s->looped && random_below(r, 4);
        seq_u8(s, loop ? 0xE0 + random_below(r, 3) : 0xE3);
        backward = loop && s->keep_rcx && random_below(r, 2);
        s->looped |= loop;
    }
    s->branches[s->branch_count].at = s->size;
    s->branches[s->branch_count].bytes = bytes;
    s->branches[s->branch_count].from = index;
    s->branches[s->branch_count++].backward = backward;
    for (uint32_t i = 0; i < bytes; i++) {
        seq_u8(s, 0);
    }
}

static inline void seq_instruction(sequence *s, random_source *r, uint32_t index)
{
    switch (random_below(r, 14)) {
    case 0: seq_alu_constant(s, r); break;
    case 1: seq_move_constant(s, r); break;
    case 2: seq_lea(s, r); break;
    case 3:
    case 4: seq_rip_memory(s, r); break;
    case 5: seq_memory(s, r); break;
    case 6: seq_two_byte(s, r); break;
    case 7: seq_shift(s, r); break;
    case 8: seq_unary(s, r); break;
    case 9: seq_stack(s, r); break;
    case 10: seq_nop(s, r); break;
    case 11:
    case 12: seq_branch(s, r, index); break;
    default: seq_alu_registers(s, r); break;
    }
}

/* Fill the branches in: forward to any later instruction or the end, backward by `loop` only. */
static inline void seq_aim(sequence *s, random_source *r)
{
    for (uint32_t i = 0; i < s->branch_count; i++) {
        uint32_t at = s->branches[i].at, from = s->branches[i].from;
        uint32_t to = s->branches[i].backward ? random_below(r, from + 1)
                                              : from + 1 + random_below(r, s->count - from);
        uint32_t distance = s->starts[to] - (at + s->branches[i].bytes);
        for (uint32_t k = 0; k < s->branches[i].bytes; k++) {
            s->bytes[at + k] = (uint8_t)(distance >> (8 * k));
        }
    }
}

/* Make a sequence to be placed at code, with its data at data. */
static inline void seq_make(sequence *s, random_source *r, uint64_t code, uint64_t data)
{
    memset(s, 0, sizeof *s);
    s->code = code;
    s->data = data;
    s->keep_rcx = random_below(r, 3) == 0;
    s->count = 1 + random_below(r, SEQUENCE_MAX);
    for (uint32_t i = 0; i < s->count; i++) {
        s->starts[i] = s->size;
        seq_instruction(s, r, i);
    }
    s->starts[s->count] = s->size;
    seq_aim(s, r);
}

#endif
