/* SPDX-License-Identifier: MIT */
/* HOT PATH: raw system calls only; built for general registers alone (meson.build). */
#include "os/hot_path.h"

#include "os/linux/raw.h"
#include "os/row_word.h"

#include <fcntl.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18 /* Linux 4.14 */
#endif

#ifndef HFN_CORE
__thread uint8_t *hfn_thread_row __attribute__((tls_model("initial-exec")));
#endif

/* CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_THREAD_CPUTIME_ID */
enum { WALL_CLOCK = 0, MONOTONIC_CLOCK = 1, CPU_CLOCK = 3 };

uint32_t hfn_os_hot_thread_id(void)
{
    return (uint32_t)hfn_raw_syscall3(SYS_gettid, 0, 0, 0);
}

uint32_t hfn_os_hot_process_id(void)
{
    return (uint32_t)hfn_raw_syscall3(SYS_getpid, 0, 0, 0);
}

uint32_t hfn_os_hot_parent_id(void)
{
    return (uint32_t)hfn_raw_syscall3(SYS_getppid, 0, 0, 0);
}

bool hfn_os_hot_thread_is_gone(uint32_t pid, uint32_t tid)
{
    return hfn_raw_syscall3(SYS_tgkill, pid, tid, 0) == -ESRCH;
}

bool hfn_os_hot_process_is_gone(uint32_t pid)
{
    return hfn_raw_syscall3(SYS_kill, pid, 0, 0) == -ESRCH;
}

/* The inode number in "pid:[4026531836]"; 0 without /proc. */
uint32_t hfn_os_hot_process_namespace(void)
{
    char text[64] = "";
    uint32_t number = 0;
    long length =
        hfn_raw_syscall4(SYS_readlinkat, (uint64_t)AT_FDCWD, hfn_raw_pointer("/proc/self/ns/pid"),
                         hfn_raw_pointer(text), sizeof text);

    for (long i = 0; i < length; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            number = number * 10 + (uint32_t)(text[i] - '0');
        }
    }
    return number;
}

void hfn_os_hot_thread_name(char *out)
{
    hfn_raw_syscall3(SYS_prctl, PR_GET_NAME, hfn_raw_pointer(out), 0);
}

/* ---- What the system reports of threads. */

static char *write_text(char *out, const char *text)
{
    while (*text) {
        *out++ = *text++;
    }
    return out;
}

static char *write_number(char *out, uint32_t number)
{
    uint32_t unit = 1;

    while (number / unit >= 10) {
        unit *= 10;
    }
    for (; unit > 0; unit /= 10) {
        *out++ = (char)('0' + number / unit % 10);
    }
    return out;
}

