/* SPDX-License-Identifier: MIT */
/* Like Tcl, which recognises coroutines by stack address: a call keeps the address of its local
 * variable, and the next call, made from the same place, must find its variable at the same
 * address. */
#include <stdio.h>
#include <stdlib.h>

typedef struct routine {
    void *level;
    long kept, elsewhere;
} routine;

__attribute__((noinline, noclone)) void turn(routine *r)
{
    volatile int here;

    if (r->level == NULL) {
        r->level = (void *)&here;
        r->kept++;
        return;
    }
    r->elsewhere += r->level != (void *)&here;
    r->level = NULL;
}

int main(void)
{
    routine *r = calloc(1, sizeof *r);

    for (int i = 0; i < 20000; i++)
        turn(r);
    printf("%ld kept, %ld elsewhere\n", r->kept, r->elsewhere);
    free(r);
}
