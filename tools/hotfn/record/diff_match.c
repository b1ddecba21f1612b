/* SPDX-License-Identifier: MIT */
/* Pairs the functions of two records in three passes: by image id and RVA; by name and the file
 * name of the module; and by name without the suffix of a compiler's copy.  Functions with equal
 * names are paired in the order of their addresses. */
#include "diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A function of the old or the new record, and the keys by which it is paired. */
typedef struct side {
    hotfn_record_function f;
    hotfn_record_module m;
    uint32_t index;
    int name_bytes; /* compared bytes of the name */
    bool is_matched;
} side;

/* gcc and clang add a suffix to the name of a copy that they make for some callers or for another
 * unit.  A part of a function (.part, .cold) is not a copy. */
static int measure_name_without_copy(const char *name)
{
    static const char *const copies[] = { ".constprop.", ".isra.", ".lto_priv.", ".llvm." };
    size_t bytes = strlen(name);
    for (size_t i = 0; i < sizeof copies / sizeof copies[0]; i++) {
        const char *at = strstr(name, copies[i]);
        if (at && at > name && (size_t)(at - name) < bytes) {
            bytes = (size_t)(at - name);
        }
    }
    return (int)bytes;
}

static side *load_side(const hotfn_record *record, uint32_t *count)
{
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    hotfn_record_get_info(record, &info);
    side *list = calloc(info.function_count + 1u, sizeof *list);
    *count = 0;
    for (uint32_t i = 0; list && i < info.function_count; i++) {
        side *s = &list[*count];
        s->f.size = sizeof s->f;
        s->m.size = sizeof s->m;
        hotfn_record_get_function(record, i, &s->f);
        hotfn_record_get_module(record, s->f.module, &s->m);
        s->index = i;
        *count += s->f.counted;
    }
    return list;
}

static int compare_ids(const void *left, const void *right)
{
    const side *a = left, *b = right;
    int order = memcmp(a->m.id, b->m.id, sizeof a->m.id);
    if (order == 0) {
        order = (a->m.id_bytes > b->m.id_bytes) - (a->m.id_bytes < b->m.id_bytes);
    }
    return order ? order : (a->f.rva > b->f.rva) - (a->f.rva < b->f.rva);
}

static int compare_keys(const side *a, const side *b)
{
    int order = strcmp(a->m.file, b->m.file);
    int shorter = a->name_bytes < b->name_bytes ? a->name_bytes : b->name_bytes;
    order = order ? order : memcmp(a->f.name, b->f.name, (size_t)shorter);
    return order ? order : a->name_bytes - b->name_bytes;
}

static int compare_names(const void *left, const void *right)
{
    const side *a = left, *b = right;
    int order = (int)a->is_matched - (int)b->is_matched; /* matched functions come last */
    order = order ? order : compare_keys(a, b);
    return order ? order : (a->f.rva > b->f.rva) - (a->f.rva < b->f.rva);
}

static uint64_t get_value(const diff *d, const hotfn_record_timing *t, uint64_t calls)
{
    return d->by == HOTFN_BY_CALLS ? calls : d->by == HOTFN_BY_TOTAL ? t->total_ns : t->self_ns;
}

static uint64_t get_error(const diff *d, const hotfn_record_timing *t)
{
    return d->by == HOTFN_BY_CALLS   ? 0
           : d->by == HOTFN_BY_TOTAL ? t->total_error_ns
                                     : t->self_error_ns;
}

static void fill_row(diff *d, diff_row *row, const side *s, bool is_new)
{
    hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;
    hotfn_record_get_timing(is_new ? d->new : d->old, s->index, &t);
    uint64_t value = get_value(d, &t, s->f.calls);
    row->name = s->f.name;
    row->module = s->m.file;
    if (is_new) {
        row->in_new = true;
        row->new_calls = s->f.calls;
        row->new_self = t.self_ns;
        row->new_total = t.total_ns;
        row->new_value = value;
        row->new_error = get_error(d, &t);
        d->new_sum += value;
    } else {
        row->in_old = true;
        row->old_calls = s->f.calls;
        row->old_self = t.self_ns;
        row->old_total = t.total_ns;
        row->old_value = value;
        row->old_error = get_error(d, &t);
        d->old_sum += value;
    }
}

