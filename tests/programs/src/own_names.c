/* SPDX-License-Identifier: MIT */
/* For kinds_test.py: a program that exports functions with names of the C library's, as
 * allocators, runtimes and sanitizers do. Each of them ends the process if it is called before
 * the program's constructor has run. */
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

static int ready;
int puts(const char *text);

static inline long kernel(long number, long a, long b, long c)
{
    long got;
    __asm__ volatile("syscall" : "=a"(got) : "0"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return got;
}

__attribute__((noinline)) static void check(const char *name)
{
    if (!ready) {
        kernel(SYS_write, 2, (long)name, 1);
        kernel(SYS_exit_group, 99, 0, 0);
    }
}

__attribute__((constructor)) static void begin(void)
{
    ready = 1;
}

/* The results are wrong on purpose: code that calls these functions instead of the C library's
 * fails. */
#define WRONG(name)                                                                                \
    long name(void);                                                                               \
    long name(void)                                                                                \
    {                                                                                              \
        check(#name);                                                                              \
        return 77;                                                                                 \
    }
WRONG(qsort)
WRONG(getpid)
WRONG(open)
WRONG(open64)
WRONG(close)
WRONG(pread)
WRONG(pread64)
WRONG(readlink)
WRONG(realpath)
WRONG(stat)
WRONG(stat64)
WRONG(fstat)
WRONG(fstat64)
WRONG(snprintf)
WRONG(vsnprintf)
WRONG(dprintf)
WRONG(sscanf)
WRONG(__isoc99_sscanf)
WRONG(strerror)
WRONG(strchr)
WRONG(strrchr)
WRONG(strncmp)
WRONG(memchr)
WRONG(kill)
WRONG(sysconf)
WRONG(syscall)
WRONG(getauxval)
WRONG(clock_gettime)
WRONG(pthread_once)
WRONG(dlsym)
WRONG(munmap)
WRONG(mmap)
WRONG(mmap64)
WRONG(realloc)

__attribute__((noinline)) int counted(int x)
{
    return x * 3 + 1;
}

int main(void)
{
    int all = 0;
    for (int i = 0; i < 500; i++)
        all += counted(i);
    puts(all > 0 && ready ? "ready" : "wrong");
    return 0;
}
