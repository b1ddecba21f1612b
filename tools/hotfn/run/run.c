/* SPDX-License-Identifier: MIT */
/* `hotfn run`: launch a program, wait for its end, write the record, and end in the same way. */
#include "run.h"

#include "cli/commands.h"
#include "cli/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_log(void *user, int32_t level, const char *text)
{
    const run_options *o = user;
    int32_t max_level = o->quiet ? HOTFN_LOG_ERROR : HOTFN_LOG_WARNING;

    if (log_is_shown(level, max_level) || o->verbose) {
        fprintf(stderr, "hotfn run: %s\n", text);
    }
}

/* The launch failed: print the reason, return the exit status. */
static int report_failure(const run_options *o, const hotfn_error *err)
{
    hotfn_tool_fail("run", err);
    if (err->status == HOTFN_E_IO && strcmp(err->file, o->launch.record_path) == 0) {
        fputs("hotfn run: choose another place for the record with -o\n", stderr);
    }
    return err->status == HOTFN_E_NOT_FOUND ? RUN_NOT_FOUND
           : err->status == HOTFN_E_DENIED  ? RUN_NOT_EXECUTABLE
           : err->status == HOTFN_E_OPTION  ? TOOL_USAGE
                                            : RUN_FAILED;
}

static void finish_record(const run_options *o, hotfn_launch *launch)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_launch_info info = HOTFN_LAUNCH_INFO_INIT;

    if (hotfn_launch_finish(launch, &err) == HOTFN_OK) {
        if (!o->quiet) {
            run_print_summary(o, launch);
        }
        return;
    }
    hotfn_tool_fail("run", &err);
    hotfn_launch_get_info(launch, &info);
    if (info.record_path) {
        fprintf(stderr, "hotfn run: the record was kept in %s instead\n", info.record_path);
    }
}

int hotfn_command_run(int argc, char **argv)
{
    static run_options options;
    hotfn_launch *launch;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_launch_info info = HOTFN_LAUNCH_INFO_INIT;
    hotfn_env env = hotfn_tool_env();
    int status = run_parse_options(&options, argc, argv);

    if (status >= 0) {
        return status;
    }
    env.log_fn = print_log;
    env.log_user = &options;
    if (hotfn_launch_start(&launch, &options.launch, &env, &err) != HOTFN_OK) {
        run_free_options(&options);
        return report_failure(&options, &err);
    }
    run_wait(&options, launch);
    finish_record(&options, launch);
    run_send_record(&options, launch);
    hotfn_launch_get_info(launch, &info);
    hotfn_launch_destroy(launch);
    run_free_options(&options);
    return run_end_like_child(info.exit_code);
}
