/* SPDX-License-Identifier: MIT */
/* Ask ClickHouse for aggregates.  The sums of clients come from the materialised table, unless the
 * selection has times or labels, which only single rows have.  Sums are two halves of 32 bits, so
 * that a sum that does not fit into 64 bits is recognised. */
#include "clickhouse_fold.h"

#include "clickhouse.h"
#include "clickhouse_block.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The runs of a selection. */

static bool has_rows_only(const fold_filter *f)
{
    return f->from_ns || f->to_ns || f->label_key;
}

/* Returns the servers that answer as bits; lists the others. */
static uint64_t find_servers(clickhouse *c, fold_gap *gap, uint32_t *first)
{
    uint32_t count = clickhouse_get_options(c)->server_count;
    uint64_t found = 0;
    size_t used = 0;
    char name[CLICKHOUSE_URL_BYTES];

    *first = count;
    for (uint32_t i = 0; i < count; i++) {
        if (clickhouse_answers(c, i)) {
            *first = *first == count ? i : *first;
            found |= UINT64_C(1) << i;
        } else if (used < sizeof gap->servers) {
            used +=
                (size_t)snprintf(gap->servers + used, sizeof gap->servers - used, "%s%s",
                                 used ? ", " : "", clickhouse_get_name(c, i, name, sizeof name));
        }
    }
    return found;
}

/* Fill the counts of clients and runs; *rows is the number of rows that should be found. */
static bool count_runs(store *s, const fold_filter *f, uint64_t servers, folded *out,
                       uint64_t *rows, refusal *why)
{
    sqlite3_stmt *q = store_get_statement(
        s,
        "SELECT count(DISTINCT CASE WHEN here THEN client END), total(here), total(here AND timed), "
        "sum(CASE WHEN delivered THEN row_count ELSE 0 END), total(NOT delivered) FROM (SELECT "
        "run.client AS client, run.timed AS timed, run.row_count AS row_count, "
        "coalesce(batch.delivered, 0) AS delivered, coalesce(batch.delivered AND (?7 >> "
        "batch.shard) & 1, 0) AS here FROM run LEFT JOIN batch ON batch.id = run.batch "
        "WHERE run.build = ?1 AND (?2 = 0 OR run.client = ?2) AND run.start_ns >= ?3 AND "
        "run.start_ns < ?4 AND (?5 IS NULL OR EXISTS (SELECT 1 FROM label WHERE label.run = run.id "
        "AND label.key = ?5 AND label.value = ?6)))");
    bool ok =
        store_bind(q, "iiiitti", f->build, f->client, f->from_ns, f->to_ns ? f->to_ns : INT64_MAX,
                   f->label_key, f->label_value, (int64_t)servers) &&
        sqlite3_step(q) == SQLITE_ROW;

    if (ok) {
        out->client_count = (uint32_t)sqlite3_column_int64(q, 0);
        out->run_count = (uint32_t)sqlite3_column_int64(q, 1);
        out->timed_runs = (uint32_t)sqlite3_column_int64(q, 2);
        *rows = (uint64_t)sqlite3_column_int64(q, 3);
        out->gap.waiting = (uint32_t)sqlite3_column_int64(q, 4);
    } else {
        refuse_for_database(why, s);
    }
    if (q) {
        sqlite3_reset(q);
    }
    return ok;
}

/* Begin a question: the server to ask, and what should be found. */
static bool begin_fold(store *s, const fold_filter *f, folded *out, uint32_t *server,
                       uint64_t *rows, refusal *why)
{
    uint64_t servers = find_servers(s->clickhouse, &out->gap, server);

    if (servers == 0) {
        return refuse_request(why, 503, "ClickHouse does not answer at %s: start it, or ask later",
                              out->gap.servers);
    }
    return count_runs(s, f, servers, out, rows, why);
}

/* ---- SQL. */

static void append_literal(byte_buffer *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\'' || text[i] == '\\') {
            buffer_append_text(out, "\\");
        }
        buffer_append(out, text + i, 1);
    }
}

static void append_table(byte_buffer *out, store *s, const char *name)
{
    const clickhouse_options *o = clickhouse_get_options(s->clickhouse);
    buffer_append_format(out, " FROM %s.hotfn_%s%s", o->database, name,
                         o->server_count > 1 ? "" : "_local");
}

