/* SPDX-License-Identifier: MIT */
/* A record is created, counted into, finished, opened, queried, exported and repaired.  No partly
 * written file remains. */
#include "each_failure.h"
#include "profile/timed.h"

#include <hotfn/export.h>
#include <hotfn/lowlevel/counters.h>

static char finished[128], repaired[128], timed[128];

static int32_t swallow(void *user, const void *bytes, size_t byte_count)
{
    (void)bytes;
    *(size_t *)user += byte_count;
    return 0;
}

static hotfn_status write_record(const void *none, const hotfn_env *env, hotfn_error *err)
{
    hfn_live_options o = { 0 };
    hfn_snapshot *from = NULL;
    hfn_live *live = NULL;
    hotfn_status status;

    (void)none;
    o.slot_capacity = 64;
    o.thread_capacity = 4;
    status = hfn_live_create(&live, &o, env, err);
    CHECK((status == HOTFN_OK) == (live != NULL));
    if (status != HOTFN_OK) {
        return status;
    }
    sample_add_modules(live);
    sample_count(live, 0, 7, 7, 0, 10);
    status = hfn_live_snapshot(&from, live, err);
    sample_count(live, 0, 7, 7, 1, 10);
    if (status == HOTFN_OK) {
        status = hfn_live_finish(live, finished, HOTFN_RECORD_FINISHED, 0, from, NULL, err);
    }
    if (status == HOTFN_OK) {
        status = hfn_live_finish(live, finished, HOTFN_RECORD_FINISHED, 0, NULL, NULL, err);
    }
    hfn_snapshot_destroy(from);
    hfn_live_close(live);
    return status;
}

static hotfn_status read_record(const void *none, const hotfn_env *env, hotfn_error *err)
{
    static const char *const formats[] = { "table", "json", "csv" };
    hotfn_record *record = NULL;
    size_t written = 0;
    char lost[64];
    hotfn_status status = hotfn_record_open(&record, finished, env, err);

    (void)none;
    CHECK((status == HOTFN_OK) == (record != NULL));
    for (int i = 0; i < 3 && status == HOTFN_OK; i++) {
        status = hotfn_export(record, formats[i], NULL, swallow, &written, env, err);
    }
    hotfn_record_close(record);
    if (status == HOTFN_OK) {
        status = hotfn_record_repair(finished, repaired, lost, sizeof lost, env, err);
    }
    return status;
}

/* All formats of a timed record, its repair, and a merge with itself. */
static hotfn_status read_timed(const void *none, const hotfn_env *env, hotfn_error *err)
{
    const char *const both[] = { timed, timed };
    hotfn_exporter_info format = HOTFN_EXPORTER_INFO_INIT;
    hotfn_record *record = NULL;
    size_t written = 0;
    char lost[64];
    hotfn_status status = hotfn_record_open(&record, timed, env, err);

    (void)none;
    for (uint32_t i = 0; i < hotfn_exporter_get_count() && status == HOTFN_OK; i++) {
        hotfn_exporter_get(i, &format);
        status = hotfn_export(record, format.name, NULL, swallow, &written, env, err);
    }
    hotfn_record_close(record);
    if (status == HOTFN_OK) {
        status = hotfn_record_repair(timed, repaired, lost, sizeof lost, env, err);
    }
    for (uint32_t mode = 0; mode <= HOTFN_MERGE_MAX && status == HOTFN_OK; mode++) {
        status = hotfn_record_merge(both, 2, repaired, mode, env, err);
    }
    return status;
}

static hotfn_status count(const void *none, const hotfn_env *env, hotfn_error *err)
{
    hotfn_counters *c = NULL;
    hotfn_status status = hotfn_counters_create(&c, 100, 4, env, err);

    (void)none;
    CHECK((status == HOTFN_OK) == (c != NULL));
    hotfn_counters_destroy(c);
    return status;
}

static void writing_survives_every_failure(void)
{
    snprintf(finished, sizeof finished, "%s", sample_path("finished.hfr"));
    fail_each_request(write_record, NULL, 0);
}

static void reading_survives_every_failure(void)
{
    snprintf(repaired, sizeof repaired, "%s", sample_path("repaired.hfr"));
    fail_each_request(read_record, NULL, 0);
}

static void timed_records_survive_every_failure(void)
{
    snprintf(timed, sizeof timed, "%s", sample_path("timed.hfr"));
    free(timed_write(timed, 20, 10));
    fail_each_request(read_timed, NULL, 0);
}

static void counters_survive_every_failure(void)
{
    fail_each_request(count, NULL, 0);
}

static const check_test tests[] = {
    CHECK_TEST(writing_survives_every_failure),
    CHECK_TEST(reading_survives_every_failure),
    CHECK_TEST(timed_records_survive_every_failure),
    CHECK_TEST(counters_survive_every_failure),
};
CHECK_MAIN(tests)
