/* SPDX-License-Identifier: MIT */
/* `hotfn info`: prints the facts of a record: the run, its modules and its rows. */
#include "cli/budget_summary.h"
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
    "Without RECORD: hotfn.hfr in this folder, which hotfn run writes by default.\n";

static const char *read_option(void *user, int option, const char *argument)
{
    (void)option, (void)argument;
    *(bool *)user = true;
    return NULL;
}

/* A command line or a path may contain any byte: control characters are shown as "?". */
static void print_text(const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        bool c1 = c == 0xc2 && text[1] &&
                  (unsigned char)text[1] < 0xa0; /* a C1 control character in UTF-8 */
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
    if (info->preparation_ns) {
        printf("%-10s %.3f s, in which the program waited for its scan and its hooks\n", "prepared",
               (double)info->preparation_ns / 1e9);
    }
    if (info->window_end_ns) {
        printf("%-10s %.3f s\n", "window",
               (double)(info->window_end_ns - info->window_start_ns) / 1e9);
    }
    printf("%-10s %u\n%-10s %u row%s, %u lost\n", "functions", info->function_count, "threads",
           info->thread_count, cli_plural(info->thread_count), info->threads_lost);
}

static const char *get_clock_name(uint32_t clock)
{
    return clock == HOTFN_CLOCK_TSC      ? "tsc"
           : clock == HOTFN_CLOCK_ARM    ? "cntvct"
           : clock == HOTFN_CLOCK_MERGED ? "merged"
           : clock == HOTFN_CLOCK_TICK   ? "tick"
                                         : "monotonic";
}

static const char *get_ticker_name(uint32_t ticker)
{
    return ticker == HOTFN_TICKER_QUOTA           ? "quota"
           : ticker == HOTFN_TICKER_ONE_PROCESSOR ? "one-processor"
                                                  : "spins";
}

static void print_ticker(const hotfn_record_time_info *t)
{
    if (t->ticker) {
        printf("%-10s %s; every %.1f us, error of a time that of %.1f us; coarse in %.1f%%, "
               "missing in %.1f%% of the run; took %.3f s of processor time\n",
               "ticker", get_ticker_name(t->ticker), t->tick_ns / 1e3, t->tick_error_ns / 1e3,
               100 * t->coarse_share, 100 * t->missing_share, (double)t->ticker_cpu_ns / 1e9);
    }
}

/* How calls were timed, and what was lost. */
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
           t.flags & HOTFN_TIMING_SAMPLED        ? "a sample"
           : t.flags & HOTFN_TIMING_SOME_SAMPLED ? "a sample in some of the runs"
                                                 : "every call",
           t.flags & HOTFN_TIMING_TREE ? ", call tree" : "",
           t.flags & HOTFN_TIMING_HISTOGRAMS ? ", histograms" : "",
           t.flags & HOTFN_TIMING_EVENTS ? ", events" : "",
           t.flags & HOTFN_TIMING_ALLOC ? ", memory" : "");
    if (t.flags & HOTFN_TIMING_SAMPLED) {
        if (t.sample_mean > 1) {
            printf("; 1 in %" PRIu32 " calls", t.sample_mean);
        } else {
            fputs("; as many calls as the budget allowed", stdout);
        }
    }
    if (t.flags & HOTFN_TIMING_SLOW) {
        printf("; calls of at least %.3f ms", (double)t.slow_ns / 1e6);
    }
    if (t.clock == HOTFN_CLOCK_MERGED) {
        printf("\n%-10s nanoseconds of the merged runs' clocks, without the cost of the hooks\n",
               "clock");
    } else {
        printf("\n%-10s %s, %.3f MHz; a call costs %.1f ns timed, %.1f ns counted\n", "clock",
               get_clock_name(t.clock), (double)t.ticks_per_second / 1e6,
               t.cost_inside_ns + t.cost_outside_ns, t.count_cost_ns);
    }
    print_ticker(&t);
    if (t.call_stack_bytes) {
        printf("%-10s %" PRIu32 " bytes for each timed call until it returns\n", "stack",
               t.call_stack_bytes);
    }
    printf("%-10s %.3f s busy; %" PRIu32 " place%s in the tree (%" PRIu32 " merged), %" PRIu32
           " edge%s, %" PRIu32 " slow call%s (%" PRIu64 " lost), %" PRIu64 " event%s (%" PRIu64
           " lost)\n",
           "times", (double)t.busy_ns / 1e9, t.node_count, cli_plural(t.node_count), t.nodes_merged,
           t.edge_count, cli_plural(t.edge_count), t.slow_count, cli_plural(t.slow_count),
           (uint64_t)t.slow_lost, t.event_count, cli_plural(t.event_count), t.events_lost);
    if (t.clock_stopped_ns) {
        printf(
            "%-10s stopped %.6f s after the start, when the program disabled reading it: later calls were only counted\n",
            "clock", (double)t.clock_stopped_ns / 1e9);
    }
    if (t.waiting_stopped_ns) {
        printf(
            "%-10s part of the times from %.6f s after the start, when the program filtered its system calls\n",
            "waiting", (double)t.waiting_stopped_ns / 1e9);
    }
    if (t.abandoned_exits || t.clock_went_back) {
        printf("%-10s %" PRIu32 " call%s left by longjmp or the like; the clock decreased %" PRIu32
               " time%s\n",
               "", t.abandoned_exits, t.abandoned_exits == 1 ? " was" : "s were", t.clock_went_back,
               cli_plural(t.clock_went_back));
    }
}