/* Read a small file of /proc/PID/task/TID; the number of bytes, or 0. */
static uint32_t read_task_file(uint32_t pid, uint32_t tid, const char *name, char *out,
                               uint32_t capacity)
{
    char path[64], *end;
    long fd, got;

    end = write_number(write_text(path, "/proc/"), pid);
    end = write_number(write_text(end, "/task/"), tid);
    *write_text(end, name) = 0;
    fd = hfn_raw_syscall3(SYS_openat, (uint64_t)AT_FDCWD, hfn_raw_pointer(path),
                          O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    got = hfn_raw_syscall3(SYS_read, (uint64_t)fd, hfn_raw_pointer(out), capacity);
    hfn_raw_syscall3(SYS_close, (uint64_t)fd, 0, 0);
    return got > 0 ? (uint32_t)got : 0;
}

/* The first number in schedstat is the time on a processor, in nanoseconds
 * (Linux, Documentation/scheduler/sched-stats.rst). */
bool hfn_os_hot_read_thread(uint32_t pid, uint32_t tid, hfn_thread_facts *out)
{
    hfn_thread_facts facts = { "", 0 };
    char text[64];
    uint32_t length = read_task_file(pid, tid, "/comm", facts.name, sizeof facts.name);

    if (length == 0) {
        return false;
    }
    facts.name[length - 1] = 0; /* a newline */
    length = read_task_file(pid, tid, "/schedstat", text, sizeof text);
    for (uint32_t i = 0; i < length && text[i] >= '0' && text[i] <= '9'; i++) {
        facts.cpu_ns = facts.cpu_ns * 10 + (uint64_t)(text[i] - '0');
    }
    *out = facts;
    return true;
}

/* ---- Clocks. */

static uint64_t read_clock(int clock)
{
    uint64_t now[2] = { 0, 0 };

    hfn_raw_clock(clock, now);
    return now[0] * 1000000000u + now[1];
}

uint64_t hfn_os_hot_cpu_ns(void)
{
    return read_clock(CPU_CLOCK);
}

uint64_t hfn_os_hot_wall_ns(void)
{
    return read_clock(WALL_CLOCK);
}

uint64_t hfn_os_hot_monotonic_ns(void)
{
    return read_clock(MONOTONIC_CLOCK);
}

/* ---- Memory. */

void *hfn_os_hot_map_pages(uint64_t byte_count)
{
    uint64_t at = hfn_raw_map(0, byte_count, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);

    if (at) {
        hfn_raw_syscall3(SYS_madvise, at, byte_count, MADV_DONTDUMP);
    }
    return (void *)(uintptr_t)at;
}

void hfn_os_hot_unmap_pages(void *at, uint64_t byte_count)
{
    hfn_raw_syscall3(SYS_munmap, hfn_raw_pointer(at), byte_count, 0);
}

void hfn_os_hot_clear_pages(void *at, uint64_t byte_count)
{
    hfn_raw_syscall3(SYS_madvise, hfn_raw_pointer(at), byte_count, MADV_DONTNEED);
}

bool hfn_os_hot_clear_on_fork(void *at, uint64_t byte_count)
{
    return hfn_raw_syscall3(SYS_madvise, hfn_raw_pointer(at), byte_count, MADV_WIPEONFORK) == 0;
}

/* The kernel does the access: at an address that is not mapped any more the call fails, where a
 * load would fault. */
bool hfn_os_hot_read_word(uint64_t address, uintptr_t *out)
{
    struct iovec here = { out, sizeof *out };
    struct iovec there = { (void *)(uintptr_t)address, sizeof *out };

    return hfn_raw_syscall6(SYS_process_vm_readv, hfn_os_hot_process_id(), hfn_raw_pointer(&here),
                            1, hfn_raw_pointer(&there), 1, 0) == (long)sizeof *out;
}

bool hfn_os_hot_disables_tsc(long number, unsigned long option, unsigned long mode)
{
    if (number == SYS_seccomp) {
        return (unsigned)option == SECCOMP_SET_MODE_STRICT;
    }
    return number == SYS_prctl &&
           (((int)option == PR_SET_TSC && (unsigned)mode == PR_TSC_SIGSEGV) ||
            ((int)option == PR_SET_SECCOMP && mode == SECCOMP_MODE_STRICT));
}

size_t hfn_os_hot_read_bytes(uint64_t address, void *out, size_t byte_count)
{
    struct iovec here = { out, byte_count };
    struct iovec there = { (void *)(uintptr_t)address, byte_count };
    long got = hfn_raw_syscall6(SYS_process_vm_readv, hfn_os_hot_process_id(),
                                hfn_raw_pointer(&here), 1, hfn_raw_pointer(&there), 1, 0);

    return got > 0 ? (size_t)got : 0;
}

bool hfn_os_hot_write_word(uint64_t address, uintptr_t value)
{
    struct iovec here = { &value, sizeof value };
    struct iovec there = { (void *)(uintptr_t)address, sizeof value };

    return hfn_raw_syscall6(SYS_process_vm_writev, hfn_os_hot_process_id(), hfn_raw_pointer(&here),
                            1, hfn_raw_pointer(&there), 1, 0) == (long)sizeof value;
}

void *hfn_os_hot_reserve_pages(uint64_t byte_count)
{
    return hfn_os_hot_map_pages(byte_count);
}

bool hfn_os_hot_commit_pages(void *at, uint64_t byte_count)
{
    (void)at;
    (void)byte_count;
    return true;
}

bool hfn_os_hot_clear_row_words(void)
{
    return false;
}
