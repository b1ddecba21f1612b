/* SPDX-License-Identifier: MIT */
/*
 * Writes the unwind tables of stubs for Windows x64 (Microsoft, "x64 exception handling"):
 *
 *     base and count | RUNTIME_FUNCTIONs by address | UNWIND_INFOs
 *
 * Code without an entry is taken for a leaf whose return address is at [rsp], which is true in a
 * stub except where its head has pushed registers or made a frame, and after moved instructions of
 * a prologue.  A part of a head has an entry that describes its pushes as an allocation.  The moved
 * instructions have an entry with those codes of the image's own UNWIND_INFO that lie before their
 * end, at the offsets to which the instructions moved.
 */
#include "hooks/unwind.h"

#include "base/byte_order.h"
#include "os/modules.h"

#include <string.h>

enum {
    WORD_BYTES = 8,
    HEADER_BYTES = 16,
    FUNCTION_BYTES = 12, /* RUNTIME_FUNCTION: begin, end and info as RVAs   */
    ENTRIES_PER_STUB = 14,
    INFO_HEAD_BYTES = 4,
    MAX_CODES = 64,
    MOVED_INFO_BYTES = INFO_HEAD_BYTES + 2 * MAX_CODES,
    SHARED_INFO_BYTES = 8,
    GATE_INFO_BYTES = 16,
    MAX_SHARED_WORDS = 33,
    VERSION = 1,
    CHAINED = 4, /* UNW_FLAG_CHAININFO */
    PUSH_NONVOL = 0,
    ALLOC_LARGE = 1,
    ALLOC_SMALL = 2,
    SET_FPREG = 3,
    SAVE_NONVOL = 4,
    SAVE_NONVOL_FAR = 5,
    SAVE_XMM128 = 8,
    SAVE_XMM128_FAR = 9,
};

uint64_t hfn_unwind_max_bytes(uint64_t stub_count, uint64_t key_changes, uint64_t cfi_bytes)
{
    (void)key_changes;
    (void)cfi_bytes;
    return HEADER_BYTES + (stub_count + 1) * ENTRIES_PER_STUB * FUNCTION_BYTES +
           stub_count * MOVED_INFO_BYTES + MAX_SHARED_WORDS * SHARED_INFO_BYTES + GATE_INFO_BYTES;
}

void hfn_unwind_begin(hfn_unwind *u, uint8_t *memory, uint64_t stub_count, uint64_t key_changes,
                      void (*personality)(void))
{
    (void)key_changes;
    (void)personality;
    memset(u, 0, sizeof *u);
    u->begin = memory;
    u->frame = memory + HEADER_BYTES;
    u->fde_max = (uint32_t)(stub_count + 1) * ENTRIES_PER_STUB;
    u->at = u->frame + (uint64_t)u->fde_max * FUNCTION_BYTES;
}

/* ---- Writing. */

static uint32_t get_rva(const hfn_unwind *u, uint64_t address)
{
    return (uint32_t)(address - u->base);
}

static void put_function(hfn_unwind *u, uint64_t begin, uint64_t end, uint32_t info_rva)
{
    uint8_t *entry = u->frame + (uint64_t)u->fde_count * FUNCTION_BYTES;

    if (begin >= end || u->fde_count == u->fde_max) {
        return;
    }
    u->fde_count++;
    hfn_write_le32(entry, get_rva(u, begin));
    hfn_write_le32(entry + 4, get_rva(u, end));
    hfn_write_le32(entry + 8, info_rva);
}

/* Start an UNWIND_INFO, which is aligned to 4 bytes; its codes follow. */
static uint8_t *put_info(hfn_unwind *u, uint8_t prolog_bytes, uint32_t code_count, uint8_t frame)
{
    uint8_t *info = u->at;

    info[0] = VERSION;
    info[1] = prolog_bytes;
    info[2] = (uint8_t)code_count;
    info[3] = frame;
    u->at += INFO_HEAD_BYTES + 2 * ((code_count + 1) & ~1u);
    return info;
}

static void put_code(uint8_t *info, uint32_t index, uint8_t offset, uint8_t operation,
                     uint8_t operand)
{
    info[INFO_HEAD_BYTES + 2 * index] = offset;
    info[INFO_HEAD_BYTES + 2 * index + 1] = (uint8_t)(operation | operand << 4);
}

