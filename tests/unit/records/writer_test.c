/* SPDX-License-Identifier: MIT */
/* Writing a finished record: a failure names the file and leaves no file behind. */
#include "records/sample.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static hotfn_status finish_record(hfn_live *live, const char *path, hotfn_error *err)
{
    return hfn_live_finish(live, path, HOTFN_RECORD_FINISHED, 0, NULL, NULL, err);
}

static uint32_t count_files_in_folder_of(const char *path)
{
    char folder[128];
    uint32_t count = 0;
    DIR *dir;

    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = 0;
    dir = opendir(folder);
    while (readdir(dir)) {
        count++;
    }
    closedir(dir);
    return count;
}

static void full_disk_is_an_error_and_leaves_no_file(void)
{
    hfn_live *live = sample_live(NULL);
    const char *path = sample_path("full.hfr");
    uint32_t files = count_files_in_folder_of(path);
    struct rlimit before, small = { 2048, RLIM_INFINITY };
    hotfn_error err = HOTFN_ERROR_INIT;

    getrlimit(RLIMIT_FSIZE, &before);
    small.rlim_max = before.rlim_max;
    setrlimit(RLIMIT_FSIZE,
              &small); /* acts like a full disk: a write fails with EFBIG and raises SIGXFSZ */
    CHECK_EQ_I64(finish_record(live, path, &err), HOTFN_E_IO);
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK_STR(err.file, path);
    CHECK(strstr(err.text, "cannot be written") != NULL);
    CHECK_EQ_U64(count_files_in_folder_of(path), files);
    CHECK_EQ_I64(finish_record(live, path, &err), HOTFN_OK);
    CHECK_EQ_U64(count_files_in_folder_of(path), files + 1);
    hfn_live_close(live);
}

static void a_failed_write_keeps_the_older_record(void)
{
    hfn_live *live = sample_live(NULL);
    const char *path = sample_path("older.hfr");
    struct rlimit before, small;
    struct stat old_file, new_file;

    CHECK_EQ_I64(finish_record(live, path, NULL), HOTFN_OK);
    stat(path, &old_file);
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 2048;
    setrlimit(RLIMIT_FSIZE, &small);
    CHECK_EQ_I64(finish_record(live, path, NULL), HOTFN_E_IO);
    setrlimit(RLIMIT_FSIZE, &before);
    stat(path, &new_file);
    CHECK(old_file.st_ino == new_file.st_ino && old_file.st_size == new_file.st_size);
    hfn_live_close(live);
}

static void errors_name_the_file_that_cannot_be_written(void)
{
    static const char *const places[] = { "/none/r.hfr", "/proc/r.hfr", "/dev", "/dev/tty",
                                          "/dev/full" };
    hfn_live *live = sample_live(NULL);

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        hotfn_error err = HOTFN_ERROR_INIT;

        CHECK_EQ_I64(finish_record(live, places[i], &err), HOTFN_E_IO);
        CHECK_STR(err.file, places[i]);
        CHECK(err.text[0]);
    }
    hfn_live_close(live);
}

static void writing_to_dev_null_keeps_the_device(void)
{
    hfn_live *live = sample_live(NULL);
    struct stat file;

    CHECK_EQ_I64(finish_record(live, "/dev/null", NULL), HOTFN_OK);
    CHECK_EQ_I64(stat("/dev/null", &file), 0);
    CHECK(S_ISCHR(file.st_mode));
    hfn_live_close(live);
}

static void the_finished_file_replaces_a_link_to_the_live_record(void)
{
    hfn_live *live = sample_live(NULL);
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    const char *path = sample_path("linked.hfr");
    hotfn_record *record = NULL;
    struct stat file;
    char target[64];

    snprintf(target, sizeof target, "/proc/%d/fd/%d", (int)getpid(), hfn_live_get_fd(live));
    CHECK_EQ_I64(symlink(target, path), 0);
    CHECK_EQ_I64(hotfn_record_open(&record, path, NULL, NULL), HOTFN_OK);
    hotfn_record_get_info(record, &info);
    CHECK_EQ_U64(info.state, HOTFN_RECORD_LIVE);
    hotfn_record_close(record);
    CHECK_EQ_I64(finish_record(live, path, NULL), HOTFN_OK);
    lstat(path, &file);
    CHECK(S_ISREG(file.st_mode));
    hfn_live_close(live);
    CHECK_EQ_I64(hotfn_record_open(&record, path, NULL, NULL), HOTFN_OK);
    hotfn_record_get_info(record, &info);
    CHECK_EQ_U64(info.state, HOTFN_RECORD_FINISHED);
    hotfn_record_close(record);
    unlink(path);
    CHECK_EQ_I64(symlink(target, path), 0);
    CHECK_EQ_I64(hotfn_record_open(&record, path, NULL, &err), HOTFN_E_IO);
    CHECK(strstr(err.text, "--durable") != NULL);
}

static void the_signal_mask_of_the_caller_is_restored(void)
{
    hfn_live *live = sample_live(NULL);
    sigset_t before, after;

    sigemptyset(&before);
    sigaddset(&before, SIGUSR2);
    sigprocmask(SIG_SETMASK, &before, NULL);
    CHECK_EQ_I64(finish_record(live, sample_path("mask.hfr"), NULL), HOTFN_OK);
    sigprocmask(SIG_SETMASK, NULL, &after);
    CHECK(sigismember(&after, SIGUSR2) == 1 && sigismember(&after, SIGXFSZ) == 0);
    hfn_live_close(live);
}

/* A killed writer leaves its temporary file behind, and its process id may be used again. */
static void a_temporary_file_of_a_killed_writer_is_skipped(void)
{
    hfn_live *live = sample_live(NULL);
    const char *path = sample_path("abandoned.hfr");
    uint32_t files = count_files_in_folder_of(path);
    char abandoned[160];
    FILE *file;

    snprintf(abandoned, sizeof abandoned, "%s.%lx.0.tmp", path, (unsigned long)getpid());
    file = fopen(abandoned, "w");
    CHECK(file && fclose(file) == 0);
    CHECK_EQ_I64(finish_record(live, path, NULL), HOTFN_OK);
    CHECK_EQ_U64(count_files_in_folder_of(path), files + 2);
    CHECK_EQ_I64(unlink(abandoned), 0);
    hfn_live_close(live);
}

static const check_test tests[] = {
    CHECK_TEST(full_disk_is_an_error_and_leaves_no_file),
    CHECK_TEST(a_failed_write_keeps_the_older_record),
    CHECK_TEST(errors_name_the_file_that_cannot_be_written),
    CHECK_TEST(writing_to_dev_null_keeps_the_device),
    CHECK_TEST(the_finished_file_replaces_a_link_to_the_live_record),
    CHECK_TEST(the_signal_mask_of_the_caller_is_restored),
    CHECK_TEST(a_temporary_file_of_a_killed_writer_is_skipped),
};
CHECK_MAIN(tests)
