/* SPDX-License-Identifier: MIT */
/* `hotfn run --push`: wait for the end of the program and send its record, in increments while it
 * runs if --push-every asks for them.  A failure to send is reported; the exit status stays that of
 * the program. */
#include "run.h"

#include "cli/commands.h"

#ifdef HOTFN_HAVE_PUSH
#include <stdio.h>

/* Send what a record has more than before.  False if the series must end. */
static bool send_increment(const run_options *o, const hotfn_record *record, bool is_last)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_push_result result = HOTFN_PUSH_RESULT_INIT;
    hotfn_status status = hotfn_push_series_add(o->push.series, record, &result, &err);

    if (status != HOTFN_OK) {
        hotfn_tool_fail("run", &err);
    } else if (is_last && (!o->quiet || result.state == HOTFN_PUSH_SPOOLED)) {
        push_report_result("run", o->launch.record_path, &result, err.text);
    }
    return status == HOTFN_OK;
}

static bool is_running(const hotfn_launch *launch)
{
    hotfn_launch_info info = HOTFN_LAUNCH_INFO_INIT;

    hotfn_launch_get_info(launch, &info);
    return info.state == HOTFN_LAUNCH_RUNNING;
}

static hotfn_push_series *open_series(run_options *o)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_push_series *series = NULL;

    if (push_complete_options(&o->push, "run") &&
        hotfn_push_series_open(&series, &o->push.options, o->push.every_seconds, &err) !=
            HOTFN_OK) {
        hotfn_tool_fail("run", &err);
    }
    return series;
}

void run_wait(run_options *o, hotfn_launch *launch)
{
    uint64_t interval = (uint64_t)o->push.every_seconds * 1000000000;
    bool sends = o->push.every_seconds && (o->push.series = open_series(o)) != NULL;

    while (sends && hotfn_launch_wait(launch, interval, NULL) == HOTFN_OK && is_running(launch)) {
        hotfn_record *record = NULL;
        if (hotfn_launch_open_record(&record, launch, NULL) == HOTFN_OK) {
            sends = send_increment(o, record, false);
        }
        hotfn_record_close(record);
    }
    if (!sends) {
        hotfn_push_series_close(o->push.series);
        o->push.series = NULL;
    }
    hotfn_launch_wait(launch, UINT64_MAX, NULL);
}

void run_send_record(run_options *o, const hotfn_launch *launch)
{
    hotfn_launch_info info = HOTFN_LAUNCH_INFO_INIT;
    hotfn_record *record = NULL;

    hotfn_launch_get_info(launch, &info);
    if (!o->push.options.url || !info.is_joined || !info.record_path) {
        return;
    }
    if (!o->push.series) {
        push_send(&o->push, "run", info.record_path, o->quiet);
        return;
    }
    hotfn_error err = HOTFN_ERROR_INIT;
    if (hotfn_launch_open_record(&record, launch, &err) == HOTFN_OK) {
        send_increment(o, record, true);
    } else {
        hotfn_tool_fail("run", &err);
    }
    hotfn_record_close(record);
    hotfn_push_series_close(o->push.series);
}
#else
void run_wait(run_options *o, hotfn_launch *launch)
{
    (void)o;
    hotfn_launch_wait(launch, UINT64_MAX, NULL);
}

void run_send_record(run_options *o, const hotfn_launch *launch)
{
    (void)o;
    (void)launch;
}
#endif
