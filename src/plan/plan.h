/* SPDX-License-Identifier: MIT */
/*
 * The plan format.  A plan describes all hooks of one image as a block of bytes without pointers,
 * little-endian, built in one process, cached, and used in another.  Everything that needs a
 * decoder was computed when it was built: the moved instructions and their fixups, where the PC
 * of a stopped thread continues, and how the stub is unwound.
 *
 *   +---------+  PLAN_HEADER_BYTES
 *   | header  |  magic, version, checksum, image id, counts, addresses that stubs must reach
 *   +---------+  range_count x PLAN_RANGE_BYTES
 *   | ranges  |  consecutive entries of one section, and the addresses that they access
 *   +---------+  entry_count x PLAN_ENTRY_BYTES, sorted by rva and by function index
 *   | entries |  one for each hookable function; each refers to its bytes in the data part
 *   +---------+  data_bytes, unaligned; for each entry:
 *   | data    |  original bytes, island's bytes, moved code, fixups, steps, CFI, tail exits
 *   +---------+  site_count x PLAN_SITE_BYTES, sorted by address
 *   | sites   |  direct calls and jumps of hooked functions, as words of two bit fields:
 *   +---------+    bits 0..11   distance of the 4-byte field from the end of the previous one
 *                  bits 12..31  index of the entry that it targets; PLAN_SITE_NONE: only a distance
 *
 * A fixup is a PC-relative field of the moved code or, in 32-bit x86 code, an address that the
 * loader relocates in the original.  A step maps the offset of an original instruction to its moved
 * copy, and a tail exit is the rva of the 4-byte field of a tail jump that ends a timed call.
 * hotfn_plan_open checks every offset, count and order once; readers of an open plan check nothing.
 */
#ifndef HFN_PLAN_PLAN_H
#define HFN_PLAN_PLAN_H

#include "arch/arch.h"
#include "base/byte_order.h"

#include <hotfn/lowlevel/plan.h>
#include <stdbool.h>
#include <string.h>

#define PLAN_MAGIC UINT64_C(0x314e414c504e4648) /* "HFNPLAN1" */
#define PLAN_VERSION 11u

/* Offsets in the header. */
enum {
    PLAN_MAGIC_AT = 0,           /* u64                                                       */
    PLAN_VERSION_AT = 8,         /* u32                                                       */
    PLAN_MACHINE_AT = 12,        /* u32 HOTFN_MACHINE_*                                       */
    PLAN_BYTE_COUNT_AT = 16,     /* u64 of the whole block                                    */
    PLAN_CHECKSUM_AT = 24,       /* u64 of all bytes, with these eight as 0                   */
    PLAN_FUNCTION_COUNT_AT = 32, /* u32                                                      */
    PLAN_ENTRY_COUNT_AT = 36,    /* u32                                                       */
    PLAN_RANGE_COUNT_AT = 40,    /* u32                                                       */
    PLAN_DATA_BYTES_AT = 44,     /* u32                                                       */
    PLAN_REACH_BEGIN_AT = 48,    /* i64 lowest RVA that a stub must reach                     */
    PLAN_REACH_END_AT = 56,      /* i64 end of the highest                                    */
    PLAN_ID_KIND_AT = 64,        /* u32                                                       */
    PLAN_ID_BYTES_AT = 68,       /* u32                                                       */
    PLAN_ID_AT = 72,             /* u8[32]                                                    */
    PLAN_SITE_COUNT_AT = 104,    /* u32                                                       */
    PLAN_TSC_DISABLE_AT = 108,   /* u32 rva of a system call that disables the TSC; 0: none   */
    PLAN_FLAGS_AT = 112,         /* u32 PLAN_OWN_THREADS                                      */
    PLAN_HEADER_BYTES = 116,
};

/* The image may set thread pointers: stubs must not use the thread pointer. */
#define PLAN_OWN_THREADS 1u

