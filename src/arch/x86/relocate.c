/* SPDX-License-Identifier: MIT */
/*
 * Rewrites a function's first instructions so that they have the same effect at another address:
 * PC-relative fields become fixups, short branches become near ones, and a branch to a moved
 * instruction goes to its copy.  The first pass measures each instruction's new length, the second
 * writes.  Whether the function may be patched at all is decided in verdicts/.
 */
#include "arch/x86/relocate.h"

#include "arch/x86/decode.h"
#include "arch/x86/emit.h"

#include <string.h>

#define MAX_INSTRUCTIONS (sizeof((hfn_moved){ 0 }.original_at))
#define JUMP_BYTES 5u             /* jmp rel32 */
#define JUMP_IF_BYTES 6u          /* jcc rel32 */
#define LOOP_BYTES 9u             /* jrcxz +2; jmp +5; jmp rel32 */
#define LEA_BYTES 6u              /* lea r32, [r32 + disp32] */
#define SLOT_CALL_BYTES 6u        /* call [rip + disp32]     */
#define MOVED_SLOT_CALL_BYTES 18u /* put_slot_call           */

typedef enum move_kind {
    COPY,
    COPY_RELATIVE,
    WIDE_JUMP,
    WIDE_JUMP_IF,
    LOOP,
    PC_CALL,
    SLOT_CALL
} move_kind;

/* An original instruction and its copy. */
typedef struct moved_instruction {
    hfn_instruction in;
    move_kind kind;
    uint32_t offset; /* from the first one, in the original */
    uint32_t moved_at;
    uint32_t moved_bytes;
} moved_instruction;

typedef struct move_job {
    hfn_x86_mode mode;
    const uint8_t *bytes;
    uint64_t size;
    uint64_t rva;
    uint32_t patch_bytes;
    uint8_t pc_register;
    uint32_t covered; /* bytes of whole instructions read so far */
    uint32_t count;
    moved_instruction items[MAX_INSTRUCTIONS];
} move_job;

/* Is prefix one of the instruction's legacy prefixes (Intel SDM vol. 2, 2.1.1)? */
static bool has_prefix(const uint8_t *bytes, uint32_t length, uint8_t prefix)
{
    static const uint8_t legacy[] = { 0x66, 0x67, 0xF0, 0xF2, 0xF3, 0x2E,
                                      0x36, 0x3E, 0x26, 0x64, 0x65 };

    for (uint32_t i = 0; i < length && memchr(legacy, bytes[i], sizeof legacy); i++) {
        if (bytes[i] == prefix) {
            return true;
        }
    }
    return false;
}

/* Classify a direct branch; its opcode is the byte before the field. */
static bool classify_branch(const uint8_t *bytes, moved_instruction *p)
{
    uint8_t opcode = bytes[p->in.relative_at - 1];

    /* Intel's CPUs ignore prefix 66; AMD's read a 2-byte field. */
    if (p->in.relative_bytes == 2 || has_prefix(bytes, p->in.length, 0x66)) {
        return false;
    }
    if (p->in.flow == HFN_FLOW_JUMP) {
        p->kind = WIDE_JUMP;
        p->moved_bytes = JUMP_BYTES;
    } else if (opcode >= 0xE0 && opcode <= 0xE3) {
        p->kind = LOOP;
        p->moved_bytes = LOOP_BYTES + has_prefix(bytes, p->in.length, 0x67);
    } else if (opcode == 0xF8) { /* xbegin: C7 F8 rel32 */
        p->kind = COPY_RELATIVE;
    } else {
        p->kind = WIDE_JUMP_IF;
        p->moved_bytes = JUMP_IF_BYTES;
    }
    return true;
}

static bool classify_instruction(const move_job *job, moved_instruction *p)
{
    const uint8_t *bytes = job->bytes + p->offset;

    p->kind = COPY;
    p->moved_bytes = p->in.length;
    if (p->in.relative_at == 0) {
        return true;
    }
    if (p->in.flow == HFN_FLOW_JUMP || p->in.flow == HFN_FLOW_JUMP_IF) {
        return classify_branch(bytes, p);
    }
    /* Prefix 67 makes the address eip-relative, which cannot reach beyond 4 GiB. */
    if (p->in.relative_bytes != 4 || has_prefix(bytes, p->in.length, 0x67)) {
        return false;
    }
    p->kind = COPY_RELATIVE;
    return true;
}

