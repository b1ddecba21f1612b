/* SPDX-License-Identifier: MIT */
/* Functions of each calling convention of x86, recursion, callbacks of the C library and longjmp,
 * in two threads.  Each function counts its own calls; the program prints them. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

#define FUNCTIONS(X) X(fib) X(leap) X(land) X(wide) X(fast) X(less) X(sort) X(work)
#define NUMBER(name) AT_##name,
enum { FUNCTIONS(NUMBER) COUNT };

static volatile LONG calls[COUNT];

#define OWN __attribute__((noinline, noclone))
#define COUNT_CALL(name) InterlockedIncrement(&calls[AT_##name])

OWN static int timed_fib(int n)
{
    COUNT_CALL(fib);
    return n < 2 ? n : timed_fib(n - 1) + timed_fib(n - 2);
}

OWN static void timed_leap(jmp_buf back, int depth)
{
    COUNT_CALL(leap);
    if (depth == 0) {
        longjmp(back, 1);
    }
    timed_leap(back, depth - 1);
    __asm__ volatile(""); /* not a tail call */
}

OWN static int timed_land(int depth)
{
    jmp_buf back;

    COUNT_CALL(land);
    if (setjmp(back) == 0) {
        timed_leap(back, depth);
    }
    return depth;
}

OWN static long long __stdcall timed_wide(long long a, int b, double c)
{
    COUNT_CALL(wide);
    return a * b + (long long)c;
}

OWN static int __attribute__((fastcall)) timed_fast(int a, int b, int c)
{
    COUNT_CALL(fast);
    return a ^ b << 3 ^ c << 7;
}

OWN static int timed_less(const void *a, const void *b)
{
    COUNT_CALL(less);
    return *(const int *)a - *(const int *)b;
}

OWN static int timed_sort(int seed)
{
    int numbers[50];

    COUNT_CALL(sort);
    for (int i = 0; i < 50; i++) {
        numbers[i] = seed = seed * 1103515245 + 12345;
        numbers[i] &= 0xffff;
    }
    qsort(numbers, 50, sizeof *numbers, timed_less);
    return numbers[seed & 31];
}

OWN static DWORD WINAPI timed_work(void *seed)
{
    int sum = (int)(intptr_t)seed;

    COUNT_CALL(work);
    for (int i = 0; i < 200; i++) {
        sum = sum * 31 + timed_fib(i % 10) + timed_land(i % 7) + timed_sort(i);
        sum += (int)timed_wide(i, sum & 255, i * 0.5) + timed_fast(i, sum, 3);
    }
    return (DWORD)sum;
}

int main(void)
{
    HANDLE other = CreateThread(NULL, 0, timed_work, (void *)5, 0, NULL);
    DWORD code, own = timed_work((void *)7);

    WaitForSingleObject(other, INFINITE);
    GetExitCodeThread(other, &code);
    printf("%lu %lu\n", (unsigned long)own, (unsigned long)code);
#define PRINT(name) printf("timed_" #name " %ld\n", calls[AT_##name]);
    FUNCTIONS(PRINT)
    return 0;
}
