/* SPDX-License-Identifier: MIT */
/* `hotfn detach`: release a process that another hotfn has attached to, also if that was killed. */
#include "cli/cli_options.h"
#include "cli/commands.h"
#include "cli/log.h"

#include <hotfn/launch.h>
#include <stdio.h>

typedef struct detach_options {
    const char *record_path;
    bool quiet;
} detach_options;

static const struct option table[] = {
    { "output", required_argument, NULL, 'o' },
    { "quiet", no_argument, NULL, 'q' },
    CLI_OPTIONS_END,
};

static const char usage[] =
    "usage: hotfn detach [options] PID\n"
    "  -o, --output FILE  for the counts of a hotfn attach that was killed [hotfn.hfr]\n"
    "  -q, --quiet        no messages but errors\n"
    "The code of the process is restored, and it runs on.  A hotfn attach that still runs ends and writes\n"
    "its record itself.\n";

static const char *read_option(void *user, int option, const char *argument)
{
    detach_options *o = user;

    if (option == 'o') {
        o->record_path = argument;
    } else {
        o->quiet = true;
    }
    return NULL;
}

static void print_log(void *user, int32_t level, const char *text)
{
    const detach_options *o = user;

    if (log_is_shown(level, o->quiet ? HOTFN_LOG_ERROR : HOTFN_LOG_INFO)) {
        fprintf(stderr, "hotfn detach: %s\n", text);
    }
}

int hotfn_command_detach(int argc, char **argv)
{
    detach_options options = { CLI_DEFAULT_RECORD, false };
    const cli_options w = { usage, "o:q", table, read_option, &options, 1, 1 };
    hotfn_env env = hotfn_tool_env();
    hotfn_error err = HOTFN_ERROR_INIT;
    uint64_t stop_ns = 0;
    uint32_t pid = 0;
    int status = cli_read_options(&w, argc, argv);

    if (status >= 0) {
        return status;
    }
    if (!cli_parse_u32(argv[optind], 1, INT32_MAX, &pid)) {
        fprintf(stderr, "hotfn detach: '%s' is not the number of a process (see ps)\n",
                argv[optind]);
        return TOOL_USAGE;
    }
    env.log_fn = print_log;
    env.log_user = &options;
    if (hotfn_launch_release(pid, options.record_path, &stop_ns, &env, &err) != HOTFN_OK) {
        return hotfn_tool_fail("detach", &err);
    }
    if (!options.quiet) {
        fprintf(stderr,
                "hotfn: process %u has its own code again; its threads were stopped for %.1f ms\n",
                pid, (double)stop_ns / 1e6);
    }
    return TOOL_OK;
}
