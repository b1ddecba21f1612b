/* SPDX-License-Identifier: MIT */
/* Live records: created, joined by another process, read while live, finished, also after the
 * target was killed. */
#include "records/sample.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static hotfn_record *open_record(const char *path)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_record *record = NULL;

    if (!CHECK_EQ_I64(hotfn_record_open(&record, path, NULL, &err), HOTFN_OK)) {
        printf("# %s: %llu: %s\n", err.file, (unsigned long long)err.offset, err.text);
        exit(1);
    }
    return record;
}

static const char *live_path(const hfn_live *live)
{
    static char path[64];

    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), hfn_live_get_fd(live));
    return path;
}

static void live_record_reads_like_a_finished_one(void)
{
    hfn_live *live = sample_live(NULL);
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    hotfn_record *record;
    hotfn_record_function f;

    sample_count(live, 0, 70, 70, 0, 5);
    sample_count(live, 1, 70, 71, 0, 7);
    sample_count(live, 1, 70, 71, 1, 1);
    record = open_record(live_path(live));
    hotfn_record_get_info(record, &info);
    CHECK_EQ_U64(info.state, HOTFN_RECORD_LIVE);
    CHECK_EQ_U64(info.module_count, 2);
    CHECK_EQ_U64(info.function_count, 5);
    CHECK_EQ_U64(info.thread_count, 2);
    CHECK_STR(info.command, "./game --level 'one two'");
    CHECK_STR(info.directory, "/opt/game");
    f = sample_get(record, 0);
    CHECK_EQ_U64(f.calls, 12);
    CHECK_EQ_U64(f.counted, 1);
    CHECK_STR(f.name, "alpha");
    CHECK_MEM(f.names, "alpha_alias\0alpha_other\0", 25);
    f = sample_get(record, 2);
    CHECK_EQ_U64(f.counted, 0);
    CHECK_STR(f.reason, "too-short");
    CHECK_EQ_U64(f.reason_offset, 3);
    f = sample_get(record, 4);
    CHECK_EQ_U64(f.module, 1);
    CHECK_EQ_U64(f.state, HOTFN_STATE_WAITING);
    hotfn_record_close(record);
    hfn_live_close(live);
}

