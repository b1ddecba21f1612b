/* SPDX-License-Identifier: MIT */
/*
 * Registers of stopped threads, and the system calls that a stop interrupted.
 *
 * The kernel restarts most interrupted calls by itself when the thread continues.  A few return
 * EINTR although no signal handler ran (signal(7), "Interruption of system calls and library
 * functions by stop signals"; sockets with a timeout: net/core/sock.h, sock_intr_errno).  The
 * program would not have seen this EINTR, so the call is made again, unless a signal is about to be
 * delivered, which would have interrupted it, too.  A repeated call waits for its whole timeout
 * again.
 */
#include "os/linux/remote_parts.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

#if defined(__x86_64__)

static bool read_all(const hfn_remote *r, uint32_t tid, struct user_regs_struct *out)
{
    struct iovec all = { out, sizeof *out };

    if (r->caller.tid == tid) {
        memcpy(out, r->caller.registers, sizeof *out);
        return true;
    }
    /* a 32-bit thread has fewer registers */
    return ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)NT_PRSTATUS, &all) == 0 &&
           all.iov_len == sizeof *out;
}

static bool write_all(hfn_remote *r, uint32_t tid, struct user_regs_struct *registers)
{
    struct iovec all = { registers, sizeof *registers };

    if (r->caller.tid == tid) {
        memcpy(r->caller.registers, registers, sizeof *registers);
        return true;
    }
    return ptrace(PTRACE_SETREGSET, tid, (void *)(uintptr_t)NT_PRSTATUS, &all) == 0;
}

bool hfn_linux_read_registers(const hfn_remote *r, uint32_t tid, hfn_remote_registers *out)
{
    struct user_regs_struct registers;

    if (!read_all(r, tid, &registers)) {
        return false;
    }
    *out = (hfn_remote_registers){ registers.rip, registers.rsp };
    return true;
}

bool hfn_linux_set_pc(hfn_remote *r, uint32_t tid, uint64_t pc)
{
    struct user_regs_struct registers;

    if (hfn_linux_step_fails() || !read_all(r, tid, &registers)) {
        return false;
    }
    registers.rip = pc;
    return write_all(r, tid, &registers);
}

bool hfn_os_remote_get_thread_pointer(const hfn_remote *r, uint32_t index, uint64_t *out)
{
    struct user_regs_struct registers;

    if (r->threads[index].state != HFN_THREAD_STOPPED || hfn_linux_step_fails() ||
        !read_all(r, r->threads[index].tid, &registers)) {
        return false;
    }
    *out = registers.fs_base;
    return true;
}

bool hfn_os_remote_get_gs_base(const hfn_remote *r, uint32_t index, uint64_t *out)
{
    struct user_regs_struct registers;

    if (r->threads[index].state != HFN_THREAD_STOPPED || hfn_linux_step_fails() ||
        !read_all(r, r->threads[index].tid, &registers)) {
        return false;
    }
    *out = registers.gs_base;
    return true;
}

bool hfn_os_remote_set_gs_base(hfn_remote *r, uint32_t index, uint64_t base)
{
    struct user_regs_struct registers;

    if (r->threads[index].state != HFN_THREAD_STOPPED || hfn_linux_step_fails() ||
        !read_all(r, r->threads[index].tid, &registers)) {
        return false;
    }
    registers.gs_base = base;
    return write_all(r, r->threads[index].tid, &registers);
}

/* Linux, include/linux/errno.h: ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND,
 * ERESTART_RESTARTBLOCK. */
static bool is_restarted(const struct user_regs_struct *registers)
{
    int64_t error = -(int64_t)registers->rax;

    return (int64_t)registers->orig_rax >= 0 && error >= 512 && error <= 516 && error != 515;
}

bool hfn_os_remote_get_restart(const hfn_remote *r, uint32_t index, uint64_t *pc, uint64_t *number)
{
    struct user_regs_struct registers;

    if (r->threads[index].state != HFN_THREAD_STOPPED || hfn_linux_step_fails() ||
        !read_all(r, r->threads[index].tid, &registers) || !is_restarted(&registers)) {
        return false;
    }
    *pc = registers.rip;
    *number = registers.orig_rax;
    return true;
}

bool hfn_os_remote_set_pc(hfn_remote *r, uint32_t index, uint64_t pc)
{
    return hfn_linux_set_pc(r, r->threads[index].tid, pc);
}

bool hfn_os_has_wrgsbase(void)
{
    enum { FSGSBASE = 2 }; /* Linux, arch/x86/include/uapi/asm/hwcap2.h */

    return (getauxval(AT_HWCAP2) & FSGSBASE) != 0;
}

