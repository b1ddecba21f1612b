/* SPDX-License-Identifier: MIT */
/*
 * Translates Zydis' results into the terms of arch.h and decode.h.  Only this file and
 * decode_data.c include Zydis.  It makes no decisions: other files decide what a jump or a flag
 * means for a hook.
 */
#include "arch/x86/decode.h"

#include "arch/x86/decode_common.h"
#include "arch/x86/decode_data.h"

#include <string.h>

#define MAX_OPERAND_BYTES 64u /* of instructions that do not save or restore state */

static ZydisDecoder make_decoder(hfn_x86_mode mode)
{
    ZydisDecoder decoder;

    if (mode == HFN_X86_32) {
        ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32);
    } else {
        ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    }
    return decoder;
}

static bool zydis_decode(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size,
                         ZydisDecoderContext *context, ZydisDecodedInstruction *out)
{
    ZydisDecoder decoder = make_decoder(mode);

    return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, context, bytes, size, out));
}

static hfn_flow get_flow(const ZydisDecodedInstruction *in)
{
    bool direct = (in->attributes & ZYDIS_ATTRIB_IS_RELATIVE) && in->raw.imm[0].is_relative;

    switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_HLT:
    case ZYDIS_MNEMONIC_INT3: return HFN_FLOW_STOP;
    case ZYDIS_MNEMONIC_XBEGIN: return HFN_FLOW_JUMP_IF;
    case ZYDIS_MNEMONIC_XABORT: return HFN_FLOW_NEXT;
    default: break;
    }
    switch (in->meta.category) {
    case ZYDIS_CATEGORY_CALL: return direct ? HFN_FLOW_CALL : HFN_FLOW_CALL_INDIRECT;
    case ZYDIS_CATEGORY_COND_BR: return direct ? HFN_FLOW_JUMP_IF : HFN_FLOW_NEXT; /* xend */
    case ZYDIS_CATEGORY_UNCOND_BR: return direct ? HFN_FLOW_JUMP : HFN_FLOW_JUMP_INDIRECT;
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_SYSRET: return HFN_FLOW_RETURN;
    default: return HFN_FLOW_NEXT;
    }
}

static bool is_rip_relative(const ZydisDecodedInstruction *in)
{
    return in->machine_mode == ZYDIS_MACHINE_MODE_LONG_64 &&
           (in->attributes & ZYDIS_ATTRIB_HAS_MODRM) && in->raw.modrm.mod == 0 &&
           in->raw.modrm.rm == 5;
}

static bool has_sib(const ZydisDecodedInstruction *in)
{
    return (in->attributes & ZYDIS_ATTRIB_HAS_SIB) != 0;
}

static bool has_index(const ZydisDecodedInstruction *in)
{
    return has_sib(in) && (in->raw.sib.index != 4 || in->raw.rex.X != 0);
}

/* Does the instruction have a memory operand without a base register? */
static bool is_absolute(const ZydisDecodedInstruction *in)
{
    bool has_modrm = (in->attributes & ZYDIS_ATTRIB_HAS_MODRM) != 0;
    bool has_base = has_modrm && (in->raw.modrm.mod != 0 ||
                                  (has_sib(in) ? in->raw.sib.base : in->raw.modrm.rm) != 5);

    return in->raw.disp.size == 32 && !has_base && !is_rip_relative(in);
}

static void set_relative(hfn_instruction *out, uint32_t at, uint32_t bits, uint64_t target)
{
    out->relative_at = (uint8_t)at;
    out->relative_bytes = (uint8_t)(bits / 8);
    out->target = target;
}

