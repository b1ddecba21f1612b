/* SPDX-License-Identifier: MIT */
/*
 * Reads encoded pointers and CIEs, and runs call frame instructions.  For an entry they run only up
 * to the first advance: they then show whether the FDE's first byte is the entry of a function,
 * where by the psABI only the return address has been pushed, or lies inside a frame that other
 * code made.
 */
#include "functions/eh_frame_read.h"

#include <string.h>

/* DW_EH_PE_*: LSB core, 'DWARF Exception Header Encoding'. */
enum {
    PE_FORMAT = 0x0f,
    PE_APPLICATION = 0x70,
    PE_PCREL = 0x10,
    PE_DATAREL = 0x30,
    PE_INDIRECT = 0x80,
};

static bool read_format(const hfn_eh_bytes *eh, uint64_t *at, uint8_t format, uint64_t *raw)
{
    hfn_span s = eh->bytes;
    uint64_t wide = 0;
    uint32_t u32 = 0;
    uint16_t u16 = 0;
    int64_t sleb = 0;
    uint32_t bytes = 0;
    bool good = false;

    switch (format) {
    case 0x00: good = hfn_span_word(s, *at, bytes = eh->word_bytes, &wide); break;
    case 0x01: return hfn_span_uleb(s, at, raw);
    case 0x02: good = hfn_span_u16(s, *at, &u16), bytes = 2, wide = u16; break;
    case 0x03: good = hfn_span_u32(s, *at, &u32), bytes = 4, wide = u32; break;
    case 0x04:
    case 0x0c: good = hfn_span_u64(s, *at, &wide), bytes = 8; break;
    case 0x09: good = hfn_span_sleb(s, at, &sleb), wide = (uint64_t)sleb; break;
    case 0x0a: good = hfn_span_u16(s, *at, &u16), bytes = 2, wide = (uint64_t)(int16_t)u16; break;
    case 0x0b: good = hfn_span_u32(s, *at, &u32), bytes = 4, wide = (uint64_t)(int32_t)u32; break;
    default: break;
    }
    if (good) {
        *at += bytes;
        *raw = wide;
    }
    return good;
}

bool hfn_eh_pointer(const hfn_eh_bytes *eh, uint64_t *at, uint8_t encoding, uint64_t *raw,
                    uint64_t *value)
{
    uint64_t place = eh->address + *at;

    if (encoding == HFN_ENCODING_OMIT || !read_format(eh, at, encoding & PE_FORMAT, raw)) {
        return false;
    }
    switch (encoding & PE_APPLICATION) {
    case 0: *value = *raw; break;
    case PE_PCREL: *value = place + *raw; break;
    case PE_DATAREL:
        if (eh->data == 0) {
            return false;
        }
        *value = eh->data + *raw;
        break;
    default: return false;
    }
    if (eh->word_bytes == 4) {
        *value &= UINT32_MAX;
    }
    return true;
}

/* Reads the augmentation data after 'z', letter by letter.  An unknown letter ends the reading: the
 * length that 'z' gives is enough to skip the rest. */
static bool read_augmentation(const hfn_eh_bytes *eh, const char *letters, uint64_t at,
                              hfn_cie *cie)
{
    uint8_t encoding;
    uint64_t raw, value;

    for (; *letters; letters++) {
        switch (*letters) {
        case 'L':
            if (!hfn_span_u8(eh->bytes, at++, &cie->lsda_encoding)) {
                return false;
            }
            break;
        case 'R':
            if (!hfn_span_u8(eh->bytes, at++, &cie->pointer_encoding)) {
                return false;
            }
            break;
        case 'P':
            if (!hfn_span_u8(eh->bytes, at++, &encoding)) {
                return false;
            }
            encoding &= (uint8_t)~PE_INDIRECT;
            if (encoding != HFN_ENCODING_OMIT &&
                !hfn_eh_pointer(eh, &at, encoding & PE_FORMAT, &raw, &value)) {
                return false;
            }
            break;
        case 'S': cie->signal_frame = true; break;
        case 'B': break; /* AArch64: return addresses are signed with key B */
        default: return true;
        }
    }
    return true;
}