static void add_row(diff *d, side *old, side *new)
{
    diff_row *row = &d->rows[d->row_count++];
    if (old) {
        old->is_matched = true;
        fill_row(d, row, old, false);
    }
    if (new) {
        new->is_matched = true;
        fill_row(d, row, new, true);
    }
}

static void match_ids(diff *d, side *old, uint32_t old_count, side *new, uint32_t new_count)
{
    uint32_t o = 0, n = 0;
    qsort(old, old_count, sizeof *old, compare_ids);
    qsort(new, new_count, sizeof *new, compare_ids);
    while (o < old_count && n < new_count) {
        int order = compare_ids(&old[o], &new[n]);
        if (order == 0 && old[o].m.id_bytes > 0) {
            add_row(d, &old[o++], &new[n++]);
        } else if (order <= 0) {
            o++;
        } else {
            n++;
        }
    }
}

/* Sort the unmatched functions by name and move them to the front.  Returns their number. */
static uint32_t sort_unmatched(side *list, uint32_t count, bool without_copy)
{
    for (uint32_t i = 0; i < count; i++) {
        const char *name = list[i].f.name;
        list[i].name_bytes = without_copy ? measure_name_without_copy(name) : (int)strlen(name);
    }
    qsort(list, count, sizeof *list, compare_names);
    while (count > 0 && list[count - 1].is_matched) {
        count--;
    }
    return count;
}

/* Walk both sorted lists and pair equal names; the last pass also adds the functions without a
 * partner. */
static void match_names(diff *d, side *old, uint32_t old_count, side *new, uint32_t new_count,
                        bool last)
{
    uint32_t o = 0, n = 0;
    old_count = sort_unmatched(old, old_count, last);
    new_count = sort_unmatched(new, new_count, last);
    while (o < old_count || n < new_count) {
        int order = o == old_count ? 1 : n == new_count ? -1 : compare_keys(&old[o], &new[n]);
        side *left = order <= 0 ? &old[o++] : NULL;
        side *right = order >= 0 ? &new[n++] : NULL;
        if (last || order == 0) {
            add_row(d, left, right);
        }
    }
}

static uint64_t get_change(const diff_row *row)
{
    return row->new_value > row->old_value ? row->new_value - row->old_value
                                           : row->old_value - row->new_value;
}

static int compare_changes(const void *left, const void *right)
{
    const diff_row *a = left, *b = right;
    if (get_change(a) != get_change(b)) {
        return get_change(a) < get_change(b) ? 1 : -1;
    }
    return strcmp(a->name, b->name);
}

bool diff_match_functions(diff *d)
{
    uint32_t old_count, new_count;
    side *old = load_side(d->old, &old_count), *new = load_side(d->new, &new_count);
    if (old && new) {
        d->rows = calloc((size_t)old_count + new_count + 1, sizeof *d->rows);
    }
    if (d->rows) {
        match_ids(d, old, old_count, new, new_count);
        match_names(d, old, old_count, new, new_count, false);
        match_names(d, old, old_count, new, new_count, true);
        qsort(d->rows, d->row_count, sizeof *d->rows, compare_changes);
    }
    free(old);
    free(new);
    return d->rows != NULL;
}

double diff_compute_growth(uint64_t old_value, uint64_t new_value)
{
    if (old_value == 0) {
        return new_value ? HUGE_VAL : 0;
    }
    return 100.0 * ((double)new_value - (double)old_value) / (double)old_value;
}

bool diff_sum_fails(const diff *d)
{
    return d->fail_above >= 0 && diff_compute_growth(d->old_sum, d->new_sum) > d->fail_above;
}

bool diff_row_is_noise(const diff_row *row)
{
    const double errors = 2; /* a difference by chance is smaller in 95 of 100 cases */
    double change = (double)get_change(row), old = (double)row->old_error,
           new = (double)row->new_error;

    if (row->old_error == HOTFN_ERROR_UNKNOWN || row->new_error == HOTFN_ERROR_UNKNOWN) {
        return true;
    }
    return change > 0 && change * change <= errors * errors * (old * old + new * new);
}

bool diff_row_fails(const diff *d, const diff_row *row)
{
    return d->fail_above >= 0 && d->new_sum > 0 && !diff_row_is_noise(row) &&
           100.0 * (double)row->new_value / (double)d->new_sum >= d->min_share &&
           diff_compute_growth(row->old_value, row->new_value) > d->fail_above;
}
