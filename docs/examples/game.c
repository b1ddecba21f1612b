/* SPDX-License-Identifier: MIT */
/* The program that docs/pipeline.md counts: it fills 20,000 items with random names and sorts them,
 * five times. It does not use libhotfn.
 *
 *     cc -O2 game.c -o game && hotfn run -- ./game && hotfn report hotfn.hfr
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT __attribute__((noinline))
#define ITEMS 20000

typedef struct item {
    int id;
    char name[16];
} item;

static item items[ITEMS];
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

KEPT static void fill(void)
{
    for (int i = 0; i < ITEMS; i++) {
        items[i].id = i;
        snprintf(items[i].name, sizeof items[i].name, "i%u", next_random());
    }
}

int main(void)
{
    for (int round = 0; round < 5; round++) {
        fill();
        qsort(items, ITEMS, sizeof *items, compare);
    }
    printf("%s\n", items[0].name);
    return 0;
}
