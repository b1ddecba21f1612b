/* SPDX-License-Identifier: MIT */
/* The agent in a Windows program.  The loader initialises it before every other library, because it
 * is the first one in the import list.  Without an order for this process it does nothing. */
#include "os/windows/order.h"
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

static void print_error(const hotfn_error *err)
{
    char text[600];
    DWORD put;
    int length = snprintf(
        text, sizeof text, "hotfn agent: nothing is counted in process %lu: %s%s%s\n",
        (unsigned long)GetCurrentProcessId(), err->file, err->file[0] ? ": " : "", err->text);

    if (length > 0) {
        WriteFile(GetStdHandle(STD_ERROR_HANDLE), text, (DWORD)length, &put, NULL);
    }
}

static void join_run(const hfn_agent_order *order)
{
    const char *flags = order->text, *live = flags + strlen(flags) + 1,
               *end = order->text + order->text_bytes;
    hotfn_env env = HOTFN_ENV_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hfn_join_options options = { .flags = HOTFN_SESSION_SINGLE_THREADED };

    if (live >= end || live + strlen(live) + 1 >= end) {
        return;
    }
    hotfn_env_own_memory(&env); /* the program's heap is not initialised yet */
    options.live_path = live;
    options.channel_path = live + strlen(live) + 1;
    if (hfn_session_join(&session, &options, &env, &err) != HOTFN_OK &&
        flags[2] != '0' + AGENT_QUIET) {
        print_error(&err);
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
    } else if (reason == DLL_PROCESS_DETACH && session) {
        hfn_session_verify(); /* the process ends: its patches are compared for the last time */
    }
    return TRUE;
}