static void print_budget(const hotfn_record *record)
{
    hotfn_record_budget b = HOTFN_RECORD_BUDGET_INIT;
    budget_counts w = budget_count_functions(record);
    hotfn_record_get_budget(record, &b);
    if (b.share_ppm) {
        printf(
            "%-10s %.4g%%; the hooks took %.2f%% of the time of the program itself, %.3f s in all; stopped %" PRIu32
            " time%s, %.3f ms in all, %.3f at "
            "most (%" PRIu32 " failed)\n",
            "budget", (double)b.share_ppm / 1e4, 100 * budget_get_share(&b), (double)b.cpu_ns / 1e9,
            b.stops, cli_plural(b.stops), (double)b.stopped_ns / 1e6,
            (double)b.longest_stop_ns / 1e6, b.failed_stops);
        if (b.note[0]) {
            printf("%-10s THE BUDGET WAS NOT KEPT: ", "");
            print_text(b.note);
            putchar('\n');
        }
    }
    /* A merged record has the states of functions, but no share. */
    if (b.share_ppm || w.ever_unhooked) {
        printf("%-10s %" PRIu32 " function%s unhooked for a while, %" PRIu32
               " of them to the end; %" PRIu32
               " timed less than requested (hotfn report shows when and why)\n",
               "", w.ever_unhooked, cli_plural(w.ever_unhooked), w.unhooked, w.timed_less);
    }
}

/* The sum over all functions: each block belongs to one function. */
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

/* Returns the name that hotfn.report/1 uses. */
static const char *get_module_state(uint32_t flags)
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
        printf("  %-10s %6u functions  %-7s ", get_module_state(m.flags), m.function_count,
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
    printf("\nrows (process, latest thread, number of threads, calls, processor time, name)\n");
    for (uint32_t i = 0; i < count; i++) {
        char calls[32], cpu[32] = "-";
        hotfn_record_thread t = HOTFN_RECORD_THREAD_INIT;
        hotfn_record_get_thread(record, i, &t);
        if (t.cpu_ns) {
            snprintf(cpu, sizeof cpu, "%.3f s", (double)t.cpu_ns / 1e9);
        }
        printf("  %7u %7u %5u %26s %12s  ", t.pid, t.tid, t.thread_count,
               listing_grouped(t.calls, calls), cpu);
        print_text(t.name);
        putchar('\n');
    }
}

/* ---- JSON: hotfn.info/1, docs/info.schema.json. */

static void format_hex(const uint8_t *bytes, size_t count, char *out)
{
    *out = 0;
    for (size_t i = 0; i < count; i++) {
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    }
}