/* Offsets in a range. */
enum {
    PLAN_RANGE_BEGIN_AT = 0,        /* u32 rva                     */
    PLAN_RANGE_END_AT = 4,          /* u32 rva                     */
    PLAN_RANGE_FIRST_AT = 8,        /* u32 its first entry         */
    PLAN_RANGE_ENTRY_COUNT_AT = 12, /* u32                      */
    PLAN_RANGE_BYTES = 16,
};

/* Offsets in an entry. */
enum {
    PLAN_ENTRY_RVA_AT = 0,           /* u32 of the function                                       */
    PLAN_ENTRY_FUNCTION_AT = 4,      /* u32                                                       */
    PLAN_ENTRY_DATA_AT = 8,          /* u32 from the start of the data                            */
    PLAN_ENTRY_STRATEGY_AT = 12,     /* u8 HOTFN_STRATEGY_*                                       */
    PLAN_ENTRY_FLAGS_AT = 13,        /* u8 HOTFN_VERDICT_*                                        */
    PLAN_ENTRY_PATCH_OFFSET_AT = 14, /* u8                                                    */
    PLAN_ENTRY_PATCH_BYTES_AT = 15,  /* u8                                                    */
    PLAN_ENTRY_ORIGINAL_BYTES_AT = 16, /* u8 compared with memory, from the site            */
    PLAN_ENTRY_MOVED_BYTES_AT = 17,    /* u8                                                    */
    PLAN_ENTRY_FIXUPS_AT = 18,    /* u8 count                                                  */
    PLAN_ENTRY_STEPS_AT = 19,     /* u8 count                                                  */
    PLAN_ENTRY_CFI_BYTES_AT = 20, /* u8                                                       */
    PLAN_ENTRY_ISLAND_AT = 21,    /* i8 ISLAND: distance of the island from the 2-byte jump's end */
    PLAN_ENTRY_SCRATCH_AT = 22,   /* u8 scratch register at the site, plus 1; 0: none          */
    PLAN_ENTRY_ARGUMENTS_AT = 23, /* u8 TIMED: words of stack arguments; bits 5..7 HOTFN_POPS_* */
    PLAN_ENTRY_TAIL_TARGET_AT = 24, /* u32 rva of the function that tail exits jump to; 0     */
    PLAN_ENTRY_TAIL_EXITS_AT = 28,  /* u8 count                                               */
    PLAN_ENTRY_STORED_AT = 29,      /* u8 i386, TIMED: argument words to write back           */
    PLAN_ENTRY_BYTES = 30,
};

enum {
    PLAN_ISLAND_BYTES = 5,
    PLAN_FIXUP_BYTES = 6, /* u8 at, u8 end, i32 target minus site */
    PLAN_STEP_BYTES = 2,  /* u8 original_at, u8 moved_at          */
    PLAN_STEPS_MAX = 16,
    PLAN_ORIGINAL_MAX = 32,
    PLAN_CFI_MAX = 96,
    PLAN_SCRATCH_MAX = 16,
};

struct hotfn_plan {
    hotfn_env env;
    const uint8_t *bytes;
    uint64_t byte_count;
    bool owns_bytes;
    uint32_t machine, function_count, entry_count, range_count;
    int64_t reach_begin, reach_end;
    const uint8_t *ranges, *entries, *data, *sites;
    uint64_t data_bytes;
    uint32_t site_count; /* words */
};

typedef struct hfn_plan_range {
    uint32_t begin_rva, end_rva, first_entry, entry_count;
} hfn_plan_range;

/* A decoded entry; the pointers are views into the plan. */
typedef struct hfn_plan_hook {
    uint32_t rva, function_index;
    uint32_t site_rva;
    uint32_t island_rva; /* ISLAND, else 0 */
    bool far_slot;       /* set by hfn_batch_hook, not stored in the plan */
    uint8_t strategy, flags, patch_offset, patch_bytes, scratch, arguments;
    uint8_t stored_arguments;
    uint8_t original_bytes, moved_bytes, fixup_count, step_count, cfi_bytes, tail_exit_count;
    uint32_t tail_target_rva; /* 0: none */
    const uint8_t *original, *island_original, *moved, *fixups, *steps, *cfi, *tail_exits;
} hfn_plan_hook;

