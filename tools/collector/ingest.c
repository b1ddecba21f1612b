/* SPDX-License-Identifier: MIT */
/* Stores runs: rejects or ignores a run that is stored already, numbers its functions, packs its
 * rows. */
#include "ingest.h"

#include "build_map.h"
#include "names.h"
#include "pack.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_AHEAD_NS INT64_C(86400000000000)      /* a clock may be a day ahead */
#define MIN_START_NS INT64_C(1420070400000000000) /* 2015-01-01; hotfn is younger */

int64_t ingest_find_app(store *s, const char *name)
{
    sqlite3_stmt *q = store_get_statement(s, "SELECT id FROM app WHERE name = ?1");
    return store_bind(q, "t", name) ? store_read_integer(q, 0) : -1;
}

static int64_t find_or_create_app(store *s, const char *name)
{
    int64_t id = ingest_find_app(s, name);

    if (id != 0) {
        return id;
    }
    sqlite3_stmt *q = store_get_statement(s, "INSERT INTO app(name) VALUES(?1)");
    return store_bind(q, "t", name) && store_run(q) ? sqlite3_last_insert_rowid(s->db) : -1;
}

static int64_t find_or_create_client(store *s, int64_t app, const submission *sub)
{
    const uint8_t *key = sub->has_client ? sub->client : sub->run.uuid;
    sqlite3_stmt *q = store_get_statement(s, "SELECT id FROM client WHERE app = ?1 AND key = ?2");
    int64_t id = store_bind(q, "ib", app, key, (size_t)16) ? store_read_integer(q, 0) : -1;

    if (id != 0) {
        return id;
    }
    q = store_get_statement(s, "INSERT INTO client(app, key) VALUES(?1, ?2)");
    return store_bind(q, "ib", app, key, (size_t)16) && store_run(q)
               ? sqlite3_last_insert_rowid(s->db)
               : -1;
}

/* ---- Builds. */

/* A version with registered symbols belongs to one image.  The counts of another image with that
 * version would be shown under wrong names, so it is refused. */
static bool check_version(store *s, int64_t app, submission *sub)
{
    sqlite3_stmt *q = store_get_statement(
        s, "SELECT image FROM build WHERE app = ?1 AND version = ?2 AND registered AND image <> ?3 "
           "AND NOT EXISTS (SELECT 1 FROM build WHERE app = ?1 AND version = ?2 AND registered "
           "AND image = ?3)");
    bool ok = sub->version[0] == 0;

    if (!ok && store_bind(q, "itt", app, sub->version, sub->image)) {
        int step = sqlite3_step(q);
        ok = step == SQLITE_DONE;
        if (step == SQLITE_ROW) {
            refuse_request(&sub->result, 409,
                           "version %.64s is registered with image %s, but this record is of image "
                           "%s: run the registered build, or give this one another version",
                           sub->version, (const char *)sqlite3_column_text(q, 0), sub->image);
        } else if (!ok) {
            refuse_for_database(&sub->result, s);
        }
        sqlite3_reset(q);
    }
    return ok;
}

static int64_t create_build(store *s, int64_t app, submission *sub, const char *file)
{
    if (sub->known_builds_only && !sub->registers_build) {
        refuse_request(&sub->result, 422,
                       "image %s is not a known build of app %.64s: register its symbols first",
                       sub->image, sub->app);
        return 0;
    }
    sqlite3_stmt *q = store_get_statement(s, "INSERT INTO build(app, image, version, file, "
                                             "created_ns) VALUES(?1, ?2, ?3, ?4, ?5)");
    return store_bind(q, "ittti", app, sub->image, sub->version, file, sub->received_ns) &&
                   store_run(q)
               ? sqlite3_last_insert_rowid(s->db)
               : -1;
}

/* Returns the id of the build; 0 if it is refused, -1 if the database failed. */
static int64_t find_or_create_build(store *s, int64_t app, submission *sub, const char *file)
{
    sqlite3_stmt *q = store_get_statement(s, "SELECT id FROM build WHERE app = ?1 AND image = ?2");

    if (!check_version(s, app, sub)) {
        return sub->result.status >= 500 ? -1 : 0;
    }
    int64_t id = store_bind(q, "it", app, sub->image) ? store_read_integer(q, 0) : -1;
    if (id == 0) {
        return create_build(s, app, sub, file);
    }
    if (id > 0 && sub->version[0]) {
        q = store_get_statement(s, "UPDATE build SET version = ?2 WHERE id = ?1 AND version = ''");
        return store_bind(q, "it", id, sub->version) && store_run(q) ? id : -1;
    }
    return id;
}

/* ---- Rows. */

static int compare_rows(const void *left, const void *right)
{
    const packed_row *a = left, *b = right;
    return (a->function > b->function) - (a->function < b->function);
}

