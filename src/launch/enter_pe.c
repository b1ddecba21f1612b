/* SPDX-License-Identifier: MIT */
/* Which Windows programs the agent can enter through their import list, and which agent. */
#include "arch/stub.h"
#include "base/status.h"
#include "launch/launch.h"

#include <string.h>

bool hfn_agent_serves(uint32_t machine)
{
    return machine == hfn_stub_get_patching()->machine;
}

const char *hfn_agent_get_name(uint32_t machine)
{
    (void)machine;
    return "hotfn-agent.dll";
}

/* An import list has names in the system's code page. */
const char *hfn_agent_find_path_refusal(const char *path)
{
    for (const char *c = path; *c; c++) {
        if ((unsigned char)*c >= 0x80) {
            return "the path of the agent has other letters than ASCII, which no import list can "
                   "name; install libhotfn elsewhere";
        }
    }
    return NULL;
}

const char *hfn_target_find_refusal(hfn_target *t, const hotfn_image_info *info)
{
    t->interpreter[0] = 0;
    if (info->format != HOTFN_FORMAT_PE) {
        return "not a Windows program; this build of hotfn counts no others";
    }
    if (!hfn_agent_serves(info->machine)) {
        return "a program for another CPU; use the hotfn of the same word size and CPU";
    }
    return NULL;
}

hotfn_status hfn_target_check_attached(hfn_target *t, const hotfn_env *env, hotfn_error *err)
{
    return t->image[0] ? hfn_target_check_image(t, env, err)
                       : hfn_report_error(err, HOTFN_E_NOT_FOUND, NULL, HOTFN_NO_OFFSET,
                                          "the process has just ended");
}
