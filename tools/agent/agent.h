/* SPDX-License-Identifier: MIT */
#ifndef HOTFN_AGENT_H
#define HOTFN_AGENT_H

#include <hotfn.h>

/* The target's hook set, NULL before and without one. */
const hotfn_hooks *agent_hooks(void);

/* unwind.c: before anybody can unwind. */
void agent_find_next_unwinders(void);

/* gdb_jit.c: when the hooks stand, and no other thread runs. */
void agent_tell_debuggers(void);

#endif
