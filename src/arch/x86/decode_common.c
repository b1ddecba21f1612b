/* SPDX-License-Identifier: MIT */
/*
 * Decodes the common instructions of compiled code from two tables: length, flow and PC-relative
 * field, nothing else.  A scan of all code spends its time here; Zydis, which is ten times slower,
 * decodes the rare instructions (VEX, EVEX, x87, lock, rep, far, system).
 * tests/unit/arch/decode_common_test.c compares every opcode, ModRM byte and prefix of the tables
 * with Zydis.
 */
#include "arch/x86/decode_common.h"

#include "base/byte_order.h"

#include <string.h>

// clang-format off
/* The operands that follow a one-byte opcode (Intel SDM vol. 2, table A-2).  A kind with the bit
 * SIMPLE encodes them in its other bits. */
#define SIMPLE 0x80u
#define HAS_MODRM 0x10u
#define IMMEDIATE_BYTES 0x0Fu /* 4 becomes 2 with prefix 66 */
enum {
    RARE = 0,    /* decoded by Zydis                */
    ONE = 0x80, /* nothing                         */
    M = 0x90,   /* ModRM                           */
    MI = 0x91,  /* ModRM, imm8                     */
    MZ = 0x94,  /* ModRM, imm32                    */
    I = 0x81,   /* imm8                            */
    Z = 0x84,   /* imm32                           */
    V = 1,      /* imm32, imm64 with REX.W         */
    NOP,        /* 90                              */
    LEA,        /* ModRM, memory only              */
    T3,         /* F6 F7: imm for /0 only          */
    S5,         /* FE FF: call, jmp, push by ModRM */
    C6,         /* ModRM /0 only, imm              */
    JCC, JMP, JMP4, CALL, RET, RETI, INT3, TWO, REX, PRE
};

/* Sixteen opcodes a row. */
static const uint8_t one_byte[256] = {
    M,    M,    M,    M,    I,    Z,    RARE, RARE, M,    M,    M,    M,    I,    Z,    RARE, TWO,
    M,    M,    M,    M,    I,    Z,    RARE, RARE, M,    M,    M,    M,    I,    Z,    RARE, RARE,
    M,    M,    M,    M,    I,    Z,    PRE,  RARE, M,    M,    M,    M,    I,    Z,    PRE,  RARE,
    M,    M,    M,    M,    I,    Z,    PRE,  RARE, M,    M,    M,    M,    I,    Z,    PRE,  RARE,
    REX,  REX,  REX,  REX,  REX,  REX,  REX,  REX,  REX,  REX,  REX,  REX,  REX,  REX,  REX,  REX,
    ONE,  ONE,  ONE,  ONE,  ONE,  ONE,  ONE,  ONE,  ONE,  ONE,  ONE,  ONE,  ONE,  ONE,  ONE,  ONE,
    RARE, RARE, RARE, M,    PRE,  PRE,  PRE,  RARE, Z,    MZ,   I,    MI,   RARE, RARE, RARE, RARE,
    JCC,  JCC,  JCC,  JCC,  JCC,  JCC,  JCC,  JCC,  JCC,  JCC,  JCC,  JCC,  JCC,  JCC,  JCC,  JCC,
    MI,   MZ,   RARE, MI,   M,    M,    M,    M,    M,    M,    M,    M,    RARE, LEA,  RARE, RARE,
    NOP,  ONE,  ONE,  ONE,  ONE,  ONE,  ONE,  ONE,  ONE,  ONE,  RARE, RARE, RARE, RARE, RARE, RARE,
    RARE, RARE, RARE, RARE, ONE,  ONE,  ONE,  ONE,  I,    Z,    ONE,  ONE,  ONE,  ONE,  ONE,  ONE,
    I,    I,    I,    I,    I,    I,    I,    I,    V,    V,    V,    V,    V,    V,    V,    V,
    MI,   MI,   RETI, RET,  RARE, RARE, C6,   C6,   RARE, ONE,  RARE, RARE, INT3, RARE, RARE, RARE,
    M,    M,    M,    M,    RARE, RARE, RARE, RARE, RARE, RARE, RARE, RARE, RARE, RARE, RARE, RARE,
    RARE, RARE, RARE, RARE, RARE, RARE, RARE, RARE, CALL, JMP4, RARE, JMP,  RARE, RARE, RARE, RARE,
    RARE, RARE, PRE,  PRE,  RARE, RARE, T3,   T3,   RARE, RARE, RARE, RARE, ONE,  ONE,  S5,   S5,
};