/* A call through a word of memory, as `gcc -pg -mfentry` puts at each entry. */
static bool is_slot_call(const move_job *job, const moved_instruction *p)
{
    const uint8_t *bytes = job->bytes + p->offset;

    return job->mode == HFN_X86_64 && p->in.flow == HFN_FLOW_CALL_INDIRECT &&
           p->in.length == SLOT_CALL_BYTES && bytes[0] == 0xFF && bytes[1] == 0x15;
}

/* The function that is called returns to the original code, so no instruction after the call may
 * move. */
static bool is_last(const move_job *job, const moved_instruction *p)
{
    return job->patch_bytes < p->offset + p->in.length;
}

static hfn_move_result read_instruction(move_job *job)
{
    if (job->count == MAX_INSTRUCTIONS) {
        return HFN_MOVE_TOO_LONG;
    }
    moved_instruction *p = &job->items[job->count];
    p->offset = job->covered;
    if (!hfn_x86_decode(job->mode, job->bytes + p->offset, job->size - p->offset,
                        job->rva + p->offset, 0, &p->in)) {
        return HFN_MOVE_UNDECODABLE;
    }
    if (p->in.flow == HFN_FLOW_CALL && p->in.length == JUMP_BYTES &&
        job->pc_register != HFN_NO_REGISTER) {
        p->kind = PC_CALL;
        p->moved_bytes = JUMP_BYTES + LEA_BYTES;
    } else if (is_slot_call(job, p) && is_last(job, p)) {
        p->kind = SLOT_CALL;
        p->moved_bytes = MOVED_SLOT_CALL_BYTES;
    } else if (p->in.flow == HFN_FLOW_CALL || p->in.flow == HFN_FLOW_CALL_INDIRECT) {
        return HFN_MOVE_CALL;
    } else if (!classify_instruction(job, p)) {
        return HFN_MOVE_IMPOSSIBLE;
    }
    p->moved_at = job->count == 0 ? 0 : p[-1].moved_at + p[-1].moved_bytes;
    job->covered += p->in.length;
    job->count++;
    return HFN_MOVED;
}

static hfn_move_result read_instructions(move_job *job)
{
    hfn_move_result result = HFN_MOVED;

    while (result == HFN_MOVED && job->covered < job->patch_bytes) {
        result = read_instruction(job);
    }
    return result;
}

static bool add_fixup(hfn_moved *out, uint32_t at, uint32_t end, uint64_t target_rva)
{
    if (out->fixup_count == HFN_FIXUP_MAX) {
        return false;
    }
    out->fixups[out->fixup_count++] =
        (hfn_fixup){ .at = (uint8_t)at, .end = (uint8_t)end, .target_rva = target_rva };
    return true;
}

/* Fill the branch field at `at` with the distance to the target's copy, or add a fixup. */
static hfn_move_result set_branch_target(const move_job *job, hfn_x86_writer *w, uint32_t at,
                                         uint64_t target, hfn_moved *out)
{
    if (target - job->rva >= job->covered) {
        return add_fixup(out, at, at + 4, target) ? HFN_MOVED : HFN_MOVE_TOO_LONG;
    }
    for (uint32_t i = 0; i < job->count; i++) {
        if (job->items[i].offset == target - job->rva) {
            hfn_x86_replace_u32(w, at, job->items[i].moved_at - (at + 4));
            return HFN_MOVED;
        }
    }
    return HFN_MOVE_IMPOSSIBLE; /* a target within a moved instruction */
}

/* loop, loopcc and jrcxz have only short targets: jump to a jump. */
static uint32_t put_loop(hfn_x86_writer *w, const uint8_t *bytes, const moved_instruction *p)
{
    if (has_prefix(bytes, p->in.length, 0x67)) {
        hfn_x86_put_u8(w, 0x67);
    }
    hfn_x86_put_u8(w, bytes[p->in.relative_at - 1]);
    hfn_x86_put_bytes(w, (const uint8_t[]){ 2, 0xEB, 5 }, 3); /* +2; jmp +5 */
    return hfn_x86_put_jump(w);
}

