/* SPDX-License-Identifier: MIT */
/* `hotfn report --runs`: how the calls or the times of each function are distributed over the runs
 * of a merged record, whose rows are the runs. */
#include "report_runs.h"

#include "cli/column_widths.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/listing.h"

#include <hotfn/lowlevel/ranks.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct figures {
    uint32_t called; /* runs that called the function */
    uint64_t sum, max;
    double mean, mean_called, median, p95;
} figures;

typedef struct run_table {
    const runs_options *options;
    hotfn_record *record;
    uint32_t run_count, function_count;
    uint64_t *values; /* [function][run] */
    uint32_t *order;  /* functions, hottest first */
} run_table;

/* ---- The values. */

static int compare_values(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Sorts the values of the function. */
static figures compute_figures(const run_table *t, uint32_t function)
{
    uint64_t *values = t->values + (size_t)function * t->run_count;
    uint32_t runs = t->run_count, low, high;
    figures f = { 0 };

    qsort(values, runs, sizeof *values, compare_values);
    for (uint32_t i = 0; i < runs; i++) {
        f.called += values[i] > 0;
        f.sum += values[i];
    }
    f.max = values[runs - 1];
    f.mean = (double)f.sum / runs;
    f.mean_called = f.called ? (double)f.sum / f.called : 0;
    hotfn_get_median_ranks(runs, &low, &high);
    f.median = (double)values[low] + (double)(values[high] - values[low]) / 2;
    f.p95 = (double)values[hotfn_get_p95_rank(runs)];
    return f;
}

static uint64_t read_value(const run_table *t, uint32_t function)
{
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    hotfn_record_timing time = HOTFN_RECORD_TIMING_INIT;

    if (t->options->by == HOTFN_BY_CALLS) {
        hotfn_record_get_function(t->record, function, &f);
        return f.counted ? f.calls : 0;
    }
    hotfn_record_get_timing(t->record, function, &time);
    return t->options->by == HOTFN_BY_TOTAL ? time.total_ns
           : t->options->by == HOTFN_BY_MAX ? time.max_ns
                                            : time.self_ns;
}

static hotfn_status read_values(run_table *t)
{
    hotfn_status status = HOTFN_OK;

    for (uint32_t run = 0; status == HOTFN_OK && run < t->run_count; run++) {
        status = hotfn_record_choose_thread(t->record, run + 1);
        for (uint32_t f = 0; status == HOTFN_OK && f < t->function_count; f++) {
            t->values[(size_t)f * t->run_count + run] = read_value(t, f);
        }
    }
    return status == HOTFN_OK ? hotfn_record_choose_thread(t->record, 0) : status;
}

/* ---- Output. */

static const char *format_value(const run_table *t, double value, char out[32])
{
    if (t->options->by == HOTFN_BY_CALLS) {
        return value == (double)(uint64_t)value ? listing_grouped((uint64_t)value, out)
                                                : (snprintf(out, 32, "%.1f", value), out);
    }
    snprintf(out, 32, "%.6f", value / 1e6);
    return out;
}

static const char *get_module_name(const run_table *t, const hotfn_record_function *f)
{
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;

    if (hotfn_record_get_module(t->record, f->module, &m) != HOTFN_OK) {
        return "";
    }
    const char *slash = strrchr(m.path, '/');
    return slash ? slash + 1 : m.path;
}

static void write_table_row(const run_table *t, const figures *f, const char *name)
{
    char texts[6][32];
    const double values[6] = { (double)f->sum, f->mean, f->mean_called,
                               f->median,      f->p95,  (double)f->max };

    for (int i = 0; i < 6; i++) {
        printf("%14s", format_value(t, values[i], texts[i]));
    }
    printf("  %4" PRIu32 " of %-4" PRIu32 "  ", f->called, t->run_count);
    if (t->options->name_width > 0) {
        fit_name(stdout, name, t->options->name_width);
    } else {
        fputs(name, stdout);
    }
    putchar('\n');
}

static void write_json_row(hotfn_json_writer *out, const run_table *t, uint32_t function,
                           const figures *f, const char *name)
{
    hotfn_record_function found = HOTFN_RECORD_FUNCTION_INIT;
    hotfn_json *row = hotfn_json_create_object();

    hotfn_record_get_function(t->record, function, &found);
    json_add_text(row, "name", name);
    json_add_text(row, "linkage_name", found.name);
    json_add_text(row, "module", get_module_name(t, &found));
    json_add_number(row, "rva", found.rva);
    json_add_number(row, "runs_called", f->called);
    json_add_number(row, "sum", f->sum);
    json_add_decimal(row, "mean", f->mean, 3);
    json_add_decimal(row, "mean_called", f->mean_called, 3);
    json_add_decimal(row, "median", f->median, 1);
    json_add_decimal(row, "p95", f->p95, 0);
    json_add_number(row, "max", f->max);
    hotfn_json_write(out, NULL, row);
}

/* RFC 4180: a field with a comma, a quote or a line end is quoted, with its quotes doubled. */
static void write_csv_text(const char *text)
{
    bool quoted = text[strcspn(text, ",\"\r\n")] != 0;

    if (quoted) {
        putchar('"');
    }
    for (; *text; text++) {
        if (*text == '"') {
            putchar('"');
        }
        putchar(*text);
    }
    if (quoted) {
        putchar('"');
    }
}

static void write_csv_row(const run_table *t, uint32_t function, const figures *f, const char *name)
{
    hotfn_record_function found = HOTFN_RECORD_FUNCTION_INIT;

    hotfn_record_get_function(t->record, function, &found);
    write_csv_text(name);
    putchar(',');
    write_csv_text(get_module_name(t, &found));
    printf(",0x%" PRIx64 ",%" PRIu32 ",%" PRIu64 ",%.3f,%.3f,%.1f,%.0f,%" PRIu64 "\r\n", found.rva,
           f->called, f->sum, f->mean, f->mean_called, f->median, f->p95, f->max);
}

static void write_row(const run_table *t, hotfn_json_writer *json, uint32_t function,
                      const char *name)
{
    figures f = compute_figures(t, function);

    switch (t->options->format) {
    case RUNS_JSON: write_json_row(json, t, function, &f, name); break;
    case RUNS_CSV: write_csv_row(t, function, &f, name); break;
    default: write_table_row(t, &f, name); break;
    }
}

static const char *get_order_name(uint32_t by)
{
    return by == HOTFN_BY_CALLS   ? "calls"
           : by == HOTFN_BY_TOTAL ? "total"
           : by == HOTFN_BY_MAX   ? "max"
                                  : "self";
}

static void write_head(const run_table *t, hotfn_json_writer *json)
{
    uint32_t by = t->options->by;

    if (json) {
        hotfn_json_begin_object(json, NULL);
        json_write_text(json, "schema", "hotfn.runs/1");
        json_write_text(json, "version", hotfn_get_version());
        json_write_text(json, "by", get_order_name(by));
        json_write_text(json, "unit", by == HOTFN_BY_CALLS ? "calls" : "ns");
        json_write_number(json, "runs", t->run_count);
        hotfn_json_begin_array(json, "functions");
    } else if (t->options->format == RUNS_CSV) {
        printf("name,module,rva,runs_called,sum,mean,mean_called,median,p95,max\r\n");
    } else {
        printf("%s of each function in %" PRIu32 " runs%s\n\n", get_order_name(by), t->run_count,
               by == HOTFN_BY_CALLS ? "" : ", in milliseconds");
        printf("%14s%14s%14s%14s%14s%14s  %-12s  function\n", "sum", "mean", "mean called",
               "median", "p95", "max", "called in");
    }
}

static bool is_shown(const run_table *t, uint32_t function, const char *name)
{
    const uint64_t *values = t->values + (size_t)function * t->run_count;
    const char *match = t->options->match;
    bool called = false;

    for (uint32_t run = 0; run < t->run_count; run++) {
        called |= values[run] > 0;
    }
    return called && (!match || hotfn_glob_match(match, name));
}

static void write_rows(const run_table *t)
{
    uint32_t limit = t->options->limit, shown = 0;
    hotfn_json_writer *json = t->options->format == RUNS_JSON ? json_open(stdout) : NULL;
    char name[8192];

    write_head(t, json);
    for (uint32_t i = 0; i < t->function_count && (limit == 0 || shown < limit); i++) {
        hotfn_record_get_display_name(t->record, t->order[i], name, sizeof name);
        if (is_shown(t, t->order[i], name)) {
            write_row(t, json, t->order[i], name);
            shown++;
        }
    }
    if (json) {
        hotfn_json_end(json);
        hotfn_json_end(json);
        json_close(json);
    }
}

/* ---- The command. */

static int refuse_record(const char *path, const char *why)
{
    fprintf(stderr, "hotfn report: %s: %s\n", path, why);
    return TOOL_FAILED;
}

int report_runs(hotfn_record *record, const char *path, const runs_options *options)
{
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    hotfn_record_thread row = HOTFN_RECORD_THREAD_INIT;
    hotfn_record_time_info time = HOTFN_RECORD_TIME_INFO_INIT;
    runs_options chosen = *options;
    run_table t = { .options = &chosen, .record = record };
    int result = TOOL_OK;

    hotfn_record_get_info(record, &info);
    hotfn_record_get_thread(record, 0, &row);
    hotfn_record_get_time_info(record, &time);
    if (info.state != HOTFN_RECORD_MERGED || strcmp(row.name, "merged") == 0) {
        return refuse_record(path,
                             "--runs needs a record with a row for each run: hotfn merge -o FILE "
                             "RECORD ... writes one");
    }
    if (chosen.by == HOTFN_BY_DEFAULT) {
        chosen.by = time.flags ? HOTFN_BY_SELF : HOTFN_BY_CALLS;
    } else if (chosen.by != HOTFN_BY_CALLS && !time.flags) {
        return refuse_record(path, "the runs were not timed: use --by calls");
    }
    t.run_count = info.thread_count;
    t.function_count = info.function_count;
    t.values = calloc((size_t)t.function_count * t.run_count + 1, sizeof *t.values);
    t.order = calloc((size_t)t.function_count + 1, sizeof *t.order);
    if (!t.values || !t.order ||
        hotfn_record_sort(record, chosen.by, t.order, t.function_count) != HOTFN_OK ||
        read_values(&t) != HOTFN_OK) {
        result = refuse_record(path, "not enough memory");
    } else {
        write_rows(&t);
    }
    free(t.values);
    free(t.order);
    return result;
}
