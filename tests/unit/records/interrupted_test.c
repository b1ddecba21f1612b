/* SPDX-License-Identifier: MIT */
/* System calls that a signal interrupts are made again, and are not reported as errors.  The
 * functions here replace those of the C library and fail with EINTR as often as a test asks for. */
#include "records/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/syscall.h>

enum { OPEN, SPACE, FLUSH, CLOSE, CALLS };
static uint32_t made[CALLS],
    signals[CALLS]; /* calls made, and interruptions that are still to come */

static bool is_interrupted(int which)
{
    made[which]++;
    if (signals[which] == 0) {
        return false;
    }
    signals[which]--;
    errno = EINTR;
    return true;
}

static void expect_signals(int which, uint32_t signals_to_come)
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
    return !(flags & O_CREAT) && is_interrupted(OPEN)
               ? -1
               : (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

/* A large range is interrupted each time before any of it is allocated. */
int posix_fallocate(int fd, off_t at, off_t byte_count)
{
    (void)fd, (void)at;
    return is_interrupted(SPACE) || byte_count > 16 << 20 ? EINTR : 0;
}

int fdatasync(int fd)
{
    (void)fd;
    return is_interrupted(FLUSH) ? -1 : 0;
}

int close(int fd)
{
    int failed = (int)syscall(SYS_close, fd);

    return is_interrupted(CLOSE) ? -1 : failed;
}

static void a_durable_record_is_created_despite_signals(void)
{
    hfn_live_options o = { 0 };
    hotfn_error err = HOTFN_ERROR_INIT;
    hfn_live *live = NULL;

    o.durable_path = sample_path("durable.hfr");
    expect_signals(SPACE, 5);
    if (!CHECK_EQ_I64(hfn_live_create(&live, &o, NULL, &err), HOTFN_OK)) {
        printf("# %s\n", err.text);
        return;
    }
    CHECK(made[SPACE] > 5);
    expect_signals(SPACE, 1);
    sample_add_modules(live);
    CHECK(made[SPACE] > 1);
    hfn_live_close(live);
}

static void a_finished_record_is_written_and_read_despite_signals(void)
{
    hfn_live *live = sample_live(NULL);
    hotfn_record *record = NULL;
    hotfn_error err = HOTFN_ERROR_INIT;
    char from[128];

    snprintf(from, sizeof from, "%s", sample_path("finished.hfr"));
    sample_count(live, 0, 7, 7, 0, 42);
    CHECK_EQ_I64(hfn_live_finish(live, from, HOTFN_RECORD_FINISHED, 0, NULL, NULL, NULL), HOTFN_OK);
    hfn_live_close(live);
    expect_signals(OPEN, 2);
    expect_signals(FLUSH, 2);
    expect_signals(CLOSE, 9);
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
    CHECK_TEST(a_durable_record_is_created_despite_signals),
    CHECK_TEST(a_finished_record_is_written_and_read_despite_signals),
};
CHECK_MAIN(tests)
