/* SPDX-License-Identifier: MIT */
/* What differs between compilers, in one place. */
#ifndef HFN_BASE_COMPILER_H
#define HFN_BASE_COMPILER_H

#include <stdint.h>

#define HFN_LIKELY(x) __builtin_expect(!!(x), 1)
#define HFN_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define HFN_HOST_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
#define HFN_SWAP16(x) __builtin_bswap16(x)
#define HFN_SWAP32(x) __builtin_bswap32(x)
#define HFN_SWAP64(x) __builtin_bswap64(x)
#define HFN_WEAK __attribute__((weak))
#define HFN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define HFN_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
