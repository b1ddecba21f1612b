/* SPDX-License-Identifier: MIT */
/*
 * The contract of a CPU folder: decode instructions, move a prologue to another address, follow the
 * stack, emit stubs (arch/stub.h).
 *
 * Each CPU has two tables of functions.  hfn_arch needs a decoder; the static part of the pipeline
 * calls it, on any host and for the image of any CPU, since its functions see bytes only.
 * hfn_patching needs no decoder; the plan and the hooks call it.  No function of either table
 * touches the running process, keeps state or allocates memory, so any thread may call any of them.
 *
 * Common parameters: `bytes` are `size` bytes of code whose first byte has the address `rva`,
 * relative to the image base.  Offsets count from the first of these bytes.
 */
#ifndef HFN_ARCH_ARCH_H
#define HFN_ARCH_ARCH_H

#include "arch/stack_value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Instructions. */

/* What one instruction does to control flow. */
typedef enum hfn_flow {
    HFN_FLOW_NEXT = 0, /* continues at the next instruction */
    HFN_FLOW_CALL,     /* direct call */
    HFN_FLOW_CALL_INDIRECT,
    HFN_FLOW_JUMP,    /* direct, unconditional */
    HFN_FLOW_JUMP_IF, /* direct, conditional (jcc, loop, jrcxz; cbz, tbz, b.cond) */
    HFN_FLOW_JUMP_INDIRECT,
    HFN_FLOW_RETURN,
    HFN_FLOW_STOP /* execution does not continue: ud2, hlt, int3; udf, brk */
} hfn_flow;

/* The minimal decode, cheap enough to run over all code of an image. */
typedef struct hfn_instruction {
    uint8_t length;             /* bytes, never 0 */
    uint8_t flow;               /* hfn_flow */
    uint8_t relative_at;        /* offset of the PC-relative field in the instruction */
    uint8_t relative_bytes;     /* size of that field: 1, 2 or 4; 0 if there is none */
    bool is_padding;            /* nop of any length, int3 */
    bool is_landing_pad;        /* endbr64, endbr32; bti */
    bool signs_return;          /* paciasp, pacibsp */
    bool with_key_b;            /* pacibsp */
    uint8_t absolute_at;        /* offset of the 4-byte address of a memory operand without a base
                                 * register; 0 if there is none */
    bool reads_memory_relative; /* the PC-relative field is the displacement of a memory operand */
    bool takes_address;         /* lea, adr, or an immediate wide enough for an absolute address.
                                 * An immediate has relative_bytes 0 and can be an address only in
                                 * an image that is never relocated */
    bool from_register;         /* takes_address: lea with a base register; i386: an access or jump
                                 * through [register + disp32].  If the register holds the base of
                                 * position-independent data (hfn_straight_line.pic_base), target is
                                 * the distance from it */
    bool is_system;             /* enters the kernel, or writes the thread pointer */
    bool through_table;         /* JUMP_INDIRECT by a register or a scaled index: may be a jump
                                 * table */
    uint64_t target;            /* RVA that the PC-relative field or the address refers to */
} hfn_instruction;

/* Addresses of which the first of two instructions (adrp) has been seen, by the register that holds
 * them.  Starts as zero. */
typedef struct hfn_partial_addresses {
    uint64_t page[32];
    uint32_t known; /* bit n: page[n] is valid */
} hfn_partial_addresses;

/* Whether the code behind the instruction does not run after it. */
static inline bool hfn_ends_path(const hfn_instruction *in)
{
    return in->flow == HFN_FLOW_JUMP || in->flow == HFN_FLOW_JUMP_INDIRECT ||
           in->flow == HFN_FLOW_RETURN || (in->flow == HFN_FLOW_STOP && !in->is_padding);
}

/* ---- Jump tables. */

/* Straight-line code that ends with an indirect jump.  Jumps enter it only at its first
 * instruction. */
typedef struct hfn_straight_line {
    const uint8_t *bytes;
    uint64_t size;
    uint64_t rva;
    uint64_t link_base;     /* address at which the image was linked */
    const uint32_t *starts; /* offsets of the instructions; the last one is the jump */
    uint32_t count;
    uint64_t pic_base; /* RVA that i386 code keeps in a register to address data (the GOT); 0:
                        * none */
    bool image_base;   /* offsets may count from the image base, RVA 0 (Microsoft's compiler) */
} hfn_straight_line;