static void write_run(hotfn_json_writer *out, const hotfn_record_info *info)
{
    hotfn_json *format = hotfn_json_create_array();
    char uuid[2 * sizeof info->uuid + 1];
    json_add_number(format, NULL, info->version_major);
    json_add_number(format, NULL, info->version_minor);
    format_hex(info->uuid, sizeof info->uuid, uuid);
    json_write_text(out, "schema", "hotfn.info/1");
    json_write_text(out, "version", hotfn_get_version());
    json_write_text(out, "path", info->path);
    json_write_text(out, "state", hotfn_record_get_state_name(info->state));
    json_write_text(out, "command", info->command);
    json_write_text(out, "directory", info->directory);
    json_write_text(out, "tool", info->tool);
    hotfn_json_write(out, "format", format);
    json_write_text(out, "uuid", uuid);
    json_write_number(out, "pid", info->pid);
    hotfn_json_write(out, "exit_code", hotfn_json_create_signed(info->exit_code));
    json_write_number(out, "start_ns", info->start_ns);
    json_write_number(out, "end_ns", info->end_ns);
    json_write_number(out, "preparation_ns", info->preparation_ns);
    if (info->repaired[0]) {
        json_write_text(out, "repaired", info->repaired);
    }
    json_write_number(out, "window_start_ns", info->window_start_ns);
    json_write_number(out, "window_end_ns", info->window_end_ns);
    json_write_number(out, "functions", info->function_count);
    json_write_number(out, "threads_lost", info->threads_lost);
}

static void write_timing(hotfn_json_writer *out, const hotfn_record *record)
{
    hotfn_record_time_info t = HOTFN_RECORD_TIME_INFO_INIT;
    hotfn_record_get_time_info(record, &t);
    if (!t.flags) {
        json_write_text(out, "time", NULL);
        if (t.note[0]) {
            json_write_text(out, "times_note", t.note);
        }
        return;
    }
    hotfn_json *o = hotfn_json_create_object();
    bool sampled = t.flags & (HOTFN_TIMING_SAMPLED | HOTFN_TIMING_SOME_SAMPLED);
    json_add_text(o, "timed", sampled ? "sample" : "all");
    json_add_text(o, "clock", get_clock_name(t.clock));
    json_add_number(o, "ticks_per_second", t.ticks_per_second);
    json_add_decimal(o, "cost_ns", t.cost_inside_ns + t.cost_outside_ns, 3);
    json_add_decimal(o, "count_cost_ns", t.count_cost_ns, 3);
    json_add_number(o, "call_stack_bytes", t.call_stack_bytes);
    json_add_number(o, "sample_mean", t.sample_mean);
    json_add_number(o, "slow_ns", t.slow_ns);
    json_add_number(o, "busy_ns", t.busy_ns);
    json_add_number(o, "nodes", t.node_count);
    json_add_number(o, "nodes_merged", t.nodes_merged);
    json_add_number(o, "edges", t.edge_count);
    json_add_number(o, "slow_calls", t.slow_count);
    json_add_number(o, "events", t.event_count);
    json_add_number(o, "events_lost", t.events_lost);
    json_add_number(o, "abandoned_exits", t.abandoned_exits);
    json_add_number(o, "clock_went_back", t.clock_went_back);
    json_add_number(o, "clock_stopped_ns", t.clock_stopped_ns);
    json_add_number(o, "waiting_stopped_ns", t.waiting_stopped_ns);
    json_add_text(o, "ticker", t.ticker ? get_ticker_name(t.ticker) : NULL);
    json_add_number(o, "ticker_cpu_ns", t.ticker_cpu_ns);
    json_add_decimal(o, "tick_ns", t.tick_ns, 1);
    json_add_decimal(o, "tick_error_ns", t.tick_error_ns, 1);
    json_add_decimal(o, "coarse_share", t.coarse_share, 6);
    json_add_decimal(o, "missing_share", t.missing_share, 6);
    hotfn_json_write(out, "time", o);
}

static void write_budget(hotfn_json_writer *out, const hotfn_record *record)
{
    hotfn_record_budget b = HOTFN_RECORD_BUDGET_INIT;
    budget_counts w = budget_count_functions(record);
    hotfn_record_get_budget(record, &b);
    if (!b.share_ppm) {
        json_write_text(out, "budget", NULL);
        return;
    }
    hotfn_json *o = hotfn_json_create_object();
    json_add_decimal(o, "share", (double)b.share_ppm / 1e6, 6);
    json_add_decimal(o, "taken", budget_get_share(&b), 6);
    json_add_number(o, "cpu_ns", b.cpu_ns);
    json_add_number(o, "cost_ns", b.cost_ns);
    json_add_number(o, "stops", b.stops);
    json_add_number(o, "failed_stops", b.failed_stops);
    json_add_number(o, "stopped_ns", b.stopped_ns);
    json_add_number(o, "longest_stop_ns", b.longest_stop_ns);
    json_add_number(o, "changes", b.change_count + b.changes_lost);
    json_add_number(o, "unhooked_ever", w.ever_unhooked);
    json_add_number(o, "unhooked_at_end", w.unhooked);
    json_add_number(o, "timed_less", w.timed_less);
    json_add_text(o, "note", b.note);
    hotfn_json_write(out, "budget", o);
}

