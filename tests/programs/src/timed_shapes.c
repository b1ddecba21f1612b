/* SPDX-License-Identifier: MIT */
/* Functions that an additional frame between caller and callee could break: stack arguments of
 * all sorts, frames that are realigned or grow, return addresses that are read, jumps out of and
 * between stacks, and threads that end in the middle of a call. The output must not depend on
 * such a frame. */
#include <alloca.h>
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __clang__
#define OWN __attribute__((noinline))
#else
#define OWN __attribute__((noinline, noclone))
#endif

typedef struct big {
    long a[9];
} big;

volatile long zero;

OWN long leaf(long x) { return x * 3 + zero; }
OWN long many(long a, long b, long c, long d, long e, long f, long g, long h, long i)
{
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + leaf(i);
}
OWN long forwards(long a, long b, long c, long d, long e, long f, long g, long h, long i)
{
    return many(a + 1, b, c, d, e, f, g, h, i);
}
OWN long by_value(big b) { return b.a[0] + b.a[8] + leaf(b.a[4]); }
/* clang reads it at [rsp + 8*i - 16], far below the argument. */
OWN long by_index(big b, int i) { return b.a[i - 3]; }
OWN big gives_big(long x)
{
    big b;
    for (int i = 0; i < 9; i++)
        b.a[i] = leaf(x + i);
    return b;
}
OWN long variable(int count, ...)
{
    va_list list;
    long sum = 0;
    va_start(list, count);
    for (int i = 0; i < count; i++)
        sum += va_arg(list, long);
    va_end(list);
    return sum;
}
OWN double doubles(double a, double b, double c, double d, double e, double f, double g, double h,
                   double i, double j)
{
    return a + b + c + d + e + f + g + h + 10 * i + 100 * j;
}
OWN long grows(long n)
{
    char *p = alloca((size_t)n);
    memset(p, 1, (size_t)n);
    return leaf(p[n - 1]) + n;
}
OWN long realigned(long x)
{
    long v[8] __attribute__((aligned(64)));
    for (int i = 0; i < 8; i++)
        v[i] = leaf(x + i);
    return v[7] + (long)((uintptr_t)v & 63);
}
OWN long realigned_many(long a, long b, long c, long d, long e, long f, long g)
{
    long v[8] __attribute__((aligned(64)));
    for (int i = 0; i < 8; i++)
        v[i] = leaf(a + b + c + d + e + f + i);
    return v[7] + g + (long)((uintptr_t)v & 63);
}
OWN long double long_doubles(long double a, long double b) { return a * 2 + b; }
OWN void *whence(void) { return __builtin_return_address(0); }
OWN int knows_caller(void)
{
    char *at = whence();
    return at > (char *)knows_caller && at < (char *)knows_caller + 200;
}
OWN long switched(int x)
{
    switch (x) {
    case 0: return leaf(1);
    case 1: return leaf(22);
    case 2: return 5;
    case 3: return leaf(44) + 1;
    case 4: return 7;
    case 5: return leaf(6) - 3;
    default: return -1;
    }
}
OWN long computed(int x)
{
    static void *const labels[] = { &&one, &&two, &&three };
    long sum = x;
    goto *labels[x % 3];
one:
    sum += leaf(1);
    if (sum > 40)
        return sum;
two:
    sum += 10;
    goto *labels[sum % 3];
three:
    sum += leaf(3);
    if (sum < 100)
        goto *labels[sum % 2];
    return sum;
}
OWN long tail_even(long n);
OWN long tail_odd(long n) { return n == 0 ? zero : tail_even(n - 1); }
OWN long tail_even(long n) { return n == 0 ? 1 + zero : tail_odd(n - 1); }

