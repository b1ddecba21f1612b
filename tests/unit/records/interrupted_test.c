/* SPDX-License-Identifier: MIT */
/* A system call that a signal interrupts is repeated and is not reported as an error.  The
 * functions here replace those of the C library; they fail with EINTR as often as a test
 * demands. */
#include "records/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/syscall.h>

enum { OPEN, SPACE, FLUSH, CLOSE, CALLS };
static uint32_t calls_made[CALLS], interruptions_left[CALLS];

static bool is_interrupted(int which)
{
    calls_made[which]++;
    if (interruptions_left[which] == 0) {
        return false;
    }
    interruptions_left[which]--;
    errno = EINTR;
    return true;
}

static void interrupt_next_calls(int which, uint32_t count)
{
    calls_made[which] = 0;
    interruptions_left[which] = count;
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

/* The allocation of a large range never succeeds: a signal always arrives before its end. */
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
    interrupt_next_calls(SPACE, 5);
    if (!CHECK_EQ_I64(hfn_live_create(&live, &o, NULL, &err), HOTFN_OK)) {
        printf("# %s\n", err.text);
        return;
    }
    CHECK(calls_made[SPACE] > 5);
    interrupt_next_calls(SPACE, 1);
    sample_add_modules(live);
    CHECK(calls_made[SPACE] > 1);
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
    interrupt_next_calls(OPEN, 2);
    interrupt_next_calls(FLUSH, 2);
    interrupt_next_calls(CLOSE, 9);
    CHECK_EQ_I64(hotfn_record_repair(from, sample_path("again.hfr"), NULL, 0, NULL, &err),
                 HOTFN_OK);
    CHECK_EQ_U64(calls_made[OPEN], 3);
    CHECK_EQ_U64(calls_made[FLUSH], 3);
    CHECK(calls_made[CLOSE] > 0);
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
