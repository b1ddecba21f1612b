/* SPDX-License-Identifier: MIT */
/*
 * Stops another process by ptrace.  PTRACE_SEIZE and PTRACE_INTERRUPT stop a thread without a
 * signal, and PTRACE_DETACH resumes it, with its pending signal if it had stopped for one.  The
 * kernel restarts interrupted system calls, except for those that it never restarts (signal(7):
 * epoll_wait).  Memory is written through /proc/PID/mem, which makes private copies of code pages,
 * as for a debugger, and maintains the caches (Linux, arch/arm64/mm/flush.c: copy_to_user_page).
 *
 * If the leader of the thread group is a child of the caller, the caller reaps it: its exit status
 * is not consumed here.
 */
#include "os/remote.h"

#include "base/compiler.h"
#include "base/memory.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HELD = 1, STOPPED = 2, GONE = 3 }; /* a thread's state */
enum { POLL_NS = 50000, PATH_BYTES = 64, EVENT_STOP = 128 /* PTRACE_EVENT_STOP */ };

bool hfn_os_can_change_others(void)
{
    return HFN_CAN_CHANGE_OTHERS;
}

/* ---- Memory. */

hfn_os_error hfn_os_remote_open(hfn_remote *r)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "/proc/%u/mem", r->pid);
    return hfn_os_open_file(&r->memory, path, HFN_OS_READ | HFN_OS_WRITE);
}

void hfn_os_remote_close(hfn_remote *r)
{
    if (hfn_os_is_open(r->memory)) {
        hfn_os_close_file(r->memory);
    }
    r->memory = HFN_OS_NO_FILE;
}

bool hfn_os_remote_read(const hfn_remote *r, uint64_t address, void *out, uint32_t byte_count)
{
    uint64_t done;

    return hfn_os_read_at(r->memory, address, out, byte_count, &done) == 0 && done == byte_count;
}

bool hfn_os_remote_write(const hfn_remote *r, uint64_t address, const void *bytes,
                         uint32_t byte_count)
{
    return hfn_os_write_at(r->memory, address, bytes, byte_count) == 0;
}

/* ---- Stopping. */

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Linux, Documentation/scheduler/sched-stats.rst: time run, time waited, time slices; 0 if
 * unknown. */
static uint64_t waited_ns(void)
{
    char text[96];
    unsigned long long waited = 0;
    int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof text - 1);

    if (fd >= 0) {
        close(fd);
    }
    text[got > 0 ? got : 0] = 0;
    return sscanf(text, "%*u %llu", &waited) == 1 ? waited : 0;
}

uint64_t hfn_os_remote_get_stopped_ns(const hfn_remote *r)
{
    uint64_t stood = r->stopped_ns ? now_ns() - r->stopped_ns : 0, waited;

    if (stood == 0) {
        return 0;
    }
    waited = waited_ns() - r->waited_ns;
    return waited < stood ? stood - waited : 0;
}

static hfn_remote_thread *find_thread(hfn_remote *r, uint32_t tid)
{
    for (uint32_t i = 0; i < r->thread_count; i++) {
        if (r->threads[i].tid == tid && r->threads[i].state != GONE) {
            return &r->threads[i];
        }
    }
    return NULL;
}

/* Ensure room before a thread is seized: a seized thread without an entry would stay stopped. */
static bool has_room(hfn_remote *r)
{
    uint32_t capacity = r->thread_capacity ? 2 * r->thread_capacity : 16;
    hfn_remote_thread *more;

    if (r->thread_count < r->thread_capacity) {
        return true;
    }
    more = hfn_resize_memory(&r->env, r->threads, r->thread_capacity * sizeof *more,
                             capacity * sizeof *more);
    if (!more) {
        return false;
    }
    r->threads = more;
    r->thread_capacity = capacity;
    return true;
}

/* proc(5): the letter behind the name, which ends at the last bracket. */
static bool is_dead(uint32_t pid, uint32_t tid)
{
    char path[PATH_BYTES], stat[512];
    const char *state;
    ssize_t got;
    int fd;

    snprintf(path, sizeof path, "/proc/%u/task/%u/stat", pid, tid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) { /* other errors: the thread exists, but no file descriptor is free */
        return errno == ENOENT || errno == ESRCH;
    }
    got = read(fd, stat, sizeof stat - 1);
    close(fd);
    stat[got > 0 ? got : 0] = 0;
    state = strrchr(stat, ')');
    return !state || state[1] != ' ' || strchr("ZXx", state[2]);
}

