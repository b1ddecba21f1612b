/* SPDX-License-Identifier: MIT */
/* Runs a command on one processor and writes to a file how long it took: its processor time and
 * what else happened on that processor meanwhile, in nanoseconds.
 *
 *     cpu_of FILE PROCESSOR COMMAND ...
 *
 * FILE receives: processor time of the command, of others, stolen time, elapsed time. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct reading {
    uint64_t busy, stolen, now;
} reading;

static uint64_t in_ns(uint64_t seconds, uint64_t rest)
{
    return seconds * 1000000000u + rest;
}

/* proc(5), /proc/stat: user nice system idle iowait irq softirq steal, in units of _SC_CLK_TCK. */
static reading read_processor(int number)
{
    FILE *stat = fopen("/proc/stat", "r");
    uint64_t unit = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    unsigned long long v[8];
    reading r = { 0 };
    struct timespec t;
    char line[512];
    int cpu;

    while (stat && fgets(line, sizeof line, stat)) {
        if (sscanf(line, "cpu%d %llu %llu %llu %llu %llu %llu %llu %llu", &cpu, &v[0], &v[1], &v[2],
                   &v[3], &v[4], &v[5], &v[6], &v[7]) == 9 &&
            cpu == number) {
            r.busy = (v[0] + v[1] + v[2] + v[5] + v[6]) * unit;
            r.stolen = v[7] * unit;
        }
    }
    if (stat) {
        fclose(stat);
    }
    clock_gettime(CLOCK_MONOTONIC, &t);
    r.now = in_ns((uint64_t)t.tv_sec, (uint64_t)t.tv_nsec);
    return r;
}

int main(int argc, char **argv)
{
    struct rusage used;
    uint64_t own, busy;
    cpu_set_t set;
    int status, cpu;
    FILE *out;

    if (argc < 4) {
        fprintf(stderr, "usage: cpu_of FILE PROCESSOR COMMAND ...\n");
        return 2;
    }
    cpu = atoi(argv[2]);
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    reading before = read_processor(cpu);
    pid_t child = fork();
    if (child == 0) {
        sched_setaffinity(0, sizeof set, &set);
        execvp(argv[3], argv + 3);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &used) != child) {
        perror("cpu_of");
        return 1;
    }
    reading after = read_processor(cpu);
    own = in_ns((uint64_t)used.ru_utime.tv_sec, (uint64_t)used.ru_utime.tv_usec * 1000) +
          in_ns((uint64_t)used.ru_stime.tv_sec, (uint64_t)used.ru_stime.tv_usec * 1000);
    busy = after.busy - before.busy;
    out = fopen(argv[1], "w");
    if (!out ||
        fprintf(out, "%ju %ju %ju %ju\n", (uintmax_t)own, (uintmax_t)(busy > own ? busy - own : 0),
                (uintmax_t)(after.stolen - before.stolen),
                (uintmax_t)(after.now - before.now)) < 0 ||
        fclose(out) != 0) {
        perror(argv[1]);
        return 1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
