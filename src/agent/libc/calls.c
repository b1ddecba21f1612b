/* SPDX-License-Identifier: MIT */
/* The agent's own system calls under their C library names; text.c explains why.  They have a
 * separate errno, so that the target's errno is never changed. */
#include "os/linux/raw.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int *__errno_location(void)
{
    static __thread int own __attribute__((tls_model("initial-exec")));

    return &own;
}

static long set_errno(long result)
{
    if (result < 0 && result >= -4095) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

/* Texts for the errors that users can act on; those of the C library depend on its locales. */
char *strerror(int error)
{
    static char other[32];
    static const struct {
        int error;
        const char *text;
    } known[] = { { EPERM, "Operation not permitted" }, { ENOENT, "No such file or directory" },
                  { EACCES, "Permission denied" },      { ENOMEM, "Cannot allocate memory" },
                  { EMFILE, "Too many open files" },    { EINVAL, "Invalid argument" } };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].error == error) {
            return (char *)(uintptr_t)known[i].text;
        }
    }
    snprintf(other, sizeof other, "error %d", error);
    return other;
}

/* ---- Files. */

int open(const char *path, int flags, ...)
{
    va_list more;
    int mode;

    va_start(more, flags);
    mode = flags & O_CREAT ? va_arg(more, int) : 0;
    va_end(more);
    return (int)set_errno(hfn_raw_syscall4(SYS_openat, (uint64_t)(int64_t)AT_FDCWD,
                                           hfn_raw_pointer(path), (uint64_t)(flags | O_LARGEFILE),
                                           (uint64_t)mode));
}

int close(int fd)
{
    return (int)set_errno(hfn_raw_syscall3(SYS_close, (uint64_t)fd, 0, 0));
}

ssize_t read(int fd, void *to, size_t count)
{
    return set_errno(hfn_raw_syscall3(SYS_read, (uint64_t)fd, hfn_raw_pointer(to), count));
}

ssize_t write(int fd, const void *from, size_t count)
{
    return set_errno(hfn_raw_syscall3(SYS_write, (uint64_t)fd, hfn_raw_pointer(from), count));
}

ssize_t pread(int fd, void *to, size_t count, off_t at)
{
    uint64_t place = (uint64_t)at;

    if (sizeof(long) == 4) {
        return set_errno(hfn_raw_syscall6(SYS_pread64, (uint64_t)fd, hfn_raw_pointer(to), count,
                                          (uint32_t)place, place >> 32, 0));
    }
    return set_errno(
        hfn_raw_syscall4(SYS_pread64, (uint64_t)fd, hfn_raw_pointer(to), count, place));
}

ssize_t readlink(const char *path, char *to, size_t count)
{
    return set_errno(hfn_raw_syscall4(SYS_readlinkat, (uint64_t)(int64_t)AT_FDCWD,
                                      hfn_raw_pointer(path), hfn_raw_pointer(to), count));
}

/* With 64-bit file offsets the kernel's struct stat is that of the C library. */
static int stat_at(int folder, const char *path, struct stat *out, int flags)
{
#ifdef SYS_newfstatat
    const long number = SYS_newfstatat;
#else
    const long number = SYS_fstatat64;
#endif

    return (int)set_errno(hfn_raw_syscall4(number, (uint64_t)(int64_t)folder, hfn_raw_pointer(path),
                                           hfn_raw_pointer(out), (uint64_t)flags));
}

int stat(const char *path, struct stat *out)
{
    return stat_at(AT_FDCWD, path, out, 0);
}

int fstat(int fd, struct stat *out)
{
    return stat_at(fd, "", out, AT_EMPTY_PATH);
}

/* The kernel follows all links when it opens the file; /proc/self/fd then has the final path. */
char *realpath(const char *path, char *to)
{
    char link[32];
    ssize_t length;
    int fd = open(path, O_PATH | O_CLOEXEC);

    if (fd < 0) {
        return NULL;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, to, 4095); /* callers pass PATH_MAX bytes */
    close(fd);
    if (length <= 0) {
        return NULL;
    }
    to[length] = 0;
    return to;
}

/* ---- Memory. */

void *mmap(void *at, size_t count, int protection, int flags, int fd, off_t offset)
{
#ifdef SYS_mmap2
    const long number = SYS_mmap2;
    uint64_t place = (uint64_t)offset >> 12;
#else
    const long number = SYS_mmap;
    uint64_t place = (uint64_t)offset;
#endif
    unsigned long got =
        (unsigned long)hfn_raw_syscall6(number, hfn_raw_pointer(at), count, (uint64_t)protection,
                                        (uint64_t)flags, (uint64_t)(int64_t)fd, place);

    if (got >= -4095ul) {
        errno = (int)-got;
        return MAP_FAILED;
    }
    return (void *)got;
}

int munmap(void *at, size_t count)
{
    return (int)set_errno(hfn_raw_syscall3(SYS_munmap, hfn_raw_pointer(at), count, 0));
}

int madvise(void *at, size_t count, int advice)
{
    return (int)set_errno(
        hfn_raw_syscall3(SYS_madvise, hfn_raw_pointer(at), count, (uint64_t)advice));
}

/* Placeholders: the agent allocates by hotfn_env_own_memory, and the library's default allocator
 * only needs the names to link. */
void *realloc(void *memory, size_t count)
{
    (void)memory;
    (void)count;
    return NULL;
}

void free(void *memory)
{
    (void)memory;
}

/* ---- Processes, clocks, system parameters. */

int getrlimit(__rlimit_resource_t resource, struct rlimit *out)
{
    uint64_t both[2] = { 0, 0 };
    long got = hfn_raw_syscall4(SYS_prlimit64, 0, (uint64_t)resource, 0, hfn_raw_pointer(both));

    *out = (struct rlimit){ both[0], both[1] };
    return (int)set_errno(got);
}

pid_t getpid(void)
{
    return (pid_t)hfn_raw_syscall3(SYS_getpid, 0, 0, 0);
}

int kill(pid_t pid, int signal_number)
{
    return (int)set_errno(hfn_raw_syscall3(SYS_kill, (uint64_t)pid, (uint64_t)signal_number, 0));
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    uint64_t now[2] = { 0, 0 };

    hfn_raw_clock(clock, now);
    *out = (struct timespec){ (time_t)now[0], (long)now[1] };
    return 0;
}

static const ElfW(auxv_t) * auxiliary;

/* The auxiliary vector follows the environment; read it before the environment is shortened. */
__attribute__((constructor(101))) static void find_auxiliary(int argc, char **argv, char **envp)
{
    (void)argc, (void)argv;
    while (*envp) {
        envp++;
    }
    auxiliary = (const void *)(envp + 1);
}

unsigned long getauxval(unsigned long type)
{
    for (const ElfW(auxv_t) *at = auxiliary; at && at->a_type != AT_NULL; at++) {
        if (at->a_type == type) {
            return at->a_un.a_val;
        }
    }
    return 0;
}

long sysconf(int name)
{
    return name == _SC_PAGESIZE ? (long)getauxval(AT_PAGESZ) : -1;
}
