/* SPDX-License-Identifier: MIT */
/* A child process that the tests of os/remote.h stop, and the steps that all of them take. */
#ifndef HFN_TESTS_REMOTE_TARGET_H
#define HFN_TESTS_REMOTE_TARGET_H

#include "os/remote.h"

#include "base/memory.h"
#include "check.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STOP_NS = 2000000000 };

/* Memory that the child shares with the test. */
static inline void *share_bytes(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(at != MAP_FAILED);
    return at;
}

static inline uint32_t start_target(void (*run)(void *user), void *user)
{
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run(user);
        _exit(0);
    }
    CHECK(pid > 0);
    return (uint32_t)pid;
}

/* Returns the status of waitpid. */
static inline int end_target(uint32_t pid, int signal_number)
{
    int status = -1;

    if (signal_number) {
        kill((pid_t)pid, signal_number);
    }
    waitpid((pid_t)pid, &status, 0);
    return status;
}

static inline hfn_remote remote_of(uint32_t pid)
{
    return (hfn_remote){
        .env = hfn_env_fill(NULL), .pid = pid, .is_child = true, .memory = HFN_OS_NO_FILE
    };
}

/* Release every thread, including threads that have not stopped yet. */
static inline void release_target(hfn_remote *remote)
{
    while (!hfn_os_remote_resume(remote)) {
        usleep(1000);
    }
    hfn_os_remote_close(remote);
}

#endif