/* call thunk; lea reg, [reg + d]: changes the return address in reg from the stub's to the
 * original's. */
static bool put_pc_call(const move_job *job, const moved_instruction *p, hfn_x86_writer *w,
                        hfn_moved *out)
{
    uint32_t end = w->length + JUMP_BYTES;

    hfn_x86_put_bytes(w, (const uint8_t[]){ 0xE8, 0, 0, 0, 0, 0x8D }, 6);
    hfn_x86_put_u8(w, 0x80 | job->pc_register << 3 | job->pc_register);
    hfn_x86_put_u32(w, 0);
    return add_fixup(out, end - 4, end, p->in.target) &&
           add_fixup(out, end + 2, end, job->rva + p->offset + p->in.length);
}

/* Push the original return address, without a change of flags or of memory below it, and jump. */
static bool put_slot_call(const move_job *job, const moved_instruction *p, hfn_x86_writer *w,
                          hfn_moved *out)
{
    static const uint8_t code[MOVED_SLOT_CALL_BYTES] = {
        0x50,                            /* push rax              */
        0x48, 0x8D, 0x05, 0,    0, 0, 0, /* lea rax, [rip + back] */
        0x48, 0x87, 0x04, 0x24,          /* xchg [rsp], rax       */
        0xFF, 0x25, 0,    0,    0, 0     /* jmp [rip + slot]      */
    };
    uint32_t at = w->length;

    hfn_x86_put_bytes(w, code, sizeof code);
    return add_fixup(out, at + 4, at + 8, job->rva + p->offset + p->in.length) &&
           add_fixup(out, at + 14, at + 18, p->in.target);
}

static hfn_move_result put_instruction(const move_job *job, const moved_instruction *p,
                                       hfn_x86_writer *w, hfn_moved *out)
{
    const uint8_t *bytes = job->bytes + p->offset;

    switch (p->kind) {
    case COPY: hfn_x86_put_bytes(w, bytes, p->in.length); return HFN_MOVED;
    case COPY_RELATIVE: {
        uint32_t at = w->length + p->in.relative_at, end = w->length + p->in.length;
        hfn_x86_put_bytes(w, bytes, p->in.length);
        if (p->in.flow == HFN_FLOW_JUMP_IF) { /* xbegin */
            return set_branch_target(job, w, at, p->in.target, out);
        }
        return add_fixup(out, at, end, p->in.target) ? HFN_MOVED : HFN_MOVE_TOO_LONG;
    }
    case WIDE_JUMP: return set_branch_target(job, w, hfn_x86_put_jump(w), p->in.target, out);
    case WIDE_JUMP_IF:
        return set_branch_target(job, w, hfn_x86_put_jump_if(w, bytes[p->in.relative_at - 1] & 15),
                                 p->in.target, out);
    case PC_CALL: return put_pc_call(job, p, w, out) ? HFN_MOVED : HFN_MOVE_TOO_LONG;
    case SLOT_CALL: return put_slot_call(job, p, w, out) ? HFN_MOVED : HFN_MOVE_TOO_LONG;
    default: return set_branch_target(job, w, put_loop(w, bytes, p), p->in.target, out);
    }
}

static bool falls_through(const hfn_instruction *in)
{
    switch (in->flow) {
    case HFN_FLOW_JUMP:
    case HFN_FLOW_JUMP_INDIRECT:
    case HFN_FLOW_RETURN: return false;
    case HFN_FLOW_STOP: return in->is_padding; /* a debugger may continue after int3 */
    default: return true;
    }
}

static hfn_move_result put_jump_back(const move_job *job, hfn_x86_writer *w, hfn_moved *out)
{
    const moved_instruction *last = job->count > 0 ? &job->items[job->count - 1] : NULL;

    if (last && (last->kind == SLOT_CALL || !falls_through(&last->in))) {
        return HFN_MOVED;
    }
    uint32_t at = hfn_x86_put_jump(w);
    return add_fixup(out, at, at + 4, job->rva + job->covered) ? HFN_MOVED : HFN_MOVE_TOO_LONG;
}

