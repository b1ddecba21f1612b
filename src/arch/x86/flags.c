/* SPDX-License-Identifier: MIT */
/*
 * Follows all paths from an address, through direct jumps, direct calls and their returns, until
 * the flags are read (live) or all written (dead). Calls are followed because hand-written code
 * and clang's outlined functions pass flags into and out of callees. Whether flags are live across
 * the function's own return, or are read by the target of an indirect branch, is up to the caller.
 * An unknown callee may preserve them, and the target of an indirect jump may return with them.
 * Instructions that cannot be decoded count as reads; an endless loop reads nothing.
 */
#include "arch/x86/flags.h"

#include "arch/x86/decode.h"
#include "arch/x86/relocate.h"

#include "base/search.h"

#include <string.h>

#define STEPS_MAX 4096
#define STEPS_BEHIND_UNKNOWN 1024
#define CALLS_MAX 4 /* nesting depth */
#define PATHS_MAX 16

typedef enum flag_use { UNKNOWN, PRESERVES, WRITES_ALL } flag_use;

/* SSE moves and arithmetic, movzx and movsx.  opcode follows 0x0F, with or without a prefix. */
static bool preserves_flags_0f(uint8_t opcode)
{
    return (opcode >= 0x10 && opcode <= 0x17) || opcode == 0x28 || opcode == 0x29 ||
           (opcode >= 0x50 && opcode <= 0x76) || opcode == 0x7E || opcode == 0x7F ||
           opcode == 0xB6 || opcode == 0xB7 || opcode == 0xBE || opcode == 0xBF;
}

/* Classify the most common instructions without Zydis. */
static flag_use classify_common(hfn_x86_mode mode, const uint8_t *bytes, const hfn_instruction *in)
{
    bool has_prefix = in->length >= 4 && (bytes[0] == 0x66 || (bytes[0] & 0xFE) == 0xF2);
    const uint8_t *modrm = bytes + 1 + has_prefix;
    uint8_t opcode = modrm[-1];

    if (in->is_padding || in->is_landing_pad) {
        return PRESERVES;
    }
    if (mode == HFN_X86_64 && (opcode & 0xF0) == 0x40 && in->length >= 2 + has_prefix) { /* REX */
        opcode = *modrm++;
    }
    if (opcode == 0x0F && in->length >= 3) {
        return preserves_flags_0f(*modrm) ? PRESERVES : UNKNOWN;
    }
    if (has_prefix) {
        return UNKNOWN;
    }
    if ((opcode >= 0x50 && opcode <= 0x5F) || (opcode >= 0x88 && opcode <= 0x8B) ||
        opcode == 0x8D || opcode == 0xC6 || (opcode == 0xC7 && (*modrm & 0x38) == 0) ||
        (opcode >= 0xB0 && opcode <= 0xBF) ||
        (mode == HFN_X86_64 && opcode == 0x63)) { /* movsxd; arpl in 32-bit code */
        return PRESERVES;
    }
    if (opcode < 0x40 && (opcode & 7) < 6) { /* add or adc sbb and sub xor cmp */
        return (opcode & 0x38) == 0x10 || (opcode & 0x38) == 0x18 ? UNKNOWN : WRITES_ALL;
    }
    if (opcode == 0x84 || opcode == 0x85 || opcode == 0xA8 || opcode == 0xA9) { /* test */
        return WRITES_ALL;
    }
    if (opcode == 0x80 || opcode == 0x81 || opcode == 0x83) { /* the same by an immediate */
        return (*modrm & 0x38) == 0x10 || (*modrm & 0x38) == 0x18 ? UNKNOWN : WRITES_ALL;
    }
    return UNKNOWN;
}

/* UNCLEAR counts as a read, except behind the return of an unknown callee: flags that pass through
 * one are followed only to a read that is found. */
typedef enum step_result {
    CONTINUES,
    FORKS,
    LIVE,
    DEAD,
    RETURNS,
    CALLS, /* unknown code */
    JUMPS, /* to unknown code */
    UNCLEAR
} step_result;

/* Not jrcxz and loop, which depend on a register. */
static bool is_conditional_on_flags(const uint8_t *bytes)
{
    return (bytes[0] & 0xF0) == 0x70 || (bytes[0] == 0x0F && (bytes[1] & 0xF0) == 0x80);
}

static step_result check_flow(const hfn_instruction *in, const uint8_t *bytes)
{
    switch (in->flow) {
    case HFN_FLOW_CALL_INDIRECT: return CALLS;
    case HFN_FLOW_JUMP_INDIRECT: return JUMPS;
    case HFN_FLOW_RETURN: return RETURNS;
    case HFN_FLOW_STOP: return in->is_padding ? CONTINUES : DEAD;
    case HFN_FLOW_JUMP_IF: return is_conditional_on_flags(bytes) ? FORKS : UNCLEAR;
    default: return CONTINUES;
    }
}

