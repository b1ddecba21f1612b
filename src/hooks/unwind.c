/* SPDX-License-Identifier: MIT */
/*
 * Writes unwind tables for stubs.  In a stub the return address is still where the caller pushed
 * it: the CFA is rsp + 8, except where the head has pushed registers (its shape lists where) and
 * after moved instructions that change the stack, which the plan describes.  One FDE describes
 * many stubs, so that a hook costs few bytes; DW_CFA_restore_state returns to the initial state
 * between them. Encodings: DWARF 5, 6.4 and 7.24; LSB core 5.0, 10.6 (.eh_frame_hdr).
 */
#include "hooks/unwind.h"

#include "base/byte_order.h"
#include "base/compiler.h"
#include "plan/cfi_steps.h"
#include "plan/plan.h"

#include <string.h>

enum {
    WORD_BYTES = sizeof(void *),
    STUBS_PER_FDE = 64,
    COUNT_AT = 8,
    HEADER_BYTES = 12,
    HEADER_ROW_BYTES = 8,
    CIE_BYTES = 24,
    PERSONALITY_BYTES = 12, /* added to the CIE, rounded up                         */
    FDE_HEAD_BYTES = 17,    /* length, CIE pointer, begin, range, augmentation length */
    FDE_BEGIN_AT = 8,
    FDE_RANGE_AT = 12,
    STUB_MAX_BYTES = 112, /* without its cfi: advances, remember, restore, stack changes */
    ADVANCE = 0x40,
    ADVANCE_1 = 0x02,
    ADVANCE_2 = 0x03,
    REMEMBER_STATE = 0x0a,
    RESTORE_STATE = 0x0b,
    PCREL_SDATA4 = 0x1b,
    DATAREL_SDATA4 = 0x3b,
    UDATA4 = 0x03,
    ABSOLUTE = 0x00,
};

/* libgcc's; weak, because a process may run without libgcc. */
extern void __register_frame(void *eh_frame) HFN_WEAK;
static void (*late_register_frame)(void *eh_frame); /* the same, if libgcc was loaded later */

static uint32_t fdes_for(uint64_t stub_count, uint64_t key_changes)
{
    return (uint32_t)((stub_count + STUBS_PER_FDE - 1) / STUBS_PER_FDE + key_changes) +
           5; /* and the gates */
}

static uint64_t header_bytes(uint32_t fde_count)
{
    return (HEADER_BYTES + (uint64_t)fde_count * HEADER_ROW_BYTES + 7) & ~UINT64_C(7);
}

uint64_t hfn_unwind_max_bytes(uint64_t stub_count, uint64_t key_changes, uint64_t cfi_bytes)
{
    uint32_t fdes = fdes_for(stub_count, key_changes), cies = 1 + (key_changes > 0);

    return header_bytes(fdes) + (uint64_t)cies * (CIE_BYTES + PERSONALITY_BYTES) + cfi_bytes +
           stub_count * STUB_MAX_BYTES + (uint64_t)fdes * (FDE_HEAD_BYTES + 3) +
           3 * HFN_STUB_GATE_CFI_MAX + 4;
}

/* ---- Writing. */

static uint64_t address_of(const uint8_t *at)
{
    return (uint64_t)(uintptr_t)at;
}

static void put_byte(hfn_unwind *u, uint8_t byte)
{
    *u->at++ = byte;
}

static void put_u32(hfn_unwind *u, uint64_t value)
{
    hfn_write_le32(u->at, (uint32_t)value);
    u->at += 4;
}

static void put_bytes(hfn_unwind *u, const uint8_t *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        *u->at++ = bytes[i];
    }
}

/* Set the entry's length and pad it with DW_CFA_nop, which is 0. */
static void close_entry(hfn_unwind *u, uint8_t *entry)
{
    while ((u->at - entry) % 4 != 0) {
        put_byte(u, 0);
    }
    hfn_write_le32(entry, (uint32_t)(u->at - entry) - 4);
}

/* The augmentation is "zR"; "P" adds the absolute address of a personality routine, "B" means
 * that return addresses are signed with key B (DWARF for the Arm 64-bit Architecture, 5.1). */
