/* SPDX-License-Identifier: MIT */
/*
 * The launcher's side of an attach.  By thread: a thread in the process that calls LoadLibraryW
 * with the agent's path, unless the agent is loaded, then a thread that calls the agent's function.
 * By hook: a hook procedure in the agent, which the system loads into the process when a thread of
 * it that has a window gets its next message.
 */
#include "os/agent.h"

#include "os/clock.h"
#include "os/remote.h"
#include "os/windows/nt.h"
#include "os/windows/order.h"

#include <string.h>

#define ENTER_NS UINT64_C(20000000000) /* a process may be busy, or its loader's lock be held */
enum { POLL_MS = 1, SEND_MS = 50 };
#define STATE_OF(word) ((uint32_t)(word))

static HANDLE get_process(const hfn_os_agent *a)
{
    return (HANDLE)(intptr_t)a->process;
}

hfn_os_error hfn_os_agent_open(hfn_os_agent *out, uint32_t pid)
{
    const DWORD access = PROCESS_CREATE_THREAD | PROCESS_QUERY_INFORMATION | PROCESS_VM_OPERATION |
                         PROCESS_VM_READ | PROCESS_VM_WRITE | SYNCHRONIZE;
    HANDLE process = OpenProcess(access, FALSE, pid);

    *out = (hfn_os_agent){ .pid = pid };
    if (!process) {
        return hfn_get_last_error();
    }
    if (WaitForSingleObject(process, 0) == WAIT_OBJECT_0) {
        CloseHandle(process);
        return ERROR_INVALID_PARAMETER; /* as for a process that is gone */
    }
    out->process = (int64_t)(intptr_t)process;
    return 0;
}

void hfn_os_agent_close(hfn_os_agent *a)
{
    if (a->order) {
        UnmapViewOfFile(a->order);
    }
    if (a->section != 0) {
        CloseHandle((HANDLE)(intptr_t)a->section);
    }
    if (a->process != 0) {
        CloseHandle(get_process(a));
    }
    *a = (hfn_os_agent){ .pid = a->pid };
}

bool hfn_os_agent_has_ended(const hfn_os_agent *a)
{
    return WaitForSingleObject(get_process(a), 0) == WAIT_OBJECT_0;
}

hfn_os_error hfn_os_agent_map_order(hfn_os_agent *a, bool creates)
{
    hfn_os_error error = hfn_order_map(&a->section, &a->order, a->pid, creates);

    if (error == 0 && a->order->magic == 0) {
        if (!creates) {
            return ERROR_FILE_NOT_FOUND;
        }
        /* A new section has zeros.  If two launchers fill it at once, both write the same. */
        a->order->kind = HFN_ORDER_ATTACH;
        a->order->text_bytes = 1;
        a->order->magic = HFN_ORDER_MAGIC;
    }
    return error;
}

/* ---- Waiting for the agent. */

static bool is_step_pending(const hfn_os_agent *a)
{
    uint32_t state = STATE_OF(__atomic_load_n((uint64_t *)&a->order->word, __ATOMIC_ACQUIRE));

    return state == HFN_AGENT_ENTERING || state == HFN_AGENT_LEAVING;
}

/* Wait until the agent has done the step.  A step that it has not begun in time is withdrawn, so
 * that it can never begin. */