static void killed_target_loses_no_count(void)
{
    hfn_live *live = sample_live(NULL);
    const char *path = live_path(live);
    hotfn_record *record;
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    pid_t child = fork();

    if (child == 0) {
        hfn_live *joined = NULL;

        if (hfn_live_join(&joined, path, NULL, NULL) != HOTFN_OK) {
            _exit(1);
        }
        if (hfn_live_get_slots(joined, 0)[1] != 1) {
            _exit(2);
        }
        hfn_live_set_module(joined, 1, HOTFN_MODULE_LOADED, 0x7f0000000000, "a note");
        hfn_live_set_function(joined, 1, 0, HOTFN_STATE_REFUSED, HOTFN_REASON_NOT_LOADED, 9);
        sample_count(joined, 0, (uint32_t)getpid(), (uint32_t)getpid(), 1, 1000);
        raise(SIGKILL);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK_EQ_I64(hfn_live_finish(live, sample_path("killed.hfr"), HOTFN_RECORD_KILLED, -SIGKILL,
                                 NULL, NULL, NULL),
                 HOTFN_OK);
    hfn_live_close(live);
    record = open_record(sample_path("killed.hfr"));
    hotfn_record_get_info(record, &info);
    CHECK_EQ_U64(info.state, HOTFN_RECORD_KILLED);
    CHECK_EQ_I64(info.exit_code, -SIGKILL);
    CHECK_EQ_U64(sample_get(record, 1).calls, 1000);
    CHECK_EQ_U64(sample_get(record, 4).state, HOTFN_STATE_REFUSED);
    CHECK_STR(sample_get(record, 4).reason, "not-loaded");
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    hotfn_record_get_module(record, 1, &m);
    CHECK_STR(m.note, "a note");
    CHECK_EQ_U64(m.load_base, 0x7f0000000000);
    hotfn_record_close(record);
}

static void memory_of_a_record_cannot_be_truncated(void)
{
    hfn_live *live = sample_live(NULL);

    CHECK(ftruncate(hfn_live_get_fd(live), 4096) != 0);
    hfn_live_close(live);
}

static void record_of_a_window_is_the_difference_of_two_snapshots(void)
{
    hfn_live *live = sample_live(NULL);
    hfn_snapshot *from = NULL, *to = NULL;
    hotfn_record *record;
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;

    sample_count(live, 0, 1, 1, 0, 100);
    CHECK_EQ_I64(hfn_live_snapshot(&from, live, NULL), HOTFN_OK);
    sample_count(live, 0, 1, 1, 0, 11);
    sample_count(live, 1, 1, 2, 1, 3); /* a row that is not in the first snapshot */
    CHECK_EQ_I64(hfn_live_snapshot(&to, live, NULL), HOTFN_OK);
    sample_count(live, 0, 1, 1, 0, 50);
    CHECK_EQ_I64(
        hfn_live_finish(live, sample_path("window.hfr"), HOTFN_RECORD_FINISHED, 0, from, to, NULL),
        HOTFN_OK);
    record = open_record(sample_path("window.hfr"));
    CHECK_EQ_U64(sample_get(record, 0).calls, 11);
    CHECK_EQ_U64(sample_get(record, 1).calls, 3);
    hotfn_record_get_info(record, &info);
    CHECK_EQ_U64(info.window_start_ns, hfn_snapshot_get_time_ns(from));
    CHECK_EQ_U64(info.window_end_ns, hfn_snapshot_get_time_ns(to));
    hotfn_record_close(record);
    CHECK_EQ_I64(hfn_live_finish(live, sample_path("window.hfr"), HOTFN_RECORD_FINISHED, 0, from,
                                 NULL, NULL),
                 HOTFN_OK);
    record = open_record(sample_path("window.hfr"));
    CHECK_EQ_U64(sample_get(record, 0).calls, 61);
    hotfn_record_close(record);
    hfn_snapshot_destroy(from);
    hfn_snapshot_destroy(to);
    hfn_live_close(live);
}

static void durable_record_of_a_dead_writer_is_broken_and_repairable(void)
{
    const char *path = sample_path("durable.hfr");
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    hotfn_record *record;
    pid_t child = fork();
    char lost[200];

    if (child == 0) {
        sample_count(sample_live(path), 0, 7, 7, 0, 42);
        raise(SIGKILL);
    }
    waitpid(child, NULL, 0);
    record = open_record(path);
    hotfn_record_get_info(record, &info);
    CHECK_EQ_U64(info.state, HOTFN_RECORD_BROKEN);
    CHECK_EQ_U64(sample_get(record, 0).calls, 42);
    hotfn_record_close(record);
    char from[128];
    snprintf(from, sizeof from, "%s", path);
    CHECK_EQ_I64(
        hotfn_record_repair(from, sample_path("repaired.hfr"), lost, sizeof lost, NULL, NULL),
        HOTFN_OK);
    CHECK_STR(lost, "");
    record = open_record(sample_path("repaired.hfr"));
    hotfn_record_get_info(record, &info);
    CHECK_EQ_U64(info.state, HOTFN_RECORD_KILLED);
    CHECK_EQ_U64(sample_get(record, 0).calls, 42);
    CHECK_STR(sample_get(record, 4).reason, "not-loaded");
    hotfn_record_close(record);
}

static void durable_record_is_live_while_its_writer_lives(void)
{
    char path[128];
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hfn_live_options o = { 0 };
    hfn_live *live, *second = NULL;
    hotfn_record *record;

    snprintf(path, sizeof path, "%s", sample_path("held.hfr"));
    live = sample_live(path);
    record = open_record(path);
    hotfn_record_get_info(record, &info);
    CHECK_EQ_U64(info.state, HOTFN_RECORD_LIVE);
    hotfn_record_close(record);
    o.durable_path = path;
    CHECK_EQ_I64(hfn_live_create(&second, &o, NULL, &err), HOTFN_E_IO);
    CHECK(strstr(err.text, "another run") != NULL);
    CHECK_EQ_I64(hfn_live_finish(live, path, HOTFN_RECORD_FINISHED, 3, NULL, NULL, NULL), HOTFN_OK);
    record = open_record(path);
    hotfn_record_get_info(record, &info);
    CHECK_EQ_U64(info.state, HOTFN_RECORD_FINISHED);
    CHECK_EQ_I64(info.exit_code, 3);
    hotfn_record_close(record);
    hfn_live_close(live);
}

static const check_test tests[] = {
    CHECK_TEST(live_record_reads_like_a_finished_one),
    CHECK_TEST(killed_target_loses_no_count),
    CHECK_TEST(memory_of_a_record_cannot_be_truncated),
    CHECK_TEST(record_of_a_window_is_the_difference_of_two_snapshots),
    CHECK_TEST(durable_record_of_a_dead_writer_is_broken_and_repairable),
    CHECK_TEST(durable_record_is_live_while_its_writer_lives),
};
CHECK_MAIN(tests)