static void append_filter(byte_buffer *out, const fold_filter *f)
{
    buffer_append_format(out, " WHERE build = %lld", (long long)f->build);
    if (f->client) {
        buffer_append_format(out, " AND client = %lld", (long long)f->client);
    }
    if (f->from_ns) {
        buffer_append_format(out, " AND start_ns >= %lld AND day >= toDate(%lld)",
                             (long long)f->from_ns, (long long)(f->from_ns / 86400000000000));
    }
    if (f->to_ns) {
        buffer_append_format(out, " AND start_ns < %lld AND day <= toDate(%lld)",
                             (long long)f->to_ns, (long long)(f->to_ns / 86400000000000));
    }
    if (f->label_key) {
        buffer_append_text(out, " AND has(labels, '");
        append_literal(out, f->label_key, strlen(f->label_key));
        buffer_append_text(out, "=");
        append_literal(out, f->label_value, strlen(f->label_value));
        buffer_append_text(out, "')");
    }
}

static const char *const metric_letters[METRIC_COUNT] = { "c", "t", "s" };

enum { COLUMNS = 8, FIRST_TIME = 2, FIRST_OTHER = 7 };

/* Halves of the sums, the longest call, rows: of single rows, and of the table of sums. */
static const struct {
    const char *name, *of_rows, *of_sums;
} columns[COLUMNS] = {
    { "cl", "sum(bitAnd(calls, 4294967295))", "sum(calls_low)" },
    { "ch", "sum(bitShiftRight(calls, 32))", "sum(calls_high)" },
    { "tl", "sum(bitAnd(total_ns, 4294967295))", "sum(total_low)" },
    { "th", "sum(bitShiftRight(total_ns, 32))", "sum(total_high)" },
    { "sl", "sum(bitAnd(self_ns, 4294967295))", "sum(self_low)" },
    { "sh", "sum(bitShiftRight(self_ns, 32))", "sum(self_high)" },
    { "m", "max(max_ns)", "maxMerge(longest)" },
    { "n", "count()", "sum(row_count)" },
};

/* timed: any of the runs; otherwise times are not read. */
static void append_columns(byte_buffer *out, bool rows, bool timed)
{
    for (int i = 0; i < COLUMNS; i++) {
        bool is_zero = !timed && i >= FIRST_TIME && i < FIRST_OTHER;
        buffer_append_format(out, ", %s AS %s",
                             is_zero ? "toUInt64(0)"
                             : rows  ? columns[i].of_rows
                                     : columns[i].of_sums,
                             columns[i].name);
    }
}

static void append_source(byte_buffer *out, store *s, const fold_filter *f)
{
    append_table(out, s, has_rows_only(f) ? "counts" : "sums");
    append_filter(out, f);
    buffer_append_format(out, " AND caller = %u", ALL_CALLERS);
}

/* One row for each function and client; v is the value of the metric. */
static void append_clients(byte_buffer *out, store *s, const fold_filter *f,
                           enum fold_metric metric, bool timed, int64_t function)
{
    const char *letter = metric_letters[metric];

    buffer_append_text(out, "SELECT function, client");
    append_columns(out, has_rows_only(f), timed);
    buffer_append_format(out,
                         ", %sl + bitShiftLeft(%sh, 32) AS v, %sh + bitShiftRight(%sl, 32) AS h",
                         letter, letter, letter, letter);
    append_source(out, s, f);
    if (function >= 0) {
        buffer_append_format(out, " AND function = %lld", (long long)function);
    }
    buffer_append_text(out, " GROUP BY function, client");
}

/* One row for each function, without the values of single clients.  A client whose time is 0 in
 * all its rows is unresolved. */
static void append_sums(byte_buffer *out, store *s, const fold_filter *f, bool timed)
{
    bool rows = has_rows_only(f);

    buffer_append_text(out, "SELECT function, toUInt32(0), uniqExact(client) AS c");
    append_columns(out, rows, timed);
    buffer_append_text(out, ", toUInt64(0)");
    for (int i = 0; i < 2; i++) {
        const char *const conditions[2][2] = { { "total_low + total_high > 0", "total_ns > 0" },
                                               { "self_low + self_high > 0", "self_ns > 0" } };
        buffer_append_format(out, timed ? ", toUInt64(c - uniqExactIf(client, %s))" : ", c",
                             conditions[i][rows]);
    }
    buffer_append_text(out, ", toUInt64(0), toUInt64(0)");
    append_source(out, s, f);
    buffer_append_text(out, " GROUP BY function");
}

