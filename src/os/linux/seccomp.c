/* SPDX-License-Identifier: MIT */
/* HOT PATH: which of our own system calls a thread can still make once it has limited its calls
 * (seccomp).  The filter is a program in classic BPF, which is run here for each of our calls
 * before the kernel gets it (Linux, Documentation/userspace-api/seccomp_filter.rst).  The kernel
 * has not checked the program yet, so nothing is believed of it. */
#include "os/hot_path.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#ifndef SECCOMP_RET_ACTION_FULL
#define SECCOMP_RET_ACTION_FULL 0xffff0000u
#endif
#ifndef SECCOMP_RET_LOG
#define SECCOMP_RET_LOG 0x7ffc0000u
#endif

#if defined(__x86_64__)
#define MACHINE AUDIT_ARCH_X86_64
#elif defined(__i386__)
#define MACHINE AUDIT_ARCH_I386
#else
#define MACHINE AUDIT_ARCH_AARCH64
#endif

#ifdef SYS_mmap2
#define MAP_CALL SYS_mmap2
#else
#define MAP_CALL SYS_mmap
#endif

#ifdef __i386__
#define CLOCK_CALL SYS_clock_gettime64
#else
#define CLOCK_CALL SYS_clock_gettime
#endif

enum { WALL_CLOCK = 0, MONOTONIC_CLOCK = 1, CPU_CLOCK = 3, ANY_DESCRIPTOR = 3 };
#define OWN_PID UINT64_C(0x100000000) /* replaced by the id of this process */

typedef struct own_call {
    uint32_t groups;
    uint32_t number;
    uint64_t arguments[6]; /* filters can compare these; of pointers any value will do */
} own_call;

static const own_call own_calls[] = {
    { HFN_CALLS_CLAIM, SYS_gettid, { 0 } },
    { HFN_CALLS_ALL & ~HFN_CALLS_TIME, SYS_getpid, { 0 } },
    { HFN_CALLS_CLAIM, SYS_tgkill, { OWN_PID } },
    { HFN_CALLS_CLAIM | HFN_CALLS_CHECK, CLOCK_CALL, { WALL_CLOCK } },
    { HFN_CALLS_CLAIM, SYS_prctl, { PR_GET_NAME } },
    { HFN_CALLS_OTHERS, SYS_kill, { 0 } },
    { HFN_CALLS_OTHERS | HFN_CALLS_CHECK, SYS_process_vm_readv, { OWN_PID, 0, 1, 0, 1 } },
    { HFN_CALLS_TIME, CLOCK_CALL, { CPU_CLOCK } },
    { HFN_CALLS_TIME, SYS_openat, { (uint64_t)-100 } },
    { HFN_CALLS_TIME, SYS_read, { ANY_DESCRIPTOR } },
    { HFN_CALLS_TIME, SYS_close, { ANY_DESCRIPTOR } },
    { HFN_CALLS_FORK, SYS_getppid, { 0 } },
    { HFN_CALLS_FORK, CLOCK_CALL, { MONOTONIC_CLOCK } },
    { HFN_CALLS_FORK | HFN_CALLS_CHECK,
      MAP_CALL,
      { 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
        UINT64_MAX } },
    { HFN_CALLS_FORK | HFN_CALLS_CHECK, SYS_munmap, { 0 } },
    { HFN_CALLS_FORK | HFN_CALLS_CHECK, SYS_madvise, { 0 } },
    { HFN_CALLS_FORK, SYS_readlinkat, { (uint64_t)-100 } },
};

/* The state of the BPF machine. */
typedef struct machine {
    uint32_t a, x;
    uint32_t memory[BPF_MEMWORDS];
} machine;

static uint32_t load_word(const struct seccomp_data *data, uint32_t at)
{
    const uint32_t *words = (const uint32_t *)(const void *)data;

    return at < sizeof *data ? words[at / sizeof *words] : 0;
}

static uint32_t calculate_value(uint32_t operation, uint32_t a, uint32_t b)
{
    switch (operation) {
    case BPF_ADD: return a + b;
    case BPF_SUB: return a - b;
    case BPF_MUL: return a * b;
    case BPF_DIV: return b ? a / b : 0;
    case BPF_OR: return a | b;
    case BPF_AND: return a & b;
    case BPF_XOR: return a ^ b;
    case BPF_LSH: return b < 32 ? a << b : 0;
    case BPF_RSH: return b < 32 ? a >> b : 0;
    default: return (uint32_t) - (int32_t)a; /* BPF_NEG */
    }
}

static bool is_taken(uint32_t condition, uint32_t a, uint32_t b)
{
    switch (condition) {
    case BPF_JEQ: return a == b;
    case BPF_JGT: return a > b;
    case BPF_JGE: return a >= b;
    default: return (a & b) != 0; /* BPF_JSET */
    }
}

