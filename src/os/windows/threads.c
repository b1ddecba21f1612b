/* SPDX-License-Identifier: MIT */
/* Threads of the program and of the engine, waiting on words, and the TLS slot that holds the
 * pointer to each thread's row. */
#include "os/threads.h"

#include "os/clock.h"
#include "os/process.h"
#include "os/row_word.h"
#include "os/windows/nt.h"

/* ---- The row's slot.  The first 64 slots lie in the thread's block (TEB.TlsSlots, winternl.h);
 * TlsAlloc clears the slot in all threads. */

enum { NEAR_SLOTS = 64, MAX_TRIES = 1100 };

bool hfn_os_reserve_row_word(void)
{
    static bool is_reserved; /* for the life of the process: stubs stay */
    DWORD refused[NEAR_SLOTS], count = 0, index;

    if (is_reserved) {
        return true;
    }
    index = TlsAlloc();
    while (index != TLS_OUT_OF_INDEXES && index >= NEAR_SLOTS && count < NEAR_SLOTS) {
        refused[count++] = index; /* a slot below may have been freed meanwhile */
        index = TlsAlloc();
    }
    while (count > 0) {
        TlsFree(refused[--count]);
    }
    if (index == TLS_OUT_OF_INDEXES) {
        return false;
    }
    if (index >= NEAR_SLOTS) {
        TlsFree(index);
        return false;
    }
    hfn_os_row_word_at = HFN_SLOTS_AT + index * sizeof(void *);
    is_reserved = true;
    return true;
}

/* ---- Threads. */

uint32_t hfn_os_thread_id(void)
{
    return GetCurrentThreadId();
}

/* Names belong to debuggers there, and records do not have them. */
bool hfn_os_set_thread_name(const char *name)
{
    (void)name;
    return false;
}

/* The system starts threads of its own in every process, so this is never certain. */
bool hfn_os_is_single_threaded(void)
{
    return false;
}

/* Windows has no signals: only an exception of the thread itself interrupts it. */
void hfn_os_block_interruptions(hfn_os_interruptions *before)
{
    before->state = 0;
}

void hfn_os_restore_interruptions(const hfn_os_interruptions *before)
{
    (void)before;
}

/* x86 processors execute changed code after the next branch (Intel SDM vol. 3, 9.1.3).  Flushing
 * the write buffers of all processors is the weakest call that the system has for this. */
bool hfn_os_sync_core(void)
{
    FlushProcessWriteBuffers();
    return true;
}

/* ---- Waiting.  Within a process the system waits on addresses; between processes a waiter polls,
 * at first often, because an answer usually comes at once. */

static bool is_shared(const volatile void *at)
{
    MEMORY_BASIC_INFORMATION info;

    return VirtualQuery((const void *)(uintptr_t)at, &info, sizeof info) != 0 &&
           info.Type == MEM_MAPPED;
}

static void poll_word(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
    enum { EARLY_POLLS = 200, PAUSE_MS = 1, LONG_PAUSE_MS = 5 };
    uint64_t begin_ns = hfn_os_monotonic_ns();

    for (uint32_t n = 0; __atomic_load_n((uint32_t *)word, __ATOMIC_SEQ_CST) == value; n++) {
        if (hfn_os_monotonic_ns() - begin_ns >= timeout_ns) {
            return;
        }
        Sleep(n < EARLY_POLLS ? PAUSE_MS : LONG_PAUSE_MS);
    }
}

void hfn_os_wait_word(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
    LARGE_INTEGER timeout; /* negative: from now, in units of 100 ns */

    if (is_shared(word)) {
        poll_word(word, value, timeout_ns);
        return;
    }
    timeout.QuadPart = -(LONGLONG)(timeout_ns / 100 < INT64_MAX ? timeout_ns / 100 + 1 : INT64_MAX);
    RtlWaitOnAddress(word, &value, sizeof value, &timeout);
}

void hfn_os_wake_waiters(_Atomic uint32_t *word)
{
    RtlWakeAddressAll(word);
}

/* ---- Workers. */

static DWORD WINAPI run_worker(void *user)
{
    hfn_os_thread *thread = user;

    thread->run(thread->user);
    return 0;
}

bool hfn_os_start_thread(hfn_os_thread *thread, hfn_os_thread_fn run, void *user)
{
    HANDLE made;

    thread->run = run;
    thread->user = user;
    made = CreateThread(NULL, 0, run_worker, thread, 0, NULL);
    thread->handle = (uint64_t)(uintptr_t)made;
    return made != NULL;
}

void hfn_os_run_when_idle(void)
{
    SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_IDLE);
}

/* Here such workers are stopped like others. */
void hfn_os_begin_unstopped(void)
{
}

void hfn_os_end_unstopped(void)
{
}

void hfn_os_wake_on_time(void)
{
    SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_TIME_CRITICAL);
}

uint64_t hfn_os_own_cpu_ns(void)
{
    return hfn_os_thread_cpu_ns();
}

void hfn_os_join_thread(hfn_os_thread *thread)
{
    HANDLE made = (HANDLE)(uintptr_t)thread->handle;

    WaitForSingleObject(made, INFINITE);
    CloseHandle(made);
}

static SRWLOCK *get_lock(hfn_os_mutex *mutex)
{
    _Static_assert(sizeof(SRWLOCK) <= sizeof *mutex, "room for a lock");
    return (SRWLOCK *)(void *)mutex->state;
}

void hfn_os_init_mutex(hfn_os_mutex *mutex)
{
    InitializeSRWLock(get_lock(mutex));
}

void hfn_os_destroy_mutex(hfn_os_mutex *mutex)
{
    (void)mutex;
}

void hfn_os_lock_mutex(hfn_os_mutex *mutex)
{
    AcquireSRWLockExclusive(get_lock(mutex));
}

void hfn_os_unlock_mutex(hfn_os_mutex *mutex)
{
    ReleaseSRWLockExclusive(get_lock(mutex));
}
