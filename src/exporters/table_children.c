/* SPDX-License-Identifier: MIT */
/* The first lines of the table if something else than the program that the user meant was counted:
 * the interpreter of a script, or a program that leaves its work to a child. */
#include "exporters/table.h"

#include <hotfn/lowlevel/timing.h>
#include <stdio.h>
#include <string.h>

static const char *main_module(const hfn_view *view)
{
    for (uint32_t i = 0; i < view->info.module_count; i++) {
        hotfn_record_module m;
        hfn_view_module(view, i, &m);
        if (m.flags & HOTFN_MODULE_MAIN) {
            return m.file;
        }
    }
    return "the program";
}

static void put_command(const hfn_view *view, hfn_sink *sink, const hotfn_record_child *child)
{
    hfn_sink_format(sink, "  to count %s: hotfn run%s --target '", child->file,
                    view->time.flags ? " --mode time" : "");
    for (const char *c = child->file; *c; c++) {
        hfn_sink_format(sink, strchr("*?[\\", *c) ? "\\%c" : *c == '\'' ? "'\\'%c" : "%c", *c);
    }
    hfn_sink_text(sink, "' -- ");
    hfn_table_name(sink, view->info.command, 0);
    hfn_sink_text(sink, "\n");
}

static void put_child_time(hfn_sink *sink, const hotfn_record_child *child)
{
    hfn_sink_format(sink, "%s, which used %.2f s of CPU time", child->file,
                    (double)child->cpu_ns / 1e9);
}

void hfn_table_put_children(const hfn_view *view, hfn_sink *sink)
{
    const hotfn_record_info *info = &view->info;
    hotfn_record_child child = HOTFN_RECORD_CHILD_INIT;
    bool has_child = hotfn_record_get_child(view->record, 0, &child) == HOTFN_OK;
    bool is_less = has_child && info->cpu_ns > 0 && child.cpu_ns > info->cpu_ns;

    if (info->became[0]) {
        hfn_sink_text(sink, "NOTE: the program became ");
        hfn_table_name(sink, info->became, 0);
        hfn_sink_format(sink, " by exec, which could not be counted; these are the calls of %s\n",
                        main_module(view));
    }
    if (!info->script[0] && !is_less) {
        return;
    }
    hfn_sink_format(sink, "NOTE: these are the calls of %s", main_module(view));
    if (info->script[0]) {
        hfn_sink_text(sink, ", the interpreter of ");
        hfn_table_name(sink, info->script, 0);
    } else {
        hfn_sink_format(sink, " (%.2f s of CPU time)", (double)info->cpu_ns / 1e9);
    }
    if (has_child) {
        hfn_sink_text(sink, ", not of its child ");
        put_child_time(sink, &child);
    }
    hfn_sink_text(sink, "\n");
    if (has_child) {
        put_command(view, sink, &child);
    }
}