hfn_plan_range hfn_plan_range_at(const hotfn_plan *plan, uint32_t index);

static inline uint32_t hfn_plan_get_tsc_disable_rva(const hotfn_plan *plan)
{
    return hfn_read_le32(plan->bytes + PLAN_TSC_DISABLE_AT);
}

static inline bool hfn_plan_has_own_threads(const hotfn_plan *plan)
{
    return (hfn_read_le32(plan->bytes + PLAN_FLAGS_AT) & PLAN_OWN_THREADS) != 0;
}

static inline uint32_t hfn_plan_rva_at(const hotfn_plan *plan, uint32_t index)
{
    return hfn_read_le32(plan->entries + (uint64_t)index * PLAN_ENTRY_BYTES + PLAN_ENTRY_RVA_AT);
}

static inline uint32_t hfn_plan_function_at(const hotfn_plan *plan, uint32_t index)
{
    return hfn_read_le32(plan->entries + (uint64_t)index * PLAN_ENTRY_BYTES +
                         PLAN_ENTRY_FUNCTION_AT);
}

static inline uint8_t hfn_plan_strategy_at(const hotfn_plan *plan, uint32_t index)
{
    return plan->entries[(uint64_t)index * PLAN_ENTRY_BYTES + PLAN_ENTRY_STRATEGY_AT];
}

/* The bytes that the patch overwrites at the site; an island is not included. */
static inline void hfn_plan_patch_at(const hotfn_plan *plan, uint32_t index, uint64_t *begin_rva,
                                     uint64_t *end_rva)
{
    const uint8_t *entry = plan->entries + (uint64_t)index * PLAN_ENTRY_BYTES;

    *begin_rva =
        (uint64_t)hfn_read_le32(entry + PLAN_ENTRY_RVA_AT) + entry[PLAN_ENTRY_PATCH_OFFSET_AT];
    *end_rva = *begin_rva + entry[PLAN_ENTRY_PATCH_BYTES_AT];
}

static inline bool hfn_plan_has_tail_exit(const hotfn_plan *plan, uint32_t index)
{
    return plan->entries[(uint64_t)index * PLAN_ENTRY_BYTES + PLAN_ENTRY_TAIL_EXITS_AT] != 0;
}

static inline bool hfn_plan_is_timed(const hotfn_plan *plan, uint32_t index)
{
    return plan->entries[(uint64_t)index * PLAN_ENTRY_BYTES + PLAN_ENTRY_FLAGS_AT] &
           HOTFN_VERDICT_TIMED;
}

/* Decode an entry; index < entry_count. */
static inline void hfn_plan_hook_at(const hotfn_plan *plan, uint32_t index, hfn_plan_hook *out)
{
    const uint8_t *entry = plan->entries + (uint64_t)index * PLAN_ENTRY_BYTES;
    const uint8_t *data = plan->data + hfn_read_le32(entry + PLAN_ENTRY_DATA_AT);

    out->rva = hfn_read_le32(entry + PLAN_ENTRY_RVA_AT);
    out->function_index = hfn_read_le32(entry + PLAN_ENTRY_FUNCTION_AT);
    out->strategy = entry[PLAN_ENTRY_STRATEGY_AT];
    out->flags = entry[PLAN_ENTRY_FLAGS_AT];
    out->patch_offset = entry[PLAN_ENTRY_PATCH_OFFSET_AT];
    out->patch_bytes = entry[PLAN_ENTRY_PATCH_BYTES_AT];
    out->original_bytes = entry[PLAN_ENTRY_ORIGINAL_BYTES_AT];
    out->moved_bytes = entry[PLAN_ENTRY_MOVED_BYTES_AT];
    out->fixup_count = entry[PLAN_ENTRY_FIXUPS_AT];
    out->step_count = entry[PLAN_ENTRY_STEPS_AT];
    out->cfi_bytes = entry[PLAN_ENTRY_CFI_BYTES_AT];
    out->scratch = entry[PLAN_ENTRY_SCRATCH_AT];
    out->arguments = entry[PLAN_ENTRY_ARGUMENTS_AT];
    out->stored_arguments = entry[PLAN_ENTRY_STORED_AT];
    out->site_rva = out->rva + out->patch_offset;
    out->island_rva = 0;
    out->far_slot = false;
    out->original = data;
    data += out->original_bytes;
    out->island_original = data;
    if (out->strategy == HOTFN_STRATEGY_ISLAND) {
        out->island_rva = out->site_rva + 2 + (uint32_t)(int8_t)entry[PLAN_ENTRY_ISLAND_AT];
        data += PLAN_ISLAND_BYTES;
    }
    out->moved = data;
    out->fixups = out->moved + out->moved_bytes;
    out->steps = out->fixups + out->fixup_count * PLAN_FIXUP_BYTES;
    out->cfi = out->steps + out->step_count * PLAN_STEP_BYTES;
    out->tail_target_rva = hfn_read_le32(entry + PLAN_ENTRY_TAIL_TARGET_AT);
    out->tail_exit_count = entry[PLAN_ENTRY_TAIL_EXITS_AT];
    out->tail_exits = out->cfi + out->cfi_bytes;
}

