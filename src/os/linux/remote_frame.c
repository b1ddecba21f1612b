/* SPDX-License-Identifier: MIT */
/*
 * Lets a thread that makes system calls on behalf of a launcher continue even if the launcher is
 * killed meanwhile.  The kernel then resumes the thread with the registers of the system call.  So
 * the call is made by `syscall; ret`, and the stack pointer points to the address of the C
 * library's `mov $15, %rax; syscall` (rt_sigreturn), which a signal frame with the thread's
 * original state follows.
 *
 *     stack pointer -> address of rt_sigreturn's code
 *                      ucontext (Linux, arch/x86/include/uapi/asm/sigcontext.h)
 *                      floating-point state, as PTRACE_GETREGSET describes it
 */
#include "os/linux/remote_frame.h"

#if defined(__x86_64__)

#include "base/byte_order.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

#ifndef NT_X86_XSTATE
#define NT_X86_XSTATE 0x202
#endif

enum {
    STATE_BYTES = 16384, /* larger than the state of any processor */
    RED_ZONE = 128,
    ALIGNMENT = 64, /* of the state */
    CALL_BYTES = 2,
    FEATURES_AT =
        464, /* offset of the feature bits in the state; in a frame they are 8 bytes later */
    FRAME_FLAGS = 7,   /* UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS */
    NO_STACK_MODE = 64 /* invalid, so the kernel does not change the alternative signal stack */
};

#define STATE_BEGIN_MARK 0x46505853u /* FP_XSTATE_MAGIC1, and 2 */
#define STATE_END_MARK 0x46505845u

typedef struct user_regs_struct registers;

typedef struct frame {
    uint64_t return_address;
    uint64_t flags, link, stack_begin, stack_mode, stack_bytes;
    uint64_t r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip;
    uint64_t eflags;
    uint16_t cs, gs, fs, ss;
    uint64_t error, trap, old_mask, cr2, state, reserved[8];
    uint64_t signals;
} frame;

/* The kernel restarts an interrupted system call when the thread leaves an event stop, but not
 * after rt_sigreturn, so the frame must repeat it (Linux, include/linux/errno.h: ERESTARTSYS
 * etc.). */
static void repeat_interrupted_call(registers *now)
{
    enum {
        RESTART_SYS = 512,
        RESTART_NO_INTR = 513,
        RESTART_NO_HANDLER = 514,
        RESTART_BLOCK = 516
    };
    int64_t result = -(int64_t)now->rax;

    if ((int64_t)now->orig_rax < 0) {
        return;
    }
    if (result == RESTART_SYS || result == RESTART_NO_INTR || result == RESTART_NO_HANDLER) {
        now->rax = now->orig_rax;
        now->rip -= CALL_BYTES;
    } else if (result == RESTART_BLOCK) {
        now->rax = SYS_restart_syscall;
        now->rip -= CALL_BYTES;
    }
}

static frame make_frame(const registers *before, uint64_t restorer, uint64_t state,
                        uint64_t signals)
{
    registers now = *before;

    repeat_interrupted_call(&now);
    return (frame){
        .return_address = restorer,
        .flags = FRAME_FLAGS,
        .stack_mode = NO_STACK_MODE,
        .r8 = now.r8,
        .r9 = now.r9,
        .r10 = now.r10,
        .r11 = now.r11,
        .r12 = now.r12,
        .r13 = now.r13,
        .r14 = now.r14,
        .r15 = now.r15,
        .rdi = now.rdi,
        .rsi = now.rsi,
        .rbp = now.rbp,
        .rbx = now.rbx,
        .rdx = now.rdx,
        .rax = now.rax,
        .rcx = now.rcx,
        .rsp = now.rsp,
        .rip = now.rip,
        .eflags = now.eflags,
        .cs = (uint16_t)now.cs,
        .gs = (uint16_t)now.gs,
        .fs = (uint16_t)now.fs,
        .ss = (uint16_t)now.ss,
        .state = state,
        .signals = signals,
    };
}

/* Read the floating-point state and describe it as a signal frame does; 0: it cannot be read. */
static uint32_t read_state(uint32_t tid, uint8_t state[STATE_BYTES])
{
    struct iovec all = { state, STATE_BYTES - sizeof(uint64_t) };
    uint64_t features;
    uint32_t bytes;

    if (ptrace(PTRACE_GETREGSET, (pid_t)tid, (void *)NT_X86_XSTATE, &all) != 0) {
        return 0;
    }
    bytes = (uint32_t)all.iov_len;
    features = hfn_read_le64(state + FEATURES_AT);
    hfn_write_le32(state + FEATURES_AT, STATE_BEGIN_MARK);
    hfn_write_le32(state + FEATURES_AT + 4, bytes + (uint32_t)sizeof(uint32_t));
    hfn_write_le64(state + FEATURES_AT + 8, features);
    hfn_write_le32(state + FEATURES_AT + 16, bytes);
    hfn_write_le32(state + bytes, STATE_END_MARK);
    return bytes + (uint32_t)sizeof(uint32_t);
}

uint64_t hfn_linux_write_frame(const hfn_remote *r, uint32_t tid, uint64_t restorer,
                               uint64_t signals)
{
    uint8_t state[STATE_BYTES];
    registers before;
    frame f;
    uint32_t bytes = read_state(tid, state);
    uint64_t state_at, at;

    memcpy(&before, r->caller.registers, sizeof before);
    state_at = (before.rsp - RED_ZONE - bytes) & ~(uint64_t)(ALIGNMENT - 1);
    at = (state_at - sizeof f) & ~(uint64_t)15; /* as behind a call of the code that returns */
    f = make_frame(&before, restorer, state_at, signals);
    return bytes != 0 && hfn_os_remote_write(r, state_at, state, bytes) &&
                   hfn_os_remote_write(r, at, &f, sizeof f)
               ? at
               : 0;
}

#endif
