/* SPDX-License-Identifier: MIT */
/* The thread that delivers batches of runs to ClickHouse, and the deletion of days and builds
 * there. */
#include "delivery.h"

#include "delivery_batch.h"
#include "retention.h"
#include "server.h"
#include "tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAUSE_MS = 200, MAX_DELAY_SECONDS = 30 };
#define HOUR_NS INT64_C(3600000000000)

typedef struct shard_state {
    bool ready;       /* its tables were checked                 */
    int64_t retry_ns; /* monotonic                               */
    uint32_t failures;
} shard_state;

struct delivery {
    store *s;
    clickhouse *c;
    pthread_rwlock_t *lock;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    atomic_bool stopping;
    uint32_t keep_days, shard_count;
    int64_t retention_ns;
    char owner[33];
    shard_state shards[CLICKHOUSE_MAX_SERVERS];
    batch_memory memory; /* of the thread */
};

/* ---- Deletion. */

static bool run_on_all(clickhouse *c, const char *format, int64_t number, refusal *why)
{
    const clickhouse_options *o = clickhouse_get_options(c);
    char sql[256];
    bool ok = true;

    for (uint32_t i = 0; ok && i < o->server_count; i++) {
        for (int k = 0; ok && k < 2; k++) {
            byte_buffer answer = { 0 };
            snprintf(sql, sizeof sql, format, o->database, k ? "sums" : "counts",
                     (long long)number);
            ok = clickhouse_ask(c, i, sql, NULL, NULL, &answer, why);
            buffer_free(&answer);
        }
    }
    return ok;
}

/* List the days before `before` for which a server has data, oldest first, one number a line. */
static bool list_days(clickhouse *c, uint32_t shard, int64_t before, byte_buffer *out, refusal *why)
{
    char sql[384];

    snprintf(sql, sizeof sql,
             "SELECT DISTINCT toUInt32(toDate(partition)) AS d FROM system.parts WHERE database = "
             "'%s' AND table IN ('hotfn_counts_local', 'hotfn_sums_local') AND active AND d < %lld "
             "ORDER BY d",
             clickhouse_get_options(c)->database, (long long)before);
    bool ok = clickhouse_ask(c, shard, sql, NULL, NULL, out, why);
    buffer_append(out, "", 1);
    return ok && !out->failed;
}

bool delivery_delete_days(clickhouse *c, int64_t before_ns, refusal *why)
{
    bool ok = true;

    for (uint32_t i = 0; ok && i < clickhouse_get_options(c)->server_count; i++) {
        byte_buffer days = { 0 };
        ok = list_days(c, i, before_ns / DAY_NS, &days, why);
        char *at = (char *)days.data;
        while (ok && *at) {
            ok = run_on_all(c, "ALTER TABLE %s.hotfn_%s_local DROP PARTITION toDate(%lld)",
                            strtoll(at, &at, 10), why);
            at += strspn(at, "\n");
        }
        buffer_free(&days);
    }
    return ok;
}

/* ClickHouse deletes rows in the background; wait until it has finished. */
static bool wait_for_deletion(clickhouse *c, refusal *why)
{
    const clickhouse_options *o = clickhouse_get_options(c);
    const struct timespec pause = { 0, 100000000 };
    char sql[192];
    bool ok = true;

    snprintf(sql, sizeof sql,
             "SELECT count() FROM system.mutations WHERE database = '%s' AND NOT is_done",
             o->database);
    for (uint32_t i = 0; ok && i < o->server_count; i++) {
        uint64_t open = 1;
        while (ok && open > 0) {
            ok = clickhouse_ask_number(c, i, sql, &open, why);
            if (ok && open > 0) {
                nanosleep(&pause, NULL);
            }
        }
    }
    return ok;
}

bool delivery_delete_build(clickhouse *c, int64_t build, refusal *why)
{
    return run_on_all(c, "ALTER TABLE %s.hotfn_%s_local DELETE WHERE build = %lld", build, why) &&
           wait_for_deletion(c, why);
}