/* The state while call frame instructions run.  DWARF 5, 6.4.2 and 7.24. */
typedef struct runner {
    const hfn_cie *cie;
    hfn_frame *frame;
} runner;

typedef enum step { STEP_NEXT, STEP_ADVANCE, STEP_UNKNOWN } step;

static step save_register(const runner *r, uint64_t number)
{
    if (number != r->cie->return_register) {
        r->frame->saved_registers = true;
    }
    return STEP_NEXT;
}

/* Stores the place of the return address if number is its register: factored is its offset from the
 * CFA in units of data_align, or 0 for any other rule than DW_CFA_offset. */
static void place_return(const runner *r, uint64_t number, uint64_t factored)
{
    if (number == r->cie->return_register) {
        r->frame->return_at = (int64_t)(factored * (uint64_t)r->cie->data_align);
    }
}

static step define_cfa(const runner *r, uint64_t number, int64_t offset)
{
    r->frame->cfa_register = number;
    r->frame->cfa_offset = offset;
    r->frame->cfa_set = true;
    r->frame->by_expression = false;
    return STEP_NEXT;
}

/* Reads the delta of an advance; an advance by 0 stays at the first byte. */
static step read_advance(hfn_span s, uint64_t *at, uint32_t bytes)
{
    uint8_t byte, any = 0;

    for (uint32_t i = 0; i < bytes; i++) {
        if (!hfn_span_u8(s, (*at)++, &byte)) {
            return STEP_UNKNOWN;
        }
        any |= byte;
    }
    return any ? STEP_ADVANCE : STEP_NEXT;
}

static step skip_block(hfn_span s, uint64_t *at)
{
    uint64_t bytes;

    if (!hfn_span_uleb(s, at, &bytes) || !hfn_span_has(s, *at, bytes)) {
        return STEP_UNKNOWN;
    }
    *at += bytes;
    return STEP_NEXT;
}

/* Runs an instruction whose first operand is a register. */
static step run_register_rule(const runner *r, hfn_span s, uint64_t *at, uint8_t code)
{
    uint64_t number, offset = 0;
    int64_t factored = 0;

    if (!hfn_span_uleb(s, at, &number)) {
        return STEP_UNKNOWN;
    }
    if (code != 0x0c && code != 0x0d && code != 0x12) {
        place_return(r, number, 0);
    }
    switch (code) {
    case 0x06: /* restore_extended */
    case 0x07: /* undefined */
    case 0x08: /* same_value */ return STEP_NEXT;
    case 0x05: /* offset_extended */
    case 0x2f: /* GNU_negative_offset_extended */
        return hfn_span_uleb(s, at, &offset) ? save_register(r, number) : STEP_UNKNOWN;
    case 0x11: /* offset_extended_sf */
        return hfn_span_sleb(s, at, &factored) ? save_register(r, number) : STEP_UNKNOWN;
    case 0x10: /* expression */
        return skip_block(s, at) == STEP_NEXT ? save_register(r, number) : STEP_UNKNOWN;
    case 0x16: /* val_expression */ return skip_block(s, at);
    case 0x09: /* register */
    case 0x14: /* val_offset */ return hfn_span_uleb(s, at, &offset) ? STEP_NEXT : STEP_UNKNOWN;
    case 0x15: /* val_offset_sf */
        return hfn_span_sleb(s, at, &factored) ? STEP_NEXT : STEP_UNKNOWN;
    case 0x0c: /* def_cfa */
        return hfn_span_uleb(s, at, &offset) ? define_cfa(r, number, (int64_t)offset)
                                             : STEP_UNKNOWN;
    case 0x12: /* def_cfa_sf */
        return hfn_span_sleb(s, at, &factored)
                   ? define_cfa(r, number,
                                (int64_t)((uint64_t)factored * (uint64_t)r->cie->data_align))
                   : STEP_UNKNOWN;
    default: /* 0x0d, def_cfa_register */ return define_cfa(r, number, r->frame->cfa_offset);
    }
}

enum { SET_LOC = 0x01, REMEMBER_STATE = 0x0a, RESTORE_STATE = 0x0b, GNU_ARGS_SIZE = 0x2e };