/* The offset in the original bytes of the 4-byte field that copied code has at moved_at.  If it
 * exceeds original_bytes - 4, the field is not in the original bytes. */
static inline uint32_t hfn_plan_original_at(const hfn_plan_hook *hook, uint32_t moved_at)
{
    const uint8_t *step = hook->steps;

    for (uint32_t i = 1; i < hook->step_count && step[PLAN_STEP_BYTES + 1] <= moved_at; i++) {
        step += PLAN_STEP_BYTES;
    }
    return hook->step_count > 0 ? (uint32_t)step[0] + moved_at - step[1] : UINT32_MAX;
}

/* PUN: a displacement can be used if (displacement & mask) == fixed. */
static inline uint32_t hfn_plan_pun_mask(const hfn_plan_hook *hook)
{
    return (uint32_t)(UINT64_C(0xffffffff) << 8 * (hook->patch_bytes - 1));
}

static inline uint32_t hfn_plan_pun_fixed(const hfn_plan_hook *hook)
{
    return hfn_read_le32(hook->original + 1) & hfn_plan_pun_mask(hook);
}

/* ---- Sites. */

enum {
    PLAN_FIELD_BYTES = 4,
    PLAN_SITE_BYTES = 4,
    PLAN_SITE_GAP_BITS = 12,
    PLAN_SITE_GAP_MAX = 0xfff,
    PLAN_SITE_NONE = 0xfffff,
};

/* Iterates over the sites; field_rva and entry are those of the current one. */
typedef struct hfn_site_walk {
    const uint8_t *at, *end;
    uint32_t field_rva, entry;
    uint32_t next_rva; /* end of the current field */
} hfn_site_walk;

static inline hfn_site_walk hfn_site_walk_begin(const hotfn_plan *plan)
{
    return (hfn_site_walk){ plan->sites, plan->sites + (uint64_t)plan->site_count * PLAN_SITE_BYTES,
                            0, 0, 0 };
}

/* Advance to the next site; false if there is none. */
static inline bool hfn_site_walk_next(hfn_site_walk *walk)
{
    while (walk->at != walk->end) {
        uint32_t word = hfn_read_le32(walk->at);
        walk->at += PLAN_SITE_BYTES;
        walk->field_rva = walk->next_rva + (word & PLAN_SITE_GAP_MAX);
        walk->next_rva = walk->field_rva + PLAN_FIELD_BYTES;
        walk->entry = word >> PLAN_SITE_GAP_BITS;
        if (walk->entry != PLAN_SITE_NONE) {
            return true;
        }
    }
    return false;
}

/* Index of the entry of a function, UINT32_MAX if the plan has none. */
uint32_t hfn_plan_find_function(const hotfn_plan *plan, uint32_t function_index);
uint64_t hfn_plan_checksum(const uint8_t *bytes, uint64_t byte_count);
/* Whether header and checksum are valid.  The entries are not validated. */
bool hfn_plan_is_whole(const uint8_t *bytes, uint64_t byte_count);

#endif
