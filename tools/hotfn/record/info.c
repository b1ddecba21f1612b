/* SPDX-License-Identifier: MIT */
/* `hotfn info`: what a record holds: the run, its modules, its rows. */
#include "cli/budget_words.h"
#include "cli/cli_options.h"
#include "cli/column_widths.h"
#include "cli/commands.h"
#include "cli/listing.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char usage[] =
    "usage: hotfn info [--json] [RECORD]\n"
    "Without RECORD: hotfn.hfr in this folder, where hotfn run leaves it.\n";

static const char *take(void *user, int word, const char *argument)
{
    (void)word, (void)argument;
    *(bool *)user = true;
    return NULL;
}

/* A command line or a path may hold anything: no control character reaches the terminal. */
static void print_text(const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        bool c1 = c == 0xc2 && text[1] && (unsigned char)text[1] < 0xa0; /* as UTF-8 */
        putchar(c < 0x20 || c == 0x7f || c1 ? '?' : c);
        text += c1;
    }
}

static void print_field(const char *label, const char *text)
{
    printf("%-10s ", label);
    print_text(text);
    putchar('\n');
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
    print_field("record", info->path);
    print_field("command", info->command);
    print_field("directory", info->directory);
    print_field("written by", info->tool);
    printf("%-10s %u.%u\n", "format", info->version_major, info->version_minor);
    printf("%-10s %s%s", "state", hotfn_record_get_state_name(info->state),
           info->state == HOTFN_RECORD_BROKEN ? " (hotfn repair)" : "");
    if (info->exit_code < 0) {
        printf(", by signal %d", -info->exit_code);
    } else if (info->state == HOTFN_RECORD_FINISHED) {
        printf(", exit status %d", info->exit_code);
    }
    putchar('\n');
    if (info->repaired[0]) {
        fputs("repaired   lost: ", stdout);
        print_text(info->repaired);
        putchar('\n');
    }
    if (info->pid) {
        printf("%-10s %u\n", "process", info->pid);
    }
    print_time("start", info->start_ns);
    print_time("end", info->end_ns);
    if (info->window_end_ns) {
        printf("%-10s %.3f s\n", "window",
               (double)(info->window_end_ns - info->window_start_ns) / 1e9);
    }
    printf("%-10s %u\n%-10s %u row%s, %u lost\n", "functions", info->function_count, "threads",
           info->thread_count, words_s(info->thread_count), info->threads_lost);
}

static const char *clock_word(uint32_t clock)
{
    return clock == HOTFN_CLOCK_TSC      ? "tsc"
           : clock == HOTFN_CLOCK_ARM    ? "cntvct"
           : clock == HOTFN_CLOCK_MERGED ? "merged"
                                         : "monotonic";
}

/* What was kept of each call, and what did not fit. */
static void print_timing(const hotfn_record *record)
{
    hotfn_record_time_info t = HOTFN_RECORD_TIME_INFO_INIT;
    hotfn_record_get_time_info(record, &t);
    if (!t.flags) {
        if (t.note[0]) {
            printf("%-10s %s\n", "times", t.note);
        }
        return;
    }
    printf("%-10s %s%s%s%s%s", "timed",
           t.flags & HOTFN_TIMING_SAMPLED  ? "a sample"
           : t.flags & HOTFN_TIMING_ERRORS ? "a sample in some of the runs"
                                           : "every call",
           t.flags & HOTFN_TIMING_TREE ? ", call tree" : "",
           t.flags & HOTFN_TIMING_HISTOGRAMS ? ", histograms" : "",
           t.flags & HOTFN_TIMING_EVENTS ? ", events" : "",
           t.flags & HOTFN_TIMING_ALLOC ? ", memory" : "");
    if (t.flags & HOTFN_TIMING_SAMPLED) {
        if (t.sample_mean > 1) {
            printf("; 1 in %" PRIu32 " after the first 1000 of a function and thread",
                   t.sample_mean);
        } else {
            fputs("; each, but where the budget allowed fewer", stdout);
        }
    }
    if (t.flags & HOTFN_TIMING_SLOW) {
        printf("; calls from %.3f ms on", (double)t.slow_ns / 1e6);
    }
    if (t.clock == HOTFN_CLOCK_MERGED) {
        printf("\n%-10s nanoseconds of the merged runs' clocks, without the hooks' own cost\n",
               "clock");
    } else {
        printf("\n%-10s %s, %.3f MHz; a call costs %.1f ns timed, %.1f ns counted\n", "clock",
               clock_word(t.clock), (double)t.ticks_per_second / 1e6,
               t.cost_inside_ns + t.cost_outside_ns, t.count_cost_ns);
    }
    printf("%-10s %.3f s busy; %" PRIu32 " place%s in the tree (%" PRIu32 " merged), %" PRIu32
           " edge%s, %" PRIu32 " slow call%s (%" PRIu64 " lost), %" PRIu64 " event%s (%" PRIu64
           " lost)\n",
           "times", (double)t.busy_ns / 1e9, t.node_count, words_s(t.node_count), t.nodes_merged,
           t.edge_count, words_s(t.edge_count), t.slow_count, words_s(t.slow_count),
           (uint64_t)t.slow_lost, t.event_count, words_s(t.event_count), t.events_lost);
    if (t.clock_stopped_ns) {
        printf(
            "%-10s stopped %.6f s after the start, since the program forbids itself to read it: from then on calls were only counted\n",
            "clock", (double)t.clock_stopped_ns / 1e9);
    }
    if (t.abandoned_exits || t.clock_went_back) {
        printf("%-10s %" PRIu32 " call%s left by longjmp or the like; %" PRIu32
               " time%s the clock went back\n",
               "", t.abandoned_exits, t.abandoned_exits == 1 ? " was" : "s were", t.clock_went_back,
               words_s(t.clock_went_back));
    }
}

