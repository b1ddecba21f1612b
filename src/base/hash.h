/* SPDX-License-Identifier: MIT */
/* FNV-1a, 64 bit (draft-eastlake-fnv, "The FNV Non-Cryptographic Hash Algorithm").  Its values are
 * stored: as identifiers of images and methods, and in the names of cached scans. */
#ifndef HFN_BASE_HASH_H
#define HFN_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HFN_HASH_BEGIN UINT64_C(0xcbf29ce484222325)

/* Continue a hash: returns the hash of all bytes that `hash` covers, followed by these bytes. */
static inline uint64_t hfn_hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    const uint8_t *at = bytes;

    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

#endif
