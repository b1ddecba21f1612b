/* SPDX-License-Identifier: MIT */
#ifndef HOTFN_AGENT_H
#define HOTFN_AGENT_H

#include <hotfn.h>
#include <hotfn/lowlevel.h>

/* agent.c: the target's hook set, NULL before and without one. */
const hotfn_hooks *agent_hooks(void);

/* gdb_jit.c: when the hooks stand, and no other thread runs. */
void agent_tell_debuggers(void);

#endif
