/* SPDX-License-Identifier: MIT */
/* The contract of a CPU folder: decode instructions, move a prologue elsewhere, emit stubs.  Tables
 * are chosen by the image's machine and work on bytes only: every CPU is compiled and tested on
 * every host.  Nothing here touches the running process. */
#ifndef HFN_ARCH_ARCH_H
#define HFN_ARCH_ARCH_H

#include <stdbool.h>
#include <stdint.h>

/* What one instruction does with control flow. */
typedef enum hfn_flow {
    HFN_FLOW_NEXT = 0, /* goes on */
    HFN_FLOW_CALL,     /* direct call, target known */
    HFN_FLOW_CALL_INDIRECT,
    HFN_FLOW_JUMP,    /* direct, unconditional */
    HFN_FLOW_JUMP_IF, /* direct, conditional (jcc, loop, jrcxz; cbz, tbz, b.cond) */
    HFN_FLOW_JUMP_INDIRECT,
    HFN_FLOW_RETURN,
    HFN_FLOW_STOP /* ud2, hlt, int3: does not go on */
} hfn_flow;

/* The minimal decode, cheap enough to run over all text. */
typedef struct hfn_instruction {
    uint8_t length;             /* bytes, never 0 */
    uint8_t flow;               /* hfn_flow */
    uint8_t relative_at;        /* offset of a PC-relative field in the instruction */
    uint8_t relative_bytes;     /* its size: 1, 2 or 4; 0 if there is none */
    bool is_padding;            /* nop of any length, int3 */
    bool is_landing_pad;        /* ENDBR64/32, BTI */
    bool signs_return;          /* PACIASP, PACIBSP */
    bool with_key_b;            /* the latter */
    bool reads_memory_relative; /* the PC-relative field is a memory operand's displacement */
    bool takes_address;         /* lea; or any immediate wide enough for an absolute address: then
                                 * relative_bytes is 0, and it means one only in a fixed image */
    bool
        from_register; /* takes_address by a lea off a register, or i386: JUMP_INDIRECT by memory there;
                         * where code finds its data so (hfn_line.pic_base) the register may hold that
                         * base, and target is the distance */
    bool through_table; /* JUMP_INDIRECT by a register or a scaled index: may be a jump table */
    uint64_t target;    /* RVA that the PC-relative field means, or of takes_address */
} hfn_instruction;

/* Half-made addresses, by the register that holds them: what `complete` keeps.  Zero at first. */
typedef struct hfn_pages {
    uint64_t page[32];
    uint32_t known; /* a bit a register */
} hfn_pages;

/* A straight line of code that ends with an indirect jump: nothing jumps into its middle. */
typedef struct hfn_line {
    const uint8_t *bytes; /* standing at rva */
    uint64_t size;
    uint64_t rva;
    uint64_t link_base;     /* of absolute addresses */
    const uint32_t *starts; /* offsets of the instructions; the last is the jump */
    uint32_t count;
    uint64_t pic_base; /* RVA that i386 code keeps in a register to find data (the GOT); 0 none */
    bool image_base;   /* offsets may count from the image base, RVA 0 (Microsoft's compiler) */
} hfn_line;

/* Where the jump goes, as far as the line shows. */
typedef enum hfn_dispatch_kind {
    HFN_DISPATCH_POINTER = 0, /* a whole pointer from memory, a constant or a call: an address that
                               * is taken somewhere, and seen there; table_rva is where it lies if that
                               * shows in the line of a CPU whose jumps do not read memory, else 0 */
    HFN_DISPATCH_TABLE,       /* a table, described below */
    HFN_DISPATCH_OFFSET,      /* an entry of a table is added to a base; the line shows not both */
    HFN_DISPATCH_VALUE,       /* the register was set before the line */
    HFN_DISPATCH_COMPUTED     /* arithmetic without a table */
} hfn_dispatch_kind;

