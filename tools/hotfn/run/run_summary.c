/* SPDX-License-Identifier: MIT */
/* The summary of `hotfn run`: one line on stderr, and another line if processes of the program
 * still run. */
#include "cli/cli_options.h"
#include "run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_REMAINING = 8, MAX_CHILDREN = 5 };

typedef struct run_totals {
    uint32_t hooked, refused, unselected_modules, failed_modules;
    uint64_t code_bytes, known_bytes;
    char names[200]; /* of modules that are not selected, as many as fit */
    bool has_more_names;
} run_totals;

static void add_unselected_module(run_totals *t, const char *name)
{
    size_t used = strlen(t->names), room = sizeof t->names - sizeof ", ..." - used;

    t->has_more_names |= strlen(name) + 2 > room;
    if (!t->has_more_names) {
        snprintf(t->names + used, room + 1, "%s%s", used ? ", " : "", name);
    }
    t->unselected_modules++;
}

static void count_modules(run_totals *t, const hotfn_record *record, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
        hotfn_record_get_module(record, i, &m);
        t->failed_modules += (m.flags & HOTFN_MODULE_FAILED) != 0;
        if (m.function_count > 0) {
            t->code_bytes += m.code_bytes;
            t->known_bytes += m.known_bytes;
        }
        if (m.flags & HOTFN_MODULE_LEFT_OUT) {
            add_unselected_module(t, m.file);
        }
    }
}

static run_totals count_record(const hotfn_launch *launch)
{
    run_totals t = { 0 };
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    hotfn_record *record;

    if (hotfn_launch_open_record(&record, launch, NULL) != HOTFN_OK) {
        return t;
    }
    hotfn_record_get_info(record, &info);
    for (uint32_t i = 0; i < info.function_count; i++) {
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
        hotfn_record_get_function(record, i, &f);
        t.hooked += f.state == HOTFN_STATE_HOOKED;
        t.refused += f.state == HOTFN_STATE_REFUSED;
    }
    count_modules(&t, record, info.module_count);
    hotfn_record_close(record);
    return t;
}

/* A process that is attached to runs on while it is scanned; how long it stood is printed later. */
static void print_durations(const hotfn_launch_info *info)
{
    uint64_t own_ns = info->preparation_ns < info->run_ns ? info->preparation_ns : info->run_ns;

    if (info->attach_stop_ns > 0) {
        fprintf(stderr, "; counted for %.3f s", (double)info->run_ns / 1e9);
    } else {
        fprintf(stderr, "; prepared in %.3f s, ran %.3f s", (double)own_ns / 1e9,
                (double)(info->run_ns - own_ns) / 1e9);
    }
}

static void print_totals(const hotfn_launch *launch, const hotfn_launch_info *info)
{
    run_totals t = count_record(launch);

    fprintf(stderr, "hotfn: %u function%s hooked, %u refused", t.hooked, cli_plural(t.hooked),
            t.refused);
    if (t.code_bytes) {
        fprintf(stderr, " (%.1f %% of the code)",
                100.0 * (double)t.known_bytes / (double)t.code_bytes);
    }
    if (t.unselected_modules) {
        fprintf(stderr, "; %u module%s not selected (%s%s)", t.unselected_modules,
                cli_plural(t.unselected_modules), t.names,
                t.has_more_names ? (t.names[0] ? ", ..." : "...") : "");
    }
    if (t.failed_modules) {
        fprintf(stderr, "; %u module%s failed (hotfn info %s)", t.failed_modules,
                cli_plural(t.failed_modules), info->record_path);
    }
    print_durations(info);
    fprintf(stderr, "; record %s\n", info->record_path);
}

static void warn_of_remaining_processes(const hotfn_launch *launch)
{
    uint32_t pids[MAX_REMAINING];
    uint32_t count = hotfn_launch_find_remaining(pids, launch, MAX_REMAINING);

    if (count == 0) {
        return;
    }
    fprintf(stderr, "hotfn: no longer counted, but still running: process");
    for (uint32_t i = 0; i < count; i++) {
        fprintf(stderr, "%s %" PRIu32, i > 0 ? "," : "", pids[i]);
    }
    fprintf(stderr, "%s (run a daemon in the foreground)\n", count == MAX_REMAINING ? ", ..." : "");
}

/* List the programs of children that were not counted, most processor time first. */
static void print_children(const hotfn_launch *launch)
{
    hotfn_record_child child = HOTFN_RECORD_CHILD_INIT;
    hotfn_record *record;

    if (hotfn_launch_open_record(&record, launch, NULL) != HOTFN_OK) {
        return;
    }
    for (uint32_t i = 0; hotfn_record_get_child(record, i, &child) == HOTFN_OK; i++) {
        if (i == MAX_CHILDREN) {
            fputs(", ...", stderr);
            break;
        }
        fprintf(stderr, "%s %s (", i ? "," : "hotfn: children not counted:", child.file);
        if (child.process_count > 1) {
            fprintf(stderr, "%" PRIu32 " processes, ", child.process_count);
        }
        fprintf(stderr, "%.2f s CPU)", (double)child.cpu_ns / 1e9);
    }
    if (hotfn_record_get_child(record, 0, &child) == HOTFN_OK) {
        fprintf(stderr, "; --target '%s' counts this one, --follow all\n", child.file);
    }
    hotfn_record_close(record);
}

/* A path with other characters than these is quoted for a shell. */
static void print_next_command(const hotfn_launch_info *info)
{
    const char *path = info->record_path;
    bool is_plain = !strpbrk(path, " \t'\"\\$&;()<>|*?[]{}~#`!");

    fprintf(stderr, "hotfn: next: hotfn report%s%s%s\n",
            strcmp(path, CLI_DEFAULT_RECORD) == 0 ? ""
            : is_plain                            ? " "
                                                  : " '",
            strcmp(path, CLI_DEFAULT_RECORD) == 0 ? "" : path, is_plain ? "" : "'");
}

void run_print_summary(const run_options *o, const hotfn_launch *launch)
{
    hotfn_launch_info info = HOTFN_LAUNCH_INFO_INIT;

    hotfn_launch_get_info(launch, &info);
    if (info.is_joined) {
        print_totals(launch, &info);
    } else {
        fprintf(stderr, "hotfn: nothing was counted: the target %s\n",
                o->launch.target_glob ? "never started (does --target match its file?)"
                                      : "did not load the agent (see hotfn doctor)");
    }
    print_children(launch);
    warn_of_remaining_processes(launch);
    if (info.is_joined && info.record_path) {
        print_next_command(&info);
    }
}
