/* SPDX-License-Identifier: MIT */
/*
 * Finds the system calls that may begin a thread or process (arch/call_site.h), in code whose
 * functions are not known.
 *
 * - The bytes of a `syscall` may be a part of another instruction.  Decoding from many places
 *   before them soon arrives at the same instructions, so most of these paths reach a true
 *   `syscall`.
 * - The number of a call is the constant that the code before it loads into eax, if no branch leads
 *   between the two.
 * - Only instructions that work at any address, and to which no branch leads, are replaced.
 */
#include "arch/call_site.h"

#include "base/byte_order.h"

#include <string.h>

enum {
    STARTS = 32,
    WAY = 32,       /* bytes after which the paths have met */
    BEFORE = 64,    /* bytes in which the number is searched */
    BEHIND = 24,    /* bytes behind the call that are described */
    BRANCHES = 160, /* bytes around a call from which a short branch reaches it */
    CALL_BYTES = 2,
    MAX_CALLS = 4096,
    MAX_STEPS = BEFORE + WAY + STARTS,
};

static const hfn_arch *get_arch(void)
{
    return hfn_arch_find(hfn_patching_x86_64.machine);
}

typedef struct finder {
    const hfn_arch *arch;
    const uint8_t *code;
    uint64_t size;
} finder;

/* The instructions around a call, by their offsets. */
typedef struct line {
    uint64_t call;
    uint8_t before[BEFORE]; /* how far before the call; the nearest one first */
    uint32_t before_count;
    bool is_target[BEFORE + BEHIND]; /* a branch leads to call - BEFORE + i */
} line;

_Static_assert(MAX_CALLS * sizeof(line) <= HFN_CALL_ROOM_BYTES, "room for all calls");

/* ---- Decoding. */

static bool decode_at(const finder *f, uint64_t at, hfn_instruction *out)
{
    return at < f->size && f->arch->decode(f->code + at, f->size - at, at, 0, out);
}

/* Does decoding from `at` reach `goal`? */
static bool reaches_call(const finder *f, uint64_t at, uint64_t goal)
{
    hfn_instruction in;

    while (at < goal && decode_at(f, at, &in)) {
        at += in.length;
    }
    return at == goal;
}

/* The first place from which decoding reaches the call, of those at least `distance` before it;
 * UINT64_MAX if most of them do not. */
static uint64_t find_path(const finder *f, uint64_t call, uint64_t distance)
{
    uint64_t first = UINT64_MAX, from = call > distance + STARTS ? call - distance - STARTS : 0;
    uint32_t hits = 0, tries = 0;

    for (uint64_t at = from; at < from + STARTS && at <= call; at++, tries++) {
        if (reaches_call(f, at, call)) {
            hits++;
            first = first == UINT64_MAX ? at : first;
        }
    }
    return 2 * hits > tries ? first : UINT64_MAX;
}

/* ---- Branches that lead to the neighbourhood of a call. */

static void note_target(line *l, uint64_t target)
{
    uint64_t at = target + BEFORE - l->call;

    if (at < BEFORE + BEHIND) {
        l->is_target[at] = true;
    }
}

static void note_short_branches(const finder *f, line *l)
{
    uint64_t at = find_path(f, l->call, BRANCHES), end = l->call + BRANCHES;
    hfn_instruction in;

    if (at == UINT64_MAX) { /* data before the function */
        at = find_path(f, l->call, WAY);
    }
    while (at < end && decode_at(f, at, &in)) {
        if (in.flow == HFN_FLOW_JUMP || in.flow == HFN_FLOW_JUMP_IF || in.flow == HFN_FLOW_CALL) {
            note_target(l, in.target);
        }
        at += in.length;
    }
}

