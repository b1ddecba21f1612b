/* SPDX-License-Identifier: MIT */
/* The steps of one batch. */
#include "delivery_batch.h"

#include <stdio.h>
#include <string.h>

enum { MAX_KEPT_BODY = 64 << 20 }; /* a run may have many callers */

/* ---- Choose the runs. */

static bool roll_back(store *s, refusal *why)
{
    refuse_for_database(why, s);
    store_execute(s, "ROLLBACK");
    return false;
}

static bool add_run(store *s, int64_t batch, int64_t run)
{
    sqlite3_stmt *q = store_get_statement(s, "UPDATE run SET batch = ?1 WHERE id = ?2");
    return store_bind(q, "ii", batch, run) && store_run(q);
}

/* The oldest runs that wait for the shard, all of one day: a block of one partition is one part. */
static bool choose_runs(store *s, delivery_batch *b)
{
    int64_t runs[BATCH_RUNS], rows = 0;
    int count = 0, step = SQLITE_ERROR;
    sqlite3_stmt *q = store_get_statement(
        s, "SELECT run.id, start_ns / 86400000000000, row_count + length(callers) / 3 FROM run "
           "JOIN counts ON counts.run = run.id WHERE shard = ?1 AND batch IS NULL "
           "ORDER BY run.id LIMIT 4000");

    if (!store_bind(q, "i", (int64_t)b->shard)) {
        return false;
    }
    while ((step = sqlite3_step(q)) == SQLITE_ROW && count < BATCH_RUNS && rows < BATCH_ROWS) {
        int64_t day = sqlite3_column_int64(q, 1);
        b->day = count == 0 ? day : b->day;
        if (day == b->day) {
            runs[count++] = sqlite3_column_int64(q, 0);
            rows += sqlite3_column_int64(q, 2);
        }
    }
    sqlite3_reset(q);
    if (count == 0) {
        return step == SQLITE_DONE;
    }
    q = store_get_statement(s, "INSERT INTO batch(shard, day) VALUES(?1, ?2)");
    bool ok = store_bind(q, "ii", (int64_t)b->shard, b->day) && store_run(q);
    b->id = sqlite3_last_insert_rowid(s->db);
    for (int i = 0; ok && i < count; i++) {
        ok = add_run(s, b->id, runs[i]);
    }
    return ok;
}

bool batch_find(store *s, uint32_t shard, delivery_batch *out, bool *is_new, refusal *why)
{
    sqlite3_stmt *q = store_get_statement(
        s, "SELECT id, day FROM batch WHERE shard = ?1 AND NOT delivered LIMIT 1");
    int step = store_bind(q, "i", (int64_t)shard) ? sqlite3_step(q) : SQLITE_ERROR;

    *out = (delivery_batch){ .shard = shard };
    *is_new = step != SQLITE_ROW;
    if (step == SQLITE_ROW) {
        out->id = sqlite3_column_int64(q, 0);
        out->day = sqlite3_column_int64(q, 1);
        sqlite3_reset(q);
        return true;
    }
    sqlite3_reset(q);
    q = store_get_statement(s, "SELECT id FROM run WHERE shard = ?1 AND batch IS NULL LIMIT 1");
    int64_t waits = store_bind(q, "i", (int64_t)shard) ? store_read_integer(q, 0) : -1;
    if (step != SQLITE_DONE || waits < 0) {
        return refuse_for_database(why, s);
    }
    if (waits == 0) {
        return true;
    }
    if (!store_execute(s, "BEGIN IMMEDIATE")) {
        return refuse_for_database(why, s);
    }
    return (choose_runs(s, out) && store_execute(s, "COMMIT")) || roll_back(s, why);
}

/* ---- Encode. */

static bool read_labels(store *s, int64_t run, byte_buffer *out, uint32_t *count)
{
    sqlite3_stmt *q =
        store_get_statement(s, "SELECT key || '=' || value FROM label WHERE run = ?1 ORDER BY key");
    int step = store_bind(q, "i", run) ? sqlite3_step(q) : SQLITE_ERROR;

    *count = 0;
    out->used = 0;
    for (; step == SQLITE_ROW; step = sqlite3_step(q)) {
        size_t bytes = (size_t)sqlite3_column_bytes(q, 0);
        buffer_append_number(out, bytes);
        buffer_append(out, sqlite3_column_text(q, 0), bytes);
        ++*count;
    }
    sqlite3_reset(q);
    return step == SQLITE_DONE && !out->failed;
}

static bool add_run_to_block(store *s, const delivery_batch *b, sqlite3_stmt *q, count_block *out,
                             byte_buffer *labels)
{
    block_run run = { .day = (uint16_t)b->day, .batch = (uint64_t)b->id, .labels = labels };

    run.run = (uint64_t)sqlite3_column_int64(q, 0);
    run.build = (uint32_t)sqlite3_column_int64(q, 1);
    run.client = (uint32_t)sqlite3_column_int64(q, 2);
    run.start_ns = (uint64_t)sqlite3_column_int64(q, 3);
    run.timed = sqlite3_column_int(q, 4);
    run.rows = sqlite3_column_blob(q, 5);
    run.row_bytes = (size_t)sqlite3_column_bytes(q, 5);
    run.callers = sqlite3_column_blob(q, 6);
    run.caller_bytes = (size_t)sqlite3_column_bytes(q, 6);
    return read_labels(s, (int64_t)run.run, labels, &run.label_count) && block_add_run(out, &run);
}

