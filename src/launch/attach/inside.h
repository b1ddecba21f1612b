/* SPDX-License-Identifier: MIT */
/* The steps of an attach by which the agent enters a process (os/agent.h), for a launch and for
 * `hotfn detach`. */
#ifndef HFN_LAUNCH_INSIDE_H
#define HFN_LAUNCH_INSIDE_H

#include "os/agent.h"

#include <hotfn/env.h>
#include <hotfn/status.h>
#include <stdbool.h>

/* Open the process; err has the reason if it cannot be opened. */
hotfn_status hfn_inside_open(hfn_os_agent *agent, uint32_t pid, hotfn_error *err);
/* Map its order, and refuse one of hotfn run or of another version.  creates: make one if there is
 * none; else HOTFN_E_NOT_FOUND. */
hotfn_status hfn_inside_map(hfn_os_agent *agent, bool creates, hotfn_error *err);

uint32_t hfn_inside_get_state(const hfn_agent_order *order);
uint32_t hfn_inside_get_launcher(const hfn_agent_order *order);
/* Change the state from `from` with any launcher to ENTERING of this process, or from INSIDE to
 * LEAVING with the same launcher; false if it is not in that state. */
bool hfn_inside_claim(hfn_agent_order *order, uint32_t from, uint32_t to);

/* Let the agent do the step that was claimed.  HOTFN_OK: it is done.  HOTFN_E_NOT_FOUND: the
 * process has ended.  Otherwise the state is again what it was before
 * the claim. */
hotfn_status hfn_inside_run(hfn_os_agent *agent, const char *agent_path, bool by_hook,
                            hotfn_error *err);

#endif
