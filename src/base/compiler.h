/* SPDX-License-Identifier: MIT */
/* What differs between compilers, in one place. */
#ifndef HFN_BASE_COMPILER_H
#define HFN_BASE_COMPILER_H

#include <stdint.h>

#define HFN_LIKELY(x) __builtin_expect(!!(x), 1)
#define HFN_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define HFN_WEAK __attribute__((weak))
#define HFN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define HFN_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
