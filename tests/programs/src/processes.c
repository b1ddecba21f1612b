/* SPDX-License-Identifier: MIT */
/* fork, vfork, posix_spawn, _exit, a killed child, signals on an alternate stack, siglongjmp out
 * of SIGSEGV, a timer, and exec at the end. The totals are those of the first process: they
 * exclude calls of its children after the fork and include its own calls before the exec. With
 * an argument the program exits without the exec, because callgrind loses its counts at an exec. */
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "totals.h"

extern char **environ;

enum { FORKS = 20, VFORKS = 10, PER_FORK = 100, SIGNALS = 300, FAULTS = 50, TICKS = 20 };

static sigjmp_buf after_fault;
static volatile sig_atomic_t signals_seen, ticks;
static char alternate[64 * 1024];

COUNTED void both_sides(void)
{
    KEEP();
}

COUNTED void only_child(void)
{
    KEEP();
}

COUNTED void on_signal(int number)
{
    (void)number;
    signals_seen++;
}

COUNTED void on_fault(int number)
{
    (void)number;
    siglongjmp(after_fault, 1);
}

COUNTED void start_timer(void)
{
    struct itimerval once = {.it_value = {.tv_usec = 500}};
    setitimer(ITIMER_REAL, &once, NULL);
}

COUNTED void on_tick(int number)
{
    (void)number;
    if (++ticks < TICKS)
        start_timer();
}

COUNTED int exit_of(pid_t child)
{
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        abort();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

COUNTED int fork_one(int round)
{
    pid_t child = fork();
    for (int i = 0; i < PER_FORK; i++)
        both_sides();
    if (child == 0) {
        for (int i = 0; i < PER_FORK; i++)
            only_child();
        if (round % 4 == 3)
            raise(SIGKILL);
        if (round % 4 == 2)
            execl("/bin/sh", "sh", "-c", "exit 5", (char *)NULL);
        _exit(round % 4);
    }
    return exit_of(child);
}

COUNTED int vfork_one(void)
{
    pid_t child = vfork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "exit 6", (char *)NULL);
        _exit(1);
    }
    return exit_of(child);
}

COUNTED int spawn_one(void)
{
    char *arguments[] = {"sh", "-c", "exit 7", NULL};
    pid_t child;
    if (posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) != 0)
        abort();
    return exit_of(child);
}

static void handle(int number, void (*handler)(int))
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_ONSTACK | SA_RESTART;
    if (sigaction(number, &action, NULL) != 0)
        abort();
}

COUNTED int fault_once(volatile int *nowhere)
{
    if (sigsetjmp(after_fault, 1) == 0)
        return *nowhere;
    return 1;
}

static void take_signals(void)
{
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    int faults = 0;
    sigaltstack(&stack, NULL);
    handle(SIGUSR1, on_signal);
    handle(SIGSEGV, on_fault);
    handle(SIGALRM, on_tick);
    for (int i = 0; i < SIGNALS; i++)
        raise(SIGUSR1);
    for (int i = 0; i < FAULTS; i++)
        faults += fault_once(NULL);
    start_timer();
    while (ticks < TICKS)
        usleep(100);
    printf("signals %d faults %d ticks %d\n", (int)signals_seen, faults, (int)ticks);
}

int main(int argc, char **argv)
{
    int sum = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int round = 0; round < FORKS; round++)
        sum += fork_one(round);
    for (int round = 0; round < VFORKS; round++)
        sum += vfork_one();
    sum += spawn_one() + WEXITSTATUS(system("exit 3"));
    take_signals();
    printf("children %d\n", sum);
    say_total("both_sides", FORKS * PER_FORK);
    say_total("only_child", 0);
    say_total("fork_one", FORKS);
    say_total("vfork_one", VFORKS);
    say_total("exit_of", FORKS + VFORKS + 1);
    say_total("on_signal", SIGNALS);
    say_total("on_fault", FAULTS);
    say_total("fault_once", FAULTS);
    say_total("on_tick", TICKS);
    say_total("start_timer", TICKS);
    if (argc > 1) /* any argument: no exec */
        return argv[1] == NULL;
    execl("/bin/echo", "echo", "replaced", (char *)NULL);
    return 1;
}