static step_result check_flags(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size, uint64_t rva,
                               uint32_t *unwritten)
{
    hfn_x86_effects effects;

    if (!hfn_x86_decode_effects(mode, bytes, size, rva, &effects)) {
        return UNCLEAR;
    }
    if (effects.flags_read & *unwritten) {
        return LIVE;
    }
    *unwritten &= ~effects.flags_written;
    return *unwritten ? CONTINUES : DEAD;
}

static step_result check_instruction(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size,
                                     uint64_t rva, uint32_t *unwritten, hfn_instruction *in)
{
    if (!hfn_x86_decode(mode, bytes, size, rva, 0, in)) {
        return UNCLEAR;
    }
    step_result by_flow = check_flow(in, bytes);
    if (by_flow == FORKS) {
        by_flow = check_flags(mode, bytes, size, rva, unwritten);
        return by_flow == LIVE || by_flow == UNCLEAR ? by_flow : FORKS;
    }
    if (by_flow != CONTINUES) {
        return by_flow;
    }
    flag_use use = classify_common(mode, bytes, in);
    if (use == UNKNOWN) {
        return check_flags(mode, bytes, size, rva, unwritten);
    }
    return use == WRITES_ALL ? DEAD : CONTINUES;
}

/* The state of a path. */
typedef struct path {
    uint64_t at, return_to[CALLS_MAX]; /* offsets; return_to: after each open call */
    uint32_t calls;
    uint32_t unwritten;           /* flags that it has not written */
    int32_t depth[CALLS_MAX + 1]; /* bytes pushed by the code at the start, and by each open call */
    uint32_t steps_left;          /* behind the return of an unknown callee; 0: there was none */
    uint32_t replaced; /* bit n: the return address of the code at the start, or of open call n - 1,
                        * may have been replaced */
} path;

typedef struct search {
    hfn_x86_mode mode;
    const uint8_t *bytes;
    uint64_t size, rva;
    const hfn_flag_reads *reads;
    uint32_t steps;        /* instructions that all paths may still take */
    path paths[PATHS_MAX]; /* [0, done) were followed */
    uint32_t path_count, done;
} search;

static bool is_same_place(const path *a, const path *b)
{
    return a->at == b->at && a->calls == b->calls &&
           memcmp(a->return_to, b->return_to, a->calls * sizeof a->return_to[0]) == 0;
}

/* Add a path, unless one from there with the same unwritten flags, or more, is known. */
static bool add_path(search *s, const path *added)
{
    for (uint32_t i = 0; i < s->path_count; i++) {
        if (is_same_place(&s->paths[i], added) &&
            (added->unwritten & ~s->paths[i].unwritten) == 0 &&
            (added->replaced & ~s->paths[i].replaced) == 0) {
            return true;
        }
    }
    if (s->path_count == PATHS_MAX) {
        return false;
    }
    s->paths[s->path_count++] = *added;
    return true;
}

/* Advance the path over the instruction, or to its target. */
static step_result follow_flow(search *s, path *p, const hfn_instruction *in)
{
    path taken = *p;

    if (in->flow == HFN_FLOW_CALL && p->calls == CALLS_MAX) {
        return UNCLEAR;
    }
    taken.at = in->target - s->rva;
    if (in->flow == HFN_FLOW_JUMP_IF && !add_path(s, &taken)) {
        return UNCLEAR;
    }
    p->at += in->length;
    if (in->flow == HFN_FLOW_CALL) {
        p->return_to[p->calls++] = p->at;
        p->depth[p->calls] = 0;
        p->replaced &= ~(1u << p->calls);
    }
    if (in->flow == HFN_FLOW_JUMP || in->flow == HFN_FLOW_CALL) {
        p->at = taken.at;
    }
    return CONTINUES;
}

/* Continue the path behind a call or jump of unknown code, which may preserve the flags. */
static void return_from_unknown(path *p)
{
    if (p->steps_left == 0) {
        p->steps_left = STEPS_BEHIND_UNKNOWN;
    }
}

/* May the target of the indirect call or jump at rva read flags? */
static bool may_read_flags(const search *s, uint64_t rva)
{
    const hfn_flag_reads *reads = s->reads;
    size_t i = hfn_count_below(reads->jumps, reads->jump_count, sizeof *reads->jumps, 0, rva);

    return reads->at_targets || (i < reads->jump_count && reads->jumps[i] == rva);
}

/* May an instruction with this opcode move the stack pointer?  push, pop, mov, lea, leave, and
 * arithmetic with a constant. */
static bool may_move_stack(uint8_t opcode)
{
    return (opcode >= 0x50 && opcode <= 0x5F) || opcode == 0x68 || opcode == 0x6A ||
           opcode == 0x81 || opcode == 0x83 || opcode == 0x89 || opcode == 0x8B || opcode == 0x8D ||
           opcode == 0x8F || opcode == 0x9C || opcode == 0x9D || opcode == 0xC9 || opcode == 0xFF;
}