/* Clients that did not call a function have 0, and are not in the array a. */
static void append_rank(byte_buffer *out, const char *array, uint32_t rank, uint32_t clients)
{
    buffer_append_format(out,
                         ", if(%u + length(%s) < %u, toUInt64(0), "
                         "a[toInt64(%u) - toInt64(%u) + toInt64(length(a)) + 1])",
                         rank, array, clients, rank, clients);
}

static void append_functions(byte_buffer *out, store *s, const fold_filter *f,
                             enum fold_metric metric, enum fold_aggregate aggregate,
                             const folded *about)
{
    bool timed = about->timed_runs > 0;
    bool ranked = aggregate == BY_MEDIAN || aggregate == BY_P95;

    if (!ranked && aggregate != BY_MAX && !f->wants_top_client) {
        append_sums(out, s, f, timed);
        return;
    }
    buffer_append_text(out,
                       "SELECT function, argMax(client, v), toUInt64(count()), sum(cl), sum(ch),"
                       " sum(tl), sum(th), sum(sl), sum(sh), max(m), sum(n), max(v),"
                       " toUInt64(countIf(tl + th = 0)), toUInt64(countIf(sl + sh = 0))");
    if (ranked) {
        uint32_t low, high;
        fold_find_ranks(aggregate, about->client_count, &low, &high);
        append_rank(out, "arraySort(groupArray(v)) AS a", low, about->client_count);
        append_rank(out, "a", high, about->client_count);
    } else {
        buffer_append_text(out, ", toUInt64(0), toUInt64(0)");
    }
    buffer_append_text(out, " FROM (");
    append_clients(out, s, f, metric, timed, -1);
    buffer_append_text(out, ") GROUP BY function");
}

static bool ask_rows(store *s, uint32_t server, byte_buffer *sql, byte_buffer *answer, refusal *why)
{
    buffer_append_text(sql, " FORMAT RowBinary");
    buffer_append(sql, "", 1);
    if (sql->failed) {
        return refuse_request(why, 503, "the collector has not enough memory: ask again later");
    }
    return clickhouse_ask(s->clickhouse, server, (const char *)sql->data, NULL, NULL, answer, why);
}

/* ---- Answers. */

static uint64_t read_le(const uint8_t *bytes, int count)
{
    uint64_t value = 0;

    for (int i = count - 1; i >= 0; i--) {
        value = value << 8 | bytes[i];
    }
    return value;
}

/* A sum of two halves; false if it does not fit. */
static bool join_halves(uint64_t low, uint64_t high, uint64_t *out)
{
    uint64_t carry = high + (low >> 32);

    *out = low + (high << 32);
    return carry >= high && carry <= UINT32_MAX;
}

enum { FUNCTION_WORDS = 14, FUNCTION_BYTES = 8 + 8 * FUNCTION_WORDS };

/* words: clients, halves of calls, total, self, longest, rows, max(v), unresolved total and self,
 * values at two ranks. */
static void read_function(folded *out, const uint8_t *at, uint64_t *rows)
{
    uint64_t number = read_le(at, 4), words[FUNCTION_WORDS];

    for (int i = 0; i < FUNCTION_WORDS; i++) {
        words[i] = read_le(at + 8 + 8 * i, 8);
    }
    *rows += words[8];
    if (number >= out->function_count) {
        return; /* added after the count was read */
    }
    folded_function *f = &out->functions[number];
    f->top_client = (int64_t)read_le(at + 4, 4);
    f->clients = (uint32_t)words[0];
    for (int k = 0; k < METRIC_COUNT; k++) {
        if (!join_halves(words[1 + 2 * k], words[2 + 2 * k], &f->sums[k])) {
            f->overflow = (uint8_t)(f->overflow | 1u << k);
        }
    }
    f->max_ns = words[7];
    f->top_value = words[9];
    f->unresolved[METRIC_TOTAL] = (uint32_t)words[10];
    f->unresolved[METRIC_SELF] = (uint32_t)words[11];
    f->value = (double)words[12] + (double)(words[13] - words[12]) / 2;
}