/* Where an indirect jump goes, as far as its line shows. */
typedef enum hfn_dispatch_kind {
    HFN_DISPATCH_POINTER = 0, /* to a complete pointer: loaded, a constant, or returned by a
                               * call.  The target is found where its address is taken */
    HFN_DISPATCH_TABLE,       /* through the jump table described in hfn_dispatch */
    HFN_DISPATCH_OFFSET,      /* to a table entry added to a base, but the line shows only one of
                               * them */
    HFN_DISPATCH_VALUE,       /* to the value of a register that was set before the line */
    HFN_DISPATCH_COMPUTED     /* to the result of arithmetic without a table */
} hfn_dispatch_kind;

typedef struct hfn_dispatch {
    uint8_t kind;        /* hfn_dispatch_kind */
    uint8_t entry_bytes; /* 1, 2, 4 or 8 */
    uint8_t entry_shift; /* an entry counts units of 1 << entry_shift bytes */
    bool entry_is_signed;
    bool base_is_guessed; /* the line shows no base, so the image base is assumed: check the
                           * entries */
    uint64_t table_rva;   /* TABLE: of its first entry; POINTER: of the loaded word, 0 if unknown */
    uint64_t object_rva;  /* TABLE: the address to which code refers, if it is behind table_rva: the
                           * smallest index is not 0 */
    uint64_t base_rva;    /* added to each entry; for absolute addresses minus the link base */
    uint32_t entry_count; /* from the bounds check in the line; 0 if it shows none */
    uint32_t proof_from;  /* offset of the earliest instruction that this description relies on */
} hfn_dispatch;

/* ---- Moved code. */

#define HFN_MOVED_MAX 96 /* bytes of one moved prologue, jump back included */
#define HFN_FIXUP_MAX 8
#define HFN_CFA_UNKNOWN INT16_MIN
#define HFN_NO_REGISTER 0xFFu

#define HFN_FIXUP_NO_END 0u /* x86: the field holds an address, not a distance */

/* A field of moved code whose value depends on the address of the code, or that the loader
 * relocates in the original. */
typedef struct hfn_fixup {
    uint8_t at;          /* offset of the field in hfn_moved.bytes */
    uint8_t end;         /* x86: offset that the 4-byte field counts from, the end of its
                          * instruction, or HFN_FIXUP_NO_END: it is an address itself; arm64:
                          * kind of the field (arm64/relocate.h) */
    uint64_t target_rva; /* in the image */
} hfn_fixup;

/* Position-independent code that does what the first instructions of a function do. */
typedef struct hfn_moved {
    uint8_t bytes[HFN_MOVED_MAX];
    uint8_t length;
    uint8_t fixup_count;
    uint8_t original_bytes;    /* size of the whole instructions that were moved */
    uint8_t instruction_count; /* of those instructions */
    uint8_t original_at[16];   /* offset of each in the original, counted from the patch */
    uint8_t moved_at[16];      /* offset of its copy in bytes[], to which a thread's PC is moved */
    int16_t cfa_delta[16];     /* bytes by which the stack grew before instruction i;
                                * HFN_CFA_UNKNOWN after a change by an unknown number */
    int16_t cfa_delta_end;     /* the same before the jump back */
    hfn_fixup fixups[HFN_FIXUP_MAX];
} hfn_moved;

typedef enum hfn_fixup_kind {
    HFN_FIXUP_BROKEN = 0, /* lies outside of the moved code */
    HFN_FIXUP_NEAR,       /* its target must be within a jump's reach */
    HFN_FIXUP_ANYWHERE,
    HFN_FIXUP_ADDRESS /* in a field that is relocated in the original code, too */
} hfn_fixup_kind;

/* What code does with an address that it computes. */
typedef enum hfn_address_use {
    HFN_ADDRESS_PASSED = 0, /* passed, called or kept, as far as the code shows */
    HFN_ADDRESS_STORED,     /* stored in a static variable                        */
    HFN_ADDRESS_EQUATED,    /* compared for equality                              */
    HFN_ADDRESS_ORDERED     /* compared by order, or part of arithmetic           */
} hfn_address_use;

/* Evidence that an image sets thread pointers. */
#define HFN_THREAD_MADE 1u        /* it makes threads by a system call                  */
#define HFN_THREAD_FLAGS 2u       /* a number may be clone's flags with a thread pointer */
#define HFN_THREAD_POINTER_SET 4u /* it sets the thread pointer                         */
#define HFN_THREAD_BY_NUMBER 8u   /* the same, if it calls the C library's syscall()   */

