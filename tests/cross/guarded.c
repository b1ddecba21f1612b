/* SPDX-License-Identifier: MIT */
/* Tests whether code is guarded (PROT_BTI). Built as a library with -DLIBRARY, and without as a
 * program that calls a function of the library by pointer at an address without a landing pad
 * and prints the result. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>

int padded(int x);

#ifdef LIBRARY
__attribute__((noinline, noclone)) int padded(int x)
{
    __asm__ volatile("");
    return x + 1;
}
#else
static sigjmp_buf back;
static void on_illegal(int number)
{
    siglongjmp(back, number);
}

int main(void)
{
    int (*volatile at)(int) = padded;
    int (*volatile behind)(int) = (int (*)(int))(void *)((char *)(void *)padded + 4);
    volatile int sum = 0;

    signal(SIGILL, on_illegal);
    for (int i = 0; i < 100; i++) {
        sum += at(i);
    }
    if (sigsetjmp(back, 1) == 0) {
        printf("not guarded: %d\n", behind(1));
    } else {
        puts("guarded");
    }
    printf("%d\n", sum);
    return 0;
}
#endif
