/* SPDX-License-Identifier: MIT */
/* arch/uncount.h:
 *
 *     51                        push   %rcx
 *     65 48 8b 0c 25 disp32     mov    %gs:word, %rcx
 *     e3 07                     jrcxz  no row
 *     48 ff 89 disp32           decq   slot(%rcx)
 *     59                no row: pop    %rcx
 *     e9 rel32                  jmp    target
 */
#include "arch/uncount.h"

#include "base/byte_order.h"

#include <string.h>

void hfn_emit_uncount(uint8_t out[HFN_UNCOUNT_BYTES], uint64_t address, int32_t gs_displacement,
                      int32_t slot_displacement, uint64_t target)
{
    static const uint8_t code[HFN_UNCOUNT_BYTES] = { 0x51, 0x65, 0x48, 0x8b, 0x0c, 0x25, 0, 0,   0,
                                                     0,    0xe3, 0x07, 0x48, 0xff, 0x89, 0, 0,   0,
                                                     0,    0x59, 0xe9, 0,    0,    0,    0, 0xcc };

    memcpy(out, code, sizeof code);
    hfn_write_le32(out + 6, (uint32_t)gs_displacement);
    hfn_write_le32(out + 15, (uint32_t)slot_displacement);
    hfn_write_le32(out + 21, (uint32_t)(target - (address + 25)));
}

uint64_t hfn_find_uncount_target(const uint8_t bytes[HFN_UNCOUNT_BYTES], uint64_t address)
{
    uint64_t target = address + 25 + (uint64_t)(int64_t)(int32_t)hfn_read_le32(bytes + 21);
    uint8_t expected[HFN_UNCOUNT_BYTES];

    hfn_emit_uncount(expected, address, (int32_t)hfn_read_le32(bytes + 6),
                     (int32_t)hfn_read_le32(bytes + 15), target);
    return memcmp(bytes, expected, sizeof expected) == 0 ? target : 0;
}
