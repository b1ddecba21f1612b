/* SPDX-License-Identifier: MIT */
/*
 * Stops every other thread of this process at an arbitrary instruction.  Each thread is sent a
 * signal that carries (attempt, number); the signal handler stores the thread's context in the task
 * of that number and waits.  The signal is number 33, which the C library reserves for setuid() and
 * does not let programs block, so that threads that block all signals are stopped too.  Signals of
 * other senders are passed to the previous handler; that of the C library checks si_code and
 * ignores foreign signals.
 *
 * A thread inside one of its own signal handlers will resume at the PC in its signal frame; these
 * frames are searched on its stacks (signal_frames.c).
 *
 * Workers of hotfn that execute only its own code and system calls are not stopped: no stop changes
 * bytes that they execute, and no handler interrupts them, as they block all signals.  A worker
 * clears its entry in `unstopped`, then waits while `attempt` is odd; a stop makes `attempt` odd,
 * then reads the entries.  Both are sequentially consistent, so a stop that misses the worker's
 * entry signals it, and a worker that a stop has passed over waits for its end.
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

enum {
    MAX_UNSTOPPED = 32,
    STOP_SIGNAL = 33,
    TASK_BITS = 15,
    MAX_TASKS = 1 << TASK_BITS,
    RESCAN_NS = 1000000
};

typedef hfn_kernel_action kernel_action;

#define KERNEL_SA_RESTORER 0x04000000ul

enum { SIGNALLED = 0, PARKED = 1, GONE = 2 };

typedef struct task {
    uint32_t tid;
    _Atomic uint32_t state;
    ucontext_t *_Atomic context;
} task;

static struct {
    atomic_flag busy;
    _Atomic uint32_t attempt; /* incremented for each stop and each resume: odd while stopped */
    _Atomic uint32_t parked;  /* parked threads of this attempt; the stopping thread waits on it */
    task *tasks;              /* [MAX_TASKS], populated on first use */
    uint32_t first, task_count; /* tasks[first..task_count) are this attempt's */
    kernel_action before;
    bool installed;
} stop;

/* Process id << 32 | thread id, so that entries mean nothing in a child of fork; 0: free. */
static _Atomic uint64_t unstopped[MAX_UNSTOPPED];

static long call_futex(_Atomic uint32_t *word, int operation, uint32_t value, uint64_t timeout_ns)
{
    struct timespec timeout = { (time_t)(timeout_ns / 1000000000u),
                                (long)(timeout_ns % 1000000000u) };

    return hfn_raw_syscall4(SYS_futex, hfn_raw_pointer(word),
                            (uint64_t)operation | FUTEX_PRIVATE_FLAG, value,
                            timeout_ns ? hfn_raw_pointer(&timeout) : 0);
}

/* ---- In the threads that are stopped.  HOT PATH: system calls only. */

#if defined(__x86_64__)
/* Unwinders recognise a signal frame by these bytes: mov $15,%rax; syscall. */
__attribute__((naked, noinline)) static void return_from_signal(void)
{
    __asm__("movq $15, %rax\n\tsyscall");
}
#define RESTORER return_from_signal
#define RESTORER_FLAG KERNEL_SA_RESTORER
#else
/* The kernel returns through the vDSO. */
#define RESTORER NULL
#define RESTORER_FLAG 0
#endif

/* The signal's value; it has the size of a pointer, so only the low bits of the attempt fit. */
static uintptr_t encode_ticket(uint32_t attempt, uint32_t number)
{
    return (uintptr_t)attempt << TASK_BITS | number;
}

/* The address at which a stopped thread will resume. */
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

static void park_thread(uint32_t attempt, uint32_t number, ucontext_t *context)
{
    task *own = &stop.tasks[number];

    atomic_store_explicit(&own->context, context, memory_order_relaxed);
    atomic_store_explicit(&own->state, PARKED, memory_order_release); /* pairs with all_parked */
    atomic_fetch_add_explicit(&stop.parked, 1, memory_order_release);
    call_futex(&stop.parked, FUTEX_WAKE, 1, 0);
    while (atomic_load_explicit(&stop.attempt, memory_order_acquire) == attempt) {
        call_futex(&stop.attempt, FUTEX_WAIT, attempt, 0);
    }
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    uintptr_t value = (uintptr_t)info->si_value.sival_ptr;
    uint32_t task_number = value % MAX_TASKS, attempt;

    if (info->si_code == SI_QUEUE && info->si_pid == (pid_t)hfn_raw_syscall3(SYS_getpid, 0, 0, 0)) {
        attempt = atomic_load_explicit(&stop.attempt, memory_order_acquire);
        if ((attempt & 1) && value == encode_ticket(attempt, task_number)) {
            park_thread(attempt, task_number, context);
        }
        return; /* a late signal of an abandoned attempt */
    }
    if (hfn_raw_pointer((void *)(uintptr_t)stop.before.handler) > 1) { /* not SIG_DFL, SIG_IGN */
        stop.before.handler(number, info, context);
    }
}

