/* SPDX-License-Identifier: MIT */
/* Prints the call chain that backtrace() finds inside three nested calls, and again in a signal
 * handler that interrupts them.  With an argument, it prints the chain only when a debugger sends
 * that signal. */
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define OWN __attribute__((noinline, noclone))

static char text[1 << 16];
static int quiet;

static void append_chain(void)
{
    static const char *const known[] = { "inner", "middle", "outer", "main" };
    void *frames[32];
    int n = backtrace(frames, 32);
    char **names = backtrace_symbols(frames, n);

    for (int i = 0; i < n; i++) {
        for (int k = 0; k < 4; k++) {
            char with[16];
            snprintf(with, sizeof with, "(%s+", known[k]);
            if (strstr(names[i], with)) {
                strcat(text, known[k]);
                strcat(text, " ");
            }
        }
    }
    strcat(text, "\n");
}

static void on_signal(int number)
{
    (void)number;
    append_chain();
}

__attribute__((constructor)) static void listen(void)
{
    signal(SIGUSR1, on_signal);
}

OWN int inner(int x)
{
    if (!quiet) {
        append_chain();
        raise(SIGUSR1);
    }
    return x + 1;
}

/* i and j are on the stack. */
OWN int middle(int x, int b, int c, int d, int e, int f, int g, int h, int i, int j)
{
    return inner(x + b + c + d) * 2 + e + f + g + h + i * j;
}
OWN int outer(int x)
{
    return middle(x, 2, 3, 4, 5, 6, 7, 8, 9, x) - 1;
}

int main(int argc, char **argv)
{
    (void)argv;
    quiet = argc > 1;
    int r = outer(3);
    printf("%d\n%s", r, text);
    return 0;
}
