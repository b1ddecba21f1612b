/* SPDX-License-Identifier: MIT */
/* Aggregates over the runs of a build.  One pass adds up sums and clients.  Medians need the
 * value of each client: further passes collect them for as many functions at a time as the bound
 * of memory allows. */
#include "fold.h"

#include "clickhouse_fold.h"
#include "pack.h"

#include <hotfn/lowlevel/ranks.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VALUES = 4 << 20 }; /* client values in memory at a time: 32 MiB */

static bool refuse_damage(refusal *why)
{
    return refuse_request(why, 500, "the counts of a run are damaged: restore the last backup");
}

static int bind_filter(sqlite3_stmt *q, const fold_filter *f)
{
    return store_bind(q, "iiiitt", f->build, f->client, f->from_ns, f->to_ns ? f->to_ns : INT64_MAX,
                      f->label_key, f->label_value);
}

bool for_each_run(store *s, const fold_filter *filter,
                  bool (*each)(void *user, const folded_run *run), void *user, refusal *why)
{
    sqlite3_stmt *q = store_get_statement(
        s,
        "SELECT run.client, run.timed, counts.rows, counts.callers FROM run "
        "JOIN counts ON counts.run = run.id WHERE run.build = ?1 AND (?2 = 0 OR run.client = ?2) "
        "AND run.start_ns >= ?3 AND run.start_ns < ?4 AND (?5 IS NULL OR EXISTS (SELECT 1 FROM "
        "label WHERE label.run = run.id AND label.key = ?5 AND label.value = ?6)) "
        "ORDER BY run.client, run.id");
    int step = SQLITE_ERROR;
    bool ok = q && bind_filter(q, filter);

    while (ok && (step = sqlite3_step(q)) == SQLITE_ROW) {
        folded_run run = { .client = sqlite3_column_int64(q, 0),
                           .timed = sqlite3_column_int(q, 1) };
        run.rows = sqlite3_column_blob(q, 2);
        run.row_bytes = (size_t)sqlite3_column_bytes(q, 2);
        run.callers = sqlite3_column_blob(q, 3);
        run.caller_bytes = (size_t)sqlite3_column_bytes(q, 3);
        ok = each(user, &run);
        if (!ok) {
            refuse_damage(why);
        }
    }
    if (ok && step != SQLITE_DONE) {
        ok = refuse_for_database(why, s);
    }
    if (q) {
        sqlite3_reset(q);
    }
    return ok;
}

/* ---- The first pass. */

typedef struct client_sums {
    uint64_t values[METRIC_COUNT];
    uint8_t overflow, touched;
} client_sums;

typedef struct folding {
    folded *out;
    client_sums *sums; /* of the current client, by function */
    uint32_t *touched;
    uint32_t touched_count;
    int64_t client;
    enum fold_metric metric;
    uint64_t *values; /* of functions [first, end), or NULL in the first pass */
    uint32_t first, end;
    uint64_t *place; /* by function from first on: where its next value goes */
} folding;

static uint8_t add_values(uint64_t *sums, const uint64_t *values)
{
    uint8_t overflow = 0;

    for (int k = 0; k < METRIC_COUNT; k++) {
        if (values[k] > UINT64_MAX - sums[k]) {
            overflow = (uint8_t)(overflow | 1u << k);
        }
        sums[k] += values[k];
    }
    return overflow;
}

static void finish_client(folding *f)
{
    for (uint32_t i = 0; i < f->touched_count; i++) {
        uint32_t number = f->touched[i];
        client_sums *c = &f->sums[number];
        if (f->values) {
            if (number >= f->first && number < f->end) {
                f->values[f->place[number - f->first]++] = c->values[f->metric];
            }
        } else {
            folded_function *function = &f->out->functions[number];
            function->overflow |= c->overflow | add_values(function->sums, c->values);
            function->clients++;
            function->unresolved[METRIC_TOTAL] += c->values[METRIC_TOTAL] == 0;
            function->unresolved[METRIC_SELF] += c->values[METRIC_SELF] == 0;
            if (c->values[f->metric] > function->top_value) {
                function->top_value = c->values[f->metric];
                function->top_client = f->client;
            }
        }
        *c = (client_sums){ 0 };
    }
    f->touched_count = 0;
}

static bool fold_run(void *user, const folded_run *run)
{
    folding *f = user;
    row_reader reader = begin_rows(run->rows, run->row_bytes, run->timed);
    packed_row row;

    if (run->client != f->client) {
        finish_client(f);
        f->client = run->client;
        f->out->client_count++;
    }
    f->out->run_count++;
    f->out->timed_runs += run->timed;
    while (read_row(&reader, &row)) {
        if (row.function >= f->out->function_count) {
            return false;
        }
        client_sums *c = &f->sums[row.function];
        if (!c->touched) {
            c->touched = 1;
            f->touched[f->touched_count++] = row.function;
        }
        c->overflow |= add_values(c->values, row.values);
        folded_function *function = &f->out->functions[row.function];
        function->max_ns = row.max_ns > function->max_ns ? row.max_ns : function->max_ns;
    }
    return !reader.cursor.failed;
}

