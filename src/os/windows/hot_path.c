/* SPDX-License-Identifier: MIT */
/* HOT PATH: what a thread's first counted call needs.  The thread's ids and stack are read from its
 * block (TEB), the clocks from the page that the kernel shares with every process; ntdll is called
 * for pages, other threads and other processes.  Its callers have saved the vector registers. */
#include "os/hot_path.h"

#include "os/row_word.h"
#include "os/windows/nt.h"

uint32_t hfn_os_row_word_at;

/* ---- The thread's block: winternl.h (TEB); [MS-ERREF] has the numbers of statuses. */

enum { STATUS_INVALID_CID_NUMBER = (int)0xC000000B, NAME_BYTES = 16, PAGE_BYTES = 4096 };
#define SHARED_PAGE UINT64_C(0x7ffe0000) /* KUSER_SHARED_DATA */
#define UNITS_TO_1970 UINT64_C(116444736000000000)

#if defined(__x86_64__)
enum { TEB_SELF = 0x30, TEB_PID = 0x40, TEB_TID = 0x48 };
#define READ_TEB(type, offset)                                                                     \
    (__extension__({                                                                               \
        type read_word;                                                                            \
        __asm__ volatile("mov %%gs:%c1, %0" : "=r"(read_word) : "i"(offset));                      \
        read_word;                                                                                 \
    }))
#else
enum { TEB_SELF = 0x18, TEB_PID = 0x20, TEB_TID = 0x24 };
#define READ_TEB(type, offset)                                                                     \
    (__extension__({                                                                               \
        type read_word;                                                                            \
        __asm__ volatile("mov %%fs:%c1, %0" : "=r"(read_word) : "i"(offset));                      \
        read_word;                                                                                 \
    }))
#endif

uint64_t hfn_os_get_row_word_address(void)
{
    return READ_TEB(uintptr_t, TEB_SELF) + hfn_os_row_word_at;
}

uint32_t hfn_os_hot_thread_id(void)
{
    return (uint32_t)READ_TEB(uintptr_t, TEB_TID);
}

uint32_t hfn_os_hot_process_id(void)
{
    return (uint32_t)READ_TEB(uintptr_t, TEB_PID);
}

uint32_t hfn_os_hot_parent_id(void)
{
    return 0;
}

/* A thread whose object still exists, because a handle to it is open, has no running code: its exit
 * time is set. */
bool hfn_os_hot_thread_is_gone(uint32_t pid, uint32_t tid)
{
    OBJECT_ATTRIBUTES attributes = { .Length = sizeof attributes };
    CLIENT_ID client = { (HANDLE)(uintptr_t)pid, (HANDLE)(uintptr_t)tid };
    HANDLE thread;
    LARGE_INTEGER now = { .QuadPart = 0 };
    NTSTATUS status = NtOpenThread(&thread, SYNCHRONIZE, &attributes, &client);
    bool gone;

    if (status < 0) {
        return status == STATUS_INVALID_CID_NUMBER;
    }
    gone = NtWaitForSingleObject(thread, FALSE, &now) == 0;
    NtClose(thread);
    return gone;
}

bool hfn_os_hot_process_is_gone(uint32_t pid)
{
    OBJECT_ATTRIBUTES attributes = { .Length = sizeof attributes };
    CLIENT_ID client = { (HANDLE)(uintptr_t)pid, NULL };
    HANDLE process;
    LARGE_INTEGER now = { .QuadPart = 0 };
    NTSTATUS status = NtOpenProcess(&process, SYNCHRONIZE, &attributes, &client);
    bool gone;

    if (status < 0) {
        return status == STATUS_INVALID_CID_NUMBER;
    }
    gone = NtWaitForSingleObject(process, FALSE, &now) == 0;
    NtClose(process);
    return gone;
}

/* Process ids are unique on the whole machine. */
uint32_t hfn_os_hot_process_namespace(void)
{
    return 1;
}

/* Threads are unnamed, except those with a description, which needs an allocation to read. */
void hfn_os_hot_thread_name(char *out)
{
    for (int i = 0; i < NAME_BYTES; i++) {
        out[i] = 0;
    }
}

/* Not read yet: names and times of threads are unknown. */
bool hfn_os_hot_read_thread(uint32_t pid, uint32_t tid, hfn_thread_facts *out)
{
    (void)pid, (void)tid, (void)out;
    return false;
}

/* ---- Clocks: a 64-bit count of 100 ns as low, high and high again (KSYSTEM_TIME). */