/* ---- The folder. */

static bool find_owner(store *s, char owner[33])
{
    uint8_t random[16];

    if (!store_get_setting(s, "clickhouse", owner, 33)) {
        return false;
    }
    if (owner[0]) {
        return true;
    }
    if (!fill_random(random, sizeof random)) {
        return false;
    }
    format_hex(owner, random, sizeof random);
    return store_set_setting(s, "clickhouse", owner);
}

bool delivery_check_folder(store *s, const clickhouse_options *options, char owner[33],
                           refusal *why)
{
    int64_t last = store_read_integer(
        store_get_statement(s, "SELECT coalesce(max(shard), -1) + 1 FROM batch"), 0);

    if (last < 0) {
        return refuse_for_database(why, s);
    }
    if (!options && last > 0) {
        return refuse_request(
            why, 500, "the counts of this folder are in ClickHouse: start with --clickhouse");
    }
    if (options && last > options->server_count) {
        return refuse_request(why, 500,
                              "the counts of this folder are on %lld servers of ClickHouse: name "
                              "all of them, in the same order, with --clickhouse",
                              (long long)last);
    }
    return !options || find_owner(s, owner) || refuse_for_database(why, s);
}

/* Assign a shard to the runs without one, which were stored before --clickhouse was given or by an
 * import.  If all is set, reassign all undelivered runs, because the number of servers may have
 * changed. */
static bool assign_shards(store *s, uint32_t shard_count, bool all)
{
    sqlite3_stmt *q =
        store_get_statement(s, "SELECT id FROM run WHERE shard IS NULL AND batch IS NULL LIMIT 1");
    int64_t found = all ? 1 : store_read_integer(q, 0);

    if (found <= 0) {
        return found == 0;
    }
    q = store_get_statement(s, "UPDATE run SET shard = client % ?1 WHERE batch IS NULL AND (?2 OR "
                               "shard IS NULL)");
    return store_bind(q, "ii", (int64_t)shard_count, (int64_t)all) && store_run(q);
}

/* ---- The thread. */

static void delete_by_age(delivery *d)
{
    refusal why = { 0 };
    char text[64];
    int64_t now = get_monotonic_ns(), count = -1;

    if (d->keep_days == 0 || now < d->retention_ns) {
        return;
    }
    d->retention_ns = now + HOUR_NS;
    int64_t before = (get_wall_ns() / DAY_NS - d->keep_days) * DAY_NS;
    pthread_rwlock_wrlock(d->lock);
    if (delivery_delete_days(d->c, before, &why)) {
        count = delete_old_runs(d->s, 0, before, &why);
    }
    pthread_rwlock_unlock(d->lock);
    snprintf(text, sizeof text, "%lld records deleted", (long long)count);
    log_event(count < 0 ? "error" : "info", "retention", count < 0 ? why.text : text);
}

/* Deliver one batch to a shard; *more is set if further batches may be waiting. */
static bool deliver_batch(delivery *d, uint32_t shard, bool *more, refusal *why)
{
    delivery_batch b;
    bool is_new = true, found = false;

    *more = false;
    if (!batch_find(d->s, shard, &b, &is_new, why) || b.id == 0) {
        return b.id == 0 && why->status == 0;
    }
    if (!d->shards[shard].ready) {
        d->shards[shard].ready = clickhouse_prepare(d->c, shard, d->owner, why);
    }
    if (!d->shards[shard].ready) {
        return false;
    }
    pthread_rwlock_wrlock(d->lock);
    bool ok = is_new || batch_ask(d->c, &b, d->owner, &found, why);
    if (ok) {
        ok = found ? batch_mark_delivered(d->s, &b, why)
                   : batch_send(d->s, d->c, &b, d->owner, &d->memory, why);
    }
    pthread_rwlock_unlock(d->lock);
    *more = ok;
    return ok;
}

