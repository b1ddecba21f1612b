/* SPDX-License-Identifier: MIT */
/*
 * Preloaded under callgrind by the counting oracle, built with -DLAYOUT=n.  Its size moves the
 * libraries that are mapped after it, its constructor moves the heap and later mappings: counts
 * that depend on addresses then show themselves by differing between runs.  It also cuts the
 * profile in two at the moment when an agent's constructor would run.  Does nothing elsewhere.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

enum { PAGE = 4096 };

__attribute__((used)) static char padding[LAYOUT * 5 * PAGE + 1];

__attribute__((constructor)) static void start(void)
{
    if (!RUNNING_ON_VALGRIND)
        return;
    /* An odd number of 16-byte units: malloc's alignment stays, hash buckets change. */
    if (LAYOUT > 0 && sbrk(LAYOUT * (3 * PAGE + 48)) == (void *)-1)
        abort();
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    if (LAYOUT > 0 && mmap(NULL, LAYOUT * 7 * PAGE, PROT_NONE, flags, -1, 0) == MAP_FAILED)
        abort();
    CALLGRIND_DUMP_STATS_AT("hotfn_oracle_start");
}
