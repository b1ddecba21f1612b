/* SPDX-License-Identifier: MIT */
/* The last field of HOTFN_RUN, which the launcher writes and the agent reads: three digits. */
#ifndef HFN_LIVE_RUN_FLAGS_H
#define HFN_LIVE_RUN_FLAGS_H

#define AGENT_FOLLOW 1u   /* keep the environment: children are counted too */
#define AGENT_PERF_MAP 2u /* names of stubs to /tmp/perf-PID.map            */
#define AGENT_INSIDE 4u   /* with FOLLOW: written by the target for its children */
#define AGENT_QUIET 8u    /* a child that cannot be counted leaves its stderr alone */

#endif
