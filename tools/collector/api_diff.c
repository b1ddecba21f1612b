/* SPDX-License-Identifier: MIT */
/* GET /api/v1/diff: two builds, compared function by function.  Values are per client, so that
 * builds with different numbers of clients can be compared. */
#include "functions.h"
#include "selection.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum diff_kind { DIFF_SAME, DIFF_NEW, DIFF_GONE, DIFF_HOTTER, DIFF_COOLER, DIFF_KINDS };
static const char *const kind_names[DIFF_KINDS] = { "same", "new", "gone", "hotter", "cooler" };
#define MIN_RATIO 1.1 /* a smaller change is "same" */

typedef struct diff_row {
    uint32_t head, base; /* numbers; UINT32_MAX: not in this build */
    double head_value, base_value;
    enum diff_kind kind;
} diff_row;

typedef struct diff_side {
    selection sel;
    folded now;
    function_list list;
} diff_side;

typedef struct build_diff {
    diff_side head, base;
    diff_row *rows;
    uint32_t count, kinds[DIFF_KINDS];
} build_diff;

static bool load_side(request *r, store *s, diff_side *side)
{
    return fold_selection(r, s, &side->sel, &side->now) &&
           load_functions(s, side->sel.filter.build, side->now.function_count, &side->list,
                          &r->refused);
}

/* The value of a function, 0 if it is not in the build or its sum does not fit. */
static double get_value(const diff_side *side, uint32_t number)
{
    double value = number < side->now.function_count ? side->now.functions[number].value : 0;
    return isfinite(value) ? value : 0;
}

static void add_row(build_diff *d, uint32_t head, uint32_t base)
{
    diff_row row = { head, base, get_value(&d->head, head), get_value(&d->base, base), DIFF_SAME };

    if (row.head_value <= 0 && row.base_value <= 0) {
        return;
    }
    row.kind = row.base_value <= 0                           ? DIFF_NEW
               : row.head_value <= 0                         ? DIFF_GONE
               : row.head_value > row.base_value * MIN_RATIO ? DIFF_HOTTER
               : row.head_value * MIN_RATIO < row.base_value ? DIFF_COOLER
                                                             : DIFF_SAME;
    d->kinds[row.kind]++;
    d->rows[d->count++] = row;
}

static int compare_diff_rows(const void *left, const void *right)
{
    const diff_row *a = left, *b = right;
    double x = fabs(a->head_value - a->base_value), y = fabs(b->head_value - b->base_value);

    return x != y               ? (x < y ? 1 : -1)
           : a->head != b->head ? (a->head > b->head ? 1 : -1)
                                : (a->base > b->base) - (a->base < b->base);
}

static bool compare_builds(request *r, build_diff *d)
{
    uint32_t heads = d->head.list.count, bases = d->base.list.count;
    uint32_t *pairs = calloc((size_t)heads + 1, sizeof *pairs);
    uint8_t *paired = calloc((size_t)bases + 1, 1);

    d->rows = calloc((size_t)heads + bases + 1, sizeof *d->rows);
    bool ok = pairs && paired && d->rows && pair_functions(&d->base.list, &d->head.list, pairs);
    for (uint32_t i = 0; ok && i < heads; i++) {
        add_row(d, i, pairs[i]);
        if (pairs[i] != UINT32_MAX) {
            paired[pairs[i]] = 1;
        }
    }
    for (uint32_t i = 0; ok && i < bases; i++) {
        if (!paired[i]) {
            add_row(d, UINT32_MAX, i);
        }
    }
    free(pairs);
    free(paired);
    if (!ok) {
        return request_refuse(r, 503, "the collector has not enough memory: ask again later");
    }
    qsort(d->rows, d->count, sizeof *d->rows, compare_diff_rows);
    return true;
}

/* The client with the largest value, and its share of the sum: a change that one client causes is
 * often its level and not the build. */
static void write_cause(hotfn_json_writer *out, store *s, const diff_side *side, uint32_t number)
{
    const folded_function *f = &side->now.functions[number];
    sqlite3_stmt *q = store_get_statement(s, "SELECT lower(hex(key)) FROM client WHERE id = ?1");

    if (f->clients == 0 || !store_bind(q, "i", f->top_client) || sqlite3_step(q) != SQLITE_ROW) {
        return;
    }
    write_column_text(out, "top_client", q, 0);
    sqlite3_reset(q);
    hotfn_json_write(
        out, "top_share",
        hotfn_json_create_decimal((double)f->top_value / (double)f->sums[side->sel.metric], 4));
}

