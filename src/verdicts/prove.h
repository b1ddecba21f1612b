/* SPDX-License-Identifier: MIT */
/* The proof that a function may be called from a frame of ours: all its code is followed, and none of
 * it touches anything at or above its return address but arguments that can be copied.
 *
 *   prove.c          the walk: block after block, until nothing new is led to
 *   prove_leaders.c  the places that blocks begin at, and what ways that meet there agree on
 *   prove_jumps.c    where jumps and returns lead
 *   pieces.c         calls of what an outliner made
 *   landing_pads.c   where exceptions lead
 *   callee_pops.c    i386: what callees take from the stack */
#ifndef HFN_VERDICTS_PROVE_H
#define HFN_VERDICTS_PROVE_H

#include "verdicts/judging.h"

/* A place that ways lead to, where a block begins; and what is known of the stack there. */
typedef struct hfn_leader {
    uint64_t rva; /* UINT64_MAX: a free place */
    hfn_stack_state state;
    bool weak;   /* all ways to it are behind calls, which may not return, or guessed */
    bool queued; /* to be read (again) */
    /* i386, of the block that begins here (callee_pops.c): */
    bool
        unsettled; /* what it touches hangs on how much calls before took from the stack          */
    bool returns; /* it returns by the stack pointer that they left, which shows that it is right */
    bool resets;  /* it sets the stack pointer anew                                             */
} hfn_leader;

/* One block leads to another. */
typedef struct hfn_way {
    uint64_t from, to;
} hfn_way;

/* The stack behind a call: an exception may lead on from there. */
typedef struct hfn_call_state {
    uint64_t rva; /* of the call */
    int32_t stack_at, frame_at, return_at;
    uint8_t called;
} hfn_call_state;

/* A function that this one jumps on to; field: of the jump's distance, 4 bytes, or 0. */
typedef struct hfn_tail {
    uint32_t to;
    uint64_t field;
} hfn_tail;

/* One thread's working memory. */
typedef struct hfn_prover {
    hfn_judging *judging;
    const hfn_verdict *items;
    hfn_leader *leaders; /* open addressing */
    uint32_t capacity, count;
    uint32_t *queue;
    size_t queue_count, queue_capacity;
    hfn_call_state *calls;
    size_t call_count, call_capacity;
    hfn_tail *tails;
    size_t tail_count, tail_capacity;
    uint32_t *parts; /* other subjects whose code belongs to it, and itself first */
    size_t part_count, part_capacity;
    hfn_way *ways; /* i386 only */
    size_t way_count, way_capacity;
    bool no_memory;
    /* of the function that is read: */
    uint32_t subject;
    uint64_t rva, end;
    bool dispatches; /* an indirect jump inside of it was met: */
    hfn_stack_state dispatch_state;
    uint64_t dispatch_block;
    bool case_seen;        /* a place that it may lead to */
    bool loops;            /* it jumps to its own entry   */
    uint64_t block;        /* where the block that is read begins; UINT64_MAX: none is */
    uint64_t branch_field; /* of the branch that is read: its distance, 4 bytes; 0: it has none */
    uint8_t own_address;   /* HFN_OWN_ADDRESS_* of all its code */
    uint32_t reach;        /* bytes of arguments on the stack that it touches */
    int32_t pops;          /* i386: that its returns take along; -1: none was seen */
} hfn_prover;

/* A block as it is read: its latest instructions, for arch's dispatch. */
#define HFN_BLOCK_STARTS 64
typedef struct hfn_block {
    const hfn_region *region;
    uint64_t begin;
    uint32_t starts[HFN_BLOCK_STARTS]; /* offsets from begin */
    uint32_t count;
} hfn_block;

/* prove.c.  HOTFN_REASON_NONE if all is well, as far as the functions in p->tails are. */
uint32_t hfn_prove(hfn_prover *p, uint32_t subject);
uint32_t hfn_prove_reason(hfn_stack_outcome answer);

/* prove_leaders.c. */
bool hfn_prover_init(hfn_prover *p, hfn_judging *j, const hfn_verdict *items);
void hfn_prover_finish(hfn_prover *p);
bool hfn_prove_append(hfn_prover *p, void **items, size_t *count, size_t *capacity,
                      const void *item, size_t bytes);
void hfn_prove_no_leaders(hfn_prover *p);
/* The leader at rva, or the free place for it. */
hfn_leader *hfn_prove_leader(const hfn_prover *p, uint64_t rva);
/* What the two do not agree on is known no more; true: that is news. */
bool hfn_prove_merge(hfn_stack_state *known, const hfn_stack_state *state);
/* A jump or an exception leads to rva with this stack; HOTFN_REASON_*. */
uint32_t hfn_prove_leads(hfn_prover *p, uint64_t rva, const hfn_stack_state *state, bool weak);

/* prove_jumps.c; HOTFN_REASON_*. */
uint32_t hfn_prove_jump(hfn_prover *p, uint64_t target, const hfn_stack_state *state);
uint32_t hfn_prove_indirect_jump(hfn_prover *p, const hfn_block *b, const hfn_instruction *in,
                                 const hfn_stack_state *state);
/* All returns take the same from the stack. */
uint32_t hfn_prove_return(hfn_prover *p, uint32_t pops);
/* By its PLT's entry at rva, or NULL. */
const hfn_slot *hfn_prove_slot(const hfn_prover *p, uint64_t rva);

/* callee_pops.c.  What stands on the stack behind the call to target; `called`: as it was before. */
void hfn_pops_call(hfn_prover *p, uint64_t target, uint8_t called, hfn_stack_state *state);
/* A step of the block that is read is done, before it `called` was; a way leads on from it. */
void hfn_pops_note(hfn_prover *p, uint8_t called_before, hfn_stack_state *state, bool returns);
void hfn_pops_lead(hfn_prover *p, uint64_t to, const hfn_stack_state *state);
/* Does each place that hangs on what callees took lead to a return that shows it? */
bool hfn_pops_are_settled(hfn_prover *p);

/* pieces.c.  May the function be a piece of others, that works on the stack of whoever calls it? */
bool hfn_is_piece(const hfn_judging *j, uint32_t subject);
/* The stack behind a call to target, if it is one; HOTFN_REASON_*. */
uint32_t hfn_prove_piece(hfn_prover *p, uint64_t target, hfn_stack_state *state);

/* landing_pads.c: what exceptions lead to from the calls seen so far; *any: something new. */
uint32_t hfn_prove_landing_pads(hfn_prover *p, bool *any);

#endif
