/* SPDX-License-Identifier: MIT */
/* The steps of an attach (os/agent.h), in a process that runs already. They are done with the
 * loader's lock, as in DllMain, so that no module is loaded or unloaded meanwhile, and one
 * thread at a time uses the agent's memory. */
#include "agent/attach/steps.h"

#include "base/status.h"
#include "os/files.h"
#include "os/modules.h"
#include "os/windows/order.h"
#include "session/joined.h"

#include <hotfn.h>
#include <hotfn/lowlevel.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

NTSTATUS NTAPI LdrLockLoaderLock(ULONG flags, ULONG *state, ULONG_PTR *cookie);
NTSTATUS NTAPI LdrUnlockLoaderLock(ULONG flags, ULONG_PTR cookie);

static hotfn_session *session;

static hotfn_status join_run(const hfn_agent_order *order, hotfn_error *err)
{
    const char *live = order->text + strlen(order->text) + 1,
               *end = order->text + order->text_bytes;
    hotfn_env env = HOTFN_ENV_INIT;
    hfn_join_options options = { 0 };

    if (live >= end || live + strlen(live) + 1 >= end) {
        return HOTFN_OK;
    }
    hotfn_env_own_memory(&env); /* the program's heap may be hooked */
    options.live_path = live;
    options.channel_path = live + strlen(live) + 1;
    return hfn_session_join(&session, &options, &env, err);
}

/* ---- Steps. */

static hfn_agent_order *attach_order;      /* never unmapped */
static hfn_os_file attach_record = { -1 }; /* keeps the record if the launcher is killed */

static void enter_process(hfn_agent_order *order, hotfn_error *err)
{
    static hfn_agent_order copy; /* so that the launcher cannot change what is being read */

    copy = *order;
    order->status = HOTFN_E_FORMAT;
    if (!hfn_order_is_valid(&copy)) {
        hfn_report_error(err, HOTFN_E_FORMAT, NULL, HOTFN_NO_OFFSET, "the order is damaged");
        return;
    }
    hfn_os_open_file(&attach_record, copy.text + strlen(copy.text) + 1, HFN_OS_READ);
    order->status = join_run(&copy, err);
    if (order->status != HOTFN_OK && hfn_os_is_open(attach_record)) {
        hfn_os_close_file(attach_record);
        attach_record = HFN_OS_NO_FILE;
    }
}

static void leave_process(hfn_agent_order *order, hotfn_error *err)
{
    order->status = session ? hfn_session_leave(&session, err) : HOTFN_OK;
    if (order->status == HOTFN_OK && hfn_os_is_open(attach_record)) {
        hfn_os_close_file(attach_record);
        attach_record = HFN_OS_NO_FILE;
    }
}

static void do_step(hfn_agent_order *order)
{
    uint64_t word = __atomic_load_n((uint64_t *)&order->word, __ATOMIC_ACQUIRE);
    hotfn_error err = HOTFN_ERROR_INIT;
    uint32_t state = (uint32_t)word;

    if (state == HFN_AGENT_ENTERING) {
        enter_process(order, &err);
    } else {
        leave_process(order, &err);
    }
    order->stop_ns = hfn_get_last_stop_ns();
    snprintf(order->error, sizeof order->error, "%s%s%s", err.file, err.file[0] ? ": " : "",
             err.text);
    state = (state == HFN_AGENT_ENTERING) == (order->status == HOTFN_OK) ? HFN_AGENT_INSIDE
                                                                         : HFN_AGENT_IDLE;
    __atomic_store_n((uint64_t *)&order->word, hfn_agent_word(state, (uint32_t)(word >> 32)),
                     __ATOMIC_RELEASE);
}

static void serve_order(void)
{
    ULONG_PTR cookie = 0;

    LdrLockLoaderLock(0, NULL, &cookie);
    /* pairs with the release store of the launcher */
    if (attach_order &&
        __atomic_exchange_n((uint32_t *)&attach_order->offered, 0, __ATOMIC_ACQ_REL)) {
        do_step(attach_order);
    }
    LdrUnlockLoaderLock(0, cookie);
}

static DWORD WINAPI serve_by_thread(void *user)
{
    (void)user;
    serve_order();
    return 0;
}

/* A hook procedure for messages (WH_GETMESSAGE), in a thread that has a window. */
__declspec(dllexport) LRESULT CALLBACK hotfn_agent_message(int code, WPARAM wide, LPARAM message);
__declspec(dllexport) LRESULT CALLBACK hotfn_agent_message(int code, WPARAM wide, LPARAM message)
{
    typedef LRESULT(CALLBACK * next_fn)(HHOOK, int, WPARAM, LPARAM);
    HMODULE library = GetModuleHandleW(L"user32.dll");
    next_fn next =
        library ? (next_fn)(void (*)(void))GetProcAddress(library, "CallNextHookEx") : NULL;

    serve_order();
    return next ? next(NULL, code, wide, message) : 0;
}

void agent_follow_attaches(void)
{
    hfn_agent_order *order;
    int64_t section;

    if (hfn_order_map(&section, &order, GetCurrentProcessId(), false) != 0) {
        return;
    }
    if (order->magic != HFN_ORDER_MAGIC || order->kind != HFN_ORDER_ATTACH) {
        UnmapViewOfFile(order);
        CloseHandle((HANDLE)(intptr_t)section);
        return;
    }
    hfn_os_keep_module_loaded((const void *)(uintptr_t)&agent_follow_attaches);
    attach_order = order; /* the section's handle stays open */
    __atomic_store_n((uint64_t *)&order->serve, (uint64_t)(uintptr_t)&serve_by_thread,
                     __ATOMIC_RELEASE);
}
