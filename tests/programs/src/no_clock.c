/* SPDX-License-Identifier: MIT */
/* For kinds_test.py: a program that forbids itself to read the clock in the middle of its work,
 * by each of the possible calls; for "failed" the call fails. If compiled with RAW, its own code
 * contains the system call, and "raw" executes it. */
#include <linux/seccomp.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

volatile int kept;

__attribute__((noinline)) int counted(int x)
{
    return x * 3 + 1;
}

__attribute__((noinline)) int work(int turns)
{
    int all = 0;
    for (int i = 0; i < turns; i++)
        all += counted(i) & 1;
    kept = all;
    return all;
}

__attribute__((noinline)) void *worker(void *unused)
{
    work(500);
    return unused;
}

__attribute__((noinline)) void *worker_without(void *unused)
{
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
    work(500);
    return unused;
}

#ifdef RAW
/* Never inlined: its caller passes no constants, so all constants of the call are in this
 * function. */
__attribute__((noinline)) long forbid_raw(void)
{
    long answer;
#ifdef __x86_64__
    register long none __asm__("r10") = 0;
    register long nor __asm__("r8") = 0;
    __asm__ volatile("syscall"
                     : "=a"(answer)
                     : "a"(SYS_prctl), "D"(PR_SET_TSC), "S"(PR_TSC_SIGSEGV), "d"(0), "r"(none),
                       "r"(nor)
                     : "rcx", "r11", "memory");
#else
    __asm__ volatile("int $0x80"
                     : "=a"(answer)
                     : "a"(SYS_prctl), "b"(PR_SET_TSC), "c"(PR_TSC_SIGSEGV), "d"(0), "S"(0), "D"(0)
                     : "memory");
#endif
    return answer;
}
#endif

__attribute__((noinline)) void forbid(const char *how)
{
    work(1000);
    usleep(50000); /* the next hook would read the thread's processor time */
    if (strcmp(how, "strict") == 0)
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0);
    else if (strcmp(how, "syscall") == 0)
        syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
    else if (strcmp(how, "seccomp") == 0)
        syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL);
#ifdef RAW
    else if (strcmp(how, "raw") == 0)
        forbid_raw();
#endif
    else if (strcmp(how, "refused") == 0)
        syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 77, NULL);
    else if (strcmp(how, "failed") == 0)
        prctl(PR_SET_TSC, 77, 0, 0, 0);
    else
        prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
    work(1000);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    pthread_t thread;
    pthread_create(&thread, NULL, strcmp(how, "thread") == 0 ? worker_without : worker, NULL);
    pthread_join(thread, NULL);
    if (strcmp(how, "thread") == 0)
        work(2000);
    else
        forbid(how);
    write(1, work(10) == 5 ? "done\n" : "wrong\n", 5);
    syscall(SYS_exit, 3); /* exit() makes system calls that strict mode forbids */
}
