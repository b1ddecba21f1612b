/* SPDX-License-Identifier: MIT */
/* A thread's first hooked call: it changes no state of the thread and loses no call, for threads of
 * every kind and wherever a signal arrives. */
#include "counters/stub.h"
#include "counters/trap_flag.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

/* ThreadSanitizer delays signals, supports only threads of libc, and replaces vfork by fork. */
#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER 1
#elif defined(__has_feature)
#define THREAD_SANITIZER __has_feature(thread_sanitizer)
#else
#define THREAD_SANITIZER 0
#endif

/* ---- Registers (i386: tests/property/i386_stub_test.c). */

#if defined(__x86_64__)
enum { GPRS = 15, VECTORS = 16 }; /* all except rsp */

typedef struct cpu_state {
    uint64_t gpr[GPRS]; /* rax rbx rcx rdx rsi rdi rbp r8 ... r15 */
    uint64_t flags;
    uint8_t vector[VECTORS][16];
} __attribute__((aligned(16))) cpu_state;

cpu_state wanted_state, found_state;
void call_slow_path_with_known_state(void);

#define EACH_VECTOR(op)                                                                            \
    op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7) op(8) op(9) op(10) op(11) op(12) op(13) op(14) \
        op(15)
#define LOAD_VECTOR(n) "movaps wanted_state+128+16*" #n "(%rip), %xmm" #n "\n"
#define STORE_VECTOR(n) "movaps %xmm" #n ", found_state+128+16*" #n "(%rip)\n"
#define EACH_GPR(op)                                                                               \
    op(rax, 0) op(rbx, 1) op(rdx, 3) op(rsi, 4) op(rdi, 5) op(rbp, 6) op(r8, 7) op(r9, 8)          \
        op(r10, 9) op(r11, 10) op(r12, 11) op(r13, 12) op(r14, 13) op(r15, 14)
#define LOAD_GPR(name, n) "movq wanted_state+8*" #n "(%rip), %" #name "\n"
#define STORE_GPR(name, n) "movq %" #name ", found_state+8*" #n "(%rip)\n"

/* clang-format off */
/* As a stub calls it. */
__asm__(
    ".text\n.globl call_slow_path_with_known_state\n"
    "call_slow_path_with_known_state:\n"
    "pushq %rbx\npushq %rbp\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    EACH_VECTOR(LOAD_VECTOR)
    EACH_GPR(LOAD_GPR)
    "pushq wanted_state+120(%rip)\npopfq\n"
    "movq wanted_state+16(%rip), %rcx\n"
    "call *stub_slow_path(%rip)\n"
    "movq %rcx, found_state+16(%rip)\n"
    EACH_GPR(STORE_GPR)
    EACH_VECTOR(STORE_VECTOR)
    "pushfq\npopq found_state+120(%rip)\n"
    "cld\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbp\npopq %rbx\n"
    "ret\n");
/* clang-format on */

static void first_call_keeps_every_register_and_flag(void)
{
    static const uint64_t flag_sets[] = { 0x246, 0x247, 0xed7, 0xe97, 0x202, 0xa83, 0x602 };
    hotfn_counters *c = stub_counters(4);

    for (size_t i = 0; i < sizeof flag_sets / sizeof flag_sets[0]; i++) {
        for (size_t k = 0; k < sizeof wanted_state; k++) {
            ((uint8_t *)&wanted_state)[k] = (uint8_t)(k * 37 + i * 11 + 1);
        }
        wanted_state.flags = flag_sets[i];
        hfn_thread_row = NULL;
        call_slow_path_with_known_state();
        CHECK_MEM(found_state.gpr, wanted_state.gpr, sizeof wanted_state.gpr);
        CHECK_EQ_U64(found_state.flags, wanted_state.flags);
        CHECK_MEM(found_state.vector, wanted_state.vector, sizeof wanted_state.vector);
        CHECK(hfn_thread_row != NULL && hfn_thread_row != hfn_rows.discard);
    }
    hotfn_counters_destroy(c);
}

#endif

/* ---- Threads. */

static void *count_many(void *argument)
{
    for (uintptr_t i = 0; i < (uintptr_t)argument; i++) {
        fake_call(i % 3);
    }
    return NULL;
}

