/* SPDX-License-Identifier: MIT */
/* The rows of a comparison, and which differences are noise.  One run has the standard errors of
 * its times.  Several runs have the standard error of their mean, from their spread or from the
 * errors of the single runs, whichever is larger. */
#include "diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double get_variance_of_mean(double squares, uint32_t runs)
{
    return runs > 1 ? squares / (runs - 1.0) / runs : 0;
}

static double get_variance(const diff_side *side, const diff_function *f)
{
    double runs = side->run_count, own = f->error_squares / (runs * runs);
    double spread = get_variance_of_mean(f->squares, side->run_count);
    if (side->run_count == 1 && f->is_error_unknown) {
        return -1;
    }
    return own > spread ? own : spread;
}

static uint64_t get_mean(uint64_t sum, const diff_side *side)
{
    return (sum + side->run_count / 2) / side->run_count;
}

static void fill_old(diff_row *row, const diff_side *side, const diff_function *f)
{
    row->in_old = true;
    row->old_calls = get_mean(f->calls, side);
    row->old_self = get_mean(f->self_ns, side);
    row->old_total = get_mean(f->total_ns, side);
    row->old_variance = get_variance(side, f);
}

static void fill_new(diff_row *row, const diff_side *side, const diff_function *f)
{
    row->in_new = true;
    row->new_calls = get_mean(f->calls, side);
    row->new_self = get_mean(f->self_ns, side);
    row->new_total = get_mean(f->total_ns, side);
    row->new_variance = get_variance(side, f);
}

static uint64_t choose_value(const diff *d, uint64_t calls, uint64_t self, uint64_t total)
{
    return d->by == HOTFN_BY_CALLS ? calls : d->by == HOTFN_BY_TOTAL ? total : self;
}

static void add_row(void *user, diff_function *old, diff_function *new)
{
    diff *d = user;
    diff_row *row = &d->rows[d->row_count++];
    const diff_function *named = new ? new : old;
    row->name = named->name;
    row->module = named->module->m.file;
    if (old) {
        fill_old(row, &d->old, old);
    }
    if (new) {
        fill_new(row, &d->new, new);
    }
    row->old_value = choose_value(d, row->old_calls, row->old_self, row->old_total);
    row->new_value = choose_value(d, row->new_calls, row->new_self, row->new_total);
    d->old_sum += row->old_value;
    d->new_sum += row->new_value;
}

static uint64_t get_change(uint64_t old_value, uint64_t new_value)
{
    return new_value > old_value ? new_value - old_value : old_value - new_value;
}

static int compare_changes(const void *left, const void *right)
{
    const diff_row *a = left, *b = right;
    uint64_t x = get_change(a->old_value, a->new_value), y = get_change(b->old_value, b->new_value);
    return x != y ? (x < y ? 1 : -1) : strcmp(a->name, b->name);
}

bool diff_make_rows(diff *d)
{
    bool ok = diff_read_side(d, &d->old, false) && diff_read_side(d, &d->new, true);
    size_t most = (size_t)d->old.function_count + d->new.function_count + 1;
    d->rows = ok ? calloc(most, sizeof *d->rows) : NULL;
    if (d->rows) {
        diff_pair(d->old.functions, d->old.function_count, d->new.functions, d->new.function_count,
                  add_row, d);
        qsort(d->rows, d->row_count, sizeof *d->rows, compare_changes);
    }
    return d->rows != NULL;
}

double diff_compute_growth(uint64_t old_value, uint64_t new_value)
{
    if (old_value == 0) {
        return new_value ? HUGE_VAL : 0;
    }
    return 100.0 * ((double)new_value - (double)old_value) / (double)old_value;
}

/* How many standard errors a difference by chance exceeds in 5 of 100 cases: Student's t with as
 * many degrees of freedom as the runs give; 2 for single runs, whose errors are known. */
static double get_noise_factor(const diff *d)
{
    static const double factors[] = { 12.71, 4.30, 3.18, 2.78, 2.57, 2.45,
                                      2.36,  2.31, 2.26, 2.23, 2.20, 2.18 };
    uint32_t freedom = d->old.run_count + d->new.run_count - 2;
    return freedom == 0 || freedom > sizeof factors / sizeof factors[0] ? 2 : factors[freedom - 1];
}

bool diff_row_is_noise(const diff *d, const diff_row *row)
{
    double change = (double)get_change(row->old_value, row->new_value);
    double factor = get_noise_factor(d);

    if (row->old_variance < 0 || row->new_variance < 0) {
        return true;
    }
    return change > 0 &&
           change * change <= factor * factor * (row->old_variance + row->new_variance);
}

bool diff_sum_is_noise(const diff *d)
{
    double change = d->new.mean - d->old.mean, factor = get_noise_factor(d);
    double error = get_variance_of_mean(d->old.squares, d->old.run_count) +
                   get_variance_of_mean(d->new.squares, d->new.run_count);
    return d->old_sum != d->new_sum && change * change <= factor * factor * error;
}

bool diff_sum_fails(const diff *d)
{
    return d->fail_above >= 0 && !diff_sum_is_noise(d) &&
           diff_compute_growth(d->old_sum, d->new_sum) > d->fail_above;
}

bool diff_row_fails(const diff *d, const diff_row *row)
{
    return d->fail_above >= 0 && d->new_sum > 0 && !diff_row_is_noise(d, row) &&
           100.0 * (double)row->new_value / (double)d->new_sum >= d->min_share &&
           diff_compute_growth(row->old_value, row->new_value) > d->fail_above;
}

uint32_t diff_count_differing(const diff *d)
{
    uint32_t count = 0;
    while (count < d->row_count && d->rows[count].old_value != d->rows[count].new_value) {
        count++;
    }
    return count;
}
