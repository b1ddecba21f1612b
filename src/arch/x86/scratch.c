/* SPDX-License-Identifier: MIT */
/*
 * Which register may a stub spoil?  One that every way from the entry writes in full before it reads
 * it.  Both sides of a branch are walked, jumps and direct calls followed.  A calling convention proves
 * nothing (gcc's -fipa-ra keeps any register alive across a call of a local function), so a way that
 * comes to a return, an indirect branch or anything else that is not understood reads all that it has
 * not written; so does one that is too long.  A way that never ends reads nothing.
 */
#include "arch/x86/scratch.h"

#include "arch/x86/decode.h"
#include "arch/x86/registers.h"

#include <stdbool.h>

enum { STEPS_MAX = 96, BRANCHES_MAX = 24 };

/* rax, rcx, rdx, rsi, rdi, r8..r11: the others are kept by whoever changes them. */
#define CANDIDATES 0x0FC7u

/* A way at a point: the registers that it has not written yet. */
typedef struct way {
    uint64_t at;
    uint32_t unwritten;
} way;

typedef struct walk {
    const uint8_t *bytes;
    uint64_t size, rva;
    uint32_t candidates;    /* read by no way so far            */
    uint32_t steps;         /* instructions looked at           */
    way seen[BRANCHES_MAX]; /* targets of jumps, walked or to be walked; [done, count) are to be */
    uint32_t seen_count, done;
} walk;

/* Remember to go on there, unless somebody did with as many registers. */
static void go_on(walk *w, uint64_t at, uint32_t unwritten)
{
    for (uint32_t i = 0; i < w->seen_count; i++) {
        if (w->seen[i].at == at && (unwritten & ~w->seen[i].unwritten) == 0) {
            return;
        }
    }
    if (w->seen_count == BRANCHES_MAX) {
        w->candidates &= ~unwritten;
    } else {
        w->seen[w->seen_count++] = (way){ at, unwritten };
    }
}

/* What the instruction does to registers; false if that is not known. */
static bool apply(walk *w, const uint8_t *bytes, const hfn_instruction *in, way *p)
{
    hfn_x86_register_use use;

    if (in->is_padding || in->is_landing_pad) {
        return true;
    }
    if (!hfn_x86_find_register_use(bytes, in->length, &use)) {
        return false;
    }
    w->candidates &= ~(use.reads & p->unwritten);
    p->unwritten &= ~use.kills;
    return true;
}

/* One instruction on; false at the end of what is understood. */
static bool step(walk *w, way *p)
{
    uint64_t offset = p->at - w->rva;
    hfn_instruction in;

    if (offset >= w->size || w->steps++ >= STEPS_MAX ||
        !hfn_x86_decode(HFN_X86_64, w->bytes + offset, w->size - offset, p->at, 0, &in)) {
        return false;
    }
    switch (in.flow) {
    case HFN_FLOW_NEXT:
    case HFN_FLOW_JUMP_IF:
        if (!apply(w, w->bytes + offset, &in, p)) {
            return false;
        }
        if (in.flow == HFN_FLOW_JUMP_IF) {
            go_on(w, in.target, p->unwritten);
        }
        p->at += in.length;
        return true;
    case HFN_FLOW_JUMP:
    case HFN_FLOW_CALL:
        go_on(w, in.target, p->unwritten);
        p->unwritten = 0;
        return true;
    default: return false;
    }
}

static void walk_one(walk *w, way p)
{
    while ((p.unwritten &= w->candidates) != 0) {
        if (!step(w, &p)) {
            w->candidates &= ~p.unwritten;
            return;
        }
    }
}

uint32_t hfn_x86_find_dead_registers(const uint8_t *bytes, uint64_t size, uint64_t rva, uint64_t at)
{
    walk w = { .bytes = bytes, .size = size, .rva = rva, .candidates = CANDIDATES };

    go_on(&w, at, CANDIDATES);
    while (w.done < w.seen_count && w.candidates != 0) {
        walk_one(&w, w.seen[w.done++]);
    }
    return w.candidates;
}

uint8_t hfn_x86_find_scratch_register(const uint8_t *bytes, uint64_t size, uint64_t rva,
                                      uint64_t at)
{
    uint32_t dead = hfn_x86_find_dead_registers(bytes, size, rva, at);
    uint8_t number = 0;

    if (dead == 0) {
        return HFN_NO_REGISTER;
    }
    while (!(dead >> number & 1)) {
        number++;
    }
    return number;
}
