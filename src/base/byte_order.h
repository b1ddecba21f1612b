/* SPDX-License-Identifier: MIT */
/* Little-endian numbers at any address, aligned or not, on a host of either byte order.  Nothing is
 * bounds-checked here: bytes of unknown length are read through base/span.h. */
#ifndef HFN_BASE_BYTE_ORDER_H
#define HFN_BASE_BYTE_ORDER_H

#include "base/compiler.h"

#include <stdint.h>
#include <string.h>

static inline uint16_t hfn_read_le16(const void *from)
{
    uint16_t value;

    memcpy(&value, from, sizeof value);
    return HFN_HOST_BIG_ENDIAN ? HFN_SWAP16(value) : value;
}

static inline uint32_t hfn_read_le32(const void *from)
{
    uint32_t value;

    memcpy(&value, from, sizeof value);
    return HFN_HOST_BIG_ENDIAN ? HFN_SWAP32(value) : value;
}

/* A signed 32-bit number, such as the distance of a jump, sign-extended. */
static inline int64_t hfn_read_signed_le32(const void *from)
{
    return (int32_t)hfn_read_le32(from);
}

static inline uint64_t hfn_read_le64(const void *from)
{
    uint64_t value;

    memcpy(&value, from, sizeof value);
    return HFN_HOST_BIG_ENDIAN ? HFN_SWAP64(value) : value;
}

static inline void hfn_write_le16(void *to, uint16_t value)
{
    value = HFN_HOST_BIG_ENDIAN ? HFN_SWAP16(value) : value;
    memcpy(to, &value, sizeof value);
}

static inline void hfn_write_le32(void *to, uint32_t value)
{
    value = HFN_HOST_BIG_ENDIAN ? HFN_SWAP32(value) : value;
    memcpy(to, &value, sizeof value);
}

static inline void hfn_write_le64(void *to, uint64_t value)
{
    value = HFN_HOST_BIG_ENDIAN ? HFN_SWAP64(value) : value;
    memcpy(to, &value, sizeof value);
}

#endif
