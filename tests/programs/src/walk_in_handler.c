/* SPDX-License-Identifier: MIT */
/* The handler of a profiling signal walks the stack from wherever the program is, including
 * stubs, in a process that loads its unwinder late. Prints the number of walks and how many of
 * them ended early. */
#define _GNU_SOURCE
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

enum { WALKS = 300, FRAMES_MIN = 6 }; /* on_tick, the signal's frame, middle, main, two of libc */

static volatile sig_atomic_t walks, short_walks;

static void on_tick(int number)
{
    void *frames[16];
    (void)number;
    short_walks += backtrace(frames, 16) < FRAMES_MIN;
    walks++;
}

__attribute__((noinline)) int leaf(int x)
{
    __asm__ volatile("nop\n\tnop\n\tnop"); /* room for a jump */
    return x + 1;
}

__attribute__((noinline)) int middle(int x)
{
    int sum = 0;
    for (int i = 0; i < 10; i++)
        sum += leaf(x + i);
    return sum;
}

int main(void)
{
    struct sigaction action;
    struct itimerval every = { { 0, 500 }, { 0, 500 } }, never = { { 0, 0 }, { 0, 0 } };
    volatile int sum = 0;
    void *frames[4];
    backtrace(frames, 4); /* loads libgcc_s */
    memset(&action, 0, sizeof action);
    action.sa_handler = on_tick;
    sigaction(SIGPROF, &action, NULL);
    setitimer(ITIMER_PROF, &every, NULL);
    while (walks < WALKS)
        for (int i = 0; i < 1000; i++)
            sum += middle(i);
    setitimer(ITIMER_PROF, &never, NULL);
    printf("%d walks, %d cut short\n", (int)walks, (int)short_walks);
    return 0;
}
