/* SPDX-License-Identifier: MIT */
/* The state of the collector: /healthz, /metrics (Prometheus text format 0.0.4), the OpenAPI
 * file. */
#include "server.h"
#include "web.h"

#include <stdio.h>

void read_health(request *r, store *s)
{
    int64_t one = store_read_integer(store_get_statement(s, "SELECT count(*) FROM app"), -1);

    if (one < 0) {
        refuse_for_database(&r->refused, s);
        return;
    }
    r->type = "text/plain; charset=utf-8";
    buffer_append_text(&r->reply, "ok\n");
}

static void write_metric(request *r, const char *name, const char *type, const char *help,
                         uint64_t value)
{
    buffer_append_format(&r->reply, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", name, help, name, type,
                         name, (unsigned long long)value);
}

void read_metrics(request *r, store *s)
{
    server_counters *c = server_get_counters(r->server);
    int64_t pages = store_read_integer(store_get_statement(s, "PRAGMA page_count"), 0);
    int64_t page_bytes = store_read_integer(store_get_statement(s, "PRAGMA page_size"), 0);

    r->type = "text/plain; version=0.0.4; charset=utf-8";
    write_metric(r, "hotfn_requests_total", "counter", "Requests.", atomic_load(&c->requests));
    write_metric(r, "hotfn_received_bytes_total", "counter", "Bytes of bodies.",
                 atomic_load(&c->received_bytes));
    write_metric(r, "hotfn_records_stored_total", "counter", "Records stored.",
                 atomic_load(&c->stored));
    write_metric(r, "hotfn_records_repeated_total", "counter", "Records that were stored before.",
                 atomic_load(&c->repeated));
    write_metric(r, "hotfn_records_refused_total", "counter", "Records refused.",
                 atomic_load(&c->refused));
    write_metric(r, "hotfn_records_failed_total", "counter",
                 "Records that the database did not store.", atomic_load(&c->failed));
    write_metric(r, "hotfn_rows_stored_total", "counter", "Rows of counts stored.",
                 atomic_load(&c->rows));
    write_metric(r, "hotfn_commits_total", "counter", "Transactions.", atomic_load(&c->batches));
    write_metric(r, "hotfn_folds_total", "counter", "Passes over the runs of a selection.",
                 atomic_load(&c->folds));
    write_metric(r, "hotfn_connections", "gauge", "Open connections.",
                 (uint64_t)atomic_load(&c->connections));
    write_metric(r, "hotfn_queue_length", "gauge", "Requests that wait.",
                 server_get_queue_length(r->server));
    write_metric(r, "hotfn_database_bytes", "gauge", "Size of the database.",
                 (uint64_t)(pages * page_bytes));
    if (server_get_options(r->server)->clickhouse) {
        write_metric(
            r, "hotfn_waiting_records", "gauge", "Records that wait for ClickHouse.",
            (uint64_t)store_read_integer(store_get_statement(s, "SELECT count(*) FROM counts"), 0));
    }
    buffer_append_text(&r->reply, "# HELP hotfn_replies_total Replies by class of their status.\n"
                                  "# TYPE hotfn_replies_total counter\n");
    for (int i = 2; i < 6; i++) {
        buffer_append_format(&r->reply, "hotfn_replies_total{class=\"%dxx\"} %llu\n", i,
                             (unsigned long long)atomic_load(&c->by_class[i]));
    }
}

void read_openapi(request *r, store *s)
{
    (void)s;
    r->static_reply = web_openapi.bytes;
    r->static_bytes = web_openapi.byte_count;
}
