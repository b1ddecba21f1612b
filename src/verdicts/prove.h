/* SPDX-License-Identifier: MIT */
/*
 * The proof that a function may run with a frame of the engine between it and its caller: all its
 * code is followed, and none of it accesses memory at or above its return address, except arguments
 * that can be copied.
 *
 *   prove.c          the algorithm: block by block, until nothing new is reached
 *   prove_leaders.c  leaders of basic blocks, and the state of the stack there
 *   prove_jumps.c    targets of jumps and returns
 *   prove_objects.c  objects of the frame that are accessed with an index
 *   outlined.c       calls of outlined functions
 *   landing_pads.c   targets of exceptions
 *   callee_pops.c    i386: what callees pop from the stack
 */
#ifndef HFN_VERDICTS_PROVE_H
#define HFN_VERDICTS_PROVE_H

#include "verdicts/analysis.h"

/* The first instruction of a basic block, and the stack state on which all paths to it agree. */
typedef struct hfn_leader {
    uint64_t rva; /* UINT64_MAX: free slot of the table */
    hfn_stack_state state;
    uint8_t changes; /* merges that changed the state, saturating at HFN_WIDEN_AFTER */
    bool weak;       /* all paths to it contain a call, which may not return, or are guessed */
    bool queued;     /* waits to be followed (again) */
    /* i386, of the block that begins here (callee_pops.c): */
    bool depends_on_calls; /* its accesses depend on the assumption that callees popped nothing */
    bool returns; /* it reaches a return with that stack pointer, which confirms the assumption */
    bool resets;  /* it sets the stack pointer to a known place                                 */
} hfn_leader;

#define HFN_WIDEN_AFTER 6u

/* An edge of the control flow graph. */
typedef struct hfn_cfg_edge {
    uint64_t from, to;
} hfn_cfg_edge;

/* The stack state after a call that may throw an exception. */
typedef struct hfn_call_state {
    uint64_t rva; /* of the call */
    hfn_stack_state state;
} hfn_call_state;

/* The target of a tail jump; field: RVA of the jump's 4-byte displacement, or 0. */
typedef struct hfn_tail {
    uint32_t to;
    uint64_t field;
} hfn_tail;

/* The working memory of one thread. */
typedef struct hfn_prover {
    hfn_analysis *analysis;
    const hfn_verdict *items;
    hfn_leader *leaders; /* open addressing */
    uint32_t capacity, count;
    uint32_t *queue;
    size_t queue_count, queue_capacity;
    hfn_call_state *calls;
    size_t call_count, call_capacity;
    hfn_tail *tails;
    size_t tail_count, tail_capacity;
    uint32_t *parts; /* bodies whose code is followed: the function's, then its fragments' */
    size_t part_count, part_capacity;
    hfn_cfg_edge *edges; /* i386 only */
    size_t edge_count, edge_capacity;
    bool no_memory;
    /* Of the function being proven: */
    uint32_t function;
    uint64_t rva, end;
    bool dispatches;                /* it contains an indirect jump          */
    hfn_stack_state dispatch_state; /* at the indirect jumps, merged         */
    uint64_t dispatch_block;        /* leader of the first one's block       */
    bool case_seen;                 /* a possible target of them was found   */
    bool loops;                     /* it jumps to its own entry   */
    uint64_t block;                 /* leader of the current block; UINT64_MAX: none            */
    uint64_t branch_field; /* 4-byte displacement of the current branch; 0: it has none         */
    uint8_t frame_address; /* HFN_FRAME_ADDRESS_* of all its code */
    hfn_stack_object *objects; /* of the frame */
    size_t object_count, object_capacity;
    uint32_t reach;                      /* bytes of stack arguments that it accesses       */
    uint32_t stored_arguments;           /* i386: bit n: it stores to argument word n       */
    uint8_t home_stores, home_addresses; /* Windows x64: as in hfn_stack_state */
    int32_t pops;                        /* i386: bytes that its returns pop; -1: no return yet  */
} hfn_prover;

/* The current block, with its latest instructions for the arch's `dispatch`. */
#define HFN_BLOCK_STARTS 64
typedef struct hfn_block {
    const hfn_region *region;
    uint64_t begin;
    uint32_t starts[HFN_BLOCK_STARTS]; /* offsets from begin */
    uint32_t count;
} hfn_block;

/* prove.c: prove one function.  HOTFN_REASON_NONE: the function is proven if all functions in
 * p->tails are. */
uint32_t hfn_prove_function(hfn_prover *p, uint32_t function);
uint32_t hfn_prove_reason(hfn_stack_outcome answer);

/* prove_leaders.c. */
bool hfn_prover_init(hfn_prover *p, hfn_analysis *a, const hfn_verdict *items);
void hfn_prover_finish(hfn_prover *p);
bool hfn_prove_append(hfn_prover *p, void **items, size_t *count, size_t *capacity,
                      const void *item, size_t bytes);
void hfn_prove_clear_leaders(hfn_prover *p);
/* The leader at rva, or the free slot for it. */
hfn_leader *hfn_prove_find_leader(const hfn_prover *p, uint64_t rva);
/* Add an edge to rva with this stack state; HOTFN_REASON_*. */
uint32_t hfn_prove_add_edge(hfn_prover *p, uint64_t rva, const hfn_stack_state *state, bool weak);

/* prove_objects.c: move the objects that an instruction showed to the prover. */
void hfn_prove_record_objects(hfn_prover *p, hfn_stack_state *state);
/* Is each pointer that was indexed the address of an object of the frame? */
bool hfn_prove_indexes_objects(const hfn_prover *p);

/* prove_jumps.c: the block up to its latest instruction. */
hfn_straight_line hfn_prove_get_line(const hfn_prover *p, const hfn_block *b);
/* HOTFN_REASON_*. */
uint32_t hfn_prove_jump(hfn_prover *p, uint64_t target, const hfn_stack_state *state);
uint32_t hfn_prove_indirect_jump(hfn_prover *p, const hfn_block *b, const hfn_instruction *in,
                                 const hfn_stack_state *state);
/* Record a return; all must pop the same number of bytes. */
uint32_t hfn_prove_return(hfn_prover *p, uint32_t pops);
/* The slot that the PLT entry at rva reads, or NULL. */
const hfn_slot *hfn_prove_find_slot(const hfn_prover *p, uint64_t rva);

/* callee_pops.c: apply a call to the stack state; `called` is the value of
 * uncertain_calls before the call. */
void hfn_pops_apply_call(hfn_prover *p, uint64_t target, uint8_t called, hfn_stack_state *state);
/* Record the effect of an instruction on the current block; record an edge from that block. */
void hfn_pops_record_step(hfn_prover *p, uint8_t called_before, hfn_stack_state *state,
                          bool returns);
void hfn_pops_add_edge(hfn_prover *p, uint64_t to, const hfn_stack_state *state);
/* Whether each block that depends on the bytes that callees popped reaches a return that confirms
 * the assumption. */
bool hfn_pops_are_consistent(hfn_prover *p);

/* outlined.c: whether the function may be outlined code, which uses the stack of its caller. */
bool hfn_is_outlined(const hfn_analysis *a, uint32_t function);
/* Follow a call of outlined code; other calls change nothing.  HOTFN_REASON_*. */
uint32_t hfn_prove_outlined(hfn_prover *p, uint64_t target, hfn_stack_state *state);

/* landing_pads.c: add edges for exceptions of the calls found so far; *any is set if one is
 * new. */
uint32_t hfn_prove_landing_pads(hfn_prover *p, bool *any);

#endif