typedef struct hfn_dispatch {
    uint8_t kind;        /* hfn_dispatch_kind */
    uint8_t entry_bytes; /* 1, 2, 4 or 8 */
    uint8_t entry_shift; /* an entry counts units of 1 << entry_shift bytes */
    bool entry_is_signed;
    bool base_is_guessed; /* the image base, as the line shows no other: look at the entries */
    uint64_t table_rva;
    uint64_t base_rva;    /* to which an entry is added (absolute addresses: minus the link base) */
    uint32_t entry_count; /* from the cmp or and in the line; 0 if it shows none */
    uint32_t proof_from;  /* offset of the earliest instruction that this rests on */
} hfn_dispatch;

#define HFN_MOVED_MAX 96 /* bytes of one moved prologue, jump back included */
#define HFN_FIXUP_MAX 8
#define HFN_CFA_UNKNOWN INT16_MIN
#define HFN_NO_REGISTER 0xFFu

/* Code that means the same wherever it is put: bytes, and the rel32 fields to fill in. */
typedef struct hfn_fixup {
    uint8_t at;          /* offset of a 4-byte PC-relative field in bytes[] */
    uint8_t end;         /* offset of the byte behind its instruction: what the field counts from;
                          * arm64: which kind of field it is (arm64/relocate.h) */
    uint64_t target_rva; /* in the image */
} hfn_fixup;

typedef struct hfn_moved {
    uint8_t bytes[HFN_MOVED_MAX];
    uint8_t length;
    uint8_t fixup_count;
    uint8_t original_bytes;    /* of the whole instructions that these replace */
    uint8_t instruction_count; /* of the original, moved */
    uint8_t original_at[16];   /* offset of each in the original, from the patch */
    uint8_t moved_at[16];      /* and in bytes[]: where a thread's PC goes */
    int16_t cfa_delta[16];     /* bytes that the stack grew before instruction i;
                                * HFN_CFA_UNKNOWN behind a change we cannot describe */
    int16_t cfa_delta_end;     /* the same before the jump back */
    hfn_fixup fixups[HFN_FIXUP_MAX];
} hfn_moved;

typedef enum hfn_fixup_kind {
    HFN_FIXUP_BROKEN = 0, /* lies outside of the moved code       */
    HFN_FIXUP_NEAR,       /* its target must be in a jump's reach */
    HFN_FIXUP_ANYWHERE
} hfn_fixup_kind;

typedef enum hfn_move_result {
    HFN_MOVED = 0,
    HFN_MOVE_CALL,       /* a call among them */
    HFN_MOVE_IMPOSSIBLE, /* cannot mean the same elsewhere */
    HFN_MOVE_UNDECODABLE,
    HFN_MOVE_TOO_LONG /* does not fit hfn_moved */
} hfn_move_result;

/* Where registers point in the stack, in bytes from the CFA: what the stack pointer was before the call
 * that led to the function. */
#define HFN_STACK_REGISTERS 34
#define HFN_STACK_NOWHERE INT32_MIN     /* elsewhere, or not known               */
#define HFN_STACK_BELOW (INT32_MIN + 1) /* into the function's own frame somewhere */

/* Bytes of arguments on the stack that a timing stub can copy. */
#define HFN_ARGUMENTS_MAX_64 80 /* x86-64, ARM64 */
#define HFN_ARGUMENTS_MAX 124   /* i386          */

/* An address in the own frame is written to memory outside of it; one is compared with a value that is none. */
#define HFN_OWN_ADDRESS_KEPT 1u
#define HFN_OWN_ADDRESS_COMPARED 2u

typedef struct hfn_stack_state {
    int32_t at[HFN_STACK_REGISTERS];
    uint16_t reach; /* bytes of its arguments that were touched on the way here */
    uint16_t pops;  /* i386: that the return took along                     */
#define HFN_CALLED_MOST 4
    uint8_t
        called; /* the same: so many calls on the way here (or more, if it is the most) may have taken
                      * some of what stood on the stack, if nothing later shows that they have not */
    uint8_t own_address; /* HFN_OWN_ADDRESS_*: what was done with one on the way here */
    bool
        unsettled; /* and here something stands close to the return address if it has: whoever sees it
                      * takes it back */
} hfn_stack_state;

