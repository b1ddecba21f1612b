/* SPDX-License-Identifier: MIT */
/* Tests whether code is guarded (PROT_BTI).  With -DLIBRARY this file is a library; without, it is
 * a program that calls a function of the library by a pointer to its second instruction, which is
 * no landing pad, and prints whether that was permitted. */
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
    int (*volatile second_instruction)(int) = (int (*)(int))(void *)((char *)(void *)padded + 4);
    volatile int sum = 0;

    signal(SIGILL, on_illegal);
    for (int i = 0; i < 100; i++) {
        sum += at(i);
    }
    if (sigsetjmp(back, 1) == 0) {
        printf("not guarded: %d\n", second_instruction(1));
    } else {
        puts("guarded");
    }
    printf("%d\n", sum);
    return 0;
}
#endif