/* Fill in the tables for hooks and unwinders: old and new offsets, and the depth of the stack. */
static void describe_positions(const move_job *job, hfn_moved *out)
{
    int32_t grown = 0;

    out->instruction_count = (uint8_t)job->count;
    for (uint32_t i = 0; i < job->count; i++) {
        const moved_instruction *p = &job->items[i];
        int32_t growth = 0;
        out->original_at[i] = (uint8_t)p->offset;
        out->moved_at[i] = (uint8_t)p->moved_at;
        out->cfa_delta[i] = (int16_t)grown;
        bool known = p->kind == PC_CALL || p->kind == SLOT_CALL ||
                     hfn_x86_get_stack_growth(job->mode, job->bytes + p->offset,
                                              job->size - p->offset, &growth);
        if (grown != HFN_CFA_UNKNOWN) {
            grown = known && grown + growth > INT16_MIN && grown + growth <= INT16_MAX
                        ? grown + growth
                        : HFN_CFA_UNKNOWN;
        }
    }
    out->cfa_delta_end = (int16_t)grown;
}

hfn_move_result hfn_x86_move_prologue(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size,
                                      uint64_t rva, uint32_t patch_bytes, uint8_t pc_register,
                                      hfn_moved *out, uint32_t *offset)
{
    move_job job = { .mode = mode,
                     .bytes = bytes,
                     .size = size,
                     .rva = rva,
                     .patch_bytes = patch_bytes,
                     .pc_register = pc_register };
    hfn_moved moved = { .length = 0 };
    hfn_x86_writer w = hfn_x86_begin_writer(moved.bytes, HFN_MOVED_MAX);

    hfn_move_result result = read_instructions(&job);
    *offset = job.covered;
    for (uint32_t i = 0; result == HFN_MOVED && i < job.count; i++) {
        *offset = job.items[i].offset;
        result = put_instruction(&job, &job.items[i], &w, &moved);
    }
    if (result == HFN_MOVED) {
        result = put_jump_back(&job, &w, &moved);
    }
    if (result == HFN_MOVED && w.full) {
        result = HFN_MOVE_TOO_LONG;
    }
    if (result != HFN_MOVED) {
        return result;
    }
    describe_positions(&job, &moved);
    moved.length = (uint8_t)w.length;
    moved.original_bytes = (uint8_t)job.covered;
    *out = moved;
    return HFN_MOVED;
}

uint8_t hfn_x86_find_pc_register(const uint8_t *bytes, uint64_t size)
{
    bool is_thunk = size >= 4 && bytes[0] == 0x8B && (bytes[1] & 0xC7) == 0x04 &&
                    bytes[1] != 0x24 && bytes[2] == 0x24 && bytes[3] == 0xC3;

    return is_thunk ? bytes[1] >> 3 & 7 : HFN_NO_REGISTER;
}

bool hfn_x86_make_retarget(hfn_x86_mode mode, const uint8_t *bytes, uint64_t size, uint64_t rva,
                           hfn_moved *out)
{
    hfn_instruction in;
    hfn_moved moved = { .instruction_count = 0 }; /* a PC at the call or jump need not move */
    hfn_x86_writer w = hfn_x86_begin_writer(moved.bytes, HFN_MOVED_MAX);

    if (size < 5 || (bytes[0] != 0xE8 && bytes[0] != 0xE9) ||
        !hfn_x86_decode(mode, bytes, size, rva, 0, &in)) {
        return false;
    }
    uint32_t at = hfn_x86_put_jump(&w);
    add_fixup(&moved, at, at + 4, in.target);
    moved.length = (uint8_t)w.length;
    moved.original_bytes = in.length;
    *out = moved;
    return true;
}

bool hfn_x86_is_retargetable(const uint8_t *bytes, const hfn_instruction *in)
{
    if (in->length == 5) {
        return bytes[0] == 0xE8 || bytes[0] == 0xE9;
    }
    return in->length == 6 && bytes[0] == 0x0F && (bytes[1] & 0xF0) == 0x80;
}
