/* SPDX-License-Identifier: MIT */
/* Which text is guarded against stray indirect branches. */
#ifndef HFN_OS_LINUX_GUARD_H
#define HFN_OS_LINUX_GUARD_H

#include <stdint.h>

/* What [begin, end) carries beside read, write and execute, as bits for mprotect; 0: nothing. */
int hfn_linux_guard_of(uint64_t begin, uint64_t end);

#endif
