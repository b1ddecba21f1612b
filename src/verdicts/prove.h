/* SPDX-License-Identifier: MIT */
/* The proof that a function may be called from a frame of ours: all its code is followed, and none of
 * it touches anything at or above its return address. */
#ifndef HFN_VERDICTS_PROVE_H
#define HFN_VERDICTS_PROVE_H

#include "verdicts/judging.h"

/* A place that jumps lead to, and the stack there. */
typedef struct hfn_leader {
    uint64_t rva; /* UINT64_MAX: a free place */
    hfn_stack_state state;
    bool weak;   /* only seen behind a call, which may not return, or guessed */
    bool queued; /* to be read (again) */
    /* i386, of the block that begins here (callee_pops.c): */
    bool unsettled; /* what it touches hangs on how much calls before took from the stack          */
    bool returns;   /* it returns by the stack pointer that they left, which shows that it is right */
    bool resets;    /* it sets the stack pointer anew                                             */
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
    bool case_seen; /* a place that it may lead to */
    bool loops;     /* it jumps to its own entry   */
    uint64_t block; /* where the block that is read begins */
    uint64_t field; /* of the branch that is read, 4 bytes; 0: it has none */
    uint32_t reach; /* bytes of arguments on the stack that it touches */
    int32_t pops;   /* i386: that its returns take along; -1: none was seen */
} hfn_prover;

bool hfn_prover_init(hfn_prover *p, hfn_judging *j, const hfn_verdict *items);
void hfn_prover_finish(hfn_prover *p);
/* HOTFN_REASON_NONE if all is well, as far as the functions in p->tails are. */
uint32_t hfn_prove(hfn_prover *p, uint32_t subject);

/* A jump or an exception leads to rva with this stack; HOTFN_REASON_*. */
uint32_t hfn_prove_leads(hfn_prover *p, uint64_t rva, const hfn_stack_state *state, bool weak);

uint32_t hfn_prove_reason(hfn_stack_answer answer);

hfn_leader *hfn_prove_place(const hfn_prover *p, uint64_t rva);

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
