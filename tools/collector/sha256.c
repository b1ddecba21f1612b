/* SPDX-License-Identifier: MIT */
/* SHA-256 as FIPS 180-4, section 6.2, describes it. */
#include "sha256.h"

#include <string.h>

/* FIPS 180-4, 4.2.2. */
static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate_right(uint32_t x, unsigned by)
{
    return x >> by | x << (32 - by);
}

static void mix_block(sha256 *s, const uint8_t *block)
{
    uint32_t w[64], v[8];

    for (unsigned i = 0; i < 16; i++) {
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    }
    for (unsigned i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3) + w[i - 7] +
               (rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10);
    }
    memcpy(v, s->state, sizeof v);
    for (unsigned i = 0; i < 64; i++) {
        uint32_t e = v[4], a = v[0];
        uint32_t t1 = v[7] + (rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25)) +
                      ((e & v[5]) ^ (~e & v[6])) + constants[i] + w[i];
        uint32_t t2 = (rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22)) +
                      ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (unsigned i = 0; i < 8; i++) {
        s->state[i] += v[i];
    }
}

void sha256_begin(sha256 *s)
{
    *s = (sha256){ .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                              0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
}

void sha256_add(sha256 *s, const void *bytes, size_t byte_count)
{
    const uint8_t *at = bytes;
    size_t used = s->byte_count % 64;

    s->byte_count += byte_count;
    while (byte_count > 0) {
        if (used == 0 && byte_count >= 64) {
            mix_block(s, at);
            at += 64;
            byte_count -= 64;
            continue;
        }
        size_t n = byte_count < 64 - used ? byte_count : 64 - used;
        memcpy(s->block + used, at, n);
        at += n;
        byte_count -= n;
        used = (used + n) % 64;
        if (used == 0) {
            mix_block(s, s->block);
        }
    }
}

void sha256_finish(sha256 *s, uint8_t out[SHA256_BYTES])
{
    static const uint8_t padding[64] = { 128 };
    uint64_t bits = s->byte_count * 8;
    uint8_t length[8];

    for (unsigned i = 0; i < 8; i++) {
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    }
    sha256_add(s, padding, 1 + (119 - s->byte_count % 64) % 64);
    sha256_add(s, length, sizeof length);
    for (unsigned i = 0; i < SHA256_BYTES; i++) {
        out[i] = (uint8_t)(s->state[i / 4] >> (24 - 8 * (i % 4)));
    }
}

bool equal_in_constant_time(const uint8_t *a, const uint8_t *b, size_t byte_count)
{
    volatile uint8_t difference = 0;

    for (size_t i = 0; i < byte_count; i++) {
        difference = (uint8_t)(difference | (a[i] ^ b[i]));
    }
    return difference == 0;
}

void format_hex(char *out, const uint8_t *bytes, size_t byte_count)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < byte_count; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * byte_count] = 0;
}

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

bool parse_hex(const char *text, uint8_t *out, size_t byte_count)
{
    for (size_t i = 0; i < byte_count; i++) {
        int high = hex_value(text[2 * i]), low = high < 0 ? -1 : hex_value(text[2 * i + 1]);
        if (low < 0) {
            return false;
        }
        out[i] = (uint8_t)(high << 4 | low);
    }
    return text[2 * byte_count] == 0;
}