static void put_cie(hfn_unwind *u, bool key_b)
{
    uint64_t personality = u->personality;
    /* code alignment 1; data alignment minus a word, as a signed number of 7 bits */
    const uint8_t factors[] = { 1, 0x80 - WORD_BYTES, hfn_stub_get_return_column() };
    uint8_t state[HFN_STUB_CIE_STATE_MAX];
    uint8_t *entry = u->at;

    put_u32(u, 0);
    put_u32(u, 0);
    put_byte(u, 1); /* version */
    put_byte(u, 'z');
    if (personality != 0) {
        put_byte(u, 'P');
    }
    put_byte(u, 'R');
    if (key_b) {
        put_byte(u, 'B');
    }
    put_byte(u, 0);
    put_bytes(u, factors, sizeof factors);
    put_byte(u, personality != 0 ? 2 + WORD_BYTES : 1); /* size of the augmentation data */
    if (personality != 0) {
        put_byte(u, ABSOLUTE);
        for (uint32_t i = 0; i < WORD_BYTES; i++) {
            put_byte(u, (uint8_t)(personality >> 8 * i));
        }
    }
    put_byte(u, PCREL_SDATA4); /* encoding of addresses in FDEs */
    put_bytes(u, state, hfn_stub_write_cie_state(state));
    close_entry(u, entry);
}

static void close_fde(hfn_unwind *u)
{
    if (!u->open) {
        return;
    }
    close_entry(u, u->open);
    u->open = NULL;
}

static void open_fde(hfn_unwind *u, uint64_t code, bool key_b)
{
    uint8_t *row = u->begin + HEADER_BYTES + (uint64_t)u->fde_count++ * HEADER_ROW_BYTES;

    close_fde(u);
    if (key_b && !u->cie_b) {
        u->cie_b = u->at;
        put_cie(u, true);
    }
    u->open = u->at;
    u->open_key_b = key_b;
    u->code_at = code;
    u->stubs_in_open = 0;
    put_u32(u, 0);
    put_u32(u, (uint64_t)(u->at - (key_b ? u->cie_b : u->frame))); /* back, from this field */
    put_u32(u, code - address_of(u->at)); /* begin, relative to this field    */
    put_u32(u, 0);                        /* range: extend_to                 */
    put_byte(u, 0);                       /* no augmentation data             */
    hfn_write_le32(row, (uint32_t)(code - address_of(u->begin)));
    hfn_write_le32(row + 4, (uint32_t)(address_of(u->open) - address_of(u->begin)));
}

/* Extend the code of the open FDE to `end`. */
static void extend_to(hfn_unwind *u, uint64_t begin, uint64_t end)
{
    hfn_write_le32(u->open + FDE_RANGE_AT, (uint32_t)(end - begin));
}

/* The address in a field that is relative to `from`. */
static uint64_t address_in(const uint8_t *field, const uint8_t *from)
{
    return (uintptr_t)(address_of(from) + (uint64_t)hfn_read_signed_le32(field));
}

static void advance_to(hfn_unwind *u, uint64_t code)
{
    uint64_t delta = code - u->code_at;

    u->code_at = code;
    if (delta == 0) {
        return;
    }
    if (delta < 0x40) {
        put_byte(u, (uint8_t)(ADVANCE | delta));
        return;
    }
    put_byte(u, delta < 0x100 ? ADVANCE_1 : ADVANCE_2);
    put_byte(u, (uint8_t)delta);
    if (delta >= 0x100) {
        put_byte(u, (uint8_t)(delta >> 8));
    }
}

static void put_step(hfn_unwind *u, uint32_t lowered_bytes)
{
    uint8_t cfi[HFN_STUB_STEP_CFI_MAX];

    put_bytes(u, cfi, hfn_stub_write_step_cfi(cfi, lowered_bytes));
}

static void put_pushes(hfn_unwind *u, uint64_t address, const hfn_stub_step *first, uint32_t count)
{
    for (uint32_t i = 1; i <= count; i++) {
        advance_to(u, address + first->at + i * HFN_STUB_PUSH_BYTES);
        put_step(u, first->lowered_bytes + i * WORD_BYTES);
    }
}

/* ---- Descriptions of code. */

void hfn_unwind_begin(hfn_unwind *u, uint8_t *memory, uint64_t stub_count, uint64_t key_changes,
                      void (*personality)(void))
{
    memset(u, 0, sizeof *u);
    u->begin = memory;
    u->fde_max = fdes_for(stub_count, key_changes);
    u->personality = (uint64_t)(uintptr_t)personality;
    u->frame = u->at = memory + header_bytes(u->fde_max);
    put_cie(u, false);
}

void hfn_unwind_code(hfn_unwind *u, uint64_t address, uint64_t byte_count, const uint8_t *cfi,
                     uint32_t cfi_bytes)
{
    open_fde(u, address, false);
    put_bytes(u, cfi, cfi_bytes);
    extend_to(u, address, address + byte_count);
    close_fde(u);
}