/* The RVA of the info for code whose return address is this many bytes above rsp. */
static uint32_t find_shared_info(hfn_unwind *u, uint32_t lowered_bytes)
{
    uint32_t words = lowered_bytes / WORD_BYTES;
    uint8_t *info;

    if (u->shared_info[words] != 0) {
        return u->shared_info[words];
    }
    u->shared_info[words] = get_rva(u, (uint64_t)(uintptr_t)u->at);
    if (words <= 16) {
        info = put_info(u, 0, 1, 0);
        put_code(info, 0, 0, ALLOC_SMALL, (uint8_t)(words - 1));
    } else {
        info = put_info(u, 0, 2, 0);
        put_code(info, 0, 0, ALLOC_LARGE, 0);
        hfn_write_le16(info + INFO_HEAD_BYTES + 2, (uint16_t)words);
    }
    return u->shared_info[words];
}

/* ---- Gates. */

/* Only the call gate has a frame: push rbp; mov rbp, rsp; then pushes, of which that of rbx is at
 * rbp - 40; then it aligns the stack.  The frame's base is 48 bytes below
 * rbp, so that rbx is at a positive distance. */
void hfn_unwind_code(hfn_unwind *u, uint64_t address, uint64_t byte_count, const uint8_t *cfi,
                     uint32_t cfi_bytes)
{
    enum { RBX = 3, RBP = 5, BASE_UNITS = 3 };
    uint8_t *info;

    (void)cfi;
    if (u->base == 0) {
        u->base = address; /* every other code and the tables lie behind it */
    }
    if (cfi_bytes == 0) {
        return;
    }
    /* before the push the code is a leaf */
    put_function(u, address + 1, address + byte_count, get_rva(u, (uint64_t)(uintptr_t)u->at));
    info = put_info(u, 0, 5, RBP | BASE_UNITS << 4);
    put_code(info, 0, 0, SAVE_NONVOL, RBX);
    hfn_write_le16(info + INFO_HEAD_BYTES + 2, 1); /* 48 - 40 bytes in words */
    put_code(info, 2, 0, SET_FPREG, 0);
    put_code(info, 3, 0, ALLOC_SMALL, 48 / WORD_BYTES - 1);
    put_code(info, 4, 0, PUSH_NONVOL, RBP);
}

/* ---- The image's own tables. */

typedef struct own_info {
    const uint8_t *info; /* NULL: the function is a leaf        */
    uint32_t begin_rva;  /* of the code that it describes */
} own_info;

/* PE format, "Optional header data directories": the exception table is the fourth. */
static own_info find_own_info(uint64_t image_base, uint32_t rva)
{
    enum { NEW_HEADER_AT = 0x3c, DIRECTORIES_AT = 24 + 112, EXCEPTIONS_AT = 3 * 8 };
    const uint8_t *image = (const uint8_t *)(uintptr_t)image_base;
    const uint8_t *directory =
        image + hfn_read_le32(image + NEW_HEADER_AT) + DIRECTORIES_AT + EXCEPTIONS_AT;
    const uint8_t *functions = image + hfn_read_le32(directory);
    uint32_t low = 0, high = hfn_read_le32(directory + 4) / FUNCTION_BYTES;

    while (low < high) { /* the first function behind rva */
        uint32_t middle = low + (high - low) / 2;

        if (hfn_read_le32(functions + (uint64_t)middle * FUNCTION_BYTES) <= rva) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low > 0) {
        const uint8_t *f = functions + (uint64_t)(low - 1) * FUNCTION_BYTES;

        if (rva < hfn_read_le32(f + 4) && !(hfn_read_le32(f + 8) & 1)) {
            return (own_info){ image + hfn_read_le32(f + 8), hfn_read_le32(f) };
        }
    }
    return (own_info){ NULL, 0 };
}

static uint32_t count_slots(const uint8_t *code)
{
    switch (code[1] & 15) {
    case ALLOC_LARGE: return code[1] >> 4 ? 3 : 2;
    case SAVE_NONVOL:
    case SAVE_XMM128: return 2;
    case SAVE_NONVOL_FAR:
    case SAVE_XMM128_FAR: return 3;
    default: return 1;
    }
}

/* The offset in the moved code that corresponds to an offset from the site in the original code;
 * UINT32_MAX if it lies behind the instructions that moved. */
static uint32_t map_offset(const hfn_plan_hook *hook, uint32_t moved_end, uint32_t offset)
{
    for (uint32_t i = 0; i < hook->step_count; i++) {
        const uint8_t *step = hook->steps + i * PLAN_STEP_BYTES;

        if (step[0] >= offset) {
            return step[1];
        }
    }
    return offset <= hook->original_bytes ? moved_end : UINT32_MAX;
}