typedef enum hfn_stack_answer {
    HFN_STACK_FINE = 0,
    HFN_STACK_CALLER, /* touches its caller's frame, or takes an address in it */
    HFN_STACK_RETURN, /* touches the return address                            */
    HFN_STACK_LOST,   /* the stack pointer cannot be followed any more         */
    HFN_STACK_POPS    /* a return that takes more than can be told             */
} hfn_stack_answer;

/* Moved code, and the memory that it may be made longer from, by copies of what it goes on to. */
typedef struct hfn_run {
    const uint8_t *moved;
    uint32_t moved_bytes;
    hfn_fixup fixups[HFN_FIXUP_MAX]; /* of addresses, not of RVAs */
    uint32_t fixup_count;
    uint64_t begin, end; /* addresses of code that may be copied, as it stands there now */
    bool (*is_barred)(const void *user, uint64_t address); /* not from there on */
    const void *user;
} hfn_run;

#define HFN_RUN_MAX_BYTES 512

/* What whoever patches needs to know of a CPU, without a decoder: all of it was decoded before. */
typedef struct hfn_patching {
    uint32_t machine;          /* HOTFN_MACHINE_* */
    uint16_t elf_machine;      /* the same in ELF headers (gABI, e_machine) */
    uint32_t unit_bytes;       /* instructions begin at multiples of it (1; 4) */
    uint32_t jump_bytes;       /* of the full-range jump that a patch is (5; 4) */
    uint32_t short_jump_bytes; /* of the jump to an island within 128 bytes; 0: there is none */
    uint64_t jump_reach_bytes; /* how far the full-range jump goes in either direction */
    bool can_come_back; /* its stubs can end a call where the function jumps on to another one */

    /* Fill in a fixup of the moved code that stands at address; target is an address too.  False if it is
     * out of reach from there. */
    bool (*fix_up)(uint8_t *moved, uint64_t address, uint32_t at, uint32_t end, uint64_t target);
    /* What such a fixup is, for whoever did not make it. */
    hfn_fixup_kind (*fixup_kind)(uint32_t at, uint32_t end, uint32_t moved_bytes);
    /* Where the full-range jump at bytes, or a call in its place, leads that stands at address; 0 if none
     * stands there.  NULL where hooks of others are not changed (os/remote.h). */
    uint64_t (*jump_target)(const uint8_t *bytes, uint64_t address);
    /* DWARF call frame instructions of moved code, from the state at an entry on: their number of bytes,
     * UINT32_MAX if they do not fit. */
    uint32_t (*cfi_steps)(const hfn_moved *moved, uint8_t *out, uint32_t out_bytes);
    /* Write moved code for the place `address` that goes on for a while before it jumps back: all of it is
     * unwound like an entry and calls nothing.  Its number of bytes, at most HFN_RUN_MAX_BYTES, is the same
     * for every address; 0 if there is no gain, or a target is out of reach.  NULL: never. */
    uint32_t (*run_on)(const hfn_run *run, uint64_t address, uint8_t *out);
} hfn_patching;

