/* SPDX-License-Identifier: MIT */
/* `hotfn-collector --data DIR import|prune|compact|backup`. */
#include "commands.h"
#include "decode.h"
#include "delivery.h"
#include "delivery_batch.h"
#include "retention.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- import. */

typedef struct import_counts {
    uint32_t stored, known, refused;
} import_counts;

static void import_file(store *s, submission *sub, const char *path, import_counts *counts)
{
    decoded_body body = { 0 };
    refusal why = { 0 };
    submission *list[1] = { sub };

    sub->result = (refusal){ 0 };
    sub->received_ns = get_wall_ns();
    if (decode_record_file(&body, path, sub, &why)) {
        ingest_batch(s, list, 1);
        why = sub->result;
    }
    counts->stored += why.status == 201;
    counts->known += why.status == 200;
    if (why.status >= 300) {
        counts->refused++;
        fprintf(stderr, "hotfn-collector: %s: %s\n", path, why.text);
    }
    decode_free(&body, sub);
}

static int import_folder(store *s, submission *sub, const char *folder)
{
    char path[8192];
    import_counts counts = { 0 };
    DIR *directory = opendir(folder);

    if (!directory) {
        fprintf(stderr, "hotfn-collector: %s: %s\n", folder, strerror(errno));
        return 1;
    }
    for (struct dirent *e; (e = readdir(directory));) {
        const char *dot = strrchr(e->d_name, '.');
        if (dot && strcmp(dot, ".hfr") == 0) {
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
            import_file(s, sub, path, &counts);
        }
    }
    closedir(directory);
    printf("%u stored, %u known, %u refused\n", counts.stored, counts.known, counts.refused);
    return counts.refused ? 1 : 0;
}

static int command_import(store *s, char **words)
{
    submission *sub = calloc(1, sizeof *sub);
    const char *folder = NULL;
    bool ok = sub != NULL;

    for (; ok && words[0]; words++) {
        bool app = strcmp(words[0], "--app") == 0, version = strcmp(words[0], "--app-version") == 0;
        if (app || version) {
            ok = words[1] != NULL && strlen(words[1]) <= MAX_TEXT;
            if (ok) {
                strcpy(app ? sub->app : sub->version, words[1]);
                words++;
            }
        } else {
            ok = folder == NULL;
            folder = words[0];
        }
    }
    if (!ok || !folder || !sub->app[0]) {
        fputs("hotfn-collector: import --app NAME [--app-version TEXT] FOLDER\n", stderr);
        free(sub);
        return 2;
    }
    int status = import_folder(s, sub, folder);
    free(sub);
    return status;
}

/* ---- prune. */

/* Rows in ClickHouse belong to whole days of all apps, or to builds.  The collector must not run:
 * it would send runs that are being deleted. */
static int64_t prune_clickhouse(store *s, const collector_options *o, int64_t app,
                                const char *build, int64_t before_ns, refusal *why)
{
    clickhouse *c = NULL;
    char owner[33];
    int64_t count = -1, whole_days = before_ns / DAY_NS * DAY_NS;
    int lock = lock_folder(o->data);

    if (lock < 0) {
        refuse_request(why, 500, "stop the collector first, or use its option --keep-days");
        return -1;
    }
    bool ok = delivery_check_folder(s, o->server.clickhouse, owner, why) &&
              clickhouse_open(&c, o->server.clickhouse, why);
    for (uint32_t i = 0; ok && i < o->server.clickhouse->server_count; i++) {
        ok = clickhouse_prepare(c, i, owner, why);
    }
    if (ok && build) {
        int64_t id = find_build(s, app, build, why);
        ok = id > 0 && delivery_delete_build(c, id, why);
        count = ok ? delete_build(s, app, build, why) : -1;
    } else if (ok && app) {
        refuse_request(why, 400, "with ClickHouse --days is for all apps: give no --app");
    } else if (ok) {
        ok = delivery_delete_days(c, whole_days, why);
        count = ok ? delete_old_runs(s, 0, whole_days, why) : -1;
    }
    clickhouse_close(c);
    close(lock);
    return count;
}

static int command_prune(store *s, const collector_options *o, char **words)
{
    const char *app_name = NULL, *build = NULL, *days = NULL;
    refusal why = { 0 };
    int64_t count;

    for (; words[0] && words[1]; words += 2) {
        const char **to = strcmp(words[0], "--app") == 0     ? &app_name
                          : strcmp(words[0], "--build") == 0 ? &build
                          : strcmp(words[0], "--days") == 0  ? &days
                                                             : NULL;
        if (!to) {
            break;
        }
        *to = words[1];
    }
    char *end = NULL;
    double age = days ? strtod(days, &end) : 0;
    if (words[0] || !build == !days || (build && !app_name) ||
        (days && (*end || !(age >= 0 && age < 1e5)))) {
        fputs("hotfn-collector: prune --days N [--app NAME], or prune --app NAME --build IMAGE\n",
              stderr);
        return 2;
    }
    int64_t app = app_name ? ingest_find_app(s, app_name) : 0;
    if (app < 0 || (app_name && app == 0)) {
        fprintf(stderr, "hotfn-collector: there is no app '%s'\n", app_name);
        return 1;
    }
    int64_t before = get_wall_ns() - (int64_t)(age * 86400e9);
    count = o->server.clickhouse ? prune_clickhouse(s, o, app, build, before, &why)
            : build              ? delete_build(s, app, build, &why)
                                 : delete_old_runs(s, app, before, &why);
    if (count < 0) {
        return report_refusal(&why);
    }
    printf("%" PRId64 " records deleted\n", count);
    return 0;
}

/* ---- compact and backup. */

static int command_compact(store *s)
{
    refusal why;

    /* Names that no function has any more. */
    if (!store_execute(
            s, "DELETE FROM name WHERE id NOT IN (SELECT name FROM function WHERE name IS NOT "
               "NULL)") ||
        !store_execute(s, "VACUUM") || !store_execute(s, "PRAGMA wal_checkpoint(TRUNCATE)")) {
        refuse_for_database(&why, s);
        return report_refusal(&why);
    }
    return 0;
}

/* The copy is one state of the database, also while records arrive. */
static int command_backup(store *s, const char *path)
{
    sqlite3_stmt *q = store_get_statement(s, "VACUUM INTO ?1");
    refusal why;

    if (!store_bind(q, "t", path) || !store_run(q)) {
        refuse_for_database(&why, s);
        return report_refusal(&why);
    }
    return 0;
}

int command_data(const collector_options *o, char **words)
{
    bool import = strcmp(words[0], "import") == 0, prune = strcmp(words[0], "prune") == 0;
    bool compact = strcmp(words[0], "compact") == 0 && !words[1];
    bool backup = strcmp(words[0], "backup") == 0 && words[1] && !words[2];
    store *s;
    refusal why;
    int status;

    if (!import && !prune && !compact && !backup) {
        fprintf(stderr,
                "hotfn-collector: there is no command '%s' with these arguments; see --help\n",
                words[0]);
        return 2;
    }
    if (!store_open(&s, o->data, true, &why)) {
        return report_refusal(&why);
    }
    if (import) {
        status = command_import(s, words + 1);
    } else if (prune) {
        status = command_prune(s, o, words + 1);
    } else if (compact) {
        status = command_compact(s);
    } else {
        status = command_backup(s, words[1]);
    }
    store_close(s);
    return status;
}