/* Branches with a field of four bytes, from anywhere; also those that are no instruction. */
static void note_far_branches(const finder *f, line *lines, uint32_t count)
{
    const uint8_t *c = f->code;

    for (uint64_t i = 0; i + 5 <= f->size; i++) {
        bool is_branch = (c[i] & 0xfe) == 0xe8;
        if (!is_branch && !(i > 0 && c[i - 1] == 0x0f && (c[i] & 0xf0) == 0x80)) {
            continue;
        }
        uint64_t target = i + 5 + (uint64_t)(int64_t)(int32_t)hfn_read_le32(c + i + 1);
        uint32_t low = 0, high = count;
        while (low < high) { /* the first call behind target - BEHIND */
            uint32_t middle = (low + high) / 2;
            if (lines[middle].call + BEHIND <= target) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        for (; low < count && lines[low].call <= target + BEFORE; low++) {
            note_target(&lines[low], target);
        }
    }
}

/* ---- The number of a call. */

/* Does the instruction leave eax as it is?  True only for common ones.  *constant receives what it
 * loads into eax. */
static bool keeps_eax(const uint8_t *b, uint32_t length, bool *loads, uint32_t *constant)
{
    uint8_t rex = 0, reg, rm;
    const uint8_t *end = b + length;

    *loads = false;
    b += *b == 0x64; /* fs */
    if ((*b & 0xf0) == 0x40) {
        rex = *b++;
    }
    if ((*b & 0xf8) == 0xb8) { /* mov $imm, r */
        *loads = (*b & 7) == 0 && !(rex & 1) && end - b == 5;
        *constant = *loads ? hfn_read_le32(b + 1) : 0;
        return *loads || (*b & 7) != 0 || (rex & 1);
    }
    if ((*b & 0xf8) == 0x50) { /* push */
        return true;
    }
    if (end - b < 2) {
        return false;
    }
    reg = (uint8_t)((b[1] >> 3 & 7) | (rex & 4) << 1);
    rm = (uint8_t)((b[1] & 7) | (rex & 1) << 3);
    switch (*b) {
    case 0x89: return b[1] < 0xc0 || rm != 0; /* mov r, r/m   */
    case 0x84:
    case 0x85:
    case 0x39:
    case 0x3b: return true; /* test, cmp */
    case 0x8b:
    case 0x8d:
    case 0x63: return reg != 0; /* mov, lea, movsxd */
    case 0x31:
    case 0x33: /* xor          */
        *loads = b[1] == 0xc0 && !(rex & 5);
        *constant = 0;
        return *loads || (reg != 0 && rm != 0 && b[1] >= 0xc0);
    case 0x83:
    case 0x81: return b[1] < 0xc0 || rm != 0;
    case 0xc7:
        *loads = b[1] == 0xc0 && !(rex & 1) && end - b == 6;
        *constant = *loads ? hfn_read_le32(b + 2) : 0;
        return *loads || b[1] < 0xc0 || rm != 0;
    default: return false;
    }
}

/* Linux, arch/x86/entry/syscalls/syscall_64.tbl: clone, fork, clone3.  vfork's child keeps its
 * parent's row. */
static bool may_begin_thread(uint32_t number)
{
    return number == 56 || number == 57 || number == 435;
}

static bool is_target(const line *l, uint64_t at)
{
    return l->is_target[at + BEFORE - l->call];
}

/* Is the number of the call known, and not one of these? */
static bool is_harmless(const finder *f, const line *l)
{
    uint64_t next = l->call;
    uint32_t constant;
    bool loads;

    for (uint32_t i = 0; i < l->before_count; i++) {
        uint64_t at = l->call - l->before[i];
        if (is_target(l, next) ||
            !keeps_eax(f->code + at, (uint32_t)(next - at), &loads, &constant)) {
            return false;
        }
        if (loads) {
            return !may_begin_thread(constant);
        }
        next = at;
    }
    return false;
}

/* musl's cancellable call (src/thread/x86_64/syscall_cp.s): its handler of signals compares the
 * interrupted address with the bounds of this code, and no cancellable call begins a thread. */
static bool is_cancellable(const finder *f, uint64_t call)
{
    static const uint8_t before[] = { 0x4c, 0x8b, 0x44, 0x24, 0x08, 0x4c, 0x8b, 0x4c,
                                      0x24, 0x10, 0x4c, 0x89, 0x5c, 0x24, 0x08 };

    return call > sizeof before &&
           memcmp(f->code + call - sizeof before, before, sizeof before) == 0 &&
           f->code[call + CALL_BYTES] == 0xc3;
}

/* ---- The instructions to replace. */

static bool can_move_before(const hfn_instruction *in)
{
    return in->flow == HFN_FLOW_NEXT && in->relative_at == 0 && !in->is_landing_pad &&
           !in->is_system && in->absolute_at == 0;
}

/* Short branches but loop and jrcxz, and what needs no change. */
static bool can_move_behind(const uint8_t *bytes, const hfn_instruction *in)
{
    bool is_branch = in->flow == HFN_FLOW_JUMP || in->flow == HFN_FLOW_JUMP_IF;

    return in->flow == HFN_FLOW_RETURN || in->is_padding ||
           (is_branch && in->relative_bytes == 1 && in->length == 2 &&
            (bytes[0] == 0xeb || (bytes[0] & 0xf0) == 0x70)) ||
           (in->flow == HFN_FLOW_NEXT && in->relative_at == 0 && !in->is_landing_pad &&
            !in->is_system);
}

/* The end of the whole instructions behind the call that complete a patch at `begin`; 0: they
 * cannot be moved. */
static uint64_t find_end(const finder *f, const line *l, uint64_t begin)
{
    uint64_t at = l->call + CALL_BYTES;
    bool continues = true;
    hfn_instruction in;

    while (at - begin < HFN_CALL_PATCH_BYTES) {
        if (is_target(l, at) || !decode_at(f, at, &in) || !can_move_behind(f->code + at, &in) ||
            (!continues && !in.is_padding)) {
            return 0;
        }
        continues = continues && !hfn_ends_path(&in);
        at += in.length;
    }
    return at;
}

/* Instructions before the call are preferred to those behind it. */
static hfn_child_call choose_span(const finder *f, const line *l)
{
    uint64_t begin = l->call, behind = l->call + CALL_BYTES, end;
    hfn_instruction in;

    for (uint32_t i = 0; i < l->before_count && behind - begin < HFN_CALL_PATCH_BYTES; i++) {
        uint64_t at = l->call - l->before[i];
        if (is_target(l, begin) || !decode_at(f, at, &in) || !can_move_before(&in)) {
            break;
        }
        begin = at;
    }
    if (behind - begin >= HFN_CALL_PATCH_BYTES) {
        return (hfn_child_call){ l->call, begin, behind };
    }
    end = find_end(f, l, begin);
    return (hfn_child_call){ l->call, end ? begin : 0, end };
}

/* ---- All of it. */

static void describe_line(const finder *f, line *l, uint64_t from)
{
    uint64_t starts[MAX_STEPS];
    uint32_t count = 0;
    hfn_instruction in;

    for (uint64_t at = from; at < l->call && count < MAX_STEPS && decode_at(f, at, &in);
         at += in.length) {
        starts[count++] = at;
    }
    while (count > 0 && l->before_count < BEFORE && l->call - starts[count - 1] < BEFORE) {
        l->before[l->before_count++] = (uint8_t)(l->call - starts[--count]);
    }
}

/* Returns MAX_CALLS + 1 if there are more. */
static uint32_t collect_calls(const finder *f, line *lines)
{
    const uint8_t *end = f->code + f->size - CALL_BYTES;
    uint32_t count = 0;

    for (const uint8_t *hit = f->code; hit < end; hit++) {
        uint64_t call, from;
        hit = memchr(hit, 0x0f, (size_t)(end - hit));
        if (!hit) {
            break;
        }
        call = (uint64_t)(hit - f->code);
        from = hit[1] == 0x05 ? find_path(f, call, WAY) : UINT64_MAX;
        if (from == UINT64_MAX || is_cancellable(f, call)) {
            continue;
        }
        if (count == MAX_CALLS) {
            return MAX_CALLS + 1;
        }
        memset(&lines[count], 0, sizeof *lines);
        lines[count].call = call;
        describe_line(f, &lines[count++], from);
    }
    return count;
}

bool hfn_find_call_sites(const uint8_t *code, uint64_t size, void *room, hfn_child_call_fn visit,
                         void *user)
{
    finder f = { get_arch(), code, size };
    line *lines = room;
    uint32_t count = f.arch && size > BEFORE ? collect_calls(&f, lines) : 0;

    if (!f.arch || count > MAX_CALLS) {
        return false;
    }
    note_far_branches(&f, lines, count);
    for (uint32_t i = 0; i < count; i++) {
        hfn_child_call site;
        note_short_branches(&f, &lines[i]);
        if (is_harmless(&f, &lines[i])) {
            continue;
        }
        site = choose_span(&f, &lines[i]);
        if (!visit(user, &site)) {
            return false;
        }
    }
    return true;
}

/* ---- The gs segment. */

/* The prefix of the segment; rdgsbase and wrgsbase; mov to gs (Intel SDM vol. 2). */
static bool uses_gs(const uint8_t *b, const hfn_instruction *in)
{
    const uint8_t *end = b + in->length;
    bool has_f3 = false;

    for (; b < end && memchr("\x66\xf2\xf3\x2e\x36\x3e\x26\x64\x65\xf0", *b, 10); b++) {
        if (*b == 0x65) {
            return !in->is_padding;
        }
        has_f3 = has_f3 || *b == 0xf3;
    }
    b += b < end && (*b & 0xf0) == 0x40;
    if (end - b == 2 && *b == 0x8e) {
        return (b[1] >> 3 & 7) == 5;
    }
    return has_f3 && end - b == 3 && b[0] == 0x0f && b[1] == 0xae && (b[2] & 0xe8) == 0xc8;
}

uint64_t hfn_find_gs_use(const uint8_t *code, uint64_t size)
{
    finder f = { get_arch(), code, size };
    hfn_instruction in;

    for (uint64_t at = 0; f.arch && at < size; at += in.length) {
        if (!decode_at(&f, at, &in)) {
            in.length = 1;
        } else if (uses_gs(code + at, &in)) {
            return at;
        }
    }
    return UINT64_MAX;
}
