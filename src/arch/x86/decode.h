/* SPDX-License-Identifier: MIT */
/* Decodes x86 instructions of 64-bit and 32-bit code: the decode call of arch.h, and the effects
 * (registers, flags, shape) that only entries and jump tables need. */
#ifndef HFN_ARCH_X86_DECODE_H
#define HFN_ARCH_X86_DECODE_H

#include "arch/arch.h"

/* The instruction set of the bytes. */
typedef enum hfn_x86_mode { HFN_X86_64 = 0, HFN_X86_32 } hfn_x86_mode;

/* decode of arch.h: hfn_x86_decode_common if it knows the instruction, else
 * hfn_x86_decode_fully. */
bool hfn_x86_decode(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size, uint64_t rva,
                    uint64_t link_base, hfn_instruction *out);

/* The same result from Zydis, for every instruction. */
bool hfn_x86_decode_fully(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size, uint64_t rva,
                          uint64_t link_base, hfn_instruction *out);

/* Shapes of instructions from which compilers build jumps through tables. */
typedef enum hfn_x86_shape {
    HFN_X86_OTHER = 0,
    HFN_X86_MOVE,   /* mov dest, src: 4 or 8 bytes; movzx: 1 or 2                             */
    HFN_X86_LOAD,   /* mov or movzx dest, [memory] of width bytes                             */
    HFN_X86_EXTEND, /* movsxd dest, src; cdqe                                                 */
    HFN_X86_LOAD_SIGNED, /* movsxd dest, dword [memory]                                        */
    HFN_X86_CONSTANT,    /* mov dest, immediate                                                   */
    HFN_X86_ADD,      /* add dest, src                                                          */
    HFN_X86_ADD_LOAD, /* add dest, [memory] of a pointer's width                                */
    HFN_X86_LEA,      /* lea dest, [memory]                                                     */
    HFN_X86_AND,      /* and dest, immediate                                                    */
    HFN_X86_COMPARE,  /* cmp dest, immediate                                                    */
    HFN_X86_SELECT,   /* cmovcc, pop, xor with glibc's pointer guard: dest becomes a pointer     */
    HFN_X86_JUMP      /* jmp dest, or jmp [memory]                                              */
} hfn_x86_shape;

#define HFN_X86_NO_REGISTER 0xFF
#define HFN_X86_RIP 0xFE
#define HFN_X86_VECTOR_INDEX 0xFD

/* How an instruction moves data. */
typedef enum hfn_x86_data_kind {
    HFN_X86_COMPUTES = 0, /* its results depend on all that it reads                     */
    HFN_X86_COPIES,       /* it writes what it reads, in whole words                     */
    HFN_X86_COPIES_PART,  /* it writes a part of what it reads, extended                 */
    HFN_X86_EXCHANGES,    /* xchg                                                        */
    HFN_X86_SELECTS,      /* cmovcc: writes one of two values                            */
    HFN_X86_ADDS,         /* add, sub, inc or dec of a constant (addend)                 */
    HFN_X86_SUMS,         /* add of a register or of memory                              */
    HFN_X86_SUBTRACTS,    /* sub of a register or of memory                              */
    HFN_X86_REPEATS,      /* movs, stos, lods, scas, cmps: accesses memory by rsi or rdi */
    HFN_X86_MOVES_NOTHING /* nop, prefetch                                               */
} hfn_x86_data_kind;

/* The data that an instruction reads and writes.  Bits of vectors: xmm0 to xmm31 with their wider
 * forms, then all registers that are neither vectors nor general. */
typedef struct hfn_x86_data {
    uint8_t kind;        /* hfn_x86_data_kind                                        */
    uint32_t reads;      /* general registers, except those that form an address     */
    uint32_t low_reads;  /* subset of reads: only the lowest byte is read            */
    uint32_t partial;    /* general registers of which bits remain                   */
    uint32_t low_writes; /* subset of partial: the lowest byte is replaced           */
    uint64_t vector_reads, vector_writes, vector_kills; /* kills: wholly replaced             */
    bool loads, stores;    /* by the visible memory operand                            */
    uint32_t hidden_bases; /* registers, not rsp, that address further memory          */
    uint8_t element_bytes; /* REPEATS: of one element                                  */
    bool counted;          /* REPEATS: rcx is the number of elements                   */
    bool backwards;        /* std: the direction of REPEATS is unknown from here on    */
    bool searches;         /* bt and its like: a register selects the accessed word    */
    int64_t addend;
} hfn_x86_data;

#define HFN_X86_VECTORS 33 /* bits of the masks above */

/* What an instruction does to general registers (bit n: register n, rsp is 4), to the arithmetic
 * flags (bits of EFLAGS), and with which operands. */
typedef struct hfn_x86_effects {
    uint8_t length;
    uint8_t shape;              /* hfn_x86_shape                                        */
    uint8_t width;              /* of the source, in bytes                              */
    uint8_t dest, src;          /* register numbers, HFN_X86_NO_REGISTER                */
    uint8_t base, index, scale; /* of the memory operand; base may be HFN_X86_RIP,
                                 * index HFN_X86_VECTOR_INDEX                       */
    uint8_t stored;             /* the register whose whole value is written to memory  */
    uint16_t memory_bytes;      /* of the memory operand; 0 for lea                     */
    bool has_memory;
    int64_t displacement; /* of the memory operand; with base RIP, the target's RVA */
    uint64_t immediate;   /* sign-extended                                        */
    uint32_t reads, writes;
    uint32_t kills; /* subset of writes: always, all 64 bits, independent of the old value */
    bool opaque;    /* enters the kernel or a transaction: further registers may change */
    uint32_t flags_read, flags_written; /* written: always, to a defined value      */
    hfn_x86_data data;
} hfn_x86_effects;

bool hfn_x86_decode_effects(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size, uint64_t rva,
                            hfn_x86_effects *out);

/* touched_bytes of arch.h. */
uint32_t hfn_x86_get_touched_bytes(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size);

#define HFN_X86_RSP 4
/* CF PF ZF SF OF (Intel SDM vol. 1, 3.4.3.1).  Without AF, which only decimal arithmetic reads. */
#define HFN_X86_ARITHMETIC_FLAGS 0x8C5u

#endif