static hfn_os_error wait_for_step(const hfn_os_agent *a, void (*nudge)(DWORD tid), DWORD tid)
{
    uint64_t end_ns = hfn_os_monotonic_ns() + ENTER_NS;

    for (uint32_t n = 0; is_step_pending(a); n++) {
        uint32_t offered = 1;

        if (hfn_os_agent_has_ended(a)) {
            return ERROR_INVALID_PARAMETER;
        }
        if (hfn_os_monotonic_ns() > end_ns &&
            __atomic_compare_exchange_n((uint32_t *)&a->order->offered, &offered, 0, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            return ERROR_TIMEOUT;
        }
        if (nudge && n % SEND_MS == 0) {
            nudge(tid);
        }
        Sleep(POLL_MS);
    }
    return 0;
}

/* ---- By thread. */

typedef struct library_search {
    const char *name;
    uint64_t base;
} library_search;

static bool match_library(void *user, const hfn_remote_module *module)
{
    library_search *s = user;
    const char *slash = strrchr(module->path, '/'), *name = slash ? slash + 1 : module->path;

    if (_stricmp(name, s->name) == 0) {
        s->base = module->base;
    }
    return s->base == 0;
}

/* The address of LoadLibraryW in the process, where kernel32 may lie elsewhere than in this one. */
static LPTHREAD_START_ROUTINE find_load_library(uint32_t pid)
{
    library_search search = { .name = "kernel32.dll" };
    HMODULE own = GetModuleHandleW(L"kernel32.dll");
    uint64_t address = (uint64_t)(uintptr_t)GetProcAddress(own, "LoadLibraryW");

    hfn_os_remote_each_module(pid, match_library, &search);
    return search.base == 0 ? NULL
                            : (LPTHREAD_START_ROUTINE)(uintptr_t)(search.base + address -
                                                                  (uint64_t)(uintptr_t)own);
}

static hfn_os_error start_remote(const hfn_os_agent *a, LPTHREAD_START_ROUTINE code, void *argument,
                                 HANDLE *thread)
{
    *thread = code ? CreateRemoteThread(get_process(a), NULL, 0, code, argument, 0, NULL) : NULL;
    return *thread ? 0 : code ? hfn_get_last_error() : ERROR_MOD_NOT_FOUND;
}

/* Wait until a thread of the process ends, or the process itself. */
static hfn_os_error wait_for_thread(const hfn_os_agent *a, HANDLE thread)
{
    HANDLE both[2] = { thread, get_process(a) };
    DWORD ended = WaitForMultipleObjects(2, both, FALSE, (DWORD)(ENTER_NS / 1000000));

    return ended == WAIT_TIMEOUT                                 ? ERROR_TIMEOUT
           : ended != WAIT_OBJECT_0 || hfn_os_agent_has_ended(a) ? ERROR_INVALID_PARAMETER
                                                                 : 0;
}

/* The path stays in the process if the thread has not ended in time: it may read it later. */
static hfn_os_error load_agent(const hfn_os_agent *a, const wchar_t *path)
{
    SIZE_T bytes = (wcslen(path) + 1) * sizeof *path, done = 0;
    void *there =
        VirtualAllocEx(get_process(a), NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    hfn_os_error error;
    HANDLE thread;

    if (!there || !WriteProcessMemory(get_process(a), there, path, bytes, &done)) {
        error = hfn_os_agent_has_ended(a) ? ERROR_INVALID_PARAMETER : hfn_get_last_error();
    } else {
        error = start_remote(a, find_load_library(a->pid), there, &thread);
        if (error == 0) {
            error = wait_for_thread(a, thread);
            CloseHandle(thread);
        }
    }
    if (there && error != ERROR_TIMEOUT) {
        VirtualFreeEx(get_process(a), there, 0, MEM_RELEASE);
    }
    return error;
}

static uint64_t get_serve(const hfn_os_agent *a)
{
    return __atomic_load_n((uint64_t *)&a->order->serve, __ATOMIC_ACQUIRE);
}

static hfn_os_error call_by_thread(const hfn_os_agent *a, const wchar_t *path)
{
    hfn_os_error error = get_serve(a) == 0 ? load_agent(a, path) : 0;
    HANDLE thread;

    if (error != 0) {
        return error;
    }
    error = start_remote(a, (LPTHREAD_START_ROUTINE)(uintptr_t)get_serve(a), NULL, &thread);
    if (error == 0) {
        CloseHandle(thread);
        error = wait_for_step(a, NULL, 0);
    }
    return error;
}

/* ---- By hook. */

typedef struct window_search {
    DWORD pid, tid;
} window_search;

static BOOL CALLBACK match_window(HWND window, LPARAM user)
{
    window_search *s = (window_search *)user;
    DWORD pid = 0, tid = GetWindowThreadProcessId(window, &pid);

    if (pid == s->pid) {
        s->tid = tid;
    }
    return s->tid == 0;
}

/* A thread of the process that has a window, also a window only for messages; 0: none.  The system
 * makes a list of the windows before it visits them, so it ends although windows move. */
static DWORD find_window_thread(uint32_t pid)
{
    window_search search = { pid, 0 };
    HWND first = FindWindowExW(HWND_MESSAGE, NULL, NULL, NULL);
    HWND parent = first ? GetAncestor(first, GA_PARENT) : NULL;

    EnumWindows(match_window, (LPARAM)&search);
    if (search.tid == 0 && parent) {
        EnumChildWindows(parent, match_window, (LPARAM)&search);
    }
    return search.tid;
}

static void post_nothing(DWORD tid)
{
    PostThreadMessageW(tid, WM_NULL, 0, 0);
}

static hfn_os_error call_by_hook(const hfn_os_agent *a, const wchar_t *path)
{
    DWORD tid = find_window_thread(a->pid);
    HMODULE agent = tid ? LoadLibraryW(path) : NULL;
    HOOKPROC procedure =
        agent ? (HOOKPROC)(void (*)(void))GetProcAddress(agent, "hotfn_agent_message") : NULL;
    HHOOK hook = procedure ? SetWindowsHookExW(WH_GETMESSAGE, procedure, agent, tid) : NULL;
    hfn_os_error error = tid == 0 ? ERROR_FILE_NOT_FOUND : hook ? 0 : hfn_get_last_error();

    if (hook) {
        error = wait_for_step(a, post_nothing, tid);
        UnhookWindowsHookEx(hook);
    }
    if (agent) {
        FreeLibrary(agent);
    }
    return error;
}

hfn_os_error hfn_os_agent_call(const hfn_os_agent *a, const char *agent_path, bool by_hook)
{
    wchar_t path[HFN_UTF16_PATH];

    if (!hfn_to_utf16(agent_path, path, HFN_UTF16_PATH)) {
        return ERROR_INVALID_NAME;
    }
    return by_hook ? call_by_hook(a, path) : call_by_thread(a, path);
}
