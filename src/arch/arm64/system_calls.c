/* SPDX-License-Identifier: MIT */
/*
 * Finds system calls behind which the code may run with another stack, or twice on the same one:
 * rt_sigreturn, clone and clone3.  The number of a call is the constant that the last write of x8
 * in the line stores; a call without such a constant counts as one of these.
 */
#include "arch/arm64/system_calls.h"

#include "arch/arm64/decode.h"

enum { NUMBER_REGISTER = 8, RT_SIGRETURN = 139, CLONE = 220, CLONE3 = 435 };

static bool is_svc(uint32_t word)
{
    return (word & 0xFFE0001F) == 0xD4000001;
}

/* movz w8 or x8, #imm16, without a shift */
static bool sets_number(uint32_t word, uint32_t *number)
{
    *number = hfn_arm64_get_bits(word, 20, 5);
    return (word & 0x7FE0001F) == (0x52800000 | NUMBER_REGISTER);
}

/* May the instruction write x8?  Loads and stores write any of their register fields (pairs,
 * write-back, status, compare and swap; Arm ARM, C4.1); other instructions only the lowest. */
static bool may_write_number(uint32_t word)
{
    bool is_memory = (hfn_arm64_get_bits(word, 28, 25) & 5) == 4;
    uint32_t low = word & 31;

    if (!is_memory) {
        return low == NUMBER_REGISTER;
    }
    return low == NUMBER_REGISTER || hfn_arm64_get_bits(word, 9, 5) == NUMBER_REGISTER ||
           hfn_arm64_get_bits(word, 14, 10) == NUMBER_REGISTER ||
           hfn_arm64_get_bits(word, 20, 16) == NUMBER_REGISTER;
}

static bool find_number(const hfn_straight_line *line, uint32_t *number)
{
    for (uint32_t i = line->count - 1; i-- > 0;) {
        const uint8_t *bytes = line->bytes + line->starts[i];
        uint32_t word = hfn_read_le32(bytes);
        hfn_instruction in;
        if (sets_number(word, number)) {
            return true;
        }
        if (!hfn_arm64_decode(bytes, HFN_ARM64_BYTES, 0, 0, &in) || in.flow == HFN_FLOW_CALL ||
            in.flow == HFN_FLOW_CALL_INDIRECT || may_write_number(word)) {
            return false;
        }
    }
    return false;
}

bool hfn_arm64_may_switch_stack(const hfn_straight_line *line)
{
    uint32_t number;

    if (!is_svc(hfn_read_le32(line->bytes + line->starts[line->count - 1]))) {
        return false;
    }
    return !find_number(line, &number) || number == RT_SIGRETURN || number == CLONE ||
           number == CLONE3;
}

/* mov x8, #139; svc #0 */
bool hfn_arm64_is_signal_restorer(const uint8_t *bytes, uint64_t size)
{
    return size >= 2 * HFN_ARM64_BYTES && hfn_read_le32(bytes) == 0xD2801168 &&
           hfn_read_le32(bytes + HFN_ARM64_BYTES) == 0xD4000001;
}
