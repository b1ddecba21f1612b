/* SPDX-License-Identifier: MIT */
/*
 * Stopping every other thread of this process at whatever instruction it is.  Each is sent a signal
 * that carries (attempt, number); its handler leaves its context in the numbered place and waits.
 * The signal is number 33, which the C library keeps for setuid() and lets nobody block: programs
 * whose workers block all signals are stopped too.  What is not ours goes to the handler that was
 * there before, and the C library's ignores what is not its own (it checks si_code).
 *
 * A thread inside a signal handler of its own goes on later where its signal frame says: those are
 * looked for on its stacks (signal_frames.c).
 */
#include "os/os.h"

#include "os/linux/raw.h"
#include "os/linux/signal_frames.h"
#include "os/linux/tasks.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

enum { STOP_SIGNAL = 33, TASK_BITS = 15, MAX_TASKS = 1 << TASK_BITS, RESCAN_NS = 1000000 };

typedef hfn_kernel_action kernel_action;

#define KERNEL_SA_RESTORER 0x04000000ul

enum { ASKED = 0, PARKED = 1, GONE = 2 };

typedef struct task {
    uint32_t tid;
    _Atomic uint32_t state;
    ucontext_t *_Atomic context;
} task;

static struct {
    atomic_flag busy;
    _Atomic uint32_t
        attempt; /* rises when threads are asked and again when they may go on: odd = stopped */
    _Atomic uint32_t
        parked;  /* how many, in this attempt: what the stopper waits on                      */
    task *tasks; /* [MAX_TASKS], touched as needed                                            */
    uint32_t first, task_count; /* tasks[first..task_count) are this attempt's */
    kernel_action before;
    bool installed;
} stop;

static long futex(_Atomic uint32_t *word, int operation, uint32_t value, uint64_t timeout_ns)
{
    struct timespec timeout = { (time_t)(timeout_ns / 1000000000u),
                                (long)(timeout_ns % 1000000000u) };

    return hfn_raw_syscall4(SYS_futex, hfn_raw_pointer(word),
                            (uint64_t)operation | FUTEX_PRIVATE_FLAG, value,
                            timeout_ns ? hfn_raw_pointer(&timeout) : 0);
}

/* ---- In the threads that are stopped.  HOT PATH: system calls only. */

#if defined(__x86_64__)
/* The bytes are those that unwinders know a signal frame by: mov $15,%rax; syscall. */
__attribute__((naked, noinline)) static void restorer(void)
{
    __asm__("movq $15, %rax\n\tsyscall");
}
#define RESTORER restorer
#define RESTORER_FLAG KERNEL_SA_RESTORER
#else
/* The kernel returns through the vDSO. */
#define RESTORER NULL
#define RESTORER_FLAG 0
#endif

/* What the signal carries: a pointer's worth, so that of an attempt only the low bits count. */
static uintptr_t ticket(uint32_t attempt, uint32_t number)
{
    return (uintptr_t)attempt << TASK_BITS | number;
}

/* Where a stopped thread is to go on. */
static uint64_t get_pc(const ucontext_t *context)
{
#if defined(__aarch64__)
    return context->uc_mcontext.pc;
#elif defined(__i386__)
    return (uint32_t)context->uc_mcontext.gregs[REG_EIP];
#else
    return (uint64_t)context->uc_mcontext.gregs[REG_RIP];
#endif
}

static uint64_t get_sp(const ucontext_t *context)
{
#if defined(__aarch64__)
    return context->uc_mcontext.sp;
#elif defined(__i386__)
    return (uint32_t)context->uc_mcontext.gregs[REG_ESP];
#else
    return (uint64_t)context->uc_mcontext.gregs[REG_RSP];
#endif
}

static void set_pc(ucontext_t *context, uint64_t pc)
{
#if defined(__aarch64__)
    context->uc_mcontext.pc = pc;
#elif defined(__i386__)
    context->uc_mcontext.gregs[REG_EIP] = (greg_t)pc;
#else
    context->uc_mcontext.gregs[REG_RIP] = (greg_t)pc;
#endif
}

