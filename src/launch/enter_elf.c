/* SPDX-License-Identifier: MIT */
/* Decides which ELF programs can be entered from the start, by an agent that the dynamic loader
 * preloads or from outside, and which agent serves a program. */
#include "arch/stub.h"
#include "launch/launch.h"
#include "os/files.h"
#include "os/remote.h"

#include <string.h>

static uint32_t get_own_machine(void)
{
    return hfn_stub_get_patching()->machine;
}

bool hfn_agent_serves(uint32_t machine)
{
    return machine == get_own_machine() ||
           (machine == HOTFN_MACHINE_X86 && get_own_machine() == HOTFN_MACHINE_X86_64);
}

const char *hfn_agent_get_name(uint32_t machine)
{
    return machine == HOTFN_MACHINE_X86 && get_own_machine() == HOTFN_MACHINE_X86_64
               ? "hotfn-agent-i386.so"
               : "hotfn-agent.so";
}

const char *hfn_agent_find_path_refusal(const char *path)
{
    return strpbrk(path, " :")
               ? "the loader accepts no agent whose path has a space or a colon; install libhotfn "
                 "elsewhere"
               : NULL;
}

const char *hfn_target_find_option_refusal(const hotfn_launch_options *options)
{
    (void)options;
    return NULL;
}

/* A position-independent Go program names glibc's loader even if it needs no library.  A preloaded
 * C library would not know its threads. */
static bool is_go_without_c(const hotfn_image *image)
{
    hotfn_section section = HOTFN_SECTION_INIT;
    bool is_go = false, has_names = false;

    for (uint32_t i = 0; hotfn_image_get_section(image, i, &section) == HOTFN_OK; i++) {
        is_go = is_go || strcmp(section.name, ".data.rel.ro.gopclntab") == 0;
        has_names = has_names || (strcmp(section.name, ".dynstr") == 0 && section.byte_count > 1);
    }
    return is_go && !has_names;
}

const char *hfn_target_find_refusal(hfn_target *t, const hotfn_image *image)
{
    hotfn_image_info known = HOTFN_IMAGE_INFO_INIT, *info = &known;

    hotfn_image_get_info(image, info);
    if (info->format == HOTFN_FORMAT_PE) {
        return "a Windows program: make a kit for a Windows machine of it (hotfn kit)";
    }
    if (info->format != HOTFN_FORMAT_ELF || !hfn_agent_serves(info->machine)) {
        return hfn_agent_serves(HOTFN_MACHINE_ARM64)
                   ? "not an ARM64 ELF program; this build of hotfn counts no others"
                   : "not an x86-64 or i386 ELF program (x32 is neither); this build of hotfn "
                     "counts no others";
    }
    bool is_static = !(info->flags & HOTFN_IMAGE_INTERPRETER);
    const char *slash = is_static ? NULL : strrchr(info->interpreter, '/');
    const char *loader = slash ? slash + 1 : is_static ? "" : info->interpreter;

    t->is_outside = hfn_os_can_enter_others() && info->machine == get_own_machine() &&
                    (is_static || strncmp(loader, "ld-musl", 7) == 0 || is_go_without_c(image));
    if (t->is_outside) {
        return NULL;
    }
    if (is_static) {
        return "a static program has no dynamic loader that could load the agent; count a "
               "dynamically linked build of it";
    }
    if (strncmp(loader, "ld-linux", 8) != 0) {
        return "its dynamic loader is not glibc's (ld-linux); the agent needs glibc";
    }
    return hfn_os_resolve_path(info->interpreter, t->interpreter, sizeof t->interpreter)
               ? NULL
               : "its dynamic loader does not exist";
}

/* An attach needs no agent: attach/check.c reads the process itself. */
hotfn_status hfn_target_check_attached(hfn_target *t, const hotfn_env *env, hotfn_error *err)
{
    (void)t, (void)env, (void)err;
    return HOTFN_OK;
}