/* Merge rows of the same function, which occur if two modules have the same image id.  Returns the
 * number of rows, or UINT32_MAX if a sum overflows. */
static uint32_t merge_rows(packed_row *rows, uint32_t count)
{
    uint32_t used = 0;

    qsort(rows, count, sizeof *rows, compare_rows);
    for (uint32_t i = 0; i < count; i++) {
        if (used == 0 || rows[used - 1].function != rows[i].function) {
            rows[used++] = rows[i];
            continue;
        }
        packed_row *row = &rows[used - 1];
        for (int k = 0; k < 3; k++) {
            if (rows[i].values[k] > UINT64_MAX - row->values[k]) {
                return UINT32_MAX;
            }
            row->values[k] += rows[i].values[k];
        }
        row->max_ns = rows[i].max_ns > row->max_ns ? rows[i].max_ns : row->max_ns;
    }
    return used;
}

/* Fill numbers[] and rows[], whose indices are those of the run's rows.  False if the database
 * failed. */
static bool number_rows(store *s, build_map *map, submission *sub, uint32_t *numbers,
                        packed_row *rows)
{
    const wire_run *run = &sub->run;

    for (uint32_t i = 0; i < run->module_count; i++) {
        const wire_module *m = &run->modules[i];
        int64_t module = build_map_number_module(s, map, m);
        for (uint32_t k = 0; k < m->row_count; k++) {
            uint32_t at = m->first_row + k;
            const wire_row *row = &run->rows[at];
            uint32_t number = module < 0
                                  ? NO_FUNCTION
                                  : build_map_number_function(s, map, (uint32_t)module, row->rva);
            if (number == NO_FUNCTION) {
                return false;
            }
            numbers[at] = number;
            rows[at] =
                (packed_row){ number, { row->calls, row->total_ns, row->self_ns }, row->max_ns };
            sub->need_names |= !map->named[number];
        }
    }
    return true;
}

static void pack_callers(byte_buffer *out, const wire_run *run, const uint32_t *numbers)
{
    for (uint32_t i = 0; i < run->caller_count; i++) {
        const wire_caller *c = &run->callers[i];
        buffer_append_number(out, c->caller == WIRE_NO_ROW ? 0 : numbers[c->caller] + UINT64_C(1));
        buffer_append_number(out, numbers[c->callee]);
        buffer_append_number(out, c->calls);
    }
}

static bool insert_labels(store *s, int64_t run, const submission *sub)
{
    for (uint32_t i = 0; i < sub->label_count; i++) {
        sqlite3_stmt *q = store_get_statement(s, "INSERT OR REPLACE INTO label VALUES(?1, ?2, ?3)");
        if (!store_bind(q, "itt", run, sub->labels[i].key, sub->labels[i].value) || !store_run(q)) {
            return false;
        }
    }
    return true;
}

static bool insert_run(store *s, submission *sub, int64_t app, int64_t build, uint32_t row_count,
                       const byte_buffer *rows, const byte_buffer *callers)
{
    const wire_run *run = &sub->run;
    int64_t client = find_or_create_client(s, app, sub);
    sqlite3_stmt *q = store_get_statement(
        s, "INSERT INTO run(uuid, sequence, app, build, client, start_ns, end_ns, received_ns, "
           "state, timed, hooked, unhooked, row_count, every_s, shard) "
           "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, "
           "CASE WHEN ?15 > 0 THEN ?5 % ?15 END)");

    if (client < 0 ||
        !store_bind(q, "biiiiiiiiiiiiii", run->uuid, sizeof run->uuid, sub->sequence, app, build,
                    client, (int64_t)run->start_ns, (int64_t)run->end_ns, sub->received_ns,
                    (int64_t)run->state, (int64_t)(run->flags & WIRE_TIMED), (int64_t)run->hooked,
                    (int64_t)run->unhooked, (int64_t)row_count, sub->every_seconds,
                    (int64_t)s->shard_count) ||
        !store_run(q)) {
        return false;
    }
    int64_t id = sqlite3_last_insert_rowid(s->db);
    q = store_get_statement(s, "INSERT INTO counts VALUES(?1, ?2, ?3)");
    if (!store_bind(q, "ibb", id, rows->data, rows->used, callers->data, callers->used) ||
        !store_run(q)) {
        return false;
    }
    return insert_labels(s, id, sub);
}

