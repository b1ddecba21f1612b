/* SPDX-License-Identifier: MIT */
/* Ask ClickHouse over HTTP, and create its tables. */
#include "clickhouse.h"

#include "http_post.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_YEAR = 18, MIN_MONTH = 16 }; /* the oldest version that is tested */

struct clickhouse {
    clickhouse_options options;
    http_handle *http;
};

/* A row of counts has the number of a function and UINT32_MAX as caller; a row of callers has the
 * caller's number + 1, or 0 for code that is not timed.  Sums are kept in two halves of 32 bits,
 * because ClickHouse's sums wrap. */
static const char *const tables[] = {
    "CREATE DATABASE IF NOT EXISTS %s",
    "CREATE TABLE IF NOT EXISTS %s.hotfn_owner(id String) ENGINE = MergeTree ORDER BY id",
    "CREATE TABLE IF NOT EXISTS %s.hotfn_counts_local(day Date, batch UInt64, build UInt32,"
    " caller UInt32, function UInt32, client UInt32, run UInt64, start_ns UInt64,"
    " labels Array(String), calls UInt64, total_ns UInt64, self_ns UInt64, max_ns UInt64)"
    " ENGINE = MergeTree PARTITION BY day ORDER BY (build, caller, function, client)",
    "CREATE TABLE IF NOT EXISTS %s.hotfn_sums_local(day Date, build UInt32, caller UInt32,"
    " function UInt32, client UInt32, row_count UInt64, calls_low UInt64, calls_high UInt64,"
    " total_low UInt64, total_high UInt64, self_low UInt64, self_high UInt64,"
    " longest AggregateFunction(max, UInt64))"
    " ENGINE = SummingMergeTree PARTITION BY day ORDER BY (build, caller, function, client)",
    "CREATE MATERIALIZED VIEW IF NOT EXISTS %1$s.hotfn_sums_view TO %1$s.hotfn_sums_local AS"
    " SELECT day, build, caller, function, client, count() AS row_count,"
    " sum(bitAnd(calls, 4294967295)) AS calls_low, sum(bitShiftRight(calls, 32)) AS calls_high,"
    " sum(bitAnd(total_ns, 4294967295)) AS total_low,"
    " sum(bitShiftRight(total_ns, 32)) AS total_high,"
    " sum(bitAnd(self_ns, 4294967295)) AS self_low,"
    " sum(bitShiftRight(self_ns, 32)) AS self_high, maxState(max_ns) AS longest"
    " FROM %1$s.hotfn_counts_local GROUP BY day, build, caller, function, client",
};
/* Several servers only: database, cluster. */
static const char *const distributed[] = {
    "CREATE TABLE IF NOT EXISTS %1$s.hotfn_counts AS %1$s.hotfn_counts_local"
    " ENGINE = Distributed(%2$s, %1$s, hotfn_counts_local)",
    "CREATE TABLE IF NOT EXISTS %1$s.hotfn_sums AS %1$s.hotfn_sums_local"
    " ENGINE = Distributed(%2$s, %1$s, hotfn_sums_local)",
};

/* ---- Options. */

bool clickhouse_parse_name(char out[CLICKHOUSE_NAME_BYTES], const char *text)
{
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

    if (length == 0 || text[length] || length >= CLICKHOUSE_NAME_BYTES) {
        return false;
    }
    memcpy(out, text, length + 1);
    return true;
}

bool clickhouse_parse_servers(clickhouse_options *out, const char *text)
{
    out->server_count = 0;
    for (; *text; text += *text == ',') {
        size_t length = strcspn(text, ",");
        bool http = strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;
        if (!http || length >= CLICKHOUSE_URL_BYTES ||
            out->server_count == CLICKHOUSE_MAX_SERVERS) {
            return false;
        }
        char *server = out->servers[out->server_count++];
        memcpy(server, text, length);
        while (length > 0 && server[length - 1] == '/') {
            length--;
        }
        server[length] = 0;
        text += strcspn(text, ",");
    }
    return out->server_count > 0;
}

