/* SPDX-License-Identifier: MIT */
/* If a signal interrupts open (of a named pipe, or on a file system that a process serves), the
 * file is opened again.  This test replaces the C library's open. */
#include "base/memory.h"
#include "image/file.h"

#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint32_t opens, signals_left;

int open(const char *path, int flags, ...)
{
    opens++;
    if (signals_left > 0) {
        signals_left--;
        errno = EINTR;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0);
}

static void a_file_is_opened_although_signals_come(void)
{
    hotfn_env env = hfn_env_fill(NULL);
    hotfn_error err = HOTFN_ERROR_INIT;
    hfn_file file;

    signals_left = 2;
    CHECK_EQ_I64(hfn_file_open(&file, "/proc/self/cmdline", &env, &err), HOTFN_OK);
    CHECK_EQ_U64(opens, 3);
    hfn_file_close(&file, &env);
    CHECK_EQ_I64(hfn_file_open(&file, "/none", &env, &err), HOTFN_E_IO);
    CHECK_EQ_U64(opens, 4);
}

static const check_test tests[] = {
    CHECK_TEST(a_file_is_opened_although_signals_come),
};
CHECK_MAIN(tests)
