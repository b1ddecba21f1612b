/* SPDX-License-Identifier: MIT */
/* The program that docs/walk.md counts: five times it fills 20,000 items with random names and sorts
 * them.  It knows nothing of libhotfn.
 *
 *     cc -O2 game.c -o game && hotfn run -- ./game && hotfn report hotfn.hfr
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT __attribute__((noinline, noclone))

typedef struct item {
    int id;
    char name[16];
} item;

static unsigned seed = 1;

KEPT static unsigned next_random(void)
{
    seed = seed * 1103515245u + 12345u;
    return seed >> 16;
}

KEPT static int compare(const void *a, const void *b)
{
    return strcmp(((const item *)a)->name, ((const item *)b)->name);
}

KEPT static void fill(item *items, int count)
{
    for (int i = 0; i < count; i++) {
        items[i].id = i;
        snprintf(items[i].name, sizeof items[i].name, "i%u", next_random());
    }
}

int main(void)
{
    static item items[20000];

    for (int round = 0; round < 5; round++) {
        fill(items, 20000);
        qsort(items, 20000, sizeof *items, compare);
    }
    printf("%s\n", items[0].name);
    return 0;
}
