/* SPDX-License-Identifier: MIT */
/*
 * Stops the other threads of this process: each is suspended, and its context is read, which
 * returns only when it has stopped.  Passes over all threads are repeated until one finds no new
 * thread, because a running thread may start others.  Between the first suspension and the last
 * resumption only system calls are made: a stopped thread may hold any lock.
 *
 * In wine a thread may be stopped while it starts another one, between the two steps of the start.
 * The new thread then exists for the system, but gets no context before its starter continues; it
 * has no TEB yet.
 */
#include "os/threads.h"

#include "os/clock.h"
#include "os/windows/nt.h"
#include "os/windows/order.h"

enum { MAX_THREADS = 16384, THREAD_BASIC = 0 };

typedef struct stopped {
    HANDLE thread;
    DWORD tid;
    bool has_started;
} stopped;

typedef struct stop_state {
    stopped *list;
    uint32_t count;
    uint64_t deadline_ns;
    hfn_adjust_pc_fn adjust;
    void *user;
} stop_state;

#if defined(__x86_64__)
#define PC Rip
#else
#define PC Eip
#endif

static uint64_t last_stop_ns;

uint64_t hfn_get_last_stop_ns(void)
{
    return last_stop_ns;
}

static bool is_stopped(const stop_state *s, DWORD tid)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->list[i].tid == tid) {
            return true;
        }
    }
    return false;
}

/* Once it is suspended, a thread that has no TEB will stop before its first instruction. */
static bool has_started(HANDLE thread)
{
    hfn_thread_info info = { 0 };

    return NtQueryInformationThread(thread, (THREADINFOCLASS)THREAD_BASIC, &info, sizeof info,
                                    NULL) < 0 ||
           info.teb != NULL;
}

/* Suspend the thread; false if it has ended. */
static bool stop_thread(stop_state *s, HANDLE thread, DWORD tid)
{
    CONTEXT context = { .ContextFlags = CONTEXT_CONTROL };
    bool is_new;

    if (SuspendThread(thread) == (DWORD)-1) {
        return false;
    }
    is_new = !has_started(thread);
    if (!is_new && !GetThreadContext(thread, &context)) {
        ResumeThread(thread);
        return false;
    }
    s->list[s->count++] = (stopped){ thread, tid, !is_new };
    return true;
}

/* Stop the threads that still run; *found receives how many did.  False: too many, or too late. */
static bool stop_pass(stop_state *s, uint32_t *found)
{
    const ACCESS_MASK access =
        THREAD_SUSPEND_RESUME | THREAD_GET_CONTEXT | THREAD_SET_CONTEXT | THREAD_QUERY_INFORMATION;
    DWORD own = GetCurrentThreadId();
    HANDLE previous = NULL, next;
    bool keeps_previous = false;

    *found = 0;
    while (NtGetNextThread(GetCurrentProcess(), previous, access, 0, 0, &next) >= 0) {
        DWORD tid = GetThreadId(next);
        bool is_new = tid != own && !is_stopped(s, tid);

        if (previous && !keeps_previous) {
            NtClose(previous);
        }
        previous = next;
        if (is_new && (s->count == MAX_THREADS || hfn_os_monotonic_ns() > s->deadline_ns)) {
            NtClose(next);
            return false;
        }
        keeps_previous = is_new && stop_thread(s, next, tid);
        *found += keeps_previous;
    }
    if (previous && !keeps_previous) {
        NtClose(previous);
    }
    return true;
}

static void adjust_all(const stop_state *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        CONTEXT context = { .ContextFlags = CONTEXT_CONTROL };
        uint64_t pc;

        if (!s->list[i].has_started || !GetThreadContext(s->list[i].thread, &context)) {
            continue;
        }
        pc = s->adjust(s->user, context.PC);
        if (pc != context.PC) {
            context.PC = (uintptr_t)pc;
            SetThreadContext(s->list[i].thread, &context);
        }
    }
}

bool hfn_os_with_threads_stopped(uint64_t timeout_ns, hfn_adjust_pc_fn adjust, hfn_quiesced_fn work,
                                 void *user)
{
    stop_state s = { .adjust = adjust, .user = user };
    uint64_t now = hfn_os_monotonic_ns();
    uint32_t found = 1;
    bool done = true;

    s.deadline_ns = timeout_ns < UINT64_MAX - now ? now + timeout_ns : UINT64_MAX;
    s.list =
        VirtualAlloc(NULL, MAX_THREADS * sizeof *s.list, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    if (!s.list) {
        return false;
    }
    while (done && found > 0) {
        done = stop_pass(&s, &found);
    }
    if (done) {
        adjust_all(&s);
        work(user);
    }
    for (uint32_t i = 0; i < s.count; i++) {
        ResumeThread(s.list[i].thread);
        NtClose(s.list[i].thread);
    }
    last_stop_ns = hfn_os_monotonic_ns() - now;
    VirtualFree(s.list, 0, MEM_RELEASE);
    return done;
}
