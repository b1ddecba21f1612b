/* SPDX-License-Identifier: MIT */
/*
 * System calls that a stopped thread of another process makes on behalf of the caller.
 *
 *   STOPPED --begin--> registers saved, signals blocked
 *           --call---> at the instruction, syscall-entry stop, syscall-exit stop   repeated
 *           --end----> event stop, registers and mask restored: STOPPED again
 *
 * The thread's own system call, if the stop interrupted one, is restarted by the kernel when the
 * thread continues from an event stop (Linux, kernel/signal.c, get_signal).  So the thread must be
 * in such a stop again before its registers are restored.  None of the calls made here replaces the
 * thread's restart block.  While no signal is delivered, no handler runs with foreign registers.
 * If this process is killed meanwhile, the thread finds its way back by a frame on its stack
 * (remote_frame.c).
 */
#include "os/linux/remote_parts.h"

#include "os/linux/maps.h"
#include "os/linux/remote_frame.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#if defined(__x86_64__)

bool hfn_os_can_enter_others(void)
{
    return true;
}

enum {
    PAGE_BYTES = 4096,
    RETRIES = 4, /* of a step that restores something */
    CALL_STOP = SIGTRAP | 0x80,
    WAIT_NS = 20000,
    MAX_WAITS = 250000, /* 5 s; a call that was begun must end */
};

typedef struct user_regs_struct registers;

_Static_assert(sizeof(registers) <= sizeof((hfn_remote *)0)->caller.registers, "room for them");

static hfn_os_error trace_thread(enum __ptrace_request request, uint32_t tid, uint64_t address,
                                 uint64_t data)
{
    if (hfn_linux_step_fails()) {
        return EIO;
    }
    errno = 0;
    return ptrace(request, (pid_t)tid, (void *)(uintptr_t)address, (void *)(uintptr_t)data) == 0
               ? 0
               : errno;
}

/* For a step that must not fail: it fails for good only if the thread was killed. */
static hfn_os_error trace_surely(enum __ptrace_request request, uint32_t tid, uint64_t address,
                                 uint64_t data)
{
    hfn_os_error error = EIO;

    for (int i = 0; i < RETRIES && error != 0 && error != ESRCH; i++) {
        error = trace_thread(request, tid, address, data);
    }
    return error;
}

static uint64_t address_of(const void *object)
{
    return (uint64_t)(uintptr_t)object;
}

static hfn_os_error write_registers(uint32_t tid, const registers *from)
{
    struct iovec all = { (void *)(uintptr_t)from, sizeof *from };

    return trace_surely(PTRACE_SETREGSET, tid, NT_PRSTATUS, address_of(&all));
}

/* Wait until the thread stops or is killed; *status as in wait(2). */
static hfn_os_error wait_for_stop(uint32_t tid, int *status)
{
    static const struct timespec pause = { 0, WAIT_NS };
    pid_t got;

    for (int i = 0; i < MAX_WAITS; i++) {
        got = waitpid((pid_t)tid, status, __WALL | WNOHANG);
        if (got == (pid_t)tid) {
            return WIFSTOPPED(*status) ? 0 : ESRCH;
        }
        if (got < 0 && errno != EINTR) {
            return errno;
        }
        nanosleep(&pause, NULL);
    }
    return ETIMEDOUT;
}

static bool is_event_stop(int status)
{
    return status >> 16 == HFN_EVENT_STOP;
}

/* Let the thread go on to its next syscall stop.  Other stops (another PTRACE_INTERRUPT, SIGSTOP)
 * are left at once. */
static hfn_os_error reach_call_stop(uint32_t tid)
{
    hfn_os_error error;
    int status;

    do {
        error = trace_surely(PTRACE_SYSCALL, tid, 0, 0);
        if (error == 0) {
            error = wait_for_stop(tid, &status);
        }
    } while (error == 0 && is_event_stop(status));
    return error != 0 || WSTOPSIG(status) == CALL_STOP ? error : EFAULT;
}