static void concurrent_threads_lose_no_call(void)
{
    hotfn_counters *c = stub_counters(16);
    pthread_t threads[8];

    for (int i = 0; i < 8; i++) {
        pthread_create(&threads[i], NULL, count_many, (void *)300000);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQ_U64(stub_sum(c, 0) + stub_sum(c, 1) + stub_sum(c, 2), 8 * 300000);
    CHECK_EQ_U64(stub_memory(c).header->threads_lost, 0);
    hotfn_counters_destroy(c);
}

static void thousands_of_short_threads_share_few_rows(void)
{
    hotfn_counters *c = stub_counters(64);
    hfn_row_memory m = stub_memory(c);
    uint64_t threads_seen = 0;
    pthread_t threads[8];

    for (int round = 0; round < 500; round++) {
        for (int i = 0; i < 8; i++) {
            pthread_create(&threads[i], NULL, count_many, (void *)3);
        }
        for (int i = 0; i < 8; i++) {
            pthread_join(threads[i], NULL);
        }
    }
    CHECK_EQ_U64(stub_sum(c, 0), 4000);
    CHECK_EQ_U64(stub_sum(c, 2), 4000);
    CHECK_EQ_U64(m.header->threads_lost, 0);
    for (uint32_t i = 0; i < m.header->cells_used; i++) {
        threads_seen += m.cells[i].thread_count;
    }
    CHECK_EQ_U64(threads_seen, 4000);
    hotfn_counters_destroy(c);
}

static pthread_barrier_t all_here;

static void *count_and_wait(void *argument)
{
    (void)argument;
    fake_call(0);
    pthread_barrier_wait(&all_here); /* no thread ends before each has claimed a row or failed */
    fake_call(0);
    return NULL;
}

static void threads_beyond_the_rows_are_counted_as_lost(void)
{
    hotfn_counters *c = stub_counters(4);
    pthread_t threads[10];

    pthread_barrier_init(&all_here, NULL, 10);
    for (int i = 0; i < 10; i++) {
        pthread_create(&threads[i], NULL, count_and_wait, NULL);
    }
    for (int i = 0; i < 10; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQ_U64(stub_memory(c).header->threads_lost, 6);
    CHECK_EQ_U64(stub_sum(c, 0), 8);
    pthread_create(&threads[0], NULL, count_many, (void *)1);
    pthread_join(threads[0], NULL);
    CHECK_EQ_U64(stub_sum(c, 0), 9); /* their rows are free again */
    CHECK_EQ_U64(stub_memory(c).header->threads_lost, 6);
    hotfn_counters_destroy(c);
}

static _Atomic uint64_t calls_made;

static void *count_until_cancelled(void *argument)
{
    (void)argument;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
    for (;;) {
        fake_call(5);
        calls_made++;
        pthread_testcancel();
    }
    return NULL;
}

static void cancelled_thread_keeps_its_counts(void)
{
    hotfn_counters *c = stub_counters(4);
    pthread_t thread;

    calls_made = 0;
    pthread_create(&thread, NULL, count_until_cancelled, NULL);
    while (calls_made < 1000) {
        sched_yield();
    }
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    CHECK_EQ_U64(stub_sum(c, 5), calls_made);
    hotfn_counters_destroy(c);
}

static void cell_describes_the_owner_of_the_row(void)
{
    hotfn_counters *c = stub_counters(4);
    const hfn_thread_cell *cell = stub_memory(c).cells;

    pthread_setname_np(pthread_self(), "owner");
    fake_call(0);
    CHECK_EQ_U64(cell->tid, (uint64_t)syscall(SYS_gettid));
    CHECK_EQ_U64(cell->pid, (uint64_t)getpid());
    CHECK_EQ_U64(cell->thread_count, 1);
    CHECK_EQ_U64(cell->process_count, 1);
    CHECK(cell->pid_namespace != 0 && cell->process != 0 && cell->start_ns != 0);
    CHECK_STR(cell->name, "owner");
    hotfn_counters_destroy(c);
}

/* ---- Threads that libc did not create. */

static int raw_thread_main(void *argument)
{
    (void)argument;
    fake_call(9);
    fake_call(9);
    return 0; /* clone()'s wrapper ends in a bare _exit of the task */
}

static void raw_thread_gets_a_row(void)
{
    enum { STACK = 65536, TLS = 65536 };
    hotfn_counters *c;
    uint8_t *memory =
        mmap(NULL, STACK + TLS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *thread_pointer = memory + STACK + TLS - 4096;
    int status = 0;
    pid_t child;

    if (THREAD_SANITIZER || sizeof(void *) == 4) { /* clone() takes no plain pointer there */
        return;
    }
    c = stub_counters(4);
    *(uint8_t **)(void *)thread_pointer = thread_pointer; /* fs:0 is itself */
    fake_call(9);
    child = clone(raw_thread_main, memory + STACK,
                  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SETTLS | SIGCHLD, NULL, NULL,
                  thread_pointer, NULL);
    CHECK(child > 0);
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK_EQ_U64(stub_sum(c, 9), 3);
    CHECK_EQ_U64(stub_memory(c).header->cells_used, 2);
    munmap(memory, STACK + TLS);
    hotfn_counters_destroy(c);
}

static void vfork_child_counts_with_its_parent(void)
{
    hotfn_counters *c = stub_counters(4);
    pid_t child;

    fake_call(9);
    child = THREAD_SANITIZER ? -1 : vfork();
    if (child == 0) {
        fake_call(9);
        _exit(0);
    }
    fake_call(9);
    waitpid(child, NULL, 0);
    CHECK_EQ_U64(stub_sum(c, 9), child < 0 ? 2 : 3);
    CHECK_EQ_U64(stub_memory(c).header->cells_used, 1);
    hotfn_counters_destroy(c);
}

/* The vfork child makes the first call of the thread: no other thread may take the row over when it
 * ends. */
static void row_claimed_in_a_vfork_child_stays_with_the_parent(void)
{
    hotfn_counters *c = stub_counters(4);
    pthread_t thread;
    pid_t child = THREAD_SANITIZER ? -1 : vfork();

    if (child == 0) {
        fake_call(9);
        _exit(0);
    }
    if (child < 0) {
        hotfn_counters_destroy(c);
        return;
    }
    waitpid(child, NULL, 0);
    pthread_create(&thread, NULL, count_many, (void *)3);
    pthread_join(thread, NULL);
    fake_call(9);
    CHECK_EQ_U64(stub_sum(c, 9), 2);
    CHECK_EQ_U64(stub_memory(c).header->cells_used, 2);
    hotfn_counters_destroy(c);
}

/* ---- Signals. */

static void count_in_handler(int number)
{
    (void)number;
    fake_call(11);
    calls_made++;
}

static void signals_in_short_threads_lose_no_call(void)
{
    hotfn_counters *c = stub_counters(64);
    struct itimerval often = { { 0, 50 }, { 0, 50 } }, off = { { 0, 0 }, { 0, 0 } };
    struct sigaction action = { .sa_handler = count_in_handler }, before;
    pthread_t threads[4];
    uint64_t rounds = 0;

    calls_made = 0;
    sigaction(SIGPROF, &action, &before);
    setitimer(ITIMER_PROF, &often, NULL);
    for (; rounds < 400 || calls_made == 0;
         rounds++) { /* signals arrive at timer ticks of the kernel */
        for (int i = 0; i < 4; i++) {
            pthread_create(&threads[i], NULL, count_many, (void *)300);
        }
        for (int i = 0; i < 4; i++) {
            pthread_join(threads[i], NULL);
        }
    }
    setitimer(ITIMER_PROF, &off, NULL);
    sigaction(SIGPROF, &before, NULL);
    CHECK_EQ_U64(stub_sum(c, 0), rounds * 4 * 100);
    CHECK(stub_sum(c, 11) >= 1);
    hotfn_counters_destroy(c);
}

static struct {
    long at, steps;
} step;

/* Single-stepped: at instruction number `step` a handler makes a hooked call. */
static void count_at_step(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info, (void)context;
    if (step.steps++ == step.at) {
        fake_call(13);
    }
}

static void signal_at_any_instruction_of_the_first_call_loses_no_call(void)
{
    struct sigaction action = { .sa_sigaction = count_at_step, .sa_flags = SA_SIGINFO }, before;
    uint64_t rounds = 0;

    if (THREAD_SANITIZER) {
        return;
    }
    sigaction(SIGTRAP, &action, &before);
    for (step.at = 0; step.at == 0 || step.at < step.steps; step.at++, rounds++) {
        hotfn_counters *c = stub_counters(16);

        step.steps = 0;
        trap_flag_set();
        fake_call(12);
        trap_flag_clear();
        fake_call(12);
        fake_call(13);
        if (stub_sum(c, 12) != 2 || stub_sum(c, 13) != 2) {
            CHECK_EQ_I64(step.at, -1); /* prints the instruction */
        }
        CHECK_EQ_U64(stub_memory(c).header->threads_lost, 0);
        hotfn_counters_destroy(c);
    }
    CHECK(rounds > 100); /* the slow path has more instructions than that */
    sigaction(SIGTRAP, &before, NULL);
}

/* ---- Unwinding. */

static __attribute__((noinline)) void stepped_first_call(void)
{
    trap_flag_set();
    fake_call(12);
    trap_flag_clear();
}

static long steps_unwound, steps_lost;

static _Unwind_Reason_Code look_for_caller(struct _Unwind_Context *context, void *found)
{
    uintptr_t ip = (uintptr_t)_Unwind_GetIP(context) - 1;

    if ((uintptr_t)_Unwind_FindEnclosingFunction((void *)ip) == (uintptr_t)stepped_first_call) {
        *(int *)found = 1;
    }
    return _URC_NO_REASON;
}

/* Whether pc is in `mov ebx, [esp]; ret`: the linker keeps one copy of this thunk, and that of
 * crt1.o has no unwind data. */
static bool is_in_pc_thunk(const void *context)
{
#if defined(__i386__)
    static const uint8_t thunk[] = { 0x8b, 0x1c, 0x24, 0xc3 };
    const ucontext_t *at = context;
    const uint8_t *pc = (const uint8_t *)at->uc_mcontext.gregs[REG_EIP];

    return memcmp(pc, thunk, 4) == 0 || memcmp(pc - 3, thunk, 4) == 0;
#else
    (void)context;
    return false;
#endif
}

static void unwind_at_step(int number, siginfo_t *info, void *context)
{
    int found = 0;

    (void)number, (void)info;
    _Unwind_Backtrace(look_for_caller, &found);
    steps_unwound += found;
    steps_lost += !found && !is_in_pc_thunk(context);
}

static void every_instruction_of_the_first_call_can_be_unwound(void)
{
    struct sigaction action = { .sa_sigaction = unwind_at_step, .sa_flags = SA_SIGINFO }, before;
    hotfn_counters *c;

    if (THREAD_SANITIZER) {
        return;
    }
    c = stub_counters(4);
    steps_unwound = steps_lost = 0;
    sigaction(SIGTRAP, &action, &before);
    stepped_first_call();
    sigaction(SIGTRAP, &before, NULL);
    CHECK(steps_unwound > 100);
    CHECK_EQ_I64(steps_lost, 0);
    hotfn_counters_destroy(c);
}

static uint8_t alternate[65536] __attribute__((aligned(4096)));

static void first_call_in_handler(int number)
{
    (void)number;
    hfn_thread_row = NULL;
    fake_call(14);
}

static void first_call_needs_less_than_512_bytes_of_stack(void)
{
    hotfn_counters *c = stub_counters(16);
    static uint8_t stack[16384] __attribute__((aligned(16)));
    size_t untouched = 0;
    void *top = stack + sizeof stack - 64;

    memset(stack, 0xa5, sizeof stack);
    hfn_thread_row = NULL;
#if defined(__x86_64__)
    __asm__ volatile("movq %%rsp, %%rbx\nmovq %0, %%rsp\nmovl $14, %%edi\ncall fake_call\n"
                     "movq %%rbx, %%rsp"
                     :
                     : "r"(top)
                     : "rbx", "rdi", "memory", "cc");
#else
    __asm__ volatile("movl %%esp, %%ebx\nmovl %0, %%esp\npushl $0\npushl $14\ncall fake_call\n"
                     "movl %%ebx, %%esp"
                     :
                     : "r"(top)
                     : "ebx", "memory", "cc");
#endif
    while (untouched < sizeof stack && stack[untouched] == 0xa5) {
        untouched++;
    }
    CHECK((uint8_t *)top - (stack + untouched) < 512);
    CHECK_EQ_U64(stub_sum(c, 14), 1);
    hotfn_counters_destroy(c);
}

static void first_call_on_an_alternate_stack(void)
{
    hotfn_counters *c = stub_counters(16);
    struct sigaction action = { .sa_handler = first_call_in_handler, .sa_flags = SA_ONSTACK },
                     before;
    stack_t own = { .ss_sp = alternate, .ss_size = (size_t)sysconf(_SC_MINSIGSTKSZ) + 1024 }, old;

    sigaltstack(&own, &old);
    sigaction(SIGUSR1, &action, &before);
    raise(SIGUSR1);
    sigaction(SIGUSR1, &before, NULL);
    sigaltstack(&old, NULL);
    CHECK_EQ_U64(stub_sum(c, 14), 1);
    hotfn_counters_destroy(c);
}

static const check_test tests[] = {
#if defined(__x86_64__)
    CHECK_TEST(first_call_keeps_every_register_and_flag),
#endif
    CHECK_TEST(concurrent_threads_lose_no_call),
    CHECK_TEST(thousands_of_short_threads_share_few_rows),
    CHECK_TEST(threads_beyond_the_rows_are_counted_as_lost),
    CHECK_TEST(cancelled_thread_keeps_its_counts),
    CHECK_TEST(cell_describes_the_owner_of_the_row),
    CHECK_TEST(raw_thread_gets_a_row),
    CHECK_TEST(vfork_child_counts_with_its_parent),
    CHECK_TEST(row_claimed_in_a_vfork_child_stays_with_the_parent),
    CHECK_TEST(signals_in_short_threads_lose_no_call),
    CHECK_TEST(signal_at_any_instruction_of_the_first_call_loses_no_call),
    CHECK_TEST(every_instruction_of_the_first_call_can_be_unwound),
    CHECK_TEST(first_call_needs_less_than_512_bytes_of_stack),
    CHECK_TEST(first_call_on_an_alternate_stack),
};
CHECK_MAIN(tests)