static bool run_pass(store *s, const fold_filter *filter, folding *f, refusal *why)
{
    f->client = 0;
    f->out->client_count = f->out->run_count = f->out->timed_runs = 0;
    bool ok = for_each_run(s, filter, fold_run, f, why);
    finish_client(f);
    return ok;
}

/* ---- Medians. */

static int compare_values(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

void fold_find_ranks(enum fold_aggregate aggregate, uint32_t clients, uint32_t *low, uint32_t *high)
{
    if (clients == 0) {
        *low = *high = 0;
    } else if (aggregate == BY_MEDIAN) {
        hotfn_get_median_ranks(clients, low, high);
    } else {
        *low = *high = hotfn_get_p95_rank(clients);
    }
}

static void choose_values(folding *f, enum fold_aggregate aggregate)
{
    uint64_t begin = 0;
    uint32_t low, high, clients = f->out->client_count;

    fold_find_ranks(aggregate, clients, &low, &high);

    for (uint32_t i = f->first; i < f->end; i++) {
        folded_function *function = &f->out->functions[i];
        uint64_t *values = f->values + begin;
        begin += function->clients;
        if (function->clients > 0) {
            qsort(values, function->clients, sizeof *values, compare_values);
            uint64_t first = hotfn_get_ranked_value(values, function->clients, clients, low);
            uint64_t second = hotfn_get_ranked_value(values, function->clients, clients, high);
            function->value = (double)first + (double)(second - first) / 2;
        }
    }
}

/* Choose the functions of the next pass: as many as fit, and at least one. */
static uint64_t place_values(folding *f)
{
    uint64_t count = 0;

    for (f->end = f->first; f->end < f->out->function_count; f->end++) {
        uint32_t clients = f->out->functions[f->end].clients;
        if (f->end > f->first && count + clients > MAX_VALUES) {
            break;
        }
        f->place[f->end - f->first] = count;
        count += clients;
    }
    return count;
}

static bool find_ranks(store *s, const fold_filter *filter, folding *f,
                       enum fold_aggregate aggregate, refusal *why)
{
    bool ok = true;

    f->place = calloc((size_t)f->out->function_count + 1, sizeof *f->place);
    for (f->first = 0; ok && f->place && f->first < f->out->function_count; f->first = f->end) {
        uint64_t count = place_values(f);
        f->values = calloc(count + 1, sizeof *f->values);
        ok = f->values && run_pass(s, filter, f, why);
        if (ok) {
            choose_values(f, aggregate);
        }
        free(f->values);
        f->values = NULL;
    }
    if (!f->place) {
        ok = refuse_request(why, 503, "the collector has not enough memory: ask again later");
    }
    free(f->place);
    return ok;
}

/* ---- The result. */

static void compute_values(folded *out, enum fold_metric metric, enum fold_aggregate aggregate)
{
    for (uint32_t i = 0; i < out->function_count; i++) {
        folded_function *function = &out->functions[i];
        double sum = (double)function->sums[metric];
        bool fits = !(function->overflow & 1u << metric);
        out->whole += fits ? sum : 0;
        switch (aggregate) {
        case BY_SUM: function->value = fits ? sum : NAN; break;
        case BY_AVERAGE:
            function->value = fits ? sum / (out->client_count ? out->client_count : 1) : NAN;
            break;
        case BY_AVERAGE_CALLED:
            function->value = fits ? sum / (function->clients ? function->clients : 1) : NAN;
            break;
        case BY_MAX: function->value = fits ? (double)function->top_value : NAN; break;
        default: function->value = fits ? function->value : NAN; break;
        }
    }
}

static bool count_functions(store *s, int64_t build, folded *out, refusal *why)
{
    sqlite3_stmt *q = store_get_statement(s, "SELECT function_count FROM build WHERE id = ?1");
    int64_t count = store_bind(q, "i", build) ? store_read_integer(q, 0) : -1;

    if (count < 0) {
        return refuse_for_database(why, s);
    }
    out->function_count = (uint32_t)count;
    out->functions = calloc((size_t)count + 1, sizeof *out->functions);
    return out->functions ||
           refuse_request(why, 503, "the collector has not enough memory: ask again later");
}

static bool fold_in_sqlite(store *s, const fold_filter *filter, enum fold_metric metric,
                           enum fold_aggregate aggregate, folded *out, refusal *why)
{
    folding f = { .out = out, .metric = metric };

    f.sums = calloc((size_t)out->function_count + 1, sizeof *f.sums);
    f.touched = calloc((size_t)out->function_count + 1, sizeof *f.touched);
    bool ok = f.sums && f.touched;
    if (!ok) {
        refuse_request(why, 503, "the collector has not enough memory: ask again later");
    }
    ok = ok && run_pass(s, filter, &f, why);
    if (ok && (aggregate == BY_MEDIAN || aggregate == BY_P95)) {
        ok = find_ranks(s, filter, &f, aggregate, why);
    }
    free(f.sums);
    free(f.touched);
    return ok;
}

bool fold_runs(store *s, const fold_filter *filter, enum fold_metric metric,
               enum fold_aggregate aggregate, folded *out, refusal *why)
{
    *out = (folded){ 0 };
    if (!count_functions(s, filter->build, out, why) ||
        !(s->clickhouse ? clickhouse_fold : fold_in_sqlite)(s, filter, metric, aggregate, out,
                                                            why)) {
        return false;
    }
    compute_values(out, metric, aggregate);
    return true;
}

bool is_unresolved(const folded_function *f, enum fold_metric metric)
{
    return metric != METRIC_CALLS && f->sums[metric] == 0 && !(f->overflow & 1u << metric);
}

void fold_free(folded *f)
{
    free(f->functions);
    *f = (folded){ 0 };
}

/* ---- One function. */

typedef struct one_function {
    client_value *list;
    uint32_t count, room, function;
    enum fold_metric metric;
    int64_t client;
    folded *about;
    bool failed, overflow;
} one_function;

static bool add_client_value(one_function *o, int64_t client, uint64_t value)
{
    if (o->count > 0 && o->list[o->count - 1].client == client) {
        o->overflow |= value > UINT64_MAX - o->list[o->count - 1].value;
        o->list[o->count - 1].value += value;
        return true;
    }
    if (o->count == o->room) {
        uint32_t room = o->room ? o->room * 2 : 64;
        client_value *more = realloc(o->list, room * sizeof *more);
        if (!more) {
            return false;
        }
        o->list = more;
        o->room = room;
    }
    o->list[o->count++] = (client_value){ client, value };
    return true;
}

static bool read_one_function(void *user, const folded_run *run)
{
    one_function *o = user;
    row_reader reader = begin_rows(run->rows, run->row_bytes, run->timed);
    packed_row row;

    o->about->client_count += run->client != o->client;
    o->client = run->client;
    o->about->run_count++;
    o->about->timed_runs += run->timed;
    while (read_row(&reader, &row) && row.function < o->function) {
    }
    if (!reader.cursor.failed && reader.next == (uint64_t)o->function + 1) {
        o->failed |= !add_client_value(o, run->client, row.values[o->metric]);
    }
    return !reader.cursor.failed;
}

bool fold_one_function(store *s, const fold_filter *filter, enum fold_metric metric,
                       uint32_t function, client_value **out, uint32_t *out_count, folded *about,
                       refusal *why)
{
    one_function o = { .function = function, .metric = metric, .about = about };

    *about = (folded){ 0 };
    if (s->clickhouse) {
        return clickhouse_fold_function(s, filter, metric, function, out, out_count, about, why);
    }
    bool ok = for_each_run(s, filter, read_one_function, &o, why);
    if (ok && (o.failed || o.overflow)) {
        ok = o.failed
                 ? refuse_request(why, 503, "the collector has not enough memory: ask again later")
                 : refuse_request(why, 422, "the sum of a client does not fit into 64 bits");
    }
    if (!ok) {
        free(o.list);
        return false;
    }
    *out = o.list;
    *out_count = o.count;
    return true;
}

/* ---- Callers. */

bool fold_add_edge(fold_edges *e, uint64_t caller, uint64_t callee, uint64_t calls)
{
    if (caller > e->function_count || callee >= e->function_count) {
        return false;
    }
    if (callee == e->function) {
        e->overflow |= calls > UINT64_MAX - e->from[caller];
        e->from[caller] += calls;
    }
    if (caller == (uint64_t)e->function + 1) {
        e->overflow |= calls > UINT64_MAX - e->to[callee + 1];
        e->to[callee + 1] += calls;
    }
    return true;
}

static bool add_edges_of_run(void *user, const folded_run *run)
{
    byte_cursor c = cursor_begin(run->callers, run->caller_bytes);

    while (c.at < c.end) {
        uint64_t caller = cursor_read_number(&c), callee = cursor_read_number(&c);
        uint64_t calls = cursor_read_number(&c);
        if (c.failed || !fold_add_edge(user, caller, callee, calls)) {
            return false;
        }
    }
    return true;
}

bool fold_callers(store *s, const fold_filter *filter, fold_edges *edges, refusal *why)
{
    bool ok = s->clickhouse ? clickhouse_fold_callers(s, filter, edges, why)
                            : for_each_run(s, filter, add_edges_of_run, edges, why);

    if (ok && edges->overflow) {
        return refuse_request(why, 422,
                              "the calls of a caller do not fit into 64 bits: select fewer runs");
    }
    return ok;
}
