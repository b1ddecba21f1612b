/* SPDX-License-Identifier: MIT */
/* The agent in a Windows program.  In a program that the launcher started, the agent is the first
 * entry of the import list, so it is initialised before all other libraries; an attach loads it
 * later (attach/steps.c).  Without an order for this process it does nothing. */
#include "agent/attach/steps.h"
#include "agent/libc/find_export.h"
#include "os/windows/order.h"
#include "runtimes/com.h"
#include "session/joined.h"
#include "session/session.h"

#include <hotfn.h>
#include <hotfn/lowlevel.h>
#include <windows.h>

#include "live/run_flags.h"
#include <stdio.h>
#include <string.h>

static hotfn_session *session;

/* Ordinal 1, which the import list names; never called. */
__declspec(dllexport) void hotfn_agent(void);
__declspec(dllexport) void hotfn_agent(void)
{
}

static void print_warning(const char *text)
{
    char line[700];
    DWORD put;
    int length = snprintf(line, sizeof line, "hotfn agent: %s\n", text);

    if (length > 0) {
        WriteFile(GetStdHandle(STD_ERROR_HANDLE), line, (DWORD)length, &put, NULL);
    }
}

static void print_nothing(const char *text)
{
    (void)text;
}

/* Load the pool of methods, which imports nothing and has no entry point. */
static const hfn_runtime *choose_runtime(unsigned flags, const char *pool)
{
    const hfn_runtime_process process = { agent_find_export,
                                          flags & AGENT_QUIET ? print_nothing : print_warning };

    return flags & AGENT_COM && LoadLibraryA(pool) ? hfn_com_get_runtime(&process) : NULL;
}

/* The order's texts: the flags as three digits, and the paths of the live record, of the plan
 * channel and of the pool. */
static void join_run(const hfn_agent_order *order)
{
    enum { FLAGS, LIVE, CHANNEL, POOL, TEXTS };
    const char *texts[TEXTS], *at = order->text, *end = order->text + order->text_bytes;
    hotfn_env env = HOTFN_ENV_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hfn_join_options options = { .flags = HOTFN_SESSION_SINGLE_THREADED };
    unsigned flags = 0, count = 0;
    char text[600];

    for (; count < TEXTS && at < end; count++, at += strlen(at) + 1) {
        texts[count] = at;
    }
    if (count < TEXTS) {
        return;
    }
    for (at = texts[FLAGS]; *at; at++) {
        flags = flags * 10 + (unsigned)(*at - '0');
    }
    hotfn_env_own_memory(&env); /* the program's heap is not initialised yet */
    options.live_path = texts[LIVE];
    options.channel_path = texts[CHANNEL];
    options.runtime = choose_runtime(flags, texts[POOL]);
    if (hfn_session_join(&session, &options, &env, &err) != HOTFN_OK && !(flags & AGENT_QUIET)) {
        snprintf(text, sizeof text, "nothing is counted in process %lu: %s%s%s",
                 (unsigned long)GetCurrentProcessId(), err.file, err.file[0] ? ": " : "", err.text);
        print_warning(text);
    }
}

BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, void *reserved);
BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, void *reserved)
{
    static hfn_agent_order order; /* the stack of a thread may be small */

    (void)instance, (void)reserved;
    if (reason == DLL_PROCESS_ATTACH && hfn_order_read(&order)) {
        hfn_order_restore_headers(&order.headers);
        join_run(&order);
    } else if (reason == DLL_PROCESS_ATTACH) {
        agent_follow_attaches();
    } else if (reason == DLL_PROCESS_DETACH) {
        hfn_session_verify(); /* the process ends: its patches are compared for the last time */
    }
    return TRUE;
}