static void load_value(machine *m, const struct sock_filter *i, const struct seccomp_data *data)
{
    uint32_t value = i->k;

    switch (BPF_MODE(i->code)) {
    case BPF_ABS: value = load_word(data, i->k); break;
    case BPF_MEM: value = m->memory[i->k % BPF_MEMWORDS]; break;
    case BPF_LEN: value = sizeof *data; break;
    default: break; /* BPF_IMM */
    }
    *(BPF_CLASS(i->code) == BPF_LD ? &m->a : &m->x) = value;
}

/* A jump behind the end, which the kernel refuses, ends the loop. */
static uint32_t find_next(const machine *m, const struct sock_filter *i, uint32_t b, uint32_t at,
                          uint32_t length)
{
    uint32_t distance = BPF_OP(i->code) == BPF_JA            ? i->k
                        : is_taken(BPF_OP(i->code), m->a, b) ? i->jt
                                                             : i->jf;

    return distance < length - at ? at + distance : length - 1;
}

/* The value that the filter returns for the call; a program that runs off its end kills. */
static uint32_t run_filter(const struct sock_fprog *filter, const struct seccomp_data *data)
{
    machine m = { 0 };

    for (uint32_t at = 0; at < filter->len; at++) {
        const struct sock_filter *i = &filter->filter[at];
        uint32_t b = BPF_SRC(i->code) == BPF_X ? m.x : i->k;

        switch (BPF_CLASS(i->code)) {
        case BPF_LD:
        case BPF_LDX: load_value(&m, i, data); break;
        case BPF_ST: m.memory[i->k % BPF_MEMWORDS] = m.a; break;
        case BPF_STX: m.memory[i->k % BPF_MEMWORDS] = m.x; break;
        case BPF_ALU: m.a = calculate_value(BPF_OP(i->code), m.a, b); break;
        case BPF_JMP: at = find_next(&m, i, b, at, filter->len); break;
        case BPF_RET: return BPF_RVAL(i->code) == BPF_A ? m.a : i->k;
        default: /* BPF_MISC */
            if (BPF_MISCOP(i->code) == BPF_TAX) {
                m.x = m.a;
            } else {
                m.a = m.x;
            }
        }
    }
    return SECCOMP_RET_KILL;
}

/* A call that only fails does no harm. */
static bool is_harmless(uint32_t returned)
{
    uint32_t action = returned & SECCOMP_RET_ACTION_FULL;

    return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG || action == SECCOMP_RET_ERRNO;
}

static uint32_t find_in_filter(const struct sock_fprog *filter, uint32_t pid)
{
    uint32_t forbidden = 0;

    for (size_t n = 0; n < sizeof own_calls / sizeof *own_calls; n++) {
        struct seccomp_data data = { .nr = (int)own_calls[n].number,
                                     .arch = MACHINE,
                                     .instruction_pointer =
                                         (uint64_t)(uintptr_t)hfn_os_hot_find_forbidden };
        for (size_t i = 0; i < 6; i++) {
            data.args[i] = own_calls[n].arguments[i] == OWN_PID ? pid : own_calls[n].arguments[i];
        }
        if (!is_harmless(run_filter(filter, &data))) {
            forbidden |= own_calls[n].groups;
        }
    }
    return forbidden;
}

/* The program may pass any address; the kernel answers EFAULT, and here nothing may fault. */
static uint32_t find_in_filter_at(uint64_t address)
{
    struct sock_fprog filter = { 0 };
    struct sock_filter *copy;
    uint32_t forbidden = 0, byte_count;

    if (hfn_os_hot_read_bytes(address, &filter, sizeof filter) != sizeof filter ||
        filter.len == 0 || filter.len > BPF_MAXINSNS) {
        return 0;
    }
    byte_count = filter.len * (uint32_t)sizeof *copy;
    copy = hfn_os_hot_map_pages(byte_count);
    if (!copy) {
        return HFN_CALLS_ALL;
    }
    if (hfn_os_hot_read_bytes((uint64_t)(uintptr_t)filter.filter, copy, byte_count) == byte_count) {
        filter.filter = copy;
        forbidden = find_in_filter(&filter, hfn_os_hot_process_id());
    }
    hfn_os_hot_unmap_pages(copy, byte_count);
    return forbidden;
}

uint32_t hfn_os_hot_find_forbidden(long number, const unsigned long words[3], uint32_t forbidden)
{
    bool is_strict = false, has_filter = false;

    if (number == SYS_seccomp) {
        is_strict = (unsigned)words[0] == SECCOMP_SET_MODE_STRICT;
        has_filter = (unsigned)words[0] == SECCOMP_SET_MODE_FILTER;
    } else if (number == SYS_prctl && (int)words[0] == PR_SET_SECCOMP) {
        is_strict = words[1] == SECCOMP_MODE_STRICT;
        has_filter = words[1] == SECCOMP_MODE_FILTER;
    }
    if (is_strict || (has_filter && (forbidden & HFN_CALLS_CHECK))) {
        return HFN_CALLS_ALL; /* the filter itself cannot be read any more */
    }
    return has_filter ? forbidden | find_in_filter_at(words[2]) : forbidden;
}
