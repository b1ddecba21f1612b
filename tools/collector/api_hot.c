/* SPDX-License-Identifier: MIT */
/* GET /api/v1/hot: the hot functions of a selection, sorted, searched and paged here. */
#include "hot_table.h"

#include <math.h>

static void write_row(hotfn_json_writer *out, const hot_table *t, uint32_t number)
{
    const folded_function *f = &t->now.functions[number];
    uint32_t clients = t->now.client_count ? t->now.client_count : 1;
    char buffer[256];

    hotfn_json_begin_object(out, NULL);
    write_number(out, "rank", t->ranks[number]);
    write_number(out, "function", number);
    write_text(out, "name", get_function_name(&t->list, number, buffer, sizeof buffer));
    write_text(out, "module", get_function_file(&t->list, number));
    write_number(out, "rva", t->list.rvas[number]);
    for (int k = 0; k < METRIC_COUNT; k++) {
        static const char *const keys[METRIC_COUNT] = { "calls", "total_ns", "self_ns" };
        bool known = !(f->overflow & 1u << k) && (k == METRIC_CALLS || f->sums[k] > 0);
        hotfn_json_write(out, keys[k],
                         known ? hotfn_json_create_number(f->sums[k])
                               : hotfn_json_create_text(NULL));
    }
    hotfn_json_write(out, "max_ns",
                     f->max_ns > 0 ? hotfn_json_create_number(f->max_ns)
                                   : hotfn_json_create_text(NULL));
    write_decimal(out, "calls_per_client", (double)f->sums[METRIC_CALLS] / clients);
    write_number(out, "clients", f->clients);
    bool unknown = is_unresolved(f, t->sel.metric);
    write_decimal(out, "value", unknown ? NAN : f->value);
    write_number(out, "unresolved", f->unresolved[t->sel.metric]);
    hotfn_json_write(
        out, "share",
        hotfn_json_create_decimal(t->now.whole > 0 && !(f->overflow & 1u << t->sel.metric)
                                      ? (double)f->sums[t->sel.metric] / t->now.whole
                                      : 0,
                                  6));
    hotfn_json_write(out, "overflow", hotfn_json_create_bool(f->overflow & 1u << t->sel.metric));
    if (t->has_base) {
        write_decimal(out, "base_value", get_base_value(t, number));
    }
    hotfn_json_end(out);
}

static void write_table(request *r, store *s, const hot_table *t)
{
    hotfn_json_writer *out = begin_reply(r);

    if (!out) {
        return;
    }
    write_build(out, &t->sel);
    write_text(out, "metric", metric_names[t->sel.metric]);
    write_text(out, "agg", aggregate_names[t->sel.aggregate]);
    write_text(out, "snapshot", t->now.snapshot);
    write_number(out, "clients", t->now.client_count);
    write_number(out, "records", t->now.run_count);
    write_number(out, "timed_records", t->now.timed_runs);
    write_number(out, "functions", t->now.function_count);
    write_number(out, "called", t->called);
    write_number(out, "found", t->count);
    write_decimal(out, "whole", t->now.whole);
    write_gap(out, &t->now.gap);
    if (t->has_base) {
        write_text(out, "base", t->base_sel.build);
        write_number(out, "base_clients", t->base.client_count);
    }
    write_number(out, "offset", (uint64_t)t->sel.offset);
    hotfn_json_begin_array(out, "rows");
    for (int64_t i = t->sel.offset; i < t->count && i < t->sel.offset + t->sel.limit; i++) {
        write_row(out, t, t->order[i]);
    }
    hotfn_json_end(out);
    end_reply(r, out, s, SQLITE_DONE);
}

void read_hot(request *r, store *s)
{
    hot_table t;

    if (hot_table_make(r, s, &t)) {
        write_table(r, s, &t);
    }
    hot_table_free(&t);
}
