/* SPDX-License-Identifier: MIT */
/* Which Windows programs the agent can enter through their import list, and which agent. */
#include "arch/stub.h"
#include "base/status.h"
#include "image/pe.h"
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

const char *hfn_agent_find_path_refusal(const char *path)
{
    char name[HFN_OS_PATH_BYTES];

    return hfn_os_get_import_name(path, name, sizeof name)
               ? NULL
               : "the path of the agent has letters that are not in this system's code page, so no "
                 "import list can name it; move this folder elsewhere";
}

const char *hfn_target_find_option_refusal(const hotfn_launch_options *o)
{
    return o->flags & HOTFN_LAUNCH_FOLLOW || o->target_glob
               ? "children of a program are not counted on Windows: run the program itself (no "
                 "--follow, no --target)"
           : o->flags & HOTFN_LAUNCH_ALLOC
               ? "allocated memory is not recorded on Windows (no --with alloc)"
           : o->flags & HOTFN_LAUNCH_DURABLE
               ? "a live record is not kept in a file on Windows (no --durable); hotfn.exe saves it "
                 "when the program ends, also after a crash"
           : o->flags & HOTFN_LAUNCH_PERF_MAP ? "perf runs on Linux only (no --perf-map)"
                                              : NULL;
}

const char *hfn_target_find_refusal(hfn_target *t, const hotfn_image *image)
{
    hotfn_image_info known = HOTFN_IMAGE_INFO_INIT, *info = &known;

    hotfn_image_get_info(image, info);
    t->interpreter[0] = 0;
    if (info->format != HOTFN_FORMAT_PE) {
        return "not a Windows program; this build of hotfn counts no others";
    }
    if (!hfn_agent_serves(info->machine)) {
        return "a program for another CPU; use the hotfn of the same word size and CPU";
    }
    if (t->runs_already) {
        return NULL; /* its other modules may have functions */
    }
    return hfn_pe_is_managed(image)
               ? "a .NET program: its code is compiled when it is first called, so it has no "
                 "functions to count; native libraries in it can be counted by hotfn attach"
           : hfn_pe_is_packed(image)
               ? "a packed program: its code is written when it starts; unpack it (UPX: upx -d) and "
                 "run that"
               : NULL;
}

hotfn_status hfn_target_check_attached(hfn_target *t, const hotfn_env *env, hotfn_error *err)
{
    t->runs_already = true;
    return t->image[0] ? hfn_target_check_image(t, env, err)
                       : hfn_report_error(err, HOTFN_E_NOT_FOUND, NULL, HOTFN_NO_OFFSET,
                                          "the process has just ended");
}