/* Opcodes after 0F (Intel SDM vol. 2, table A-3), as bits: the supported mandatory prefixes (1:
 * none, 2: 66, 4: F3, 8: F2), 0x10 if a ModRM follows, 0x20 if an imm8 follows.  0: decoded by
 * Zydis. */
static const uint8_t two_byte[256] = {
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    1,    0,    0,    0,    0,
    0x1f, 0x1f, 0x1d, 0,    0x13, 0x13, 0x15, 0,    0,    0,    0,    0,    0,    0,    0x14, 0x13,
    0,    0,    0,    0,    0,    0,    0,    0,    0x13, 0x13, 0x1f, 0,    0x1f, 0x1f, 0x13, 0x13,
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
    0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13,
    0,    0x1f, 0x15, 0x15, 0x13, 0x13, 0x13, 0x13, 0x1f, 0x1f, 0x1f, 0x17, 0x1f, 0x1f, 0x1f, 0x1f,
    0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x12, 0x12, 0x13, 0x17,
    0x3f, 0,    0,    0,    0x13, 0x13, 0x13, 0,    0,    0,    0,    0,    0x1a, 0x1a, 0x17, 0x17,
    1,    1,    1,    1,    1,    1,    1,    1,    1,    1,    1,    1,    1,    1,    1,    1,
    0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13,
    0,    0,    0,    0x13, 0x33, 0x13, 0,    0,    0,    0,    0,    0x13, 0x33, 0x13, 0,    0x13,
    0x13, 0x13, 0,    0x13, 0,    0,    0x13, 0x13, 0x14, 0,    0x33, 0x13, 0x13, 0x13, 0x13, 0x13,
    0x13, 0x13, 0x3f, 0,    0x33, 0,    0x33, 0,    3,    3,    3,    3,    3,    3,    3,    3,
    0x1a, 0x13, 0x13, 0x13, 0x13, 0x13, 0x12, 0,    0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13,
    0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x1e, 0,    0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13,
    0,    0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0,    0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0x13, 0,
};
// clang-format on

/* Size of ModRM, SIB and displacement, by ModRM; 4 more if mod is 0 and the SIB's base is 5. */
#define MOD0 1, 1, 1, 1, 2, 5, 1, 1
#define MOD1 2, 2, 2, 2, 3, 2, 2, 2
#define MOD2 5, 5, 5, 5, 6, 5, 5, 5
#define MOD3 1, 1, 1, 1, 1, 1, 1, 1
#define EIGHT(row) row, row, row, row, row, row, row, row
static const uint8_t modrm_bytes[256] = { EIGHT(MOD0), EIGHT(MOD1), EIGHT(MOD2), EIGHT(MOD3) };

#define MANDATORY_NONE 1u
#define MANDATORY_66 2u
#define MANDATORY_F3 4u
#define MANDATORY_F2 8u

/* The state of decoding one instruction. */
typedef struct partial_decode {
    const uint8_t *bytes;
    uint32_t at;        /* next byte                                         */
    uint32_t mandatory; /* MANDATORY_*; several: decoded by Zydis            */
    uint32_t rex;       /* the REX byte or 0                                 */
    bool prefixed;      /* with 66, F2, F3 or a segment                      */
    uint32_t disp32_at; /* offset of a 4-byte displacement, 0 if none        */
    bool rip;           /* the displacement is relative to the next instruction */
    bool absolute;      /* there is no base register */
} partial_decode;

