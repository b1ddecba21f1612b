/* SPDX-License-Identifier: MIT */
/* Runs a sequence on this CPU and captures registers, flags, memory and stack before and after. */
#ifndef HFN_TESTS_CPU_H
#define HFN_TESTS_CPU_H

#if defined(__x86_64__)

#include "sequence.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#define PAGE 4096u
#define STACK_BYTES 1024u
#define SECONDS_MAX 10 /* CPU time for 1024 rounds; after that a signal ends the current round */
#define FAR_DISTANCE 0x70000000u

/* The state before and after the code.  The assembly below uses these offsets. */
typedef struct cpu_state {
    uint64_t registers[16]; /* by number; [4] is rsp */
    uint64_t flags;
    uint64_t xmm0;
    uint64_t host_rsp;
    uint64_t code;
} cpu_state;

cpu_state current_state;
void cpu_enter(void); /* runs current_state.code until it jumps to cpu_leave */
void cpu_leave(void);

__asm__(".text\n"
        ".globl cpu_enter, cpu_leave\n"
        "cpu_enter:\n"
        "  push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; pushfq\n"
        "  mov %rsp, current_state+144(%rip)\n"
        "  movq current_state+136(%rip), %xmm0\n"
        "  pushq current_state+128(%rip); popfq\n"
        "  mov current_state+0(%rip), %rax; mov current_state+8(%rip), %rcx\n"
        "  mov current_state+16(%rip), %rdx; mov current_state+24(%rip), %rbx\n"
        "  mov current_state+32(%rip), %rsp; mov current_state+40(%rip), %rbp\n"
        "  mov current_state+48(%rip), %rsi; mov current_state+56(%rip), %rdi\n"
        "  mov current_state+64(%rip), %r8; mov current_state+72(%rip), %r9\n"
        "  mov current_state+80(%rip), %r10; mov current_state+88(%rip), %r11\n"
        "  mov current_state+96(%rip), %r12; mov current_state+104(%rip), %r13\n"
        "  mov current_state+112(%rip), %r14; mov current_state+120(%rip), %r15\n"
        "  jmp *current_state+152(%rip)\n"
        "cpu_leave:\n"
        "  mov %rax, current_state+0(%rip); mov %rcx, current_state+8(%rip)\n"
        "  mov %rdx, current_state+16(%rip); mov %rbx, current_state+24(%rip)\n"
        "  mov %rsp, current_state+32(%rip); mov %rbp, current_state+40(%rip)\n"
        "  mov %rsi, current_state+48(%rip); mov %rdi, current_state+56(%rip)\n"
        "  mov %r8, current_state+64(%rip); mov %r9, current_state+72(%rip)\n"
        "  mov %r10, current_state+80(%rip); mov %r11, current_state+88(%rip)\n"
        "  mov %r12, current_state+96(%rip); mov %r13, current_state+104(%rip)\n"
        "  mov %r14, current_state+112(%rip); mov %r15, current_state+120(%rip)\n"
        "  mov current_state+144(%rip), %rsp\n"
        "  pushfq; popq current_state+128(%rip)\n"
        "  movq %xmm0, current_state+136(%rip)\n"
        "  popfq; pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
        "  ret\n");

/* Memory for code, its data and stack, and for the moved code. */
typedef struct stage {
    uint8_t *code, *data, *stack;
    uint8_t *moved_near, *moved_far;
} stage;

typedef struct outcome {
    cpu_state state;
    uint8_t data[DATA_BYTES];
    uint8_t stack[STACK_BYTES];
    int signal; /* that ended the run, 0: none */
} outcome;

static sigjmp_buf after_signal;

static inline void on_signal(int number)
{
    /* Invalid code may have set AC, which signal handlers inherit (Linux clears only DF, RF and
     * TF): an unaligned access of this handler would then raise SIGBUS again. */
    __asm__ volatile("pushfq; andl $0xFFFBFFFF, (%%rsp); popfq" ::: "memory", "cc");
    siglongjmp(after_signal, number);
}