static step run_instruction(const runner *r, hfn_span s, uint64_t *at)
{
    uint64_t offset = 0;
    int64_t factored = 0;
    uint8_t code = 0;

    hfn_span_u8(s, (*at)++, &code);
    switch (code >> 6) {
    case 1: return code & 0x3f ? STEP_ADVANCE : STEP_NEXT;
    case 2:
        if (!hfn_span_uleb(s, at, &offset)) {
            return STEP_UNKNOWN;
        }
        place_return(r, code & 0x3f, offset);
        return save_register(r, code & 0x3f);
    case 3: place_return(r, code & 0x3f, 0); return STEP_NEXT; /* restore */
    default: break;
    }
    switch (code) {
    case 0x00: /* nop */
    case 0x0a: /* remember_state */
    case 0x2d: /* GNU_window_save, AARCH64_negate_ra_state */ return STEP_NEXT;
    case SET_LOC: return STEP_ADVANCE;
    case 0x02: return read_advance(s, at, 1);
    case 0x03: return read_advance(s, at, 2);
    case 0x04: return read_advance(s, at, 4);
    case 0x0e: /* def_cfa_offset */
        return hfn_span_uleb(s, at, &offset)
                   ? define_cfa(r, r->frame->cfa_register, (int64_t)offset)
                   : STEP_UNKNOWN;
    case 0x13: /* def_cfa_offset_sf */
        return hfn_span_sleb(s, at, &factored)
                   ? define_cfa(r, r->frame->cfa_register,
                                (int64_t)((uint64_t)factored * (uint64_t)r->cie->data_align))
                   : STEP_UNKNOWN;
    case 0x0f: /* def_cfa_expression */ r->frame->by_expression = true; return skip_block(s, at);
    case GNU_ARGS_SIZE: return hfn_span_uleb(s, at, &offset) ? STEP_NEXT : STEP_UNKNOWN;
    default: break;
    }
    if ((code >= 0x05 && code <= 0x0d && code != 0x0b) || (code >= 0x10 && code <= 0x16) ||
        code == 0x2f) {
        return run_register_rule(r, s, at, code);
    }
    return STEP_UNKNOWN; /* restore_state too: no compiler emits it at an entry */
}

/* Runs the instructions up to the first advance, the first unknown instruction or the end. */
static void run_instructions(const hfn_cie *cie, hfn_frame *frame, hfn_span instructions)
{
    runner r = { cie, frame };
    uint64_t at = 0;
    step last = STEP_NEXT;

    while (last == STEP_NEXT && at < instructions.size) {
        last = run_instruction(&r, instructions, &at);
    }
    frame->known = last != STEP_UNKNOWN;
    frame->advanced = last == STEP_ADVANCE;
}

bool hfn_eh_read_cie(const hfn_eh_bytes *eh, uint64_t at, uint64_t end, hfn_cie *out)
{
    hfn_cie cie = { .lsda_encoding = HFN_ENCODING_OMIT };
    hfn_eh_bytes own = *eh;
    const char *letters;
    uint64_t data_bytes = 0, code_align;
    uint8_t version, narrow;

    own.bytes = hfn_span_sub(eh->bytes, 0, end);
    if (!hfn_span_u8(own.bytes, at, &version) || (version != 1 && version != 3 && version != 4)) {
        return false;
    }
    letters = hfn_span_string(own.bytes, at + 1);
    if (!letters || (letters[0] && letters[0] != 'z')) {
        return false; /* "eh" of gcc 2, or an unknown one */
    }
    at += 2 + strlen(letters) + (version == 4 ? 2 : 0);
    if (!hfn_span_uleb(own.bytes, &at, &code_align) ||
        !hfn_span_sleb(own.bytes, &at, &cie.data_align)) {
        return false;
    }
    if (version == 1) {
        if (!hfn_span_u8(own.bytes, at++, &narrow)) {
            return false;
        }
        cie.return_register = narrow;
    } else if (!hfn_span_uleb(own.bytes, &at, &cie.return_register)) {
        return false;
    }
    cie.has_sizes = letters[0] == 'z';
    if (cie.has_sizes &&
        (!hfn_span_uleb(own.bytes, &at, &data_bytes) || !hfn_span_has(own.bytes, at, data_bytes) ||
         !read_augmentation(&own, letters + 1, at, &cie))) {
        return false;
    }
    cie.initial.known = true;
    run_instructions(&cie, &cie.initial, hfn_span_from(own.bytes, at + data_bytes));
    *out = cie;
    return true;
}

