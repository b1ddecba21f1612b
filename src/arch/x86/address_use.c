/* SPDX-License-Identifier: MIT */
/*
 * Which instructions may fault, and whether code uses an address as a number.
 *
 * The opcodes of instructions that cannot fault are listed (Intel SDM vol. 2, appendix A): moves
 * and arithmetic of registers, direct branches, and accesses by the stack pointer.  All others may.
 *
 * An address is followed along straight-line code, through registers and one variable of the
 * frame, up to a comparison or arithmetic.
 */
#include "arch/x86/address_use.h"

#include <string.h>

enum { FOLLOWED_MAX = 32, CONSUMER_MAX = 4, RBP = 5, CARRY_FLAG = 1 };

/* ---- Faults. */

/* Opcodes [first, last] that cannot fault; with_modrm: only if the operand is a register, or is
 * addressed by the stack pointer. */
typedef struct opcode_range {
    uint8_t first, last;
    bool with_modrm;
} opcode_range;

static const opcode_range one_byte[] = {
    { 0x50, 0x5F, false }, { 0x63, 0x63, true },  { 0x68, 0x68, false }, { 0x69, 0x69, true },
    { 0x6A, 0x6A, false }, { 0x6B, 0x6B, true },  { 0x70, 0x7F, false }, { 0x80, 0x81, true },
    { 0x83, 0x8B, true },  { 0x90, 0x99, false }, { 0xA8, 0xA9, false }, { 0xB0, 0xBF, false },
    { 0xC0, 0xC1, true },  { 0xC2, 0xC3, false }, { 0xC6, 0xC7, true },  { 0xC9, 0xC9, false },
    { 0xD0, 0xD3, true },  { 0xE0, 0xE3, false }, { 0xE8, 0xE9, false }, { 0xEB, 0xEB, false },
};

/* After 0F: moves and logic of vectors, cmov, jcc, setcc, bit operations, widening moves. */
static const opcode_range two_bytes[] = {
    { 0x10, 0x11, true }, { 0x14, 0x17, true }, { 0x28, 0x29, true }, { 0x40, 0x4F, true },
    { 0x54, 0x57, true }, { 0x60, 0x6F, true }, { 0x7E, 0x7F, true }, { 0x80, 0x8F, false },
    { 0x90, 0x9F, true }, { 0xA3, 0xA5, true }, { 0xAB, 0xAD, true }, { 0xAF, 0xAF, true },
    { 0xB3, 0xB3, true }, { 0xB6, 0xB7, true }, { 0xBA, 0xBF, true }, { 0xC8, 0xCF, false },
    { 0xD6, 0xD6, true }, { 0xEF, 0xEF, true },
};

/* The registers that address the stack. */
typedef enum frame_bases { NO_FRAME = 0, STACK_POINTER, FRAME_POINTER_TOO } frame_bases;

/* Whether ModRM names a register, or memory of the stack. */
static bool is_safe_operand(const uint8_t *modrm, uint64_t size, frame_bases bases)
{
    if (size == 0) {
        return false;
    }
    if (*modrm >> 6 == 3) {
        return true;
    }
    if ((*modrm & 7) == HFN_X86_RSP) { /* SIB: no index, base rsp */
        return bases != NO_FRAME && size > 1 && modrm[1] == 0x24;
    }
    return bases == FRAME_POINTER_TOO && (*modrm & 7) == RBP && *modrm >> 6 != 0;
}

static bool is_listed(const opcode_range *ranges, size_t count, const uint8_t *opcode,
                      uint64_t size, frame_bases bases)
{
    for (size_t i = 0; i < count; i++) {
        if (*opcode >= ranges[i].first && *opcode <= ranges[i].last) {
            return !ranges[i].with_modrm || is_safe_operand(opcode + 1, size - 1, bases);
        }
    }
    return false;
}

/* Groups 3, 4 and 5: not test, not, neg, mul, imul, inc, dec, push and jmp of a register. */
static bool is_safe_group(const uint8_t *opcode, uint64_t size, frame_bases bases)
{
    static const uint8_t allowed[] = {
        [0xF6 & 15] = 0x3F, [0xF7 & 15] = 0x3F, [0xFE & 15] = 3, [0xFF & 15] = 0x53
    };

    return size > 1 && is_safe_operand(opcode + 1, size - 1, bases) &&
           (allowed[*opcode & 15] >> (opcode[1] >> 3 & 7) & 1);
}