static bool encode_batch(store *s, const delivery_batch *b, batch_memory *m, refusal *why)
{
    byte_buffer labels = { 0 };
    sqlite3_stmt *q = store_get_statement(
        s, "SELECT run.id, build, client, start_ns, timed, rows, callers FROM run JOIN counts ON "
           "counts.run = run.id WHERE batch = ?1 ORDER BY build, client, run.id");
    bool ok = store_bind(q, "i", b->id);
    int step = SQLITE_ERROR;

    block_clear(&m->block);
    m->body.used = 0;
    m->body.failed = false;
    while (ok && (step = sqlite3_step(q)) == SQLITE_ROW) {
        ok = add_run_to_block(s, b, q, &m->block, &labels);
    }
    sqlite3_reset(q);
    block_finish(&m->block, &m->body);
    buffer_free(&labels);
    if (ok && step != SQLITE_DONE) {
        return refuse_for_database(why, s);
    }
    return (ok && !m->body.failed) ||
           refuse_request(why, 503, "not enough memory for a batch, or its counts are damaged");
}

/* ---- Send. */

bool batch_mark_delivered(store *s, const delivery_batch *b, refusal *why)
{
    sqlite3_stmt *q;
    bool ok = store_execute(s, "BEGIN IMMEDIATE");

    q = store_get_statement(
        s, "DELETE FROM counts WHERE run IN (SELECT id FROM run WHERE batch = ?1)");
    ok = ok && store_bind(q, "i", b->id) && store_run(q);
    q = store_get_statement(s, "UPDATE batch SET delivered = 1 WHERE id = ?1");
    ok = ok && store_bind(q, "i", b->id) && store_run(q);
    return (ok && store_execute(s, "COMMIT")) || roll_back(s, why);
}

void batch_free_memory(batch_memory *memory)
{
    block_free(&memory->block);
    buffer_free(&memory->body);
}

bool batch_send(store *s, clickhouse *c, const delivery_batch *b, const char *owner,
                batch_memory *memory, refusal *why)
{
    byte_buffer answer = { 0 };
    char sql[192], query_id[96];

    snprintf(sql, sizeof sql, "INSERT INTO %s.hotfn_counts_local FORMAT Native",
             clickhouse_get_options(c)->database);
    snprintf(query_id, sizeof query_id, "hotfn-%s-%lld", owner, (long long)b->id);
    bool ok = encode_batch(s, b, memory, why);
    ok = ok &&
         (memory->block.row_count == 0 ||
          clickhouse_ask(c, b->shard, sql, &memory->body, query_id, &answer, why)) &&
         batch_mark_delivered(s, b, why);
    if (memory->body.room > MAX_KEPT_BODY) {
        batch_free_memory(memory);
    }
    buffer_free(&answer);
    return ok;
}

/* ---- Ask. */

static bool ask_for_rows(clickhouse *c, const delivery_batch *b, const char *table,
                         const char *what, bool of_batch, uint64_t *out, refusal *why)
{
    char sql[384], condition[64] = "";

    if (of_batch) {
        snprintf(condition, sizeof condition, " AND batch = %lld", (long long)b->id);
    }
    snprintf(sql, sizeof sql, "SELECT %s FROM %s.%s WHERE day = toDate(%lld)%s", what,
             clickhouse_get_options(c)->database, table, (long long)b->day, condition);
    return clickhouse_ask_number(c, b->shard, sql, out, why);
}

static bool run_for_day(clickhouse *c, const delivery_batch *b, const char *format, refusal *why)
{
    char sql[1024];
    byte_buffer answer = { 0 };

    snprintf(sql, sizeof sql, format, clickhouse_get_options(c)->database, (long long)b->day);
    bool ok = clickhouse_ask(c, b->shard, sql, NULL, NULL, &answer, why);
    buffer_free(&answer);
    return ok;
}

/* Make the sums of the day again from its rows, if they do not cover all. */
static bool repair_sums(clickhouse *c, const delivery_batch *b, refusal *why)
{
    uint64_t rows = 0, summed = 0;

    if (!ask_for_rows(c, b, "hotfn_counts_local", "count()", false, &rows, why) ||
        !ask_for_rows(c, b, "hotfn_sums_local", "sum(row_count)", false, &summed, why)) {
        return false;
    }
    return rows == summed ||
           (run_for_day(c, b, "ALTER TABLE %1$s.hotfn_sums_local DROP PARTITION toDate(%2$lld)",
                        why) &&
            run_for_day(
                c, b,
                "INSERT INTO %1$s.hotfn_sums_local SELECT day, build, caller, function, client,"
                " count(), sum(bitAnd(calls, 4294967295)), sum(bitShiftRight(calls, 32)),"
                " sum(bitAnd(total_ns, 4294967295)), sum(bitShiftRight(total_ns, 32)),"
                " sum(bitAnd(self_ns, 4294967295)), sum(bitShiftRight(self_ns, 32)),"
                " maxState(max_ns) FROM %1$s.hotfn_counts_local WHERE day = toDate(%2$lld)"
                " GROUP BY day, build, caller, function, client",
                why));
}

bool batch_ask(clickhouse *c, const delivery_batch *b, const char *owner, bool *found, refusal *why)
{
    char sql[256];
    uint64_t running = 0, rows = 0;

    /* An insertion whose connection broke may still be at work. */
    snprintf(sql, sizeof sql,
             "SELECT count() FROM system.processes WHERE query_id = 'hotfn-%s-%lld'", owner,
             (long long)b->id);
    if (!clickhouse_ask_number(c, b->shard, sql, &running, why)) {
        return false;
    }
    if (running > 0) {
        return refuse_request(why, 503, "ClickHouse still stores a batch: it is asked again later");
    }
    if (!ask_for_rows(c, b, "hotfn_counts_local", "count()", true, &rows, why)) {
        return false;
    }
    *found = rows > 0;
    return rows == 0 || repair_sums(c, b, why);
}