static void write_memory(hotfn_json_writer *out, const hotfn_record *record, uint32_t functions)
{
    if (!has_memory(record)) {
        json_write_text(out, "memory", NULL);
        return;
    }
    hotfn_alloc_cell sum = sum_memory(record, functions);
    hotfn_json *o = hotfn_json_create_object();
    json_add_number(o, "allocated_bytes", sum.allocated_bytes);
    json_add_number(o, "allocated_blocks", sum.allocated_blocks);
    json_add_number(o, "freed_bytes", sum.freed_bytes);
    json_add_number(o, "freed_blocks", sum.freed_blocks);
    hotfn_json_write(out, "memory", o);
}

static void write_modules(hotfn_json_writer *out, const hotfn_record *record, uint32_t count)
{
    hotfn_json_begin_array(out, "modules");
    for (uint32_t i = 0; i < count; i++) {
        hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
        hotfn_json *o = hotfn_json_create_object();
        char id[2 * sizeof m.id + 1];
        hotfn_record_get_module(record, i, &m);
        format_hex(m.id, m.id_bytes < sizeof m.id ? m.id_bytes : sizeof m.id, id);
        json_add_text(o, "module", m.file);
        json_add_text(o, "path", m.path);
        json_add_text(o, "machine", hotfn_machine_get_name(m.machine));
        json_add_text(o, "image_id", id);
        json_add_text(o, "state", get_module_state(m.flags));
        json_add_text(o, "note", m.note);
        json_add_bool(o, "main", m.flags & HOTFN_MODULE_MAIN);
        json_add_number(o, "load_base", m.load_base);
        json_add_number(o, "functions", m.function_count);
        hotfn_json_write(out, NULL, o);
    }
    hotfn_json_end(out);
}

static void write_threads(hotfn_json_writer *out, const hotfn_record *record, uint32_t count)
{
    hotfn_json_begin_array(out, "threads");
    for (uint32_t i = 0; i < count; i++) {
        hotfn_record_thread t = HOTFN_RECORD_THREAD_INIT;
        hotfn_json *o = hotfn_json_create_object();
        char name[sizeof t.name + 1] = "";
        hotfn_record_get_thread(record, i, &t);
        memcpy(name, t.name, sizeof t.name);
        json_add_number(o, "pid", t.pid);
        json_add_number(o, "tid", t.tid);
        json_add_number(o, "threads", t.thread_count);
        json_add_number(o, "start_ns", t.start_ns);
        json_add_number(o, "calls", t.calls);
        json_add_number(o, "cpu_ns", t.cpu_ns);
        json_add_text(o, "name", name);
        hotfn_json_write(out, NULL, o);
    }
    hotfn_json_end(out);
}

static bool print_json(const hotfn_record *record, const hotfn_record_info *info)
{
    hotfn_json_writer *out = json_open(stdout);
    hotfn_json_begin_object(out, NULL);
    write_run(out, info);
    write_timing(out, record);
    write_memory(out, record, info->function_count);
    write_budget(out, record);
    write_modules(out, record, info->module_count);
    write_threads(out, record, info->thread_count);
    hotfn_json_end(out);
    return json_close(out);
}

int hotfn_command_info(int argc, char **argv)
{
    static const struct option table[] = { { "json", no_argument, NULL, 'j' }, CLI_OPTIONS_END };
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    bool json = false, ok = true;
    const cli_options w = { usage, "", table, read_option, &json, 0, 1 };
    int status = cli_read_options(&w, argc, argv);
    if (status >= 0) {
        return status;
    }
    const char *path = cli_choose_record(argv[0], usage, argc, argv);
    if (!path) {
        return TOOL_USAGE;
    }
    hotfn_record *record = hotfn_tool_open_record("info", path, 0, 0);
    if (!record) {
        return TOOL_FAILED;
    }
    hotfn_record_get_info(record, &info);
    if (json) {
        ok = print_json(record, &info);
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
    return ok ? TOOL_OK : TOOL_FAILED;
}