static void park(uint32_t attempt, uint32_t number, ucontext_t *context)
{
    task *own = &stop.tasks[number];

    atomic_store_explicit(&own->context, context, memory_order_relaxed);
    atomic_store_explicit(&own->state, PARKED, memory_order_release); /* pairs with all_parked */
    atomic_fetch_add_explicit(&stop.parked, 1, memory_order_release);
    futex(&stop.parked, FUTEX_WAKE, 1, 0);
    while (atomic_load_explicit(&stop.attempt, memory_order_acquire) == attempt) {
        futex(&stop.attempt, FUTEX_WAIT, attempt, 0);
    }
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    uintptr_t value = (uintptr_t)info->si_value.sival_ptr;
    uint32_t number_in_it = value % MAX_TASKS, attempt;

    if (info->si_code == SI_QUEUE && info->si_pid == (pid_t)hfn_raw_syscall3(SYS_getpid, 0, 0, 0)) {
        attempt = atomic_load_explicit(&stop.attempt, memory_order_acquire);
        if ((attempt & 1) && value == ticket(attempt, number_in_it)) {
            park(attempt, number_in_it, context);
        }
        return; /* else it is late: that attempt was given up */
    }
    if (hfn_raw_pointer((void *)(uintptr_t)stop.before.handler) > 1) { /* not SIG_DFL, SIG_IGN */
        stop.before.handler(number, info, context);
    }
}

/* ---- In the thread that stops them. */

static long set_action(const kernel_action *action, kernel_action *before)
{
    return hfn_raw_syscall4(SYS_rt_sigaction, STOP_SIGNAL, hfn_raw_pointer(action),
                            hfn_raw_pointer(before), sizeof action->mask);
}

static bool install_handler(void)
{
    kernel_action action = { on_signal, SA_SIGINFO | SA_RESTART | SA_ONSTACK | RESTORER_FLAG,
                             RESTORER, UINT64_MAX };

    if (!stop.installed) {
        stop.installed = set_action(&action, &stop.before) == 0;
    }
    return stop.installed;
}

/* A signal of a given-up attempt may come at any time: then the handler stays to swallow it, and its
 * places are not used again, because its thread may be about to write there. */
static void remove_handler(void)
{
    for (uint32_t i = stop.first; i < stop.task_count; i++) {
        if (atomic_load_explicit(&stop.tasks[i].state, memory_order_relaxed) == ASKED) {
            stop.first = stop.task_count;
        }
    }
    if (stop.first > 0) {
        return;
    }
    set_action(&stop.before, NULL);
    stop.installed = false;
}