/* Fill in the PC-relative field, or the address that an immediate or a lea may contain. */
static void translate_target(const ZydisDecodedInstruction *in, uint64_t rva, uint64_t link_base,
                             hfn_instruction *out)
{
    uint64_t next = rva + in->length;
    bool is_lea = in->mnemonic == ZYDIS_MNEMONIC_LEA;

    out->absolute_at = is_absolute(in) ? in->raw.disp.offset : 0;
    if ((in->attributes & ZYDIS_ATTRIB_IS_RELATIVE) && in->raw.imm[0].is_relative) {
        set_relative(out, in->raw.imm[0].offset, in->raw.imm[0].size,
                     next + (uint64_t)in->raw.imm[0].value.s);
    } else if (is_rip_relative(in)) {
        set_relative(out, in->raw.disp.offset, in->raw.disp.size,
                     next + (uint64_t)in->raw.disp.value);
        out->takes_address = is_lea;
        out->reads_memory_relative = !is_lea;
    } else if (in->raw.imm[0].size >= 32) {
        out->takes_address = true;
        out->target = (in->raw.imm[0].size == 32 ? (uint64_t)(int32_t)in->raw.imm[0].value.u
                                                 : in->raw.imm[0].value.u) -
                      link_base;
    } else if (is_lea && in->raw.disp.size == 32) {
        out->takes_address = true;
        out->from_register = !(in->raw.modrm.mod == 0 && in->raw.modrm.rm == 5);
        out->target = (uint64_t)in->raw.disp.value - link_base;
    }
    if (in->machine_mode != ZYDIS_MACHINE_MODE_LEGACY_32) {
        return;
    }
    if (in->raw.modrm.mod == 2 && !has_sib(in) && !out->takes_address &&
        (out->flow == HFN_FLOW_JUMP_INDIRECT || out->flow == HFN_FLOW_NEXT)) {
        out->from_register = true;
        out->target = (uint64_t)in->raw.disp.value;
    }
    out->target = (uint32_t)out->target;
}

/* Is it padding by GNU as in 32-bit code, where not every CPU has a long nop: lea r, [r + 0] of any
 * length, or mov esi, esi (gas, i386_align_code)? */
static bool is_filler_32(const ZydisDecodedInstruction *in)
{
    uint8_t base = has_sib(in) ? in->raw.sib.base : in->raw.modrm.rm;

    if (in->machine_mode != ZYDIS_MACHINE_MODE_LEGACY_32 || in->raw.prefix_count > 0) {
        return false;
    }
    if (in->mnemonic == ZYDIS_MNEMONIC_MOV) {
        return in->opcode == 0x89 && in->raw.modrm.mod == 3 && in->raw.modrm.reg == 6 &&
               in->raw.modrm.rm == 6;
    }
    return in->mnemonic == ZYDIS_MNEMONIC_LEA && !has_index(in) && in->raw.modrm.reg == base &&
           in->raw.disp.value == 0 && !(in->raw.modrm.mod == 0 && base == 5);
}

bool hfn_x86_decode_fully(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size, uint64_t rva,
                          uint64_t link_base, hfn_instruction *out)
{
    ZydisDecodedInstruction in;

    if (!zydis_decode(mode, bytes, size, NULL, &in)) {
        return false;
    }
    memset(out, 0, sizeof *out);
    out->length = in.length;
    out->flow = (uint8_t)get_flow(&in);
    out->is_padding = in.mnemonic == ZYDIS_MNEMONIC_INT3 ||
                      (in.mnemonic == ZYDIS_MNEMONIC_NOP && in.raw.modrm.reg == 0) ||
                      is_filler_32(&in);
    out->is_landing_pad =
        in.mnemonic == ZYDIS_MNEMONIC_ENDBR64 || in.mnemonic == ZYDIS_MNEMONIC_ENDBR32;
    out->through_table =
        out->flow == HFN_FLOW_JUMP_INDIRECT && (in.raw.modrm.mod == 3 || has_index(&in));
    out->is_system = in.mnemonic == ZYDIS_MNEMONIC_SYSCALL ||
                     (in.mnemonic == ZYDIS_MNEMONIC_INT && in.raw.imm[0].value.u == 0x80) ||
                     in.mnemonic == ZYDIS_MNEMONIC_SYSENTER ||
                     in.mnemonic == ZYDIS_MNEMONIC_WRFSBASE ||
                     (mode == HFN_X86_32 && out->flow == HFN_FLOW_CALL_INDIRECT &&
                      bytes[0] == 0x65); /* the kernel's entry, in i386's thread block */
    translate_target(&in, rva, link_base, out);
    return true;
}

bool hfn_x86_decode(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size, uint64_t rva,
                    uint64_t link_base, hfn_instruction *out)
{
    return (mode == HFN_X86_64 && hfn_x86_decode_common(bytes, size, rva, link_base, out)) ||
           hfn_x86_decode_fully(mode, bytes, size, rva, link_base, out);
}

