/* SPDX-License-Identifier: MIT */
/* Delete runs and builds. */
#include "retention.h"

static bool run_for(store *s, const char *sql, int64_t id)
{
    sqlite3_stmt *q = store_get_statement(s, sql);
    return store_bind(q, "i", id) && store_run(q);
}

static bool delete_run(store *s, int64_t run)
{
    return run_for(s, "DELETE FROM counts WHERE run = ?1", run) &&
           run_for(s, "DELETE FROM label WHERE run = ?1", run) &&
           run_for(s, "DELETE FROM run WHERE id = ?1", run);
}

/* Delete the runs that q finds, each of which it then finds no more.  Returns how many. */
static int64_t delete_found(store *s, sqlite3_stmt *q, int most)
{
    int64_t count = 0, run = 0;

    while (count < most && (run = store_read_integer(q, 0)) > 0) {
        if (!delete_run(s, run)) {
            return -1;
        }
        count++;
    }
    return run < 0 ? -1 : count;
}

static int64_t end_transaction(store *s, int64_t result, refusal *why)
{
    if (result >= 0 && store_execute(s, "COMMIT")) {
        return result;
    }
    refuse_for_database(why, s);
    store_execute(s, "ROLLBACK");
    return -1;
}

int64_t delete_old_runs(store *s, int64_t app, int64_t before_ns, refusal *why)
{
    int64_t sum = 0, count;

    do {
        sqlite3_stmt *q = store_get_statement(
            s, "SELECT id FROM run WHERE start_ns < ?1 AND (?2 = 0 OR app = ?2) LIMIT 1");
        bool ok = store_execute(s, "BEGIN IMMEDIATE") && store_bind(q, "ii", before_ns, app);
        count = end_transaction(s, ok ? delete_found(s, q, 500) : -1, why);
        sum += count;
    } while (count == 500);
    return count < 0 ? -1 : sum;
}

int64_t find_build(store *s, int64_t app, const char *image, refusal *why)
{
    sqlite3_stmt *q = store_get_statement(s, "SELECT id FROM build WHERE app = ?1 AND image = ?2");
    int64_t build = store_bind(q, "it", app, image) ? store_read_integer(q, 0) : -1;

    if (build == 0) {
        refuse_request(why, 404, "the app has no build %.80s: give its image id", image);
        return -1;
    }
    if (build < 0) {
        refuse_for_database(why, s);
    }
    return build;
}

int64_t delete_build(store *s, int64_t app, const char *image, refusal *why)
{
    int64_t build = find_build(s, app, image, why), count = -1;
    sqlite3_stmt *q;

    if (build < 0) {
        return -1;
    }
    if (!store_execute(s, "BEGIN IMMEDIATE")) {
        refuse_for_database(why, s);
        return -1;
    }
    q = store_get_statement(s, "SELECT id FROM run WHERE build = ?1 LIMIT 1");
    if (store_bind(q, "i", build)) {
        count = delete_found(s, q, INT32_MAX);
    }
    if (count >= 0 && !(run_for(s, "DELETE FROM function WHERE build = ?1", build) &&
                        run_for(s, "DELETE FROM module WHERE build = ?1", build) &&
                        run_for(s, "DELETE FROM kit WHERE build = ?1", build) &&
                        run_for(s, "DELETE FROM build WHERE id = ?1", build) &&
                        store_set_setting(s, "writer", ""))) {
        count = -1;
    }
    return end_transaction(s, count, why);
}