/* Store the result of a system call, which is negative after an error. */
static hfn_os_error call_system(hfn_remote *r, int64_t *result, uint64_t number,
                                const uint64_t arguments[6])
{
    registers now;
    struct iovec all = { &now, sizeof now };
    hfn_os_error error;

    if (hfn_linux_step_fails()) {
        return EIO;
    }
    memcpy(&now, r->caller.registers, sizeof now);
    now.rip = r->caller.code;
    now.rax = number;
    now.orig_rax = (unsigned long long)-1; /* nothing to restart */
    now.rdi = arguments[0];
    now.rsi = arguments[1];
    now.rdx = arguments[2];
    now.r10 = arguments[3];
    now.r8 = arguments[4];
    now.r9 = arguments[5];
    now.rsp = r->caller.stack ? r->caller.stack : now.rsp;
    r->caller.is_at_call = true;
    error = write_registers(r->caller.tid, &now);
    if (error == 0) {
        error = reach_call_stop(r->caller.tid);
    }
    if (error == 0) {
        error = reach_call_stop(r->caller.tid);
    }
    if (error == 0) {
        error = trace_surely(PTRACE_GETREGSET, r->caller.tid, NT_PRSTATUS, address_of(&all));
    }
    *result = (int64_t)now.rax;
    return error;
}

/* The same for a call whose result is an error or a value. */
hfn_os_error hfn_linux_make_call(hfn_remote *r, uint64_t *out, uint64_t number, uint64_t a,
                                 uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
    const uint64_t arguments[6] = { a, b, c, d, e, f };
    int64_t result = 0;
    hfn_os_error error = call_system(r, &result, number, arguments);

    if (error == 0 && result < 0 && result > -PAGE_BYTES) {
        return (hfn_os_error)-result;
    }
    if (error == 0 && out) {
        *out = (uint64_t)result;
    }
    return error;
}

/* ---- Beginning. */

/* `syscall; ret`, which ends short functions of the C library; `mov $15, %rax; syscall`, to which
 * handlers of signals return; `syscall`. */
