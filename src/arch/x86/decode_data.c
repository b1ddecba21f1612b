/* SPDX-License-Identifier: MIT */
/*
 * Translates Zydis' operands into the data that an instruction reads and writes, so that the
 * analysis can follow stack addresses.  Only the listed instructions copy, add or select; all
 * others are assumed to compute an unknown value from everything that they read.
 */
#include "arch/x86/decode_data.h"

enum { OTHER_REGISTERS = HFN_X86_VECTORS - 1 };

/* The bit of a register that is not a general one; 0 for flags, the instruction pointer,
 * segments. */
static uint64_t get_vector_bit(ZydisRegister reg)
{
    if (reg >= ZYDIS_REGISTER_XMM0 && reg <= ZYDIS_REGISTER_XMM31) {
        return UINT64_C(1) << (reg - ZYDIS_REGISTER_XMM0);
    }
    if (reg >= ZYDIS_REGISTER_YMM0 && reg <= ZYDIS_REGISTER_YMM31) {
        return UINT64_C(1) << (reg - ZYDIS_REGISTER_YMM0);
    }
    if (reg >= ZYDIS_REGISTER_ZMM0 && reg <= ZYDIS_REGISTER_ZMM31) {
        return UINT64_C(1) << (reg - ZYDIS_REGISTER_ZMM0);
    }
    switch (ZydisRegisterGetClass(reg)) {
    case ZYDIS_REGCLASS_X87:
    case ZYDIS_REGCLASS_MMX:
    case ZYDIS_REGCLASS_TMM:
    case ZYDIS_REGCLASS_MASK:
    case ZYDIS_REGCLASS_BOUND:
    case ZYDIS_REGCLASS_TEST:
    case ZYDIS_REGCLASS_CONTROL:
    case ZYDIS_REGCLASS_DEBUG: return UINT64_C(1) << OTHER_REGISTERS;
    default: return 0;
    }
}

/* ah, ch, dh, bh */
static bool is_high_byte(ZydisRegister reg)
{
    return reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH;
}

static bool is_general(const ZydisDecodedOperand *operand)
{
    return operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
           hfn_x86_get_register_number(operand->reg.value) < 16;
}

/* A write of 4 bytes clears the upper half of a 64-bit register; a shorter one leaves it. */
static void add_register(const ZydisDecodedOperand *operand, hfn_x86_data *out)
{
    bool reads = operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ;
    bool writes = operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
    uint64_t vector = get_vector_bit(operand->reg.value);

    if (operand->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
        hfn_x86_get_register_number(operand->reg.value) == HFN_X86_RSP) {
        return; /* the implicit stack pointer of push and pop */
    }
    if (is_general(operand)) {
        uint32_t bit = 1u << hfn_x86_get_register_number(operand->reg.value);
        bool high = is_high_byte(operand->reg.value);
        uint32_t low = operand->size == 8 && !high ? bit : 0;
        if (reads) {
            out->low_reads = out->reads & bit & ~out->low_reads ? out->low_reads & ~bit
                             : low                              ? out->low_reads | bit
                                                                : out->low_reads & ~bit;
            out->reads |= bit;
        }
        out->partial |= writes && operand->size < 32 ? bit : 0;
        out->low_writes |= writes && operand->size < 32 && !high ? bit : 0;
    }
    out->vector_reads |= reads ? vector : 0;
    out->vector_writes |= writes ? vector : 0;
}