static uint64_t read_shared_time(uint64_t offset)
{
    const volatile uint32_t *words = (const volatile uint32_t *)(uintptr_t)(SHARED_PAGE + offset);
    uint32_t low, high;

    do {
        high = words[1];
        low = words[0];
    } while (high != words[2]);
    return (uint64_t)high << 32 | low;
}

uint64_t hfn_os_hot_cpu_ns(void)
{
    return 0;
}

uint64_t hfn_os_hot_wall_ns(void)
{
    return (read_shared_time(0x14) - UNITS_TO_1970) * 100; /* SystemTime */
}

uint64_t hfn_os_hot_monotonic_ns(void)
{
    return read_shared_time(0x08) * 100; /* InterruptTime */
}

/* ---- Pages. */

void *hfn_os_hot_map_pages(uint64_t byte_count)
{
    void *at = NULL;
    SIZE_T bytes = (SIZE_T)byte_count;

    return byte_count <= SIZE_MAX &&
                   NtAllocateVirtualMemory(HFN_OWN_PROCESS, &at, 0, &bytes,
                                           MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE) >= 0
               ? at
               : NULL;
}

/* Private pages; a part of them only loses its memory. */
void hfn_os_hot_unmap_pages(void *at, uint64_t byte_count)
{
    SIZE_T bytes = (SIZE_T)byte_count;

    NtFreeVirtualMemory(HFN_OWN_PROCESS, &at, &bytes, MEM_DECOMMIT);
}

void hfn_os_hot_clear_pages(void *at, uint64_t byte_count)
{
    volatile uint64_t *words = at;

    for (uint64_t i = 0; i < byte_count / sizeof *words; i++) {
        words[i] = 0;
    }
}

bool hfn_os_hot_clear_on_fork(void *at, uint64_t byte_count)
{
    (void)at;
    (void)byte_count;
    return true;
}

void *hfn_os_hot_reserve_pages(uint64_t byte_count)
{
    void *at = NULL;
    SIZE_T bytes = (SIZE_T)byte_count;

    return byte_count <= SIZE_MAX && NtAllocateVirtualMemory(HFN_OWN_PROCESS, &at, 0, &bytes,
                                                             MEM_RESERVE, PAGE_READWRITE) >= 0
               ? at
               : NULL;
}

bool hfn_os_hot_commit_pages(void *at, uint64_t byte_count)
{
    SIZE_T bytes = (SIZE_T)byte_count;

    return NtAllocateVirtualMemory(HFN_OWN_PROCESS, &at, 0, &bytes, MEM_COMMIT, PAGE_READWRITE) >=
           0;
}

bool hfn_os_hot_disables_tsc(long number, unsigned long option, unsigned long mode)
{
    (void)number, (void)option, (void)mode;
    return false;
}

uint32_t hfn_os_hot_find_forbidden(long number, const unsigned long words[3], uint32_t forbidden)
{
    (void)number;
    (void)words;
    return forbidden;
}

size_t hfn_os_hot_read_bytes(uint64_t address, void *out, size_t byte_count)
{
    const uint8_t *from = (const uint8_t *)(uintptr_t)address;
    size_t got = 0, part;
    SIZE_T done = 0;

    if (NtReadVirtualMemory(HFN_OWN_PROCESS, from, out, byte_count, &done) >= 0) {
        return done;
    }
    /* a read that meets a missing page may return nothing at all, so pages are read one by one */
    for (; got < byte_count; got += part) {
        part = PAGE_BYTES - (size_t)((address + got) % PAGE_BYTES);
        part = part < byte_count - got ? part : byte_count - got;
        if (NtReadVirtualMemory(HFN_OWN_PROCESS, from + got, (uint8_t *)out + got, part, &done) <
            0) {
            break;
        }
    }
    return got;
}

bool hfn_os_hot_read_word(uint64_t address, uintptr_t *out)
{
    return hfn_os_hot_read_bytes(address, out, sizeof *out) == sizeof *out;
}

bool hfn_os_hot_write_word(uint64_t address, uintptr_t value)
{
    SIZE_T done = 0;

    return NtWriteVirtualMemory(HFN_OWN_PROCESS, (void *)(uintptr_t)address, &value, sizeof value,
                                &done) >= 0;
}

/* As TlsFree does it, but the slot stays in use. */
bool hfn_os_hot_clear_row_words(void)
{
    enum { THREAD_ZERO_TLS_CELL = 10 }; /* THREADINFOCLASS: phnt, ntpsapi.h */
    ULONG slot = (hfn_os_row_word_at - HFN_SLOTS_AT) / sizeof(void *);

    return NtSetInformationThread(HFN_OWN_THREAD, THREAD_ZERO_TLS_CELL, &slot, sizeof slot) >= 0;
}