static void write_diff_row(hotfn_json_writer *out, store *s, const build_diff *d,
                           const diff_row *row)
{
    bool in_head = row->head != UINT32_MAX;
    const diff_side *side = in_head ? &d->head : &d->base;
    uint32_t number = in_head ? row->head : row->base;
    char buffer[256];

    hotfn_json_begin_object(out, NULL);
    write_text(out, "kind", kind_names[row->kind]);
    write_text(out, "name", get_function_name(&side->list, number, buffer, sizeof buffer));
    write_text(out, "module", get_function_file(&side->list, number));
    hotfn_json_write(out, "function",
                     in_head ? hotfn_json_create_number(row->head) : hotfn_json_create_text(NULL));
    hotfn_json_write(out, "base_function",
                     row->base != UINT32_MAX ? hotfn_json_create_number(row->base)
                                             : hotfn_json_create_text(NULL));
    write_decimal(out, "head_value", row->head_value);
    write_decimal(out, "base_value", row->base_value);
    write_number(out, "clients", side->now.functions[number].clients);
    write_cause(out, s, row->kind == DIFF_GONE ? &d->base : side,
                row->kind == DIFF_GONE ? row->base : number);
    hotfn_json_end(out);
}

static void write_diff(request *r, store *s, const build_diff *d, int kind)
{
    const char *words = request_get(r, "q");
    int64_t found = 0;
    hotfn_json_writer *out = begin_reply(r);

    if (!out) {
        return;
    }
    write_text(out, "head", d->head.sel.build);
    write_text(out, "base", d->base.sel.build);
    write_text(out, "metric", metric_names[d->head.sel.metric]);
    write_text(out, "agg", aggregate_names[d->head.sel.aggregate]);
    write_text(out, "snapshot", d->head.now.snapshot);
    write_number(out, "head_clients", d->head.now.client_count);
    write_number(out, "base_clients", d->base.now.client_count);
    write_gap(out, d->head.now.gap.rows || d->head.now.gap.waiting ? &d->head.now.gap
                                                                   : &d->base.now.gap);
    for (int i = 0; i < DIFF_KINDS; i++) {
        write_number(out, kind_names[i], d->kinds[i]);
    }
    hotfn_json_begin_array(out, "rows");
    for (uint32_t i = 0; i < d->count; i++) {
        const diff_row *row = &d->rows[i];
        const diff_side *side = row->head != UINT32_MAX ? &d->head : &d->base;
        bool wanted = kind < 0 ? row->kind != DIFF_SAME : (int)row->kind == kind;
        if (!wanted ||
            (words && !function_matches(&side->list,
                                        row->head != UINT32_MAX ? row->head : row->base, words))) {
            continue;
        }
        if (found >= d->head.sel.offset && found < d->head.sel.offset + d->head.sel.limit) {
            write_diff_row(out, s, d, row);
        }
        found++;
    }
    hotfn_json_end(out);
    write_number(out, "found", (uint64_t)found);
    end_reply(r, out, s, SQLITE_DONE);
}

void read_diff(request *r, store *s)
{
    build_diff d;
    int kind;

    memset(&d, 0, sizeof d);
    if (read_selection(r, s, &d.head.sel) &&
        request_get_word(r, "kind", kind_names, DIFF_KINDS, -1, &kind)) {
        if (!request_get(r, "agg")) {
            d.head.sel.aggregate = BY_AVERAGE;
        }
        d.head.sel.filter.wants_top_client = true;
        d.base.sel = d.head.sel;
        if (!request_get(r, "base")) {
            request_refuse(r, 400, "base is missing: name the build to compare with");
        } else if (choose_build(r, s, "base", &d.base.sel) && load_side(r, s, &d.head) &&
                   load_side(r, s, &d.base) && compare_builds(r, &d)) {
            write_diff(r, s, &d, kind);
        }
    }
    fold_free(&d.head.now);
    fold_free(&d.base.now);
    free_functions(&d.head.list);
    free_functions(&d.base.list);
    free(d.rows);
}