/* The number of the general register that contains reg, or HFN_X86_NO_REGISTER. */
uint8_t hfn_x86_get_register_number(ZydisRegister reg)
{
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

    if (reg == ZYDIS_REGISTER_RIP) {
        return HFN_X86_RIP;
    }
    if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15) {
        return HFN_X86_NO_REGISTER;
    }
    return (uint8_t)(whole - ZYDIS_REGISTER_RAX);
}

static uint32_t get_register_bit(ZydisRegister reg)
{
    uint8_t number = hfn_x86_get_register_number(reg);

    return number < 16 ? 1u << number : 0;
}

static void add_operand(const ZydisDecodedOperand *operand, hfn_x86_effects *out)
{
    if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY) {
        out->reads |= get_register_bit(operand->mem.base) | get_register_bit(operand->mem.index);
    } else if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER) {
        if (operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ) {
            out->reads |= get_register_bit(operand->reg.value);
        }
        if (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) {
            out->writes |= get_register_bit(operand->reg.value);
        }
    }
}

/* Is the new value of the first operand, a whole register, independent of its old value?  True
 * only for instructions that compilers use; others, such as bsf, may leave the register
 * unchanged. */
static bool replaces_register(const ZydisDecodedInstruction *in)
{
    switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_MOVZX:
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD:
    case ZYDIS_MNEMONIC_LEA:
    case ZYDIS_MNEMONIC_POP:
    case ZYDIS_MNEMONIC_MOVD:
    case ZYDIS_MNEMONIC_MOVQ:
    case ZYDIS_MNEMONIC_CVTTSD2SI:
    case ZYDIS_MNEMONIC_CVTTSS2SI:
    case ZYDIS_MNEMONIC_IMUL: return true;
    default: return false;
    }
}

/* xor r, r and sub r, r, which Zydis counts as reads. */
static bool zeroes_register(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *operands)
{
    return (in->mnemonic == ZYDIS_MNEMONIC_XOR || in->mnemonic == ZYDIS_MNEMONIC_SUB) &&
           operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
           operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
           operands[0].reg.value == operands[1].reg.value;
}

/* A write of 4 bytes clears the upper half (Intel SDM vol. 1, 3.4.1.1). */
static void translate_kills(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *operands,
                            hfn_x86_effects *out)
{
    const ZydisDecodedOperand *to = &operands[0];

    if (in->operand_count == 0 || to->type != ZYDIS_OPERAND_TYPE_REGISTER || to->size < 32) {
        return;
    }
    if (in->operand_count >= 2 && zeroes_register(in, operands)) {
        out->kills = get_register_bit(to->reg.value);
    } else if (to->actions == ZYDIS_OPERAND_ACTION_WRITE && replaces_register(in)) {
        out->kills = get_register_bit(to->reg.value) & ~out->reads;
    }
}

static bool is_opaque(const ZydisDecodedInstruction *in)
{
    switch (in->meta.category) {
    case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_SGX:
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_SYSRET:
    case ZYDIS_CATEGORY_SYSTEM:
    case ZYDIS_CATEGORY_UINTR:
    case ZYDIS_CATEGORY_VTX: return true;
    default:
        return in->mnemonic == ZYDIS_MNEMONIC_XBEGIN || in->mnemonic == ZYDIS_MNEMONIC_XABORT ||
               in->mnemonic == ZYDIS_MNEMONIC_XEND;
    }
}

/* Are the flags written in any case?  A shift by cl or a repeated compare may leave them
 * unchanged. */
static bool always_writes_flags(const ZydisDecodedInstruction *in)
{
    if (in->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)) {
        return false;
    }
    switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_SHL:
    case ZYDIS_MNEMONIC_SHR:
    case ZYDIS_MNEMONIC_SAR:
    case ZYDIS_MNEMONIC_ROL:
    case ZYDIS_MNEMONIC_ROR:
    case ZYDIS_MNEMONIC_RCL:
    case ZYDIS_MNEMONIC_RCR:
    case ZYDIS_MNEMONIC_SHLD:
    case ZYDIS_MNEMONIC_SHRD:
        if (in->opcode == 0xD0 || in->opcode == 0xD1) { /* by 1 */
            return true;
        }
        return in->raw.imm[0].size != 0 &&
               (in->raw.imm[0].value.u & (in->operand_width == 64 ? 63u : 31u)) != 0;
    default: return true;
    }
}