/* These return EINTR only if they have done nothing yet, so they can be made again. */
static bool can_be_repeated(uint64_t number)
{
    static const uint16_t numbers[] = {
        SYS_epoll_wait,
        SYS_epoll_pwait,
        441 /* epoll_pwait2 */,
        SYS_semop,
        SYS_semtimedop,
        SYS_io_getevents,
        SYS_rt_sigtimedwait,
        SYS_read,
        SYS_readv,
        SYS_recvfrom,
        SYS_recvmsg,
        SYS_recvmmsg,
        SYS_accept,
        SYS_accept4,
        SYS_sendto,
        SYS_sendmsg,
        426 /* io_uring_enter */,
    };

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i] == number) {
            return true;
        }
    }
    return false;
}

static unsigned long long mask_of(int signal)
{
    return 1ull << (signal - 1);
}

/* proc(5): masks of the signals that are pending for the thread and for its process, blocked,
 * ignored, and handled.  While a process is traced, signals that it ignores by default are pending,
 * too.  True in doubt. */
static bool has_signal(uint32_t pid, uint32_t tid)
{
    enum { PENDING, SHARED, BLOCKED, IGNORED, HANDLED, MASKS };
    static const char *const names[] = { "SigPnd:", "ShdPnd:", "SigBlk:", "SigIgn:", "SigCgt:" };
    char path[HFN_PROC_PATH_BYTES], line[256];
    unsigned long long masks[MASKS] = { 0 }, harmless;
    unsigned found = 0;
    FILE *status;

    snprintf(path, sizeof path, "/proc/%u/task/%u/status", pid, tid);
    status = fopen(path, "re");
    while (status && fgets(line, sizeof line, status)) {
        for (int i = 0; i < MASKS; i++) {
            if (strncmp(line, names[i], strlen(names[i])) == 0 &&
                sscanf(line + strlen(names[i]), "%llx", &masks[i]) == 1) {
                found |= 1u << i;
            }
        }
    }
    if (status) {
        fclose(status);
    }
    harmless = mask_of(SIGCHLD) | mask_of(SIGCONT) | mask_of(SIGURG) | mask_of(SIGWINCH);
    harmless = masks[BLOCKED] | masks[IGNORED] | (harmless & ~masks[HANDLED]);
    return found != (1u << MASKS) - 1 || ((masks[PENDING] | masks[SHARED]) & ~harmless) != 0;
}

void hfn_linux_repeat_call(hfn_remote *r, uint32_t tid)
{
    enum { CALL_BYTES = 2, SYSCALL = 0x050f };
    struct user_regs_struct registers;
    long code;

    if (!read_all(r, tid, &registers) || registers.rax != (unsigned long long)-EINTR ||
        !can_be_repeated(registers.orig_rax) || has_signal(r->pid, tid)) {
        return;
    }
    errno = 0;
    code = ptrace(PTRACE_PEEKTEXT, tid, (void *)(uintptr_t)(registers.rip - CALL_BYTES), NULL);
    if (errno != 0 || (code & 0xffff) != SYSCALL) {
        return;
    }
    registers.rip -= CALL_BYTES;
    registers.rax = registers.orig_rax;
    registers.orig_rax = (unsigned long long)-1;
    write_all(r, tid, &registers);
}

#else /* AArch64: a patch is one instruction, so no thread is inside */

bool hfn_linux_read_registers(const hfn_remote *r, uint32_t tid, hfn_remote_registers *out)
{
    (void)r, (void)tid, (void)out;
    return false;
}

bool hfn_linux_set_pc(hfn_remote *r, uint32_t tid, uint64_t pc)
{
    (void)r, (void)tid, (void)pc;
    return false;
}

bool hfn_os_remote_get_thread_pointer(const hfn_remote *r, uint32_t index, uint64_t *out)
{
    (void)r, (void)index, (void)out;
    return false;
}

bool hfn_os_remote_get_gs_base(const hfn_remote *r, uint32_t index, uint64_t *out)
{
    (void)r, (void)index, (void)out;
    return false;
}

bool hfn_os_remote_set_gs_base(hfn_remote *r, uint32_t index, uint64_t base)
{
    (void)r, (void)index, (void)base;
    return false;
}

bool hfn_os_remote_get_restart(const hfn_remote *r, uint32_t index, uint64_t *pc, uint64_t *number)
{
    (void)r, (void)index, (void)pc, (void)number;
    return false;
}

bool hfn_os_remote_set_pc(hfn_remote *r, uint32_t index, uint64_t pc)
{
    (void)r, (void)index, (void)pc;
    return false;
}

bool hfn_os_has_wrgsbase(void)
{
    return false;
}

void hfn_linux_repeat_call(hfn_remote *r, uint32_t tid)
{
    (void)r, (void)tid;
}

#endif
