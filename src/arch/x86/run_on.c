/* SPDX-License-Identifier: MIT */
/*
 * Copies a function's way on behind its moved instructions, so that a call that soon returns never goes
 * back.  Copied is what control really comes to, branch by branch; a copy goes back to the function
 * where that calls (return addresses stay in the function), moves the stack pointer (so that a copy is
 * unwound like the entry), leaves the bytes that may be copied, or is not known to the quick decoder.
 */
#include "arch/x86/run_on.h"

#include "arch/x86/decode_common.h"
#include "base/byte_order.h"

#include <string.h>

enum {
    PIECES_MAX = 64,
    COPIED_MAX = 192, /* bytes, of instructions */
    STEPS_MAX = 256,
    NO_PIECE = 0xff,
    SHORT_BYTES = 2,
    JUMP_BYTES = 5,
    JUMP_IF_BYTES = 6,
};

typedef enum piece_kind { COPY, JUMP_IF, JUMP } piece_kind;

/* An instruction to write. */
typedef struct piece {
    piece_kind kind;
    uint8_t length;      /* COPY: of the original                              */
    uint8_t relative_at; /* COPY: of its PC-relative field, 0 if it has none   */
    uint8_t condition;   /* JUMP_IF                                            */
    uint64_t at;         /* of the original; JUMP: 0, it stands for none       */
    uint64_t target;     /* that its field means                               */
    uint32_t to;         /* the piece that target became, NO_PIECE: none       */
    uint32_t put_at, put_bytes;
} piece;

typedef struct job {
    const hfn_run *run;
    piece pieces[PIECES_MAX];
    uint32_t count;
    uint32_t copied_bytes, steps;
    uint32_t head_bytes; /* of the moved code, without the jump back */
} job;

/* ---- Which instructions can be copied. */

/* What the instruction at `at` is; false if it stays where it is. */
static bool read_one(const job *j, uint64_t at, hfn_instruction *in)
{
    const hfn_run *run = j->run;
    uint8_t bytes[HFN_X86_MAX_INSTRUCTION_BYTES] = { 0 };

    if (at < run->begin || at >= run->end || run->is_barred(run->user, at)) {
        return false;
    }
    memcpy(bytes, (const void *)(uintptr_t)at,
           run->end - at < sizeof bytes ? run->end - at : sizeof bytes);
    if (!hfn_x86_decode_common(bytes, sizeof bytes, at, 0, in) || in->length > run->end - at) {
        return false;
    }
    switch (in->flow) {
    case HFN_FLOW_NEXT:
    case HFN_FLOW_JUMP:
    case HFN_FLOW_JUMP_IF:
    case HFN_FLOW_JUMP_INDIRECT: return hfn_x86_preserves_stack_pointer(bytes);
    case HFN_FLOW_RETURN: return true;
    default: return false;
    }
}

/* ---- Walking. */

static uint32_t piece_of(const job *j, uint64_t at)
{
    for (uint32_t i = 0; i < j->count; i++) {
        if (j->pieces[i].at == at) {
            return i;
        }
    }
    return NO_PIECE;
}

static void add_jump(job *j, uint64_t target)
{
    j->pieces[j->count++] = (piece){ .kind = JUMP, .target = target };
}

static void add_instruction(job *j, uint64_t at, const hfn_instruction *in)
{
    const uint8_t *bytes = (const uint8_t *)(uintptr_t)at;
    bool branches = in->flow == HFN_FLOW_JUMP_IF;

    j->copied_bytes += in->length;
    j->pieces[j->count++] = (piece){
        .kind = branches ? JUMP_IF : COPY,
        .length = in->length,
        .relative_at = in->relative_bytes == 4 ? in->relative_at : 0,
        .condition = branches ? bytes[in->relative_at - 1] & 15 : 0,
        .at = at,
        .target = in->target,
    };
}

