// SPDX-License-Identifier: MIT
// Built with -fnon-call-exceptions: a signal handler throws for a load, a store and a division,
// whose landing pads catch the exception.  Prints the sum of all results.
#include <signal.h>
#include <stdio.h>
#define NEVER_INLINE __attribute__((noinline, noclone))

struct fault {};

static void throw_fault(int)
{
    throw fault();
}

NEVER_INLINE static int load(int *p)
{
    try {
        return *p;
    } catch (fault &) {
        return -1;
    }
}

NEVER_INLINE static int divide(int a, int b)
{
    try {
        return a / b;
    } catch (fault &) {
        return -2;
    }
}

NEVER_INLINE static int store(int *p, int value)
{
    try {
        *p = value;
        return value;
    } catch (fault &) {
        return -3;
    }
}

// No landing pad: the exception passes through this function.
NEVER_INLINE static int load_below(int *p)
{
    return *p;
}

NEVER_INLINE static int call(int *p)
{
    try {
        return load_below(p);
    } catch (fault &) {
        return -4;
    }
}

int main(int count, char **)
{
    struct sigaction action = {};
    int word = 4 + count;
    long sum = 0;

    action.sa_handler = throw_fault;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &action, nullptr);
    sigaction(SIGFPE, &action, nullptr);
    for (int i = 0; i < 100; i++) {
        int *p = i % 10 ? &word : nullptr;
        sum += load(p) + divide(i, i % 10) + store(p, i) + call(p);
    }
    printf("%ld\n", sum);
    return 0;
}