/* size is the length of the instruction. */
static bool may_fault(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size, frame_bases bases)
{
    while (size > 1 && memchr("\x66\xF2\xF3", *bytes, 3)) {
        bytes++, size--;
    }
    if (mode == HFN_X86_64 && size > 1 && (*bytes & 0xF0) == 0x40) {
        if (*bytes & 3) { /* REX.B, REX.X: r8 to r15 form the address */
            bases = NO_FRAME;
        }
        bytes++, size--;
    }
    if (*bytes == 0x8D) { /* lea */
        return false;
    }
    if (*bytes == 0x0F && size > 1) {
        bool is_nop = bytes[1] == 0x1F || (bytes[1] == 0x1E && size > 2 && bytes[2] >> 6 == 3);
        return !is_nop && !is_listed(two_bytes, sizeof two_bytes / sizeof *two_bytes, bytes + 1,
                                     size - 1, bases);
    }
    if (*bytes < 0x40) { /* arithmetic: opcodes 4 and 5 of eight have a constant */
        return (*bytes & 7) > 5 ||
               ((*bytes & 7) < 4 && !is_safe_operand(bytes + 1, size - 1, bases));
    }
    if (*bytes < 0x50) { /* i386: inc, dec */
        return mode == HFN_X86_64;
    }
    if (*bytes == 0xC7 && size > 1 && bytes[1] == 0xF8) { /* xbegin */
        return true;
    }
    if (*bytes == 0xF6 || *bytes == 0xF7 || *bytes >= 0xFE) {
        return !is_safe_group(bytes, size, bases);
    }
    return !is_listed(one_byte, sizeof one_byte / sizeof *one_byte, bytes, size, bases);
}

/* mov rbp, rsp */
static bool makes_frame(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size)
{
    bytes += mode == HFN_X86_64;
    return size == (mode == HFN_X86_64 ? 3 : 2) &&
           (memcmp(bytes, "\x89\xE5", 2) == 0 || memcmp(bytes, "\x8B\xEC", 2) == 0);
}

uint32_t hfn_x86_find_fault(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size,
                            uint32_t byte_count)
{
    frame_bases bases = STACK_POINTER;
    hfn_instruction in;

    for (uint32_t at = 0; at < byte_count; at += in.length) {
        if (!hfn_x86_decode(mode, bytes + at, size - at, at, 0, &in) ||
            may_fault(mode, bytes + at, in.length, bases)) {
            return at;
        }
        if (makes_frame(mode, bytes + at, in.length)) {
            bases = FRAME_POINTER_TOO;
        }
    }
    return UINT32_MAX;
}

/* ---- Addresses as numbers. */

/* Where the address is. */
typedef struct place {
    uint32_t registers;
    uint64_t vectors; /* compilers join two addresses in one to store them */
    bool in_slot;     /* a variable of the frame */
    uint8_t slot_base;
    int64_t slot;
} place;

static bool is_slot(const place *p, const hfn_x86_effects *e)
{
    return p->in_slot && e->has_memory && e->base == p->slot_base &&
           e->index == HFN_X86_NO_REGISTER && e->displacement == p->slot;
}

/* Whether the first reader of the flags asks for an order: above, below. */
static hfn_address_use get_comparison(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size)
{
    hfn_x86_effects e;

    for (int i = 0; i < CONSUMER_MAX && hfn_x86_decode_effects(mode, bytes, size, 0, &e); i++) {
        if (e.flags_read) {
            return e.flags_read & CARRY_FLAG ? HFN_ADDRESS_ORDERED : HFN_ADDRESS_EQUATED;
        }
        if (e.length >= size) {
            break;
        }
        bytes += e.length;
        size -= e.length;
    }
    return HFN_ADDRESS_EQUATED;
}

/* Whether a copy of the address takes part in arithmetic or in a comparison.  What is subtracted
 * from the address is a base of code, so the result is an offset. */
static bool computes_with(const place *p, const hfn_x86_effects *e)
{
    bool reads = (e->data.reads & p->registers) ||
                 (is_slot(p, e) && e->data.loads && e->shape != HFN_X86_LOAD);
    bool adds = e->shape == HFN_X86_LEA && e->base < 32 && (p->registers >> e->base & 1);
    bool is_offset = e->data.kind == HFN_X86_SUBTRACTS && (e->writes & p->registers);

    return adds || (reads && e->flags_written && e->data.kind != HFN_X86_COPIES && !is_offset);
}

/* Whether a copy of the address is stored in a static variable. */
static bool stores_address(hfn_x86_mode mode, const place *p, const hfn_x86_effects *e)
{
    bool is_static = e->base == HFN_X86_RIP || e->base == HFN_X86_NO_REGISTER ||
                     (mode == HFN_X86_32 && e->base != HFN_X86_RSP && e->base != RBP);

    bool is_copy = e->stored < 32 ? (p->registers >> e->stored & 1) != 0
                                  : (e->data.stores && (e->data.vector_reads & p->vectors));

    return is_copy && is_static && e->index == HFN_X86_NO_REGISTER;
}

static void follow_copies(place *p, const hfn_x86_effects *e)
{
    bool copies = (e->shape == HFN_X86_MOVE && e->src < 32 && (p->registers >> e->src & 1)) ||
                  (e->shape == HFN_X86_LOAD && is_slot(p, e));

    if (e->stored < 32 && (p->registers >> e->stored & 1) &&
        (e->base == HFN_X86_RSP || e->base == RBP) && e->index == HFN_X86_NO_REGISTER) {
        p->in_slot = true;
        p->slot_base = e->base;
        p->slot = e->displacement;
    }
    if ((e->data.reads & p->registers) || (e->data.vector_reads & p->vectors)) {
        p->vectors |= e->data.vector_writes;
    }
    p->registers &= ~e->writes;
    if (copies && e->dest < 32) {
        p->registers |= 1u << e->dest;
    }
}