static void translate_flags(const ZydisDecodedInstruction *in, hfn_x86_effects *out)
{
    const ZydisAccessedFlags *flags = in->cpu_flags;

    if (!flags) {
        return;
    }
    out->flags_read = flags->tested & HFN_X86_ARITHMETIC_FLAGS;
    if (always_writes_flags(in)) {
        out->flags_written =
            (flags->modified | flags->set_0 | flags->set_1) & HFN_X86_ARITHMETIC_FLAGS;
    }
}

/* A general register or its low part, but not ah, bh, ch or dh, whose numbers are
 * those of sp, bp, si and di. */
static bool is_register(const ZydisDecodedOperand *operand)
{
    ZydisRegister reg = operand->reg.value;

    return operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
           hfn_x86_get_register_number(reg) != HFN_X86_NO_REGISTER &&
           (reg < ZYDIS_REGISTER_AH || reg > ZYDIS_REGISTER_BH);
}

static hfn_x86_shape get_move_shape(const ZydisDecodedOperand *source)
{
    if (source->type == ZYDIS_OPERAND_TYPE_MEMORY) {
        return HFN_X86_LOAD;
    }
    if (source->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        return HFN_X86_CONSTANT;
    }
    return is_register(source) ? HFN_X86_MOVE : HFN_X86_OTHER;
}

/* The shape of an instruction whose first operand is a general register. */
static hfn_x86_shape get_shape(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *source)
{
    bool long_mode = in->machine_mode == ZYDIS_MACHINE_MODE_LONG_64;
    bool whole = in->operand_width == (long_mode ? 64 : 32);
    ZydisRegister thread = long_mode ? ZYDIS_REGISTER_FS : ZYDIS_REGISTER_GS;
    bool has_immediate = source->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;

    if (in->meta.category == ZYDIS_CATEGORY_CMOV) {
        return HFN_X86_SELECT;
    }
    switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_MOVZX:
        return in->operand_width >= 32 ? get_move_shape(source) : HFN_X86_OTHER;
    case ZYDIS_MNEMONIC_MOVSXD:
        if (in->operand_width != 64) {
            return HFN_X86_OTHER;
        }
        return source->type == ZYDIS_OPERAND_TYPE_MEMORY ? HFN_X86_LOAD_SIGNED : HFN_X86_EXTEND;
    case ZYDIS_MNEMONIC_ADD:
        if (source->type == ZYDIS_OPERAND_TYPE_MEMORY) {
            return whole ? HFN_X86_ADD_LOAD : HFN_X86_OTHER;
        }
        return is_register(source) && whole ? HFN_X86_ADD : HFN_X86_OTHER;
    case ZYDIS_MNEMONIC_XOR: /* glibc's pointer guard: fs:0x30, gs:0x18 */
        return source->type == ZYDIS_OPERAND_TYPE_MEMORY && source->mem.segment == thread
                   ? HFN_X86_SELECT
                   : HFN_X86_OTHER;
    case ZYDIS_MNEMONIC_LEA: return whole ? HFN_X86_LEA : HFN_X86_OTHER;
    case ZYDIS_MNEMONIC_AND: return has_immediate ? HFN_X86_AND : HFN_X86_OTHER;
    case ZYDIS_MNEMONIC_CMP: return has_immediate ? HFN_X86_COMPARE : HFN_X86_OTHER;
    default: return HFN_X86_OTHER;
    }
}

static void translate_memory(const ZydisDecodedOperand *operand, uint64_t next_rva,
                             hfn_x86_effects *out)
{
    if (operand->type != ZYDIS_OPERAND_TYPE_MEMORY) {
        return;
    }
    out->has_memory = true;
    out->base = hfn_x86_get_register_number(operand->mem.base);
    out->index = hfn_x86_get_register_number(operand->mem.index);
    if (operand->mem.index != ZYDIS_REGISTER_NONE && out->index == HFN_X86_NO_REGISTER) {
        out->index = HFN_X86_VECTOR_INDEX;
    }
    out->memory_bytes =
        operand->mem.type == ZYDIS_MEMOP_TYPE_AGEN ? 0 : (uint16_t)(operand->size / 8);
    out->scale = operand->mem.scale;
    out->displacement = operand->mem.disp.has_displacement ? operand->mem.disp.value : 0;
    if (out->base == HFN_X86_RIP) {
        out->displacement += (int64_t)next_rva;
    }
}

