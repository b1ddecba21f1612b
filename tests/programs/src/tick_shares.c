/* SPDX-License-Identifier: MIT */
/* Two short functions; one takes three times as long as the other. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define STEP(x) ((x) = ((x) ^ 5) * (uintptr_t)0x4c957f2d)

#define STEPS_4(x) STEP(x), STEP(x), STEP(x), STEP(x)
#define STEPS_20(x) STEPS_4(x), STEPS_4(x), STEPS_4(x), STEPS_4(x), STEPS_4(x)
#ifdef LONGER
#define STEPS(x) STEPS_20(x), STEPS_20(x), STEPS_20(x), STEPS_20(x)
#else
#define STEPS(x) STEPS_20(x)
#endif

__attribute__((noipa)) uintptr_t small(uintptr_t x)
{
    STEPS(x);
    return x;
}

__attribute__((noipa)) uintptr_t large(uintptr_t x)
{
    STEPS(x), STEPS(x), STEPS(x);
    return x;
}

__attribute__((noipa)) uintptr_t both(uintptr_t x, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        x = large(small(x));
    }
    return x;
}

int main(int count, char **arguments)
{
    int rounds = count > 1 ? atoi(arguments[1]) : 1000;

    printf("%d\n", (int)(both(1, rounds) & 1));
}
