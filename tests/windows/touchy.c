/* SPDX-License-Identifier: MIT */
/* A program whose exit status a hook changes, for `hotfn bisect`: it fails if the first bytes of
 * touchy_culprit differ from all of its file.  With an argument it waits for ever instead. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

#define KEPT __attribute__((noinline))
enum { COMPARED_BYTES = 16 };

static volatile uint64_t sink, one = 1; /* volatile, so that the argument is no constant */

KEPT static void bystander(uint64_t x)
{
    sink += x * 3;
    sink ^= x >> 3;
}

KEPT static void touchy_culprit(uint64_t x)
{
    sink += x * 7;
    sink ^= x << 2;
}

static void (*volatile watched)(uint64_t) = touchy_culprit;

KEPT static int was_changed(const char *own)
{
    static uint8_t file[4 << 20];
    const uint8_t *code = (const uint8_t *)(uintptr_t)watched;
    FILE *in = fopen(own, "rb");
    size_t bytes = in ? fread(file, 1, sizeof file, in) : 0;

    if (in) {
        fclose(in);
    }
    for (size_t at = 0; at + COMPARED_BYTES <= bytes; at++) {
        if (memcmp(file + at, code, COMPARED_BYTES) == 0) {
            return 0;
        }
    }
    return 1;
}

int main(int argc, char **argv)
{
    int changed;

    touchy_culprit(one);
    bystander(one);
    changed = was_changed(argv[0]);
    printf("%s\n", changed ? "ill" : "well");
    if (changed && argc > 1) {
        Sleep(INFINITE);
    }
    return changed ? 9 : 0;
}
