/* SPDX-License-Identifier: MIT */
/* The steps of an attach; agent_windows.c begins them. */
#ifndef HOTFN_AGENT_STEPS_H
#define HOTFN_AGENT_STEPS_H

/* If this process has the order of an attach, perform the steps of the order from now on. */
void agent_follow_attaches(void);

#endif
