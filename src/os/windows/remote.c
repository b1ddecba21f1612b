/* SPDX-License-Identifier: MIT */
/*
 * Changes the code of another process while its threads are suspended, for `hotfn run --budget`.  A
 * suspended thread has stopped when its context can be read (stop.c also says why the context of a
 * thread without a TEB is not read).  Of hfn_remote_thread, `state` is the thread's handle, which
 * has 32 bits on every Windows, and `delivery` is 1 if it has a context.
 */
#include "os/remote.h"

#include "base/memory.h"
#include "os/clock.h"
#include "os/windows/nt.h"

enum { THREAD_BASIC = 0, STACK_BASE_AT = sizeof(void *), CHUNK_WORDS = 512 };

#if defined(__x86_64__)
#define PC Rip
#define SP Rsp
#else
#define PC Eip
#define SP Esp
#endif

bool hfn_os_can_change_others(void)
{
    return true;
}

/* ---- Memory. */

static HANDLE get_process(const hfn_remote *r)
{
    return hfn_get_handle(r->memory);
}

hfn_os_error hfn_os_remote_open(hfn_remote *r)
{
    HANDLE process = OpenProcess(PROCESS_QUERY_INFORMATION | PROCESS_VM_OPERATION |
                                     PROCESS_VM_READ | PROCESS_VM_WRITE | SYNCHRONIZE,
                                 FALSE, r->pid);

    if (!process) {
        return hfn_get_last_error();
    }
    r->memory.handle = (int64_t)(intptr_t)process;
    return 0;
}

void hfn_os_remote_close(hfn_remote *r)
{
    if (hfn_os_is_open(r->memory)) {
        CloseHandle(get_process(r));
    }
    r->memory = HFN_OS_NO_FILE;
}

bool hfn_os_remote_was_replaced(const hfn_remote *r)
{
    return hfn_os_is_open(r->memory) && WaitForSingleObject(get_process(r), 0) == WAIT_OBJECT_0;
}

bool hfn_os_remote_read(const hfn_remote *r, uint64_t address, void *out, uint32_t byte_count)
{
    SIZE_T done = 0;

    return ReadProcessMemory(get_process(r), (void *)(uintptr_t)address, out, byte_count, &done) &&
           done == byte_count;
}

/* The call makes read-only pages writable for the time being. */
bool hfn_os_remote_write(const hfn_remote *r, uint64_t address, const void *bytes,
                         uint32_t byte_count)
{
    void *at = (void *)(uintptr_t)address;
    SIZE_T done = 0;

    return WriteProcessMemory(get_process(r), at, bytes, byte_count, &done) && done == byte_count &&
           FlushInstructionCache(get_process(r), at, byte_count);
}

/* ---- Stopping. */

static HANDLE get_thread(const hfn_remote_thread *thread)
{
    return (HANDLE)(uintptr_t)thread->state;
}

static bool has_thread(const hfn_remote *r, uint32_t tid)
{
    for (uint32_t i = 0; i < r->thread_count; i++) {
        if (r->threads[i].tid == tid) {
            return true;
        }
    }
    return false;
}

static bool has_room(hfn_remote *r)
{
    return hfn_grow_array(&r->env, (void **)&r->threads, &r->thread_capacity, r->thread_count + 1,
                          sizeof *r->threads);
}

static void *find_teb(HANDLE thread)
{
    hfn_thread_info info = { 0 };

    return NtQueryInformationThread(thread, (THREADINFOCLASS)THREAD_BASIC, &info, sizeof info,
                                    NULL) >= 0
               ? info.teb
               : NULL;
}

/* Suspend the thread and keep its handle; false if it has ended. */
static bool stop_thread(hfn_remote *r, HANDLE thread, uint32_t tid)
{
    CONTEXT context = { .ContextFlags = CONTEXT_CONTROL };
    bool has_context;

    if (SuspendThread(thread) == (DWORD)-1) {
        return false;
    }
    has_context = find_teb(thread) != NULL;
    if (has_context && !GetThreadContext(thread, &context)) {
        ResumeThread(thread);
        return false;
    }
    r->stopped_ns = r->stopped_ns ? r->stopped_ns : hfn_os_monotonic_ns();
    r->threads[r->thread_count++] =
        (hfn_remote_thread){ tid, (uint32_t)(uintptr_t)thread, has_context };
    return true;
}

