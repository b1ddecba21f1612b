/* SPDX-License-Identifier: MIT */
/* Flags of the environment variable HOTFN_RUN, its last field of three digits.  The launcher writes
 * it, the agent reads it. */
#ifndef HFN_LIVE_RUN_FLAGS_H
#define HFN_LIVE_RUN_FLAGS_H

#define AGENT_FOLLOW 1u   /* keep the environment, so that children are counted too */
#define AGENT_PERF_MAP 2u /* write names of stubs to /tmp/perf-PID.map      */
#define AGENT_INSIDE 4u   /* FOLLOW: the target wrote the variable, for a child   */
#define AGENT_NEXT 16u    /* exec replaced the target, which had the id before the flags */
#define AGENT_QUIET 8u    /* print nothing if a child cannot be counted            */
#define AGENT_PYTHON 32u  /* count Python functions (src/runtimes/python.c)        */
#define AGENT_OBJC 64u    /* count Objective-C messages (src/runtimes/objc.c)      */
#define AGENT_ART 128u    /* filter the method trace of Android (src/runtimes/art.c) */
#define AGENT_COM 256u    /* count methods of COM objects (src/runtimes/com.c), Windows */

#endif
