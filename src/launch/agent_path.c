/* SPDX-License-Identifier: MIT */
/* Finds the agent: near the running tool or library, or where it was installed. */
#include "arch/stub.h"
#include "base/status.h"
#include "launch/launch.h"

#include <stdio.h>
#include <string.h>

static uint32_t get_own_machine(void)
{
    return hfn_stub_get_patching()->machine;
}

static bool is_agent(char *path, size_t path_bytes, const char *folder, const char *place,
                     const char *name)
{
    int length = snprintf(path, path_bytes, "%s%s/%s", folder, place, name);

    return length > 0 && (size_t)length < path_bytes && hfn_os_is_readable(path);
}

/* Relative to the folder of the tool or of the library. */
static const char *const places[] = {
    "",                    /* a kit                                               */
    "/../../src/agent",    /* a build folder, from the tool                       */
    "/agent",              /* a build folder, from the library                    */
    HOTFN_AGENT_FROM_TOOL, /* an installed tree, which may be moved, from the tool */
    "/hotfn",              /* an installed tree, from the library                 */
};

static bool find_near_own_file(char *path, size_t path_bytes, const char *name)
{
    char own[HFN_OS_PATH_BYTES];

    if (!hfn_os_own_path(own)) {
        return false;
    }
    char *slash = strrchr(own, '/');
    if (!slash) {
        return false;
    }
    *slash = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (is_agent(path, path_bytes, own, places[i], name)) {
            return true;
        }
    }
    return false;
}

hotfn_status hotfn_launch_find_agent(char *path, uint64_t path_bytes, uint32_t machine,
                                     hotfn_error *err)
{
    if (!path) {
        return hfn_report_null(err, __func__);
    }
    if (!hfn_os_can_share_files()) {
        return hfn_report_error(
            err, HOTFN_E_IO, NULL, HOTFN_NO_OFFSET,
            "/proc is not mounted here: hotfn finds its own parts through it, and the "
            "target finds the record through it; mount -t proc proc /proc");
    }
    machine = machine == HOTFN_MACHINE_OTHER ? get_own_machine() : machine;
    if (!hfn_agent_serves(machine)) {
        return hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                                "this build of hotfn has no agent for programs of that CPU");
    }
    const char *name = hfn_agent_get_name(machine);
    if (find_near_own_file(path, (size_t)path_bytes, name) ||
        is_agent(path, (size_t)path_bytes, HOTFN_AGENT_FOLDER, "", name)) {
        return HOTFN_OK;
    }
    return hfn_report_error(
        err, HOTFN_E_IO, NULL, HOTFN_NO_OFFSET,
        "%s was found neither next to this program nor in %s; install all of libhotfn%s", name,
        HOTFN_AGENT_FOLDER,
        machine == HOTFN_MACHINE_X86 ? " (this agent is built where the compiler accepts -m32)"
                                     : "");
}

/* Make the path valid for 64-bit and 32-bit processes, if the folder has links to both agents.  The
 * links contain the string that each loader substitutes for $PLATFORM (ld.so(8), 'Dynamic string
 * tokens'), so each process loads the agent of its own word size.  On some processors glibc
 * substitutes haswell or xeon_phi; the path is then not changed. */
static void choose_either_agent(char *path, size_t path_bytes)
{
    char folder[HFN_OS_PATH_BYTES], link[HFN_OS_PATH_BYTES];
    char *slash = strrchr(path, '/');

    if (!slash || strcmp(hfn_os_platform(), "x86_64") != 0) {
        return;
    }
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    if (is_agent(link, sizeof link, folder, "", "hotfn-agent-x86_64.so") &&
        is_agent(link, sizeof link, folder, "", "hotfn-agent-i686.so") &&
        strlen(folder) + sizeof "/hotfn-agent-$PLATFORM.so" <= path_bytes) {
        snprintf(path, path_bytes, "%s/hotfn-agent-$PLATFORM.so", folder);
    }
}

static hotfn_status find_agent(hotfn_launch *l, hotfn_error *err)
{
    const char *given = l->options.agent_path;

    if (!given) {
        return hotfn_launch_find_agent(l->agent, sizeof l->agent, l->target.machine, err);
    }
    if (snprintf(l->agent, sizeof l->agent, "%s", given) >= (int)sizeof l->agent ||
        !hfn_os_is_readable(given)) {
        return hfn_report_error(err, HOTFN_E_IO, given, HOTFN_NO_OFFSET,
                                "the agent cannot be read");
    }
    return HOTFN_OK;
}

hotfn_status hfn_agent_choose(hotfn_launch *l, hotfn_error *err)
{
    hotfn_status status = find_agent(l, err);

    if (status != HOTFN_OK) {
        return status;
    }
    choose_either_agent(l->agent, sizeof l->agent); /* the program may become another by exec */
    const char *refusal = hfn_agent_find_path_refusal(l->agent);
    if (refusal) {
        return hfn_report_error(err, HOTFN_E_IO, l->agent, HOTFN_NO_OFFSET, "%s", refusal);
    }
    return HOTFN_OK;
}
