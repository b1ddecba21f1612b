/* SPDX-License-Identifier: MIT */
/* A preloaded library that counts the blocks that a program allocates and frees, with their
 * sizes from malloc_usable_size. Counting starts when the C library's malloc begins with a jump,
 * that is, when it is hooked. The counts are written to the file that COUNT_BLOCKS names:
 * allocated bytes, allocated blocks, freed bytes, freed blocks. */
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
enum { BYTES_IN, BLOCKS_IN, BYTES_OUT, BLOCKS_OUT, FIRST_BYTES = 1 << 16 };

static _Atomic uint64_t nowhere[4], *counts = nowhere;
static void *(*real_malloc)(size_t), *(*real_calloc)(size_t, size_t), *(*real_realloc)(void *, size_t);
static void *(*real_aligned)(size_t, size_t);
static int (*real_posix)(void **, size_t, size_t);
static void (*real_free)(void *);
static char first[FIRST_BYTES]; /* dlsym allocates before this library is initialised */
static size_t first_used;

static int is_first(const void *block)
{
    return (const char *)block >= first && (const char *)block < first + sizeof first;
}

static void *from_first(size_t bytes)
{
    void *block = first + first_used;
    first_used += (bytes + 15) / 16 * 16;
    return first_used <= sizeof first ? block : NULL;
}

static void *find(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

/* getenv does not work before libc is initialised. */
static const char *path_of_counts(void)
{
    static char all[1 << 16];
    static const char name[] = "COUNT_BLOCKS=";
    int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, all, sizeof all - 1) : 0;
    close(fd);
    for (const char *at = all; at < all + got; at += strlen(at) + 1)
        if (strncmp(at, name, sizeof name - 1) == 0)
            return at + sizeof name - 1;
    return NULL;
}

static void look(void)
{
    static int looking;
    const char *path;
    void *found;
    int fd;
    if (real_free || looking)
        return;
    looking = 1;
    *(void **)&real_malloc = find("malloc");
    *(void **)&real_calloc = find("calloc");
    *(void **)&real_realloc = find("realloc");
    *(void **)&real_aligned = find("aligned_alloc");
    *(void **)&real_posix = find("posix_memalign");
    found = find("free");
    path = path_of_counts();
    fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd >= 0) {
        void *file = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        counts = file == MAP_FAILED ? nowhere : file;
        close(fd);
    }
    *(void **)&real_free = found;
}

static int is_hooked(void)
{
    uint32_t first[2];
    memcpy(first, *(void **)&real_malloc, sizeof first);
#ifdef __aarch64__
    return first[0] >> 26 == 5; /* b */
#else
    int landing_pad = (first[0] & 0xffffff) == 0x1e0ff3; /* endbr */
    return (first[landing_pad] & 0xff) == 0xe9;
#endif
}

static void *came(void *block)
{
    if (block && is_hooked()) {
        atomic_fetch_add(&counts[BYTES_IN], malloc_usable_size(block));
        atomic_fetch_add(&counts[BLOCKS_IN], 1);
    }
    return block;
}

static void went(size_t bytes)
{
    if (is_hooked()) {
        atomic_fetch_add(&counts[BYTES_OUT], bytes);
        atomic_fetch_add(&counts[BLOCKS_OUT], 1);
    }
}

EXPORT void *malloc(size_t bytes)
{
    look();
    return real_free ? came(real_malloc(bytes)) : from_first(bytes);
}

EXPORT void *calloc(size_t count, size_t bytes)
{
    look();
    return real_free ? came(real_calloc(count, bytes)) : from_first(count * bytes);
}

EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
    look();
    return came(real_aligned(alignment, bytes));
}

EXPORT void *memalign(size_t alignment, size_t bytes)
{
    return aligned_alloc(alignment, bytes);
}

EXPORT int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    int failed;
    look();
    failed = real_posix(block, alignment, bytes);
    if (!failed)
        came(*block);
    return failed;
}

EXPORT void *realloc(void *block, size_t bytes)
{
    size_t before = block && !is_first(block) ? malloc_usable_size(block) : 0;
    void *moved;
    look();
    if (is_first(block)) {
        moved = malloc(bytes);
        return moved ? memcpy(moved, block, bytes) : NULL;
    }
    moved = real_realloc(block, bytes);
    if (block && (moved || bytes == 0))
        went(before);
    return came(moved);
}

EXPORT void free(void *block)
{
    look();
    if (!block || is_first(block))
        return;
    went(malloc_usable_size(block));
    real_free(block);
}
