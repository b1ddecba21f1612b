/* SPDX-License-Identifier: MIT */
/* `hotfn info`: what a record holds: the run, its modules, its rows. */
#include "verbs.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int usage(FILE *out, int status)
{
    fputs("usage: hotfn info [--json] RECORD\n", out);
    return status;
}

static const char *state_word(uint32_t state)
{
    static const char *const names[] = { "unknown", "live", "finished", "killed",
                                         "broken (hotfn repair)" };
    return names[state <= HOTFN_RECORD_BROKEN ? state : 0];
}

static void print_time(const char *label, uint64_t ns)
{
    char text[64] = "-";
    time_t seconds = (time_t)(ns / 1000000000u);
    struct tm parts;
    if (ns && localtime_r(&seconds, &parts)) {
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %z", &parts);
    }
    printf("%-10s %s\n", label, text);
}

static void print_id(const hotfn_record_module *m)
{
    for (uint32_t i = 0; i < m->id_bytes && i < sizeof m->id; i++) {
        printf("%02x", m->id[i]);
    }
}

static void print_run(const hotfn_record_info *info)
{
    printf("%-10s %s\n%-10s %s\n%-10s %s\n", "record", info->path, "command", info->command,
           "directory", info->directory);
    printf("%-10s %s, format %u.%u\n", "written by", info->tool, info->version_major,
           info->version_minor);
    printf("%-10s %s", "state", state_word(info->state));
    if (info->exit_code < 0) {
        printf(", by signal %d", -info->exit_code);
    } else if (info->state == HOTFN_RECORD_FINISHED) {
        printf(", exit status %d", info->exit_code);
    }
    printf("\n%-10s %u\n", "process", info->pid);
    print_time("start", info->start_ns);
    print_time("end", info->end_ns);
    if (info->window_end_ns) {
        printf("%-10s %.3f s\n", "window",
               (double)(info->window_end_ns - info->window_start_ns) / 1e9);
    }
    printf("%-10s %u\n%-10s %u rows, %u threads lost\n", "functions", info->function_count,
           "threads", info->thread_count, info->threads_lost);
}

static void print_modules(const hotfn_record *record, uint32_t count)
{
    printf("\nmodules\n");
    for (uint32_t i = 0; i < count; i++) {
        hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
        hotfn_record_get_module(record, i, &m);
        printf("  %-9s %6u functions  %s  ",
               m.flags & HOTFN_MODULE_FAILED     ? "failed"
               : m.flags & HOTFN_MODULE_LEFT_OUT ? "left out"
               : m.flags & HOTFN_MODULE_UNLOADED ? "unloaded"
               : m.flags & HOTFN_MODULE_LOADED   ? "loaded"
                                                 : "unseen",
               m.function_count, m.path);
        print_id(&m);
        printf("%s%s\n", m.note[0] ? "  " : "", m.note);
    }
}

static void print_threads(const hotfn_record *record, uint32_t count)
{
    printf("\nrows (process, thread, threads that counted in it, calls, name)\n");
    for (uint32_t i = 0; i < count; i++) {
        hotfn_record_thread t = HOTFN_RECORD_THREAD_INIT;
        hotfn_record_get_thread(record, i, &t);
        printf("  %7u %7u %5u %20" PRIu64 "  %.16s\n", t.pid, t.tid, t.thread_count, t.calls,
               t.name);
    }
}

/* Everything but the functions is in the report's JSON already: its export with no function listed
 * would be a second schema for the same facts, so info --json is the report cut to one function. */
static int32_t write_out(void *user, const void *bytes, size_t count)
{
    return fwrite(bytes, 1, count, user) == count ? 0 : -1;
}

static int print_json(const hotfn_record *record)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_export_options options = HOTFN_EXPORT_OPTIONS_INIT;
    options.limit = 1;
    return hotfn_export(record, "json", &options, write_out, stdout, NULL, &err) == HOTFN_OK
               ? TOOL_OK
               : hotfn_tool_fail("info", &err);
}

int hotfn_verb_info(int argc, char **argv)
{
    static const struct option words[] = { { "json", no_argument, NULL, 'j' },
                                           { "help", no_argument, NULL, 'h' },
                                           { NULL, 0, NULL, 0 } };
    hotfn_record *record;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    bool json = false;
    int word;
    optind = 1;
    while ((word = getopt_long(argc, argv, "", words, NULL)) != -1) {
        if (word == 'h') {
            return usage(stdout, TOOL_OK);
        }
        if (word != 'j') {
            return usage(stderr, TOOL_USAGE);
        }
        json = true;
    }
    if (optind + 1 != argc) {
        return usage(stderr, TOOL_USAGE);
    }
    if (hotfn_record_open(&record, argv[optind], NULL, &err) != HOTFN_OK) {
        return hotfn_tool_fail("info", &err);
    }
    int status = TOOL_OK;
    if (json) {
        status = print_json(record);
    } else {
        hotfn_record_get_info(record, &info);
        print_run(&info);
        print_modules(record, info.module_count);
        print_threads(record, info.thread_count);
    }
    hotfn_record_close(record);
    return status;
}
