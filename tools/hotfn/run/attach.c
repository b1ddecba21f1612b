/* SPDX-License-Identifier: MIT */
/* `hotfn attach`: count the calls of a process that runs already, until it ends, the time is over
 * or the user interrupts; then write the record.  The process runs on. */
#include "attach.h"

#include "cli/cli_options.h"
#include "cli/commands.h"
#include "cli/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = RUN_FIRST_OWN_OPTION, CHILDREN, BY, WAIT_NS = 50000000 };

static const struct option table[] = {
    RUN_SHARED_OPTIONS,
    { "name", required_argument, NULL, NAME },
    { "children", no_argument, NULL, CHILDREN },
    { "by", required_argument, NULL, BY },
    CLI_OPTIONS_END,
};

/* clang-format off */
static const char usage[] =
    "usage: hotfn attach [options] PID\n"
    "       hotfn attach [options] --name GLOB\n"
    "      --name GLOB      the process of this program, if there is only one\n"
    "      --children       also the processes that it has started and will start, each with a\n"
    "                       record of its own (FILE.PID)\n"
    "      --by thread|hook  Windows: enter by a new thread of the process, or by a message hook\n"
    "                       of a thread that has a window [thread]\n"
    "  -o, --output FILE    the record [hotfn.hfr]\n"
    "      --mode MODE      count, or time: also measure times, callers and the call tree [count]\n"
    "      --flat           with --mode time: times by function only, no call tree\n"
    "      --slower-than T  with --mode time: keep each call that takes longer (1ms, 20us)\n"
    "      --sample N       with --mode time: time one call in N, at random; count all\n"
    "      --max-threads N  count at most N threads at one time [by the memory there is]\n"
    "      --max-places N   with --mode time: keep N places in the call trees [by memory]\n"
    "      --for TIME       detach after TIME (10s); without it, Ctrl-C detaches\n"
    RUN_SELECTION_USAGE
    "      --list FILE      hook only the functions listed (hotfn list -o)\n"
    "      --symbol-dir DIR also search DIR for separate debug files (may be repeated)\n"
    "      --no-cache       do not keep scans for the next run\n"
    "  -q, --quiet          no summary;  -v, --verbose: more messages\n"
    "The process runs on afterwards, with its own code.\n";
/* clang-format on */

typedef struct attach_options {
    run_options run;
    const char *name; /* glob; NULL: the process is named by its number */
    bool children;
} attach_options;

static const char *read_method(const char *argument, uint32_t *flags)
{
    *flags &= ~HOTFN_LAUNCH_BY_HOOK;
    if (strcmp(argument, "hook") == 0) {
        *flags |= HOTFN_LAUNCH_BY_HOOK;
        return NULL;
    }
    return strcmp(argument, "thread") == 0 ? NULL : "thread or hook";
}

static const char *read_option(void *user, int option, const char *argument)
{
    attach_options *attach = user;

    switch (option) {
    case CHILDREN: attach->children = true; return NULL;
    case BY: return read_method(argument, &attach->run.launch.flags);
    case NAME: attach->name = argument; return NULL;
    default: return run_read_shared_option(&attach->run, option, argument);
    }
}

static void print_log(void *user, int32_t level, const char *text)
{
    const run_options *o = user;
    int32_t max_level = o->quiet ? HOTFN_LOG_ERROR : HOTFN_LOG_INFO;

    if (log_is_shown(level, max_level) || o->verbose) {
        fprintf(stderr, "hotfn attach: %s\n", text);
    }
}

/* Returns -1, or the exit status after a message. */
static int find_process(const char *name, int argc, char **argv, uint32_t *pid)
{
    if ((argc == optind) == (name == NULL)) {
        return cli_report_misuse("hotfn attach", usage, "name one process, by its number or by --name");
    }
    if (name) {
        return run_find_process("attach", name, pid) ? -1 : TOOL_FAILED;
    }
    if (!cli_parse_u32(argv[optind], 1, INT32_MAX, pid)) {
        fprintf(stderr, "hotfn attach: '%s' is not the number of a process (see ps)\n",
                argv[optind]);
        return TOOL_USAGE;
    }
    return -1;
}

static int parse_command(attach_options *attach, uint32_t *pid, int argc, char **argv)
{
    const cli_options w = { usage, RUN_SHARED_LETTERS, table, read_option, attach, 0, 1 };
    run_options *o = &attach->run;
    int status;

    *o = (run_options){ .launch = HOTFN_LAUNCH_OPTIONS_INIT, .selection = HOTFN_SELECTION_INIT };
    o->launch.record_path = CLI_DEFAULT_RECORD;
    status = cli_read_options(&w, argc, argv);
    if (status < 0 && attach->children && attach_check_children()) {
        fprintf(stderr, "hotfn attach: --children: %s\n", attach_check_children());
        return TOOL_USAGE;
    }
    if (status < 0) {
        status = find_process(attach->name, argc, argv, pid);
    }
    if (status >= 0) {
        return status;
    }
    return run_use_lists(o, "attach") ? -1 : TOOL_USAGE;
}

/* Returns false if the process could not be detached from. */
static bool wait_for_end(hotfn_launch *launch)
{
    hotfn_launch_info info = HOTFN_LAUNCH_INFO_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_status status = HOTFN_OK;

    do {
        status = attach_is_interrupted() ? hotfn_launch_detach(launch, &err)
                                         : hotfn_launch_wait(launch, WAIT_NS, &err);
        hotfn_launch_get_info(launch, &info);
    } while (status == HOTFN_OK && info.state == HOTFN_LAUNCH_RUNNING);
    if (status != HOTFN_OK) {
        hotfn_tool_fail("attach", &err);
    }
    return status == HOTFN_OK;
}

bool attach_finish_record(const run_options *o, hotfn_launch *launch)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_launch_info info = HOTFN_LAUNCH_INFO_INIT;
    bool is_written = hotfn_launch_finish(launch, &err) == HOTFN_OK;

    hotfn_launch_get_info(launch, &info);
    if (is_written && !o->quiet) {
        run_print_summary(o, launch);
        fprintf(stderr,
                "hotfn: the threads were stopped for %.1f ms at attach, %.1f ms at detach\n",
                (double)info.attach_stop_ns / 1e6, (double)info.detach_stop_ns / 1e6);
    } else if (!is_written) {
        hotfn_tool_fail("attach", &err);
        if (info.record_path) {
            fprintf(stderr, "hotfn attach: the record was kept in %s instead\n", info.record_path);
        }
    }
    return is_written;
}

static bool run_one(const run_options *o, hotfn_launch *launch)
{
    bool is_good = wait_for_end(launch) && attach_finish_record(o, launch);

    hotfn_launch_destroy(launch);
    return is_good;
}

int hotfn_command_attach(int argc, char **argv)
{
    static attach_options options;
    hotfn_env env = hotfn_tool_env();
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_launch *launch;
    uint32_t pid = 0;
    int status = parse_command(&options, &pid, argc, argv);
    bool is_good;

    if (status >= 0) {
        return status;
    }
    env.log_fn = print_log;
    env.log_user = &options.run;
    attach_catch_interrupts(); /* from here on the process must be detached from */
    if (hotfn_launch_attach(&launch, pid, &options.run.launch, &env, &err) != HOTFN_OK) {
        run_free_options(&options.run);
        return hotfn_tool_fail("attach", &err);
    }
    is_good = options.children ? attach_run_family(&options.run, launch, &env)
                               : run_one(&options.run, launch);
    run_free_options(&options.run);
    return is_good ? TOOL_OK : TOOL_FAILED;
}
