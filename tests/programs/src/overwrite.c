/* SPDX-License-Identifier: MIT */
/* Overwrites the hook of a function that was called 1000 times, then ends as argv[1] says. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int overwritten(int x);
int untouched(int x);

__attribute__((noinline)) int overwritten(int x)
{
    __asm__ volatile("");
    return x * 3 + 1;
}

__attribute__((noinline)) int untouched(int x)
{
    __asm__ volatile("");
    return x * 5 + 2;
}

/* Volatile, so that the analysis of the program does not find which function is overwritten. */
static int (*volatile victim)(int) = overwritten;

/* Replace the code of the function by a plain return, as a runtime that patches code does. */
static void overwrite(int (*function)(int))
{
#if defined __aarch64__
    static const unsigned char plain_return[] = { 0xc0, 0x03, 0x5f, 0xd6 }; /* ret */
#else
    static const unsigned char plain_return[] = { 0x31, 0xc0, 0xc3 }; /* xor eax, eax; ret */
#endif
    unsigned long page = (unsigned long)function & ~4095ul;
    if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
        exit(2);
    }
    memcpy((void *)(unsigned long)function, plain_return, sizeof plain_return);
    __builtin___clear_cache((char *)page, (char *)page + 8192);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    int sum = 0;
    if (strcmp(how, "fork") == 0) { /* the child does what argv[2] says */
        int status;
        how = argv[2];
        if (fork() != 0) {
            return wait(&status) < 0;
        }
    }
    if (strcmp(how, "wait") == 0) {
        printf("%d\n", (int)getpid());
        fflush(stdout);
    }
    for (int i = 0; i < 1000; i++) {
        sum += overwritten(i) + untouched(i);
    }
    if (strcmp(how, "wait") == 0) { /* until the test has seen that the hooks were compared */
        getchar();
    }
    if (strcmp(how, "keep") != 0 && strcmp(how, "kill") != 0) {
        overwrite(victim);
        for (int i = 0; i < 50; i++) {
            overwritten(i);
            sum += untouched(i);
        }
    }
    printf("%d\n", sum);
    fflush(stdout);
    if (strcmp(how, "filter") == 0) {
        struct sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog filter = { sizeof code / sizeof *code, code };
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0);
    }
    if (strcmp(how, "wait") == 0) {
        pause();
    } else if (strcmp(how, "_exit") == 0) {
        _exit(0);
    } else if (strcmp(how, "execl") == 0) {
        execl("./next", "next", (char *)NULL);
    } else if (strcmp(how, "execlp") == 0) {
        execlp("next", "next", (char *)NULL);
    } else if (strcmp(how, "execv") == 0) {
        execv("./next", argv);
    } else if (strcmp(how, "kill") == 0 || strcmp(how, "failed exec") == 0) {
        execl("/no/such/program", "program", (char *)NULL);
        raise(SIGKILL);
    }
    return 0;
}