static void print_budget(const hotfn_record *record)
{
    hotfn_record_budget b = HOTFN_RECORD_BUDGET_INIT;
    watched_less w = budget_count_watched(record);
    hotfn_record_get_budget(record, &b);
    if (b.share_ppm) {
        printf(
            "%-10s %.4g%%; hooks took %.2f%% of what the program took itself, %.3f s in all; stopped %" PRIu32
            " time%s, %.3f ms in all, %.3f at "
            "most (%" PRIu32 " failed)\n",
            "budget", (double)b.share_ppm / 1e4, 100 * budget_taken(&b), (double)b.cpu_ns / 1e9,
            b.stops, words_s(b.stops), (double)b.stopped_ns / 1e6, (double)b.longest_stop_ns / 1e6,
            b.failed_stops);
        if (b.note[0]) {
            printf("%-10s THE BUDGET WAS NOT KEPT: ", "");
            print_text(b.note);
            putchar('\n');
        }
    }
    if (b.share_ppm || w.ever) { /* a merged record has marks alone */
        printf("%-10s %" PRIu32 " function%s unhooked for a while, %" PRIu32
               " of them to the end; %" PRIu32
               " timed less than asked for (hotfn report says when and why)\n",
               "", w.ever, words_s(w.ever), w.unhooked, w.timed_less);
    }
}

/* Of all functions: each block belongs to one. */
static hotfn_alloc_cell sum_memory(const hotfn_record *record, uint32_t functions)
{
    hotfn_alloc_cell sum = { 0, 0, 0, 0 };
    for (uint32_t i = 0; i < functions; i++) {
        hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;
        hotfn_record_get_timing(record, i, &t);
        sum.allocated_bytes += t.self_alloc.allocated_bytes;
        sum.allocated_blocks += t.self_alloc.allocated_blocks;
        sum.freed_bytes += t.self_alloc.freed_bytes;
        sum.freed_blocks += t.self_alloc.freed_blocks;
    }
    return sum;
}

static bool has_memory(const hotfn_record *record)
{
    hotfn_record_time_info t = HOTFN_RECORD_TIME_INFO_INIT;
    hotfn_record_get_time_info(record, &t);
    return t.flags & HOTFN_TIMING_ALLOC;
}

static void print_memory(const hotfn_record *record, uint32_t functions)
{
    hotfn_alloc_cell sum = sum_memory(record, functions);
    if (has_memory(record)) {
        printf("%-10s %" PRIu64 " bytes allocated in %" PRIu64 " blocks, %" PRIu64
               " freed in %" PRIu64 "\n",
               "memory", sum.allocated_bytes, sum.allocated_blocks, sum.freed_bytes,
               sum.freed_blocks);
    }
}

/* As in hotfn.report/1. */
static const char *module_word(uint32_t flags)
{
    if (flags & (HOTFN_MODULE_FAILED | HOTFN_MODULE_LEFT_OUT)) {
        return flags & HOTFN_MODULE_FAILED ? "failed" : "left-out";
    }
    if (flags & HOTFN_MODULE_UNLOADED) {
        return "unloaded";
    }
    return flags & HOTFN_MODULE_LOADED ? "loaded" : "not-loaded";
}

