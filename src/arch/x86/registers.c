/* SPDX-License-Identifier: MIT */
/*
 * The most common instructions of prologues are classified by their opcode alone, since a large
 * image has half a million of them and Zydis takes ten times as long; Zydis decodes the others.
 * Opcodes and ModRM: Intel SDM vol. 2, 2.1 and appendix A.
 */
#include "arch/x86/registers.h"

#include "arch/x86/decode.h"

enum { REX_W = 8, REX_R = 4, REX_X = 2, REX_B = 1 };

/* Kinds of opcodes, by how they use the operands that ModRM names. */
enum {
    UNKNOWN = 0,
    NONE,       /* no operand in a register                                   */
    MOVE,       /* reg = r/m, 4 or 8 bytes                                    */
    STORE,      /* r/m = reg, 4 or 8 bytes                                    */
    COMPUTE,    /* reads both, 4 or 8 bytes                                   */
    CLEAR,      /* the same, but sets a register to 0 if both are the same one */
    READ,       /* reads r/m, 4 or 8 bytes; reg is part of the opcode         */
    SET,        /* r/m = immediate, 4 or 8 bytes                              */
    COMPUTE_1,  /* reads both, bytes                                          */
    READ_1,     /* reads r/m, a byte                                          */
    EXTEND_1,   /* reg = r/m, a byte                                          */
    EXTEND_2,   /* reg = r/m, two bytes                                          */
    VECTOR,     /* no general register except in an address                   */
    PUSH,       /* reads the register in the opcode                           */
    POP,        /* sets it                                                    */
    SET_OPCODE, /* the same, to an immediate                                  */
};

static uint8_t get_kind(uint8_t opcode, uint32_t rex)
{
    if (opcode >= 0x50 && opcode < 0x58) {
        return PUSH;
    }
    if (opcode >= 0x58 && opcode < 0x60) {
        return POP;
    }
    if (opcode >= 0xB8 && opcode < 0xC0) {
        return SET_OPCODE;
    }
    if (opcode >= 0x70 && opcode < 0x80) {
        return NONE;
    }
    switch (opcode) {
    case 0x8B:
    case 0x8D: return MOVE;
    case 0x63: return rex & REX_W ? MOVE : UNKNOWN;
    case 0x89: return STORE;
    case 0x29:
    case 0x2B:
    case 0x31:
    case 0x33: return CLEAR;
    case 0x01:
    case 0x03:
    case 0x09:
    case 0x0B:
    case 0x21:
    case 0x23:
    case 0x39:
    case 0x3B:
    case 0x85: return COMPUTE;
    case 0x38:
    case 0x3A:
    case 0x84: return COMPUTE_1;
    case 0x80: return READ_1;
    case 0x81:
    case 0x83: return READ;
    case 0xC7: return SET;
    default: return UNKNOWN;
    }
}

/* The kind of an opcode after 0F. */
static uint8_t get_kind_0f(uint8_t opcode)
{
    if (opcode >= 0x80 && opcode < 0x90) {
        return NONE;
    }
    switch (opcode) {
    case 0x10: /* movups, movss, movsd ... */
    case 0x11:
    case 0x28: /* movaps, xorps */
    case 0x29:
    case 0x57: return VECTOR;
    case 0xB6:
    case 0xBE: return EXTEND_1;
    case 0xB7:
    case 0xBF: return EXTEND_2;
    default: return UNKNOWN;
    }
}

static uint32_t make_bit(uint32_t number)
{
    return 1u << number;
}

/* Without REX the byte registers 4 to 7 are ah, ch, dh, bh. */
static uint32_t make_byte_bit(uint32_t number, uint32_t rex)
{
    return make_bit(rex == 0 && number >= 4 ? number - 4 : number);
}

/* The registers of the address that the ModRM byte at `at` describes. */
static uint32_t get_address_registers(const uint8_t *at, uint32_t rex)
{
    uint32_t mod = at[0] >> 6, base = at[0] & 7u, reads = 0;

    if (base != 4) {
        return mod == 0 && base == 5 ? 0 : make_bit(base | (rex & REX_B) << 3);
    }
    uint32_t index = ((at[1] >> 3) & 7u) | (rex & REX_X) << 2;
    base = at[1] & 7u;
    if (index != 4) {
        reads |= make_bit(index);
    }
    if (mod != 0 || base != 5) {
        reads |= make_bit(base | (rex & REX_B) << 3);
    }
    return reads;
}

