/* SPDX-License-Identifier: MIT */
/* The call between agent_windows.c and steps.c. */
#ifndef HOTFN_AGENT_STEPS_H
#define HOTFN_AGENT_STEPS_H

/* From now on, do the steps of this process's order, if that is one of an attach. */
void agent_follow_attaches(void);

#endif
