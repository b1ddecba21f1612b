/* SPDX-License-Identifier: MIT */
/* A program to attach to: threads that call target_step all the time, threads that start and end,
 * and a thread that has a window.  It publishes its own number of calls, checks its results, and
 * ends when the event of attach_rounds.c is set, with status 7 if each result was right.
 *
 *     attach_target.exe [watch|idle|closed]
 *
 *     watch   print the process id, then "hooked" and "restored" whenever target_chain changes; end
 *             after a line of input
 *     idle    print the process id; have no window, and end after a line of input
 *     closed  the same, as a process that no other process may open
 */
#include "attach_shared.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static shared_counts *counts;
static HANDLE end;
static volatile LONG wrong;

__attribute__((noinline, noclone)) static uint64_t target_step(uint64_t state, uint64_t value)
{
    return (state ^ value) * 0x9e3779b97f4a7c15u + (state >> 7);
}

__attribute__((noinline, noclone)) static uint64_t target_chain(uint64_t seed)
{
    uint64_t state = seed;

    for (uint64_t i = 0; i < CHAIN; i++) {
        InterlockedIncrement64(&counts->steps);
        state = target_step(state, i);
    }
    return state;
}

static void check_chain(uint64_t wanted)
{
    if (target_chain(5) != wanted) {
        InterlockedExchange(&wrong, 1);
    }
}

static DWORD WINAPI work_long(void *wanted)
{
    while (WaitForSingleObject(end, 0) == WAIT_TIMEOUT) {
        check_chain(*(uint64_t *)wanted);
    }
    return 0;
}

static DWORD WINAPI work_briefly(void *wanted)
{
    check_chain(*(uint64_t *)wanted);
    return 0;
}

static DWORD WINAPI start_others(void *wanted)
{
    while (WaitForSingleObject(end, 0) == WAIT_TIMEOUT) {
        HANDLE thread = CreateThread(NULL, 0, work_briefly, wanted, 0, NULL);

        WaitForSingleObject(thread, INFINITE);
        CloseHandle(thread);
    }
    return 0;
}

static DWORD WINAPI show_window(void *unused)
{
    HWND window = CreateWindowExW(0, L"STATIC", L"", 0, 0, 0, 0, 0, HWND_MESSAGE, NULL, NULL, NULL);
    MSG message;

    (void)unused;
    SetEvent(OpenEventW(EVENT_MODIFY_STATE, FALSE, READY_EVENT));
    while (window && GetMessageW(&message, NULL, 0, 0) > 0) {
        DispatchMessageW(&message);
    }
    return 0;
}

/* ---- Modes. */

/* Not by the C library, one of whose threads may wait for input. */
static void print_line(const char *text)
{
    char line[32];
    DWORD done;
    int bytes = snprintf(line, sizeof line, "%s\n", text);

    WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), line, (DWORD)bytes, &done, NULL);
}

static void print_id(void)
{
    char text[16];

    snprintf(text, sizeof text, "%lu", (unsigned long)GetCurrentProcessId());
    print_line(text);
}

/* Through a variable: code that reads a function's bytes by name keeps it from being hooked. */
static uint64_t (*volatile watched)(uint64_t) = target_chain;

static DWORD WINAPI watch_code(void *unused)
{
    const volatile uint8_t *code = (const uint8_t *)(uintptr_t)watched;
    uint8_t original = code[0], before = original;

    (void)unused;
    while (WaitForSingleObject(end, 1) == WAIT_TIMEOUT) {
        uint8_t now = code[0];

        if ((now == original) != (before == original)) {
            print_line(now == original ? "restored" : "hooked");
        }
        before = now;
    }
    return 0;
}

static int wait_idle(bool is_closed)
{
    ACL list;
    SECURITY_DESCRIPTOR closed;

    if (is_closed) {
        InitializeAcl(&list, sizeof list, ACL_REVISION);
        InitializeSecurityDescriptor(&closed, SECURITY_DESCRIPTOR_REVISION);
        SetSecurityDescriptorDacl(&closed, TRUE, &list, FALSE);
        SetKernelObjectSecurity(GetCurrentProcess(), DACL_SECURITY_INFORMATION, &closed);
    }
    print_id();
    return getchar() == EOF ? 1 : 7;
}

static HANDLE start_workers(HANDLE threads[WORKERS], uint64_t *wanted)
{
    HANDLE section = CreateFileMappingW(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0,
                                        sizeof *counts, COUNTS_NAME);

    counts = MapViewOfFile(section, FILE_MAP_WRITE, 0, 0, sizeof *counts);
    end = CreateEventW(NULL, TRUE, FALSE, END_EVENT);
    *wanted = target_chain(5);
    for (int i = 0; i < WORKERS; i++) {
        threads[i] = CreateThread(NULL, 0, i == 0 ? start_others : work_long, wanted, 0, NULL);
    }
    return CreateThread(NULL, 0, show_window, NULL, 0, NULL);
}

int main(int argc, char **argv)
{
    HANDLE threads[WORKERS];
    uint64_t wanted;

    if (argc > 1 && strcmp(argv[1], "watch") != 0) {
        return wait_idle(strcmp(argv[1], "closed") == 0);
    }
    start_workers(threads, &wanted);
    if (argc > 1) {
        print_id();
        CreateThread(NULL, 0, watch_code, NULL, 0, NULL);
        getchar();
        SetEvent(end);
    }
    WaitForMultipleObjects(WORKERS, threads, TRUE, INFINITE);
    return wrong ? 1 : 7;
}