static bool store_rows(store *s, submission *sub, int64_t app, int64_t build, build_map *map)
{
    const wire_run *run = &sub->run;
    uint32_t *numbers = calloc((size_t)run->row_count + 1, sizeof *numbers);
    packed_row *rows = calloc((size_t)run->row_count + 1, sizeof *rows);
    byte_buffer packed = { 0 }, callers = { 0 };
    bool ok = numbers && rows && number_rows(s, map, sub, numbers, rows);

    if (ok) {
        uint32_t count = merge_rows(rows, run->row_count);
        if (count == UINT32_MAX) {
            refuse_request(&sub->result, 422, "the counts of a function do not fit into 64 bits");
        } else {
            pack_rows(&packed, rows, count, run->flags & WIRE_TIMED);
            pack_callers(&callers, run, numbers);
            ok = !packed.failed && !callers.failed &&
                 insert_run(s, sub, app, build, count, &packed, &callers);
        }
    }
    buffer_free(&packed);
    buffer_free(&callers);
    free(numbers);
    free(rows);
    return ok;
}

/* ---- Submissions. */

/* Times of 64 bits have years from 1677 to 2262, which always fit. */
static const char *format_time(char out[24], int64_t ns)
{
    time_t seconds = (time_t)(ns / 1000000000);
    struct tm parts = { 0 };

    gmtime_r(&seconds, &parts);
    strftime(out, 24, "%Y-%m-%d %H:%M:%S", &parts);
    return out;
}

static bool check_time(submission *sub)
{
    char began[24], ended[24], now[24];
    int64_t start = (int64_t)sub->run.start_ns, end = (int64_t)sub->run.end_ns;

    if (start > sub->received_ns + MAX_AHEAD_NS || start < MIN_START_NS || end < start ||
        end > sub->received_ns + MAX_AHEAD_NS) {
        return refuse_request(
            &sub->result, 422,
            "the record says that the run began at %s and ended at %s (UTC), but it is %s: set the "
            "clock of the test machine",
            format_time(began, start), format_time(ended, end), format_time(now, sub->received_ns));
    }
    return true;
}

/* A run is sent either whole or in increments; both would count its calls twice. */
static bool check_form(store *s, submission *sub)
{
    sqlite3_stmt *q = store_get_statement(
        s, "SELECT count(*) FROM seen WHERE uuid = ?1 AND (sequence = 0) <> (?2 = 0)");
    int64_t others = store_bind(q, "bi", sub->run.uuid, (size_t)16, sub->sequence)
                         ? store_read_integer(q, -1)
                         : -1;

    if (others < 0) {
        return refuse_for_database(&sub->result, s);
    }
    return others == 0 ||
           refuse_request(
               &sub->result, 409,
               sub->sequence ? "the whole record of this run is stored: send no increments of it"
                             : "this run was sent in increments while it ran, and they are stored: "
                               "its whole record cannot be added to them");
}

/* True if the submission is not stored yet.  Otherwise its result is 200 (the same content is
 * stored), 409 (other content), or a failure of the database. */
static bool check_unseen(store *s, submission *sub)
{
    sqlite3_stmt *q =
        store_get_statement(s, "SELECT checksum FROM seen WHERE uuid = ?1 AND sequence = ?2");
    int step = store_bind(q, "bi", sub->run.uuid, (size_t)16, sub->sequence) ? sqlite3_step(q)
                                                                             : SQLITE_ERROR;

    if (step == SQLITE_ROW) {
        bool same = sqlite3_column_bytes(q, 0) == SHA256_BYTES &&
                    memcmp(sqlite3_column_blob(q, 0), sub->checksum, SHA256_BYTES) == 0;
        if (same) {
            sub->result.status = 200;
        } else {
            refuse_request(&sub->result, 409,
                           "a run with this UUID but other contents was stored before: it is not "
                           "changed; send each run once, as its record was written");
        }
    } else if (step != SQLITE_DONE) {
        refuse_for_database(&sub->result, s);
    }
    sqlite3_reset(q);
    return step == SQLITE_DONE;
}

static bool mark_seen(store *s, const submission *sub)
{
    sqlite3_stmt *q = store_get_statement(s, "INSERT INTO seen VALUES(?1, ?2, ?3)");
    return store_bind(q, "bib", sub->run.uuid, (size_t)16, sub->sequence, sub->checksum,
                      (size_t)SHA256_BYTES) &&
           store_run(q);
}

static bool find_image(submission *sub, const wire_module **out)
{
    const wire_run *from = sub->run.modules ? &sub->run : &sub->names;
    const wire_module *module = wire_find_main(from);

    if (!module || !module->image[0]) {
        return refuse_request(
            &sub->result, 422,
            "the record has no image id of the program: link it with "
            "-Wl,--build-id, or with a PDB, so that its builds can be distinguished");
    }
    memcpy(sub->image, module->image, sizeof sub->image);
    *out = module;
    return true;
}

