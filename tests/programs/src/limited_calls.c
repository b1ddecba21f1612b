/* SPDX-License-Identifier: MIT */
/* For kinds_test.py and attach_moments_test.py: a program that limits its system calls (seccomp).
 *
 *   limited_calls HOW [wait]
 *
 * prctl, syscall: install a filter that kills the process for each call that hooks make; then start
 * threads and a child.  strict: strict mode.  fails: the kernel refuses the filter.  With `wait`,
 * it prints `ready`, begins when standard input has a line, and ends when it has another line. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 10 };

static volatile int kept;

__attribute__((noinline)) int counted(int x);
__attribute__((noinline)) int counted(int x)
{
    return x * 3 + 1;
}

__attribute__((noinline)) int work(int turns);
__attribute__((noinline)) int work(int turns)
{
    int all = 0;
    for (int i = 0; i < turns; i++) {
        all += counted(i) & 1;
    }
    kept = all;
    return all;
}

static void *run_thread(void *unused)
{
    work(1000);
    return unused;
}

#define KILL(number)                                                                               \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),                                             \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    KILL(SYS_gettid),
    KILL(SYS_getpid),
    KILL(SYS_getppid),
    KILL(SYS_tgkill),
    KILL(SYS_kill),
    KILL(SYS_prctl),
    KILL(SYS_clock_gettime),
#ifdef SYS_clock_gettime64
    KILL(SYS_clock_gettime64),
#endif
    KILL(SYS_process_vm_readv),
    KILL(SYS_process_vm_writev),
    KILL(SYS_readlinkat),
    KILL(SYS_openat),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static void limit(const char *how)
{
    struct sock_fprog program = { sizeof filter / sizeof *filter, filter };

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (strcmp(how, "prctl") == 0) {
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    } else if (strcmp(how, "syscall") == 0) {
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    } else if (strcmp(how, "fails") == 0) {
        program.filter = (struct sock_filter *)8; /* EFAULT */
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
    } else {
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    }
}

static int start_others(void)
{
    pthread_t thread;
    int status = 0;

    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&thread, NULL, run_thread, NULL) != 0 ||
            pthread_join(thread, NULL) != 0) {
            return 1;
        }
    }
    pid_t child = fork();
    if (child == 0) {
        work(1000);
        _exit(5);
    }
    return waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 5;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    char line;
    int failed = 0, is_strict = strcmp(how, "strict") == 0;

    if (argc > 2) {
        printf("ready\n");
        fflush(stdout);
        while (read(0, &line, 1) == 1 && line != '\n') {
        }
    }
    work(1000);
    usleep(50000); /* the next hook would read the thread's processor time */
    limit(how);
    work(1000);
    if (!is_strict) {
        failed = start_others();
    }
    if (argc > 2) {
        write(1, "limited\n", 8);
        while (read(0, &line, 1) == 1 && line != '\n') {
        }
    }
    work(1000);
    write(1, failed ? "wrong\n" : "done\n", failed ? 6 : 5);
    syscall(SYS_exit, 3);
}
