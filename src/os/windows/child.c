/* SPDX-License-Identifier: MIT */
/*
 * Children: created suspended, given the agent as the first library of their import list, and then
 * resumed.  The loader thus initialises the agent before every other library.  The order for the
 * agent is in shared memory that is named after the child's process id.
 */
#include "os/child.h"

#include "base/memory.h"
#include "os/windows/import_list.h"
#include "os/windows/nt.h"
#include "os/windows/order.h"

#include <string.h>

enum { MAX_COMMAND = 32767 };

/* ---- The command line: the rules by which the C library splits it (Microsoft, "Parsing C
 * command-line arguments"). */

typedef struct line {
    wchar_t *text;
    size_t length;
    bool fits;
} line;

static void put_unit(line *l, wchar_t unit)
{
    if (l->length + 1 < MAX_COMMAND) {
        l->text[l->length++] = unit;
    } else {
        l->fits = false;
    }
}

static void put_argument(line *l, const wchar_t *argument)
{
    size_t slashes = 0;
    bool quotes = !*argument || wcspbrk(argument, L" \t\n\v\"");

    if (quotes) {
        put_unit(l, L'"');
    }
    for (const wchar_t *c = argument; *c; c++) {
        if (*c == L'\\') {
            slashes++;
            put_unit(l, *c);
            continue;
        }
        for (size_t more = *c == L'"' ? slashes + 1 : 0; more > 0; more--) {
            put_unit(l, L'\\');
        }
        slashes = 0;
        put_unit(l, *c);
    }
    for (; quotes && slashes > 0; slashes--) {
        put_unit(l, L'\\');
    }
    if (quotes) {
        put_unit(l, L'"');
    }
}

static bool make_line(line *l, const char *const *command, wchar_t *argument)
{
    l->fits = true;
    for (uint32_t i = 0; command[i] && l->fits; i++) {
        if (!hfn_to_utf16(command[i], argument, MAX_COMMAND)) {
            return false;
        }
        if (i > 0) {
            put_unit(l, L' ');
        }
        put_argument(l, argument);
    }
    l->text[l->length] = 0;
    return l->fits;
}

/* ---- Console events belong to the child, which gets them from the console itself. */

static BOOL WINAPI ignore_event(DWORD event)
{
    return event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT;
}

void hfn_os_child_release_signals(hfn_os_child *child)
{
    if (child->passes_signals) {
        SetConsoleCtrlHandler(ignore_event, FALSE);
        child->passes_signals = false;
    }
    if (child->process != 0) {
        CloseHandle((HANDLE)(intptr_t)child->process);
        child->process = 0;
    }
    if (child->order != 0) {
        CloseHandle((HANDLE)(intptr_t)child->order);
        child->order = 0;
    }
}

/* ---- Start. */

static hfn_os_error create_process(PROCESS_INFORMATION *made, const hfn_os_child_options *o,
                                   const hotfn_env *env)
{
    size_t bytes = MAX_COMMAND * sizeof(wchar_t);
    wchar_t *room = hfn_allocate_zeroed(env, 2 * bytes), file[HFN_UTF16_PATH];
    STARTUPINFOW start = { .cb = sizeof start };
    line l = { .text = room };
    hfn_os_error error = 0;

    if (!room) {
        return ERROR_NOT_ENOUGH_MEMORY;
    }
    if (!hfn_to_utf16(o->file, file, HFN_UTF16_PATH) ||
        !make_line(&l, o->command, room + MAX_COMMAND)) {
        error = ERROR_FILENAME_EXCED_RANGE;
    } else if (!CreateProcessW(file, l.text, NULL, NULL, TRUE, CREATE_SUSPENDED, NULL, NULL, &start,
                               made)) {
        error = hfn_get_last_error();
    }
    hfn_free_memory(env, room, 2 * bytes);
    return error;
}

static hfn_os_error give_order(hfn_os_child *child, const PROCESS_INFORMATION *made,
                               const hfn_os_child_options *o)
{
    hfn_agent_order order = { .magic = HFN_ORDER_MAGIC, .kind = HFN_ORDER_RUN };
    char agent[HFN_OS_PATH_BYTES];
    hfn_os_error error;

    if (o->order_bytes > sizeof order.text ||
        !hfn_os_get_import_name(o->agent, agent, sizeof agent)) {
        return ERROR_FILENAME_EXCED_RANGE;
    }
    memcpy(order.text, o->order, o->order_bytes);
    order.text_bytes = o->order_bytes;
    error = hfn_import_first(made->hProcess, agent, &order.headers);
    return error != 0 ? error : hfn_order_publish(&child->order, made->dwProcessId, &order);
}

hfn_os_error hfn_os_child_start(hfn_os_child *child, const hfn_os_child_options *o,
                                const hotfn_env *env)
{
    PROCESS_INFORMATION made;
    hfn_os_error error = create_process(&made, o, env);

    if (error != 0) {
        return error;
    }
    *child = (hfn_os_child){ .pid = made.dwProcessId };
    error = give_order(child, &made, o);
    if (error != 0) {
        TerminateProcess(made.hProcess, 1);
        CloseHandle(made.hThread);
        CloseHandle(made.hProcess);
        return error;
    }
    child->process = (int64_t)(intptr_t)made.hProcess;
    child->passes_signals = o->passes_signals;
    if (o->passes_signals) {
        SetConsoleCtrlHandler(ignore_event, TRUE);
    }
    ResumeThread(made.hThread);
    CloseHandle(made.hThread);
    return 0;
}

/* ---- The end. */

bool hfn_os_child_wait(const hfn_os_child *child, uint64_t timeout_ns)
{
    uint64_t ms = timeout_ns / 1000000 + (timeout_ns % 1000000 != 0);

    return WaitForSingleObject((HANDLE)(intptr_t)child->process,
                               ms < INFINITE ? (DWORD)ms : INFINITE) == WAIT_OBJECT_0;
}

void hfn_os_child_reap(hfn_os_child *child)
{
    DWORD code = 0;

    GetExitCodeProcess((HANDLE)(intptr_t)child->process, &code);
    child->exit_code = (int32_t)code;
}

void hfn_os_child_kill(hfn_os_child *child)
{
    TerminateProcess((HANDLE)(intptr_t)child->process, 1);
    WaitForSingleObject((HANDLE)(intptr_t)child->process, INFINITE);
    hfn_os_child_reap(child);
}

bool hfn_os_process_maps_file(uint32_t pid, int fd)
{
    (void)pid;
    (void)fd;
    return false;
}