/* The way from `at` on.  The last place is kept for the jump that it ends with. */
static void walk(job *j, uint64_t at)
{
    hfn_instruction in;

    for (; j->steps < STEPS_MAX; j->steps++) {
        if (j->count >= PIECES_MAX - 1 || j->copied_bytes >= COPIED_MAX ||
            piece_of(j, at) != NO_PIECE || !read_one(j, at, &in)) {
            break;
        }
        if (in.flow == HFN_FLOW_JUMP) {
            at = in.target;
            continue;
        }
        add_instruction(j, at, &in);
        if (in.flow == HFN_FLOW_RETURN || in.flow == HFN_FLOW_JUMP_INDIRECT) {
            return;
        }
        at += in.length;
    }
    add_jump(j, at);
}

/* Also from a branch's target on, if there is something to copy. */
static void walk_target(job *j, uint64_t target)
{
    hfn_instruction in;

    if (j->count + 2 < PIECES_MAX && j->copied_bytes < COPIED_MAX && j->steps < STEPS_MAX &&
        piece_of(j, target) == NO_PIECE && read_one(j, target, &in)) {
        walk(j, target);
    }
}

/* ---- The moved instructions. */

/* jmp or jcc with the field at `at`; no ModRM byte of a PC-relative operand is one of these. */
static bool is_branch(const hfn_run *run, const hfn_fixup *fixup)
{
    const uint8_t *field = run->moved + fixup->at;

    return fixup->end == fixup->at + 4 &&
           ((fixup->at >= 1 && field[-1] == 0xe9) ||
            (fixup->at >= 2 && field[-2] == 0x0f && (field[-1] & 0xf0) == 0x80));
}

/* The fixup of the jump that ends the moved code, NULL if none does. */
static const hfn_fixup *jump_back(const hfn_run *run)
{
    const hfn_fixup *last = run->fixup_count > 0 ? &run->fixups[run->fixup_count - 1] : NULL;

    return last && last->end == run->moved_bytes && is_branch(run, last) &&
                   run->moved[last->at - 1] == 0xe9
               ? last
               : NULL;
}

/* Are they unwound like the entry, to the last one? */
static bool moved_keep_stack(const hfn_run *run, uint32_t byte_count)
{
    uint8_t bytes[HFN_MOVED_MAX + HFN_X86_MAX_INSTRUCTION_BYTES] = { 0 };
    hfn_instruction in;

    memcpy(bytes, run->moved, byte_count);
    for (uint32_t at = 0; at < byte_count; at += in.length) {
        if (!hfn_x86_decode_common(bytes + at, sizeof bytes - at, at, 0, &in) ||
            (in.flow != HFN_FLOW_NEXT && in.flow != HFN_FLOW_JUMP_IF) ||
            !hfn_x86_preserves_stack_pointer(bytes + at)) {
            return false;
        }
    }
    return true;
}

static void walk_all(job *j, const hfn_fixup *back)
{
    walk(j, back->target_rva);
    for (uint32_t i = 0; i + 1 < j->run->fixup_count; i++) {
        if (is_branch(j->run, &j->run->fixups[i])) {
            walk_target(j, j->run->fixups[i].target_rva);
        }
    }
    for (uint32_t i = 0; i < j->count; i++) {
        if (j->pieces[i].kind == JUMP_IF) {
            walk_target(j, j->pieces[i].target);
        }
    }
}

/* ---- Writing. */

static uint32_t bytes_of(const job *j, uint32_t i)
{
    const piece *p = &j->pieces[i];
    uint32_t wide = p->kind == JUMP ? JUMP_BYTES : JUMP_IF_BYTES;
    int64_t distance;

    if (p->kind == COPY) {
        return p->length;
    }
    if (p->to == NO_PIECE) {
        return wide;
    }
    if (p->put_bytes == SHORT_BYTES) {
        return SHORT_BYTES;
    }
    distance = (int64_t)j->pieces[p->to].put_at - (int64_t)(p->put_at + SHORT_BYTES);
    return distance >= INT8_MIN + JUMP_BYTES && distance <= INT8_MAX ? SHORT_BYTES : wide;
}

