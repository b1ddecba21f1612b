/* SPDX-License-Identifier: MIT */
/*
 * Which instructions may fault, and whether code uses an address as a number, as in
 * x86/address_use.c.  Encodings: Arm ARM (DDI 0487), chapter C4.
 */
#include "arch/arm64/address_use.h"

#include "arch/arm64/decode.h"

enum { FOLLOWED_MAX = 32, CONSUMER_MAX = 4, SP = 31, FP = 29 };

#define KEPT 0x3FF80000u /* x19 to x29, which calls keep (AAPCS64, 6.1.1) */

/* ---- Faults. */

/* Loads and stores through sp, hints, and arithmetic of integers and vectors are taken not to
 * fault. */
static bool may_fault(uint32_t word)
{
    uint32_t group = hfn_arm64_get_bits(word, 28, 25);
    hfn_arm64_form form = hfn_arm64_get_form(word);

    if (form == HFN_ARM64_BOUND || form == HFN_ARM64_NONE || form == HFN_ARM64_LOAD_LITERAL) {
        return true;
    }
    if ((group & 5) == 4) { /* loads and stores */
        return hfn_arm64_get_bits(word, 9, 5) != SP;
    }
    if ((group & 14) == 10) { /* branches, exceptions, system */
        return word >> 24 == 0xD4 || (word >> 24 == 0xD5 && (word & 0xFFFFF01F) != 0xD503201F);
    }
    return group < 4; /* reserved, scalable vectors */
}

uint32_t hfn_arm64_find_fault(const uint8_t *bytes, uint64_t size, uint32_t byte_count)
{
    for (uint32_t at = 0; at < byte_count; at += HFN_ARM64_BYTES) {
        if (size - at < HFN_ARM64_BYTES || may_fault(hfn_read_le32(bytes + at))) {
            return at;
        }
    }
    return UINT32_MAX;
}

/* ---- Addresses as numbers. */

/* Where the address is. */
typedef struct place {
    uint32_t registers;
    bool in_slot;  /* a variable of the frame */
    uint32_t slot; /* its base and its offset, as instructions encode them */
} place;

static bool holds_address(const place *p, uint32_t word, uint32_t high, uint32_t low)
{
    uint32_t reg = hfn_arm64_get_bits(word, high, low);

    return reg != SP && (p->registers >> reg & 1);
}

/* add, sub and their forms that set flags, of registers or of a register and a constant.  A
 * register that is subtracted from the address is a base of code, so the result is an offset and no
 * use of the address as a number. */
static bool computes_with(const place *p, uint32_t word)
{
    bool by_constant = (word & 0x1F000000) == 0x11000000;
    bool by_register = (word & 0x1F000000) == 0x0B000000;
    bool is_offset = (word >> 30 & 1) && (word & 31) != SP;

    return (by_constant && holds_address(p, word, 9, 5)) ||
           (by_register &&
            ((holds_address(p, word, 9, 5) && !is_offset) || holds_address(p, word, 20, 16)));
}

/* ccmp, ccmn */
static bool is_conditional_compare(uint32_t word)
{
    return (word & 0x3FE00410) == 0x3A400000;
}

/* The condition that an instruction tests; 15 if it tests none. */
static uint32_t get_condition(uint32_t word)
{
    if ((word & 0xFF000010) == 0x54000000) { /* b.cond */
        return word & 15;
    }
    if ((word & 0x1FE00000) == 0x1A800000 || is_conditional_compare(word)) { /* csel */
        return hfn_arm64_get_bits(word, 15, 12);
    }
    return 15;
}

static hfn_address_use get_comparison(const uint8_t *bytes, uint64_t size)
{
    for (uint64_t at = 0; at < CONSUMER_MAX * HFN_ARM64_BYTES && size - at >= HFN_ARM64_BYTES;
         at += HFN_ARM64_BYTES) {
        uint32_t condition = get_condition(hfn_read_le32(bytes + at)) & ~1u;
        if (condition != 14) { /* cs, cc and hi, ls are of unsigned numbers */
            return condition == 2 || condition == 8 ? HFN_ADDRESS_ORDERED : HFN_ADDRESS_EQUATED;
        }
    }
    return HFN_ADDRESS_EQUATED;
}