/* Seize a thread; 0 also if the thread has ended. */
static hfn_os_error seize_thread(hfn_remote *r, uint32_t tid)
{
    hfn_remote_thread *thread;
    hfn_os_error error;

    if (!has_room(r)) {
        return ENOMEM;
    }
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0) {
        error = errno;
        return error == ESRCH || is_dead(r->pid, tid) ? 0 : error;
    }
    thread = &r->threads[r->thread_count++];
    *thread = (hfn_remote_thread){ tid, HELD, 0 };
    if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0) {
        thread->state = GONE;
    }
    return 0;
}

/* Seize all threads that are not seized yet; *added receives their number. */
static hfn_os_error hold_all(hfn_remote *r, uint32_t *added)
{
    char path[PATH_BYTES];
    struct dirent *entry;
    hfn_os_error error = 0;
    DIR *tasks;

    *added = 0;
    snprintf(path, sizeof path, "/proc/%u/task", r->pid);
    tasks = opendir(path);
    if (!tasks) {
        return errno;
    }
    while (error == 0 && (entry = readdir(tasks)) != NULL) {
        uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10), before = r->thread_count;
        if (tid == 0 || find_thread(r, tid)) {
            continue;
        }
        error = seize_thread(r, tid);
        *added += r->thread_count - before;
    }
    closedir(tasks);
    return error;
}

/* Has the thread stopped or ended by now? */
static void look_at(hfn_remote *r, hfn_remote_thread *thread)
{
    siginfo_t info = { 0 }, taken;
    id_t tid = (id_t)thread->tid;

    if (waitid(P_PID, tid, &info, WEXITED | WSTOPPED | WNOWAIT | WNOHANG | __WALL) != 0) {
        thread->state = errno == ECHILD ? GONE : thread->state;
        return;
    }
    if (info.si_pid == 0) {
        return;
    }
    if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED) {
        thread->state = GONE;
        if (thread->tid != r->pid || !r->is_child) {
            waitid(P_PID, tid, &taken, WEXITED | WNOHANG | __WALL);
        }
        return;
    }
    if (waitid(P_PID, tid, &taken, WSTOPPED | WNOHANG | __WALL) == 0 && taken.si_pid != 0) {
        thread->delivery = taken.si_status >> 8 == EVENT_STOP ? 0 : taken.si_status & 0x7f;
        thread->state = STOPPED;
        if (r->stopped_ns == 0) {
            r->stopped_ns = now_ns();
            r->waited_ns = waited_ns();
        }
    }
}

static bool wait_for_all(hfn_remote *r, uint64_t until_ns)
{
    static const struct timespec poll = { 0, POLL_NS };

    for (;;) {
        bool all = true;
        for (uint32_t i = 0; i < r->thread_count; i++) {
            if (r->threads[i].state == HELD) {
                look_at(r, &r->threads[i]);
            }
            all = all && r->threads[i].state != HELD;
        }
        if (all || now_ns() > until_ns) {
            return all;
        }
        nanosleep(&poll, NULL);
    }
}

hfn_os_error hfn_os_remote_stop(hfn_remote *r, uint64_t timeout_ns)
{
    uint64_t until_ns = now_ns() + timeout_ns;
    uint32_t added;
    hfn_os_error error;

    do {
        error = hold_all(r, &added);
        if (error == 0 && !wait_for_all(r, until_ns)) {
            error = ETIMEDOUT;
        }
    } while (error == 0 && added > 0);
    return error;
}

bool hfn_os_remote_resume(hfn_remote *r)
{
    bool all = true;

    for (uint32_t i = 0; i < r->thread_count; i++) {
        hfn_remote_thread *thread = &r->threads[i];
        if (thread->state == HELD) {
            look_at(r, thread);
        }
        if (thread->state == STOPPED) {
            ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(uintptr_t)thread->delivery);
            thread->state = GONE;
        }
        all = all && thread->state == GONE;
    }
    if (all) {
        r->thread_count = 0;
    }
    r->stopped_ns = 0;
    return all;
}

void hfn_os_remote_finish(hfn_remote *r)
{
    hfn_os_remote_close(r);
    hfn_free_memory(&r->env, r->threads, r->thread_capacity * sizeof *r->threads);
    r->threads = NULL;
    r->thread_count = r->thread_capacity = 0;
}

/* ---- Positions of stopped threads. */

typedef struct place {
    uint64_t pc, sp;
} place;

static bool place_of(uint32_t tid, place *out)
{
#if defined(__x86_64__)
    struct user_regs_struct registers;
    struct iovec all = { &registers, sizeof registers };

    if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)NT_PRSTATUS, &all) != 0 ||
        all.iov_len !=
            sizeof registers) { /* a 32-bit thread has fewer registers and another stack layout */
        return false;
    }
    *out = (place){ registers.rip, registers.rsp };
    return true;
#else
    (void)tid, (void)out;
    return false; /* AArch64: a patch is one instruction, so no thread is inside */
#endif
}