static void describe_opcode_register(uint8_t kind, uint32_t number, hfn_x86_register_use *out)
{
    if (kind == PUSH) {
        out->reads = make_bit(number);
    } else {
        out->kills = make_bit(number);
    }
    if (kind == PUSH || kind == POP) {
        out->reads |= make_bit(HFN_X86_RSP);
    }
    out->kills &= ~out->reads;
}

static void describe_modrm_registers(uint8_t kind, const uint8_t *modrm, uint32_t rex,
                                     hfn_x86_register_use *out)
{
    bool in_register = modrm[0] >> 6 == 3;
    uint32_t reg = ((modrm[0] >> 3) & 7u) | (rex & REX_R) << 1;
    uint32_t rm = (modrm[0] & 7u) | (rex & REX_B) << 3;
    uint32_t address = in_register ? 0 : get_address_registers(modrm, rex);

    switch (kind) {
    case MOVE:
    case EXTEND_2:
        *out = (hfn_x86_register_use){ in_register ? make_bit(rm) : address, make_bit(reg) };
        break;
    case EXTEND_1:
        *out =
            (hfn_x86_register_use){ in_register ? make_byte_bit(rm, rex) : address, make_bit(reg) };
        break;
    case STORE:
        *out = (hfn_x86_register_use){ make_bit(reg) | address, in_register ? make_bit(rm) : 0 };
        break;
    case SET: *out = (hfn_x86_register_use){ address, in_register ? make_bit(rm) : 0 }; break;
    case CLEAR:
    case COMPUTE: out->reads = make_bit(reg) | (in_register ? make_bit(rm) : address); break;
    case READ: out->reads = in_register ? make_bit(rm) : address; break;
    case COMPUTE_1:
        out->reads = make_byte_bit(reg, rex) | (in_register ? make_byte_bit(rm, rex) : address);
        break;
    case READ_1: out->reads = in_register ? make_byte_bit(rm, rex) : address; break;
    default: out->reads = address; break;
    }
    if (kind == CLEAR && in_register && reg == rm) {
        *out = (hfn_x86_register_use){ 0, make_bit(reg) };
    }
    out->kills &= ~out->reads;
}

bool hfn_x86_find_common_register_use(const uint8_t *bytes, uint8_t length,
                                      hfn_x86_register_use *out)
{
    const uint8_t *at = bytes;
    uint32_t rex = 0;
    bool prefixed = *at == 0x66 || *at == 0xF2 || *at == 0xF3;

    at += prefixed;
    if ((*at & 0xF0) == 0x40) {
        rex = *at++;
    }
    if (at + 1 >= bytes + length && (*at < 0x50 || *at >= 0x60)) {
        return false;
    }
    bool has_escape = *at == 0x0F;
    uint8_t kind = has_escape ? get_kind_0f(at[1]) : get_kind(at[0], rex);
    uint8_t opcode = at[0];
    at += has_escape ? 2 : 1;
    if (kind == UNKNOWN || (prefixed && kind != VECTOR) || (kind == SET && (*at & 0x38))) {
        return false;
    }
    *out = (hfn_x86_register_use){ 0, 0 };
    if (kind >= PUSH) {
        describe_opcode_register(kind, (opcode & 7u) | (rex & REX_B) << 3, out);
    } else if (kind != NONE) {
        describe_modrm_registers(kind, at, rex, out);
    }
    return true;
}

bool hfn_x86_find_register_use(const uint8_t *bytes, uint8_t length, hfn_x86_register_use *out)
{
    hfn_x86_effects effects;

    if (hfn_x86_find_common_register_use(bytes, length, out)) {
        return true;
    }
    if (!hfn_x86_decode_effects(HFN_X86_64, bytes, length, 0, &effects) || effects.opaque) {
        return false;
    }
    *out = (hfn_x86_register_use){ effects.reads & ~effects.kills, effects.kills };
    return true;
}
