/* SPDX-License-Identifier: MIT */
/* Runs a command with its output discarded and prints its wall nanoseconds and peak memory in
 * bytes.  This program is small, because the peak of a process includes the memory that its parent
 * had at the fork. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv)
{
    long long begin = now_ns();
    struct rusage usage;
    int status = 1;
    pid_t child = argc > 1 ? fork() : -1;

    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, 1);
        dup2(nowhere, 2);
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &usage) < 0) {
        return 1;
    }
    printf("%lld %lld\n", now_ns() - begin, usage.ru_maxrss * 1024LL);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