bool clickhouse_fold(store *s, const fold_filter *filter, enum fold_metric metric,
                     enum fold_aggregate aggregate, folded *out, refusal *why)
{
    uint32_t server = 0;
    uint64_t expected = 0, rows = 0;
    byte_buffer sql = { 0 }, answer = { 0 };

    if (!begin_fold(s, filter, out, &server, &expected, why)) {
        return false;
    }
    append_functions(&sql, s, filter, metric, aggregate, out);
    bool ok = ask_rows(s, server, &sql, &answer, why);
    for (size_t at = 0; ok && at + FUNCTION_BYTES <= answer.used; at += FUNCTION_BYTES) {
        read_function(out, answer.data + at, &rows);
    }
    out->gap.rows = ok && expected > rows ? expected - rows : 0;
    buffer_free(&sql);
    buffer_free(&answer);
    return ok;
}

bool clickhouse_fold_function(store *s, const fold_filter *filter, enum fold_metric metric,
                              uint32_t function, client_value **out, uint32_t *out_count,
                              folded *about, refusal *why)
{
    enum { BYTES = 20 };
    uint32_t server = 0;
    uint64_t expected = 0;
    byte_buffer sql = { 0 }, answer = { 0 };

    if (!begin_fold(s, filter, about, &server, &expected, why)) {
        return false;
    }
    buffer_append_text(&sql, "SELECT client, v, h FROM (");
    append_clients(&sql, s, filter, metric, true, function);
    buffer_append_text(&sql, ") ORDER BY client");
    bool ok = ask_rows(s, server, &sql, &answer, why);
    client_value *list = ok ? calloc(answer.used / BYTES + 1, sizeof *list) : NULL;
    if (ok && !list) {
        ok = refuse_request(why, 503, "the collector has not enough memory: ask again later");
    }
    uint32_t count = 0;
    for (size_t at = 0; ok && at + BYTES <= answer.used; at += BYTES) {
        const uint8_t *row = answer.data + at;
        list[count++] = (client_value){ (int64_t)read_le(row, 4), read_le(row + 4, 8) };
        if (read_le(row + 12, 8) > UINT32_MAX) {
            ok = refuse_request(why, 422, "the sum of a client does not fit into 64 bits");
        }
    }
    buffer_free(&sql);
    buffer_free(&answer);
    if (!ok) {
        free(list);
        return false;
    }
    *out = list;
    *out_count = count;
    return true;
}

bool clickhouse_fold_callers(store *s, const fold_filter *filter, fold_edges *edges, refusal *why)
{
    enum { BYTES = 24 };
    folded about = { 0 };
    uint32_t server = 0;
    uint64_t expected = 0;
    byte_buffer sql = { 0 }, answer = { 0 };
    bool rows = has_rows_only(filter);

    if (!begin_fold(s, filter, &about, &server, &expected, why)) {
        return false;
    }
    buffer_append_text(&sql, rows ? "SELECT caller, function, sum(bitAnd(calls, 4294967295)),"
                                    " sum(bitShiftRight(calls, 32))"
                                  : "SELECT caller, function, sum(calls_low), sum(calls_high)");
    append_table(&sql, s, rows ? "counts" : "sums");
    append_filter(&sql, filter);
    buffer_append_format(&sql,
                         " AND caller < %u AND (function = %u OR caller = %u) GROUP BY caller, "
                         "function",
                         ALL_CALLERS, edges->function, edges->function + 1);
    bool ok = ask_rows(s, server, &sql, &answer, why);
    for (size_t at = 0; ok && at + BYTES <= answer.used; at += BYTES) {
        const uint8_t *row = answer.data + at;
        uint64_t calls;
        edges->overflow |= !join_halves(read_le(row + 8, 8), read_le(row + 16, 8), &calls);
        ok = fold_add_edge(edges, read_le(row, 4), read_le(row + 4, 4), calls) ||
             refuse_request(why, 502, "ClickHouse has callers that the build has not");
    }
    buffer_free(&sql);
    buffer_free(&answer);
    return ok;
}
