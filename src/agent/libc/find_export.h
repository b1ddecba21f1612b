/* SPDX-License-Identifier: MIT */
#ifndef HFN_AGENT_LIBC_FIND_EXPORT_H
#define HFN_AGENT_LIBC_FIND_EXPORT_H

#include <stdint.h>

/* The address that the Windows module at base exports by name; NULL: none, or that of another
 * module. */
void *agent_find_export(uint64_t base, const char *name);

#endif
