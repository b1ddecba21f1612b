/* SPDX-License-Identifier: MIT */
#ifndef HOTFN_AGENT_H
#define HOTFN_AGENT_H

#include <hotfn.h>

/* The last field of HOTFN_RUN; tools/hotfn/run*.c writes the same bits. */
#define AGENT_FOLLOW 1u   /* keep the environment: children are counted too */
#define AGENT_PERF_MAP 2u /* names of stubs to /tmp/perf-PID.map            */
#define AGENT_VERBOSE 4u

/* The target's hook set, NULL before and without one. */
const hotfn_hooks *agent_hooks(void);

/* unwind.c: before anybody can unwind. */
void agent_find_next_unwinders(void);

#endif