static bool store_submission(store *s, submission *sub, const wire_module *program)
{
    int64_t app = find_or_create_app(s, sub->app);
    int64_t build = app < 0 ? -1 : find_or_create_build(s, app, sub, program->file);

    if (build <= 0) {
        return build == 0;
    }
    build_map *map = build_map_get(s, build);
    bool ok =
        map && (!sub->names.modules || store_names(s, map, &sub->names, sub->registers_build));
    if (ok && sub->registers_build) {
        sqlite3_stmt *q = store_get_statement(s, "UPDATE build SET registered = 1 WHERE id = ?1");
        ok = store_bind(q, "i", build) && store_run(q);
    }
    ok = ok && (!sub->run.modules || store_rows(s, sub, app, build, map));
    /* That is no failure of the database, for which the other submissions would be refused too. */
    if (!ok && map && build_map_is_full(map)) {
        refuse_request(&sub->result, 413,
                       "build %.80s has as many modules or functions as a build may have: is a "
                       "client sending other numbers than those of a program?",
                       sub->image);
        return true;
    }
    if (!ok || sub->result.status) {
        return ok;
    }
    sqlite3_stmt *q = store_get_statement(s, "UPDATE build SET function_count = ?2 WHERE id = ?1");
    return store_bind(q, "ii", build, (int64_t)map->count) && store_run(q) &&
           (!sub->run.modules || mark_seen(s, sub));
}

/* Store the kit of a known build, and replace an older kit. */
static bool store_kit(store *s, submission *sub)
{
    sqlite3_stmt *q = store_get_statement(
        s,
        "SELECT build.id FROM build JOIN app ON app.id = build.app WHERE app.name = ?1 AND image = "
        "?2");
    int64_t build = store_bind(q, "tt", sub->app, sub->image) ? store_read_integer(q, 0) : -1;

    if (build == 0) {
        refuse_request(&sub->result, 404,
                       "the app has no build %.80s: register it first (hotfn push --build)",
                       sub->image);
        return true;
    }
    q = store_get_statement(s, "INSERT OR REPLACE INTO kit VALUES(?1, ?2)");
    if (build < 0 || !store_bind(q, "ib", build, sub->kit, sub->kit_bytes) || !store_run(q)) {
        return refuse_for_database(&sub->result, s);
    }
    sub->result.status = 201;
    return true;
}

bool ingest_submission(store *s, submission *sub)
{
    const wire_module *program = NULL;

    sub->result = (refusal){ 0 };
    if (sub->kit) {
        return store_kit(s, sub);
    }
    if (!find_image(sub, &program)) {
        return true;
    }
    if (sub->run.modules && (!check_time(sub) || !check_unseen(s, sub) || !check_form(s, sub))) {
        return sub->result.status < 500;
    }
    if (!store_submission(s, sub, program)) {
        if (sub->result.status == 0) {
            refuse_for_database(&sub->result, s);
        }
        return false;
    }
    if (sub->result.status == 0) {
        sub->result.status = 201;
    }
    return true;
}

/* A refused submission leaves nothing behind, neither functions nor an app. */
static bool ingest_separately(store *s, submission *sub)
{
    if (!store_run(store_get_statement(s, "SAVEPOINT one"))) {
        return refuse_for_database(&sub->result, s);
    }
    bool ok = ingest_submission(s, sub);
    if (!ok || sub->result.status != 201) {
        build_map_free_all(s);
        store_run(store_get_statement(s, "ROLLBACK TO one"));
    }
    return store_run(store_get_statement(s, "RELEASE one")) && ok;
}

/* The functions of a build are numbered by one writer at a time.  If another writer has stored or
 * deleted something since, the cached build maps of this writer may be stale. */
static bool forget_changed_builds(store *s)
{
    char own[33], last[33];

    format_hex(own, s->writer, sizeof s->writer);
    if (!store_get_setting(s, "writer", last, sizeof last)) {
        return false;
    }
    if (strcmp(own, last) == 0) {
        return true;
    }
    build_map_free_all(s);
    return store_set_setting(s, "writer", own);
}

void ingest_batch(store *s, submission **list, uint32_t count)
{
    refusal why = { 0 };
    bool ok = store_run(store_get_statement(s, "BEGIN IMMEDIATE")) && forget_changed_builds(s);

    if (!ok) {
        refuse_for_database(&why, s);
    }
    for (uint32_t i = 0; i < count && ok; i++) {
        ok = ingest_separately(s, list[i]);
        why = ok ? why : list[i]->result;
    }
    if (ok && !store_run(store_get_statement(s, "COMMIT"))) {
        ok = refuse_for_database(&why, s);
    }
    if (!ok) {
        build_map_free_all(s);
        if (!sqlite3_get_autocommit(s->db)) {
            store_execute(s, "ROLLBACK");
        }
        for (uint32_t i = 0; i < count; i++) {
            list[i]->result = why;
        }
    }
}
