/* SPDX-License-Identifier: MIT */
/* What this build of the program cannot do on Windows: each command refuses in one sentence. */
#include "cli/commands.h"
#include "cli/demangle.h"
#include "record/export_plugin.h"

static int refuse_command(const char *command, const char *instead)
{
    fprintf(stderr, "hotfn %s: not available on Windows; %s\n", command, instead);
    return TOOL_FAILED;
}

int hotfn_command_listen(int argc, char **argv)
{
    (void)argc, (void)argv;
    return refuse_command("listen", "listen on Linux");
}

int hotfn_command_kit(int argc, char **argv)
{
    (void)argc, (void)argv;
    return refuse_command("kit", "make the kit on Linux");
}

bool export_plugin_is_path(const char *format)
{
    return strchr(format, '/') || strchr(format, '\\');
}

const char *export_plugin_load(const char *path)
{
    fprintf(stderr, "hotfn export: %s: plug-ins cannot be loaded on Windows\n", path);
    return NULL;
}

/* A name that could exhaust time or memory is shown as it is. */
size_t demangle_in_worker(const char *mangled, char *out, size_t out_bytes)
{
    (void)mangled, (void)out, (void)out_bytes;
    return 0;
}