static const uint8_t call_and_return[] = { 0x0f, 0x05, 0xc3 };
static const uint8_t restorer[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
static const uint8_t call_alone[] = { 0x0f, 0x05 };

typedef struct code_search {
    const hfn_remote *remote;
    const uint8_t *pattern;
    size_t pattern_bytes;
    uint64_t found;
} code_search;

static bool is_code(const hfn_map *map)
{
    return (map->protection & PROT_EXEC) && (map->protection & PROT_READ);
}

/* The two bytes of the instruction may also be a part of another one. */
static bool search_map(void *user, const hfn_map *map)
{
    code_search *search = user;
    uint8_t bytes[PAGE_BYTES];
    uint64_t done;

    for (uint64_t at = map->begin; is_code(map) && at < map->end; at += sizeof bytes) {
        const uint8_t *hit;
        if (hfn_os_read_at(search->remote->memory, at, bytes, sizeof bytes, &done) != 0 ||
            done != sizeof bytes) {
            break;
        }
        hit = memmem(bytes, sizeof bytes, search->pattern, search->pattern_bytes);
        if (hit) {
            search->found = at + (uint64_t)(hit - bytes);
            return false;
        }
    }
    return true;
}

/* The vDSO and files stay mapped, unlike code that the calls may unmap. */
static bool search_vdso(void *user, const hfn_map *map)
{
    return !map->is_vdso || search_map(user, map);
}

static bool search_file(void *user, const hfn_map *map)
{
    return !map->is_file || search_map(user, map);
}

static uint64_t find_code(const hfn_remote *r, const uint8_t *pattern, size_t bytes)
{
    code_search search = { r, pattern, bytes, 0 };

    hfn_linux_each_map_of(r->pid, search_vdso, &search);
    if (search.found == 0) {
        hfn_linux_each_map_of(r->pid, search_file, &search);
    }
    return search.found;
}

/* Is the frame's stack large?  Programs with small ones have that of their first thread, which the
 * kernel has made and extends. */
typedef struct stack_search {
    uint64_t sp;
    bool is_large;
} stack_search;

static bool search_stack(void *user, const hfn_map *map)
{
    stack_search *search = user;

    search->is_large = map->is_stack && search->sp >= map->begin && search->sp < map->end;
    return !search->is_large;
}

static bool has_large_stack(const hfn_remote *r)
{
    registers before;
    stack_search search = { 0, !r->has_small_stacks };

    memcpy(&before, r->caller.registers, sizeof before);
    search.sp = before.rsp;
    if (r->has_small_stacks) {
        hfn_linux_each_map_of(r->pid, search_stack, &search);
    }
    return search.is_large;
}

/* Choose the code of the calls, and where it returns to.  Programs without such code, or with no
 * room on the stack, are lost if this process is killed during the calls. */
static hfn_os_error prepare_code(hfn_remote *r, uint32_t tid)
{
    uint64_t code = find_code(r, call_and_return, sizeof call_and_return);
    uint64_t returns_to = find_code(r, restorer, sizeof restorer);
    bool can_return = code && returns_to && has_large_stack(r);

    r->caller.stack = 0;
    for (int i = 0; i < RETRIES && can_return && r->caller.stack == 0; i++) {
        r->caller.stack = hfn_linux_write_frame(r, tid, returns_to, r->caller.signals);
    }
    r->caller.code = r->caller.stack ? code : find_code(r, call_alone, sizeof call_alone);
    return r->caller.code ? 0 : ENOEXEC;
}

/* From now on the thread restores itself if it runs on. */
static hfn_os_error leave_way_back(const hfn_remote *r, uint32_t tid)
{
    registers now;

    if (r->caller.stack == 0) {
        return 0;
    }
    memcpy(&now, r->caller.registers, sizeof now);
    now.rip = r->caller.code + sizeof call_and_return - 1;
    now.rsp = r->caller.stack;
    now.orig_rax = (unsigned long long)-1;
    return write_registers(tid, &now);
}

/* A filter (seccomp) may end the process for a call that the program itself never makes.  If it is
 * not known whether there is one, there is one. */
static bool limits_calls(const hfn_remote *r, uint32_t tid)
{
    char path[HFN_PROC_PATH_BYTES], line[512];
    unsigned mode = 1;
    FILE *status;

    snprintf(path, sizeof path, "/proc/%u/task/%u/status", r->pid, tid);
    status = fopen(path, "re");
    while (status && fgets(line, sizeof line, status) && sscanf(line, "Seccomp: %u", &mode) != 1) {
    }
    if (status) {
        fclose(status);
    }
    return mode != 0;
}

/* A thread that stopped to receive a signal would have to keep it, so another one is chosen. */
static hfn_os_error choose_thread(hfn_remote *r, uint32_t *tid)
{
    r->limits_calls = false;
    for (uint32_t i = 0; i < r->thread_count; i++) {
        if (r->threads[i].state != HFN_THREAD_STOPPED || r->threads[i].delivery != 0) {
            continue;
        }
        if (!limits_calls(r, r->threads[i].tid)) {
            *tid = r->threads[i].tid;
            return 0;
        }
        r->limits_calls = true;
    }
    return r->limits_calls ? EPERM : EAGAIN;
}

hfn_os_error hfn_os_remote_begin_calls(hfn_remote *r)
{
    struct iovec all = { r->caller.registers, sizeof(registers) };
    uint64_t blocked = UINT64_MAX;
    uint32_t tid = 0;
    hfn_os_error error = choose_thread(r, &tid);

    if (error == 0) {
        error = trace_thread(PTRACE_GETREGSET, tid, NT_PRSTATUS, address_of(&all));
    }
    if (error == 0 && all.iov_len != sizeof(registers)) {
        error = ENOEXEC; /* a thread that runs 32-bit code */
    }
    if (error == 0) {
        error = trace_thread(PTRACE_SETOPTIONS, tid, 0, PTRACE_O_TRACESYSGOOD);
    }
    if (error == 0) {
        error = trace_thread(PTRACE_GETSIGMASK, tid, sizeof r->caller.signals,
                             address_of(&r->caller.signals));
    }
    if (error == 0) {
        error = prepare_code(r, tid);
    }
    if (error != 0) {
        return error;
    }
    r->caller.tid = tid;
    r->caller.is_at_call = false;
    error = leave_way_back(r, tid);
    if (error == 0) {
        error = trace_thread(PTRACE_SETSIGMASK, tid, sizeof blocked, address_of(&blocked));
    }
    if (error != 0) {
        hfn_os_remote_end_calls(r);
    }
    return error;
}

/* ---- The calls. */

hfn_os_error hfn_linux_map_at(hfn_remote *r, uint64_t address, uint64_t byte_count, uint64_t flags,
                              uint64_t fd)
{
    uint64_t got = 0;
    hfn_os_error error =
        hfn_linux_make_call(r, &got, SYS_mmap, address, byte_count, PROT_READ | PROT_WRITE,
                            flags | MAP_FIXED_NOREPLACE, fd, 0);

    if (error == 0 && got != address) { /* before Linux 4.17 the flag is ignored */
        hfn_os_remote_unmap(r, got, byte_count);
        return EEXIST;
    }
    return error;
}

hfn_os_error hfn_os_remote_map(hfn_remote *r, uint64_t address, uint64_t byte_count)
{
    return hfn_linux_map_at(r, address, byte_count, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX);
}

hfn_os_error hfn_os_remote_make_readonly(hfn_remote *r, uint64_t address, uint64_t byte_count)
{
    return hfn_linux_make_call(r, NULL, SYS_mprotect, address, byte_count, PROT_READ, 0, 0, 0);
}

hfn_os_error hfn_os_remote_make_executable(hfn_remote *r, uint64_t address, uint64_t byte_count)
{
    return hfn_linux_make_call(r, NULL, SYS_mprotect, address, byte_count, PROT_READ | PROT_EXEC, 0,
                               0, 0);
}

hfn_os_error hfn_os_remote_unmap(hfn_remote *r, uint64_t address, uint64_t byte_count)
{
    return hfn_linux_make_call(r, NULL, SYS_munmap, address, byte_count, 0, 0, 0, 0);
}

/* ---- The end. */

/* From a syscall stop to an event stop, without an instruction of the program. */
static hfn_os_error reach_event_stop(uint32_t tid)
{
    hfn_os_error error = trace_surely(PTRACE_INTERRUPT, tid, 0, 0);
    int status = 0;

    while (error == 0 && !is_event_stop(status)) {
        error = trace_surely(PTRACE_CONT, tid, 0, 0);
        if (error == 0) {
            error = wait_for_stop(tid, &status);
        }
    }
    return error;
}

hfn_os_error hfn_os_remote_end_calls(hfn_remote *r)
{
    uint32_t tid = r->caller.tid;
    hfn_os_error restored;

    if (tid == 0) {
        return 0;
    }
    restored = r->caller.is_at_call ? reach_event_stop(tid) : 0;
    if (restored == 0) {
        restored = trace_surely(PTRACE_SETSIGMASK, tid, sizeof r->caller.signals,
                                address_of(&r->caller.signals));
    }
    if (restored == 0) {
        registers saved;
        memcpy(&saved, r->caller.registers, sizeof saved);
        restored = write_registers(tid, &saved);
    }
    r->caller.tid = 0;
    return restored;
}

#else

bool hfn_os_can_enter_others(void)
{
    return false;
}

hfn_os_error hfn_os_remote_begin_calls(hfn_remote *r)
{
    (void)r;
    return ENOSYS;
}

hfn_os_error hfn_os_remote_map(hfn_remote *r, uint64_t address, uint64_t byte_count)
{
    (void)r, (void)address, (void)byte_count;
    return ENOSYS;
}

hfn_os_error hfn_os_remote_make_readonly(hfn_remote *r, uint64_t address, uint64_t byte_count)
{
    (void)r, (void)address, (void)byte_count;
    return ENOSYS;
}

hfn_os_error hfn_os_remote_make_executable(hfn_remote *r, uint64_t address, uint64_t byte_count)
{
    (void)r, (void)address, (void)byte_count;
    return ENOSYS;
}

hfn_os_error hfn_os_remote_unmap(hfn_remote *r, uint64_t address, uint64_t byte_count)
{
    (void)r, (void)address, (void)byte_count;
    return ENOSYS;
}

hfn_os_error hfn_os_remote_end_calls(hfn_remote *r)
{
    (void)r;
    return 0;
}

#endif
