/* SPDX-License-Identifier: MIT */
/* Detects text that the processor guards against unexpected indirect branches (AArch64 BTI). */
#ifndef HFN_OS_LINUX_GUARD_H
#define HFN_OS_LINUX_GUARD_H

#include <stdint.h>

/* Returns the bits that mprotect of [begin, end) needs in addition to read, write and execute. */
int hfn_linux_guard_of(uint64_t begin, uint64_t end);

#endif