static void add_memory(const ZydisDecodedOperand *operand, hfn_x86_data *out)
{
    uint8_t base = hfn_x86_get_register_number(operand->mem.base);

    if (operand->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN) {
        out->hidden_bases |= base < 16 && base != HFN_X86_RSP ? 1u << base : 0;
        return;
    }
    if (operand->mem.type != ZYDIS_MEMOP_TYPE_AGEN) {
        out->loads |= (operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
        out->stores |= (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
    }
    if (ZydisRegisterGetClass(operand->mem.index) >= ZYDIS_REGCLASS_XMM) {
        out->vector_reads |= get_vector_bit(operand->mem.index);
    }
}

static bool are_same_registers(const ZydisDecodedOperand *a, const ZydisDecodedOperand *b)
{
    return a->type == ZYDIS_OPERAND_TYPE_REGISTER && b->type == ZYDIS_OPERAND_TYPE_REGISTER &&
           a->reg.value == b->reg.value;
}

/* True if the instruction sets its target to a value that does not depend on its operands. */
static bool ignores_operands(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *operands)
{
    switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_XOR:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_SBB: /* 0 or -1, by the carry flag */
    case ZYDIS_MNEMONIC_PXOR:
    case ZYDIS_MNEMONIC_XORPS:
    case ZYDIS_MNEMONIC_XORPD:
    case ZYDIS_MNEMONIC_PCMPEQB:
    case ZYDIS_MNEMONIC_PCMPEQD: return are_same_registers(&operands[0], &operands[1]);
    case ZYDIS_MNEMONIC_VPXOR:
    case ZYDIS_MNEMONIC_VPXORD:
    case ZYDIS_MNEMONIC_VPXORQ:
    case ZYDIS_MNEMONIC_VXORPS:
    case ZYDIS_MNEMONIC_VXORPD:
    case ZYDIS_MNEMONIC_VPCMPEQB:
    case ZYDIS_MNEMONIC_VPCMPEQD: return are_same_registers(&operands[1], &operands[2]);
    default: return false;
    }
}

/* Moves and permutations of whole words. */
static bool copies_words(const ZydisDecodedInstruction *in)
{
    switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_MOVNTI:
    case ZYDIS_MNEMONIC_PUSH:
    case ZYDIS_MNEMONIC_POP:
    case ZYDIS_MNEMONIC_MOVQ:
    case ZYDIS_MNEMONIC_MOVD:
    case ZYDIS_MNEMONIC_MOVAPS:
    case ZYDIS_MNEMONIC_MOVAPD:
    case ZYDIS_MNEMONIC_MOVUPS:
    case ZYDIS_MNEMONIC_MOVUPD:
    case ZYDIS_MNEMONIC_MOVDQA:
    case ZYDIS_MNEMONIC_MOVDQU:
    case ZYDIS_MNEMONIC_MOVHPS:
    case ZYDIS_MNEMONIC_MOVLPS:
    case ZYDIS_MNEMONIC_MOVHPD:
    case ZYDIS_MNEMONIC_MOVLPD:
    case ZYDIS_MNEMONIC_MOVHLPS:
    case ZYDIS_MNEMONIC_MOVLHPS:
    case ZYDIS_MNEMONIC_MOVNTPS:
    case ZYDIS_MNEMONIC_MOVNTPD:
    case ZYDIS_MNEMONIC_MOVNTDQ:
    case ZYDIS_MNEMONIC_PUNPCKLQDQ:
    case ZYDIS_MNEMONIC_PUNPCKHQDQ:
    case ZYDIS_MNEMONIC_UNPCKLPD:
    case ZYDIS_MNEMONIC_UNPCKHPD:
    case ZYDIS_MNEMONIC_VMOVQ:
    case ZYDIS_MNEMONIC_VMOVD:
    case ZYDIS_MNEMONIC_VMOVAPS:
    case ZYDIS_MNEMONIC_VMOVAPD:
    case ZYDIS_MNEMONIC_VMOVUPS:
    case ZYDIS_MNEMONIC_VMOVUPD:
    case ZYDIS_MNEMONIC_VMOVDQA:
    case ZYDIS_MNEMONIC_VMOVDQU:
    case ZYDIS_MNEMONIC_VPUNPCKLQDQ:
    case ZYDIS_MNEMONIC_VPBROADCASTQ:
    case ZYDIS_MNEMONIC_VINSERTF128:
    case ZYDIS_MNEMONIC_VINSERTI128:
    case ZYDIS_MNEMONIC_PINSRQ:
    case ZYDIS_MNEMONIC_PEXTRQ:
    case ZYDIS_MNEMONIC_VPINSRQ:
    case ZYDIS_MNEMONIC_VPEXTRQ: return true;
    default: return false;
    }
}

/* False if an operand is smaller than a word: an instruction that moves part of an address is not a
 * copy. */
static bool has_whole_operands(hfn_x86_mode mode, const ZydisDecodedInstruction *in,
                               const ZydisDecodedOperand *operands)
{
    uint32_t word = mode == HFN_X86_32 ? 32 : 64;

    for (uint32_t i = 0; i < in->operand_count_visible; i++) {
        bool is_memory = operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY;
        if ((is_general(&operands[i]) && operands[i].size != word) ||
            (is_memory && operands[i].size % word != 0)) {
            return false;
        }
    }
    return true;
}

static bool copies_part(const ZydisDecodedInstruction *in)
{
    return in->mnemonic == ZYDIS_MNEMONIC_MOV || in->mnemonic == ZYDIS_MNEMONIC_MOVZX ||
           in->mnemonic == ZYDIS_MNEMONIC_MOVSX || in->mnemonic == ZYDIS_MNEMONIC_MOVSXD;
}

static bool adds_constant(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *operands,
                          int64_t *addend)
{
    bool has_immediate =
        in->operand_count_visible >= 2 && operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;

    switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_INC: *addend = 1; return true;
    case ZYDIS_MNEMONIC_DEC: *addend = -1; return true;
    case ZYDIS_MNEMONIC_ADD: *addend = has_immediate ? operands[1].imm.value.s : 0; break;
    case ZYDIS_MNEMONIC_SUB: *addend = has_immediate ? -operands[1].imm.value.s : 0; break;
    default: return false;
    }
    return has_immediate;
}