static hfn_os_error stop_pass(hfn_remote *r, uint64_t until_ns, uint32_t *added)
{
    const ACCESS_MASK access =
        THREAD_SUSPEND_RESUME | THREAD_GET_CONTEXT | THREAD_QUERY_INFORMATION;
    HANDLE previous = NULL, next;
    bool keeps_previous = false;
    hfn_os_error error = 0;

    *added = 0;
    while (error == 0 && NtGetNextThread(get_process(r), previous, access, 0, 0, &next) >= 0) {
        DWORD tid = GetThreadId(next);
        bool is_new = !has_thread(r, tid);

        if (previous && !keeps_previous) {
            NtClose(previous);
        }
        previous = next;
        error = is_new && !has_room(r)                       ? ERROR_NOT_ENOUGH_MEMORY
                : is_new && hfn_os_monotonic_ns() > until_ns ? ERROR_TIMEOUT
                                                             : 0;
        keeps_previous = error == 0 && is_new && stop_thread(r, next, tid);
        *added += keeps_previous;
    }
    if (previous && !keeps_previous) {
        NtClose(previous);
    }
    return error;
}

hfn_os_error hfn_os_remote_stop(hfn_remote *r, uint64_t timeout_ns)
{
    uint64_t until_ns = hfn_os_monotonic_ns() + timeout_ns;
    uint32_t added;
    hfn_os_error error;

    do {
        error = stop_pass(r, until_ns, &added);
    } while (error == 0 && added > 0);
    return error;
}

bool hfn_os_remote_has_ended(const hfn_remote *r, uint32_t index)
{
    return WaitForSingleObject(get_thread(&r->threads[index]), 0) == WAIT_OBJECT_0;
}

uint64_t hfn_os_remote_get_stopped_ns(const hfn_remote *r)
{
    return r->stopped_ns ? hfn_os_monotonic_ns() - r->stopped_ns : 0;
}

bool hfn_os_remote_resume(hfn_remote *r)
{
    for (uint32_t i = 0; i < r->thread_count; i++) {
        ResumeThread(get_thread(&r->threads[i]));
        NtClose(get_thread(&r->threads[i]));
    }
    r->thread_count = 0;
    r->stopped_ns = 0;
    return true;
}

void hfn_os_remote_finish(hfn_remote *r)
{
    hfn_free_memory(&r->env, r->threads, r->thread_capacity * sizeof *r->threads);
    r->threads = NULL;
    r->thread_capacity = 0;
}

/* ---- Where the threads are. */

static bool is_in(const hfn_remote_range *ranges, uint32_t count, uint64_t address)
{
    for (uint32_t i = 0; i < count; i++) {
        if (address >= ranges[i].begin && address < ranges[i].end) {
            return true;
        }
    }
    return false;
}

/* Any word on the stack that points into a range may be a return address. */
static bool stack_leads_in(const hfn_remote *r, uint64_t at, uint64_t end,
                           const hfn_remote_range *ranges, uint32_t range_count)
{
    uintptr_t words[CHUNK_WORDS];

    while (at < end) {
        uint64_t bytes = end - at < sizeof words ? end - at : sizeof words;

        if (!hfn_os_remote_read(r, at, words, (uint32_t)bytes)) {
            return true;
        }
        for (uint32_t i = 0; i < bytes / sizeof *words; i++) {
            if (is_in(ranges, range_count, words[i])) {
                return true;
            }
        }
        at += bytes;
    }
    return false;
}

static bool thread_is_inside(const hfn_remote *r, HANDLE thread, const hfn_remote_range *ranges,
                             uint32_t range_count)
{
    CONTEXT context = { .ContextFlags = CONTEXT_CONTROL };
    uintptr_t stack_base;

    return !GetThreadContext(thread, &context) || is_in(ranges, range_count, context.PC) ||
           !hfn_os_remote_read(r, (uint64_t)(uintptr_t)find_teb(thread) + STACK_BASE_AT,
                               &stack_base, sizeof stack_base) ||
           stack_leads_in(r, context.SP & ~(uint64_t)(sizeof(void *) - 1), stack_base, ranges,
                          range_count);
}

bool hfn_os_remote_is_inside(const hfn_remote *r, const hfn_remote_range *ranges,
                             uint32_t range_count)
{
    for (uint32_t i = 0; i < r->thread_count; i++) {
        const hfn_remote_thread *thread = &r->threads[i];

        if (thread->delivery && thread_is_inside(r, get_thread(thread), ranges, range_count)) {
            return true;
        }
    }
    return false;
}