static bool map_tasks(void)
{
    if (!stop.tasks) {
        stop.tasks =
            (task *)(uintptr_t)hfn_raw_map(0, sizeof(task) * MAX_TASKS, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    }
    return stop.tasks != NULL;
}

static bool send_signal(uint32_t tid, uint32_t attempt, uint32_t number)
{
    uint64_t pid = (uint64_t)hfn_raw_syscall3(SYS_getpid, 0, 0, 0);
    siginfo_t info = { 0 };

    info.si_signo = STOP_SIGNAL;
    info.si_code = SI_QUEUE;
    info.si_pid = (pid_t)pid;
    info.si_value.sival_ptr = (void *)ticket(attempt, number);
    return hfn_raw_syscall4(SYS_rt_tgsigqueueinfo, pid, tid, STOP_SIGNAL, hfn_raw_pointer(&info)) ==
           0;
}

static bool is_asked(uint32_t tid)
{
    for (uint32_t i = stop.first; i < stop.task_count; i++) {
        if (stop.tasks[i].tid == tid &&
            atomic_load_explicit(&stop.tasks[i].state, memory_order_relaxed) != GONE) {
            return true;
        }
    }
    return false;
}

static bool ask_task(void *user, uint32_t tid)
{
    bool *failed = user;
    task *one;

    if (tid == hfn_os_thread_id() || is_asked(tid)) {
        return true;
    }
    *failed = stop.task_count == MAX_TASKS;
    if (*failed || hfn_linux_task_runs_no_code(tid)) {
        return !*failed;
    }
    one = &stop.tasks[stop.task_count];
    one->tid = tid;
    atomic_store_explicit(&one->context, NULL, memory_order_relaxed);
    atomic_store_explicit(&one->state, ASKED, memory_order_relaxed);
    if (send_signal(tid, atomic_load_explicit(&stop.attempt, memory_order_relaxed),
                    stop.task_count)) {
        stop.task_count++;
    } else {
        *failed = !hfn_linux_task_runs_no_code(tid); /* the queue of signals is full */
    }
    return !*failed;
}

/* Have all that were asked parked, and who has not, is it gone?  That it was not listed says nothing: a
 * thread that ends while they are listed lets the kernel pass over others (fs/proc/base.c, first_tid). */
static bool all_parked(void)
{
    bool all = true;

    for (uint32_t i = stop.first; i < stop.task_count; i++) {
        task *one = &stop.tasks[i];
        /* Acquire: pairs with the release store in park; its context is then complete. */
        if (atomic_load_explicit(&one->state, memory_order_acquire) != ASKED) {
            continue;
        }
        if (hfn_linux_task_runs_no_code(one->tid)) {
            atomic_store_explicit(&one->state, GONE, memory_order_relaxed);
        } else {
            all = false;
        }
    }
    return all;
}

/* Ask until a whole scan finds nobody who is not parked: only a running thread can start another. */
static bool park_all(uint64_t deadline_ns)
{
    for (;;) {
        uint32_t before = atomic_load_explicit(&stop.parked, memory_order_acquire);
        uint32_t asked = stop.task_count;
        bool failed = false;

        if (!hfn_linux_each_task(ask_task, &failed) || failed) {
            return false;
        }
        if (all_parked() && asked == stop.task_count) {
            return true;
        }
        if (hfn_os_monotonic_ns() >= deadline_ns) {
            return false;
        }
        futex(&stop.parked, FUTEX_WAIT, before, RESCAN_NS);
    }
}

static void adjust_all(const hfn_restorers *restorers, hfn_adjust_pc_fn adjust, void *user)
{
    for (uint32_t i = stop.first; i < stop.task_count; i++) {
        ucontext_t *context = atomic_load_explicit(&stop.tasks[i].context, memory_order_relaxed);
        if (atomic_load_explicit(&stop.tasks[i].state, memory_order_acquire) != PARKED) {
            continue;
        }
        set_pc(context, adjust(user, get_pc(context)));
        hfn_linux_adjust_frames(restorers, get_sp(context), adjust, user);
    }
}

static void release_all(void)
{
    atomic_fetch_add_explicit(&stop.attempt, 1, memory_order_release); /* pairs with park */
    futex(&stop.attempt, FUTEX_WAKE, INT32_MAX, 0);
}

bool hfn_os_with_threads_stopped(uint64_t timeout_ns, hfn_adjust_pc_fn adjust, hfn_quiesced_fn work,
                                 void *user)
{
    uint64_t deadline_ns = hfn_os_monotonic_ns() + timeout_ns;
    hfn_os_interruptions interruptions;
    hfn_restorers restorers;
    bool stopped;

    while (atomic_flag_test_and_set_explicit(&stop.busy, memory_order_acquire)) {
        if (hfn_os_monotonic_ns() >= deadline_ns) {
            return false;
        }
    }
    hfn_os_block_interruptions(&interruptions);
    hfn_linux_find_restorers(&restorers);
    stopped = map_tasks() && install_handler();
    if (stopped) {
        stop.task_count = stop.first;
        atomic_store_explicit(&stop.parked, 0, memory_order_relaxed);
        atomic_fetch_add_explicit(&stop.attempt, 1, memory_order_release);
        stopped = park_all(deadline_ns);
        if (stopped) {
            adjust_all(&restorers, adjust, user);
            work(user);
            hfn_os_sync_core();
        }
        release_all();
        remove_handler();
    }
    hfn_os_restore_interruptions(&interruptions);
    atomic_flag_clear_explicit(&stop.busy, memory_order_release);
    return stopped;
}