/* Follow the stack pointer: a return with bytes on the stack jumps to a pushed address. */
static void count_pushed(const search *s, path *p, const hfn_instruction *in)
{
    const uint8_t *bytes = s->bytes + p->at;
    uint8_t opcode = (bytes[0] & 0xF0) == 0x40 && s->mode == HFN_X86_64 ? bytes[1] : bytes[0];
    int32_t *depth = &p->depth[p->calls], growth;

    if (in->flow != HFN_FLOW_NEXT || !may_move_stack(opcode)) {
        return;
    }
    bool known =
        opcode != 0xC9 && hfn_x86_get_stack_growth(s->mode, bytes, s->size - p->at, &growth);
    *depth = known && *depth + growth > 0 ? *depth + growth : 0;
}

/* Note a store to the return address, as in a retpoline: the return is an indirect jump. */
static void note_replaced(const search *s, path *p, const hfn_instruction *in)
{
    const uint8_t *bytes = s->bytes + p->at;
    hfn_x86_effects e;

    if (in->flow == HFN_FLOW_NEXT && memchr(bytes, 0x24, in->length) && /* [rsp + d] */
        hfn_x86_decode_effects(s->mode, bytes, s->size - p->at, s->rva + p->at, &e) &&
        e.has_memory && e.base == HFN_X86_RSP && e.displacement == p->depth[p->calls] &&
        e.shape != HFN_X86_LOAD) {
        p->replaced |= 1u << p->calls;
    }
}

/* Advance the path by one instruction. */
static step_result step_path(search *s, path *p, uint64_t *leaves_to)
{
    hfn_instruction in;

    if (p->at >= s->size) {
        *leaves_to = p->steps_left > 0 ? UINT64_MAX : s->rva + p->at;
        return UNCLEAR;
    }
    step_result v = check_instruction(s->mode, s->bytes + p->at, s->size - p->at, s->rva + p->at,
                                      &p->unwritten, &in);
    if (v == RETURNS && (p->depth[p->calls] > 0 || (p->replaced >> p->calls & 1))) {
        v = JUMPS;
    }
    if ((v == JUMPS || v == CALLS) && may_read_flags(s, s->rva + p->at)) {
        return LIVE;
    }
    if (v == CALLS) {
        return_from_unknown(p);
    }
    if ((v == RETURNS || v == JUMPS) && p->calls > 0) {
        if (v == JUMPS) {
            return_from_unknown(p);
        }
        p->at = p->return_to[--p->calls];
        return CONTINUES;
    }
    if (v != CONTINUES && v != FORKS && v != CALLS) {
        return v;
    }
    note_replaced(s, p, &in);
    count_pushed(s, p, &in);
    return follow_flow(s, p, &in);
}

/* Follow one path to its end: LIVE, DEAD or RETURNS.  *leaves_to: where it leaves the code. */
static step_result follow_path(search *s, path p, uint64_t *leaves_to)
{
    path earlier = { .at = UINT64_MAX };

    for (uint32_t step = 0; s->steps > 0; step++, s->steps--) {
        if (is_same_place(&p, &earlier)) { /* an endless loop, as after a retpoline's call */
            return DEAD;
        }
        if ((step & (step - 1)) == 0) {
            earlier = p;
        }
        step_result v = step_path(s, &p, leaves_to);
        if (v != CONTINUES && v != UNCLEAR) {
            return v;
        }
        if (v == UNCLEAR || (p.steps_left > 0 && --p.steps_left == 0)) {
            return p.steps_left > 0 || v == CONTINUES ? DEAD : LIVE;
        }
    }
    return p.steps_left > 0 ? DEAD : LIVE;
}

bool hfn_x86_are_flags_live(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size, uint64_t rva,
                            uint64_t at, const hfn_flag_reads *reads, uint64_t *leaves_to)
{
    const path first = { .at = at - rva, .unwritten = HFN_X86_ARITHMETIC_FLAGS };
    search s; /* its paths are not cleared: this runs for every call in the code */

    s.mode = mode;
    s.bytes = bytes;
    s.size = size;
    s.rva = rva;
    s.reads = reads;
    s.steps = STEPS_MAX;
    s.path_count = s.done = 0;
    *leaves_to = UINT64_MAX;
    add_path(&s, &first);
    while (s.done < s.path_count) {
        step_result v = follow_path(&s, s.paths[s.done++], leaves_to);
        if (v == LIVE || (v == RETURNS && reads->at_return) || (v == JUMPS && reads->at_tail)) {
            if (s.path_count > 1) { /* the caller would continue only this path */
                *leaves_to = UINT64_MAX;
            }
            return true;
        }
    }
    return false;
}