/* ---- In workers that are not stopped. */

static uint64_t get_process_bits(void)
{
    return (uint64_t)(uint32_t)hfn_raw_syscall3(SYS_getpid, 0, 0, 0) << 32;
}

/* If there is no free entry, the worker is stopped like other threads. */
void hfn_os_begin_unstopped(void)
{
    uint64_t process = get_process_bits();

    for (uint32_t i = 0; i < MAX_UNSTOPPED; i++) {
        uint64_t entry = atomic_load(&unstopped[i]);
        if ((entry == 0 || entry >> 32 != process >> 32) &&
            atomic_compare_exchange_strong(&unstopped[i], &entry, process | hfn_os_thread_id())) {
            return;
        }
    }
}

static bool is_unstopped(uint32_t tid, _Atomic uint64_t **entry)
{
    uint64_t sought = get_process_bits() | tid;

    for (uint32_t i = 0; i < MAX_UNSTOPPED; i++) {
        if (atomic_load(&unstopped[i]) == sought) {
            *entry = &unstopped[i];
            return true;
        }
    }
    return false;
}

void hfn_os_end_unstopped(void)
{
    _Atomic uint64_t *entry;
    uint32_t attempt;

    if (!is_unstopped(hfn_os_thread_id(), &entry)) {
        return;
    }
    atomic_store(entry, 0);
    while ((attempt = atomic_load(&stop.attempt)) & 1) {
        call_futex(&stop.attempt, FUTEX_WAIT, attempt, 0);
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

/* After an abandoned attempt, one of its signals may still arrive at any time.  The handler then
 * stays installed to absorb it, and its task is not reused, since its thread may be about to write
 * there. */
static void remove_handler(void)
{
    for (uint32_t i = stop.first; i < stop.task_count; i++) {
        if (atomic_load_explicit(&stop.tasks[i].state, memory_order_relaxed) == SIGNALLED) {
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
    info.si_value.sival_ptr = (void *)encode_ticket(attempt, number);
    return hfn_raw_syscall4(SYS_rt_tgsigqueueinfo, pid, tid, STOP_SIGNAL, hfn_raw_pointer(&info)) ==
           0;
}

static bool is_signalled(uint32_t tid)
{
    for (uint32_t i = stop.first; i < stop.task_count; i++) {
        if (stop.tasks[i].tid == tid &&
            atomic_load_explicit(&stop.tasks[i].state, memory_order_relaxed) != GONE) {
            return true;
        }
    }
    return false;
}

static bool signal_task(void *user, uint32_t tid)
{
    bool *failed = user;
    _Atomic uint64_t *entry;
    task *one;

    if (tid == hfn_os_thread_id() || is_signalled(tid) || is_unstopped(tid, &entry)) {
        return true;
    }
    *failed = stop.task_count == MAX_TASKS;
    if (*failed || hfn_linux_task_runs_no_code(tid)) {
        return !*failed;
    }
    one = &stop.tasks[stop.task_count];
    one->tid = tid;
    atomic_store_explicit(&one->context, NULL, memory_order_relaxed);
    atomic_store_explicit(&one->state, SIGNALLED, memory_order_relaxed);
    if (send_signal(tid, atomic_load_explicit(&stop.attempt, memory_order_relaxed),
                    stop.task_count)) {
        stop.task_count++;
    } else {
        *failed = !hfn_linux_task_runs_no_code(tid); /* the queue of signals is full */
    }
    return !*failed;
}

/* Has each signalled thread parked or ended?  A thread that is missing in the list may still run:
 * when a thread ends during the listing, the kernel skips others (fs/proc/base.c, first_tid). */
static bool all_parked(void)
{
    bool all = true;

    for (uint32_t i = stop.first; i < stop.task_count; i++) {
        task *one = &stop.tasks[i];
        /* Acquire: pairs with the release store in park_thread; its context is then complete. */
        if (atomic_load_explicit(&one->state, memory_order_acquire) != SIGNALLED) {
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

/* Repeat until a complete scan finds only parked threads: only a running thread can start
 * another. */
static bool park_all(uint64_t deadline_ns)
{
    for (;;) {
        uint32_t before = atomic_load_explicit(&stop.parked, memory_order_acquire);
        uint32_t signalled = stop.task_count;
        bool failed = false;

        if (!hfn_linux_each_task(signal_task, &failed) || failed) {
            return false;
        }
        if (all_parked() && signalled == stop.task_count) {
            return true;
        }
        if (hfn_os_monotonic_ns() >= deadline_ns) {
            return false;
        }
        call_futex(&stop.parked, FUTEX_WAIT, before, RESCAN_NS);
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
    /* pairs with the acquire load in park_thread */
    atomic_fetch_add_explicit(&stop.attempt, 1, memory_order_release);
    call_futex(&stop.attempt, FUTEX_WAKE, INT32_MAX, 0);
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
        atomic_fetch_add(&stop.attempt, 1); /* before `unstopped` is read */
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