typedef enum hfn_move_result {
    HFN_MOVED = 0,
    HFN_MOVE_CALL,       /* one of the instructions is a call */
    HFN_MOVE_IMPOSSIBLE, /* an instruction has another effect at another address */
    HFN_MOVE_UNDECODABLE,
    HFN_MOVE_TOO_LONG /* does not fit hfn_moved */
} hfn_move_result;

/* ---- The stack of a function, followed instruction by instruction. */

#define HFN_STACK_REGISTERS 66 /* values of a state; their meaning depends on the CPU */
#define HFN_STACK_CELLS 24     /* words of the frame that hold addresses             */
#define HFN_STACK_NUMBERS 16   /* registers whose numbers have limits                */

/* Bytes of stack arguments that a timing stub can copy. */
#define HFN_ARGUMENTS_MAX_64 80    /* x86-64, ARM64 */
#define HFN_ARGUMENTS_MAX 124      /* i386          */
#define HFN_STORED_ARGUMENTS_MAX 8 /* i386: words of these that it can write back */

/* How the function uses addresses of its own frame: it stores one outside of the frame; it compares
 * one with a value that is not such an address. */
#define HFN_FRAME_ADDRESS_STORED 1u
#define HFN_FRAME_ADDRESS_COMPARED 2u

#define HFN_MAX_UNCERTAIN_CALLS 4
/* The most objects of the frame that one instruction shows: a call shows the most. */
#define HFN_STACK_OBJECTS 10

/* The comparison whose result the flags hold: of a register with a constant. */
typedef struct hfn_stack_comparison {
    uint8_t is_known, reg, width; /* width: compared bytes */
    uint64_t constant;
} hfn_stack_comparison;

/* The state before an instruction, which depends on the path to it. */
struct hfn_stack_state {
    int32_t at[HFN_STACK_REGISTERS];   /* values of the abstract domain (arch/stack_value.h) */
    uint64_t below[HFN_STACK_NUMBERS]; /* the register holds a number below this; 0: unknown */
    hfn_stack_comparison compared;
    uint32_t base_offsets; /* bit n: register n was loaded from before a table, as the offsets of
                            * virtual bases are */
    hfn_stack_cell cells[HFN_STACK_CELLS];
    uint32_t cell_count;
    hfn_stack_object objects[HFN_STACK_OBJECTS]; /* shown by this instruction; the caller removes
                                                  * them */
    uint32_t object_count;
    int32_t elsewhere;         /* join of the values stored at unknown places of the frame */
    uint32_t stored_arguments; /* i386: bit n: argument word n was stored to */
    uint16_t argument_bytes;   /* size of the stack arguments accessed so far */
    /* Windows x64: size of the home space, the words above the return address that belong to the
     * callee (Microsoft, "x64 calling convention"); 0 elsewhere.  Bit n: word n was stored to; its
     * address was taken. */
    uint8_t home_bytes, home_stores, home_addresses;
    uint16_t popped_bytes;   /* i386: arguments that the return instruction pops */
    uint8_t uncertain_calls; /* i386: calls so far (saturating at
                                      * HFN_MAX_UNCERTAIN_CALLS) whose callee may have popped
                                      * arguments, while no later instruction has set the stack
                                      * pointer to a known place */
    uint8_t frame_address;   /* HFN_FRAME_ADDRESS_* */
    bool depends_on_calls;   /* this instruction accesses bytes that could be the return
                                      * address if those callees popped arguments; the caller
                                      * clears it */
};

typedef enum hfn_stack_outcome {
    HFN_STACK_OK = 0,
    HFN_STACK_TOUCHES_CALLER, /* accesses the caller's frame, or takes an address in it */
    HFN_STACK_TOUCHES_RETURN, /* accesses the return address                            */
    HFN_STACK_LOST,           /* the stack pointer, or an address, is not known any more */
    HFN_STACK_POPS_UNKNOWN    /* a return that pops an unsupported number of bytes      */
} hfn_stack_outcome;

/* ---- The table for patching. */

/* These functions work on code that was decoded when the plan was built, and need no decoder.
 * jump_bytes and jump_reach_bytes describe the full-range jump of which a patch consists. */
