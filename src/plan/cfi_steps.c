/* SPDX-License-Identifier: MIT */
/* The call frame instructions of a plan are copied into unwind tables, where a wrong instruction
 * would mislead unwinders.  Only the kinds that the writers of arch/ produce are accepted.
 * Encodings: DWARF 5, 6.4.2 and 7.24. */
#include "plan/cfi_steps.h"

enum {
    KIND = 0xc0, /* the high two bits hold the instruction, the low six an operand */
    ADVANCE = 0x40,
    OFFSET = 0x80,
    RESTORE = 0xc0,
    ADVANCE_1 = 0x02,
    DEF_CFA_REGISTER = 0x0d,
    DEF_CFA_OFFSET = 0x0e,
    NEGATE_RA_STATE = 0x2d, /* AArch64: toggles whether the return address is signed */
};

/* Skip an unsigned LEB128 number; false if it is incomplete. */
static bool skip_uleb(const uint8_t *cfi, uint32_t byte_count, uint32_t *at)
{
    while (*at < byte_count) {
        if ((cfi[(*at)++] & 0x80) == 0) {
            return true;
        }
    }
    return false;
}

bool hfn_cfi_check_steps(const uint8_t *cfi, uint32_t byte_count, uint32_t *advanced)
{
    uint32_t at = 0, sum = 0;

    while (at < byte_count) {
        uint8_t op = cfi[at++];
        if ((op & KIND) == ADVANCE) {
            sum += op & 0x3f;
        } else if (op == ADVANCE_1) {
            if (at == byte_count) {
                return false;
            }
            sum += cfi[at++];
        } else if ((op & KIND) == OFFSET || op == DEF_CFA_REGISTER || op == DEF_CFA_OFFSET) {
            if (!skip_uleb(cfi, byte_count, &at)) {
                return false;
            }
        } else if ((op & KIND) != RESTORE && op != NEGATE_RA_STATE) {
            return false;
        }
    }
    *advanced = sum;
    return true;
}
