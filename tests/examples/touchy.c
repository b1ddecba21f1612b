/* SPDX-License-Identifier: MIT */
/* A program whose behaviour a hook changes, for `hotfn bisect`. It compares the first bytes of some
 * of its own functions with its file, and if they differ it fails in the way that MODE selects:
 *
 *     touchy MODE [SECOND]     MODE: exit, output, hang, signal
 *
 * Only the hook of touchy_culprit makes it fail; with SECOND, also that of touchy_other alone. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT __attribute__((noinline))
#define COMPARED_BYTES 16

static volatile uint64_t sink, one = 1; /* volatile, so that the argument is no constant */

#define BYSTANDER(n)                                                                               \
    KEPT static void bystander_##n(uint64_t x)                                                     \
    {                                                                                              \
        sink += x * (n + 3);                                                                       \
        sink ^= x >> 3;                                                                            \
    }
BYSTANDER(0)
BYSTANDER(1)
BYSTANDER(2)
BYSTANDER(3)
BYSTANDER(4)
BYSTANDER(5)
BYSTANDER(6)
BYSTANDER(7)

KEPT static void touchy_culprit(uint64_t x)
{
    sink += x * 7;
    sink ^= x << 2;
}

KEPT static void touchy_other(uint64_t x)
{
    sink += x * 11;
    sink ^= x << 4;
}

/* True if the function's first bytes occur nowhere in the program's file. */
static int was_changed(void (*function)(uint64_t))
{
    static uint8_t file[1 << 20];
    const uint8_t *code = (const uint8_t *)(uintptr_t)function;
    FILE *own = fopen("/proc/self/exe", "rb");
    size_t bytes = own ? fread(file, 1, sizeof file, own) : 0;

    if (own) {
        fclose(own);
    }
    for (size_t at = 0; at + 64 <= bytes; at++) {
        if (memcmp(file + at, code, COMPARED_BYTES) == 0) {
            return 0;
        }
    }
    return 1;
}

static int misbehave(const char *mode)
{
    if (strcmp(mode, "hang") == 0) {
        pause();
    }
    if (strcmp(mode, "signal") == 0) {
        abort();
    }
    if (strcmp(mode, "output") == 0) {
        printf("something else\n");
        return 0;
    }
    return 7;
}

int main(int argc, char **argv)
{
    static void (*const bystanders[])(uint64_t) = { bystander_0, bystander_1, bystander_2,
                                                    bystander_3, bystander_4, bystander_5,
                                                    bystander_6, bystander_7 };

    if (argc < 2) {
        return 2;
    }
    for (uint64_t i = 0; i < 80; i++) {
        bystanders[i % 8](i);
    }
    touchy_culprit(one);
    touchy_other(one);
    if (was_changed(touchy_culprit) || (argc > 2 && was_changed(touchy_other))) {
        return misbehave(argv[1]);
    }
    printf("all is well\n");
    return 0;
}