static uint8_t get_stored_register(const ZydisDecodedInstruction *in,
                                   const ZydisDecodedOperand *operands)
{
    const ZydisDecodedOperand *from = &operands[in->mnemonic == ZYDIS_MNEMONIC_PUSH ? 0 : 1];
    bool to_memory = in->operand_count_visible >= 2 &&
                     operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
                     (operands[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE);

    if ((!to_memory && in->mnemonic != ZYDIS_MNEMONIC_PUSH) || !is_register(from)) {
        return HFN_X86_NO_REGISTER;
    }
    return hfn_x86_get_register_number(from->reg.value);
}

static void translate_shape(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *operands,
                            uint64_t rva, hfn_x86_effects *out)
{
    out->dest = out->src = out->base = out->index = out->stored = HFN_X86_NO_REGISTER;
    for (uint32_t i = 0; i < in->operand_count_visible; i++) {
        translate_memory(&operands[i], rva + in->length, out);
    }
    if (in->operand_count_visible >= 1 && is_register(&operands[0])) {
        out->dest = hfn_x86_get_register_number(operands[0].reg.value);
    }
    if (in->mnemonic == ZYDIS_MNEMONIC_JMP) {
        out->shape = HFN_X86_JUMP;
    }
    out->stored = get_stored_register(in, operands);
    if (in->mnemonic == ZYDIS_MNEMONIC_POP) {
        out->shape = HFN_X86_SELECT;
    }
    if (in->mnemonic == ZYDIS_MNEMONIC_CDQE) {
        out->shape = HFN_X86_EXTEND;
        out->dest = out->src = 0; /* rax */
    }
    if (in->operand_count_visible < 2 || out->dest == HFN_X86_NO_REGISTER) {
        return;
    }
    const ZydisDecodedOperand *source = &operands[1];
    out->width = (uint8_t)(source->size / 8);
    if (is_register(source)) {
        out->src = hfn_x86_get_register_number(source->reg.value);
    }
    if (source->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        out->immediate = source->imm.value.u;
        out->width = (uint8_t)(operands[0].size / 8);
    }
    out->shape = (uint8_t)get_shape(in, source);
}

bool hfn_x86_decode_effects(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size, uint64_t rva,
                            hfn_x86_effects *out)
{
    ZydisDecoder decoder = make_decoder(mode);
    ZydisDecoderContext context;
    ZydisDecodedInstruction in;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

    if (!zydis_decode(mode, bytes, size, &context, &in)) {
        return false;
    }
    if (!ZYAN_SUCCESS(
            ZydisDecoderDecodeOperands(&decoder, &context, &in, operands, in.operand_count))) {
        return false;
    }
    memset(out, 0, sizeof *out);
    out->length = in.length;
    for (uint32_t i = 0; i < in.operand_count; i++) {
        add_operand(&operands[i], out);
    }
    translate_kills(&in, operands, out);
    out->opaque = is_opaque(&in);
    translate_flags(&in, out);
    translate_shape(&in, operands, rva, out);
    hfn_x86_translate_data(mode, &in, operands, &out->data);
    return true;
}

/* A bit test by a register can access memory beyond its operand; compilers emit none on memory. */
uint32_t hfn_x86_get_touched_bytes(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size)
{
    ZydisDecoder decoder = make_decoder(mode);
    ZydisDecoderContext context;
    ZydisDecodedInstruction in;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    uint32_t max_bytes = 0;

    if (!zydis_decode(mode, bytes, size, &context, &in) ||
        !ZYAN_SUCCESS(
            ZydisDecoderDecodeOperands(&decoder, &context, &in, operands, in.operand_count))) {
        return MAX_OPERAND_BYTES;
    }
    for (uint32_t i = 0; i < in.operand_count; i++) {
        if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY && operands[i].size / 8 > max_bytes) {
            max_bytes = operands[i].size / 8u;
        }
    }
    return max_bytes ? max_bytes : MAX_OPERAND_BYTES;
}