static jmp_buf back;
OWN void deep(int n)
{
    if (n == 0)
        longjmp(back, 7);
    deep(n - 1);
    zero += 0;
}
OWN int jumps(void)
{
    int got = setjmp(back);
    if (got == 0)
        deep(20);
    return got + (int)leaf(1);
}
static sigjmp_buf from_signal;
static void on_fault(int number) { (void)number, siglongjmp(from_signal, 5); }
OWN long touches(volatile long *p) { return *p + 1; }
OWN int faults(void)
{
    signal(SIGSEGV, on_fault);
    int got = sigsetjmp(from_signal, 1);
    if (got == 0)
        touches(NULL);
    return got + (int)leaf(2);
}

static ucontext_t main_context, own_context[3];
static long yielded;
OWN void yields(int from, long value)
{
    yielded = value;
    swapcontext(&own_context[from], &main_context);
}
OWN void generator(int index)
{
    for (long i = 0; i < 50; i++)
        yields(index, leaf(i + index));
}
OWN long coroutines(void)
{
    static char stacks[3][65536];
    long sum = 0;
    for (int i = 0; i < 3; i++) {
        getcontext(&own_context[i]);
        own_context[i].uc_stack.ss_sp = stacks[i];
        own_context[i].uc_stack.ss_size = sizeof stacks[i];
        own_context[i].uc_link = &main_context;
        makecontext(&own_context[i], (void (*)(void))generator, 1, i);
    }
    for (int round = 0; round < 50; round++)
        for (int i = 0; i < 3; i++) {
            swapcontext(&main_context, &own_context[i]);
            sum += yielded * leaf(round);
        }
    return sum;
}

OWN void ends_thread(int n)
{
    if (n == 0)
        pthread_exit((void *)17);
    ends_thread(n - 1);
    zero += 0;
}
static void *ending(void *x) { ends_thread(5); return x; }
OWN void sleeps(int n)
{
    if (n > 0)
        sleeps(n - 1);
    for (;;)
        pause();
}
static void clean(void *x) { *(int *)x += (int)leaf(1); }
static void *sleeping(void *x)
{
    pthread_cleanup_push(clean, x);
    sleeps(4);
    pthread_cleanup_pop(0);
    return x;
}
OWN long threads(void)
{
    pthread_t one, two;
    void *result = NULL, *cancelled = NULL;
    int cleaned = 0;
    pthread_create(&one, NULL, ending, NULL);
    pthread_join(one, &result);
    pthread_create(&two, NULL, sleeping, &cleaned);
    usleep(20000);
    pthread_cancel(two);
    pthread_join(two, &cancelled);
    return (long)result + cleaned + (cancelled == PTHREAD_CANCELED ? 100 : 0);
}
OWN long traced(int n)
{
    void *frames[40];
    return n == 0 ? backtrace(frames, 40) > 6 : traced(n - 1) + zero;
}
OWN int child(void)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit((int)leaf(4));
    waitpid(pid, &status, 0);
    pid = vfork();
    if (pid == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(9);
    }
    int second = 1;
    waitpid(pid, &second, 0);
    return WEXITSTATUS(status) * 10 + WEXITSTATUS(second);
}

int main(void)
{
    for (int i = 0; i < 300; i++) {
        long sum = many(1, 2, 3, 4, 5, 6, 7, 8, i) + forwards(i, 2, 3, 4, 5, 6, 7, 8, 9) +
                   by_value(gives_big(i)) + by_index(gives_big(i), 3 + i % 9) +
                   variable(9, 1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, (long)i) +
                   (long)doubles(1, 2, 3, 4, 5, 6, 7, 8, 9, i) + grows(100 + i) + realigned(i) +
                   realigned_many(1, 2, 3, 4, 5, 6, i) + (long)long_doubles(i, 2) +
                   knows_caller() + switched(i % 8) + computed(i) + tail_even(i) + jumps() +
                   faults() + traced(8);
        if (i % 50 == 0)
            printf("%d %ld\n", i, sum);
    }
#ifdef __OPTIMIZE__ /* without tail calls each call needs stack */
    printf("far %ld\n", tail_even(3000000));
#endif
    printf("coroutines %ld\n", coroutines());
    printf("threads %ld\n", threads());
    printf("child %d\n", child());
    return 0;
}
