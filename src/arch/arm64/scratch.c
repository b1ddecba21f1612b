/* SPDX-License-Identifier: MIT */
/*
 * Decides whether a stub may change x16 and x17 at an entry.  AAPCS64, 6.1.1 lets veneers change
 * them at any call, so compiled code never expects data in them.  Other code does: the loader's
 * lazy binding receives arguments in them (glibc, _dl_runtime_resolve), TLS descriptor resolvers
 * preserve every register but x0 ('TLS descriptors', Arm ABI), and functions written by hand may
 * agree on them.  All paths from the entry are followed through direct branches.  A path ends where
 * both registers were written, at a call or a branch out of the code (which may pass a veneer), and
 * at a return.  No veneer is behind an indirect branch, so there the registers are live if code to
 * which it may lead reads them.  They are live if a path reads one of them, or is too long.
 */
#include "arch/arm64/decode.h"
#include "arch/arm64/relocate.h"
#include "base/search.h"

#define STEPS_MAX 4096u /* instructions of all paths */
#define PATHS_MAX 256u
#define LDR_X0_X0_8 0xF9400400u
#define RET 0xD65F03C0u
#define HINTS_1716 0xD503211Fu /* pacia1716, pacib1716, autia1716, autib1716 */
#define CHKFEAT_X16 0xD503251Fu

/* May a load or store (C4.1.94) read the register, other than as its base?  As stored or swapped
 * value, or as index. */
static bool memory_may_read(uint32_t word, uint32_t reg)
{
    bool vector = word >> 26 & 1, is_rt = (word & 31) == reg && !vector;
    bool is_rt2 = hfn_arm64_get_bits(word, 14, 10) == reg && !vector;
    bool is_rm = hfn_arm64_get_bits(word, 20, 16) == reg;
    bool stores = hfn_arm64_get_bits(word, 23, 22) == 0;

    if ((word & 0x3A000000) == 0x28000000) { /* pairs */
        return !(word >> 22 & 1) && (is_rt || is_rt2);
    }
    if ((word & 0x3B000000) == 0x39000000 || (word & 0x3B200000) == 0x38000000) { /* immediates */
        return stores && is_rt;
    }
    if ((word & 0x3B200C00) == 0x38200800) { /* register offset */
        return (stores && is_rt) || is_rm;
    }
    return is_rt || is_rt2 || is_rm;
}

/* SVE (C4.1): its general registers are in the three fields below, or none. */
static bool is_vector_extension(uint32_t word)
{
    return hfn_arm64_get_bits(word, 28, 25) == 2;
}

/* May the instruction read the register?  Immediates in a register's field count as that
 * register. */
static bool may_read(uint32_t word, uint32_t reg)
{
    switch (hfn_arm64_get_form(word)) {
    case HFN_ARM64_B:
    case HFN_ARM64_BL:
    case HFN_ARM64_B_COND:
    case HFN_ARM64_ADR:
    case HFN_ARM64_ADRP:
    case HFN_ARM64_LOAD_LITERAL: return false;
    case HFN_ARM64_CBZ:
    case HFN_ARM64_TBZ: return (word & 31) == reg;
    default: break;
    }
    if ((word & 0x1F800000) == 0x12800000) { /* movn, movz, movk */
        return (word & 0x60000000) == 0x60000000 && (word & 31) == reg;
    }
    if ((hfn_arm64_get_bits(word, 28, 25) & 14) == 8) { /* immediate */
        return hfn_arm64_get_bits(word, 9, 5) == reg;
    }
    if ((word & 0xFFFFFF3F) == HINTS_1716 || word == CHKFEAT_X16) {
        return true;
    }
    if (word >> 24 == 0xD5) { /* system */
        return (word & 31) == reg && !(word >> 21 & 1);
    }
    if (is_vector_extension(word)) {
        return (word & 31) == reg || hfn_arm64_get_bits(word, 9, 5) == reg ||
               hfn_arm64_get_bits(word, 20, 16) == reg;
    }
    bool computes = (hfn_arm64_get_bits(word, 28, 25) & 7) == 5;
    if ((hfn_arm64_get_bits(word, 28, 25) & 7) ==
        7) { /* vectors; few come from general registers */
        return hfn_arm64_uses_general_register(word) && hfn_arm64_get_bits(word, 9, 5) == reg;
    }
    if ((hfn_arm64_get_bits(word, 28, 25) & 5) == 4) {
        return hfn_arm64_get_bits(word, 9, 5) == reg || memory_may_read(word, reg);
    }
    return hfn_arm64_get_bits(word, 9, 5) == reg ||
           (computes && hfn_arm64_get_bits(word, 20, 16) == reg) ||
           (computes && hfn_arm64_get_bits(word, 14, 10) == reg &&
            (word & 0x1F000000) == 0x1B000000); /* madd and its like */
}