/* False for too many prefixes, or a REX before another prefix, which the CPU ignores. */
static bool read_prefixes(partial_decode *r)
{
    r->mandatory = MANDATORY_NONE;
    for (; one_byte[r->bytes[r->at]] == PRE; r->at++) {
        if (r->at == 5) {
            return false;
        }
        r->prefixed = true;
        switch (r->bytes[r->at]) {
        case 0x66: r->mandatory |= MANDATORY_66; break;
        case 0xF2: r->mandatory |= MANDATORY_F2; break;
        case 0xF3: r->mandatory |= MANDATORY_F3; break;
        default: break; /* segments */
        }
    }
    if (r->mandatory != MANDATORY_NONE) {
        r->mandatory &= ~MANDATORY_NONE;
    }
    if ((r->bytes[r->at] & 0xF0) == 0x40) {
        r->rex = r->bytes[r->at++];
    }
    uint8_t next = one_byte[r->bytes[r->at]];
    return next != PRE && next != REX;
}

/* ModRM, SIB and displacement: Intel SDM vol. 2, 2.1.5 and 2.2.1.6. */
static void read_modrm(partial_decode *r)
{
    uint32_t modrm = r->bytes[r->at++];
    uint32_t mod = modrm >> 6, rm = modrm & 7;

    if (mod == 3) {
        return;
    }
    if (rm == 4) {
        rm = (uint32_t)(r->bytes[r->at++] & 7) | 8; /* 8: the base of a SIB */
    }
    if (mod == 1) {
        r->at += 1;
    } else if (mod == 2 || rm == 5 || rm == 13) {
        r->disp32_at = r->at;
        r->rip = mod == 0 && rm == 5;
        r->absolute = mod == 0 && rm == 13;
        r->at += 4;
    }
}

static uint32_t get_immediate_bytes(const partial_decode *r)
{
    return (r->mandatory & MANDATORY_66) && !(r->rex & 8) ? 2 : 4;
}

/* Set the length and the fields that depend on the memory operand and the immediate. */
static bool finish_operands(partial_decode *r, uint32_t immediate_bytes, uint64_t rva,
                            uint64_t link_base, hfn_instruction *out)
{
    uint32_t length = r->at + immediate_bytes;

    if (length > HFN_X86_MAX_INSTRUCTION_BYTES) {
        return false;
    }
    out->length = (uint8_t)length;
    out->absolute_at = r->absolute ? (uint8_t)r->disp32_at : 0;
    if (r->rip) {
        out->relative_at = (uint8_t)r->disp32_at;
        out->relative_bytes = 4;
        out->reads_memory_relative = true;
        out->target = rva + length + (uint64_t)hfn_read_signed_le32(r->bytes + r->disp32_at);
    } else if (immediate_bytes == 4) {
        out->takes_address = true;
        out->target = (uint64_t)hfn_read_signed_le32(r->bytes + r->at) - link_base;
    }
    return true;
}

static bool finish_flow(partial_decode *r, hfn_flow flow, uint32_t field_bytes, uint64_t rva,
                        hfn_instruction *out)
{
    int64_t distance =
        field_bytes == 1 ? (int8_t)r->bytes[r->at] : hfn_read_signed_le32(r->bytes + r->at);

    if (r->prefixed) {
        return false;
    }
    out->flow = (uint8_t)flow;
    out->relative_at = (uint8_t)r->at;
    out->relative_bytes = (uint8_t)field_bytes;
    out->length = (uint8_t)(r->at + field_bytes);
    out->target = rva + out->length + (uint64_t)distance;
    return true;
}

static bool finish_plain(partial_decode *r, hfn_flow flow, uint32_t further_bytes,
                         hfn_instruction *out)
{
    if (r->prefixed) {
        return false;
    }
    out->flow = (uint8_t)flow;
    out->length = (uint8_t)(r->at + further_bytes);
    return true;
}

static bool finish_lea(partial_decode *r, uint64_t rva, uint64_t link_base, hfn_instruction *out)
{
    if (r->bytes[r->at] >= 0xC0) {
        return false;
    }
    read_modrm(r);
    if (!finish_operands(r, 0, rva, link_base, out)) {
        return false;
    }
    if (r->rip) {
        out->reads_memory_relative = false;
        out->takes_address = true;
    } else if (r->disp32_at) {
        out->takes_address = true;
        out->target = (uint64_t)hfn_read_signed_le32(r->bytes + r->disp32_at) - link_base;
    }
    return true;
}