static void deliver_to_shard(delivery *d, uint32_t shard)
{
    shard_state *state = &d->shards[shard];
    bool more = get_monotonic_ns() >= state->retry_ns;

    while (more && !d->stopping) {
        refusal why = { 0 };
        if (deliver_batch(d, shard, &more, &why)) {
            state->failures = 0;
            continue;
        }
        uint32_t delay = state->failures < 5 ? 1u << state->failures : MAX_DELAY_SECONDS;
        if (state->failures++ == 0) {
            log_event("error", "clickhouse", why.text);
        }
        state->ready = false;
        state->retry_ns = get_monotonic_ns() + (int64_t)delay * 1000000000;
        more = false;
    }
}

/* Wait before the next delivery, so that runs stored meanwhile form one batch.  False if the
 * delivery must stop. */
static bool pause_delivery(delivery *d)
{
    struct timespec end;
    int64_t until = get_wall_ns() + INT64_C(1000000) * PAUSE_MS;

    end.tv_sec = until / 1000000000;
    end.tv_nsec = until % 1000000000;
    pthread_mutex_lock(&d->mutex);
    while (!d->stopping && pthread_cond_timedwait(&d->changed, &d->mutex, &end) == 0) {
    }
    pthread_mutex_unlock(&d->mutex);
    return !d->stopping;
}

static void *run_delivery(void *user)
{
    delivery *d = user;

    do {
        if (!assign_shards(d->s, d->shard_count, false)) {
            log_event("error", "clickhouse", "the database is busy");
        }
        for (uint32_t i = 0; i < d->shard_count; i++) {
            deliver_to_shard(d, i);
        }
        delete_by_age(d);
    } while (pause_delivery(d));
    return NULL;
}

bool delivery_start(delivery **out, const char *folder, const clickhouse_options *options,
                    pthread_rwlock_t *lock, uint32_t keep_days, refusal *why)
{
    delivery *d = calloc(1, sizeof *d);
    refusal first = { 0 };

    if (!d) {
        return refuse_request(why, 500, "not enough memory");
    }
    d->lock = lock;
    d->keep_days = keep_days;
    d->shard_count = options->server_count;
    pthread_mutex_init(&d->mutex, NULL);
    pthread_cond_init(&d->changed, NULL);
    bool ok = store_open(&d->s, folder, true, why) && clickhouse_open(&d->c, options, why) &&
              delivery_check_folder(d->s, options, d->owner, why) &&
              (assign_shards(d->s, d->shard_count, true) || refuse_for_database(why, d->s));
    /* An unavailable server (503) may recover; a server that is too old or has other tables is an
     * error. */
    for (uint32_t i = 0; ok && i < d->shard_count; i++) {
        d->shards[i].ready = clickhouse_prepare(d->c, i, d->owner, &first);
        if (!d->shards[i].ready && first.status != 503) {
            *why = first;
            ok = false;
        } else if (!d->shards[i].ready) {
            log_event("warning", "clickhouse", first.text);
        }
    }
    if (ok && pthread_create(&d->thread, NULL, run_delivery, d) != 0) {
        ok = refuse_request(why, 500, "cannot start a thread");
    }
    if (!ok) {
        clickhouse_close(d->c);
        store_close(d->s);
        free(d);
        return false;
    }
    *out = d;
    return true;
}

void delivery_stop(delivery *d)
{
    pthread_mutex_lock(&d->mutex);
    d->stopping = true;
    pthread_cond_signal(&d->changed);
    pthread_mutex_unlock(&d->mutex);
    pthread_join(d->thread, NULL);
    batch_free_memory(&d->memory);
    clickhouse_close(d->c);
    store_close(d->s);
    pthread_mutex_destroy(&d->mutex);
    pthread_cond_destroy(&d->changed);
    free(d);
}