typedef struct hfn_patching {
    uint32_t machine;          /* HOTFN_MACHINE_* */
    uint16_t elf_machine;      /* the same in ELF headers (System V gABI, e_machine) */
    uint32_t unit_bytes;       /* addresses of instructions are multiples of it: x86 1, ARM64 4 */
    uint32_t jump_bytes;       /* x86 5, ARM64 4 */
    uint32_t short_jump_bytes; /* of the jump to an island within 128 bytes; 0: there is none */
    uint64_t jump_reach_bytes; /* in either direction */
    bool has_addresses;        /* a fixup may be HFN_FIXUP_ADDRESS */
    bool has_tail_exits;       /* a stub can end the timing of a call at the function's tail jump */

    /* Fill in a fixup of moved code at `address` so that it refers to the address `target`.
     * False if that is out of reach. */
    bool (*fix_up)(uint8_t *moved, uint64_t address, uint32_t at, uint32_t end, uint64_t target);
    /* Validate a fixup that was read from a plan, of moved code of moved_bytes bytes. */
    hfn_fixup_kind (*fixup_kind)(uint32_t at, uint32_t end, uint32_t moved_bytes);
    /* Target of the full-range jump or call at `bytes`, which is at `address`; 0 if there is
     * none. */
    uint64_t (*jump_target)(const uint8_t *bytes, uint64_t address);
    /* Write the DWARF call frame instructions of moved code, starting from the state at an
     * entry.  Returns their size in bytes, UINT32_MAX if they do not fit. */
    uint32_t (*cfi_steps)(const hfn_moved *moved, uint8_t *out, uint32_t out_bytes);
} hfn_patching;

/* ---- The table for the static part. */

/* Where the flags that a path has not written may be read. */
typedef struct hfn_flag_reads {
    bool at_entry;   /* ARM64: the code begins a function that may have to preserve x16 and x17 */
    bool at_return;  /* behind its return */
    bool at_tail;    /* behind the return of the target of its indirect jump */
    bool at_targets; /* at the targets of all indirect jumps and calls */
    const uint64_t *jumps; /* sorted: indirect jumps whose targets read them */
    size_t jump_count;
} hfn_flag_reads;