/* str and ldr of 8 bytes by sp or x29 and a constant offset. */
static bool is_slot_access(uint32_t word, bool load)
{
    uint32_t base = hfn_arm64_get_bits(word, 9, 5);

    return ((word & 0xFFC00000) == (load ? 0xF9400000 : 0xF9000000) ||
            (word & 0xFFE00C00) == (load ? 0xF8400000 : 0xF8000000)) &&
           (base == SP || base == FP);
}

/* The bits of a slot access that name the slot, which are equal for its loads and its stores. */
static uint32_t get_slot(uint32_t word)
{
    return word & 0xFF3FFFE0;
}

/* str, stp of 8 bytes to memory that is no frame */
static bool stores_address(const place *p, uint32_t word)
{
    uint32_t base = hfn_arm64_get_bits(word, 9, 5);
    bool single = (word & 0xFFC00000) == 0xF9000000 && holds_address(p, word, 4, 0);
    bool pair = (word & 0xFFC00000) == 0xA9000000 &&
                (holds_address(p, word, 4, 0) || holds_address(p, word, 14, 10));

    return (single || pair) && base != SP && base != FP;
}

static void follow_copies(place *p, uint32_t word)
{
    bool copies = ((word & 0xFFE0FFE0) == 0xAA0003E0 && holds_address(p, word, 20, 16)) || /* mov */
                  (p->in_slot && is_slot_access(word, true) && get_slot(word) == p->slot);

    if (is_slot_access(word, false) && holds_address(p, word, 4, 0)) {
        p->in_slot = true;
        p->slot = get_slot(word);
    }
    p->registers &= ~hfn_arm64_get_written_registers(word);
    if (copies) {
        p->registers |= 1u << (word & 31) & ~(1u << SP);
    }
}

/* The first instruction completes the address: add, or adr. */
static uint32_t get_first_register(uint32_t word)
{
    return hfn_arm64_get_written_registers(word) & (1u << (word & 31));
}

hfn_address_use hfn_arm64_get_address_use(const uint8_t *bytes, uint64_t size, uint64_t rva)
{
    place p = { .registers = 0 };
    hfn_instruction in;

    for (uint64_t at = 0; at < FOLLOWED_MAX * HFN_ARM64_BYTES; at += HFN_ARM64_BYTES) {
        if (!hfn_arm64_decode(bytes + at, size - at, rva + at, 0, &in) || hfn_ends_path(&in)) {
            break;
        }
        uint32_t word = hfn_read_le32(bytes + at);
        if (at == 0) {
            p.registers = get_first_register(word);
        } else if (in.flow == HFN_FLOW_CALL || in.flow == HFN_FLOW_CALL_INDIRECT) {
            p.registers &= KEPT;
        } else if (computes_with(&p, word)) {
            return word >> 29 & 1 && (word & 31) == SP
                       ? get_comparison(bytes + at + HFN_ARM64_BYTES, size - at - HFN_ARM64_BYTES)
                       : HFN_ADDRESS_ORDERED;
        } else if (is_conditional_compare(word) &&
                   (holds_address(&p, word, 9, 5) ||
                    (!(word >> 11 & 1) && holds_address(&p, word, 20, 16)))) {
            return get_comparison(bytes + at + HFN_ARM64_BYTES, size - at - HFN_ARM64_BYTES);
        } else if (stores_address(&p, word)) {
            return HFN_ADDRESS_STORED;
        } else {
            follow_copies(&p, word);
        }
        if (p.registers == 0 && !p.in_slot) {
            break;
        }
    }
    return HFN_ADDRESS_PASSED;
}

/* Whether the third argument, followed through the code in the order of its addresses, is the base
 * of an access to the place of pc (Linux, struct ucontext and struct sigcontext). */
bool hfn_arm64_reads_context(const uint8_t *bytes, uint64_t size)
{
    enum { PC_AT = 440, READ_MAX = 128 };
    place p = { .registers = 1u << 2 };

    for (uint64_t at = 0; at + HFN_ARM64_BYTES <= size && at < READ_MAX * HFN_ARM64_BYTES;
         at += HFN_ARM64_BYTES) {
        uint32_t word = hfn_read_le32(bytes + at);
        if ((word & 0xFFBFFC00) == (0xF9000000 | PC_AT / 8 << 10) &&
            holds_address(&p, word, 9, 5)) {
            return true;
        }
        if ((word & 0xFC000000) == 0x94000000 || (word & 0xFFFFFC1F) == 0xD63F0000) { /* bl, blr */
            p.registers &= KEPT;
        } else {
            follow_copies(&p, word);
        }
    }
    return false;
}
