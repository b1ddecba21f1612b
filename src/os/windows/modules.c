/* SPDX-License-Identifier: MIT */
/* The modules of this process by the loader's list in the process's block (PEB).  A module is
 * reported to a watcher before its DllMain runs, and again before it is unmapped. */
#include "os/modules.h"

#include "os/windows/nt.h"

#include <string.h>

enum { MAX_MODULES = 1 << 14, MAX_PATH_BYTES = 4096 };
enum { REASON_LOADED = 1, REASON_UNLOADED = 2 }; /* LDR_DLL_NOTIFICATION_REASON_* */

/* LDR_DLL_NOTIFICATION_DATA; both reasons have the same fields. */
typedef struct notification {
    ULONG flags;
    const UNICODE_STRING *full_name, *base_name;
    void *base;
    ULONG byte_count;
} notification;

typedef void(CALLBACK *notify_fn)(ULONG reason, const notification *data, void *user);
NTSTATUS NTAPI LdrRegisterDllNotification(ULONG flags, notify_fn function, void *user,
                                          void **cookie);
NTSTATUS NTAPI LdrUnregisterDllNotification(void *cookie);
BOOLEAN NTAPI RtlDllShutdownInProgress(void);

/* The fields of LDR_DATA_TABLE_ENTRY that winternl.h names Reserved (phnt, ntldr.h). */
typedef struct loader_entry {
    LIST_ENTRY load_order, memory_order, init_order;
    void *base, *entry_point;
    ULONG byte_count;
    UNICODE_STRING full_name;
} loader_entry;

static void *leaving; /* base of the module that is being unmapped; changed under the loader lock */

/* Paths have slashes as in the rest of hotfn, and no "\??\". */
static bool copy_path(const UNICODE_STRING *name, char out[MAX_PATH_BYTES])
{
    int units = name->Length / (int)sizeof(wchar_t);
    int count =
        WideCharToMultiByte(CP_UTF8, 0, name->Buffer, units, out, MAX_PATH_BYTES - 1, NULL, NULL);

    if (count <= 0) {
        return false;
    }
    out[count] = 0;
    for (char *c = out; *c; c++) {
        *c = *c == '\\' ? '/' : *c;
    }
    if (strncmp(out,
                "/?"
                "?/",
                4) == 0) {
        memmove(out, out + 4, strlen(out + 4) + 1);
    }
    return true;
}

static bool visit_entry(const loader_entry *entry, bool is_main, hfn_os_module_fn visit, void *user)
{
    uint64_t base = (uint64_t)(uintptr_t)entry->base;
    char path[MAX_PATH_BYTES];
    hfn_os_module module = { path, base, base, base + entry->byte_count, is_main };

    if (!entry->base || entry->base == leaving || !copy_path(&entry->full_name, path)) {
        return true;
    }
    return visit(user, &module);
}

void hfn_os_each_module(hfn_os_module_fn visit, void *user)
{
    const LIST_ENTRY *list = &RtlGetCurrentPeb()->Ldr->InMemoryOrderModuleList;
    const LIST_ENTRY *at = list->Flink;

    for (int i = 0; at != list && i < MAX_MODULES; i++, at = at->Flink) {
        const loader_entry *entry = CONTAINING_RECORD(at, loader_entry, memory_order);

        if (!visit_entry(entry, i == 0, visit, user)) {
            return;
        }
    }
}

/* ---- Changes of the list. */

static void (*watcher)(void *user);
static void *watcher_user, *watcher_cookie;

/* When the process ends, wine reports each module as unmapped, although all of them stay. */
static void CALLBACK handle_change(ULONG reason, const notification *data, void *user)
{
    (void)user;
    if (RtlDllShutdownInProgress()) {
        return;
    }
    leaving = reason == REASON_UNLOADED ? data->base : NULL;
    if (watcher) {
        watcher(watcher_user);
    }
    leaving = NULL;
}

bool hfn_os_watch_modules(void (*changed)(void *user), void *user)
{
    watcher_user = user;
    watcher = changed;
    if (!changed) {
        if (watcher_cookie) {
            LdrUnregisterDllNotification(watcher_cookie);
            watcher_cookie = NULL;
        }
        return true;
    }
    return watcher_cookie ||
           LdrRegisterDllNotification(0, handle_change, NULL, &watcher_cookie) >= 0;
}

uint64_t hfn_os_get_module_list_hook(void)
{
    return 0;
}

bool hfn_os_module_list_is_complete(void)
{
    return true;
}

/* Unwind tables of PE images are in .pdata, which the system finds itself. */
bool hfn_os_find_unwind(uint64_t base, hfn_os_unwind *out)
{
    (void)base;
    *out = (hfn_os_unwind){ .header = 0 };
    return false;
}

void hfn_os_keep_module_loaded(const void *address)
{
    HMODULE module;

    GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
                       (const wchar_t *)address, &module);
}

uint64_t hfn_os_find_symbol(const char *library, const char *symbol)
{
    wchar_t name[256];
    HMODULE module = hfn_to_utf16(library, name, 256) ? GetModuleHandleW(name) : NULL;

    return module ? (uint64_t)(uintptr_t)GetProcAddress(module, symbol) : 0;
}

void hfn_os_add_unwind_table(const void *functions, uint32_t count, uint64_t base)
{
#if defined(__x86_64__)
    RtlAddFunctionTable((RUNTIME_FUNCTION *)(uintptr_t)functions, count, base);
#else
    (void)functions, (void)count, (void)base;
#endif
}

bool hfn_os_loads_pe(void)
{
    return true;
}