hfn_frame hfn_eh_frame_at_entry(const hfn_cie *cie, hfn_span fde_instructions)
{
    hfn_frame frame = cie->initial;

    if (frame.known && !frame.advanced) {
        run_instructions(cie, &frame, fde_instructions);
    }
    return frame;
}

static uint64_t advanced_by(hfn_span s, uint64_t operand_at, uint8_t code)
{
    uint64_t delta = 0;
    uint8_t byte;

    if (code >> 6 == 1) {
        return code & 0x3f;
    }
    for (uint32_t i = 0; code >= 0x02 && code <= 0x04 && i < 1u << (code - 2); i++) {
        if (hfn_span_u8(s, operand_at + i, &byte)) {
            delta |= (uint64_t)byte << 8 * i;
        }
    }
    return delta;
}

bool hfn_eh_frame_arguments_at(hfn_span fde_instructions, uint64_t offset, uint64_t *byte_count)
{
    hfn_cie cie = { .data_align = 1 };
    hfn_frame frame = { .known = true };
    runner r = { &cie, &frame };
    uint64_t at = 0, behind = 0, uleb_at;
    uint8_t code;

    *byte_count = 0;
    while (hfn_span_u8(fde_instructions, at, &code)) {
        uleb_at = at + 1;
        behind += advanced_by(fde_instructions, at + 1, code);
        if (behind > offset) {
            return true;
        }
        if (code == SET_LOC ||
            (code == GNU_ARGS_SIZE && !hfn_span_uleb(fde_instructions, &uleb_at, byte_count))) {
            return false;
        }
        if (code == RESTORE_STATE) {
            at++;
        } else if (run_instruction(&r, fde_instructions, &at) == STEP_UNKNOWN) {
            return false;
        }
    }
    return true;
}

bool hfn_eh_frame_has_argument_sizes(const hfn_cie *cie, hfn_span fde_instructions)
{
    hfn_frame frame = cie->initial;
    runner r = { cie, &frame };
    uint64_t at = 0;
    uint8_t code;

    while (hfn_span_u8(fde_instructions, at, &code)) {
        if (code == GNU_ARGS_SIZE || code == SET_LOC) {
            return true;
        }
        if (code == RESTORE_STATE) {
            at++;
        } else if (run_instruction(&r, fde_instructions, &at) == STEP_UNKNOWN) {
            return true;
        }
    }
    return false;
}

bool hfn_eh_frame_rows(const hfn_cie *cie, hfn_span fde_instructions, uint64_t byte_count,
                       hfn_eh_row_fn visit, void *user)
{
    enum { DEEPEST = 8 };
    hfn_frame frame = cie->initial, kept[DEEPEST];
    runner r = { cie, &frame };
    uint64_t at = 0, begin = 0;
    uint32_t depth = 0;
    uint8_t code;

    if (!frame.known || frame.advanced) {
        return false;
    }
    while (begin < byte_count && hfn_span_u8(fde_instructions, at, &code)) {
        uint64_t by = advanced_by(fde_instructions, at + 1, code);
        by = by < byte_count - begin ? by : byte_count - begin;
        if (by > 0) {
            visit(user, begin, begin + by, &frame);
        }
        begin += by;
        if (code == SET_LOC || (code == REMEMBER_STATE && depth == DEEPEST) ||
            (code == RESTORE_STATE && depth == 0)) {
            return false;
        }
        if (code == REMEMBER_STATE) {
            kept[depth++] = frame;
        }
        if (code == RESTORE_STATE) {
            frame = kept[--depth];
            at++;
        } else if (run_instruction(&r, fde_instructions, &at) == STEP_UNKNOWN) {
            return false;
        }
    }
    if (begin < byte_count) {
        visit(user, begin, byte_count, &frame);
    }
    return true;
}