/* mov of a constant to a static variable */
static bool is_static_constant(hfn_x86_mode mode, const uint8_t *bytes, const hfn_x86_effects *e)
{
    bool wide = mode == HFN_X86_64 && *bytes == 0x48;

    return bytes[wide] == 0xC7 && e->has_memory && e->index == HFN_X86_NO_REGISTER &&
           (e->base == HFN_X86_RIP || e->base == HFN_X86_NO_REGISTER);
}

/* The registers that a call keeps (System V psABIs). */
static uint32_t get_kept(hfn_x86_mode mode)
{
    return mode == HFN_X86_64 ? 0xF028u : 0xE8u;
}

hfn_address_use hfn_x86_get_address_use(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size,
                                        uint64_t rva)
{
    place p = { .registers = 0 };
    uint64_t at = 0;
    hfn_instruction in;
    hfn_x86_effects e;

    for (int i = 0; i < FOLLOWED_MAX && at < size; i++, at += in.length) {
        if (!hfn_x86_decode(mode, bytes + at, size - at, rva + at, 0, &in) || hfn_ends_path(&in) ||
            !hfn_x86_decode_effects(mode, bytes + at, size - at, rva + at, &e)) {
            return HFN_ADDRESS_PASSED;
        }
        bool first = i == 0;
        if (first ? e.flags_written && e.shape != HFN_X86_LEA : computes_with(&p, &e)) {
            return e.writes ? HFN_ADDRESS_ORDERED
                            : get_comparison(mode, bytes + at + in.length, size - at - in.length);
        }
        if (first ? is_static_constant(mode, bytes + at, &e) : stores_address(mode, &p, &e)) {
            return HFN_ADDRESS_STORED;
        }
        if (first) {
            p.registers = e.writes & ~(1u << HFN_X86_RSP);
        } else if (in.flow == HFN_FLOW_CALL || in.flow == HFN_FLOW_CALL_INDIRECT) {
            p.registers &= get_kept(mode);
            p.vectors = 0;
        } else {
            follow_copies(&p, &e);
        }
        if (p.registers == 0 && p.vectors == 0 && !p.in_slot) {
            break;
        }
    }
    return HFN_ADDRESS_PASSED;
}

/* ---- Signal contexts. */

/* Offsets of REG_RIP and REG_EIP (Linux, ucontext_t of each psABI). */
enum { RIP_AT = 0xA8, EIP_AT = 0x4C, THIRD_ARGUMENT_AT = 16, RDX = 2, READ_MAX = 128 };

/* Whether a ModRM byte is followed by the offset, so that decoding is worthwhile. */
static bool has_offset(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size)
{
    const uint8_t offset[4] = { mode == HFN_X86_64 ? RIP_AT : EIP_AT };
    uint64_t wanted = mode == HFN_X86_64 ? 4 : 1;

    for (uint64_t at = 1; at + 1 + wanted <= size; at++) {
        if (bytes[at] >> 6 == (mode == HFN_X86_64 ? 2 : 1) &&
            memcmp(bytes + at + 1, offset, wanted) == 0) {
            return true;
        }
    }
    return false;
}

/* i386: the third argument is on the stack; the depth of the stack is not followed. */
static bool loads_argument(hfn_x86_mode mode, const hfn_x86_effects *e)
{
    return mode == HFN_X86_32 && e->shape == HFN_X86_LOAD &&
           (e->base == HFN_X86_RSP || (e->base == RBP && e->displacement == THIRD_ARGUMENT_AT));
}

/* The third argument of a handler is followed through the code in the order of its addresses. */
bool hfn_x86_reads_context(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size)
{
    place p = { .registers = mode == HFN_X86_64 ? 1u << RDX : 0 };
    hfn_instruction in;
    hfn_x86_effects e;
    uint64_t at = 0;

    if (!has_offset(mode, bytes, size)) {
        return false;
    }
    for (int i = 0; i < READ_MAX && at < size; i++, at += in.length) {
        if (!hfn_x86_decode(mode, bytes + at, size - at, 0, 0, &in) ||
            !hfn_x86_decode_effects(mode, bytes + at, size - at, 0, &e)) {
            return false;
        }
        if (e.has_memory && e.base < 32 && (p.registers >> e.base & 1) &&
            e.displacement == (mode == HFN_X86_64 ? RIP_AT : EIP_AT)) {
            return true;
        }
        if (in.flow == HFN_FLOW_CALL || in.flow == HFN_FLOW_CALL_INDIRECT) {
            p.registers &= get_kept(mode);
        } else {
            follow_copies(&p, &e);
        }
        if (loads_argument(mode, &e) && e.dest < 32) {
            p.registers |= 1u << e.dest;
        }
    }
    return false;
}
