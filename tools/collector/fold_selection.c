/* SPDX-License-Identifier: MIT */
/* Fold a selection, unless a fold of it is kept.
 *
 * A snapshot is a text that names the runs and functions of a build at some time.  A fold is used
 * again while the build has its snapshot, and for a minute by questions that name it: the rows of a
 * table that is searched or paged stay those of one moment while records arrive. */
#include "selection.h"
#include "server_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_AGE_NS INT64_C(60000000000)

/* False if the key would be too long.  A label key has no "=". */
static bool make_key(char key[MAX_FOLD_KEY], const selection *sel)
{
    const fold_filter *f = &sel->filter;
    int length = snprintf(
        key, MAX_FOLD_KEY, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %d %d %d %s%s%s",
        f->build, f->client, f->from_ns, f->to_ns, (int)sel->metric, (int)sel->aggregate,
        f->wants_top_client, f->label_key ? f->label_key : "", f->label_key ? "=" : "",
        f->label_key ? f->label_value : "");

    return length < MAX_FOLD_KEY;
}

/* Runs have ascending ids that are not used again: a run that is added changes the last one, and if
 * runs are only deleted, their number changes. */
static bool read_snapshot(request *r, store *s, int64_t build, char out[SNAPSHOT_BYTES])
{
    sqlite3_stmt *q = store_get_statement(
        s, "SELECT (SELECT function_count FROM build WHERE id = ?1), count(*), max(id) FROM run "
           "WHERE build = ?1");
    bool ok = store_bind(q, "i", build) && sqlite3_step(q) == SQLITE_ROW;

    if (ok) {
        snprintf(out, SNAPSHOT_BYTES, "%lld.%lld.%lld", (long long)sqlite3_column_int64(q, 0),
                 (long long)sqlite3_column_int64(q, 1), (long long)sqlite3_column_int64(q, 2));
    } else {
        refuse_for_database(&r->refused, s);
    }
    if (q) {
        sqlite3_reset(q);
    }
    return ok;
}

static bool is_whole(const fold_gap *gap)
{
    return !gap->rows && !gap->waiting && !gap->servers[0];
}

bool fold_selection(request *r, store *s, const selection *sel, folded *out)
{
    server *own = r->server;
    char key[MAX_FOLD_KEY], snapshot[SNAPSHOT_BYTES];
    bool fits = make_key(key, sel);
    int64_t now = get_monotonic_ns();

    *out = (folded){ 0 };
    if (!read_snapshot(r, s, sel->filter.build, snapshot)) {
        return false;
    }
    if (fits && ((sel->snapshot &&
                  fold_cache_find(&own->folds, key, sel->snapshot, now - MAX_AGE_NS, out)) ||
                 fold_cache_find(&own->folds, key, snapshot, INT64_MIN, out))) {
        return true;
    }
    atomic_fetch_add(&own->counters.folds, 1);
    if (!fold_runs(s, &sel->filter, sel->metric, sel->aggregate, out, &r->refused)) {
        return false;
    }
    memcpy(out->snapshot, snapshot, sizeof snapshot);
    if (fits && is_whole(&out->gap)) {
        fold_cache_keep(&own->folds, key, out, now);
    }
    return true;
}
