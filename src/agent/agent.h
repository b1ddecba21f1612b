/* SPDX-License-Identifier: MIT */
#ifndef HOTFN_AGENT_H
#define HOTFN_AGENT_H

#include <hotfn.h>
#include <hotfn/lowlevel.h>

/* agent.c: the target's hook set; NULL before the session has joined, or if joining failed. */
const hotfn_hooks *agent_hooks(void);

/* gdb_jit.c: called once, after the hooks are installed and before other threads exist. */
void agent_register_with_debuggers(void);

#endif
