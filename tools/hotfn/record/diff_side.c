/* SPDX-License-Identifier: MIT */
/* Reads the runs of one side into one list of functions.  Each function has the mean and the spread
 * of the compared value over the runs; a run that did not count it has 0.
 *
 * The key of a module is the same in both sides if the modules are versions of each other: the text
 * of --as, a fixed text for the program itself, else the file name without its version. */
#include "diff.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char *const main_program = "\1the program";

/* libz.so.1.2.13 and libz-1.3.so are libz.so; zlib-2.dll is zlib. */
static uint32_t measure_file_without_version(const char *file)
{
    const char *end = strstr(file, ".so.");
    const char *suffix = end ? end : strrchr(file, '.'), *at;
    if (!suffix || suffix == file) {
        return (uint32_t)strlen(file);
    }
    for (at = suffix; at > file && (isdigit((unsigned char)at[-1]) || at[-1] == '.'); at--) {
    }
    return (uint32_t)((at > file + 1 && at < suffix && at[-1] == '-' ? at - 1 : suffix) - file);
}

static void choose_key(const diff *d, diff_module *module, bool is_main, bool is_new)
{
    const char *file = module->m.file;
    for (uint32_t i = 0; i < d->alias_count; i++) {
        const diff_alias *a = &d->aliases[i];
        bool is_it = is_new ? strcmp(file, a->new) == 0
                            : strlen(file) == a->old_bytes && !strncmp(file, a->old, a->old_bytes);
        if (is_it) {
            module->key = a->new;
            module->key_bytes = (uint32_t)strlen(a->new);
            return;
        }
    }
    module->key = is_main ? main_program : file;
    module->key_bytes =
        is_main ? (uint32_t)strlen(main_program) : measure_file_without_version(file);
}

static bool read_modules(const diff *d, diff_run *run, uint32_t count, bool is_new)
{
    uint32_t programs = 0;
    run->modules = calloc(count + 1u, sizeof *run->modules);
    for (uint32_t i = 0; run->modules && i < count; i++) {
        run->modules[i].m = (hotfn_record_module)HOTFN_RECORD_MODULE_INIT;
        hotfn_record_get_module(run->record, i, &run->modules[i].m);
        programs += (run->modules[i].m.flags & HOTFN_MODULE_MAIN) != 0;
    }
    for (uint32_t i = 0; run->modules && i < count; i++) {
        bool is_main = programs == 1 && (run->modules[i].m.flags & HOTFN_MODULE_MAIN) != 0;
        choose_key(d, &run->modules[i], is_main, is_new);
    }
    return run->modules != NULL;
}

/* Welford's method: the mean and the sum of squared deviations after one more value. */
static void add_value(double *mean, double *squares, uint32_t count, double value)
{
    double change = value - *mean;
    *mean += change / count;
    *squares += change * (value - *mean);
}

/* The variance of a time between runs.  By ticks, the error of a time also has a part that hooks
 * cause, which is the same in each run. */
static double get_variance(const diff_run *run, uint64_t ns, uint64_t error)
{
    bool has_ticks = run->tick_error_ns > 0 && !(run->timing_flags & HOTFN_TIMING_SAMPLED);
    double ticks = (double)ns > run->tick_error_ns ? (double)ns : run->tick_error_ns;
    return has_ticks ? ticks * run->tick_error_ns : (double)error * (double)error;
}

static void read_function(const diff *d, const diff_run *run, uint32_t index,
                          const hotfn_record_function *f, diff_function *out)
{
    hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;
    hotfn_record_get_timing(run->record, index, &t);
    bool by_calls = d->by == HOTFN_BY_CALLS, by_total = d->by == HOTFN_BY_TOTAL;
    uint64_t error = by_calls ? 0 : by_total ? t.total_error_ns : t.self_error_ns;
    uint64_t value = by_calls ? f->calls : by_total ? t.total_ns : t.self_ns;
    bool is_unknown = error == HOTFN_ERROR_UNKNOWN;
    *out = (diff_function){ .name = f->name,
                            .module = &run->modules[f->module],
                            .rva = f->rva,
                            .calls = f->calls,
                            .self_ns = t.self_ns,
                            .total_ns = t.total_ns,
                            .runs = 1,
                            .mean = (double)value,
                            .error_squares =
                                is_unknown || by_calls ? 0 : get_variance(run, value, error),
                            .is_error_unknown = is_unknown };
}

/* Read the functions that the run counted; NULL if memory runs out. */
static diff_function *read_run(const diff *d, diff_run *run, bool is_new, uint32_t *count)
{
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    hotfn_record_get_info(run->record, &info);
    diff_function *list = calloc(info.function_count + 1u, sizeof *list);
    *count = 0;
    if (!list || !read_modules(d, run, info.module_count, is_new)) {
        free(list);
        return NULL;
    }
    for (uint32_t i = 0; i < info.function_count; i++) {
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
        hotfn_record_get_function(run->record, i, &f);
        if (f.counted) {
            read_function(d, run, i, &f, &list[(*count)++]);
        }
    }
    return list;
}

typedef struct addition {
    diff_function *more; /* functions that earlier runs of the side did not count */
    uint32_t more_count;
} addition;

static void add_function(void *user, diff_function *sum, diff_function *f)
{
    addition *a = user;
    if (!sum) {
        a->more[a->more_count++] = *f;
    } else if (f) {
        sum->calls += f->calls;
        sum->self_ns += f->self_ns;
        sum->total_ns += f->total_ns;
        sum->error_squares += f->error_squares;
        sum->is_error_unknown |= f->is_error_unknown;
        add_value(&sum->mean, &sum->squares, ++sum->runs, f->mean);
    }
}

static bool add_run(diff_side *side, diff_function *list, uint32_t count)
{
    addition a = { calloc(count + 1u, sizeof *list), 0 };
    if (a.more) {
        diff_pair(side->functions, side->function_count, list, count, add_function, &a);
        size_t total = (size_t)side->function_count + a.more_count;
        diff_function *all = realloc(side->functions, (total + 1) * sizeof *all);
        if (all) {
            memcpy(all + side->function_count, a.more, a.more_count * sizeof *all);
            side->functions = all;
            side->function_count = (uint32_t)total;
        }
        free(a.more);
        return all != NULL;
    }
    return false;
}

static void add_missing_runs(diff_side *side)
{
    for (uint32_t i = 0; i < side->function_count; i++) {
        diff_function *f = &side->functions[i];
        for (uint32_t n = f->runs; n < side->run_count; n++) {
            add_value(&f->mean, &f->squares, n + 1, 0);
        }
    }
}

bool diff_read_side(const diff *d, diff_side *side, bool is_new)
{
    bool ok = (side->functions = calloc(1, sizeof *side->functions)) != NULL;
    for (uint32_t i = 0; ok && i < side->run_count; i++) {
        uint32_t count = 0;
        double sum = 0;
        diff_function *list = read_run(d, &side->runs[i], is_new, &count);
        for (uint32_t n = 0; list && n < count; n++) {
            sum += list[n].mean;
        }
        add_value(&side->mean, &side->squares, i + 1, sum);
        ok = list && add_run(side, list, count);
        free(list);
    }
    add_missing_runs(side);
    return ok;
}

void diff_free_side(diff_side *side)
{
    for (uint32_t i = 0; side->runs && i < side->run_count; i++) {
        free(side->runs[i].modules);
        hotfn_record_close(side->runs[i].record);
    }
    free(side->runs);
    free(side->functions);
}