/* The plan's instructions describe the moved code; the state before them is restored after it. */
static void put_steps(hfn_unwind *u, uint64_t address, uint32_t byte_count, const uint8_t *cfi,
                      uint32_t cfi_bytes)
{
    uint32_t advanced = 0;

    put_byte(u, REMEMBER_STATE);
    put_bytes(u, cfi, cfi_bytes);
    hfn_cfi_check_steps(cfi, cfi_bytes, &advanced); /* they were checked with the plan */
    u->code_at = address + advanced;
    advance_to(u, address + byte_count);
    put_byte(u, RESTORE_STATE);
}

void hfn_unwind_stub(hfn_unwind *u, uint64_t address, uint32_t byte_count,
                     const hfn_stub_shape *shape, const hfn_plan_hook *hook, uint64_t image_base)
{
    uint64_t moved = address + shape->head_bytes;
    bool key_b = (hook->flags & HOTFN_VERDICT_KEY_B) != 0;
    bool is_signed = false;

    (void)image_base;
    if (!u->open || u->stubs_in_open == STUBS_PER_FDE || u->open_key_b != key_b) {
        open_fde(u, address, key_b);
    }
    u->stubs_in_open++;
    for (uint32_t i = 0; i < shape->step_count; i++) {
        if (shape->steps[i].lowered_bytes == HFN_STUB_PUSHES) {
            put_pushes(u, address, &shape->steps[i - 1], shape->steps[i].at);
            continue;
        }
        advance_to(u, address + shape->steps[i].at);
        put_step(u, shape->steps[i].lowered_bytes);
        is_signed ^= shape->steps[i].lowered_bytes == HFN_STUB_SIGNS;
    }
    if (hook->cfi_bytes > 0) {
        advance_to(u, moved);
        put_steps(u, moved, byte_count - shape->head_bytes, hook->cfi, hook->cfi_bytes);
    }
    if (is_signed) { /* the next stub begins with an unsigned return address */
        advance_to(u, address + byte_count);
        put_step(u, HFN_STUB_SIGNS);
    }
    extend_to(u, address_in(u->open + FDE_BEGIN_AT, u->open + FDE_BEGIN_AT), address + byte_count);
}

uint64_t hfn_unwind_finish(hfn_unwind *u, hotfn_stub_region *region)
{
    close_fde(u);
    put_u32(u, 0); /* the end of .eh_frame */
    u->begin[0] = 1;
    u->begin[1] = PCREL_SDATA4;
    u->begin[2] = UDATA4;
    u->begin[3] = DATAREL_SDATA4;
    hfn_write_le32(u->begin + 4, (uint32_t)(address_of(u->frame) - address_of(u->begin + 4)));
    hfn_write_le32(u->begin + COUNT_AT, u->fde_count);
    region->eh_frame_hdr = u->begin;
    region->eh_frame = u->frame;
    return (uint64_t)(u->at - u->begin);
}

/* HOT PATH: unwinders may run in signal handlers. */
const uint8_t *hfn_unwind_find(const hotfn_stub_region *region, uint64_t pc, uint64_t *begin)
{
    const uint8_t *header = region->eh_frame_hdr, *rows = header + HEADER_BYTES, *row, *fde;
    uint32_t low = 0, high = header ? hfn_read_le32(header + COUNT_AT) : 0;

    while (low < high) { /* the first row after pc */
        uint32_t middle = low + (high - low) / 2;
        if (address_in(rows + (uint64_t)middle * HEADER_ROW_BYTES, header) <= pc) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0) {
        return NULL;
    }
    row = rows + (uint64_t)(low - 1) * HEADER_ROW_BYTES;
    fde = header + hfn_read_le32(row + 4);
    *begin = address_in(row, header);
    return pc - *begin < hfn_read_le32(fde + FDE_RANGE_AT) ? fde : NULL;
}

bool hfn_unwind_needs_registration(void)
{
    return false;
}

void hfn_unwind_register(const hotfn_stub_region *region)
{
    void (*register_frame)(void *eh_frame) =
        late_register_frame ? late_register_frame : __register_frame;

    if (register_frame && region->eh_frame) {
        register_frame((void *)(uintptr_t)region->eh_frame);
    }
}

void hfn_unwind_set_register_frame(void (*register_frame)(void *eh_frame))
{
    late_register_frame = register_frame;
}
