/* SPDX-License-Identifier: MIT */
/* Passes an agent its parameters (the order) in a section whose name contains the process id. */
#include "os/windows/order.h"

#include "os/windows/nt.h"

#include <string.h>

enum { NAME_UNITS = 40 };

static void make_name(wchar_t out[NAME_UNITS], uint32_t pid)
{
    static const char prefix[] = "Local\\hotfn-order-";
    size_t used = 0;

    for (const char *c = prefix; *c; c++) {
        out[used++] = (wchar_t)*c;
    }
    for (int shift = 28; shift >= 0; shift -= 4) {
        out[used++] = L"0123456789abcdef"[pid >> shift & 15];
    }
    out[used] = 0;
}

hfn_os_error hfn_order_map(int64_t *handle, hfn_agent_order **out, uint32_t pid, bool creates)
{
    wchar_t name[NAME_UNITS];
    hfn_os_error error;
    HANDLE section;

    make_name(name, pid);
    section = creates ? CreateFileMappingW(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0,
                                           sizeof **out, name)
                      : OpenFileMappingW(FILE_MAP_READ | FILE_MAP_WRITE, FALSE, name);
    if (!section) {
        return hfn_get_last_error();
    }
    /* the whole section: that of another version may be smaller */
    *out = MapViewOfFile(section, FILE_MAP_READ | FILE_MAP_WRITE, 0, 0, 0);
    if (!*out) {
        error = hfn_get_last_error();
        CloseHandle(section);
        return error;
    }
    *handle = (int64_t)(intptr_t)section;
    return 0;
}

hfn_os_error hfn_order_publish(int64_t *handle, uint32_t pid, const hfn_agent_order *order)
{
    hfn_agent_order *view;
    hfn_os_error error = hfn_order_map(handle, &view, pid, true);

    if (error == 0) {
        memcpy(view, order, sizeof *order);
        UnmapViewOfFile(view);
    }
    return error;
}

bool hfn_order_is_valid(const hfn_agent_order *order)
{
    return order->magic == HFN_ORDER_MAGIC && order->text_bytes > 0 &&
           order->text_bytes <= sizeof order->text && order->text[order->text_bytes - 1] == 0;
}

bool hfn_order_read(hfn_agent_order *out)
{
    hfn_agent_order *view;
    int64_t section;
    bool found;

    if (hfn_order_map(&section, &view, GetCurrentProcessId(), false) != 0) {
        return false;
    }
    found = view->magic == HFN_ORDER_MAGIC && view->kind == HFN_ORDER_RUN;
    if (found) {
        memcpy(out, view, sizeof *out);
        found = hfn_order_is_valid(out);
    }
    UnmapViewOfFile(view);
    CloseHandle((HANDLE)(intptr_t)section);
    return found;
}

void hfn_order_restore_headers(const hfn_changed_headers *headers)
{
    for (int i = 0; i < 2; i++) {
        void *at = (void *)(uintptr_t)headers->address[i];
        DWORD before;

        if (headers->byte_count[i] > 0 && headers->byte_count[i] <= sizeof headers->original[i] &&
            VirtualProtect(at, headers->byte_count[i], PAGE_READWRITE, &before)) {
            memcpy(at, headers->original[i], headers->byte_count[i]);
            VirtualProtect(at, headers->byte_count[i], before, &before);
        }
    }
}
