/* SPDX-License-Identifier: MIT */
/* Visits every opcode of the one-byte and the 0F map, with every ModRM byte and a SIB of each
 * kind. */
#ifndef TESTS_UNIT_ARCH_EVERY_OPCODE_H
#define TESTS_UNIT_ARCH_EVERY_OPCODE_H

#include "check.h"

typedef void (*encoding_fn)(const uint8_t *bytes);

static inline void each_of_map(uint8_t *bytes, uint32_t at, encoding_fn visit)
{
    static const uint8_t sibs[] = { 0x24, 0x05, 0xE5, 0x91 };

    for (uint32_t opcode = 0; opcode < 256; opcode++) {
        bytes[at] = (uint8_t)opcode;
        for (uint32_t modrm = 0; modrm < 256 && check_failures < 10; modrm++) {
            for (uint32_t sib = 0; sib < sizeof sibs; sib++) {
                bytes[at + 1] = (uint8_t)modrm;
                bytes[at + 2] = sibs[sib];
                visit(bytes);
            }
        }
    }
}

/* Prefixes precede bytes[at]. */
static inline void each_encoding(uint8_t *bytes, uint32_t at, encoding_fn visit)
{
    each_of_map(bytes, at, visit);
    bytes[at] = 0x0F;
    each_of_map(bytes, at + 1, visit);
}

#endif