static void print_modules(const hotfn_record *record, uint32_t count)
{
    printf("\nmodules\n");
    for (uint32_t i = 0; i < count; i++) {
        hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
        hotfn_record_get_module(record, i, &m);
        printf("  %-10s %6u functions  %-7s ", module_word(m.flags), m.function_count,
               m.machine == HOTFN_MACHINE_OTHER ? "-" : hotfn_machine_get_name(m.machine));
        print_text(m.path);
        printf("  ");
        print_id(&m);
        printf("%s", m.note[0] ? "  " : "");
        print_text(m.note);
        putchar('\n');
    }
}

static void print_threads(const hotfn_record *record, uint32_t count)
{
    printf("\nrows (process, thread, threads that counted in it, calls, name)\n");
    for (uint32_t i = 0; i < count; i++) {
        char calls[32];
        hotfn_record_thread t = HOTFN_RECORD_THREAD_INIT;
        hotfn_record_get_thread(record, i, &t);
        printf("  %7u %7u %5u %26s  ", t.pid, t.tid, t.thread_count,
               listing_grouped(t.calls, calls));
        print_text(t.name);
        putchar('\n');
    }
}

/* ---- JSON: hotfn.info/1, docs/info.schema.json. */

static void json_text(const char *key, const char *text)
{
    printf(",\"%s\":", key);
    listing_json_text(stdout, text);
}

static void json_run(const hotfn_record_info *info)
{
    printf("{\"schema\":\"hotfn.info/1\"");
    json_text("version", hotfn_get_version());
    json_text("path", info->path);
    json_text("state", hotfn_record_get_state_name(info->state));
    json_text("command", info->command);
    json_text("directory", info->directory);
    json_text("tool", info->tool);
    printf(",\"format\":[%" PRIu32 ",%" PRIu32 "],\"uuid\":\"", info->version_major,
           info->version_minor);
    for (size_t i = 0; i < sizeof info->uuid; i++) {
        printf("%02x", info->uuid[i]);
    }
    printf("\",\"pid\":%" PRIu32 ",\"exit_code\":%" PRId32 ",\"start_ns\":%" PRIu64
           ",\"end_ns\":%" PRIu64,
           info->pid, info->exit_code, info->start_ns, info->end_ns);
    if (info->repaired[0]) {
        json_text("repaired", info->repaired);
    }
    printf(",\"window_start_ns\":%" PRIu64 ",\"window_end_ns\":%" PRIu64 ",\"functions\":%" PRIu32
           ",\"threads_lost\":%" PRIu32,
           info->window_start_ns, info->window_end_ns, info->function_count, info->threads_lost);
}

static void json_timing(const hotfn_record *record)
{
    hotfn_record_time_info t = HOTFN_RECORD_TIME_INFO_INIT;
    hotfn_record_get_time_info(record, &t);
    if (!t.flags) {
        printf(",\"time\":null");
        if (t.note[0]) {
            json_text("times_note", t.note);
        }
        return;
    }
    printf(",\"time\":{\"timed\":\"%s\",\"clock\":\"%s\",\"ticks_per_second\":%" PRIu64
           ",\"cost_ns\":%.3f,\"count_cost_ns\":%.3f,\"sample_mean\":%" PRIu32
           ",\"slow_ns\":%" PRIu64 ",\"busy_ns\":%" PRIu64,
           t.flags & (HOTFN_TIMING_SAMPLED | HOTFN_TIMING_ERRORS) ? "sample" : "all",
           clock_word(t.clock), t.ticks_per_second, t.cost_inside_ns + t.cost_outside_ns,
           t.count_cost_ns, t.sample_mean, t.slow_ns, t.busy_ns);
    printf(",\"nodes\":%" PRIu32 ",\"nodes_merged\":%" PRIu32 ",\"edges\":%" PRIu32
           ",\"slow_calls\":%" PRIu32 ",\"events\":%" PRIu64 ",\"events_lost\":%" PRIu64
           ",\"abandoned_exits\":%" PRIu32 ",\"clock_went_back\":%" PRIu32
           ",\"clock_stopped_ns\":%" PRIu64 ",\"cost_tries\":%" PRIu64 "}",
           t.node_count, t.nodes_merged, t.edge_count, t.slow_count, t.event_count, t.events_lost,
           t.abandoned_exits, t.clock_went_back, t.clock_stopped_ns, t.cost_tries);
}

