/* SPDX-License-Identifier: MIT */
/*
 * Preloaded under callgrind by the counting oracle.  It moves the heap and later mappings by a
 * chosen number of steps, so that counts which depend on addresses show themselves by differing
 * between runs; and it cuts the profile in two at the moment when an agent's constructor would run.
 * Does nothing outside valgrind.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

static void shift(unsigned long steps)
{
    size_t page = 4096;
    /* An odd number of 16-byte units: malloc's alignment stays, hash buckets of addresses change. */
    if (sbrk((long)(steps * (3 * page + 48))) == (void *)-1)
        abort();
    if (mmap(NULL, steps * 5 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
        abort();
}

__attribute__((constructor)) static void start(void)
{
    const char *steps = getenv("HOTFN_ORACLE_SHIFT");
    if (!RUNNING_ON_VALGRIND)
        return;
    if (steps && atoi(steps) > 0)
        shift((unsigned long)atoi(steps));
    CALLGRIND_DUMP_STATS_AT("hotfn_oracle_start");
}
