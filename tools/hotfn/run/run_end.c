/* SPDX-License-Identifier: MIT */
/* How `hotfn run` ends after a child that was killed by a signal. */
#include "run.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* Raise the signal that killed the child.  Only the child leaves a core file. */
static void die_by_signal(int number)
{
    struct rlimit no_core = { 0, 0 };
    sigset_t set;

    setrlimit(RLIMIT_CORE, &no_core);
    signal(number, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    fflush(NULL);
    raise(number);
    _exit(128 + number);
}

int run_end_like_child(int32_t exit_code)
{
    if (exit_code < 0) {
        die_by_signal(-exit_code);
    }
    return exit_code;
}
