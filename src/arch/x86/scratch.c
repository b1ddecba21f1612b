/* SPDX-License-Identifier: MIT */
/*
 * Finds scratch registers for a stub: registers that every path from the entry overwrites in full
 * before it reads them.  Both sides of a branch, jumps and direct calls are followed.  A calling
 * convention proves nothing, because gcc's -fipa-ra keeps any register alive across a call of a
 * local function.  A path that reaches a return, an indirect branch or an instruction that cannot
 * be decoded therefore reads all registers that it has not written, and so does a path that is too
 * long.  An endless path reads nothing.
 */
#include "arch/x86/scratch.h"

#include "arch/x86/decode.h"
#include "arch/x86/registers.h"

#include <stdbool.h>

enum { STEPS_MAX = 96, BRANCHES_MAX = 24 };

/* rax, rcx, rdx, rsi, rdi, r8..r11, which callees need not preserve (System V x86-64 psABI,
 * 3.2.1).  The others are saved by any function that changes them. */
#define CANDIDATES 0x0FC7u

/* A path that has reached `at`, and the registers that it has not written yet. */
typedef struct path {
    uint64_t at;
    uint32_t unwritten;
} path;

typedef struct search {
    const uint8_t *bytes;
    uint64_t size, rva;
    uint32_t candidates;      /* registers that no path has read so far */
    uint32_t steps;           /* instructions decoded                   */
    path paths[BRANCHES_MAX]; /* [0, done) were followed, [done, path_count) are pending */
    uint32_t path_count, done;
} search;

/* Add a pending path, unless a known path from there has these registers unwritten too. */
static void add_path(search *s, uint64_t at, uint32_t unwritten)
{
    for (uint32_t i = 0; i < s->path_count; i++) {
        if (s->paths[i].at == at && (unwritten & ~s->paths[i].unwritten) == 0) {
            return;
        }
    }
    if (s->path_count == BRANCHES_MAX) {
        s->candidates &= ~unwritten;
    } else {
        s->paths[s->path_count++] = (path){ at, unwritten };
    }
}

/* Apply the instruction to the path's registers; false if its effect is not known. */
static bool apply_instruction(search *s, const uint8_t *bytes, const hfn_instruction *in, path *p)
{
    hfn_x86_register_use use;

    if (in->is_padding || in->is_landing_pad) {
        return true;
    }
    if (!hfn_x86_find_register_use(bytes, in->length, &use)) {
        return false;
    }
    s->candidates &= ~(use.reads & p->unwritten);
    p->unwritten &= ~use.kills;
    return true;
}

/* Advance the path by one instruction; false where it cannot be followed. */
static bool step_path(search *s, path *p)
{
    uint64_t offset = p->at - s->rva;
    hfn_instruction in;

    if (offset >= s->size || s->steps++ >= STEPS_MAX ||
        !hfn_x86_decode(HFN_X86_64, s->bytes + offset, s->size - offset, p->at, 0, &in)) {
        return false;
    }
    switch (in.flow) {
    case HFN_FLOW_NEXT:
    case HFN_FLOW_JUMP_IF:
        if (!apply_instruction(s, s->bytes + offset, &in, p)) {
            return false;
        }
        if (in.flow == HFN_FLOW_JUMP_IF) {
            add_path(s, in.target, p->unwritten);
        }
        p->at += in.length;
        return true;
    case HFN_FLOW_JUMP:
    case HFN_FLOW_CALL:
        add_path(s, in.target, p->unwritten);
        p->unwritten = 0;
        return true;
    default: return false;
    }
}

static void follow_path(search *s, path p)
{
    while ((p.unwritten &= s->candidates) != 0) {
        if (!step_path(s, &p)) {
            s->candidates &= ~p.unwritten;
            return;
        }
    }
}

uint32_t hfn_x86_find_dead_registers(const uint8_t *bytes, uint64_t size, uint64_t rva, uint64_t at)
{
    search s = { .bytes = bytes, .size = size, .rva = rva, .candidates = CANDIDATES };

    add_path(&s, at, CANDIDATES);
    while (s.done < s.path_count && s.candidates != 0) {
        follow_path(&s, s.paths[s.done++]);
    }
    return s.candidates;
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