static uint8_t get_element_bytes(const ZydisDecodedInstruction *in)
{
    switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_MOVSB:
    case ZYDIS_MNEMONIC_STOSB:
    case ZYDIS_MNEMONIC_LODSB:
    case ZYDIS_MNEMONIC_SCASB:
    case ZYDIS_MNEMONIC_CMPSB: return 1;
    case ZYDIS_MNEMONIC_MOVSW:
    case ZYDIS_MNEMONIC_STOSW:
    case ZYDIS_MNEMONIC_LODSW:
    case ZYDIS_MNEMONIC_SCASW:
    case ZYDIS_MNEMONIC_CMPSW: return 2;
    case ZYDIS_MNEMONIC_MOVSD:
    case ZYDIS_MNEMONIC_STOSD:
    case ZYDIS_MNEMONIC_LODSD:
    case ZYDIS_MNEMONIC_SCASD:
    case ZYDIS_MNEMONIC_CMPSD: return 4;
    case ZYDIS_MNEMONIC_MOVSQ:
    case ZYDIS_MNEMONIC_STOSQ:
    case ZYDIS_MNEMONIC_LODSQ:
    case ZYDIS_MNEMONIC_SCASQ:
    case ZYDIS_MNEMONIC_CMPSQ: return 8;
    default: return 0;
    }
}

static hfn_x86_data_kind get_kind(hfn_x86_mode mode, const ZydisDecodedInstruction *in,
                                  const ZydisDecodedOperand *operands, hfn_x86_data *out)
{
    bool whole = has_whole_operands(mode, in, operands);

    if (in->meta.category == ZYDIS_CATEGORY_NOP || in->meta.category == ZYDIS_CATEGORY_WIDENOP ||
        in->meta.category == ZYDIS_CATEGORY_PREFETCH) {
        return HFN_X86_MOVES_NOTHING;
    }
    if (in->meta.category == ZYDIS_CATEGORY_STRINGOP) {
        return HFN_X86_REPEATS;
    }
    if (!whole) {
        return copies_part(in) ? HFN_X86_COPIES_PART : HFN_X86_COMPUTES;
    }
    if (copies_words(in)) {
        return HFN_X86_COPIES;
    }
    if (in->mnemonic == ZYDIS_MNEMONIC_XCHG) {
        return HFN_X86_EXCHANGES;
    }
    if (in->meta.category == ZYDIS_CATEGORY_CMOV) {
        return HFN_X86_SELECTS;
    }
    if (adds_constant(in, operands, &out->addend)) {
        return HFN_X86_ADDS;
    }
    if (in->mnemonic == ZYDIS_MNEMONIC_ADD) {
        return HFN_X86_SUMS;
    }
    return in->mnemonic == ZYDIS_MNEMONIC_SUB ? HFN_X86_SUBTRACTS : HFN_X86_COMPUTES;
}

static bool selects_word(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *operands)
{
    bool tests_bit = in->mnemonic == ZYDIS_MNEMONIC_BT || in->mnemonic == ZYDIS_MNEMONIC_BTS ||
                     in->mnemonic == ZYDIS_MNEMONIC_BTR || in->mnemonic == ZYDIS_MNEMONIC_BTC;

    return tests_bit && operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
}

/* A vector register is wholly replaced only by instructions that zero its other words (Intel SDM
 * vol. 2, MOVQ, MOVUPS; VEX and EVEX encodings). */
static bool replaces_vector(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *operands)
{
    return in->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
           in->mnemonic == ZYDIS_MNEMONIC_MOVQ || in->mnemonic == ZYDIS_MNEMONIC_MOVD ||
           operands[1].size >= 128;
}

void hfn_x86_translate_data(hfn_x86_mode mode, const ZydisDecodedInstruction *in,
                            const ZydisDecodedOperand *operands, hfn_x86_data *out)
{
    for (uint32_t i = 0; i < in->operand_count; i++) {
        if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY) {
            add_memory(&operands[i], out);
        } else if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER) {
            add_register(&operands[i], out);
        }
    }
    out->kind = (uint8_t)get_kind(mode, in, operands, out);
    out->element_bytes = get_element_bytes(in);
    out->counted = out->kind == HFN_X86_REPEATS &&
                   (in->attributes &
                    (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)) != 0;
    out->backwards = in->mnemonic == ZYDIS_MNEMONIC_STD;
    out->searches = in->operand_count_visible >= 2 && selects_word(in, operands);
    if (in->operand_count_visible < 2) {
        return;
    }
    if (out->vector_writes && !(operands[0].actions & ZYDIS_OPERAND_ACTION_MASK_READ) &&
        replaces_vector(in, operands)) {
        out->vector_kills = out->vector_writes;
    }
    if (ignores_operands(in, operands)) {
        out->reads = 0;
        out->vector_reads = 0;
        out->vector_kills = out->vector_writes;
        out->kind = HFN_X86_COMPUTES;
    }
}