/* mov reg, immediate, the only instruction with an 8-byte immediate. */
static bool finish_move_constant(partial_decode *r, uint64_t rva, uint64_t link_base,
                                 hfn_instruction *out)
{
    if (!(r->rex & 8)) {
        return finish_operands(r, get_immediate_bytes(r), rva, link_base, out);
    }
    out->length = (uint8_t)(r->at + 8);
    out->takes_address = true;
    out->target = hfn_read_le64(r->bytes + r->at) - link_base;
    return out->length <= HFN_X86_MAX_INSTRUCTION_BYTES;
}

/* FE /0 /1, FF /0 /1 /2 /4 /6. */
static bool finish_group5(partial_decode *r, uint64_t rva, uint64_t link_base, hfn_instruction *out)
{
    bool wide = r->bytes[r->at - 1] & 1;
    uint32_t modrm = r->bytes[r->at], reg = (modrm >> 3) & 7;
    bool has_index = (modrm & 7) == 4 && (((r->bytes[r->at + 1] >> 3) & 7) != 4 || (r->rex & 2));

    if (reg > 1 && (!wide || (reg != 2 && reg != 4 && reg != 6) || r->prefixed)) {
        return false;
    }
    read_modrm(r);
    if (reg == 2) {
        out->flow = HFN_FLOW_CALL_INDIRECT;
    }
    if (reg == 4) {
        out->flow = HFN_FLOW_JUMP_INDIRECT;
        out->through_table = modrm >= 0xC0 || has_index;
    }
    return finish_operands(r, 0, rva, link_base, out);
}

static bool finish_two_byte(partial_decode *r, uint64_t rva, uint64_t link_base,
                            hfn_instruction *out)
{
    uint32_t opcode = r->bytes[r->at++];
    uint32_t known = two_byte[opcode];
    uint32_t reg = (r->bytes[r->at] >> 3) & 7;

    if (!(known & r->mandatory) || (r->mandatory & (r->mandatory - 1))) {
        return false;
    }
    if ((opcode & 0xF0) == 0x80) {
        return finish_flow(r, HFN_FLOW_JUMP_IF, 4, rva, out);
    }
    if (opcode == 0x0B) {
        return finish_plain(r, HFN_FLOW_STOP, 0, out);
    }
    if (opcode == 0x1E) { /* F3 0F 1E FA */
        out->is_landing_pad = true;
        out->length = (uint8_t)(r->at + 1);
        return r->at == 3 && r->bytes[r->at] == 0xFA;
    }
    if (opcode == 0x1F) {
        out->is_padding = true;
        if (reg != 0) {
            return false;
        }
    }
    if (opcode == 0xBA && reg < 4) {
        return false;
    }
    if (known & 0x10) {
        read_modrm(r);
    }
    return finish_operands(r, known & 0x20 ? 1 : 0, rva, link_base, out);
}

static bool finish_group3(partial_decode *r, uint64_t rva, uint64_t link_base, hfn_instruction *out)
{
    bool wide = r->bytes[r->at - 1] & 1;
    uint32_t reg = (r->bytes[r->at] >> 3) & 7;

    if (reg == 1) {
        return false;
    }
    read_modrm(r);
    uint32_t immediate_bytes = reg != 0 ? 0 : wide ? get_immediate_bytes(r) : 1;
    return finish_operands(r, immediate_bytes, rva, link_base, out);
}

static bool finish_modrm(partial_decode *r, uint32_t immediate_bytes, uint64_t rva,
                         uint64_t link_base, hfn_instruction *out)
{
    read_modrm(r);
    return finish_operands(r, immediate_bytes, rva, link_base, out);
}

static bool finish_simple(partial_decode *r, uint8_t kind, uint64_t rva, uint64_t link_base,
                          hfn_instruction *out)
{
    uint32_t immediate_bytes = kind & IMMEDIATE_BYTES;

    if (immediate_bytes == 4) {
        immediate_bytes = get_immediate_bytes(r);
    }
    if (kind & HAS_MODRM) {
        read_modrm(r);
    }
    return finish_operands(r, immediate_bytes, rva, link_base, out);
}