static void json_budget(const hotfn_record *record)
{
    hotfn_record_budget b = HOTFN_RECORD_BUDGET_INIT;
    watched_less w = budget_count_watched(record);
    hotfn_record_get_budget(record, &b);
    if (!b.share_ppm) {
        printf(",\"budget\":null");
        return;
    }
    printf(",\"budget\":{\"share\":%.6f,\"taken\":%.6f,\"cpu_ns\":%" PRIu64 ",\"cost_ns\":%" PRIu64,
           (double)b.share_ppm / 1e6, budget_taken(&b), b.cpu_ns, b.cost_ns);
    printf(",\"stops\":%" PRIu32 ",\"failed_stops\":%" PRIu32 ",\"stopped_ns\":%" PRIu64
           ",\"longest_stop_ns\":%" PRIu64,
           b.stops, b.failed_stops, b.stopped_ns, b.longest_stop_ns);
    printf(",\"changes\":%" PRIu64 ",\"unhooked_ever\":%" PRIu32 ",\"unhooked_at_end\":%" PRIu32
           ",\"timed_less\":%" PRIu32,
           b.change_count + b.changes_lost, w.ever, w.unhooked, w.timed_less);
    json_text("note", b.note);
    printf("}");
}

static void json_memory(const hotfn_record *record, uint32_t functions)
{
    hotfn_alloc_cell sum = sum_memory(record, functions);
    if (!has_memory(record)) {
        printf(",\"memory\":null");
        return;
    }
    printf(",\"memory\":{\"allocated_bytes\":%" PRIu64 ",\"allocated_blocks\":%" PRIu64
           ",\"freed_bytes\":%" PRIu64 ",\"freed_blocks\":%" PRIu64 "}",
           sum.allocated_bytes, sum.allocated_blocks, sum.freed_bytes, sum.freed_blocks);
}

static void json_modules(const hotfn_record *record, uint32_t count)
{
    printf(",\n\"modules\":[");
    for (uint32_t i = 0; i < count; i++) {
        hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
        hotfn_record_get_module(record, i, &m);
        printf("%s\n{\"module\":", i ? "," : "");
        listing_json_text(stdout, m.file);
        json_text("path", m.path);
        json_text("machine", hotfn_machine_get_name(m.machine));
        printf(",\"image_id\":\"");
        print_id(&m);
        printf("\"");
        json_text("state", module_word(m.flags));
        json_text("note", m.note);
        printf(",\"main\":%s,\"load_base\":%" PRIu64 ",\"functions\":%" PRIu32 "}",
               m.flags & HOTFN_MODULE_MAIN ? "true" : "false", m.load_base, m.function_count);
    }
    printf("]");
}

static void json_threads(const hotfn_record *record, uint32_t count)
{
    printf(",\n\"threads\":[");
    for (uint32_t i = 0; i < count; i++) {
        hotfn_record_thread t = HOTFN_RECORD_THREAD_INIT;
        hotfn_record_get_thread(record, i, &t);
        printf("%s\n{\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"threads\":%" PRIu32
               ",\"start_ns\":%" PRIu64 ",\"calls\":%" PRIu64,
               i ? "," : "", t.pid, t.tid, t.thread_count, t.start_ns, t.calls);
        json_text("name", t.name);
        printf("}");
    }
    printf("]}\n");
}

int hotfn_command_info(int argc, char **argv)
{
    static const struct option table[] = { { "json", no_argument, NULL, 'j' }, WORDS_END };
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    bool json = false;
    const words w = { usage, "", table, take, &json, 0, 1 };
    int status = words_read(&w, argc, argv);
    if (status >= 0) {
        return status;
    }
    const char *path = words_record(argv[0], usage, argc, argv);
    if (!path) {
        return TOOL_USAGE;
    }
    hotfn_record *record = hotfn_tool_record("info", path, 0, 0);
    if (!record) {
        return TOOL_FAILED;
    }
    hotfn_record_get_info(record, &info);
    if (json) {
        json_run(&info);
        json_timing(record);
        json_memory(record, info.function_count);
        json_budget(record);
        json_modules(record, info.module_count);
        json_threads(record, info.thread_count);
    } else {
        fit_begin();
        print_run(&info);
        print_timing(record);
        print_memory(record, info.function_count);
        print_budget(record);
        print_modules(record, info.module_count);
        print_threads(record, info.thread_count);
        fit_end(0);
    }
    hotfn_record_close(record);
    return TOOL_OK;
}