/* Wide branches become short while that lets others become short.  Returns the size of all. */
static uint32_t place(job *j)
{
    bool changed = true;
    uint32_t at = 0;

    for (uint32_t i = 0; i < j->count; i++) {
        piece *p = &j->pieces[i];
        p->to = p->kind == COPY ? NO_PIECE : piece_of(j, p->target);
        p->put_bytes = p->kind == COPY ? p->length : JUMP_IF_BYTES;
    }
    while (changed) {
        changed = false;
        at = j->head_bytes;
        for (uint32_t i = 0; i < j->count; i++) {
            j->pieces[i].put_at = at;
            at += j->pieces[i].put_bytes;
        }
        for (uint32_t i = 0; i < j->count; i++) {
            uint32_t bytes = bytes_of(j, i);
            changed |= bytes != j->pieces[i].put_bytes;
            j->pieces[i].put_bytes = bytes;
        }
    }
    return at;
}

/* Where a target is now: in the copy that stands at address, if it was copied. */
static uint64_t aim(const job *j, uint64_t address, uint64_t target)
{
    uint32_t to = piece_of(j, target);

    return to == NO_PIECE ? target : address + j->pieces[to].put_at;
}

static bool put_distance(uint8_t *field, uint64_t behind, uint64_t target)
{
    int64_t distance = (int64_t)(target - behind);

    hfn_write_le32(field, (uint32_t)distance);
    return distance == (int32_t)distance;
}

static bool put_piece(const job *j, const piece *p, uint64_t address, uint8_t *out)
{
    uint8_t *at = out + p->put_at;
    uint64_t behind = address + p->put_at + p->put_bytes;

    if (p->kind == COPY) {
        memcpy(at, (const void *)(uintptr_t)p->at, p->length);
        return p->relative_at == 0 || put_distance(at + p->relative_at, behind, p->target);
    }
    if (p->put_bytes == SHORT_BYTES) {
        at[0] = p->kind == JUMP ? 0xeb : 0x70 | p->condition;
        at[1] = (uint8_t)(aim(j, address, p->target) - behind);
        return true;
    }
    if (p->kind == JUMP) {
        at[0] = 0xe9;
    } else {
        at[0] = 0x0f;
        at[1] = 0x80 | p->condition;
    }
    return put_distance(at + p->put_bytes - 4, behind, aim(j, address, p->target));
}

static bool put_moved(const job *j, uint64_t address, uint8_t *out)
{
    const hfn_run *run = j->run;
    bool ok = true;

    memcpy(out, run->moved, j->head_bytes);
    for (uint32_t i = 0; ok && i + 1 < run->fixup_count; i++) {
        const hfn_fixup *fixup = &run->fixups[i];
        uint64_t target = fixup->target_rva;
        ok = put_distance(out + fixup->at, address + fixup->end,
                          is_branch(run, fixup) ? aim(j, address, target) : target);
    }
    return ok;
}

uint32_t hfn_x86_run_on(const hfn_run *run, uint64_t address, uint8_t *out)
{
    const hfn_fixup *back = jump_back(run);
    job j = { .run = run };
    uint32_t bytes;

    if (!back || !moved_keep_stack(run, back->at - 1u)) {
        return 0;
    }
    j.head_bytes = back->at - 1u;
    walk_all(&j, back);
    if (j.copied_bytes == 0) {
        return 0;
    }
    bytes = place(&j);
    if (bytes > HFN_RUN_MAX_BYTES || !put_moved(&j, address, out)) {
        return 0;
    }
    for (uint32_t i = 0; i < j.count; i++) {
        if (!put_piece(&j, &j.pieces[i], address, out)) {
            return 0;
        }
    }
    return bytes;
}
