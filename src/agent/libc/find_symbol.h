/* SPDX-License-Identifier: MIT */
#ifndef HFN_AGENT_LIBC_FIND_SYMBOL_H
#define HFN_AGENT_LIBC_FIND_SYMBOL_H

#include <stdint.h>

/* The address of a function or variable that the module at base exports; NULL: there is none. */
void *agent_find_symbol(uint64_t base, const char *name);

#endif
