/* SPDX-License-Identifier: MIT */
/* A call of the system that a signal ended is made again: the disk is not full, the record not unreadable.  Ours stand
 * in the place of the C library's, and end so as often as they are told. */
#include "records/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/syscall.h>

enum { OPEN, SPACE, FLUSH, CLOSE, CALLS };
static uint32_t made[CALLS],
    signals[CALLS]; /* how often each was called, and how many signals still come */

static bool interrupted(int which)
{
    made[which]++;
    if (signals[which] == 0) {
        return false;
    }
    signals[which]--;
    errno = EINTR;
    return true;
}

static void expect(int which, uint32_t signals_to_come)
{
    made[which] = 0;
    signals[which] = signals_to_come;
}

int open(const char *path, int flags, ...)
{
    va_list more;
    int mode;

    va_start(more, flags);
    mode = flags & O_CREAT ? va_arg(more, int) : 0;
    va_end(more);
    return !(flags & O_CREAT) && interrupted(OPEN)
               ? -1
               : (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

/* A large piece meets a signal each time, and nothing of it is done. */
int posix_fallocate(int fd, off_t at, off_t byte_count)
{
    (void)fd, (void)at;
    return interrupted(SPACE) || byte_count > 16 << 20 ? EINTR : 0;
}

int fdatasync(int fd)
{
    (void)fd;
    return interrupted(FLUSH) ? -1 : 0;
}

int close(int fd)
{
    int failed = (int)syscall(SYS_close, fd);

    return interrupted(CLOSE) ? -1 : failed;
}

static void a_durable_record_is_made_although_signals_come(void)
{
    hotfn_live_options o = HOTFN_LIVE_OPTIONS_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_live *live = NULL;

    o.durable_path = sample_path("durable.hfr");
    expect(SPACE, 5);
    if (!CHECK_EQ_I64(hotfn_live_create(&live, &o, NULL, &err), HOTFN_OK)) {
        printf("# %s\n", err.text);
        return;
    }
    CHECK(made[SPACE] > 5);
    expect(SPACE, 1);
    sample_add_modules(live);
    CHECK(made[SPACE] > 1);
    hotfn_live_close(live);
}

static void a_finished_record_is_written_and_read_although_signals_come(void)
{
    hotfn_live *live = sample_live(NULL);
    hotfn_record *record = NULL;
    hotfn_error err = HOTFN_ERROR_INIT;
    char from[128];

    snprintf(from, sizeof from, "%s", sample_path("finished.hfr"));
    sample_count(live, 0, 7, 7, 0, 42);
    CHECK_EQ_I64(hotfn_live_finish(live, from, HOTFN_RECORD_FINISHED, 0, NULL, NULL, NULL),
                 HOTFN_OK);
    hotfn_live_close(live);
    expect(OPEN, 2);
    expect(FLUSH, 2);
    expect(CLOSE, 9);
    CHECK_EQ_I64(hotfn_record_repair(from, sample_path("again.hfr"), NULL, 0, NULL, &err),
                 HOTFN_OK);
    CHECK_EQ_U64(made[OPEN], 3);
    CHECK_EQ_U64(made[FLUSH], 3);
    CHECK(made[CLOSE] > 0);
    if (CHECK_EQ_I64(hotfn_record_open(&record, sample_path("again.hfr"), NULL, &err), HOTFN_OK)) {
        CHECK_EQ_U64(sample_get(record, 0).calls, 42);
    } else {
        printf("# %s\n", err.text);
    }
    hotfn_record_close(record);
}

static const check_test tests[] = {
    CHECK_TEST(a_durable_record_is_made_although_signals_come),
    CHECK_TEST(a_finished_record_is_written_and_read_although_signals_come),
};
CHECK_MAIN(tests)
