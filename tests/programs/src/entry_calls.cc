// SPDX-License-Identifier: MIT
// Functions that begin with a call: through memory with -fno-plt, and of __fentry__ with -pg
// -mfentry.  Exceptions pass them, and setjmp returns to one of them again.
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#define NEVER_INLINE __attribute__((noinline, noclone))

extern "C" {
NEVER_INLINE void leaf(int i)
{
    if (i % 3 == 0) {
        throw i;
    }
}

NEVER_INLINE int first_calls(const char *text)
{
    return atoi(text) + 1;
}

NEVER_INLINE int middle(int i)
{
    leaf(i);
    return i;
}

NEVER_INLINE int jumps(jmp_buf *place, int i)
{
    if (i % 2) {
        longjmp(*place, i);
    }
    return i;
}
}

int main()
{
    long sum = 0;

    for (volatile int i = 0; i < 300; i++) {
        jmp_buf place;
        sum += first_calls("41");
        try {
            sum += middle(i);
        } catch (int thrown) {
            sum -= thrown;
        }
        int value = setjmp(place);
        sum += value ? value : jumps(&place, i);
    }
    printf("%ld\n", sum);
    return 0;
}
