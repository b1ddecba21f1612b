/* SPDX-License-Identifier: MIT */
/* Machine code of tests, written as assembly and assembled at build time.  The header that
 * assemble.py makes of a test includes this one. */
#ifndef TESTS_UNIT_ASSEMBLED_H
#define TESTS_UNIT_ASSEMBLED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct assembled_code {
    uint32_t bits, size;
    const char *text;
    uint8_t bytes[64];
} assembled_code;

static inline const assembled_code *find_assembled(const assembled_code *codes, size_t count,
                                                   uint32_t bits, const char *text)
{
    for (size_t i = 0; i < count; i++) {
        if (codes[i].bits == bits && strcmp(codes[i].text, text) == 0) {
            return &codes[i];
        }
    }
    fprintf(stderr, "not assembled: %s\n", text);
    abort();
}

#define ASSEMBLED(bits, text)                                                                      \
    find_assembled(assembled_codes, sizeof assembled_codes / sizeof *assembled_codes, bits, text)

/* The bytes and the size of a text, as two arguments of a call. */
#define CODE_64(text) (const char *)ASSEMBLED(64, text)->bytes, ASSEMBLED(64, text)->size
#define CODE_32(text) (const char *)ASSEMBLED(32, text)->bytes, ASSEMBLED(32, text)->size

#endif
