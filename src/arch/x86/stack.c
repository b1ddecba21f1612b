/* SPDX-License-Identifier: MIT */
/*
 * Determines how an instruction changes the depth of the stack, so that stubs can be unwound at
 * every instruction.  The change is known for push, pop and additions of constants; it is unknown
 * for any other instruction that writes rsp.
 */
#include "arch/x86/decode.h"
#include "arch/x86/relocate.h"
#include "base/byte_order.h"

#include <string.h>

#define REX_W 8u
#define REX_R 4u
#define REX_B 1u

/* An instruction after its prefixes. */
typedef struct opcode_view {
    const uint8_t *at; /* first byte of the opcode         */
    uint64_t left;     /* bytes from `at` on               */
    uint32_t rex;      /* REX_W also in 32-bit code, for whole registers */
    bool narrow;       /* prefix 66: pushes 2 bytes        */
} opcode_view;

static opcode_view skip_prefixes(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size)
{
    opcode_view v = { .at = bytes, .left = size, .rex = mode == HFN_X86_32 ? REX_W : 0 };

    for (; v.left > 1 && memchr("\x66\xF2\xF3\x2E\x36\x3E\x26\x64\x65", *v.at, 9);
         v.at++, v.left--) {
        v.narrow |= *v.at == 0x66;
    }
    if (v.narrow && mode == HFN_X86_32) {
        v.rex = 0;
    }
    if (mode == HFN_X86_64 && v.left > 1 && (*v.at & 0xF0) == 0x40) {
        v.rex = *v.at++;
        v.left--;
    }
    return v;
}

/* 48 83 /5 ib, 48 81 /5 id: sub rsp, imm; /0: add. */
static bool adds_constant(const opcode_view *v, int32_t *growth_bytes)
{
    bool is_short = v->at[0] == 0x83;

    if (!(v->rex & REX_W) || (v->rex & REX_B) || v->left < (is_short ? 3 : 6) ||
        (v->at[1] != 0xEC && v->at[1] != 0xC4)) {
        return false;
    }
    int32_t constant = is_short ? (int8_t)v->at[2] : (int32_t)hfn_read_le32(v->at + 2);
    if (constant == INT32_MIN) {
        return false;
    }
    *growth_bytes = v->at[1] == 0xEC ? constant : -constant;
    return true;
}

/* 48 8D 64 24 ib, 48 8D A4 24 id: lea rsp, [rsp+imm]. */
static bool is_lea_of_rsp(const opcode_view *v, int32_t *growth_bytes)
{
    bool is_short = v->left >= 4 && v->at[1] == 0x64;

    if ((v->rex & ~0x40u) != REX_W || v->left < (is_short ? 4 : 7) ||
        (v->at[1] != 0x64 && v->at[1] != 0xA4) || v->at[2] != 0x24) {
        return false;
    }
    int32_t constant = is_short ? (int8_t)v->at[3] : (int32_t)hfn_read_le32(v->at + 3);
    if (constant == INT32_MIN) {
        return false;
    }
    *growth_bytes = -constant;
    return true;
}

/* Is it an instruction that writes only a register named by ModRM, which is not rsp? */
static bool preserves_rsp(const opcode_view *v)
{
    uint8_t opcode = v->at[0];
    bool known = (opcode < 0x40 && (opcode & 7) < 4) || opcode == 0x63 ||
                 (opcode >= 0x80 && opcode <= 0x8B) || opcode == 0x8D || opcode == 0xC6 ||
                 opcode == 0xC7;

    if ((opcode & 0xF0) == 0x70 || opcode == 0x90) {
        return true; /* a conditional jump or nop */
    }
    if (!known || v->left < 2) {
        return false;
    }
    uint32_t reg = ((v->at[1] >> 3) & 7u) | (v->rex & REX_R ? 8 : 0);
    uint32_t rm = (v->at[1] & 7u) | (v->rex & REX_B ? 8 : 0);
    return reg != HFN_X86_RSP && ((v->at[1] >> 6) != 3 || rm != HFN_X86_RSP);
}

bool hfn_x86_get_stack_growth(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size,
                              int32_t *growth_bytes)
{
    opcode_view v = skip_prefixes(mode, bytes, size);
    int32_t word_bytes = mode == HFN_X86_32 ? 4 : 8;
    uint8_t opcode = size ? v.at[0] : 0;
    bool pushes = (opcode >= 0x50 && opcode <= 0x57) || opcode == 0x68 || opcode == 0x6A ||
                  opcode == 0x9C || (opcode == 0xFF && v.left > 1 && ((v.at[1] >> 3) & 7) == 6);
    bool pops = (opcode >= 0x58 && opcode <= 0x5F) || opcode == 0x9D;
    hfn_x86_effects effects;

    *growth_bytes = 0;
    if (pops && opcode == 0x5C && !(v.rex & REX_B)) {
        return false; /* pop rsp */
    }
    if (pushes || pops) {
        *growth_bytes = pushes ? word_bytes : -word_bytes;
        return !v.narrow;
    }
    if (preserves_rsp(&v) ||
        ((opcode == 0x83 || opcode == 0x81) && adds_constant(&v, growth_bytes)) ||
        (opcode == 0x8D && is_lea_of_rsp(&v, growth_bytes))) {
        return true;
    }
    return hfn_x86_decode_effects(mode, bytes, size, 0, &effects) &&
           !(effects.writes & (1u << HFN_X86_RSP));
}
