/* SPDX-License-Identifier: MIT */
/* Functions with and without sleds of XRay. */
#include <stdio.h>

__attribute__((noinline, xray_always_instrument)) static int with_sled(int n)
{
    for (int i = 0; i < 3; i++) {
        n = n * 3 + i;
    }
    return n & 0xffff;
}

__attribute__((noinline, xray_never_instrument)) static int without_sled(int n)
{
    for (int i = 0; i < 3; i++) {
        n = n * 5 + i;
    }
    return n & 0xffff;
}

int main(void)
{
    int sum = 0;

    for (int i = 0; i < 1000; i++) {
        sum += with_sled(i) + without_sled(i);
    }
    printf("%d\n", sum);
    return 0;
}