/* str or stp of x1 to x15 to [sp, #-n]!, which ordinary functions need not save. */
static bool saves_temporaries(uint32_t word)
{
    uint32_t rt = word & 31;
    bool pushes = (word & 0xFFF00FE0) == 0xF8100FE0 || (word & 0xFFE003E0) == 0xA9A003E0;

    return pushes && rt >= 1 && rt <= 15;
}

/* Does the entry preserve registers that ordinary functions do not save? */
static bool preserves_registers(const uint8_t *bytes, uint64_t size)
{
    uint32_t first = size >= 4 ? hfn_read_le32(bytes) : 0;
    uint32_t second = size >= 8 ? hfn_read_le32(bytes + 4) : 0;

    return saves_temporaries(first) || saves_temporaries(second) ||
           (first == LDR_X0_X0_8 && second == RET);
}

/* ---- Paths. */

typedef struct path {
    uint64_t at;        /* offset of the next instruction */
    uint32_t unwritten; /* those of x16 and x17 that the path has not written */
} path;

typedef struct walk {
    const uint8_t *bytes;
    uint64_t size, rva;
    const hfn_flag_reads *reads;
    path paths[PATHS_MAX]; /* those before `next` were followed */
    uint32_t path_count, next, steps;
    bool is_live;
} walk;

static void add_path(walk *k, uint64_t at, uint32_t unwritten)
{
    if (at >= k->size || at % HFN_ARM64_BYTES != 0) { /* also below the bytes: the offset wraps */
        return;
    }
    for (uint32_t i = 0; i < k->path_count; i++) {
        if (k->paths[i].at == at && (unwritten & ~k->paths[i].unwritten) == 0) {
            return;
        }
    }
    if (k->path_count < PATHS_MAX) {
        k->paths[k->path_count++] = (path){ at, unwritten };
    } else {
        k->is_live = true;
    }
}

/* May the target of the indirect jump or call at this offset read the registers? */
static bool is_read_at_target(const walk *k, uint64_t at)
{
    const hfn_flag_reads *reads = k->reads;
    size_t i =
        hfn_count_below(reads->jumps, reads->jump_count, sizeof *reads->jumps, 0, k->rva + at);

    return reads->at_targets || (i < reads->jump_count && reads->jumps[i] == k->rva + at);
}

typedef enum path_end { PATH_CONTINUES, PATH_ENDS } path_end;

/* Follow the control flow of an instruction. */
static path_end step_flow(walk *k, uint32_t word, const path *p)
{
    hfn_arm64_form form = hfn_arm64_get_form(word);

    switch (form) {
    case HFN_ARM64_B:
        add_path(k, p->at + (uint64_t)hfn_arm64_get_distance(word, form), p->unwritten);
        return PATH_ENDS;
    case HFN_ARM64_B_COND:
    case HFN_ARM64_CBZ:
    case HFN_ARM64_TBZ:
        add_path(k, p->at + (uint64_t)hfn_arm64_get_distance(word, form), p->unwritten);
        return PATH_CONTINUES;
    case HFN_ARM64_BL: return PATH_ENDS;
    case HFN_ARM64_BRANCH:
        k->is_live |= hfn_arm64_get_bits(word, 24, 21) != 2 && is_read_at_target(k, p->at);
        return PATH_ENDS;
    case HFN_ARM64_BOUND: k->is_live |= !is_vector_extension(word); return PATH_CONTINUES;
    case HFN_ARM64_NONE: return PATH_ENDS; /* the program does not continue */
    default: return PATH_CONTINUES;
    }
}

static void follow_path(walk *k, path p)
{
    while (!k->is_live && p.unwritten != 0) {
        if (k->size - p.at < HFN_ARM64_BYTES || k->steps++ == STEPS_MAX) {
            k->is_live = true;
            return;
        }
        uint32_t word = hfn_read_le32(k->bytes + p.at);
        for (uint32_t reg = 16; reg <= 17; reg++) {
            k->is_live |= (p.unwritten >> reg & 1) && may_read(word, reg);
        }
        p.unwritten &= ~hfn_arm64_get_written_registers(word);
        if (step_flow(k, word, &p) == PATH_ENDS) {
            return;
        }
        p.at += HFN_ARM64_BYTES;
    }
}

bool hfn_arm64_are_scratch_registers_live(const uint8_t *bytes, uint64_t size, uint64_t rva,
                                          uint64_t at, const hfn_flag_reads *reads)
{
    walk k = { .bytes = bytes, .size = size, .rva = rva, .reads = reads };

    if (at >= size || (reads->at_entry && preserves_registers(bytes + at, size - at))) {
        return true;
    }
    add_path(&k, at, 1u << 16 | 1u << 17);
    while (k.next < k.path_count && !k.is_live) {
        follow_path(&k, k.paths[k.next++]);
    }
    return k.is_live;
}
