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

hfn_os_error hfn_order_publish(int64_t *handle, uint32_t pid, const hfn_agent_order *order)
{
    wchar_t name[NAME_UNITS];
    HANDLE section;
    void *view;

    make_name(name, pid);
    section =
        CreateFileMappingW(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, sizeof *order, name);
    if (!section) {
        return hfn_get_last_error();
    }
    view = MapViewOfFile(section, FILE_MAP_WRITE, 0, 0, sizeof *order);
    if (!view) {
        hfn_os_error error = hfn_get_last_error();

        CloseHandle(section);
        return error;
    }
    memcpy(view, order, sizeof *order);
    UnmapViewOfFile(view);
    *handle = (int64_t)(intptr_t)section;
    return 0;
}

bool hfn_order_read(hfn_agent_order *out)
{
    wchar_t name[NAME_UNITS];
    HANDLE section;
    void *view;
    bool found = false;

    make_name(name, GetCurrentProcessId());
    section = OpenFileMappingW(FILE_MAP_READ, FALSE, name);
    view = section ? MapViewOfFile(section, FILE_MAP_READ, 0, 0, sizeof *out) : NULL;
    if (view) {
        memcpy(out, view, sizeof *out);
        found = out->magic == HFN_ORDER_MAGIC && out->text_bytes > 0 &&
                out->text_bytes <= sizeof out->text && out->text[out->text_bytes - 1] == 0;
        UnmapViewOfFile(view);
    }
    if (section) {
        CloseHandle(section);
    }
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
