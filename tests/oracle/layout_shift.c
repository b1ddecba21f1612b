/* SPDX-License-Identifier: MIT */
/*
 * Preloaded under callgrind by the counting oracle, built with -DLAYOUT=n.  Its size moves the
 * libraries that are mapped after it, its constructor moves the heap, and its mmap() requests
 * distant addresses, so that counts that depend on addresses differ between layouts.  It also
 * splits the profile at the moment when an agent's constructor would run, and writes the address of
 * the first argument's text to the file PLACE, so that another run can have the same stack.  Layout
 * 0, and any layout without valgrind, moves nothing.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#define PAGE 4096ul

__attribute__((used)) static char padding[LAYOUT * 5 * PAGE + 1];

#if LAYOUT > 0
/* Different high bits in every layout, below the 16 TiB that valgrind gives to programs. */
#if __SIZEOF_POINTER__ == 4
static unsigned long next_place = 0x60000000ul + (LAYOUT * 0x235ul % 0x3ful) * 0x1000000ul;
#define MMAP(place, size, protection, flags, file, offset)                                         \
    syscall(SYS_mmap2, place, size, protection, flags, file, (offset) / PAGE)
#else
static unsigned long next_place = (LAYOUT * 0x9d5ul % 0xffful) << 32 | LAYOUT * 7 * PAGE;
#define MMAP(...) syscall(SYS_mmap, __VA_ARGS__)
#endif

void *mmap(void *place, size_t size, int protection, int flags, int file, off_t offset)
{
    unsigned long step = (size + 2 * PAGE - 1) / PAGE * PAGE;
    if (!place && (flags & MAP_ANONYMOUS) && RUNNING_ON_VALGRIND) {
        place = (void *)__atomic_fetch_add(&next_place, step, __ATOMIC_RELAXED);
    }
    return (void *)MMAP(place, size, protection, flags, file, offset);
}
#endif

/* Called in every kind of run, since its calls are counted. */
static void write_place(char **argv)
{
    int file = open(PLACE, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (file < 0 || write(file, argv, sizeof *argv) != sizeof *argv || close(file) != 0) {
        abort();
    }
}

__attribute__((constructor)) static void start(int argc, char **argv)
{
    (void)argc;
    /* An odd number of 16-byte units keeps malloc's alignment but changes hash buckets. */
    if (RUNNING_ON_VALGRIND && LAYOUT > 0 && sbrk(LAYOUT * (3 * PAGE + 48)) == (void *)-1) {
        abort();
    }
    CALLGRIND_DUMP_STATS_AT("hotfn_oracle_start");
    write_place(argv);
}