static bool finish_one_byte(partial_decode *r, uint8_t kind, uint64_t rva, uint64_t link_base,
                            hfn_instruction *out)
{
    switch (kind) {
    case V: return finish_move_constant(r, rva, link_base, out);
    case NOP: out->is_padding = !(r->rex & 1); return finish_operands(r, 0, rva, link_base, out);
    case LEA: return finish_lea(r, rva, link_base, out);
    case T3: return finish_group3(r, rva, link_base, out);
    case S5: return finish_group5(r, rva, link_base, out);
    case C6:
        if ((r->bytes[r->at] >> 3) & 7) {
            return false;
        }
        return finish_modrm(r, r->bytes[r->at - 1] & 1 ? get_immediate_bytes(r) : 1, rva, link_base,
                            out);
    case JCC: return finish_flow(r, HFN_FLOW_JUMP_IF, 1, rva, out);
    case JMP: return finish_flow(r, HFN_FLOW_JUMP, 1, rva, out);
    case JMP4: return finish_flow(r, HFN_FLOW_JUMP, 4, rva, out);
    case CALL: return finish_flow(r, HFN_FLOW_CALL, 4, rva, out);
    case RET: return finish_plain(r, HFN_FLOW_RETURN, 0, out);
    case RETI: return finish_plain(r, HFN_FLOW_RETURN, 2, out);
    case INT3: out->is_padding = true; return finish_plain(r, HFN_FLOW_STOP, 0, out);
    default: return false;
    }
}

/* Decodes instructions with no prefix except REX and a SIMPLE opcode, which are half of all code.
 * It has few branches, because mispredicted branches dominate the time of a scan. */
static void decode_simple(const uint8_t *bytes, uint32_t at, uint8_t kind, uint64_t rva,
                          uint64_t link_base, hfn_instruction *out)
{
    uint32_t immediate_bytes = kind & IMMEDIATE_BYTES, modrm = 0xC0;

    if (kind & HAS_MODRM) {
        modrm = bytes[at];
        at += modrm_bytes[modrm];
        if ((modrm & 0xC7) == 4 && (bytes[at - 1] & 7) == 5) { /* no base, disp32 */
            out->absolute_at = (uint8_t)at;
            at += 4;
        }
    }
    out->length = (uint8_t)(at + immediate_bytes);
    if ((modrm & 0xC7) == 5) {
        out->relative_at = (uint8_t)(at - 4);
        out->relative_bytes = 4;
        out->reads_memory_relative = true;
        out->target = rva + out->length + (uint64_t)hfn_read_signed_le32(bytes + at - 4);
    } else if (immediate_bytes == 4) {
        out->takes_address = true;
        out->target = (uint64_t)hfn_read_signed_le32(bytes + at) - link_base;
    }
}

static bool decode_general(const uint8_t *bytes, uint64_t rva, uint64_t link_base,
                           hfn_instruction *out)
{
    partial_decode r = { .bytes = bytes };

    if (!read_prefixes(&r)) {
        return false;
    }
    uint8_t kind = one_byte[bytes[r.at++]];
    if (kind == TWO) {
        return finish_two_byte(&r, rva, link_base, out);
    }
    if (r.mandatory & (MANDATORY_F2 | MANDATORY_F3)) {
        return false;
    }
    if (kind & SIMPLE) {
        return finish_simple(&r, kind, rva, link_base, out);
    }
    return finish_one_byte(&r, kind, rva, link_base, out);
}

bool hfn_x86_decode_common(const uint8_t *bytes, uint64_t size, uint64_t rva, uint64_t link_base,
                           hfn_instruction *out)
{
    if (size < HFN_X86_MAX_INSTRUCTION_BYTES) {
        return false;
    }
    uint32_t rex_bytes = (bytes[0] & 0xF0) == 0x40;
    uint8_t kind = one_byte[bytes[rex_bytes]];
    memset(out, 0, sizeof *out);
    if (!(kind & SIMPLE)) {
        return decode_general(bytes, rva, link_base, out);
    }
    decode_simple(bytes, rex_bytes + 1, kind, rva, link_base, out);
    return true;
}