bool clickhouse_open(clickhouse **out, const clickhouse_options *options, refusal *why)
{
    clickhouse *c = calloc(1, sizeof *c);

    if (!c) {
        return refuse_request(why, 500, "not enough memory");
    }
    c->options = *options;
    c->http = http_open();
    if (!c->http) {
        free(c);
        return refuse_request(why, 500,
                              "--clickhouse needs libcurl: build hotfn-collector with libcurl");
    }
    *out = c;
    return true;
}

void clickhouse_close(clickhouse *c)
{
    if (c) {
        http_close(c->http);
        free(c);
    }
}

const clickhouse_options *clickhouse_get_options(const clickhouse *c)
{
    return &c->options;
}

const char *clickhouse_get_name(const clickhouse *c, uint32_t server, char *buffer, size_t bytes)
{
    const char *url = c->options.servers[server], *host = strstr(url, "//") + 2;
    const char *at = strrchr(host, '@');

    snprintf(buffer, bytes, "%.*s%s", (int)(host - url), url, at ? at + 1 : host);
    return buffer;
}

/* ---- Questions. */

static void append_escaped(byte_buffer *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        buffer_append_format(out, plain ? "%c" : "%%%02X", c);
    }
}

/* The answer is complete before its status is sent, so that an error is never half an answer. */
static void make_url(clickhouse *c, uint32_t server, const char *sql, bool has_body,
                     const char *query_id, byte_buffer *out)
{
    buffer_append_format(out, "%s/?wait_end_of_query=1&skip_unavailable_shards=1",
                         c->options.servers[server]);
    if (query_id) {
        buffer_append_format(out, "&query_id=%s", query_id);
    }
    if (has_body) {
        buffer_append_text(out, "&query=");
        append_escaped(out, sql);
    }
    buffer_append(out, "", 1);
}

/* answer: ends with a zero; of an error only the first line is repeated. */
static bool refuse_for_server(clickhouse *c, uint32_t server, const char *problem,
                              const byte_buffer *answer, refusal *why)
{
    char name[CLICKHOUSE_URL_BYTES];

    clickhouse_get_name(c, server, name, sizeof name);
    if (problem) {
        return refuse_request(why, 503,
                              "ClickHouse at %.150s does not answer (%s): start it, or check "
                              "--clickhouse",
                              name, problem);
    }
    const char *text = answer->failed ? "" : (const char *)answer->data;
    size_t length = strcspn(text, "\n");
    return refuse_request(why, 502, "ClickHouse at %.150s reports: %.*s", name,
                          (int)(length < 200 ? length : 200), text);
}

bool clickhouse_ask(clickhouse *c, uint32_t server, const char *sql, const byte_buffer *body,
                    const char *query_id, byte_buffer *answer, refusal *why)
{
    byte_buffer url = { 0 };
    const char *problem = NULL;
    long status = 0;

    make_url(c, server, sql, body != NULL, query_id, &url);
    if (url.failed) {
        return refuse_request(why, 503, "the collector has not enough memory: ask again later");
    }
    problem = http_post(c->http, (const char *)url.data, body ? (const char *)body->data : sql,
                        body ? body->used : strlen(sql), answer, &status);
    buffer_free(&url);
    if (!problem && status == 200) {
        return true;
    }
    buffer_append(answer, "", 1);
    return refuse_for_server(c, server, problem, answer, why);
}

bool clickhouse_ask_number(clickhouse *c, uint32_t server, const char *sql, uint64_t *out,
                           refusal *why)
{
    byte_buffer answer = { 0 };
    bool ok = clickhouse_ask(c, server, sql, NULL, NULL, &answer, why);

    buffer_append(&answer, "", 1);
    if (ok && answer.failed) {
        ok = refuse_request(why, 503, "the collector has not enough memory: ask again later");
    }
    if (ok) {
        *out = strtoull((const char *)answer.data, NULL, 10);
    }
    buffer_free(&answer);
    return ok;
}

bool clickhouse_answers(clickhouse *c, uint32_t server)
{
    uint64_t one = 0;
    refusal why;

    return clickhouse_ask_number(c, server, "SELECT 1", &one, &why) && one == 1;
}