/* Describe the moved instructions, which end with a jump back. */
static void put_moved(hfn_unwind *u, uint64_t moved, const hfn_plan_hook *hook, uint64_t image_base)
{
    enum { JUMP_BYTES = 5 };
    own_info own = find_own_info(image_base, hook->site_rva);
    uint32_t site, moved_end, count = 0, kept = 0;
    bool has_frame = false;
    uint8_t *info;

    if (!own.info || own.info[2] == 0 || (own.info[0] >> 3 & CHAINED) || hook->step_count == 0 ||
        own.info[2] > MAX_CODES) {
        return;
    }
    site = hook->site_rva - own.begin_rva;
    moved_end = hook->moved_bytes > JUMP_BYTES ? (uint32_t)hook->moved_bytes - JUMP_BYTES : 0;
    info = put_info(u, hook->moved_bytes, own.info[2], 0);
    for (uint32_t i = 0; i < own.info[2]; i += count) {
        const uint8_t *code = own.info + INFO_HEAD_BYTES + 2 * i;
        uint32_t at = code[0] > site ? map_offset(hook, moved_end, code[0] - site) : 0;

        count = count_slots(code);
        if (at == UINT32_MAX || i + count > own.info[2]) {
            continue;
        }
        memcpy(info + INFO_HEAD_BYTES + 2 * kept, code, 2 * count);
        info[INFO_HEAD_BYTES + 2 * kept] = (uint8_t)at;
        has_frame |= (code[1] & 15) == SET_FPREG;
        kept += count;
    }
    info[2] = (uint8_t)kept;
    info[3] = has_frame ? own.info[3] : 0;
    u->at = info;
    if (kept > 0) {
        u->at += INFO_HEAD_BYTES + 2 * ((kept + 1) & ~1u);
        put_function(u, moved, moved + hook->moved_bytes, get_rva(u, (uint64_t)(uintptr_t)info));
    }
}

/* ---- Stubs. */

static void put_range(hfn_unwind *u, uint64_t begin, uint64_t end, uint32_t lowered_bytes)
{
    if (lowered_bytes > 0 && lowered_bytes / WORD_BYTES < MAX_SHARED_WORDS && begin < end) {
        put_function(u, begin, end, find_shared_info(u, lowered_bytes));
    }
}

void hfn_unwind_stub(hfn_unwind *u, uint64_t address, uint32_t byte_count,
                     const hfn_stub_shape *shape, const hfn_plan_hook *hook, uint64_t image_base)
{
    uint64_t from = address;
    uint32_t lowered = 0;

    (void)byte_count;
    if (sizeof(void *) == 4) {
        return; /* x86 has no tables */
    }
    for (uint32_t i = 0; i < shape->step_count; i++) {
        const hfn_stub_step *step = &shape->steps[i];

        if (step->lowered_bytes == HFN_STUB_PUSHES) {
            for (uint32_t push = 0; push < step->at; push++) {
                put_range(u, from, from + HFN_STUB_PUSH_BYTES, lowered);
                from += HFN_STUB_PUSH_BYTES;
                lowered += WORD_BYTES;
            }
            continue;
        }
        put_range(u, from, address + step->at, lowered);
        from = address + step->at;
        lowered = step->lowered_bytes;
    }
    put_range(u, from, address + shape->head_bytes, lowered);
    put_moved(u, address + shape->head_bytes, hook, image_base);
}

uint64_t hfn_unwind_finish(hfn_unwind *u, hotfn_stub_region *region)
{
    hfn_write_le64(u->begin, u->base);
    hfn_write_le32(u->begin + 8, u->fde_count);
    region->eh_frame_hdr = u->begin;
    region->eh_frame = u->frame;
    return (uint64_t)(u->at - u->begin);
}

const uint8_t *hfn_unwind_find(const hotfn_stub_region *region, uint64_t pc, uint64_t *begin)
{
    (void)region;
    (void)pc;
    (void)begin;
    return NULL; /* the system finds registered tables */
}

bool hfn_unwind_needs_registration(void)
{
    return true;
}

void hfn_unwind_register(const hotfn_stub_region *region)
{
    const uint8_t *header = region->eh_frame_hdr;

    if (hfn_read_le32(header + 8) > 0) {
        hfn_os_add_unwind_table(region->eh_frame, hfn_read_le32(header + 8), hfn_read_le64(header));
    }
}

void hfn_unwind_set_register_frame(void (*register_frame)(void *eh_frame))
{
    (void)register_frame;
}