typedef struct hfn_arch {
    const char *name;
    uint32_t machine; /* HOTFN_MACHINE_* */
    uint32_t pointer_bytes;
    const hfn_patching *patching;
    bool stubs_change_flags;
    bool has_red_zone; /* code may keep data below the stack pointer, except on Windows */

    /* Decode the first instruction of bytes.  Absolute immediates become RVAs by subtracting
     * link_base. False if it is invalid or incomplete. */
    bool (*decode)(const uint8_t *bytes, uint64_t size, uint64_t rva, uint64_t link_base,
                   hfn_instruction *out);

    /* Add to a decoded instruction the address that it completes; called for each instruction of a
     * straight line, in order.  NULL if one instruction is enough to make an address. */
    void (*complete)(const uint8_t *bytes, hfn_partial_addresses *pages, hfn_instruction *in);

    /* Move whole instructions until they cover patch_bytes.  A jump back to the first instruction
     * that was not moved is appended, unless the last moved one does not continue. After a refusal
     * *offset is the offset of the instruction that caused it.
     *
     * A call cannot be moved, since it would push another return address; except x86-64's call
     * through a word at a PC-relative address, whose copy pushes the original one.  If pc_register
     * is not HFN_NO_REGISTER, the first direct call is assumed to load its return address into
     * that register, and the moved code corrects the register. */
    hfn_move_result (*move)(const uint8_t *bytes, uint64_t size, uint64_t rva, uint32_t patch_bytes,
                            uint8_t pc_register, hfn_moved *out, uint32_t *offset);

    /* May the code at address `at` read the state that a stub would change (x86: the flags; ARM64:
     * x16 and x17)?  bytes are the code around `at`.  Follows straight-line code, direct jumps and
     * calls; an instruction that cannot be decoded counts as a read.  If the path leaves bytes, the
     * result is true and *leaves_to is the address at which to continue; otherwise *leaves_to is
     * UINT64_MAX. */
    bool (*flags_live)(const uint8_t *bytes, uint64_t size, uint64_t rva, uint64_t at,
                       const hfn_flag_reads *reads, uint64_t *leaves_to);

    /* Whether the code may access memory below the stack pointer, or computes an address there.
     * NULL on a CPU without a red zone. */
    bool (*uses_red_zone)(const uint8_t *bytes, uint64_t size);

    /* The offset of the first instruction, of those that begin in the first byte_count bytes, that
     * may raise a fault; UINT32_MAX if none does.  A stack that cannot grow is not counted. */
    uint32_t (*find_fault)(const uint8_t *bytes, uint64_t size, uint32_t byte_count);

    /* How the code uses the address that its first instruction computes or contains. */
    hfn_address_use (*get_address_use)(const uint8_t *bytes, uint64_t size, uint64_t rva);

    /* Whether the code may read the program counter of a signal context (Linux, ucontext_t). */
    bool (*reads_context)(const uint8_t *bytes, uint64_t size);

    /* A register that the code at address `at` writes before it reads it on every path, so that
     * a stub may use it as a scratch register; HFN_NO_REGISTER if there is none.  bytes are the
     * code around `at`. NULL if the stubs of this CPU need none. */
    uint8_t (*find_scratch_register)(const uint8_t *bytes, uint64_t size, uint64_t rva,
                                     uint64_t at);

    /* The register into which the function at bytes loads its return address, if it does nothing
     * else (i386's __x86.get_pc_thunk.*); else HFN_NO_REGISTER.  NULL if this CPU has no such
     * functions. */
    uint8_t (*pc_register)(const uint8_t *bytes, uint64_t size);

    /* If bytes begin with a direct call or jump as long as a patch: the moved code of the
     * retarget strategy, a jump to the old target.  No instruction moves (instruction_count is
     * 0), and a call's return address stays the same. */
    bool (*retarget)(const uint8_t *bytes, uint64_t size, uint64_t rva, hfn_moved *out);

    /* The number of bytes, from its target on, that an instruction with reads_memory_relative may
     * access.  NULL if there are no such instructions. */
    uint32_t (*touched_bytes)(const uint8_t *bytes, uint64_t size);

    /* Can the direct call or jump at bytes be given another target by writing its 4-byte field
     * alone? NULL: none can. */
    bool (*is_retargetable)(const uint8_t *bytes, const hfn_instruction *in);

    /* Describe where the indirect jump at the end of the line goes. */
    void (*dispatch)(const hfn_straight_line *line, hfn_dispatch *out);

    /* Set the state at a function's entry; advance it over one instruction.  NULL if this CPU's
     * stack is not followed. */
    void (*begin_stack)(hfn_stack_state *state);
    hfn_stack_outcome (*step_stack)(const uint8_t *bytes, uint64_t size, uint64_t rva,
                                    hfn_stack_state *state);
    /* Apply what a conditional jump shows about numbers where it is taken, or where it is not.
     * NULL: nothing. */
    void (*apply_condition)(const uint8_t *bytes, uint64_t size, bool is_taken,
                            hfn_stack_state *state);
    /* May the function's registers be seen by a callee, or by the target of a tail jump?  No
     * address of the caller's frame may leave the function in them. */
    hfn_stack_outcome (*leave_stack)(const hfn_stack_state *state);
    uint8_t stack_register, frame_register; /* their indexes in hfn_stack_state.at */
    uint8_t return_place; /* index in hfn_stack_state.at of the place where the return address is
                           * saved; stack_register if it stays where the call stored it */

    /* Compilers outline code that several functions share into functions that run on their
     * caller's frame.  Does the instruction at bytes, not a return, prove that its function is
     * none of these? */
    bool (*is_never_shared)(const uint8_t *bytes, uint64_t size);

    /* Is the last instruction of the line a system call behind which the code may run with another
     * stack, or twice on the same one (sigreturn, clone, vfork)?  True also if the line does not
     * show the number of the call. */
    bool (*may_switch_stack)(const hfn_straight_line *line);

    /* HFN_THREAD_* of the instruction at offset `at` of bytes, which is_system or has an immediate
     * operand. */
    uint32_t (*find_thread_evidence)(const uint8_t *bytes, uint64_t size, uint64_t at,
                                     const hfn_instruction *in);

    /* Are bytes those by which unwinders without unwind data recognise the code that returns from
     * a signal handler? */
    bool (*is_signal_restorer)(const uint8_t *bytes, uint64_t size);

    /* Do bytes contain a system call that forbids the thread to read the time stamp counter?
     * *at receives its offset.  Finds only calls whose number and arguments are constants shortly
     * before the call.  NULL if this CPU has no such call. */
    bool (*disables_tsc)(const uint8_t *bytes, uint64_t size, uint64_t *at);
} hfn_arch;

/* The tables for a machine (HOTFN_MACHINE_*), or NULL. */
const hfn_arch *hfn_arch_find(uint32_t machine);
const hfn_patching *hfn_patching_find(uint32_t machine);

extern const hfn_arch hfn_arch_x86_64;
extern const hfn_arch hfn_arch_x86; /* 32-bit */
extern const hfn_arch hfn_arch_arm64;
extern const hfn_patching hfn_patching_x86_64;
extern const hfn_patching hfn_patching_x86;
extern const hfn_patching hfn_patching_arm64;

#endif
