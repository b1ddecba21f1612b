/* SPDX-License-Identifier: MIT */
/* SHA-256 (FIPS 180-4): the checksum of records, and what is stored of tokens. */
#ifndef HOTFN_COLLECTOR_SHA256_H
#define HOTFN_COLLECTOR_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32 };

typedef struct sha256 {
    uint32_t state[8];
    uint64_t byte_count;
    uint8_t block[64];
} sha256;

void sha256_begin(sha256 *s);
void sha256_add(sha256 *s, const void *bytes, size_t byte_count);
void sha256_finish(sha256 *s, uint8_t out[SHA256_BYTES]);

/* Compare without a branch on the contents, so that the time does not depend on them. */
bool equal_in_constant_time(const uint8_t *a, const uint8_t *b, size_t byte_count);

/* out has 2 * byte_count + 1 characters. */
void format_hex(char *out, const uint8_t *bytes, size_t byte_count);
/* False unless text is exactly 2 * byte_count hexadecimal digits. */
bool parse_hex(const char *text, uint8_t *out, size_t byte_count);

#endif