/* ---- Tables. */

static bool run_formatted(clickhouse *c, uint32_t server, refusal *why, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static bool run_formatted(clickhouse *c, uint32_t server, refusal *why, const char *format, ...)
{
    char sql[2048];
    byte_buffer answer = { 0 };
    va_list values;

    va_start(values, format);
    vsnprintf(sql, sizeof sql, format, values);
    va_end(values);
    bool ok = clickhouse_ask(c, server, sql, NULL, NULL, &answer, why);
    buffer_free(&answer);
    return ok;
}

static bool check_version(clickhouse *c, uint32_t server, refusal *why)
{
    byte_buffer answer = { 0 };
    char name[CLICKHOUSE_URL_BYTES];
    unsigned year = 0, month = 0;
    bool ok = clickhouse_ask(c, server, "SELECT version()", NULL, NULL, &answer, why);

    buffer_append(&answer, "", 1);
    if (ok && (answer.failed || sscanf((const char *)answer.data, "%u.%u", &year, &month) != 2 ||
               year < MIN_YEAR || (year == MIN_YEAR && month < MIN_MONTH))) {
        ok = refuse_request(why, 502,
                            "ClickHouse at %.150s has version %u.%u, and %d.%d is needed: update "
                            "it",
                            clickhouse_get_name(c, server, name, sizeof name), year, month,
                            MIN_YEAR, MIN_MONTH);
    }
    buffer_free(&answer);
    return ok;
}

/* The Distributed tables need a cluster with as many shards in the configuration of ClickHouse. */
static bool check_cluster(clickhouse *c, uint32_t server, refusal *why)
{
    char sql[256], name[CLICKHOUSE_URL_BYTES];
    const clickhouse_options *o = &c->options;
    uint64_t shards = 0;

    snprintf(sql, sizeof sql,
             "SELECT uniqExact(shard_num) FROM system.clusters WHERE cluster = '%s'", o->cluster);
    if (!clickhouse_ask_number(c, server, sql, &shards, why)) {
        return false;
    }
    return shards == o->server_count ||
           refuse_request(why, 502,
                          "ClickHouse at %.150s has %llu shards in cluster '%s', and --clickhouse "
                          "has %u servers: define the cluster in its remote_servers",
                          clickhouse_get_name(c, server, name, sizeof name),
                          (unsigned long long)shards, o->cluster, o->server_count);
}

static bool check_owner(clickhouse *c, uint32_t server, const char *owner, refusal *why)
{
    char sql[256], name[CLICKHOUSE_URL_BYTES];
    const char *database = c->options.database;
    uint64_t all = 0, others = 0;

    snprintf(sql, sizeof sql, "SELECT count() FROM %s.hotfn_owner", database);
    bool ok = clickhouse_ask_number(c, server, sql, &all, why);
    snprintf(sql, sizeof sql, "SELECT count() FROM %s.hotfn_owner WHERE id != '%s'", database,
             owner);
    ok = ok && clickhouse_ask_number(c, server, sql, &others, why);
    if (ok && others > 0) {
        return refuse_request(why, 502,
                              "database %s at %.150s belongs to another folder of hotfn-collector: "
                              "choose another with --clickhouse-database",
                              database, clickhouse_get_name(c, server, name, sizeof name));
    }
    return ok &&
           (all > 0 || run_formatted(c, server, why, "INSERT INTO %s.hotfn_owner VALUES ('%s')",
                                     database, owner));
}

bool clickhouse_prepare(clickhouse *c, uint32_t server, const char *owner, refusal *why)
{
    const clickhouse_options *o = &c->options;
    bool ok = check_version(c, server, why);

    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        ok = ok && run_formatted(c, server, why, tables[i], o->database);
    }
    ok = ok && check_owner(c, server, owner, why) &&
         (o->server_count == 1 || check_cluster(c, server, why));
    for (size_t i = 0; i < sizeof distributed / sizeof distributed[0]; i++) {
        ok = ok && (o->server_count == 1 ||
                    run_formatted(c, server, why, distributed[i], o->database, o->cluster));
    }
    return ok;
}