static bool is_in(const hfn_remote_range *ranges, uint32_t count, uint64_t address)
{
    for (uint32_t i = 0; i < count; i++) {
        if (address >= ranges[i].begin && address < ranges[i].end) {
            return true;
        }
    }
    return false;
}

/* Linux, arch/x86: struct rt_sigframe, as in signal_frames.c.  Any word on a stack that points into
 * a range counts, whatever it is.  Signal frames are searched only to find the stacks that handlers
 * on alternate stacks have interrupted. */
enum {
    CHUNK_WORDS = 4096,
    MAX_STACKS = 8,
    MAX_STACK_BYTES = 8 << 20,
    FRAME_SP_WORD = 168 / 8,
    FRAME_SEGMENT_WORD = 192 / 8,
    USER_CODE_SEGMENT = 0x33,
};

typedef struct stack_look {
    const hfn_remote *remote;
    const hfn_remote_range *ranges;
    uint32_t range_count;
    hfn_remote_range all; /* from the lowest begin to the highest end */
    uint64_t stacks[MAX_STACKS];
    uint32_t stack_count;
    uint64_t words[CHUNK_WORDS];
} stack_look;

/* Unlike /proc/PID/mem, this call honours protections: it ends at the guard page behind a stack. */
static uint32_t read_words(stack_look *look, uint64_t at)
{
    struct iovec to = { look->words, sizeof look->words };
    struct iovec from = { (void *)(uintptr_t)at, sizeof look->words };
    ssize_t got = process_vm_readv((pid_t)look->remote->pid, &to, 1, &from, 1, 0);

    if (got < 0) { /* less than a chunk remains: read to the end of the page */
        from.iov_len = 4096 - at % 4096;
        got = process_vm_readv((pid_t)look->remote->pid, &to, 1, &from, 1, 0);
    }
    return got > 0 ? (uint32_t)got / 8 : 0;
}

static void note_stack(stack_look *look, uint64_t sp, uint64_t begin, uint64_t end)
{
    if ((sp < begin || sp >= end) && sp != 0 && look->stack_count < MAX_STACKS) {
        look->stacks[look->stack_count++] = sp & ~UINT64_C(7);
    }
}

static bool stack_leads_in(stack_look *look, uint64_t begin)
{
    for (uint64_t at = begin; at - begin < MAX_STACK_BYTES;) {
        uint32_t count = read_words(look, at);
        for (uint32_t i = 0; i < count; i++) {
            uint64_t word = look->words[i];
            if (word >= look->all.begin && word < look->all.end &&
                is_in(look->ranges, look->range_count, word)) {
                return true;
            }
            if (i >= FRAME_SEGMENT_WORD && (word & 0xffff) == USER_CODE_SEGMENT &&
                (at + 8 * (i - FRAME_SEGMENT_WORD)) % 16 == 8) {
                note_stack(look, look->words[i - FRAME_SEGMENT_WORD + FRAME_SP_WORD], begin,
                           begin + MAX_STACK_BYTES);
            }
        }
        if (count <= FRAME_SEGMENT_WORD) {
            break;
        }
        /* a frame may lie across two chunks */
        at += count == CHUNK_WORDS ? 8 * (uint64_t)(count - FRAME_SEGMENT_WORD) : 8 * count;
    }
    return false;
}

static bool thread_stands_in(stack_look *look, uint32_t tid)
{
    place p;

    if (!place_of(tid, &p) || is_in(look->ranges, look->range_count, p.pc)) {
        return true;
    }
    look->stacks[0] = p.sp & ~UINT64_C(7);
    look->stack_count = 1;
    if (read_words(look, look->stacks[0]) == 0) { /* forbidden (seccomp), or no stack */
        return true;
    }
    for (uint32_t i = 0; i < look->stack_count; i++) {
        if (stack_leads_in(look, look->stacks[i])) {
            return true;
        }
    }
    return false;
}

bool hfn_os_remote_is_inside(const hfn_remote *r, const hfn_remote_range *ranges,
                             uint32_t range_count)
{
    stack_look *look = hfn_allocate_zeroed(&r->env, sizeof *look);
    bool stands = false;

    if (!look) {
        return true;
    }
    look->remote = r;
    look->ranges = ranges;
    look->range_count = range_count;
    look->all = (hfn_remote_range){ UINT64_MAX, 0 };
    for (uint32_t i = 0; i < range_count; i++) {
        look->all.begin = ranges[i].begin < look->all.begin ? ranges[i].begin : look->all.begin;
        look->all.end = ranges[i].end > look->all.end ? ranges[i].end : look->all.end;
    }
    for (uint32_t i = 0; !stands && range_count > 0 && i < r->thread_count; i++) {
        stands = r->threads[i].state == STOPPED && thread_stands_in(look, r->threads[i].tid);
    }
    hfn_free_memory(&r->env, look, sizeof *look);
    return stands;
}