/* Limits CPU time rather than elapsed time, so that the load of the machine does not matter. */
static inline void limit_time(void)
{
    const struct itimerval limit = { .it_value = { .tv_sec = SECONDS_MAX } };

    setitimer(ITIMER_PROF, &limit, NULL);
}

static inline void watch_signals(void)
{
    static uint8_t own_stack[65536];
    const stack_t stack = { .ss_sp = own_stack, .ss_size = sizeof own_stack };
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
    const int numbers[] = { SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGPROF };

    sigaltstack(&stack, NULL);
    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        sigaction(numbers[i], &action, NULL);
    }
}

static inline uint8_t *map_code(void *hint, size_t size)
{
    uint8_t *memory =
        mmap(hint, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static inline bool make_stage(stage *out)
{
    uint8_t *near_pages = map_code(NULL, 8 * PAGE);

    if (!near_pages) {
        return false;
    }
    out->code = near_pages;
    out->data = near_pages + 3 * PAGE;
    out->stack = near_pages + 5 * PAGE;
    out->moved_near = near_pages + 7 * PAGE;
    out->moved_far = map_code(near_pages - FAR_DISTANCE, PAGE);
    return out->moved_far != NULL;
}

/* jmp [rip+0] to cpu_leave, which changes no register and no flag. */
static inline void put_leave(uint8_t *at)
{
    uint64_t target = (uint64_t)(uintptr_t)cpu_leave;

    memcpy(at, "\xFF\x25\0\0\0\0", 6);
    memcpy(at + 6, &target, sizeof target);
}

static inline void run_from(const stage *s, const cpu_state *start, const outcome *before,
                            const uint8_t *code, outcome *after)
{
    memcpy(s->data - DATA_BYTES / 2, before->data, DATA_BYTES);
    memcpy(s->stack - STACK_BYTES / 2, before->stack, STACK_BYTES);
    current_state = *start;
    current_state.code = (uint64_t)(uintptr_t)code;
    after->signal = sigsetjmp(after_signal, 1);
    if (after->signal == 0) {
        cpu_enter();
    }
    if (after->signal == SIGPROF) {
        limit_time();
    }
    after->state = current_state;
    after->state.host_rsp = after->state.code = 0;
    memcpy(after->data, s->data - DATA_BYTES / 2, DATA_BYTES);
    memcpy(after->stack, s->stack - STACK_BYTES / 2, STACK_BYTES);
}

static inline void start_randomly(const stage *s, const sequence *seq, random_source *r,
                                  cpu_state *start, outcome *before)
{
    for (int i = 0; i < 16; i++) {
        start->registers[i] = random_below(r, 3) ? random_u64(r) : random_below(r, 4);
    }
    if (seq->keep_rcx) {
        start->registers[1] = 1 + random_below(r, 6);
    }
    start->registers[3] = (uint64_t)(uintptr_t)s->data;
    start->registers[4] = (uint64_t)(uintptr_t)s->stack;
    start->flags = 0x202 | (random_u64(r) & 0x8D5);
    start->xmm0 = random_u64(r);
    for (unsigned i = 0; i < DATA_BYTES; i++) {
        before->data[i] = (uint8_t)random_u64(r);
    }
    for (unsigned i = 0; i < STACK_BYTES; i++) {
        before->stack[i] = (uint8_t)random_u64(r);
    }
}

static inline bool is_same_outcome(const outcome *a, const outcome *b)
{
    return a->signal == b->signal && memcmp(&a->state, &b->state, sizeof a->state) == 0 &&
           memcmp(a->data, b->data, sizeof a->data) == 0 &&
           memcmp(a->stack, b->stack, sizeof a->stack) == 0;
}

/* Run `check` until it has failed 5 times, at most run.count times.  Returns the failures. */
static inline int count_failures(const stage *s, random_run run,
                                 bool (*check)(const stage *, uint64_t seed, uint64_t round,
                                               void *counts),
                                 void *counts)
{
    int failed = 0;

    watch_signals();
    for (uint64_t round = 0; round < run.count && failed < 5; round++) {
        if (round % 1024 == 0) {
            limit_time();
        }
        failed += !check(s, run.seed, round, counts);
    }
    return failed;
}

#endif

#endif