typedef struct hfn_arch {
    const char *name;
    uint32_t machine; /* HOTFN_MACHINE_* */
    uint32_t pointer_bytes;
    const hfn_patching *patching;
    bool stubs_change_flags;
    bool has_red_zone; /* code may keep data below the stack pointer, outside of Windows */

    /* Decode one instruction at bytes[0..size), standing at rva in an image linked at link_base
     * (absolute immediates are turned into RVAs with it).  False if it is none. */
    bool (*decode)(const uint8_t *bytes, uint64_t size, uint64_t rva, uint64_t link_base,
                   hfn_instruction *out);

    /* NULL where no address takes two instructions to make.  Called behind decode, for each instruction
     * of a straight line in its order: adds to `in` the address that it completes. */
    void (*complete)(const uint8_t *bytes, hfn_pages *pages, hfn_instruction *in);

    /* Move whole instructions at bytes, standing at rva, until at least patch_bytes are covered; a
     * jump back to the first instruction not moved is appended unless the last moved one does not go
     * on.  *offset says which byte a refusal is about.  A call cannot move, for its return address would
     * be another; but if pc_register is not HFN_NO_REGISTER, the first direct call is one that gives that
     * back there (below), and the moved code puts it right. */
    hfn_move_result (*move)(const uint8_t *bytes, uint64_t size, uint64_t rva, uint32_t patch_bytes,
                            uint8_t pc_register, hfn_moved *out, uint32_t *offset);

    /* Does the code at `at` read the flags before it writes them all, so that a stub there may not change them
     * (ARM64, whose stubs change none: x16 and x17)?  bytes are the code around `at`, standing at rva.  Follows
     * the straight line, direct jumps and calls; anything not understood answers true.  at_return: the answer
     * where it returns first.  Where the line leaves bytes, the answer is true and *leaves_to where (else
     * UINT64_MAX): ask again there. */
    bool (*flags_live)(const uint8_t *bytes, uint64_t size, uint64_t rva, uint64_t at,
                       bool at_return, uint64_t *leaves_to);

    /* A register that the code at `at` surely writes before it reads it, whichever way it goes (so that
     * a stub may spoil it), or HFN_NO_REGISTER.  bytes are the code around `at`, standing at rva; what
     * lies outside is not understood.  NULL: stubs of this CPU need none. */
    uint8_t (*spare_register)(const uint8_t *bytes, uint64_t size, uint64_t rva, uint64_t at);

    /* The register in which code that is called at bytes gives back its return address and does nothing
     * else (i386's __x86.get_pc_thunk.*), or HFN_NO_REGISTER.  NULL: this CPU has no such code. */
    uint8_t (*pc_register)(const uint8_t *bytes, uint64_t size);

    /* If a direct call or jump with a 4-byte field (a whole patch long) stands at bytes: the moved
     * code of the retarget strategy, a lone jump to the old target.  A call's return address stays
     * where it is, as only the call's target changes; so no instruction moves (the count is 0). */
    bool (*retarget)(const uint8_t *bytes, uint64_t size, uint64_t rva, hfn_moved *out);

    /* How many bytes from its target on the whole instruction at bytes touches, of which decode (or complete)
     * said reads_memory_relative.  NULL: it says so of none. */
    uint32_t (*touched_bytes)(const uint8_t *bytes, uint64_t size);

    /* May a direct call or jump get another target by a write to its 4-byte field alone?  bytes: the
     * whole instruction.  NULL: none may. */
    bool (*field_is_target)(const uint8_t *bytes, const hfn_instruction *in);

    /* Where does the indirect jump at the end of line go? */
    void (*dispatch)(const hfn_line *line, hfn_dispatch *out);

    /* The stack at an entry, and over one instruction.  NULL: not known for this machine. */
    void (*stack_begin)(hfn_stack_state *state);
    hfn_stack_answer (*stack_step)(const uint8_t *bytes, uint64_t size, uint64_t rva,
                                   hfn_stack_state *state);
    uint8_t stack_register, frame_register; /* their places in hfn_stack_state */
    uint8_t
        return_place; /* the same: where the return address was put; stack_register: nowhere else */

    /* Compilers put straight lines that functions have in common in functions of their own, whose stack is
     * their caller's: does the whole instruction at bytes, no return, show that it stands in none of those? */
    bool (*is_never_shared)(const uint8_t *bytes, uint64_t size);

    /* Is there a system call in the code at bytes that forbids its thread to read the clock, and at which
     * offset?  Numbers that are no constants next to it are not seen.  NULL: none of this CPU does. */
    bool (*forbids_clock)(const uint8_t *bytes, uint64_t size, uint64_t *at);
} hfn_arch;

/* NULL if there is none for the machine. */
const hfn_arch *hfn_arch_of(uint32_t machine);
const hfn_patching *hfn_patching_of(uint32_t machine);

extern const hfn_arch hfn_arch_x86_64;
extern const hfn_arch hfn_arch_x86; /* 32-bit */
extern const hfn_arch hfn_arch_arm64;
extern const hfn_patching hfn_patching_x86_64;
extern const hfn_patching hfn_patching_x86;
extern const hfn_patching hfn_patching_arm64;

#endif
